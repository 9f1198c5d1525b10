//! weakspot under the paths of loom 0.7, for tests that were written for loom.
//!
//! There are two ways to use it. Nothing changes in the tests either way.
//!
//! - For a crate that depends on `loom`: `cargo test --config 'patch.crates-io.loom.path="…/compat/loom"'`, where the
//!   folder holds a package that is called `loom` and re-exports this one. `compat/loom-0.5` is for users of loom 0.5.
//! - For one's own crate: `loom = { package = "weakspot-loom", … }` in `Cargo.toml`.
//!
//! # What is different from loom
//! - The memory model is that of a machine with store buffers, TSO or PSO, and exact: `SeqCst` is more than `AcqRel`.
//!   See `docs/rust.md`.
//! - Every execution is explored once and all of them are: [`explore`], [`stop_exploring`], [`skip_branch`] and
//!   [`model::Builder::expect_explicit_explore`] are accepted and leave nothing out.
//! - [`model::Builder::checkpoint_file`] holds the schedule of the execution that failed; if the file is there, exactly
//!   this execution runs again, and all of them if it does not fail any more.
//! - The objects have `const fn new`, there may be more threads, and what loom lacks is here as well:
//!   [`sync::Weak`], [`sync::Once`], [`sync::OnceLock`], [`sync::LazyLock`], [`sync::Barrier`], [`thread::scope`].

pub mod cell;
pub mod hint;
pub mod model;
pub mod sync;
pub mod thread;
mod words;

pub use model::model;
pub use weakspot::{alloc, future, lazy_static, thread_local};

/// How many threads a model of loom may have, the main thread included. Tests start as many as this says; models here
/// may have up to [`weakspot::MAX_THREADS`].
pub const MAX_THREADS: usize = 5;

/// In loom: explore from here on. Here everything is explored anyway.
pub fn explore() {}

/// In loom: do not explore from here on. Here everything is explored anyway.
pub fn stop_exploring() {}

/// In loom: do not explore from here on, for good. Here everything is explored anyway, except that a round of a loop in
/// which it is called counts as one that waits, as with [`hint::spin_loop`]: who does not care for what comes then has
/// tried in vain.
#[track_caller]
pub fn skip_branch() {
    hint::spin_loop();
}
