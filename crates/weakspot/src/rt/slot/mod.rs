//! The memory of an atomic, and how it is tied to the object of a run.
//!
//! There is code that asserts that an atomic is as large as its value, so there is no room for anything beside it; and
//! `new` is a `const fn`, so nothing is known of an atomic before its first use in a run. While a run uses it, its memory
//! therefore holds a *token* in place of the value: which object of which run this is. The value is kept with the object.
//! When the run is over, every atomic that still holds its token gets the value back that it had before: see
//! [`narrow`](self). An atomic that is made anew holds a value and no token, so memory that is used again is a new object,
//! and one that is moved takes its token along.
//!
//! That needs memory that can be looked at when the run is over, even if it was freed meanwhile, which is so where
//! [`memory`](super::memory) keeps what is freed. Elsewhere an atomic has a [`Stamp`](super::objects::Stamp) beside its
//! value, as locks have.
//!
//! | | `narrow` | `wide` |
//! |---|---|---|
//! | where | Linux, GNU C library, 64 bits | elsewhere, and without the feature `allocator` |
//! | bytes | 8 | 32 |

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

#[cfg(all(
    feature = "allocator",
    target_os = "linux",
    target_env = "gnu",
    not(target_feature = "crt-static"),
    target_pointer_width = "64",
    target_endian = "little"
))]
#[path = "narrow.rs"]
mod layout;
#[cfg(not(all(
    feature = "allocator",
    target_os = "linux",
    target_env = "gnu",
    not(target_feature = "crt-static"),
    target_pointer_width = "64",
    target_endian = "little"
)))]
#[path = "wide.rs"]
mod layout;

#[cfg_attr(not(feature = "allocator"), allow(unused_imports, reason = "asked where what is freed is known"))]
pub(crate) use layout::{Homes, Slot, is_token_of, object_of, token_of_run};

/// The memory of an atomic, as bits.
pub(crate) trait Memory {
    fn get(&self) -> u64;
    fn set(&self, bits: u64);
    /// Writes `new` if the bits are `old`.
    fn exchange(&self, old: u64, new: u64) -> Result<u64, u64>;
}

impl Memory for AtomicU64 {
    #[inline]
    fn get(&self) -> u64 {
        self.load(Ordering::SeqCst)
    }

    #[inline]
    fn set(&self, bits: u64) {
        self.store(bits, Ordering::Relaxed);
    }

    fn exchange(&self, old: u64, new: u64) -> Result<u64, u64> {
        self.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst)
    }
}

impl Memory for AtomicPtr<()> {
    #[inline]
    fn get(&self) -> u64 {
        self.load(Ordering::SeqCst).expose_provenance() as u64
    }

    #[inline]
    fn set(&self, bits: u64) {
        self.store(std::ptr::with_exposed_provenance_mut(bits as usize), Ordering::Relaxed);
    }

    fn exchange(&self, old: u64, new: u64) -> Result<u64, u64> {
        let pointer = |bits: u64| std::ptr::with_exposed_provenance_mut(bits as usize);
        let result = self.compare_exchange(pointer(old), pointer(new), Ordering::SeqCst, Ordering::SeqCst);
        result.map(|old| old.expose_provenance() as u64).map_err(|found| found.expose_provenance() as u64)
    }
}

/// An object that an atomic is in this run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) object: u32,
    /// Was it made by a thread of this run?
    pub(crate) is_born: bool,
}
