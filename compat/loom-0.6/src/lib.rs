//! weakspot under the name of loom 0.6: everything is [`weakspot_loom`].
//!
//! ```console
//! $ RUSTFLAGS="--cfg loom" cargo test --config 'patch.crates-io.loom.path="…/compat/loom-0.6"'
//! ```

pub use weakspot_loom::*;
