//! Table 2: fences for programs that lack some.

use std::time::{Duration, Instant};

use weakspot_fence::{FenceOptions, FenceReport, Goal, infer};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::task::Budget;

use super::super::document::{Fact, Table, seconds};
use super::thousands;
use crate::repository::{self, ChoreError};

/// A program of the table.
pub struct Experiment {
    /// In the paper.
    pub name: &'static str,
    /// In `corpus/papers`.
    pub program: &'static str,
    /// As printed, for fd with k = 0 and 1 and for pd with k = 0, 1 and 2.
    printed: [&'static str; 5],
    /// Fences that the paper puts into the program, in one process.
    fences: u64,
    /// The fewest that there can be, in one process.
    pub fewest: u64,
    /// Which abstractions are labelled with avoid formulae, in the order of `printed`.
    pub labelled: [bool; 5],
}

/// The rows.
pub const EXPERIMENTS: [Experiment; 9] = [
    row("Sense0", "kuperstein-sense", ["○ 57.6", "● 58.6", "○ 31.9", "● 44.3", "● 6.1"], [1, 1], ALL),
    row("Pet0", "kuperstein-pet", ["● 69.2", "● 524.5", "◐ 25.3", "◐ 244.7", "● 1124.2"], [2, 2], ALL),
    row("Dek0", "kuperstein-dek", ["● 424.2", "● 3238.1", "? 16.5", "? 358.1", "● 2350.0"], [2, 2], ALL),
    row("Lam0", "kuperstein-lam", ["M", "M", "◐ 421.0", "? 4045.9", "M"], [2, 2], ALL),
    row("Fast0", "kuperstein-fast", ["M", "M", "○ 220.6", "M", "M"], [3, 3], COARSEST),
    row("Fast1a", "kuperstein-fast1a", ["? 139.0", "● 105.2", "○ 33.0", "? 88.1", "● 41.9"], [2, 2], ALL),
    row("Fast1b", "kuperstein-fast1b", ["? 832.9", "● 972.3", "○ 78.6", "◐ 501.6", "● 878.4"], [2, 2], ALL),
    row("Fast1c", "kuperstein-fast1c", ["M", "M", "○ 110.4", "◐ 1173.4", "◐ 1858.1"], [2, 2], ALL),
    row("CLH0", "kuperstein-clh", ["M", "M", "M", "M", "M"], [2, 1], COARSEST),
];

const ALL: [bool; 5] = [true; 5];
/// The coarsest abstraction.
const COARSEST: [bool; 5] = [false, false, true, false, false];

/// `fences`: the paper's number, and the fewest.
const fn row(
    name: &'static str,
    program: &'static str,
    printed: [&'static str; 5],
    fences: [u64; 2],
    labelled: [bool; 5],
) -> Experiment {
    let [fences, fewest] = fences;
    Experiment { name, program, printed, fences, fewest, labelled }
}

/// The table beside ours.
pub fn table() -> Result<(Table, Vec<Fact>), ChoreError> {
    let mut table = Table::new(
        "Table 2: fences inferred, by counterexamples and minimum hitting sets.",
        &[
            "program",
            "fd k=0, paper",
            "fd k=1, paper",
            "pd k=0, paper",
            "pd k=1, paper",
            "pd k=2, paper",
            "fences, paper",
            "fences",
            "fewest",
            "states",
            "time, s",
        ],
    );
    let (mut minimal, mut as_few) = (true, true);
    for experiment in &EXPERIMENTS {
        let (report, elapsed) = guided(experiment.program)?;
        let cost = report.placement.as_ref().map(|placement| placement.cost);
        minimal &= report.minimal && cost == Some(experiment.fewest);
        as_few &= cost.is_some_and(|cost| cost <= experiment.fences);
        let mut cells = vec![experiment.name.to_owned()];
        cells.extend(experiment.printed.map(str::to_owned));
        cells.push(experiment.fences.to_string());
        cells.push(cost.map_or_else(|| "none found".to_owned(), |cost| cost.to_string()));
        cells.push(if report.minimal { "proved" } else { "not proved" }.to_owned());
        cells.push(thousands(report.states));
        cells.push(seconds(elapsed));
        table.row(cells);
    }
    let facts = vec![
        Fact {
            claim: "fences are found for every program, Lam0, Fast0 and CLH0 too, and proved to be the fewest",
            holds: minimal,
        },
        Fact { claim: "never more fences than the paper's", holds: as_few },
    ];
    Ok((table, facts))
}

fn guided(name: &str) -> Result<(FenceReport, Duration), ChoreError> {
    let name = format!("papers/{name}");
    let source = repository::source(&name)?;
    let options = FenceOptions::new(MemoryModel::Pso, Goal::Spec);
    let start = Instant::now();
    let report =
        infer(&source, &options, &Budget::unlimited(), &()).map_err(|error| ChoreError::engine(&name, &error))?;
    Ok((report, start.elapsed()))
}
