//! Thread-local values: one for each thread of the model, dropped when that thread ends.

use crate::rt;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;

/// Reaches the value of a `std` thread-local and hands it to the closure.
type Outside<T> = fn(&mut dyn FnMut(&T)) -> Result<(), std::thread::AccessError>;

/// A thread-local value, declared with [`thread_local!`](crate::thread_local). Mirrors [`std::thread::LocalKey`].
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
    outside: Outside<T>,
}

/// The value of the thread is already destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread-local value is already destroyed")
    }
}

impl Error for AccessError {}

impl<T: 'static> LocalKey<T> {
    /// For the macro.
    #[doc(hidden)]
    pub const fn new(init: fn() -> T, outside: Outside<T>) -> Self {
        Self { init, outside }
    }

    /// Gives the closure the value of this thread.
    ///
    /// # Panics
    /// If it is already destroyed.
    #[track_caller]
    pub fn with<F: FnOnce(&T) -> R, R>(&'static self, f: F) -> R {
        match self.try_with(f) {
            Ok(result) => result,
            Err(AccessError) => panic!("cannot access a thread-local value during or after its destruction"),
        }
    }

    /// Gives the closure the value of this thread, unless it is already destroyed.
    pub fn try_with<F: FnOnce(&T) -> R, R>(&'static self, f: F) -> Result<R, AccessError> {
        if rt::in_model() {
            let key = (&raw const *self).cast();
            return rt::thread_local(key, self.init).map(f).ok_or(AccessError);
        }
        let (mut f, mut result) = (Some(f), None);
        let reached = (self.outside)(&mut |value| result = f.take().map(|f| f(value)));
        reached.ok().and(result).ok_or(AccessError)
    }
}

impl<T: 'static> LocalKey<Cell<T>> {
    /// Sets the value of this thread.
    #[track_caller]
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    /// The value of this thread.
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// Takes the value of this thread and leaves the default.
    #[track_caller]
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }

    /// Replaces the value of this thread and returns the old one.
    #[track_caller]
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> LocalKey<RefCell<T>> {
    /// Gives the closure a shared borrow.
    #[track_caller]
    pub fn with_borrow<F: FnOnce(&T) -> R, R>(&'static self, f: F) -> R {
        self.with(|cell| f(&cell.borrow()))
    }

    /// Gives the closure a mutable borrow.
    #[track_caller]
    pub fn with_borrow_mut<F: FnOnce(&mut T) -> R, R>(&'static self, f: F) -> R {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// Sets the value of this thread.
    #[track_caller]
    pub fn set(&'static self, value: T) {
        self.with(|cell| drop(cell.replace(value)));
    }

    /// Takes the value of this thread and leaves the default.
    #[track_caller]
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }

    /// Replaces the value of this thread and returns the old one.
    #[track_caller]
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}
