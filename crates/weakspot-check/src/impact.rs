//! What comes of a program that is not store-buffer safe.
//!
//! Harm or its absence is a question for the [portfolio](weakspot_verify::portfolio) of verification engines.

use weakspot_model::ir::Program;
use weakspot_model::replay::Witness;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};
use weakspot_verify::explicit::ExplicitOptions;
use weakspot_verify::portfolio;

use crate::{CheckOptions, InternalError};

/// Does it matter that the program is not store-buffer safe?
#[derive(Debug, Clone)]
pub enum Impact {
    /// This relaxed execution breaks the specification.
    Harmful(Witness),
    /// No relaxed execution breaks the specification: proved with unbounded buffers.
    Benign,
    /// Neither found nor proved within this limit.
    Unknown(Limit),
}

/// Bounds on store buffers, tried in this order.
const BUFFER_BOUNDS: [usize; 4] = [1, 2, 4, 8];

/// States after which a bound is given up, so that `check` always ends.
pub const MAX_STATES: u64 = 20_000_000;

/// The same where executions were bounded, perhaps because there is no end of them.
pub const MAX_STATES_UNDER_BOUNDS: u64 = 500_000;

/// The same where one schedule or some schedules were asked for, which takes a moment.
pub const MAX_STATES_OF_SAMPLING: u64 = 200_000;

/// States among which one worker looks for harm alone, before all of them do: what several find first is chance, and a
/// finding should not depend on their number where that costs nothing.
const STATES_ALONE: u64 = 50_000;

/// Searches for harm, then for a proof that there is none.
pub fn judge(
    program: &Program,
    options: &CheckOptions,
    max_states: u64,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Impact, InternalError> {
    let search = ExplicitOptions { max_states: Some(max_states), ..options.explicit(options.model) };
    if options.jobs > 1 {
        let alone = ExplicitOptions { jobs: 1, max_states: Some(max_states.min(STATES_ALONE)), ..search.clone() };
        let answer = portfolio::climb(program, &alone, &BUFFER_BOUNDS, budget, progress)?;
        if let Verdict::Violated(witness) = answer.verdict {
            return Ok(Impact::Harmful(witness));
        }
    }
    let mut answer = portfolio::climb(program, &search, &BUFFER_BOUNDS, budget, progress)?;
    if let Verdict::Inconclusive(reached @ Limit::Buffer(_)) = answer.verdict {
        answer = portfolio::unbounded(program, &search, reached, budget, progress)?;
    }
    Ok(match answer.verdict {
        Verdict::Violated(witness) => Impact::Harmful(witness),
        Verdict::Verified => Impact::Benign,
        Verdict::Inconclusive(limit) => Impact::Unknown(limit),
    })
}
