//! `OnceLock`: a cell that is written once.
//!
//! A value that was set outside any model stays set inside. What is set inside a model belongs to one execution: the
//! state word is new in the next one, and a value that is still there (in a `static`) is overwritten without being
//! dropped, because its destructor would act on objects of an execution that is over. Which of the two counts is said by
//! [`Once::side`].

use super::once::{AfterPanic, Once, Side};
use crate::rt::{self, counts};
use std::cell::UnsafeCell;
use std::fmt;
use std::mem;
use std::panic::{RefUnwindSafe, UnwindSafe};

/// A cell that is written at most once. Mirrors [`std::sync::OnceLock`].
pub struct OnceLock<T> {
    once: Once,
    /// Only looked at when `once` is complete; only written by the closure that `once` runs.
    inside: UnsafeCell<Option<T>>,
    outside: std::sync::OnceLock<T>,
}

// SAFETY: `inside` is written by one thread at a time, the one that `once` lets run, and read after that. Another
// thread may drop what this one has put in, hence `Send`.
unsafe impl<T: Send + Sync> Sync for OnceLock<T> {}
// A closure that panics leaves the cell empty.
impl<T: UnwindSafe> UnwindSafe for OnceLock<T> {}
impl<T: RefUnwindSafe + UnwindSafe> RefUnwindSafe for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// An empty cell.
    pub const fn new() -> Self {
        Self { once: Once::new(), inside: UnsafeCell::new(None), outside: std::sync::OnceLock::new() }
    }

    /// The value, if there is one.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        self.get_if(true)
    }

    /// The same; see [`Self::get_or_force`].
    #[track_caller]
    pub(super) fn get_if(&self, stays: bool) -> Option<&T> {
        if self.once.is_made_by_caller() {
            return None;
        }
        match self.side(stays) {
            Side::Outside => self.outside.get(),
            Side::Inside if self.once.is_completed_inside() => self.inside(),
            Side::Inside => None,
        }
    }

    #[track_caller]
    fn side(&self, stays: bool) -> Side {
        self.once.side(stays, || self.outside.get().is_some())
    }

    #[track_caller]
    fn make_outside<F: FnOnce() -> T>(&self, f: F) -> &T {
        let _gate = if self.outside.get().is_some() { None } else { Some(self.once.gate()) };
        self.outside.get_or_init(f)
    }

    fn inside(&self) -> Option<&T> {
        // SAFETY: called after `once` was seen complete, and nobody writes after that.
        unsafe { (*self.inside.get()).as_ref() }
    }

    /// The value, if there is one.
    #[track_caller]
    pub fn get_mut(&mut self) -> Option<&mut T> {
        if self.side(true) == Side::Outside {
            return self.outside.get_mut();
        }
        if self.once.is_completed_inside() { self.inside.get_mut().as_mut() } else { None }
    }

    /// Sets the value, or gives it back if there is one.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| value.take().expect("invariant: the closure is called once"));
        value.map_or(Ok(()), Err)
    }

    /// The value; the closure makes it if there is none. If the closure panics, the cell stays empty.
    #[track_caller]
    pub fn get_or_init<F: FnOnce() -> T>(&self, f: F) -> &T {
        self.get_or_make(|| counts::keeping(f))
    }

    /// The same for a value that does not outlive the execution.
    #[track_caller]
    pub(crate) fn get_or_make<F: FnOnce() -> T>(&self, f: F) -> &T {
        if self.side(true) == Side::Outside {
            return self.make_outside(f);
        }
        let done = self.once.run("OnceLock::get_or_init", true, AfterPanic::Incomplete, |_| self.put(f()));
        done.expect("invariant: poison is ignored");
        self.inside().expect("invariant: the closure has put a value")
    }

    /// The value, as a [`LazyLock`](super::LazyLock) makes it: if the closure panics there is none, and never will be. If what
    /// is made of it outside does not matter inside, it `stays`.
    #[track_caller]
    pub(super) fn get_or_force<F: FnOnce() -> T>(&self, stays: bool, f: F) -> &T {
        if self.side(stays) == Side::Outside {
            return self.make_outside(f);
        }
        let make = || counts::keeping(f);
        let done = self.once.run("LazyLock::force", false, AfterPanic::Poisoned, |_| self.put(make()));
        assert!(done.is_ok(), "LazyLock instance has previously been poisoned");
        self.inside().expect("invariant: the closure has put a value")
    }

    fn put(&self, value: T) {
        // SAFETY: `once` is running us and nobody else, and nobody reads before it is complete.
        let stale = unsafe { (*self.inside.get()).replace(value) };
        mem::forget(stale);
    }

    /// Waits until there is a value.
    #[track_caller]
    pub fn wait(&self) -> &T {
        if self.side(true) == Side::Outside {
            return self.outside.wait();
        }
        self.once.wait_inside();
        self.inside().expect("invariant: complete means that there is a value")
    }

    /// The value, if there is one.
    #[track_caller]
    pub fn into_inner(mut self) -> Option<T> {
        self.take()
    }

    /// Takes the value out and leaves the cell empty.
    #[track_caller]
    pub fn take(&mut self) -> Option<T> {
        let there = self.get_mut().is_some();
        let cell = mem::take(self);
        let Self { inside, outside, .. } = cell;
        outside.into_inner().or_else(|| {
            let value = inside.into_inner();
            if there {
                return value;
            }
            mem::forget(value);
            None
        })
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        let cell = Self::new();
        match cell.set(value) {
            Ok(()) => cell,
            Err(_) => unreachable!("a new cell is empty"),
        }
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    fn clone(&self) -> Self {
        self.get().cloned().map_or_else(Self::new, Self::from)
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

/// As the standard library has it. In a model the value is not looked at: that would be an event.
impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if rt::in_model() {
            return f.debug_struct("OnceLock").finish_non_exhaustive();
        }
        fmt::Debug::fmt(&self.outside, f)
    }
}
