//! What came of a model.

use std::fmt;
use std::time::Duration;

use weakspot_model::buffer::MemoryModel;

use crate::failure::Failure;

/// What kept the exploration from being complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The limit on executions.
    Executions,
    /// The limit on time.
    Time,
    /// The bound on preemptions.
    Preemptions,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Every execution is correct, on the memory model too.
    Safe,
    /// An execution fails.
    Failed,
    /// Nothing found, and not everything was looked at.
    Bounded(Bound),
}

/// What came of a model.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// The answer.
    pub verdict: Verdict,
    /// The memory model.
    pub model: MemoryModel,
    /// Executions that ran to their end: one for each trace.
    pub executions: u64,
    /// Explorations that turned out to be no executions.
    pub blocked: u64,
    /// How often the closure was run.
    pub runs: u64,
    /// Events in all.
    pub events: u64,
    /// Executions that tripped the monitor.
    pub borderline: u64,
    /// Every execution was explored.
    pub exhaustive: bool,
    /// How long it took.
    pub elapsed: Duration,
    /// Why it failed.
    pub failure: Option<Failure>,
    pub(crate) bound: Option<Bound>,
}

impl Report {
    pub(crate) fn new(model: MemoryModel) -> Self {
        Self {
            verdict: Verdict::Safe,
            model,
            executions: 0,
            blocked: 0,
            runs: 0,
            events: 0,
            borderline: 0,
            exhaustive: false,
            elapsed: Duration::ZERO,
            failure: None,
            bound: None,
        }
    }

    /// Does a test with this report fail?
    pub fn is_failure(&self) -> bool {
        self.verdict == Verdict::Failed
    }

    /// Is there something to tell although the test does not fail?
    pub fn has_notes(&self) -> bool {
        false
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            Some(failure) => writeln!(f, "{:?} {}", failure.thread, failure.message)?,
            None => writeln!(f, "{:?}", self.verdict)?,
        }
        write!(f, "{} executions, {} blocked, {} runs, {:?}", self.executions, self.blocked, self.runs, self.elapsed)
    }
}
