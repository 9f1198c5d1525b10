//! What tables want to know of one inference.

use std::sync::Arc;
use std::time::{Duration, Instant};

use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;

use crate::{FenceError, FenceOptions, FenceVerdict, PlacedFence, infer};

/// One line of a table.
#[derive(Debug, Clone)]
pub struct Figures {
    /// What came of it.
    pub verdict: FenceVerdict,
    /// The fences that are inserted, in the order of the text.
    pub fences: Vec<PlacedFence>,
    /// What they cost; none if no placement was found.
    pub cost: Option<u64>,
    /// States: of the labelled transition system (strategy `avoid`), or of all searches (`guided`).
    pub states: u64,
    /// Proved: no placement costs less.
    pub minimal: bool,
    /// How long it took.
    pub time: Duration,
}

/// Infers fences and takes the time.
pub fn figures(source: &Arc<SourceFile>, options: &FenceOptions, budget: &Budget) -> Result<Figures, FenceError> {
    let start = Instant::now();
    let report = infer(source, options, budget, &())?;
    let time = start.elapsed();
    let is_answer = !matches!(report.verdict, FenceVerdict::Inconclusive(_));
    let placement = report.placement.filter(|_| is_answer);
    Ok(Figures {
        verdict: report.verdict,
        cost: placement.as_ref().map(|placement| placement.cost),
        fences: placement.map_or_else(Vec::new, |placement| placement.fences),
        states: if report.labelled == 0 { report.states } else { report.labelled },
        minimal: report.minimal,
        time,
    })
}
