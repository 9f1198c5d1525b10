//! Fig. 4(a) of the SOBER paper: interleavings, those that trip the monitor, and the cost of the monitor.

use std::time::Duration;

use weakspot_explore::bounded::{BoundReport, Mode, explore_interleavings};
use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind};
use weakspot_model::ir::Program;
use weakspot_model::task::Budget;

use super::document::{Section, Table, grouped};
use crate::repository::{self, ChoreError};

/// A program of the figure.
struct Experiment {
    name: &'static str,
    /// In the corpus.
    program: &'static str,
    /// The paper's rows: interleavings and borderline interleavings with at most 0, 1, … preemptions.
    paper: &'static [Option<(u64, u64)>],
}

const EXPERIMENTS: [Experiment; 1] =
    [Experiment { name: "Fig. 1(b)", program: "papers/sober-fig1b", paper: &[None, None, Some((10, 4))] }];

/// The figure beside ours.
pub fn figure_4a() -> Result<Section, ChoreError> {
    let mut table = Table::new(&[
        "program",
        "preemptions",
        "interleavings, paper",
        "borderline, paper",
        "interleavings",
        "borderline",
        "time with monitor, s",
        "time without monitor, s",
    ]);
    for experiment in &EXPERIMENTS {
        let program = repository::program(experiment.program)?;
        let bounds = experiment.paper.len() as u32 - 1;
        let (watched, plain) = (explore(&program, bounds, Some(MonitorKind::Sober)), explore(&program, bounds, None));
        for (watched, plain) in watched.iter().zip(&plain) {
            let paper = experiment.paper.get(watched.preemptions as usize).copied().flatten();
            let figure = |figure: Option<u64>| figure.map_or_else(|| "–".to_owned(), grouped);
            table.row(vec![
                experiment.name.to_owned(),
                watched.preemptions.to_string(),
                figure(paper.map(|row| row.0)),
                figure(paper.map(|row| row.1)),
                grouped(watched.interleavings),
                grouped(watched.borderline),
                seconds(watched.elapsed),
                seconds(plain.elapsed),
            ]);
        }
    }
    Ok(Section {
        title: "SOBER, Fig. 4(a)".to_owned(),
        introduction: "Iterative context bounding with the SOBER monitor under TSO.".to_owned(),
        tables: vec![table],
        reading: "What must agree: unfenced programs trip the monitor.".to_owned(),
    })
}

fn explore(program: &Program, bound: u32, monitor: Option<MonitorKind>) -> Vec<BoundReport> {
    let options = ExploreOptions { monitor, all: true, ..ExploreOptions::default() };
    explore_interleavings(program, Mode::Preemptions(bound), &options, &Budget::unlimited(), &()).1
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}
