//! Run concurrent Rust tests under every schedule, and find the fence that TSO and PSO processors need.
pub mod alloc;
mod builder;
pub mod cell;
mod failure;
pub mod future;
pub mod hint;
pub mod lazy_static;
mod macros;
mod model;
mod report;
#[doc(hidden)]
pub mod rt;
mod statistics;
pub mod sync;
pub mod thread;

pub use builder::{Builder, FailOn, MAX_THREADS};
pub use failure::{Failure, FailureKind, RacingAccess, SourcePlace};
pub use model::model;
pub use report::{Report, Verdict};
pub use weakspot_model::buffer::MemoryModel;
