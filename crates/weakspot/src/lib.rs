//! Run concurrent Rust tests under every schedule, and find the fence that TSO and PSO processors need.
//!
//! A test hands a closure to [`model`], which runs it in every way its threads can be scheduled: once for each trace
//! (which read saw which write, in which order the writes came), never twice. In the same run a monitor asks whether a
//! store that lingers in a store buffer could have made a difference. If it could, the real code is run on simulated
//! store buffers to see what comes of it.
//!
//! ```
//! use weakspot::sync::Arc;
//! use weakspot::sync::atomic::{AtomicBool, Ordering};
//! use weakspot::{Builder, Verdict, thread};
//!
//! // Two threads announce themselves and then look for the other one.
//! fn announce(order: Ordering) {
//!     let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
//!     let other = flags.clone();
//!     let thread = thread::spawn(move || {
//!         other[0].store(true, order);
//!         other[1].load(Ordering::SeqCst)
//!     });
//!     flags[1].store(true, order);
//!     let seen = flags[0].load(Ordering::SeqCst);
//!     assert!(seen || thread.join().unwrap(), "nobody has seen the other");
//! }
//!
//! weakspot::model(|| announce(Ordering::SeqCst)); // fine
//!
//! let report = Builder::default().check(|| announce(Ordering::Release));
//! assert_eq!(report.verdict, Verdict::Harmful); // on every x86 processor
//! assert_eq!(report.suggestions.len(), 2); // both stores have to be SeqCst
//! assert_eq!(report.executions, 3); // as many as there are
//! ```
//!
//! # How a test is written
//! As with loom: use [`sync`], [`thread`], [`cell`] and [`hint`] in place of the standard library's, behind a `cfg` or by
//! a type parameter. Outside a model they behave like the standard library's, so the same build can run ordinary tests.
//! All of them can be made in constants and statics. Atomics, locks and `OnceLock`s in statics begin anew in each execution.
//! What a static `Mutex` or `RwLock` holds is put back if it has no destructor and does not point to the heap (on
//! Linux).
//!
//! - The closure must do the same when it is run again: no time, no random numbers, no order of hash maps. A model that
//!   does not is found out and the first event that differs is named.
//! - A loop that waits for another thread has to say so, by [`hint::spin_loop`] or [`thread::yield_now`] in each round. A
//!   round that finds nothing new is explored once; then the thread waits until somebody writes what it reads.
//! - Primitives of the standard library that are used by mistake are not seen: an atomic of `std` is no event, and a
//!   `std` mutex that is contended blocks the whole test.
//! - What compilers may reorder is outside the model, and so are processors weaker than PSO.
//!
//! # What is found
//! Panics and failed assertions of any thread, deadlocks, livelocks, data races on [`cell::UnsafeCell`] (by the
//! happens-before relation of the C11 orderings, where `SeqCst` counts as `AcqRel`), leaks of [`alloc::Track`], and
//! store-buffer violations. A violation whose relaxed execution fails is a failure of the test; one that is harmless is
//! printed as a note. [`Builder::fail_on`] changes that.
//!
//! # Environment
//! | variable | meaning |
//! |---|---|
//! | `WEAKSPOT_MODEL` | `sc`, `tso` (if nothing is said) or `pso` |
//! | `WEAKSPOT_REPLAY` | run one schedule, as a report prints it |
//! | `WEAKSPOT_MAX_PREEMPTIONS` | for models with too many executions: only those with so few preemptions |
//! | `WEAKSPOT_MAX_DURATION` | give up after so many seconds |
//! | `WEAKSPOT_MAX_EXECUTIONS` | give up after so many executions |
//! | `WEAKSPOT_MAX_THREADS` | threads a model may have |
//! | `WEAKSPOT_JOBS` | workers, 0 for all cores: see [`Builder::jobs`] |
//! | `WEAKSPOT_FAIL_ON` | `harmful` (if nothing is said), `unsafe` or `nothing`: see [`Builder::fail_on`] |
//! | `WEAKSPOT_STRENGTHENED` | operations that count as stronger: see [`Builder::strengthened`] |
//! | `WEAKSPOT_SUGGESTIONS` | a file for what would help, which `weakspot fence --test` reads |
//! | `WEAKSPOT_LOG` | print a report for models that do not fail, too |
//!
//! # Where loom differs
//! loom treats `SeqCst` as `AcqRel` and reports correct code (store buffering, Dekker, Peterson, bakery with `SeqCst`);
//! here `SeqCst` is what it is on the machine. loom explores more than the machine does for relaxed orderings (reads of
//! old values that no store buffer can cause); here TSO and PSO are exact.
// Some modules of the integration tests are used by unit tests as well.
#[cfg(test)]
extern crate self as weakspot;

mod again;
pub mod alloc;
mod builder;
pub mod cell;
mod endless;
mod environment;
mod failure;
pub mod future;
pub mod hint;
mod impact;
mod jobs;
mod judge;
pub mod lazy_static;
mod macros;
mod model;
mod reclaim;
mod repetition;
mod replay;
mod report;
#[doc(hidden)]
pub mod rt;
mod schedules;
mod source;
mod statistics;
mod strengthen;
mod suggestions;
pub mod sync;
pub mod thread;
mod timeline;

pub use builder::{Builder, FailOn, MAX_THREADS};
pub use failure::{Failure, FailureKind, Freeing, RacingAccess, SourcePlace};
pub use impact::{Harm, Impact};
pub use model::model;
pub use report::{Bound, LoopLeftOut, Party, Report, Verdict, Violation};
pub use strengthen::{Change, Suggestion};
pub use timeline::{Moment, Timeline};
pub use weakspot_model::buffer::MemoryModel;
