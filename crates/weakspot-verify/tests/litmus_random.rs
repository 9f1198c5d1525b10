//! The axiomatic litmus engine against brute force over the operational machine, on programs nobody wrote.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use weakspot_model::axioms::Axioms;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Loc, Reg};
use weakspot_model::ir::{Instr, Program};
use weakspot_model::litmus::{Condition, LitmusTest, Observable, Quantifier};
use weakspot_model::machine::Machine;
use weakspot_model::trace::Trace;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds, FinalState};
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::Sketch;
use weakspot_verify::litmus::{LitmusError, Scratch, run};

/// A test that observes everything.
fn observing(program: Program) -> LitmusTest {
    let threads = program.thread_ids().zip(&program.threads);
    let registers = threads.flat_map(|(thread, code)| {
        (0..code.registers.len()).map(move |reg| Observable::Register(thread, Reg::new(reg)))
    });
    let memory = (0..program.locations.len()).map(|loc| Observable::Memory(Loc::new(loc)));
    let observed = registers.chain(memory).collect();
    let condition_text = String::new();
    let (quantifier, condition) = (Quantifier::Forall, Condition::True);
    LitmusTest { name: "random".to_owned(), program, observed, quantifier, condition, condition_text }
}

/// What brute force says: final states with the number of traces that lead there, and whether all traces are SC.
struct Expected {
    states: BTreeMap<Vec<i64>, u64>,
    robust: bool,
    fails: bool,
}

fn flat(state: &FinalState) -> Vec<i64> {
    state.registers.iter().flatten().chain(&state.memory).copied().collect()
}

fn expected(program: &Program, model: MemoryModel) -> Option<Expected> {
    let bounds = Bounds { visits: 60_000, ..Bounds::default() };
    let traces: BTreeMap<Trace, BTreeSet<FinalState>> = oracle::traces(&Machine::new(program, model), bounds)?;
    let mut states = BTreeMap::new();
    for state in traces.values().flatten() {
        *states.entry(flat(state)).or_default() += 1;
    }
    Some(Expected {
        states,
        robust: traces.keys().all(|trace| Axioms::Sc.allow(trace)),
        fails: traces.values().any(BTreeSet::is_empty),
    })
}

/// How the engine's answer compares.
enum Answer {
    Right,
    Wrong(String),
    TooLargeToSay,
}

fn answer(program: &Program, model: MemoryModel) -> Answer {
    let Some(expected) = expected(program, model) else { return Answer::TooLargeToSay };
    let test = observing(program.clone());
    let mut scratch = Scratch::default();
    let wrong = match run(&test, model, &mut scratch) {
        Err(LitmusError::Failed(problem)) => (!expected.fails).then(|| format!("claims {problem:?}")),
        Err(error) => Some(error.to_string()),
        Ok(_) if expected.fails => Some("misses a program error".to_owned()),
        Ok(outcome) => {
            let states: BTreeMap<Vec<i64>, u64> = outcome.states.into_iter().collect();
            if states != expected.states {
                Some(format!("states {states:?}\nexpected {:?}", expected.states))
            } else if outcome.robust != expected.robust {
                Some(format!("robust: {}", outcome.robust))
            } else {
                outcome.unrolled.then(|| "claims to have cut off a loop".to_owned())
            }
        }
    };
    wrong.map_or(Answer::Right, Answer::Wrong)
}

fn check_shape(shape: &Shape, seeds: std::ops::Range<u64>, at_least: usize) {
    let mut checked = 0;
    for seed in seeds {
        let sketch = shape.generate(seed);
        for model in MemoryModel::ALL {
            let lowered = |sketch: &Sketch| locked_if(seed % 3 == 0, sketch.program());
            let is_wrong = |sketch: &Sketch| matches!(answer(&lowered(sketch), model), Answer::Wrong(_));
            match answer(&lowered(&sketch), model) {
                Answer::TooLargeToSay => {}
                Answer::Right => checked += 1,
                Answer::Wrong(what) => {
                    let smallest = shrink(&sketch, is_wrong).text();
                    panic!("seed {seed}, {}: {what}\n{}\nshrunk to\n{smallest}", model.name(), sketch.text());
                }
            }
        }
    }
    assert!(checked >= at_least, "only {checked} checks");
}

/// Atomics that drain the whole buffer, as x86's do.
fn locked_if(locked: bool, mut program: Program) -> Program {
    for instr in program.threads.iter_mut().flat_map(|thread| &mut thread.code) {
        if let Instr::Rmw { drains_all, .. } = instr {
            *drains_all = locked;
        }
    }
    program
}

#[test]
fn straight_line_programs() {
    check_shape(&Shape { statements: 1..=4, ..Shape::straight_line() }, 0..1_000, 2_800);
}

#[test]
fn programs_with_branches_assumptions_and_range_errors() {
    let shape = Shape { branches: true, assume: true, range_errors: true, ..Shape::straight_line() };
    check_shape(&shape, 5_000..6_300, 3_500);
}

#[test]
fn programs_with_choices() {
    check_choices(&Shape { choose: true, branches: true, ..Shape::straight_line() }, 9_000..9_200);
}

/// Executions that differ in a choice only are counted apart by the engine and together by the oracle, so only the
/// set of states and robustness are compared.
fn check_choices(shape: &Shape, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let sketch = shape.generate(seed);
        let program = sketch.program();
        for model in MemoryModel::ALL {
            let Some(expected) = expected(&program, model) else { continue };
            let outcome = run(&observing(program.clone()), model, &mut Scratch::default()).unwrap();
            let states: Vec<_> = outcome.states.iter().map(|(state, _)| state).collect();
            let place = || format!("seed {seed}, {}:\n{}", model.name(), sketch.text());
            assert_eq!(states, expected.states.keys().collect::<Vec<_>>(), "{}", place());
            assert_eq!(outcome.robust, expected.robust, "{}", place());
        }
    }
}
