//! Is a program good enough? Asked of the engines again and again.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Action;
use weakspot_model::replay::Witness;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};
use weakspot_verify::abstraction::{self, AbstractOptions, AbstractVerdict};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::growth::suspicious_value;
use weakspot_verify::portfolio;
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};
use weakspot_verify::symbolic::{self, SymbolicOptions};

use crate::{Doubt, FenceEngine, FenceError, FenceOptions, Goal};

/// The answer for one placement.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Proved: buffers unbounded, nothing left out.
    Correct,
    /// These executions must not be. Never empty; each has been replayed on the reference machine by its engine.
    Broken(Vec<Vec<Action>>),
    /// Neither.
    Undecided(Doubt),
}

/// The answer for SC, where fences change nothing.
#[derive(Debug, Clone)]
pub(crate) enum Calm {
    /// Proved.
    Correct,
    /// This execution breaks the specification.
    Broken(Witness),
    /// Neither.
    Undecided(Doubt),
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

    /// The same for engines whose states are dear.
    fn max_dear_states(self) -> u64 {
        match self {
            Self::Full => 2_000_000,
            Self::Light => 50_000,
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
    pub(crate) fn sc(&mut self, program: &Program) -> Result<Calm, FenceError> {
        if let Some((search, _)) = self.options.abstraction().filter(|_| self.options.has_values()) {
            let search = AbstractOptions { model: MemoryModel::Sc, ..search };
            let report = abstraction::verify(program, &search, self.budget, self.progress)?;
            self.states += report.states;
            return Ok(match report.verdict {
                AbstractVerdict::Verified => Calm::Correct,
                AbstractVerdict::Violated(witness) => Calm::Broken(witness),
                AbstractVerdict::Alarm(_) => Calm::Undecided(Doubt::Alarm),
                AbstractVerdict::Inconclusive(limit) => Calm::Undecided(limit.into()),
            });
        }
        let search = self.search(program, MemoryModel::Sc, Effort::Full);
        let report = explicit::try_verify(program, &search, self.budget, self.progress)?;
        self.states += report.states;
        Ok(match report.verdict {
            Verdict::Verified => Calm::Correct,
            Verdict::Violated(witness) => Calm::Broken(witness),
            Verdict::Inconclusive(limit) => Calm::Undecided(limit.into()),
        })
    }

    fn spec(&mut self, program: &Program, effort: Effort) -> Result<Answer, FenceError> {
        match self.options.engine {
            FenceEngine::Auto => self.any_engine(program, effort),
            FenceEngine::Explicit => self.explicit(program, effort),
            FenceEngine::Symbolic => self.symbolic(program, effort),
            FenceEngine::Abstract { .. } => self.abstracted(program, effort),
        }
    }

    /// The engine that is asked for alone, buffers bounded; a proof only if no buffer wanted to pass the largest bound.
    fn explicit(&mut self, program: &Program, effort: Effort) -> Result<Answer, FenceError> {
        let search = self.search(program, self.options.model, effort);
        let climbed = portfolio::climb(program, &search, effort.buffer_bounds(), self.budget, self.progress)?;
        self.states += climbed.states;
        Ok(climbed.verdict.into())
    }

    fn symbolic(&mut self, program: &Program, effort: Effort) -> Result<Answer, FenceError> {
        let search = SymbolicOptions {
            allow_deadlock: self.options.allow_deadlock,
            spurious_wakeups: self.options.spurious_wakeups,
            max_states: Some(effort.max_dear_states()),
            ..SymbolicOptions::new(self.options.model)
        };
        match symbolic::verify(program, &search, self.budget, self.progress) {
            Err(error) if error.is_refusal() => Ok(Answer::Undecided(Doubt::Refused)),
            Err(error) => Err(error.into()),
            Ok(report) => {
                self.states += report.states_stored;
                Ok(report.verdict.into())
            }
        }
    }

    fn abstracted(&mut self, program: &Program, effort: Effort) -> Result<Answer, FenceError> {
        let Some((search, k)) = self.options.abstraction() else { return self.any_engine(program, effort) };
        let search = AbstractOptions { max_states: Some(effort.max_dear_states()), ..search };
        let report = match k {
            Some(_) => abstraction::verify(program, &search, self.budget, self.progress)?,
            None => abstraction::climb(program, &search, self.budget, self.progress)?,
        };
        self.states += report.states;
        Ok(match report.verdict {
            AbstractVerdict::Verified => Answer::Correct,
            AbstractVerdict::Violated(witness) => Answer::Broken(vec![witness.actions]),
            AbstractVerdict::Alarm(_) => Answer::Undecided(Doubt::Alarm),
            AbstractVerdict::Inconclusive(limit) => Answer::Undecided(limit.into()),
        })
    }

    /// Explicit search first; where stores fill every buffer, the engines for unbounded ones.
    fn any_engine(&mut self, program: &Program, effort: Effort) -> Result<Answer, FenceError> {
        let search = self.search(program, self.options.model, effort);
        let (bounds, dear) = (effort.buffer_bounds(), effort.max_dear_states());
        let climbed = portfolio::decide(program, &search, bounds, dear, self.budget, self.progress)?;
        self.states += climbed.states;
        let Verdict::Inconclusive(reached) = climbed.verdict else { return Ok(climbed.verdict.into()) };
        if matches!(reached, Limit::Buffer(_) | Limit::States(_)) && self.adds_no_trace(program)? {
            return Ok(Answer::Correct);
        }
        if !matches!(reached, Limit::Buffer(_)) || effort == Effort::Light {
            return Ok(Answer::Undecided(reached.into()));
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
        let options = RobustOptions {
            model,
            all: goal == Goal::Robust,
            spurious_wakeups,
            max_states: Some(Effort::Full.max_states()),
            max_value: self.max_value(program),
        };
        let report = robust::check(program, options, self.budget, self.progress)?;
        self.states += report.states;
        Ok(match report.verdict {
            RobustVerdict::Robust => Answer::Correct,
            RobustVerdict::NotRobust => {
                Answer::Broken(report.violations.into_iter().map(|violation| violation.relaxed).collect())
            }
            RobustVerdict::Inconclusive(limit) => Answer::Undecided(limit.into()),
        })
    }

    /// Who gave a limit waits until it is reached.
    fn max_value(&self, program: &Program) -> Option<u64> {
        (!self.budget.is_limited()).then(|| suspicious_value(program))
    }

    fn search(&self, program: &Program, model: MemoryModel, effort: Effort) -> ExplicitOptions {
        let FenceOptions { jobs, allow_deadlock, spurious_wakeups, .. } = *self.options;
        ExplicitOptions {
            jobs,
            allow_deadlock,
            spurious_wakeups,
            max_states: Some(effort.max_states()),
            max_value: self.max_value(program),
            ..ExplicitOptions::new(model)
        }
    }
}

impl From<Verdict> for Answer {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Verified => Self::Correct,
            Verdict::Violated(witness) => Self::Broken(vec![witness.actions]),
            Verdict::Inconclusive(limit) => Self::Undecided(limit.into()),
        }
    }
}
