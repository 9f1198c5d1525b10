//! Run concurrent Rust tests under every schedule, and find the fence that TSO and PSO processors need.
mod builder;
pub mod cell;
mod failure;
pub mod hint;
mod impact;
mod model;
mod replay;
mod report;
#[doc(hidden)]
pub mod rt;
mod source;
mod strengthen;
pub mod sync;
pub mod thread;
mod timeline;

pub use builder::{Builder, FailOn};
pub use failure::{Failure, FailureKind, RacingAccess, SourcePlace};
pub use impact::{Harm, Impact};
pub use model::model;
pub use report::{Bound, Party, Report, Verdict, Violation};
pub use strengthen::Suggestion;
pub use timeline::{Moment, Timeline};
pub use weakspot_model::buffer::MemoryModel;
