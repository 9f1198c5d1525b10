//! What the tests of weakspot share: programs nobody wrote, and answers nobody optimised.
//!
//! | module | what lives there |
//! |---|---|
//! | [`rng`] | a small seeded generator of random numbers |
//! | [`sketch`] | programs as a few statements, which print as `.weak` text and lower to IR |
//! | [`generate`] | random sketches, with knobs for what they may contain |
//! | [`shrink`] | makes a failing sketch as small as it gets |
//! | [`oracle`] | brute force over the reference machine: states, problems, final states, traces |
//! | [`candidates`] | every combination of reads-from and coherence order of a straight-line program |
//! | [`corpus`] | the files of the corpus |
//! | [`cycles`] | litmus tests from critical cycles |
//!
//! Nothing here is fast, and nothing here is used outside tests and benches.

pub mod candidates;
pub mod corpus;
pub mod cycles;
pub mod generate;
mod lower;
pub mod oracle;
pub mod rng;
pub mod shrink;
pub mod sketch;
