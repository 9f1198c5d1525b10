//! The atomic pointer.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{self as std_atomic, Ordering};

use super::core::{PointerAccess, check_failure_order, check_load_order, check_store_order, common_methods};
use crate::rt::slot::Slot;
use crate::rt::{self, Place, Runtime};

/// An atomic `*mut T`.
pub struct AtomicPtr<T> {
    slot: Slot<std_atomic::AtomicPtr<T>>,
}

impl<T> AtomicPtr<T> {
    /// An atomic with this value.
    pub const fn new(value: *mut T) -> Self {
        Self { slot: Slot::new(std_atomic::AtomicPtr::new(value)) }
    }

    common_methods!(
        *mut T,
        PointerAccess<'a>,
        erased,
        rt::current_here,
        |value: *mut T| value.expose_provenance() as u64,
        |bits: u64| std::ptr::with_exposed_provenance_mut::<T>(bits as usize)
    );
}

/// The same slot, whatever the pointer in it points to.
fn erased<T>(slot: &Slot<std_atomic::AtomicPtr<T>>) -> &Slot<std_atomic::AtomicPtr<()>> {
    // SAFETY: pointers to values whose size is known have one layout, and so have atomic ones and slots of them.
    unsafe { &*std::ptr::from_ref(slot).cast() }
}

fn erased_mut<T>(slot: &mut Slot<std_atomic::AtomicPtr<T>>) -> &mut Slot<std_atomic::AtomicPtr<()>> {
    // SAFETY: as above.
    unsafe { &mut *std::ptr::from_mut(slot).cast() }
}

impl<T> AtomicPtr<T> {
    /// The memory of the value.
    fn outside(&self) -> &std_atomic::AtomicPtr<T> {
        self.slot.memory()
    }

    fn settled(&mut self) -> &mut *mut T {
        erased_mut(&mut self.slot).settle();
        self.slot.memory_mut().get_mut()
    }
}

/// Arithmetic on the address, which keeps the provenance outside a model.
macro_rules! fetch_address {
    ($($method:ident, $does:literal, |$old:ident, $operand:ident| $new:expr;)*) => {$(
        #[doc = concat!($does, "; returns the pointer before.")]
        #[track_caller]
        pub fn $method(&self, $operand: usize, order: Ordering) -> *mut T {
            self.fetch_address(stringify!($method), order, Location::caller(), move |$old| $new)
        }
    )*};
}

impl<T> AtomicPtr<T> {
    fn fetch_address(&self, what: &'static str, order: Ordering, place: Place, new: impl Fn(usize) -> usize) -> *mut T {
        if let Some(runtime) = rt::current_here() {
            return self.modify(runtime, what, order, place, |old| old.map_addr(&new));
        }
        self.update_outside(|old| Some(old.map_addr(&new)))
    }

    /// Adds to the pointer, counted in values; returns the pointer before.
    #[track_caller]
    pub fn fetch_ptr_add(&self, count: usize, order: Ordering) -> *mut T {
        self.fetch_byte_add(count.wrapping_mul(size_of::<T>()), order)
    }

    /// Subtracts from the pointer, counted in values; returns the pointer before.
    #[track_caller]
    pub fn fetch_ptr_sub(&self, count: usize, order: Ordering) -> *mut T {
        self.fetch_byte_sub(count.wrapping_mul(size_of::<T>()), order)
    }

    fetch_address! {
        fetch_byte_add, "Adds to the pointer, counted in bytes", |old, bytes| old.wrapping_add(bytes);
        fetch_byte_sub, "Subtracts from the pointer, counted in bytes", |old, bytes| old.wrapping_sub(bytes);
        fetch_or, "Bitwise or with the address", |old, bits| old | bits;
        fetch_and, "Bitwise and with the address", |old, bits| old & bits;
        fetch_xor, "Bitwise exclusive or with the address", |old, bits| old ^ bits;
    }
}

impl<T> fmt::Pointer for AtomicPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.peek(), f)
    }
}

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}

impl<T> From<*mut T> for AtomicPtr<T> {
    fn from(value: *mut T) -> Self {
        Self::new(value)
    }
}

impl<T> fmt::Debug for AtomicPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.peek(), f)
    }
}
