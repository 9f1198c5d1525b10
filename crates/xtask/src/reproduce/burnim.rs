//! Tables 1 and 2 of Burnim, Sen and Stergiou: distinct violations under TSO and PSO with few preemptions.

use std::time::{Duration, Instant};

use weakspot_explore::bounded::{Mode, explore_interleavings};
use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::task::Budget;
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};

use super::document::{Fact, Section, Table, grouped, seconds};
use crate::repository::{self, ChoreError};

/// A line of a table, as printed.
#[derive(Clone, Copy)]
struct Printed {
    interleavings: u64,
    seconds: &'static str,
    tso: u64,
    pso: u64,
}

struct Experiment {
    name: &'static str,
    /// In the corpus.
    program: &'static str,
    /// With up to 1 and up to 2 preemptions.
    printed: [Printed; 2],
    /// Is it one of the data structures, which are safe under TSO?
    is_structure: bool,
}

const EXPERIMENTS: [Experiment; 7] = [
    mutex("dekker", "papers/sober-dekker", [line(79, "6.4", 3, 5), line(1_714, "180.0", 9, 11)]),
    mutex("bakery", "papers/sober-bakery", [line(197, "42.4", 3, 4), line(13_632, "3992.4", 3, 4)]),
    structure("msn", "papers/burnim-msn", [line(92, "7.5", 0, 3), line(2_300, "196.1", 0, 3)]),
    structure("ms2", "papers/burnim-ms2", [line(123, "11.0", 0, 2), line(3_322, "300.0", 0, 2)]),
    structure("harris", "papers/burnim-harris", [line(161, "18.8", 0, 2), line(5_646, "661.7", 0, 2)]),
    structure("lazylist", "papers/burnim-lazylist", [line(139, "14.0", 0, 4), line(4_045, "428.4", 0, 4)]),
    structure("snark", "papers/burnim-snark", [line(172, "15.4", 0, 4), line(6_510, "609.9", 0, 10)]),
];

const fn line(interleavings: u64, seconds: &'static str, tso: u64, pso: u64) -> Printed {
    Printed { interleavings, seconds, tso, pso }
}

const fn mutex(name: &'static str, program: &'static str, printed: [Printed; 2]) -> Experiment {
    Experiment { name, program, printed, is_structure: false }
}

const fn structure(name: &'static str, program: &'static str, printed: [Printed; 2]) -> Experiment {
    Experiment { name, program, printed, is_structure: true }
}

/// What one program came to with few preemptions, and what the attack engine says of all its executions.
struct Measured {
    interleavings: u64,
    tso: u64,
    pso: u64,
    elapsed: Duration,
    safe_under_tso: bool,
    safe_under_pso: bool,
}

/// Both tables beside ours.
pub fn tables() -> Result<Section, ChoreError> {
    let (first, first_facts) = table("Table 1: up to 1 preemption.", 1)?;
    let (second, second_facts) = table("Table 2: up to 2 preemptions.", 2)?;
    let facts = first_facts.into_iter().zip(second_facts);
    Ok(Section {
        title: "Burnim, Sen and Stergiou (TACAS 2011), Tables 1 and 2",
        introduction: INTRODUCTION,
        tables: vec![first, second],
        facts: facts.map(|(first, second)| Fact { holds: first.holds && second.holds, ..first }).collect(),
        reading: READING,
    })
}

const INTRODUCTION: &str = "\
The operational monitors for TSO and PSO on all interleavings with few preemptions, and the number of distinct violations:
pairs of instructions, one that is still pending and one that comes too early. The last two columns are no part of the
paper: what the attack engine says of all executions, however many preemptions.";

const READING: &str = "\
What must agree: the facts above. What differs: the number of interleavings and of distinct violations, because the paper's
tests are C programs of 20 to 160 lines with test drivers that it does not print; ours have two operations in each of two
threads. The instructions of the two threads of a template count separately. As in the paper, a lock is an atomic on
its own location, which drains nothing else under PSO; with locks that are full fences ms2 would have no violation.";

fn table(caption: &'static str, bound: u32) -> Result<(Table, [Fact; 3]), ChoreError> {
    let mut table = Table::new(
        caption,
        &[
            "program",
            "interleavings, paper",
            "s, paper",
            "tso, paper",
            "pso, paper",
            "interleavings",
            "tso",
            "pso",
            "time, s",
            "all executions, tso",
            "all executions, pso",
        ],
    );
    let (mut mutexes, mut clean, mut found) = (true, true, true);
    for experiment in &EXPERIMENTS {
        let measured = experiment.measure(bound)?;
        table.row(experiment.row(bound, &measured));
        if experiment.is_structure {
            clean &= measured.tso == 0 && measured.safe_under_tso;
            found &= measured.pso > 0 && !measured.safe_under_pso;
        } else {
            mutexes &= measured.tso > 0 && measured.pso > 0;
        }
    }
    let facts = [
        Fact { claim: "dekker and bakery have violations under TSO and PSO", holds: mutexes },
        Fact { claim: "no violation under TSO in msn, ms2, harris, lazylist and snark", holds: clean },
        Fact { claim: "at least one violation under PSO in each of them", holds: found },
    ];
    Ok((table, facts))
}

impl Experiment {
    fn measure(&self, bound: u32) -> Result<Measured, ChoreError> {
        let program = repository::program(self.program)?;
        let start = Instant::now();
        let (interleavings, tso) = violations(&program, bound, MemoryModel::Tso);
        let (_, pso) = violations(&program, bound, MemoryModel::Pso);
        let elapsed = start.elapsed();
        Ok(Measured {
            interleavings,
            tso,
            pso,
            elapsed,
            safe_under_tso: self.is_safe(&program, MemoryModel::Tso)?,
            safe_under_pso: self.is_safe(&program, MemoryModel::Pso)?,
        })
    }

    fn is_safe(&self, program: &Program, model: MemoryModel) -> Result<bool, ChoreError> {
        let options = RobustOptions::new(model);
        let report = robust::check(program, options, &Budget::unlimited(), &())
            .map_err(|error| ChoreError::engine(self.program, &error))?;
        Ok(report.verdict == RobustVerdict::Robust)
    }

    fn row(&self, bound: u32, measured: &Measured) -> Vec<String> {
        let printed = self.printed[bound as usize - 1];
        let verdict = |safe| if safe { "safe" } else { "unsafe" }.to_owned();
        vec![
            self.name.to_owned(),
            grouped(printed.interleavings),
            printed.seconds.to_owned(),
            printed.tso.to_string(),
            printed.pso.to_string(),
            grouped(measured.interleavings),
            measured.tso.to_string(),
            measured.pso.to_string(),
            seconds(measured.elapsed),
            verdict(measured.safe_under_tso),
            verdict(measured.safe_under_pso),
        ]
    }
}

/// Interleavings with at most so many preemptions, and distinct violations in them.
fn violations(program: &Program, bound: u32, model: MemoryModel) -> (u64, u64) {
    let options =
        ExploreOptions { monitor: Some(MonitorKind::Operational(model)), all: true, ..ExploreOptions::default() };
    let (outcome, reports) =
        explore_interleavings(program, Mode::Preemptions(bound), &options, &Budget::unlimited(), &());
    (reports.iter().map(|report| report.interleavings).sum(), outcome.violations.len() as u64)
}
