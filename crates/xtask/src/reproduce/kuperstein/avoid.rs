//! Table 2 with the strategy of the paper: avoid formulae over the abstract transition system.

use std::time::{Duration, Instant};

use weakspot_fence::{FenceEngine, FenceOptions, FenceReport, FenceVerdict, Goal, Strategy, infer};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::task::Budget;
use weakspot_verify::abstraction::Domain;

use super::super::Effort;
use super::super::document::{Fact, NOTHING, Table, seconds};
use super::inference::{EXPERIMENTS, Experiment};
use super::thousands;
use crate::repository::{self, ChoreError};

/// The abstractions of the columns.
const ABSTRACTIONS: [(Domain, u32); 5] =
    [(Domain::Fd, 0), (Domain::Fd, 1), (Domain::Pd, 0), (Domain::Pd, 1), (Domain::Pd, 2)];

/// The row of the quick run.
const QUICK: &str = "Sense0";

/// What came of one abstraction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Optimal,
    TooMany,
    Unfixable,
}

impl Mark {
    fn symbol(self) -> &'static str {
        match self {
            Self::Optimal => "●",
            Self::TooMany => "◐",
            Self::Unfixable => "○",
        }
    }
}

/// The table. Cells that take more than a minute are left out.
pub fn table(effort: Effort) -> Result<(Table, Vec<Fact>), ChoreError> {
    let mut table = Table::new(
        "Table 2, fences inferred by avoid formulae, as the paper does it: ours. – not run: minutes, or over 8 million states.",
        &["program", "fd k=0", "fd k=1", "pd k=0", "pd k=1", "pd k=2", "time, s"],
    );
    let mut optimal_somewhere = true;
    for experiment in EXPERIMENTS.iter().filter(|row| effort == Effort::Full || row.name == QUICK) {
        let mut cells = vec![experiment.name.to_owned()];
        let mut time = Duration::ZERO;
        let mut best = false;
        for ((domain, k), is_run) in ABSTRACTIONS.into_iter().zip(experiment.labelled) {
            if !is_run {
                cells.push(NOTHING.to_owned());
                continue;
            }
            let start = Instant::now();
            let (mark, report) = label(experiment, domain, k)?;
            time += start.elapsed();
            best |= mark == Mark::Optimal;
            cells.push(format!("{} {}", mark.symbol(), thousands(report.states)));
        }
        optimal_somewhere &= best || experiment.labelled != [true; 5];
        cells.push(seconds(time));
        table.row(cells);
    }
    let claim = "avoid formulae find the fewest fences under some abstraction, where all five were run";
    Ok((table, vec![Fact { claim, holds: optimal_somewhere }]))
}

fn label(experiment: &Experiment, domain: Domain, k: u32) -> Result<(Mark, FenceReport), ChoreError> {
    let name = format!("papers/{}", experiment.program);
    let options = FenceOptions {
        strategy: Strategy::Avoid,
        engine: FenceEngine::Abstract { domain, k: Some(k) },
        ..FenceOptions::new(MemoryModel::Pso, Goal::Spec)
    };
    let report = infer(&repository::source(&name)?, &options, &Budget::unlimited(), &())
        .map_err(|error| ChoreError::engine(&name, &error))?;
    let cost = report.placement.as_ref().map(|placement| placement.cost);
    let mark = match (&report.verdict, cost) {
        (FenceVerdict::Fenced, Some(cost)) if cost == experiment.fewest => Mark::Optimal,
        (FenceVerdict::Fenced, Some(cost)) if cost > experiment.fewest => Mark::TooMany,
        (FenceVerdict::Impossible(_), _) => Mark::Unfixable,
        (verdict, _) => return Err(ChoreError::Failed(format!("{name}: no fences by avoid formulae: {verdict:?}"))),
    };
    Ok((mark, report))
}
