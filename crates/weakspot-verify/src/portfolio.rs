//! One question, several engines: does a program meet its specification with unbounded buffers?
//!
//! Explicit search with a small bound finds most violations, and fast; what it finds is real. It proves only where no
//! buffer wanted to pass the bound, so the bound [climbs](climb). Each step up is far more work than the one before, and
//! in vain where stores fill every buffer. So before the large bounds the abstract engine [may prove](decide) that there
//! is nothing to find: it knows no bound, and its alarms count for nothing here. Where it cannot, and stores do fill every
//! buffer, the [symbolic](unbounded) engine has the last word, if it can represent the program.

use weakspot_model::ir::Program;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};

use crate::abstraction::{self, AbstractOptions};
use crate::explicit::{self, ExplicitOptions, InternalError};
use crate::symbolic::{self, SymbolicError, SymbolicOptions};

/// Symbolic states after which it is given up; they are dearer than explicit ones.
const MAX_SYMBOLIC_STATES: u64 = 20_000;

/// An answer, and the states stored for it.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The answer.
    pub verdict: Verdict,
    /// States of all searches.
    pub states: u64,
}

/// Bounds with which explicit search goes before the abstract engine.
const SMALL_BOUND: usize = 2;

/// Explicit search with small bounds, then a proof of the abstract engine within so many states, then explicit search with
/// the other bounds.
pub fn decide(
    program: &Program,
    options: &ExplicitOptions,
    bounds: &[usize],
    max_abstract_states: u64,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Answer, InternalError> {
    let (small, large) = bounds.split_at(bounds.partition_point(|&bound| bound <= SMALL_BOUND));
    let answer = climb(program, options, small, budget, progress)?;
    // Where there are too many states for explicit search, there are for the other engine as well.
    let Verdict::Inconclusive(Limit::Buffer(_)) = answer.verdict else { return Ok(answer) };
    let search = AbstractOptions {
        allow_deadlock: options.allow_deadlock,
        spurious_wakeups: options.spurious_wakeups,
        max_states: Some(max_abstract_states),
        ..AbstractOptions::new(options.model)
    };
    let (is_proved, states) = abstraction::prove(program, &search, budget, progress);
    let states = answer.states + states;
    if is_proved {
        return Ok(Answer { verdict: Verdict::Verified, states });
    }
    if large.is_empty() {
        return Ok(Answer { verdict: answer.verdict, states });
    }
    let climbed = climb(program, options, large, budget, progress)?;
    Ok(Answer { states: states + climbed.states, ..climbed })
}

/// Explicit search with one bound after the other, until one decides or a limit other than the bound is reached.
pub fn climb(
    program: &Program,
    options: &ExplicitOptions,
    bounds: &[usize],
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Answer, InternalError> {
    let mut answer = Answer { verdict: Verdict::Inconclusive(Limit::Buffer(0)), states: 0 };
    for &buffer in bounds {
        let search = ExplicitOptions { buffer, ..options.clone() };
        let report = explicit::try_verify(program, &search, budget, progress)?;
        answer = Answer { verdict: report.verdict, states: answer.states + report.states };
        if !matches!(answer.verdict, Verdict::Inconclusive(Limit::Buffer(_))) {
            break;
        }
    }
    Ok(answer)
}

/// Symbolic search, after explicit search has reached the bound `reached`. That is also the answer where the engine
/// cannot represent the program, or needs too many states.
pub fn unbounded(
    program: &Program,
    options: &ExplicitOptions,
    reached: Limit,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Answer, SymbolicError> {
    let search = SymbolicOptions {
        allow_deadlock: options.allow_deadlock,
        spurious_wakeups: options.spurious_wakeups,
        max_states: Some(MAX_SYMBOLIC_STATES),
        ..SymbolicOptions::new(options.model)
    };
    let report = match symbolic::verify(program, &search, budget, progress) {
        Err(error) if error.is_refusal() => {
            return Ok(Answer { verdict: Verdict::Inconclusive(reached), states: 0 });
        }
        report => report?,
    };
    let verdict = match report.verdict {
        Verdict::Inconclusive(Limit::States(_)) => Verdict::Inconclusive(reached),
        verdict => verdict,
    };
    Ok(Answer { verdict, states: report.states_stored })
}
