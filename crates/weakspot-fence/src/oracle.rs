//! Is a program good enough? Asked of the engines again and again.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Action;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::portfolio;
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};

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
        let search = self.search(MemoryModel::Sc, Effort::Full);
        let report = explicit::try_verify(program, &search, self.budget, self.progress)?;
        self.states += report.states;
        Ok(report.verdict)
    }

    fn spec(&mut self, program: &Program, effort: Effort) -> Result<Answer, FenceError> {
        let search = self.search(self.options.model, effort);
        let climbed = portfolio::climb(program, &search, effort.buffer_bounds(), self.budget, self.progress)?;
        self.states += climbed.states;
        let Verdict::Inconclusive(reached) = climbed.verdict else { return Ok(climbed.verdict.into()) };
        if matches!(reached, Limit::Buffer(_) | Limit::States(_)) && self.adds_no_trace(program)? {
            return Ok(Answer::Correct);
        }
        if !matches!(reached, Limit::Buffer(_)) || effort == Effort::Light {
            return Ok(Answer::Undecided(reached));
        }
        let unbounded = portfolio::unbounded(program, &search, reached, self.budget, self.progress)?;
        self.states += unbounded.states;
        Ok(unbounded.verdict.into())
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

    fn search(&self, model: MemoryModel, effort: Effort) -> ExplicitOptions {
        let FenceOptions { jobs, allow_deadlock, spurious_wakeups, .. } = *self.options;
        let max_states = Some(effort.max_states());
        ExplicitOptions { jobs, allow_deadlock, spurious_wakeups, max_states, ..ExplicitOptions::new(model) }
    }
}

impl From<Verdict> for Answer {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Verified => Self::Correct,
            Verdict::Violated(witness) => Self::Broken(vec![witness.actions]),
            Verdict::Inconclusive(limit) => Self::Undecided(limit),
        }
    }
}
