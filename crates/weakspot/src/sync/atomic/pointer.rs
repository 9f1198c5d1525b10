//! The atomic pointer.

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{self as std_atomic, Ordering};

use super::core::{Access, Memory, common_methods};
use crate::rt::objects::Stamp;
use crate::rt::{self, Place, Runtime};

/// An atomic `*mut T`.
pub struct AtomicPtr<T> {
    value: std_atomic::AtomicPtr<T>,
    stamp: Stamp,
}

impl<T> Memory for std_atomic::AtomicPtr<T> {
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

    common_methods!(*mut T, std_atomic::AtomicPtr<T>, |value: *mut T| value.expose_provenance() as u64, |bits: u64| {
        std::ptr::with_exposed_provenance_mut::<T>(bits as usize)
    });
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
