//! What [`lazy_static!`](crate::lazy_static!) expands to.
//!
//! Inside a model the value belongs to the execution: it is made by the first thread that asks, the others wait, and it is
//! dropped when the execution is over.

use crate::rt;
use crate::sync::OnceLock;
use std::fmt;

// loom has them here, too.
#[doc(hidden)]
pub use crate::thread::{AccessError, panicking, yield_now};

/// A value that is made on first use.
pub struct Lazy<T: 'static> {
    init: fn() -> T,
    outside: std::sync::OnceLock<T>,
}

// SAFETY: a shared reference gives out shared references to `T` only. The value is made by the thread that asks first and,
// being in a static, never dropped outside a model; inside a model one OS thread makes and drops it. So `T` need not be
// `Send`, which std's `OnceLock` would ask for.
unsafe impl<T: Sync> Sync for Lazy<T> {}

impl<T: 'static> Lazy<T> {
    /// For the macro.
    #[doc(hidden)]
    pub const fn new(init: fn() -> T) -> Self {
        Self { init, outside: std::sync::OnceLock::new() }
    }

    /// The value, made now if it was not before.
    #[track_caller]
    pub fn get(&'static self) -> &'static T {
        if !rt::in_model() {
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
