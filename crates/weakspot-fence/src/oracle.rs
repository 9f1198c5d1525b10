//! Is a program good enough? Asked of the engines again and again.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Action;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};
use weakspot_verify::symbolic::{self, SymbolicOptions};

use crate::{FenceError, FenceOptions, Goal};

/// The answer for one placement.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Proved: buffers unbounded, nothing left out.
    Correct,
    /// These executions must not be. Never empty; each has been replayed on the reference machine by its engine.
    Broken(Vec<Vec<Action>>),
    /// Neither.
    Undecided(Limit),
}

/// How much one question may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// The answer decides about the result.
    Full,
    /// The answer would only help; there are many of these questions.
    Light,
}

impl Effort {
    /// States after which a bound is given up, so that inference always ends.
    fn max_states(self) -> u64 {
        match self {
            Self::Full => 20_000_000,
            Self::Light => 500_000,
        }
    }

    /// Bounds on store buffers, tried in this order: small ones find most violations, and fast.
    fn buffer_bounds(self) -> &'static [usize] {
        match self {
            Self::Full => &[1, 2, 4, 8],
            Self::Light => &[1, 2, 4],
        }
    }
}

/// States after which the symbolic engine is given up; they are dearer than explicit ones.
const MAX_SYMBOLIC_STATES: u64 = 20_000;

/// Whom to ask.
pub(crate) struct Oracle<'a> {
    pub(crate) options: &'a FenceOptions,
    pub(crate) budget: &'a Budget,
    pub(crate) progress: &'a dyn Progress,
    /// States stored by all searches so far.
    pub(crate) states: u64,
}

impl Oracle<'_> {
    /// Does the program meet the goal?
    pub(crate) fn ask(&mut self, program: &Program, effort: Effort) -> Result<Answer, FenceError> {
        match self.options.goal {
            Goal::Robust => self.robust(program),
            Goal::Spec => self.spec(program, effort),
        }
    }

    /// Does the program meet its specification without store buffers?
    pub(crate) fn sc(&mut self, program: &Program) -> Result<Verdict, FenceError> {
        self.explicit(program, MemoryModel::Sc, ExplicitOptions::DEFAULT_BUFFER, Effort::Full)
    }

    fn spec(&mut self, program: &Program, effort: Effort) -> Result<Answer, FenceError> {
        let mut reached = Limit::Buffer(0);
        for &buffer in effort.buffer_bounds() {
            match self.explicit(program, self.options.model, buffer, effort)? {
                Verdict::Verified => return Ok(Answer::Correct),
                Verdict::Violated(witness) => return Ok(Answer::Broken(vec![witness.actions])),
                Verdict::Inconclusive(limit) => reached = limit,
            }
            if !matches!(reached, Limit::Buffer(_)) {
                break;
            }
        }
        if matches!(reached, Limit::Buffer(_) | Limit::States(_)) && self.adds_no_trace(program)? {
            return Ok(Answer::Correct);
        }
        if matches!(reached, Limit::Buffer(_)) && effort == Effort::Full {
            return self.symbolic(program, reached);
        }
        Ok(Answer::Undecided(reached))
    }

    /// Buffers without a bound, for programs whose stores fill any.
    fn symbolic(&mut self, program: &Program, reached: Limit) -> Result<Answer, FenceError> {
        let FenceOptions { model, allow_deadlock, spurious_wakeups, .. } = *self.options;
        let max_states = Some(MAX_SYMBOLIC_STATES);
        let defaults = SymbolicOptions::new(model);
        let options = SymbolicOptions { allow_deadlock, spurious_wakeups, max_states, ..defaults };
        let report = match symbolic::verify(program, &options, self.budget, self.progress) {
            Err(error) if error.is_refusal() => return Ok(Answer::Undecided(reached)),
            report => report?,
        };
        self.states += report.states_stored;
        Ok(match report.verdict {
            Verdict::Verified => Answer::Correct,
            Verdict::Violated(witness) => Answer::Broken(vec![witness.actions]),
            Verdict::Inconclusive(Limit::States(_)) => Answer::Undecided(reached),
            Verdict::Inconclusive(limit) => Answer::Undecided(limit),
        })
    }

    /// Store-buffer safe, so as correct as under SC, which the caller has seen to.
    fn adds_no_trace(&mut self, program: &Program) -> Result<bool, FenceError> {
        Ok(matches!(self.robust(program)?, Answer::Correct))
    }

    fn robust(&mut self, program: &Program) -> Result<Answer, FenceError> {
        let FenceOptions { model, spurious_wakeups, goal, .. } = *self.options;
        // all of them only where each makes a clause
        let options = RobustOptions { model, all: goal == Goal::Robust, spurious_wakeups };
        let report = robust::check(program, options, self.budget, self.progress)?;
        self.states += report.states;
        Ok(match report.verdict {
            RobustVerdict::Robust => Answer::Correct,
            RobustVerdict::NotRobust => {
                Answer::Broken(report.violations.into_iter().map(|violation| violation.relaxed).collect())
            }
            RobustVerdict::Inconclusive(limit) => Answer::Undecided(limit),
        })
    }

    fn explicit(
        &mut self,
        program: &Program,
        model: MemoryModel,
        buffer: usize,
        effort: Effort,
    ) -> Result<Verdict, FenceError> {
        let FenceOptions { jobs, allow_deadlock, spurious_wakeups, .. } = *self.options;
        let max_states = Some(effort.max_states());
        let defaults = ExplicitOptions::new(model);
        let options = ExplicitOptions { buffer, jobs, allow_deadlock, spurious_wakeups, max_states, ..defaults };
        let report = explicit::try_verify(program, &options, self.budget, self.progress)?;
        self.states += report.states;
        Ok(report.verdict)
    }
}
