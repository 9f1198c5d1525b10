//! `LazyLock`: a value that is made when it is first needed.
//!
//! A `static` lives through all executions of a model, but its initialiser is needed once in each of them. So inside a
//! model an initialiser that owns nothing (a function, a closure without captures or with references) is copied and
//! not consumed; one that owns something can serve a single execution only and fails the second with a message. A function
//! is not consumed outside of models, either: a model that has come to it before needs it again.

use super::OnceLock;
use crate::rt;
use std::any::TypeId;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// A value that is made on first use. Mirrors [`std::sync::LazyLock`].
pub struct LazyLock<T, F = fn() -> T> {
    cell: OnceLock<T>,
    /// Only touched inside the closure that `cell` runs.
    init: UnsafeCell<Option<F>>,
    /// Ordinary code has run it.
    has_run: AtomicBool,
}

// SAFETY: `init` is touched by one thread at a time, the one that `cell` lets run; it moves to that thread, hence `Send`.
unsafe impl<T: Send + Sync, F: Send> Sync for LazyLock<T, F> {}
// An initialiser that panics leaves no value.
impl<T: UnwindSafe, F: UnwindSafe> UnwindSafe for LazyLock<T, F> {}
impl<T: RefUnwindSafe + UnwindSafe, F: UnwindSafe> RefUnwindSafe for LazyLock<T, F> {}

/// Is this the type of functions that make such a value, but for lifetimes?
fn is_function<F, T>() -> bool {
    id_of::<F>() == id_of::<fn() -> T>()
}

/// A type that may have an identity.
trait Type {
    fn id(&self) -> TypeId
    where
        Self: 'static;
}

impl<T: ?Sized> Type for PhantomData<T> {
    fn id(&self) -> TypeId
    where
        Self: 'static,
    {
        TypeId::of::<T>()
    }
}

/// The identity of a type, but for lifetimes.
fn id_of<T: ?Sized>() -> TypeId {
    let named: &dyn Type = &PhantomData::<T>;
    // SAFETY: only the lifetime changes, and there is no value that could outlive it: lifetimes are no part of an identity.
    unsafe { mem::transmute::<&dyn Type, &(dyn Type + 'static)>(named) }.id()
}

impl<T, F> LazyLock<T, F> {
    /// The value, if it was made.
    #[track_caller]
    pub fn get(this: &Self) -> Option<&T> {
        this.cell.get_if(is_function::<F, T>())
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
        Self { cell: OnceLock::new(), init: UnsafeCell::new(Some(f)), has_run: AtomicBool::new(false) }
    }

    /// The value, made now if it was not before.
    ///
    /// # Panics
    /// If the initialiser panics, now or before.
    #[track_caller]
    pub fn force(this: &Self) -> &T {
        this.cell.get_or_force(is_function::<F, T>(), || (this.initialiser())())
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
        // SAFETY: we are inside the closure that `cell` runs, in one world at a time, so nobody else is here.
        let init = unsafe { &mut *self.init.get() };
        let has_run = !rt::in_model() && self.has_run.swap(true, Ordering::Relaxed);
        if !has_run
            && (is_function::<F, T>() || rt::in_model() && !mem::needs_drop::<F>())
            && let Some(init) = init
        {
            // SAFETY: `F` can be copied, or it needs no drop, so two copies free nothing twice; and what the first copy has
            // made belongs to an execution that is over, so references in it are not used any more.
            return unsafe { ptr::read(init) };
        }
        match init.take() {
            Some(init) if !has_run => init,
            None if rt::in_model() => rt::fail(
                "a LazyLock that outlives one execution needs an initialiser that owns nothing: this one was used up by \
                 an earlier execution"
                    .to_owned(),
            ),
            _ => panic!("LazyLock instance has previously been poisoned"),
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
