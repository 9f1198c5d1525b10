//! Fig. 4(a) of the SOBER paper: interleavings, those that trip the monitor, and what the monitor costs.

use std::time::{Duration, Instant};

use weakspot_explore::bounded::{BoundReport, Mode, explore_interleavings};
use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind};
use weakspot_explore::outcome::Outcome;
use weakspot_model::ir::Program;
use weakspot_model::task::Budget;

use super::Effort;
use super::document::{Fact, NOTHING, Section, Table, grouped, seconds};
use crate::repository::{self, ChoreError};

/// A bound that no program of this section reaches.
const NO_BOUND: u32 = 64;

/// Up to which bound the quick run goes.
const QUICK: u32 = 3;

/// A row of the figure, as printed: with at most so many preemptions, interleavings, borderline interleavings, seconds
/// until the first violation; and for the corrected program seconds with the monitor and without.
struct Printed {
    bound: u32,
    interleavings: u64,
    borderline: u64,
    falsified: &'static str,
    watched: &'static str,
    plain: &'static str,
}

/// A program of the figure.
struct Experiment {
    name: &'static str,
    /// In the corpus.
    program: &'static str,
    /// With fences.
    corrected: &'static str,
    printed: &'static [Printed],
    /// Up to which bound we go.
    bound: u32,
}

const EXPERIMENTS: [Experiment; 5] = [
    Experiment {
        name: "Fig. 1(b)",
        program: "papers/sober-fig1b",
        corrected: "litmus-weak/sb-fences",
        printed: &[row(NO_BOUND, 10, 4, "< 0.1", "< 0.2", "< 0.2")],
        bound: NO_BOUND,
    },
    Experiment {
        name: "dekker",
        program: "papers/sober-dekker",
        corrected: "papers/sober-dekker-fenced",
        printed: &[
            row(1, 5, 4, "< 0.1", "< 0.2", "< 0.2"),
            row(2, 36, 23, "< 0.1", "0.39", "0.37"),
            row(3, 183, 50, "< 0.1", "1.9", "1.8"),
            row(4, 1_219, 124, "< 0.1", "13.2", "13.0"),
            row(5, 8_472, 349, "< 0.1", "106.0", "100.6"),
        ],
        bound: 5,
    },
    Experiment {
        name: "bakery",
        program: "papers/sober-bakery",
        corrected: "papers/sober-bakery-fenced",
        printed: &[
            row(0, 1, 1, "< 0.1", "< 0.2", "< 0.2"),
            row(1, 25, 20, "< 0.1", "0.47", "0.43"),
            row(2, 742, 533, "< 0.1", "10.3", "9.8"),
            row(3, 12_436, 8_599, "< 0.1", "189.0", "181.0"),
        ],
        bound: 5,
    },
    Experiment {
        name: "takequeue",
        program: "papers/sober-takequeue",
        corrected: "papers/sober-takequeue-fenced",
        printed: &[
            row(0, 3, 0, "not found", "< 0.3", "< 0.3"),
            row(1, 47, 14, "0.34", "0.72", "0.69"),
            row(2, 402, 189, "0.43", "5.2", "4.9"),
            row(3, 2_318, 1_197, "0.74", "28.9", "27.8"),
            row(4, 9_147, 5_321, "0.84", "125.5", "118.9"),
            row(5, 29_821, 17_922, "0.86", "481.5", "461.6"),
        ],
        bound: 5,
    },
    Experiment {
        name: "Fig. 4(b)",
        program: "papers/sober-fig4b",
        corrected: "papers/sober-fig4b-fenced",
        printed: &[],
        bound: 5,
    },
];

const fn row(
    bound: u32,
    interleavings: u64,
    borderline: u64,
    falsified: &'static str,
    watched: &'static str,
    plain: &'static str,
) -> Printed {
    Printed { bound, interleavings, borderline, falsified, watched, plain }
}

/// What one program and its corrected version came to.
struct Measured {
    original: Vec<BoundReport>,
    falsified: Option<Duration>,
    watched: (Outcome, Vec<BoundReport>),
    plain: Vec<BoundReport>,
}

/// The figure beside ours.
pub fn figure_4a(effort: Effort) -> Result<Section, ChoreError> {
    let mut original = Table::new(
        "The programs as they are, watched by the SOBER monitor; \"found\" is the time until the first violation.",
        &[
            "program",
            "preemptions",
            "interleavings, paper",
            "borderline, paper",
            "found, s, paper",
            "interleavings",
            "borderline",
            "time found, s",
        ],
    );
    let mut corrected = Table::new(
        "The corrected programs, with the monitor and without.",
        &[
            "program",
            "preemptions",
            "with, s, paper",
            "without, s, paper",
            "interleavings",
            "borderline",
            "time with, s",
            "time without, s",
        ],
    );
    let (mut all_falsified, mut all_verified) = (true, true);
    for experiment in &EXPERIMENTS {
        let measured = experiment.measure(effort)?;
        experiment.fill(&measured, &mut original, &mut corrected);
        all_falsified &= measured.falsified.is_some();
        all_verified &= measured.watched.0.borderline == 0 && measured.watched.0.error.is_none();
    }
    Ok(Section {
        title: "SOBER: Burckhardt and Musuvathi (CAV 2008), Fig. 4(a)",
        introduction: INTRODUCTION,
        tables: vec![original, corrected],
        facts: vec![
            Fact { claim: "every program without its fences is falsified", holds: all_falsified },
            Fact {
                claim: "the corrected programs are correct and store-buffer safe in every execution with up to 5 preemptions",
                holds: all_verified,
            },
        ],
        reading: READING,
    })
}

const INTRODUCTION: &str = "\
Iterative context bounding with the SOBER monitor under TSO: all interleavings with at most so many preemptions. \"No
bound\" is all of them.";

const READING: &str = "\
What must agree: the facts above, and how fast the number of interleavings grows from bound to bound. What differs: the
paper counts interleavings of C# programs under CHESS, whose main thread starts the others in a fixed order, so that
with no preemption there are other numbers of interleavings (in bakery one where we have two, in takequeue three);
it does not print its programs, and the number of accesses in a loop that waits depends on them. Our programs have no accesses beyond those of the algorithm, so a larger part of the
interleavings is borderline. The corrected programs have fences, which are places to switch, so they have more
interleavings than the originals as soon as there are preemptions.";

impl Experiment {
    fn measure(&self, effort: Effort) -> Result<Measured, ChoreError> {
        let bound = if effort == Effort::Quick && self.bound != NO_BOUND { QUICK } else { self.bound };
        let program = repository::program(self.program)?;
        let corrected = repository::program(self.corrected)?;
        Ok(Measured {
            original: explore(&program, bound, Some(MonitorKind::Sober)).1,
            falsified: first_violation(&program, bound),
            watched: explore(&corrected, bound, Some(MonitorKind::Sober)),
            plain: explore(&corrected, bound, None).1,
        })
    }

    fn fill(&self, measured: &Measured, original: &mut Table, corrected: &mut Table) {
        let found = measured.falsified.map_or_else(|| "not found".to_owned(), seconds);
        for bound in self.rows(measured) {
            let printed = self.printed.iter().find(|printed| printed.bound == bound);
            let text = |cell: fn(&Printed) -> String| printed.map_or_else(|| NOTHING.to_owned(), cell);
            let head =
                [self.name.to_owned(), if bound == NO_BOUND { "no bound".to_owned() } else { bound.to_string() }];
            let (all, watched, plain) =
                (up_to(&measured.original, bound), up_to(&measured.watched.1, bound), up_to(&measured.plain, bound));
            let cells = [
                text(|printed| grouped(printed.interleavings)),
                text(|printed| grouped(printed.borderline)),
                text(|printed| printed.falsified.to_owned()),
                grouped(all.interleavings),
                grouped(all.borderline),
                found.clone(),
            ];
            original.row(head.iter().cloned().chain(cells).collect());
            let cells = [
                text(|printed| printed.watched.to_owned()),
                text(|printed| printed.plain.to_owned()),
                grouped(watched.interleavings),
                grouped(watched.borderline),
                seconds(watched.elapsed),
                seconds(plain.elapsed),
            ];
            corrected.row(head.into_iter().chain(cells).collect());
        }
    }

    /// The bounds of the rows: each that was explored, or none.
    fn rows(&self, measured: &Measured) -> Vec<u32> {
        if self.bound == NO_BOUND {
            return vec![NO_BOUND];
        }
        measured.watched.1.iter().map(|report| report.preemptions).collect()
    }
}

/// What all bounds up to this one came to.
fn up_to(reports: &[BoundReport], bound: u32) -> BoundReport {
    let zero = BoundReport { preemptions: bound, interleavings: 0, borderline: 0, elapsed: Duration::ZERO };
    reports.iter().filter(|report| report.preemptions <= bound).fold(zero, |sum, report| BoundReport {
        interleavings: sum.interleavings + report.interleavings,
        borderline: sum.borderline + report.borderline,
        elapsed: sum.elapsed + report.elapsed,
        ..sum
    })
}

fn explore(program: &Program, bound: u32, monitor: Option<MonitorKind>) -> (Outcome, Vec<BoundReport>) {
    let options = ExploreOptions { monitor, all: true, ..ExploreOptions::default() };
    explore_interleavings(program, Mode::Preemptions(bound), &options, &Budget::unlimited(), &())
}

/// How long it takes to find a violation.
fn first_violation(program: &Program, bound: u32) -> Option<Duration> {
    let start = Instant::now();
    let options = ExploreOptions { monitor: Some(MonitorKind::Sober), ..ExploreOptions::default() };
    let mode = Mode::Preemptions(bound);
    let (outcome, _) = explore_interleavings(program, mode, &options, &Budget::unlimited(), &());
    (outcome.borderline > 0).then(|| start.elapsed())
}
