//! The object of `fence --test`: operations of Rust code to strengthen.

use serde::Serialize;

use super::{Head, Place};

/// What stands for the thread of a place in Rust code: whoever comes there.
pub const ANY_THREAD: &str = "*";

/// An operation to strengthen.
#[derive(Debug, Clone, Serialize)]
pub struct Strengthened<'a> {
    /// A fence after this place does it: the store, or the end of the line before the operation.
    pub after: Place<'a>,
    /// Which fence: `full` or `store_store`.
    pub kind: &'static str,
    /// The operation.
    pub place: Place<'a>,
    /// What to do to it: `SeqCst`, `Release`, or `fence` for a fence before it.
    pub change: &'static str,
    /// The line of the operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The line as it should read; for `fence`, the one to put before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<&'a str>,
    /// Which line that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u32>,
    /// Which reordering it stops, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A model of the test, without any change.
#[derive(Debug, Clone, Serialize)]
pub struct LiveModel<'a> {
    /// Where it is started.
    pub place: Place<'a>,
    /// `safe`, `failed`, `harmful`, `benign`, `unknown` or `bounded`.
    pub verdict: &'static str,
    /// SC executions.
    pub executions: u64,
    /// Were these all?
    pub exhaustive: bool,
}

/// What goes wrong on every processor.
#[derive(Debug, Clone, Serialize)]
pub struct LiveError<'a> {
    /// `panic`, `race`, `deadlock`, …
    pub kind: &'a str,
    /// In one sentence.
    pub message: &'a str,
    /// Where, if that is one place.
    pub at: Option<Place<'a>>,
}

/// The answer of `fence --test`.
#[derive(Debug, Clone, Serialize)]
pub struct LiveFence<'a> {
    /// `verdict` is `none-needed`, `fenced`, `impossible` or `inconclusive`; `file` the manifest.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// The whole name of the test.
    pub test: &'a str,
    /// `spec` or `robust`.
    pub goal: &'static str,
    /// What to strengthen; when `inconclusive`, what the executions found so far demand.
    pub fences: Vec<Strengthened<'a>>,
    /// With these nothing that must go was found any more.
    pub tried: bool,
    /// Are fewer changes not enough?
    pub minimal: bool,
    /// The number of changes.
    pub cost: usize,
    /// How often the test was run.
    pub iterations: u32,
    /// Its models.
    pub models: Vec<LiveModel<'a>>,
    /// The changes as a unified diff, as far as the lines are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// What goes wrong on every processor; only when `impossible`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<LiveError<'a>>,
    /// What stood in the way of an answer; only when `inconclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
    /// The same in words; only when `inconclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
