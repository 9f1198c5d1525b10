//! Two processes written out one by one under TSO: fences for the specification and for store-buffer safety.

use std::time::Instant;

use weakspot_fence::{FenceOptions, Goal, infer};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::task::Budget;

use super::super::document::{Fact, Table, seconds};
use crate::repository::{self, ChoreError};

/// A program, and the fences that other tools report for the specification and for store-buffer safety.
const EXPERIMENTS: [(&str, &str, [u64; 2]); 6] = [
    ("Dekker", "fences/dekker-two", [2, 4]),
    ("Dijkstra", "fences/dijkstra-two", [2, 4]),
    ("Burns", "fences/burns-two", [2, 3]),
    ("Peterson", "fences/peterson-two", [2, 2]),
    ("Fast", "fences/fast-mutex-two", [4, 4]),
    ("sense barrier", "fences/sense-barrier-two", [0, 4]),
];

/// The table beside ours.
pub fn table() -> Result<(Table, Vec<Fact>), ChoreError> {
    let mut table = Table::new(
        "Two processes written out one by one, TSO: the fewest fences that other tools report, and ours.",
        &[
            "program",
            "specification, others",
            "store-buffer safety, others",
            "specification",
            "store-buffer safety",
            "time, s",
        ],
    );
    let mut agree = true;
    for (name, program, others) in EXPERIMENTS {
        let start = Instant::now();
        let mut cells = vec![name.to_owned()];
        cells.extend(others.map(|fences| fences.to_string()));
        for (goal, fences) in [Goal::Spec, Goal::Robust].into_iter().zip(others) {
            let found = fewest(program, goal)?;
            agree &= found == Some(fences);
            cells.push(found.map_or_else(|| "not proved".to_owned(), |found| found.to_string()));
        }
        cells.push(seconds(start.elapsed()));
        table.row(cells);
    }
    Ok((table, vec![Fact { claim: "the fewest fences under TSO are those that other tools report", holds: agree }]))
}

/// The proved minimum.
fn fewest(name: &str, goal: Goal) -> Result<Option<u64>, ChoreError> {
    let source = repository::source(name)?;
    let options = FenceOptions::new(MemoryModel::Tso, goal);
    let report =
        infer(&source, &options, &Budget::unlimited(), &()).map_err(|error| ChoreError::engine(name, &error))?;
    Ok(report.placement.filter(|_| report.minimal).map(|placement| placement.cost))
}
