//! `LazyLock`: a value that is made when it is first needed.
//!
//! A `static` lives through all executions of a model, but its initialiser is needed once in each of them. So inside a
//! model an initialiser that owns nothing (a function, a closure without captures or with references) is copied and
//! not consumed; one that owns something can serve a single execution only and fails the second with a message.

use super::OnceLock;
use crate::rt;
use std::cell::UnsafeCell;
use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr;

/// A value that is made on first use. Mirrors [`std::sync::LazyLock`].
pub struct LazyLock<T, F = fn() -> T> {
    cell: OnceLock<T>,
    /// Only touched inside the closure that `cell` runs.
    init: UnsafeCell<Option<F>>,
}

// SAFETY: `init` is touched by one thread at a time, the one that `cell` lets run; it moves to that thread, hence `Send`.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}
// An initialiser that panics leaves no value.
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}

impl<T, F> LazyLock<T, F> {
    /// The value, if it was made.
    #[track_caller]
    pub fn get(this: &Self) -> Option<&T> {
        this.cell.get()
    }

    /// The value to change, if it was made.
    #[track_caller]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        this.cell.get_mut()
    }
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// The value will be made by `f`.
    pub const fn new(f: F) -> Self {
        Self { cell: OnceLock::new(), init: UnsafeCell::new(Some(f)) }
    }

    /// The value, made now if it was not before.
    ///
    /// # Panics
    /// If the initialiser panics, now or before.
    #[track_caller]
    pub fn force(this: &Self) -> &T {
        this.cell.get_or_force(|| (this.initialiser())())
    }

    /// The value to change, made now if it was not before.
    ///
    /// # Panics
    /// As [`Self::force`].
    #[track_caller]
    pub fn force_mut(this: &mut Self) -> &mut T {
        Self::force(this);
        this.cell.get_mut().expect("invariant: the value was made")
    }

    fn initialiser(&self) -> F {
        // SAFETY: we are inside the closure that `cell` runs, so nobody else is here.
        let init = unsafe { &mut *self.init.get() };
        if rt::in_model()
            && !mem::needs_drop::<F>()
            && let Some(init) = init
        {
            // SAFETY: `F` needs no drop, so two copies free nothing twice; and what the first copy has made belongs to
            // an execution that is over, so references in it are not used any more.
            return unsafe { ptr::read(init) };
        }
        match init.take() {
            Some(init) => init,
            None if rt::in_model() => rt::fail(
                "a LazyLock that outlives one execution needs an initialiser that owns nothing: this one was used up by \
                 an earlier execution"
                    .to_owned(),
            ),
            None => panic!("LazyLock instance has previously been poisoned"),
        }
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        Self::force(self)
    }
}

impl<T, F: FnOnce() -> T> DerefMut for LazyLock<T, F> {
    #[track_caller]
    fn deref_mut(&mut self) -> &mut T {
        Self::force_mut(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    fn default() -> Self {
        Self::new(T::default)
    }
}

/// As the standard library has it. In a model the value is not looked at: that would be an event.
impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if rt::in_model() {
            return f.debug_struct("LazyLock").finish_non_exhaustive();
        }
        match Self::get(self) {
            Some(value) => f.debug_tuple("LazyLock").field(value).finish(),
            None => f.debug_tuple("LazyLock").field(&format_args!("<uninit>")).finish(),
        }
    }
}
