//! The attack engine against brute force: a program is robust exactly if every trace of the model is an SC trace.

use weakspot_front::weak::compile;
use weakspot_model::axioms::Axioms;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::replay::replay;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_model::trace::TraceBuilder;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::Sketch;
use weakspot_verify::robust::{self, RobustOptions, RobustReport, RobustVerdict};

const BOUNDS: Bounds = Bounds { visits: 60_000, buffer: None };

fn check(program: &Program, model: MemoryModel, all: bool) -> RobustReport {
    check_with(program, RobustOptions { all, ..RobustOptions::new(model) })
}

fn check_with(program: &Program, options: RobustOptions) -> RobustReport {
    robust::check(program, options, &Budget::unlimited(), &()).expect("every attack replays")
}

/// Brute force; `None` if the program is too large for it.
fn is_robust(program: &Program, model: MemoryModel, spurious_wakeups: bool) -> Option<bool> {
    let machine = Machine { spurious_wakeups, ..Machine::new(program, model) };
    let traces = oracle::traces(&machine, BOUNDS)?;
    Some(traces.keys().all(|trace| Axioms::Sc.allow(trace)))
}

/// What brute force says, and whether the engine says the same.
fn judge(sketch: &Sketch, model: MemoryModel, spurious_wakeups: bool) -> Option<(bool, bool)> {
    let program = sketch.program();
    let robust = is_robust(&program, model, spurious_wakeups)?;
    let expected = if robust { RobustVerdict::Robust } else { RobustVerdict::NotRobust };
    let options = RobustOptions { spurious_wakeups, ..RobustOptions::new(model) };
    Some((robust, check_with(&program, options).verdict == expected))
}

/// Compares on many programs, at least so many of them not robust and robust.
fn compare(shape: &Shape, seeds: std::ops::Range<u64>, at_least: [usize; 2]) {
    compare_with(shape, seeds, at_least, false);
}

fn compare_with(shape: &Shape, seeds: std::ops::Range<u64>, at_least: [usize; 2], spurious: bool) {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let mut seen = [0, 0];
        for seed in seeds.clone() {
            let sketch = shape.generate(seed);
            let Some((robust, agrees)) = judge(&sketch, model, spurious) else { continue };
            if !agrees {
                let small =
                    shrink(&sketch, |smaller| judge(smaller, model, spurious).is_some_and(|(_, agrees)| !agrees));
                panic!("{} disagrees (seed {seed}):\n{}", model.name(), small.text());
            }
            seen[usize::from(robust)] += 1;
        }
        assert!(seen[0] >= at_least[0] && seen[1] >= at_least[1], "not robust / robust: {seen:?}");
    }
}

#[test]
fn attacks_are_exact_on_straight_line_programs() {
    compare(&Shape { statements: 1..=4, ..Shape::straight_line() }, 0..1500, [50, 500]);
    compare(&Shape { threads: 2..=2, cells: 2..=2, statements: 3..=5, ..Shape::straight_line() }, 0..1500, [200, 500]);
}

#[test]
fn attacks_are_exact_with_branches_locks_and_choices() {
    let shape = Shape {
        branches: true,
        locks: true,
        condvars: true,
        choose: true,
        threads: 2..=2,
        cells: 2..=2,
        statements: 3..=4,
        ..Shape::straight_line()
    };
    compare(&shape, 0..1000, [20, 400]);
}

/// Being woken comes after the notification, and waking up unasked stands among the notifications.
#[test]
fn attacks_are_exact_with_condition_variables() {
    let shape = Shape {
        condvars: true,
        atomics: false,
        full_fences: false,
        threads: 3..=3,
        cells: 2..=2,
        statements: 1..=3,
        ..Shape::straight_line()
    };
    compare_with(&shape, 0..700, [2, 100], false);
    compare_with(&shape, 0..700, [2, 100], true);
}

#[test]
fn attacks_are_exact_with_assumptions() {
    let shape = Shape {
        assume: true,
        branches: true,
        threads: 2..=2,
        cells: 2..=2,
        statements: 3..=5,
        ..Shape::straight_line()
    };
    compare(&shape, 0..2000, [60, 400]);
    // Where a third thread has stores of its own that may wait.
    compare(&Shape { threads: 3..=3, ..shape }, 0..250, [5, 50]);
}

/// What is assumed comes true because a store waits that the attack could do without.
#[test]
fn stores_may_wait_until_an_assumption_comes_true() {
    let writer = "thread a { let r = y; x = 2; z = 2; let s = y; if s == 2 { assume(z != 2); } }";
    let delayers = [
        "z = 1; x = 1; let r = y;",
        "z = 1; x = 1; let r = y; assume(r == 0);",
        "z = 1; fence; x = 1; let r = y; assume(x == 2);",
        "z = 1; fence(store_store); x = 1; let r = y;",
    ];
    for delayer in delayers {
        let text = format!("shared x, y, z; {writer} thread b {{ y = 2; }} thread d {{ {delayer} }}");
        let program = compile(&SourceFile::new("test.weak", &text)).expect("it is well formed").program;
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let expected = is_robust(&program, model, false).expect("it is small");
            assert!(!expected || delayer != delayers[0], "there is an execution");
            let report = check(&program, model, false);
            assert_eq!(report.verdict == RobustVerdict::Robust, expected, "{model:?}: {text}");
        }
    }
}

#[test]
fn the_relaxed_execution_has_a_cycle_and_the_borderline_one_is_sc() {
    let shape = Shape { statements: 3..=5, branches: true, cells: 2..=2, ..Shape::straight_line() };
    let mut violations = 0;
    for seed in 0..600 {
        let program = shape.generate(seed).program();
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            for violation in check(&program, model, true).violations {
                let machine = Machine::new(&program, model);
                let run = replay(&machine, &violation.relaxed).expect("the relaxed execution replays");
                let mut builder = TraceBuilder::new(program.threads.len());
                for step in &run.steps {
                    if let Some(effect) = step.effect {
                        builder.record(&program, step.action.thread(), step.pc, effect);
                    }
                }
                let trace = builder.finish();
                assert!(!Axioms::Sc.allow(&trace), "a happens-before cycle");
                replay(&Machine::new(&program, MemoryModel::Sc), &violation.borderline).expect("SC accepts it");
                violations += 1;
            }
        }
    }
    assert!(violations > 200, "{violations}");
}
