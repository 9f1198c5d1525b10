//! Run concurrent Rust tests under every schedule, and find the fence that TSO and PSO processors need.
mod builder;
pub mod cell;
mod failure;
pub mod hint;
mod model;
mod report;
#[doc(hidden)]
pub mod rt;
pub mod sync;
pub mod thread;

pub use builder::{Builder, FailOn};
pub use failure::{Failure, FailureKind, RacingAccess, SourcePlace};
pub use model::model;
pub use report::{Report, Verdict};
pub use weakspot_model::buffer::MemoryModel;
