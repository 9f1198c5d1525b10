//! Table 1: which abstraction verifies which correctly fenced program.

use std::time::Instant;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::task::Budget;
use weakspot_verify::abstraction::{self, AbstractOptions, AbstractVerdict, Domain};

use super::super::document::{Fact, Table, seconds};
use super::thousands;
use crate::repository::{self, ChoreError};

/// The abstractions of the columns.
const ABSTRACTIONS: [(Domain, u32); 3] = [(Domain::Set, 0), (Domain::Fd, 0), (Domain::Fd, 1)];

/// What came of one abstraction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Verified,
    Spurious,
}

impl Mark {
    fn symbol(self) -> &'static str {
        match self {
            Self::Verified => "●",
            Self::Spurious => "○",
        }
    }
}

struct Experiment {
    name: &'static str,
    program: &'static str,
    /// As printed, for each abstraction.
    printed: [(Mark, &'static str); 3],
}

use Mark::{Spurious as S, Verified as V};

const EXPERIMENTS: [Experiment; 6] = [
    row("Sense1", "papers/kuperstein-sense-fenced", [(V, "0.6"), (V, "1.7"), (V, "0.8")]),
    row("Pet2", "papers/kuperstein-pet-fenced", [(S, "7.7"), (V, "2.4"), (V, "1.8")]),
    row("Dek2", "papers/kuperstein-dek-fenced", [(S, "9.7"), (V, "4.5"), (V, "3.1")]),
    row("Lam2", "papers/kuperstein-lam-fenced", [(S, "41.2"), (V, "22.2"), (V, "9")]),
    row("Fast3", "papers/kuperstein-fast-fenced", [(S, "22.2"), (S, "16.4"), (V, "11.1")]),
    row("CLH2", "papers/kuperstein-clh-fenced", [(S, "M"), (S, "M"), (V, "68.8")]),
];

const fn row(name: &'static str, program: &'static str, printed: [(Mark, &'static str); 3]) -> Experiment {
    Experiment { name, program, printed }
}

/// The table beside ours.
pub fn table() -> Result<(Table, Vec<Fact>), ChoreError> {
    let mut table = Table::new(
        "Table 1: verification of fenced programs.",
        &["program", "set, paper", "fd k=0, paper", "fd k=1, paper", "set", "fd k=0", "fd k=1", "time, s"],
    );
    let mut agree = [true; 3];
    for experiment in &EXPERIMENTS {
        let start = Instant::now();
        let mut cells = vec![experiment.name.to_owned()];
        cells.extend(experiment.printed.map(|(mark, states)| format!("{} {states}", mark.symbol())));
        for ((domain, k), (agree, printed)) in ABSTRACTIONS.into_iter().zip(agree.iter_mut().zip(experiment.printed)) {
            let (mark, states) = ask(experiment.program, domain, k)?;
            *agree &= mark == printed.0;
            cells.push(format!("{} {}", mark.symbol(), thousands(states)));
        }
        cells.push(seconds(start.elapsed()));
        table.row(cells);
    }
    let [set, coarse, fine] = agree;
    let facts = vec![
        Fact { claim: "`set` verifies Sense only", holds: set },
        Fact {
            claim: "`fd` with k = 0 verifies Sense, Pet, Dek and Lam and has a spurious counterexample on Fast and CLH",
            holds: coarse,
        },
        Fact { claim: "`fd` with k = 1 verifies all six", holds: fine },
    ];
    Ok((table, facts))
}

/// These programs are correct, so an alarm is spurious.
fn ask(name: &str, domain: Domain, k: u32) -> Result<(Mark, u64), ChoreError> {
    let program = repository::program(name)?;
    let options = AbstractOptions { domain, k, ..AbstractOptions::new(MemoryModel::Pso) };
    let report = abstraction::verify(&program, &options, &Budget::unlimited(), &())
        .map_err(|error| ChoreError::engine(name, &error))?;
    match report.verdict {
        AbstractVerdict::Verified => Ok((Mark::Verified, report.states)),
        AbstractVerdict::Alarm(_) => Ok((Mark::Spurious, report.states)),
        AbstractVerdict::Violated(witness) => Err(ChoreError::Failed(format!("{name}: {}", witness.problem.message))),
        AbstractVerdict::Inconclusive(limit) => Err(ChoreError::Failed(format!("{name}: no answer: {limit:?}"))),
    }
}
