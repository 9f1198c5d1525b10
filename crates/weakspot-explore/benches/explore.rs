//! Executions a second through the interpreter: on one core, with each monitor, and with two workers.
#![allow(clippy::print_stdout, missing_docs)]

use std::time::Instant;

use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_explore::outcome::Outcome;
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;

struct Subject {
    name: &'static str,
    text: &'static str,
    executions: u64,
    /// Executions a second to reach on one core.
    goal: u32,
}

/// A program that other tools are measured with, too.
macro_rules! corpus {
    ($name:literal) => {
        include_str!(concat!("../../../corpus/bench/", $name, ".weak"))
    };
}

const SUBJECTS: [Subject; 8] = [
    Subject { name: "fib", text: corpus!("fib"), executions: 218_243, goal: 450_000 },
    Subject { name: "lastzero", text: corpus!("lastzero"), executions: 15_360, goal: 90_000 },
    Subject { name: "readers", text: corpus!("readers"), executions: 65_536, goal: 330_000 },
    Subject { name: "queue", text: corpus!("queue"), executions: 10_174, goal: 165_000 },
    Subject { name: "stack", text: corpus!("stack"), executions: 58_722, goal: 180_000 },
    Subject { name: "long", text: include_str!("programs/long.weak"), executions: 4, goal: 0 },
    Subject { name: "apart", text: include_str!("programs/apart.weak"), executions: 19, goal: 0 },
    Subject { name: "rounds", text: include_str!("programs/rounds.weak"), executions: 225, goal: 0 },
];

/// What is compared: no monitor first.
const SETTINGS: [(&str, Option<MonitorKind>, usize); 5] = [
    ("plain", None, 1),
    ("sober", Some(MonitorKind::Sober), 1),
    ("tso", Some(MonitorKind::Operational(MemoryModel::Tso)), 1),
    ("pso", Some(MonitorKind::Operational(MemoryModel::Pso)), 1),
    ("2 workers", None, 2),
];

const ROUNDS: usize = 7;

fn run(program: &Program, monitor: Option<MonitorKind>, jobs: usize) -> (Outcome, f64) {
    let options = ExploreOptions { monitor, jobs, all: true, ..ExploreOptions::default() };
    let start = Instant::now();
    let outcome = explore(program, &options, &Budget::unlimited(), &());
    (outcome, start.elapsed().as_secs_f64())
}

/// The best time of each setting.
type Times = [f64; SETTINGS.len()];

/// Measures a program; the settings take turns, so that a busy machine is busy for all of them.
fn measure(subject: &Subject, rounds: usize) -> Result<Times, String> {
    let source = SourceFile::new(subject.name, subject.text);
    let program = compile(&source).map_err(|problems| format!("{problems:?}"))?.program;
    let mut best: Times = [f64::INFINITY; SETTINGS.len()];
    let mut outcomes = vec![Outcome::default(); SETTINGS.len()];
    for _ in 0..rounds {
        for (index, &(_, monitor, jobs)) in SETTINGS.iter().enumerate() {
            // Workers give memory back to the system: who comes after them must not pay for getting it again.
            for _ in 0..2 {
                let (outcome, seconds) = run(&program, monitor, jobs);
                assert_eq!(outcome.executions, subject.executions, "{} has another number of executions", subject.name);
                best[index] = best[index].min(seconds);
                outcomes[index] = outcome;
            }
        }
    }
    print!(
        "{:9} {:>8} executions {:>10.0}/s (goal {:>7}) {:>5.1} M events/s added, {:>5.1} M in executions",
        subject.name,
        subject.executions,
        subject.executions as f64 / best[0],
        subject.goal,
        outcomes[0].events as f64 / best[0] / 1e6,
        outcomes[0].lengths as f64 / best[0] / 1e6,
    );
    print_costs(&best);
    println!("  borderline {}", outcomes[1].borderline);
    Ok(best)
}

/// What each setting costs on top of the first.
fn print_costs(best: &Times) {
    for index in 1..SETTINGS.len() {
        print!("  {} {:+.1} %", SETTINGS[index].0, (best[index] / best[0] - 1.0) * 100.0);
    }
}

/// Measures all programs, one after the other.
fn measure_all() -> Result<(), String> {
    let mut sums: Times = [0.0; SETTINGS.len()];
    for subject in &SUBJECTS {
        let best = measure(subject, ROUNDS)?;
        sums = std::array::from_fn(|index| sums[index] + best[index]);
    }
    print!("together");
    print_costs(&sums);
    println!();
    Ok(())
}

/// With a subject as argument, measures just that, in as many rounds as a second one says. With a subject and a setting,
/// runs just that, once or as often as a third one says: for profilers.
fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [name, rest @ ..] = arguments.as_slice() else {
        return measure_all();
    };
    let subject = SUBJECTS.iter().find(|subject| subject.name == name).ok_or("no such program")?;
    let number = |at: usize| rest.get(at).and_then(|number| number.parse().ok());
    let Some(setting) = rest.first().filter(|_| number(0).is_none()) else {
        return measure(subject, number(0).unwrap_or(ROUNDS)).map(drop);
    };
    let &(_, monitor, jobs) = SETTINGS.iter().find(|(known, ..)| known == setting).ok_or("no such setting")?;
    let source = SourceFile::new(subject.name, subject.text);
    let program = compile(&source).map_err(|problems| format!("{problems:?}"))?.program;
    for _ in 0..number(1).unwrap_or(1) {
        run(&program, monitor, jobs);
    }
    Ok(())
}
