//! Loops that wait, and bounds on loops that do not: against the exact engine for store-buffer safety.
#![allow(clippy::unwrap_used)]

use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_explore::outcome::Outcome;
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::Sketch;
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};

fn program(text: &str) -> Program {
    compile(&SourceFile::new("test.weak", text)).unwrap().program
}

fn run(program: &Program, monitor: MonitorKind, unroll: Option<u32>) -> Outcome {
    let options = ExploreOptions { monitor: Some(monitor), all: true, unroll, ..ExploreOptions::default() };
    explore(program, &options, &Budget::unlimited(), &())
}

fn is_robust(program: &Program, model: MemoryModel) -> Option<bool> {
    let options = RobustOptions::new(model);
    match robust::check(program, options, &Budget::unlimited(), &()).unwrap().verdict {
        RobustVerdict::Robust => Some(true),
        RobustVerdict::NotRobust => Some(false),
        RobustVerdict::Inconclusive(_) => None,
    }
}

const MONITORS: [MonitorKind; 3] =
    [MonitorKind::Sober, MonitorKind::Operational(MemoryModel::Tso), MonitorKind::Operational(MemoryModel::Pso)];

#[derive(Default, Debug)]
struct Tally {
    exhausted_safe: usize,
    exhausted_unsafe: usize,
    bounded: usize,
}

/// Empty if the explorer and the exact engine agree.
fn complaint(sketch: &Sketch, tally: &mut Tally) -> String {
    let program = sketch.program();
    for monitor in MONITORS {
        let model = monitor.model();
        let outcome = run(&program, monitor, Some(2));
        if outcome.error.is_some() {
            return String::new();
        }
        let Some(robust) = is_robust(&program, model) else { return String::new() };
        let safe = outcome.borderline == 0;
        if outcome.unfinished > 0 {
            tally.bounded += 1;
            if robust && !safe {
                return format!("{monitor:?} trips on a robust program");
            }
        } else if robust != safe {
            return format!("{monitor:?}: robust {robust}, no execution trips {safe}");
        } else if safe {
            tally.exhausted_safe += 1;
        } else {
            tally.exhausted_unsafe += 1;
        }
    }
    String::new()
}

#[test]
fn answers_agree_with_the_exact_engine_on_loops() {
    let shape = Shape {
        assume: false,
        assert: false,
        critical: false,
        condvars: false,
        choose: false,
        statements: 1..=3,
        cells: 2..=2,
        ..Shape::looping()
    };
    let mut tally = Tally::default();
    for seed in 0..5_000 {
        let sketch = shape.generate(seed);
        let wrong = complaint(&sketch, &mut tally);
        if !wrong.is_empty() {
            let smallest = shrink(&sketch, |smaller| !complaint(smaller, &mut Tally::default()).is_empty());
            panic!("seed {seed}: {}\n{}", complaint(&smallest, &mut tally), smallest.text());
        }
    }
    assert!(tally.exhausted_safe > 500 && tally.exhausted_unsafe > 10 && tally.bounded > 50, "{tally:?}");
}

#[test]
fn a_wait_that_ends_is_explored_with_and_without_a_failed_round() {
    let waits = program("shared x; thread a { while x == 0 { } } thread b { x = 1; }");
    let outcome = run(&waits, MonitorKind::Sober, None);
    assert_eq!((outcome.executions, outcome.blocked), (2, 1));
    assert!(outcome.is_safe());
}

#[test]
fn a_wait_that_never_ends_is_not_safe() {
    let waits = program("shared x; thread a { await(x == 1); } thread b { x = 2; }");
    let outcome = run(&waits, MonitorKind::Sober, None);
    assert_eq!(outcome.executions, 0);
    assert!(outcome.error.is_none() && !outcome.is_safe(), "{outcome:?}");
}

#[test]
fn a_loop_that_changes_something_needs_a_bound() {
    let counts = program("shared x, y; thread a { while x == 0 { y = 1; } } thread b { x = 1; }");
    let outcome = run(&counts, MonitorKind::Sober, Some(3));
    assert!(outcome.unfinished > 0 && outcome.executions == 4 && !outcome.is_safe(), "{outcome:?}");
}

const FENCED_DEKKER: &str = "
shared want[2], turn;
thread p[2] {
    let other = 1 - me;
    let round = 0;
    while round < 2 {
        want[me] = 1;
        fence;
        while want[other] == 1 {
            if turn != me {
                want[me] = 0;
                FENCE
                await(turn == me);
                want[me] = 1;
                fence;
            }
        }
        critical { }
        turn = other;
        want[me] = 0;
        round = round + 1;
    }
}";

#[test]
fn a_program_without_bounds_is_given_up() {
    let counts = program("shared x, y; thread a { while x == 0 { y = 1; } } thread b { x = 1; }");
    let outcome = run(&counts, MonitorKind::Sober, None);
    assert!(outcome.too_long && !outcome.exhaustive && !outcome.is_safe());
}

#[test]
fn the_beginning_of_an_execution_without_end_is_watched() {
    let endless = program(
        "shared x, y;
         thread a { x = 2; y = 1; let r = y; r = x; x = 1; y = 2; }
         thread b { x = 0; let r = y; while x >= 0 { r = y; y = 1; } }",
    );
    let outcome = run(&endless, MonitorKind::Sober, None);
    assert!(outcome.too_long && !outcome.violations.is_empty());
}

#[test]
fn the_cycle_through_a_failed_round_is_seen() {
    for (fence, expected) in [("", false), ("fence;", true)] {
        let text = FENCED_DEKKER.replace("FENCE", fence);
        let dekker = program(&text);
        assert_eq!(is_robust(&dekker, MemoryModel::Tso), Some(expected));
        let outcome = run(&dekker, MonitorKind::Sober, None);
        assert!(outcome.error.is_none() && outcome.exhaustive && outcome.unfinished == 0);
        assert_eq!(outcome.borderline == 0, expected, "{} of {}", outcome.borderline, outcome.executions);
    }
}

/// Waits at most two rounds for its turn, then tries again or goes without.
const IMPATIENT_DEKKER: &str = "
shared want[2], turn;
thread p[2] {
    let other = 1 - me;
    let round = 0;
    while round < 2 {
        want[me] = 1;
        fence;
        let busy = want[other];
        if busy == 1 && turn != me {
            want[me] = 0;
            FENCE
            let tries = 0;
            while tries < 2 && turn != me { tries = tries + 1; }
            want[me] = 1;
            fence;
            busy = want[other];
        }
        if busy == 0 { critical { } turn = other; }
        want[me] = 0;
        round = round + 1;
    }
}";

#[test]
fn the_cycle_through_a_wait_that_is_given_up_is_seen() {
    for (fence, robust) in [("", false), ("fence;", true)] {
        let dekker = program(&IMPATIENT_DEKKER.replace("FENCE", fence));
        assert_eq!(is_robust(&dekker, MemoryModel::Tso), Some(robust));
        for monitor in [MonitorKind::Sober, MonitorKind::Operational(MemoryModel::Tso)] {
            let outcome = run(&dekker, monitor, None);
            assert!(outcome.error.is_none() && outcome.exhaustive && outcome.blocked == 0 && outcome.unfinished == 0);
            assert_eq!(outcome.borderline == 0, robust, "{} of {}", outcome.borderline, outcome.executions);
            assert_eq!(outcome.is_safe(), robust);
        }
    }
}

#[test]
fn more_threads_than_a_condition_variable_can_hold_are_refused() {
    let text = "shared x; mutex m; condvar c; thread a[63] { lock(m); notify_all(c); unlock(m); }";
    let outcome = run(&program(text), MonitorKind::Sober, None);
    assert!(outcome.too_many_threads && !outcome.exhaustive && !outcome.is_safe());
}
