//! What comes of a program that is not store-buffer safe.
//!
//! A violation found with a small buffer bound is real, and small bounds are searched fast, so the bound climbs. A proof
//! needs a bound that no buffer ever wanted to pass.

use weakspot_model::ir::Program;
use weakspot_model::replay::Witness;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};
use weakspot_verify::explicit::{self, ExplicitOptions};

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
const MAX_STATES: u64 = 20_000_000;

/// Searches for harm, then for a proof that there is none.
pub fn judge(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Impact, InternalError> {
    let mut reached = Limit::Buffer(0);
    for buffer in BUFFER_BOUNDS {
        let search = ExplicitOptions { buffer, max_states: Some(MAX_STATES), ..options.explicit(options.model) };
        match explicit::try_verify(program, &search, budget, progress)?.verdict {
            Verdict::Violated(witness) => return Ok(Impact::Harmful(witness)),
            Verdict::Verified => return Ok(Impact::Benign),
            Verdict::Inconclusive(limit) => reached = limit,
        }
        if !matches!(reached, Limit::Buffer(_)) {
            break;
        }
    }
    Ok(Impact::Unknown(reached))
}
