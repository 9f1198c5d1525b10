//! How results look: on a terminal, as JSON, and as a herd log.
//!
//! | module | what it makes |
//! |---|---|
//! | [`style`] | the only place that knows colours and widths |
//! | [`diagnostic`] | messages about places in the source, with the source shown |
//! | [`timeline`] | a replayed execution, one column per thread |
//! | [`violation`] | why a program is not store-buffer safe: accesses, cycle, fence |
//! | [`recorded`] | what monitors find in recorded traces, and damage to them |
//! | [`diff`] | unified diffs of two texts |
//! | [`json`] | the objects of `--json` |
//! | [`herd`] | the log format of the herd7 simulator, for litmus tests |
//!
//! Everything here turns data into text. Nothing searches, writes to a terminal, or asks the environment whether it is
//! one: the caller decides about colour and width and hands that down as a [`style::Style`].

pub mod diagnostic;
pub mod diff;
pub mod herd;
pub mod json;
pub mod recorded;
pub mod style;
pub mod timeline;
pub mod violation;
