//! Pointers that do not keep their target alive.

use std::fmt;
use std::panic::Location;
use std::sync as outside;

use super::{Arc, Weak};
use crate::rt::{Step, Sync as Synchronises, counts};

impl<T> Weak<T> {
    /// Points to nothing.
    pub const fn new() -> Self {
        Self(outside::Weak::new())
    }
}

impl<T: ?Sized> Weak<T> {
    /// A raw pointer, which keeps the memory.
    pub fn into_raw(self) -> *const T {
        self.0.into_raw()
    }

    /// Turns a raw pointer from [`Self::into_raw`] back.
    ///
    /// # Safety
    /// As for the standard library's.
    pub unsafe fn from_raw(pointer: *const T) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { outside::Weak::from_raw(pointer) })
    }

    /// An owner, if the value still has one.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let key = self.0.as_ptr().cast::<()>().addr();
        let place = Location::caller();
        if let Some(word) = counts::word_of_weak(key, self.0.strong_count(), place) {
            let found = word.update("Weak::upgrade", Synchronises::Acquire, |count| {
                if count == 0 { Step::Keep } else { Step::Write(count + 1) }
            });
            if found == 0 {
                return None;
            }
        }
        self.0.upgrade().map(Arc::wrap)
    }

    /// How many owners there are.
    #[track_caller]
    pub fn strong_count(&self) -> usize {
        let key = self.0.as_ptr().cast::<()>().addr();
        match counts::word_of_weak(key, self.0.strong_count(), Location::caller()) {
            Some(word) => word.get("Weak::strong_count", Synchronises::Relaxed) as usize,
            None => self.0.strong_count(),
        }
    }

    /// How many weak pointers there are.
    pub fn weak_count(&self) -> usize {
        self.0.weak_count()
    }

    /// Do both point to the same value?
    pub fn ptr_eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// A raw pointer.
    pub fn as_ptr(&self) -> *const T {
        self.0.as_ptr()
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Weak<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}
