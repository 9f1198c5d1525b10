//! What can go wrong in an execution, as data. Wording lives here because every engine and every report shares it.

use std::fmt::Write as _;

use crate::ids::{Loc, MutexId, Pc, Site, ThreadId};
use crate::ir::Program;

/// The kind of a problem, with a stable name for JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemKind {
    /// An `assert` failed.
    Assertion,
    /// Some thread has not ended, nobody can move, every buffer is empty.
    Deadlock,
    /// Two threads are inside `critical` blocks.
    MutualExclusion,
    /// A value outside the declared range was stored.
    Range,
    /// Arithmetic left 64 bits.
    Overflow,
    /// Division or remainder by zero.
    DivisionByZero,
    /// An array index out of range.
    Index,
    /// A mutex was released by a thread that does not hold it.
    Unlock,
    /// `choose` had no value to choose, or far too many.
    Choice,
    /// A thread computed for ever without reaching an event.
    LocalLoop,
}

impl ProblemKind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Assertion => "assertion",
            Self::Deadlock => "deadlock",
            Self::MutualExclusion => "mutual-exclusion",
            Self::Range => "range",
            Self::Overflow => "overflow",
            Self::DivisionByZero => "division-by-zero",
            Self::Index => "index",
            Self::Unlock => "unlock",
            Self::Choice => "choice",
            Self::LocalLoop => "local-loop",
        }
    }
}

/// A problem found in an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind.
    pub kind: ProblemKind,
    /// What happened, in one sentence without a full stop.
    pub message: String,
    /// Who did it; `None` for a deadlock and for the `final` block.
    pub thread: Option<ThreadId>,
    /// Where; `None` for a deadlock.
    pub site: Option<Site>,
}

/// A program error inside one thread, before it has been put into words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The instruction at fault.
    pub pc: Pc,
    /// What it did.
    pub kind: FaultKind,
}

/// What an instruction did wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The condition of an `assert` was 0.
    Assertion {
        /// Index into [`Program::messages`].
        message: Option<u32>,
    },
    /// The result does not fit 64 bits.
    Overflow,
    /// A shift by less than 0 or more than 63.
    Shift {
        /// The amount.
        amount: i64,
    },
    /// Division by zero.
    DivisionByZero,
    /// Index out of range.
    Index {
        /// The index.
        index: i64,
        /// The array's length.
        len: u32,
    },
    /// A value outside the declared range of a location.
    Range {
        /// The location.
        loc: Loc,
        /// The value.
        value: i64,
    },
    /// `choose` from an empty range or one with more than [`crate::local::MAX_CHOICES`] values.
    Choice {
        /// Smallest value.
        lo: i64,
        /// Largest value.
        hi: i64,
    },
    /// Releasing (or waiting with) a mutex one does not hold.
    NotHolding {
        /// The mutex.
        mutex: MutexId,
    },
    /// No event after [`crate::local::MAX_LOCAL_STEPS`] instructions.
    LocalLoop,
}

impl Fault {
    /// Puts the fault of a thread into words.
    pub fn describe(self, program: &Program, thread: ThreadId) -> Problem {
        let code = &program.threads[thread.index()];
        Problem {
            kind: self.kind.problem_kind(),
            message: self.kind.message(program),
            thread: Some(thread),
            site: Some(code.sites[self.pc.index()]),
        }
    }

    /// Puts the fault of the `final` block into words.
    pub fn describe_final(self, program: &Program) -> Problem {
        let site = program.final_block.as_ref().map(|block| block.sites[self.pc.index()]);
        Problem { kind: self.kind.problem_kind(), message: self.kind.message(program), thread: None, site }
    }
}

impl FaultKind {
    /// The kind of problem this is.
    pub fn problem_kind(self) -> ProblemKind {
        match self {
            Self::Assertion { .. } => ProblemKind::Assertion,
            Self::Overflow | Self::Shift { .. } => ProblemKind::Overflow,
            Self::DivisionByZero => ProblemKind::DivisionByZero,
            Self::Index { .. } => ProblemKind::Index,
            Self::Range { .. } => ProblemKind::Range,
            Self::Choice { .. } => ProblemKind::Choice,
            Self::NotHolding { .. } => ProblemKind::Unlock,
            Self::LocalLoop => ProblemKind::LocalLoop,
        }
    }

    fn message(self, program: &Program) -> String {
        match self {
            Self::Assertion { message: Some(index) } => {
                format!("assertion failed: {}", program.messages[index as usize])
            }
            Self::Assertion { message: None } => "assertion failed".to_owned(),
            Self::Overflow => "the result does not fit a 64-bit integer".to_owned(),
            Self::Shift { amount } => format!("shift by {amount}; the amount must be 0 to 63"),
            Self::DivisionByZero => "division by zero".to_owned(),
            Self::Index { index, len } => format!("index {index} is out of range; the array has {len} cells"),
            Self::Range { loc, value } => range_message(program, loc, value),
            Self::Choice { lo, hi } if lo > hi => format!("nothing to choose from: {lo}..={hi} is empty"),
            Self::Choice { lo, hi } => {
                format!("{lo}..={hi} is too wide to choose from (at most {} values)", crate::local::MAX_CHOICES)
            }
            Self::NotHolding { mutex } => {
                format!("mutex `{}` is not held by this thread", program.mutexes[mutex.index()])
            }
            Self::LocalLoop => {
                format!("no load, store or other event within {} local instructions", crate::local::MAX_LOCAL_STEPS)
            }
        }
    }
}

fn range_message(program: &Program, loc: Loc, value: i64) -> String {
    let location = &program.locations[loc.index()];
    let mut text = format!("{value} is outside the range of `{}`", location.name);
    if let Some((lo, hi)) = location.range {
        let _ = write!(text, ", {lo}..={hi}");
    }
    text
}
