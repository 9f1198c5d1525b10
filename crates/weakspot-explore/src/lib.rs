//! Stateless exploration of the SC executions of a program, with monitors for store-buffer safety.
//!
//! | module | what lives there |
//! |---|---|
//! | [`system`] | the border: threads without memory, that can be run again |
//! | [`interpreter`] | a `Program` as a `System` |
//! | [`clocks`] | vector clocks in flat tables |
//! | [`graph`] | execution graphs: po, rf, co and their clocks |
//! | [`linearise`] | total orders of a graph |
//! | [`monitor`] | store-buffer safety of one SC execution |
//! | [`critical`] | mutual exclusion of a graph |
//! | [`exhaustive`] | every trace, watched and judged |
//! | [`interleave`] | one interleaving at a time |
//! | [`bounded`] | iterative context bounding, random, PCT |
//! | [`happening`] | what an execution of the reference machine did |
//! | [`buffered`] | the threads of a system on simulated store buffers |
//! | [`reorder`] | programs that no store buffer can reorder |
//! | [`replay`] | exactly one schedule |
//! | [`schedule`] | schedules as short strings |
//! | [`recorded`] | executions as files, and monitors over them |
//! | [`outcome`] | what was found, as steps of the reference machine |
//! | [`trust`] | exhaustive exploration, one execution for each trace |
//!
//! ```
//! use weakspot_explore::exhaustive::{ExploreOptions, explore};
//! use weakspot_model::source::SourceFile;
//! use weakspot_model::task::Budget;
//!
//! let text = "shared x, y; thread a { x = 1; let r = y; } thread b { y = 1; let r = x; }";
//! let program = weakspot_front::weak::compile(&SourceFile::new("sb.weak", text)).expect("it compiles").program;
//! let outcome = explore(&program, &ExploreOptions { all: true, ..Default::default() }, &Budget::unlimited(), &());
//! assert!(outcome.exhaustive);
//! assert_eq!(outcome.executions, 3); // three SC traces,
//! assert_eq!(outcome.violations.len(), 2); // and each thread's load can overtake its store under TSO
//! ```
//!
//! # Programs with `assume`
//! An execution with a false `assume` is none, but a monitor cannot know whether the relaxed execution it predicts runs
//! into one. So in programs that assume something a violation found here is a possible one, to be confirmed by the
//! engine that builds the relaxed execution; that nothing was found means what it says.
//!
//! Nothing here prints, reads files or looks at the environment.

pub mod bounded;
pub mod buffered;
pub mod clocks;
pub mod critical;
pub mod exhaustive;
pub mod graph;
pub mod happening;
pub mod interleave;
pub mod interpreter;
pub mod linearise;
pub mod monitor;
pub mod outcome;
pub mod parallel;
pub mod recorded;
pub mod reorder;
pub mod replay;
pub mod schedule;
pub mod system;
pub mod trust;
