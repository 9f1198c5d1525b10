//! Executions a second, on one core, through the interpreter, without and with a monitor.
#![allow(clippy::print_stdout, missing_docs)]

mod programs;

use std::time::Instant;

use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_explore::outcome::Outcome;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::task::Budget;

/// The best of three runs.
fn run(program: &Program, monitor: Option<MonitorKind>) -> (Outcome, f64) {
    let options = ExploreOptions { monitor, all: true, ..ExploreOptions::default() };
    let mut best = f64::INFINITY;
    let mut outcome = Outcome::default();
    for _ in 0..3 {
        let start = Instant::now();
        outcome = explore(program, &options, &Budget::unlimited(), &());
        best = best.min(start.elapsed().as_secs_f64());
    }
    (outcome, best)
}

fn measure(name: &str, program: &Program, expected: u64, goal: f64) {
    let (plain, seconds) = run(program, None);
    assert_eq!(plain.executions, expected, "{name} has another number of executions");
    let rate = plain.executions as f64 / seconds;
    print!(
        "{name:14} {:>8} executions {:>7} blocked {:>9.0}/s (goal {goal:>7.0}) {:>5.1} M events/s",
        plain.executions,
        plain.blocked,
        rate,
        plain.events as f64 / seconds / 1e6,
    );
    for (label, monitor) in [
        ("sober", MonitorKind::Sober),
        ("tso", MonitorKind::Operational(MemoryModel::Tso)),
        ("pso", MonitorKind::Operational(MemoryModel::Pso)),
    ] {
        let (watched, with) = run(program, Some(monitor));
        print!("  {label} +{:.0} % ({} borderline)", (with / seconds - 1.0) * 100.0, watched.borderline);
    }
    println!();
}

fn main() {
    measure("fib 5", &programs::fib(5), 218_243, 450_000.0);
    measure("lastzero 12", &programs::lastzero(12), 15_360, 90_000.0);
    measure("readers 16", &programs::readers(16), 65_536, 330_000.0);
}
