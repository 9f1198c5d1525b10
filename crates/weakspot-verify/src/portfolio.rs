//! One question, several engines: does a program meet its specification with unbounded buffers?
//!
//! Explicit search with a small bound finds most violations, and fast; what it finds is real. It proves only where no
//! buffer wanted to pass the bound, so the bound [climbs](climb). Where stores fill every buffer, the
//! [symbolic](unbounded) engine has the last word, if it can represent the program.

use weakspot_model::ir::Program;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};

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
