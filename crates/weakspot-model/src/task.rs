//! What an engine is given and what it gives back.
//!
//! An engine does no I/O, prints nothing and reads no environment: it takes a program, its own options, a [`Budget`]
//! and a [`Progress`] sink, and returns a verdict that is honest about its bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::replay::Witness;

/// How much an engine may spend. Limits are honoured, never enforced by aborting: the engine answers
/// [`Verdict::Inconclusive`] with what it reached.
#[derive(Debug, Clone, Default)]
pub struct Budget {
    /// Stop at this moment.
    pub deadline: Option<Instant>,
    /// Stop when the engine's own tables have grown past this many bytes.
    pub memory: Option<u64>,
    /// Stop as soon as this is set (Ctrl-C).
    pub cancelled: Arc<AtomicBool>,
}

impl Budget {
    /// No limits.
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// With a time limit that starts now.
    #[must_use]
    pub fn with_time(mut self, limit: Duration) -> Self {
        self.deadline = Instant::now().checked_add(limit);
        self
    }

    /// With a limit on the engine's tables.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Has somebody said how much may be spent? Who has waits until it is.
    pub fn is_limited(&self) -> bool {
        self.deadline.is_some() || self.memory.is_some()
    }

    /// Why to stop now, if there is a reason. `used` is the size of the engine's tables in bytes. Reads the clock:
    /// ask once in a few thousand steps.
    pub fn exhausted(&self, used: u64) -> Option<Limit> {
        if self.cancelled.load(Ordering::Relaxed) {
            Some(Limit::Cancelled)
        } else if self.memory.is_some_and(|memory| used > memory) {
            Some(Limit::Memory)
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Some(Limit::Time)
        } else {
            None
        }
    }
}

/// Which bound kept an engine from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// A store buffer wanted to hold more stores than `--buffer` allows.
    Buffer(usize),
    /// Out of time.
    Time,
    /// Out of memory.
    Memory,
    /// The user asked it to stop.
    Cancelled,
    /// The number of states the caller allowed.
    States(u64),
    /// It took too long to find out whether an `assume` rules out what was found.
    Assumptions,
}

/// The answer of a verification engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// No execution breaks the specification.
    Verified,
    /// This one does.
    Violated(Witness),
    /// Nothing found, and not everything was looked at.
    Inconclusive(Limit),
}

/// Told how far a search is, now and then.
pub trait Progress: Sync {
    /// States stored, transitions taken, states still to be expanded.
    fn update(&self, states: u64, transitions: u64, waiting: u64);

    /// Stateless search: executions that ran to their end, executions of all kinds, and which part of the search is
    /// done, between 0 and 1, as far as that can be estimated.
    fn explored(&self, executions: u64, graphs: u64, _covered: f64) {
        self.update(executions, graphs, 0);
    }
}

/// Nobody listens.
impl Progress for () {
    fn update(&self, _states: u64, _transitions: u64, _waiting: u64) {}
}
