//! What [`lazy_static!`](crate::lazy_static!) expands to.
//!
//! Inside a model the value belongs to the execution: it is made by the first thread that asks, the others wait, and it is
//! dropped when the execution is over.

use crate::rt;
use crate::sync::OnceLock;
use std::fmt;
use std::marker::PhantomData;

// loom has them here, too.
#[doc(hidden)]
pub use crate::thread::{AccessError, panicking, yield_now};

/// Who may use a value.
#[doc(hidden)]
pub struct Users<T> {
    is_sync: bool,
    of: PhantomData<fn() -> T>,
}

impl<T: Sync> Users<T> {
    /// All threads.
    pub const ALL: Self = Self { is_sync: true, of: PhantomData };
}

impl<T> Users<T> {
    /// Threads of a model.
    pub const OF_A_MODEL: Self = Self { is_sync: false, of: PhantomData };
}

/// A value that is made on first use.
pub struct Lazy<T: 'static> {
    init: fn() -> T,
    outside: std::sync::OnceLock<T>,
    /// Is `T` so? If not, it is for models only.
    is_sync: bool,
}

// SAFETY: a shared reference gives out shared references to `T` only. Inside a model one OS thread makes, uses and drops
// the value. Outside, the value is made by the thread that asks first and, being in a static, never dropped, so `T` need
// not be `Send`; and if `T` is not `Sync`, `get` refuses to work.
unsafe impl<T> Sync for Lazy<T> {}

impl<T: 'static> Lazy<T> {
    /// For the macro.
    #[doc(hidden)]
    pub const fn new(init: fn() -> T, users: &Users<T>) -> Self {
        Self { init, outside: std::sync::OnceLock::new(), is_sync: users.is_sync }
    }

    /// The value, made now if it was not before.
    #[track_caller]
    pub fn get(&'static self) -> &'static T {
        if !rt::in_model() {
            assert!(self.is_sync, "this static is not `Sync`: it can be used by the threads of a model only");
            return self.outside.get_or_init(self.init);
        }
        let cell: &'static OnceLock<T> = rt::run_local((&raw const *self).cast(), OnceLock::new);
        cell.get_or_make(self.init)
    }
}

impl<T> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").finish_non_exhaustive()
    }
}
