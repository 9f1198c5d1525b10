//! The atomic truth value.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{self as std_atomic, Ordering};

use super::core::{Access, check_failure_order, check_load_order, check_store_order, common_methods, lowest_bytes};
use crate::rt::slot::Slot;
use crate::rt::{self, Place, Runtime};

/// An atomic `bool`.
#[derive(Default)]
pub struct AtomicBool {
    slot: Slot<std_atomic::AtomicU64>,
}

macro_rules! fetch {
    ($method:ident, $does:literal, $new:expr) => {
        #[doc = concat!($does, "; returns the value before.")]
        #[track_caller]
        pub fn $method(&self, value: bool, order: Ordering) -> bool {
            match rt::current() {
                None => {
                    let new: fn(bool, bool) -> bool = $new;
                    self.update_outside(move |old| Some(new(old, value)))
                }
                Some(runtime) => {
                    let new: fn(bool, bool) -> bool = $new;
                    self.modify(runtime, stringify!($method), order, Location::caller(), move |old| new(old, value))
                }
            }
        }
    };
}

impl AtomicBool {
    /// An atomic with this value.
    pub const fn new(value: bool) -> Self {
        Self { slot: Slot::new(std_atomic::AtomicU64::new(value as u64)) }
    }

    common_methods!(
        bool,
        Access<'a, std_atomic::AtomicU64>,
        std::convert::identity,
        rt::current,
        u64::from,
        |bits: u64| bits != 0
    );

    /// The memory of the value.
    fn outside(&self) -> &std_atomic::AtomicBool {
        let value = lowest_bytes(self.slot.memory().as_ptr(), size_of::<bool>());
        // SAFETY: this is the byte of the value, 0 or 1. It lives as long as the slot, and nobody holds an exclusive
        // reference to it.
        unsafe { &*value.cast() }
    }

    fn settled(&mut self) -> &mut bool {
        self.slot.settle();
        let value = lowest_bytes(self.slot.memory_mut().get_mut(), size_of::<bool>());
        // SAFETY: as above, and the slot is borrowed exclusively.
        unsafe { &mut *value.cast() }
    }

    fetch!(fetch_and, "Logical and", |old, value| old & value);
    fetch!(fetch_nand, "Logical not-and", |old, value| !(old & value));
    fetch!(fetch_or, "Logical or", |old, value| old | value);
    fetch!(fetch_xor, "Logical exclusive or", |old, value| old ^ value);

    /// Logical not; returns the value before.
    #[track_caller]
    #[inline]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        self.fetch_xor(true, order)
    }
}

impl From<bool> for AtomicBool {
    fn from(value: bool) -> Self {
        Self::new(value)
    }
}

impl fmt::Debug for AtomicBool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.peek(), f)
    }
}
