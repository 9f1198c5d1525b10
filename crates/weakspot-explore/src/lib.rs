//! Stateless exploration of the SC executions of a program, with monitors for store-buffer safety.
//!
//! | module | what lives there |
//! |---|---|
//! | [`system`] | the border: threads without memory, that can be run again |
//! | [`interpreter`] | a `Program` as a `System` |
//! | [`spin`] | which registers still matter |
//! | [`clocks`] | vector clocks in flat tables |
//! | [`graph`] | execution graphs: po, rf, co and their clocks |
//! | [`linearise`] | total orders of a graph |
//! | [`monitor`] | store-buffer safety of one SC execution |
//! | [`critical`] | mutual exclusion of a graph |
//! | [`exhaustive`] | every trace, watched and judged |
//! | [`interleave`] | one interleaving at a time |
//! | [`bounded`] | iterative context bounding, random, PCT |
//! | [`replay`] | exactly one schedule |
//! | [`schedule`] | schedules as short strings |
//! | [`outcome`] | what was found, as steps of the reference machine |
//! | [`trust`] | exhaustive exploration, one execution for each trace |
//!
//! Nothing here prints, reads files or looks at the environment.

pub mod bounded;
pub mod clocks;
pub mod critical;
pub mod exhaustive;
pub mod graph;
pub mod interleave;
pub mod interpreter;
pub mod linearise;
pub mod monitor;
pub mod outcome;
mod parallel;
pub mod replay;
pub mod schedule;
pub mod spin;
pub mod system;
pub mod trust;
