//! The atomic truth value.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{self as std_atomic, Ordering};

use super::core::{Access, Memory, check_failure_order, common_methods};
use crate::rt::objects::Stamp;
use crate::rt::{self, Place, Runtime};

/// An atomic `bool`.
#[derive(Default)]
pub struct AtomicBool {
    value: std_atomic::AtomicBool,
    stamp: Stamp,
}

impl Memory for std_atomic::AtomicBool {
    #[inline]
    fn get(&self) -> u64 {
        u64::from(self.load(Ordering::Relaxed))
    }

    #[inline]
    fn set(&self, bits: u64) {
        self.store(bits != 0, Ordering::Relaxed);
    }
}

macro_rules! fetch {
    ($method:ident, $does:literal, $new:expr) => {
        #[doc = concat!($does, "; returns the value before.")]
        #[track_caller]
        pub fn $method(&self, value: bool, order: Ordering) -> bool {
            match rt::current() {
                None => {
                    self.stamp.written_outside();
                    self.value.$method(value, order)
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
        Self { value: std_atomic::AtomicBool::new(value), stamp: Stamp::new() }
    }

    common_methods!(
        bool,
        Access<'a, std_atomic::AtomicBool>,
        std::convert::identity,
        rt::current,
        u64::from,
        |bits: u64| bits != 0
    );

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
        fmt::Debug::fmt(&self.value, f)
    }
}
