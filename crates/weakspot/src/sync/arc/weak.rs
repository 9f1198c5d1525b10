//! Pointers that do not keep their target alive.

use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::sync as outside;

use super::{Arc, Weak};
use crate::rt::counts::{self, Count, Owners};
use crate::rt::{Step, Sync as Synchronises};

impl<T> Weak<T> {
    /// Points to nothing.
    pub const fn new() -> Self {
        Self(ManuallyDrop::new(outside::Weak::new()))
    }
}

impl<T: ?Sized> Weak<T> {
    pub(super) fn wrap(weak: outside::Weak<T>) -> Self {
        Self(ManuallyDrop::new(weak))
    }

    fn key(&self) -> usize {
        self.0.as_ptr().cast::<()>().addr()
    }

    fn owners(&self) -> Owners {
        Owners { strong: self.0.strong_count(), weak: self.0.weak_count() }
    }

    /// A raw pointer, which keeps the memory.
    pub fn into_raw(self) -> *const T {
        let pointer = self.0.as_ptr();
        std::mem::forget(self);
        pointer
    }

    /// Turns a raw pointer from [`Self::into_raw`] back.
    ///
    /// # Safety
    /// As for the standard library's.
    pub unsafe fn from_raw(pointer: *const T) -> Self {
        // SAFETY: the caller's.
        Self::wrap(unsafe { outside::Weak::from_raw(pointer) })
    }

    /// An owner, if the value still has one.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        if let Some(word) = counts::upgrading(self.key(), self.owners(), Location::caller()) {
            // std looks first: whoever finds no owner has no fence.
            let is_gone = |word| Owners::of(word).strong == 0;
            let step = |word| if is_gone(word) { Step::Keep } else { Step::Write(word + 1) };
            let syncs = (Synchronises::Acquire, Synchronises::Relaxed);
            if is_gone(word.look_and_update("Weak::upgrade", syncs, step)) {
                return None;
            }
        }
        self.0.upgrade().map(Arc::wrap)
    }

    /// How many owners there are.
    #[track_caller]
    pub fn strong_count(&self) -> usize {
        match counts::look_by_weak(self.key(), self.owners(), Location::caller()) {
            Some(Count::Word(word)) => Owners::of(word.look("Weak::strong_count", Synchronises::Relaxed)).strong,
            Some(Count::Known) => 0,
            None => self.0.strong_count(),
        }
    }

    /// How many weak pointers there are, if there are owners.
    #[track_caller]
    pub fn weak_count(&self) -> usize {
        match counts::look_at_both_by_weak(self.key(), self.owners(), Location::caller()) {
            Some(Count::Word(word)) => {
                let Owners { strong, weak } = Owners::of(word.look("Weak::weak_count", Synchronises::Relaxed));
                if strong == 0 { 0 } else { weak }
            }
            Some(Count::Known) => 0,
            None => self.0.weak_count(),
        }
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
    #[track_caller]
    fn clone(&self) -> Self {
        counts::weak_added(self.key(), "Weak::clone", Synchronises::Relaxed, Location::caller());
        Self(self.0.clone())
    }
}

impl<T: ?Sized> Drop for Weak<T> {
    fn drop(&mut self) {
        counts::weak_dropped(self.key());
        // SAFETY: this is the destructor, the field is not used again.
        unsafe { ManuallyDrop::drop(&mut self.0) };
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
