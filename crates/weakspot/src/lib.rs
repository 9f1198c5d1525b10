//! Run concurrent Rust tests under every schedule, and find the fence that TSO and PSO processors need.
pub mod alloc;
mod builder;
pub mod cell;
mod failure;
pub mod future;
pub mod hint;
mod impact;
pub mod lazy_static;
mod macros;
mod model;
mod replay;
mod report;
#[doc(hidden)]
pub mod rt;
mod source;
mod statistics;
mod strengthen;
pub mod sync;
pub mod thread;
mod timeline;

pub use builder::{Builder, FailOn, MAX_THREADS};
pub use failure::{Failure, FailureKind, RacingAccess, SourcePlace};
pub use impact::{Harm, Impact};
pub use model::model;
pub use report::{Bound, Party, Report, Verdict, Violation};
pub use strengthen::Suggestion;
pub use timeline::{Moment, Timeline};
pub use weakspot_model::buffer::MemoryModel;
