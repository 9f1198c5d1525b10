//! What comes of a program that is not store-buffer safe.
//!
//! A violation found with a small buffer bound is real, and small bounds are searched fast, so the bound climbs. A proof
//! needs a bound that no buffer ever wanted to pass; where there is none, the symbolic engine tries, whose buffers have
//! no bound.

use weakspot_model::ir::Program;
use weakspot_model::replay::Witness;
use weakspot_model::task::{Budget, Limit, Progress, Verdict};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::symbolic::{self, SymbolicOptions, SymbolicReport};

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

/// The same for the symbolic engine, whose states are dearer.
const MAX_SYMBOLIC_STATES: u64 = 20_000;

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
            return Ok(Impact::Unknown(reached));
        }
    }
    symbolically(program, options, budget, progress, reached)
}

fn symbolically(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    reached: Limit,
) -> Result<Impact, InternalError> {
    let search = SymbolicOptions {
        allow_deadlock: options.allow_deadlock,
        spurious_wakeups: options.spurious_wakeups,
        max_states: Some(MAX_SYMBOLIC_STATES),
        ..SymbolicOptions::new(options.model)
    };
    match symbolic::verify(program, &search, budget, progress) {
        Ok(SymbolicReport { verdict: Verdict::Violated(witness), .. }) => Ok(Impact::Harmful(witness)),
        Ok(SymbolicReport { verdict: Verdict::Verified, .. }) => Ok(Impact::Benign),
        Ok(_) => Ok(Impact::Unknown(reached)),
        Err(error) if error.is_refusal() => Ok(Impact::Unknown(reached)),
        Err(error) => Err(error.into()),
    }
}
