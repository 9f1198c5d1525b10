//! The atomic pointer.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{self as std_atomic, Ordering};

use super::core::{Memory, PointerAccess, check_failure_order, common_methods};
use crate::rt::objects::Stamp;
use crate::rt::{self, Place, Runtime};

/// An atomic `*mut T`.
pub struct AtomicPtr<T> {
    value: std_atomic::AtomicPtr<T>,
    stamp: Stamp,
}

impl Memory for std_atomic::AtomicPtr<()> {
    #[inline]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed).expose_provenance() as u64
    }

    #[inline]
    fn set(&self, bits: u64) {
        self.store(std::ptr::with_exposed_provenance_mut(bits as usize), Ordering::Relaxed);
    }
}

impl<T> AtomicPtr<T> {
    /// An atomic with this value.
    pub const fn new(value: *mut T) -> Self {
        Self { value: std_atomic::AtomicPtr::new(value), stamp: Stamp::new() }
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

/// The same memory, whatever the pointer in it points to.
fn erased<T>(value: &std_atomic::AtomicPtr<T>) -> &std_atomic::AtomicPtr<()> {
    // SAFETY: pointers to values whose size is known have one layout, and so have atomic ones.
    unsafe { &*std::ptr::from_ref(value).cast() }
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
        let failure = match order {
            Ordering::AcqRel => Ordering::Acquire,
            Ordering::Release => Ordering::Relaxed,
            order => order,
        };
        match self.value.fetch_update(order, failure, |old| Some(old.map_addr(&new))) {
            Ok(old) | Err(old) => old,
        }
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
        fmt::Pointer::fmt(&self.value, f)
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
        fmt::Debug::fmt(&self.value, f)
    }
}
