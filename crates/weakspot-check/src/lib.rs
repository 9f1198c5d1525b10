//! The main job: are all SC executions correct, is the program store-buffer safe, and if not, does it matter?
//!
//! Three questions, in this order, each with an engine that can answer it:
//!
//! 1. **Is every SC execution correct?** If not, the answer is [`Verdict::Error`]: a bug that has nothing to do with
//!    store buffers comes first.
//! 2. **Is every trace of the model an SC trace?** If so, the program is [`Verdict::Safe`]: its relaxed executions are
//!    as correct as its SC executions, and SC is all the programmer has to think about (SOBER, Sec. 1).
//! 3. **If not ([`Verdict::Unsafe`]), what comes of it?** The papers stop at question 2. We go on: [`Impact::Harmful`]
//!    with a relaxed execution that breaks the specification, [`Impact::Benign`] if a verification engine proves that
//!    there is none, [`Impact::Unknown`] otherwise.
//!
//! # Deliberately absent
//! No search of its own, no printing. What an engine could not finish makes the answer [`Verdict::Bounded`] (questions
//! 1 and 2) or [`Impact::Unknown`] (question 3), never better.

mod impact;
mod violation;

use thiserror::Error;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::replay::{ReplayError, Witness};
use weakspot_model::task::{self, Budget, Limit, Progress};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};

pub use impact::Impact;
pub use violation::{CycleStep, Violation};
pub use weakspot_verify::robust::Access;

/// What is asked.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The model.
    pub model: MemoryModel,
    /// Go on after the first violation and collect one for each pair of accesses.
    pub all: bool,
    /// Worker threads of the engines that can use them.
    pub jobs: usize,
    /// A deadlock is not an error.
    pub allow_deadlock: bool,
    /// A waiting thread may wake without a notification.
    pub spurious_wakeups: bool,
}

/// The answer.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// All SC executions are correct, and the model adds none.
    Safe,
    /// The model adds executions that no SC execution matches.
    Unsafe(Impact),
    /// This SC execution breaks the specification.
    Error(Witness),
    /// Not everything was looked at.
    Bounded(Limit),
}

/// The answer with what it rests on.
#[derive(Debug, Clone)]
pub struct CheckReport {
    /// The answer.
    pub verdict: Verdict,
    /// For [`Verdict::Unsafe`]: one for each pair of accesses (only the first unless all were asked for).
    pub violations: Vec<Violation>,
    /// States that the engines stored for questions 1 and 2.
    pub states: u64,
}

/// A mistake of an engine, never of the program.
#[derive(Debug, Error)]
pub enum InternalError {
    /// Of the explicit engine.
    #[error(transparent)]
    Explicit(#[from] explicit::InternalError),
    /// Of the attack engine.
    #[error("the attack does not replay: {0}")]
    Attack(#[from] ReplayError),
    /// The relaxed execution of an attack has no happens-before cycle.
    #[error("the relaxed execution of an attack is sequentially consistent")]
    NoCycle,
}

/// Answers the three questions.
pub fn check(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<CheckReport, InternalError> {
    let sc = explicit::try_verify(program, &options.explicit(MemoryModel::Sc), budget, progress)?;
    let report = |verdict, states| CheckReport { verdict, violations: Vec::new(), states };
    match sc.verdict {
        task::Verdict::Violated(witness) => return Ok(report(Verdict::Error(witness), sc.states)),
        task::Verdict::Inconclusive(limit) => return Ok(report(Verdict::Bounded(limit), sc.states)),
        task::Verdict::Verified => {}
    }
    let attack = RobustOptions { model: options.model, all: options.all, spurious_wakeups: options.spurious_wakeups };
    let attacks = robust::check(program, attack, budget, progress)?;
    let states = sc.states + attacks.states;
    match attacks.verdict {
        RobustVerdict::Robust => Ok(report(Verdict::Safe, states)),
        RobustVerdict::Inconclusive(limit) => Ok(report(Verdict::Bounded(limit), states)),
        RobustVerdict::NotRobust => {
            let violations = attacks
                .violations
                .iter()
                .map(|attack| Violation::new(program, options, attack))
                .collect::<Result<_, _>>()?;
            let verdict = Verdict::Unsafe(impact::judge(program, options, budget, progress)?);
            Ok(CheckReport { verdict, violations, states })
        }
    }
}

impl CheckOptions {
    fn explicit(&self, model: MemoryModel) -> ExplicitOptions {
        ExplicitOptions {
            jobs: self.jobs,
            allow_deadlock: self.allow_deadlock,
            spurious_wakeups: self.spurious_wakeups,
            ..ExplicitOptions::new(model)
        }
    }
}
