//! The number of workers changes nothing but the time.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_explore::outcome::Outcome;
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit, Progress};
use weakspot_testkit::generate::Shape;

fn run(program: &Program, options: &ExploreOptions) -> Outcome {
    explore(program, options, &Budget::unlimited(), &())
}

fn assert_same(one: &Outcome, other: &Outcome, text: &str) {
    let counts = |o: &Outcome| {
        [o.executions, o.blocked, o.deadlocks, o.unfinished, o.failures, o.borderline, u64::from(o.exhaustive)]
    };
    assert_eq!(counts(one), counts(other), "{text}");
    assert_eq!(one.violations, other.violations, "{text}");
    assert_eq!(one.error, other.error, "{text}");
}

#[test]
fn any_number_of_workers_finds_what_one_finds() {
    let shape = Shape {
        locks: true,
        condvars: true,
        assert: true,
        choose: true,
        threads: 3..=3,
        statements: 2..=4,
        cells: 2..=2,
        ..Shape::straight_line()
    };
    let mut executions = 0;
    for seed in 0..150 {
        let sketch = shape.generate(seed);
        let program = sketch.program();
        for (all, monitor) in [
            (true, MonitorKind::Sober),
            (false, MonitorKind::Sober),
            (true, MonitorKind::Operational(MemoryModel::Tso)),
            (true, MonitorKind::Operational(MemoryModel::Pso)),
            (false, MonitorKind::Operational(MemoryModel::Pso)),
        ] {
            let alone = Duration::ZERO;
            let options = ExploreOptions { monitor: Some(monitor), all, alone, ..ExploreOptions::default() };
            let one = run(&program, &options);
            executions += one.executions;
            for jobs in [2, 3, 5] {
                assert_same(&one, &run(&program, &ExploreOptions { jobs, ..options.clone() }), &sketch.text());
            }
        }
    }
    assert!(executions > 5_000, "{executions}");
}

/// The programs to measure with, except the largest: counts known from other tools, whatever the number of workers.
#[test]
fn known_counts_do_not_depend_on_the_number_of_workers() {
    for (name, text, executions, blocked) in [
        ("lastzero", include_str!("../../../corpus/bench/lastzero.weak"), 15_360, 0),
        ("queue", include_str!("../../../corpus/bench/queue.weak"), 10_174, 1_024),
        ("readers", include_str!("../../../corpus/bench/readers.weak"), 65_536, 0),
        ("stack", include_str!("../../../corpus/bench/stack.weak"), 58_722, 6_366),
    ] {
        let program = program(text);
        let options = ExploreOptions {
            monitor: Some(MonitorKind::Operational(MemoryModel::Pso)),
            all: true,
            ..ExploreOptions::default()
        };
        let one = run(&program, &options);
        assert_eq!((one.executions, one.blocked), (executions, blocked), "{name}");
        assert_same(&one, &run(&program, &ExploreOptions { jobs: 2, ..options }), name);
    }
}

fn program(text: &str) -> Program {
    compile(&SourceFile::new("test.weak", text)).unwrap().program
}

const WAITING: &str = "
shared want[2], turn, n;
thread p[2] {
    let other = 1 - me;
    let round = 0;
    while round < 2 {
        want[me] = 1;
        turn = other;
        while want[other] == 1 && turn == other { }
        n = n + 1;
        want[me] = 0;
        round = round + 1;
    }
}";

#[test]
fn subtrees_with_waiting_loops_can_be_given_away() {
    let peterson = program(WAITING);
    let options = ExploreOptions { all: true, alone: Duration::ZERO, ..ExploreOptions::default() };
    let one = run(&peterson, &options);
    assert!(one.executions > 100 && one.borderline > 0 && one.error.is_none(), "{one:?}");
    for jobs in [2, 3] {
        assert_same(&one, &run(&peterson, &ExploreOptions { jobs, ..options.clone() }), WAITING);
    }
}

#[test]
fn a_time_limit_ends_every_worker() {
    let endless = program("shared x, y; thread a[5] { let i = 0; while i < 6 { x = x + 1; y = y + x; i = i + 1; } }");
    let budget = Budget::unlimited().with_time(Duration::from_millis(50));
    for jobs in [1, 2] {
        let options = ExploreOptions { all: true, jobs, monitor: None, ..ExploreOptions::default() };
        let outcome = explore(&endless, &options, &budget, &());
        assert_eq!(outcome.limit, Some(Limit::Time));
        assert!(!outcome.exhaustive && !outcome.is_safe() && outcome.executions > 0);
    }
}

/// Workers that are given many small parts look at the limits although no part is long enough for a look of its own.
#[test]
fn many_small_parts_do_not_outlast_a_limit() {
    let readers = program(include_str!("../../../corpus/bench/readers.weak"));
    let budget = Budget::unlimited();
    budget.cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
    for jobs in [2, 3, 4] {
        let options = ExploreOptions { all: true, jobs, alone: Duration::ZERO, ..ExploreOptions::default() };
        let outcome = explore(&readers, &options, &budget, &());
        assert_eq!(outcome.limit, Some(Limit::Cancelled));
        assert!(!outcome.exhaustive && outcome.executions <= 1024 * jobs as u64, "{}", outcome.executions);
    }
}

/// Long executions are looked at more often than every so many of them.
#[test]
fn long_executions_do_not_outlast_a_limit() {
    let long = program("shared x, y; thread a[2] { let i = 0; while i < 400 { x = i; let r = y; y = r; i = i + 1; } }");
    let budget = Budget::unlimited();
    budget.cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
    for jobs in [1, 2] {
        let options = ExploreOptions { all: true, jobs, ..ExploreOptions::default() };
        let outcome = explore(&long, &options, &budget, &());
        assert_eq!(outcome.limit, Some(Limit::Cancelled));
        assert!(outcome.executions <= 200 * jobs as u64, "{}", outcome.executions);
    }
}

/// Remembers what a search said about itself.
#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<f64>>);

impl Progress for Heard {
    fn update(&self, _: u64, _: u64, _: u64) {
        unreachable!("a stateless search tells how much of it is done");
    }

    fn explored(&self, executions: u64, graphs: u64, covered: f64) {
        assert!(executions <= graphs);
        self.0.lock().unwrap().push(covered);
    }
}

#[test]
fn how_much_is_done_grows_to_the_whole() {
    let adders = program(
        "shared i = 1, j = 1;
        thread a { let k = 0; while k < 4 { i = i + j; k = k + 1; } }
        thread b { let k = 0; while k < 4 { j = j + i; k = k + 1; } }
        thread look { let x = i; let y = j; }",
    );
    for jobs in [1, 3] {
        let heard = Heard::default();
        let options = ExploreOptions { all: true, jobs, monitor: None, ..ExploreOptions::default() };
        let outcome = explore(&adders, &options, &Budget::unlimited(), &heard);
        assert!(outcome.exhaustive && (outcome.covered - 1.0).abs() < 1e-9, "{}", outcome.covered);
        let heard = heard.0.into_inner().unwrap();
        assert!(heard.len() > 10 && heard.iter().all(|covered| (0.0..1.000_001).contains(covered)), "{heard:?}");
        if jobs == 1 {
            assert!(heard.is_sorted());
            assert!(heard[heard.len() / 2] > 0.05, "half of the executions are not nearly nothing: {heard:?}");
        }
    }
}

#[test]
fn every_part_of_a_search_is_counted_once() {
    let shape = Shape {
        locks: true,
        condvars: true,
        assert: true,
        choose: true,
        threads: 2..=3,
        statements: 1..=3,
        ..Shape::straight_line()
    };
    for seed in 0..300 {
        let sketch = shape.generate(seed);
        let options = ExploreOptions { all: true, ..ExploreOptions::default() };
        let outcome = run(&sketch.program(), &options);
        assert!(!outcome.exhaustive || (outcome.covered - 1.0).abs() < 1e-9, "{}\n{}", outcome.covered, sketch.text());
    }
}
