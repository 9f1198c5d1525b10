//! The answers of the exhaustive mode: errors exactly where brute force finds them, every witness accepted by the
//! reference machine.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_explore::outcome::Outcome;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::problem::ProblemKind;
use weakspot_model::replay::replay;
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::Sketch;

fn run(program: &Program, options: &ExploreOptions) -> Outcome {
    explore(program, options, &Budget::unlimited(), &())
}

/// What is wrong with the explorer's answer; empty if nothing, `None` if the program is too large to say.
fn complaint(sketch: &Sketch, all: bool) -> Option<(String, Option<ProblemKind>)> {
    let program = sketch.program();
    let machine = Machine::new(&program, MemoryModel::Sc);
    let reach = oracle::reach(&machine, Bounds { visits: 40_000, ..Bounds::default() })?;
    let outcome = run(&program, &ExploreOptions { monitor: None, all, ..ExploreOptions::default() });
    let Some(witness) = &outcome.error else {
        let wrong = if reach.problems.is_empty() { String::new() } else { format!("missed {:?}", reach.problems) };
        return Some((wrong, None));
    };
    if let Err(error) = witness.replay(&machine) {
        return Some((format!("the witness does not replay: {error}"), None));
    }
    let wrong = if reach.problems.contains(&witness.problem.kind) { "" } else { "no such problem" };
    Some((wrong.to_owned(), Some(witness.problem.kind)))
}

#[test]
fn errors_are_found_exactly_where_there_are_some() {
    let shape = Shape { statements: 1..=4, threads: 2..=3, ..Shape::terminating() };
    let mut kinds: BTreeMap<ProblemKind, usize> = BTreeMap::new();
    let (mut programs, mut correct) = (0, 0);
    for seed in 0..6_000 {
        let sketch = shape.generate(seed);
        let all = seed % 2 == 0;
        let Some((wrong, kind)) = complaint(&sketch, all) else { continue };
        if !wrong.is_empty() {
            let smallest = shrink(&sketch, |smaller| complaint(smaller, all).is_some_and(|(text, _)| !text.is_empty()));
            panic!("seed {seed}: {}\n{}", complaint(&smallest, all).unwrap().0, smallest.text());
        }
        programs += 1;
        match kind {
            Some(kind) => *kinds.entry(kind).or_default() += 1,
            None => correct += 1,
        }
    }
    assert!(programs > 5_000 && correct > 1_000 && kinds.len() >= 4, "{programs} {correct} {kinds:?}");
    assert!(kinds[&ProblemKind::MutualExclusion] > 10, "{kinds:?}");
}

#[test]
fn borderline_executions_replay_up_to_their_access() {
    let shape = Shape { threads: 2..=3, statements: 2..=3, cells: 2..=2, ..Shape::straight_line() };
    let mut violations = 0;
    for seed in 0..400 {
        let program = shape.generate(seed).program();
        let machine = Machine::new(&program, MemoryModel::Sc);
        for monitor in [MonitorKind::Sober, MonitorKind::Operational(MemoryModel::Pso)] {
            let options = ExploreOptions { monitor: Some(monitor), all: true, ..ExploreOptions::default() };
            for violation in run(&program, &options).violations.values() {
                let replayed = replay(&machine, &violation.actions).unwrap();
                let last = replayed.steps.iter().rev().find(|step| step.pc == violation.access.pc).unwrap();
                assert_eq!(last.action.thread(), violation.access.thread);
                assert!(
                    replayed.steps.iter().any(|step| {
                        step.pc == violation.store.pc && step.action.thread() == violation.store.thread
                    })
                );
                violations += 1;
            }
        }
    }
    assert!(violations > 100, "{violations}");
}
