//! weakspot under the name of loom 0.5: everything is [`weakspot_loom`].
//!
//! ```console
//! $ RUSTFLAGS="--cfg loom" cargo test --config 'patch.crates-io.loom.path="…/compat/loom-0.5"'
//! ```

pub use weakspot_loom::*;

/// How many threads a model of loom 0.5 may have. Tests start as many as this says; models here may have more.
pub const MAX_THREADS: usize = 4;
