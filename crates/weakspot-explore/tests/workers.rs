//! The number of workers changes nothing but the time.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_explore::outcome::Outcome;
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit};
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
fn two_or_four_workers_find_what_one_finds() {
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
            (true, MonitorKind::Operational(MemoryModel::Pso)),
        ] {
            let options = ExploreOptions { monitor: Some(monitor), all, ..ExploreOptions::default() };
            let one = run(&program, &options);
            executions += one.executions;
            for jobs in [2, 4] {
                assert_same(&one, &run(&program, &ExploreOptions { jobs, ..options.clone() }), &sketch.text());
            }
        }
    }
    assert!(executions > 5_000, "{executions}");
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
    let options = ExploreOptions { all: true, ..ExploreOptions::default() };
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
