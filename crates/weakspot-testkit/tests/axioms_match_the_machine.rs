//! The axioms and the operational machine give every program the same set of traces.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use weakspot_model::axioms::Axioms;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::{FenceKind, Instr, Program};
use weakspot_model::machine::Machine;
use weakspot_model::trace::Trace;
use weakspot_testkit::candidates::candidates;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_testkit::rng::Rng;
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::{Expr, Sketch, SketchCell, Stmt};

/// Programs with more candidate traces are passed over.
const MOST_CANDIDATES: usize = 3_000;

fn machine_traces(program: &Program, model: MemoryModel) -> BTreeSet<Trace> {
    let machine = Machine::new(program, model);
    oracle::traces(&machine, Bounds::default()).expect("small programs are exhausted").into_keys().collect()
}

/// Turns every atomic into one that drains the whole buffer, as x86's are.
fn with_locked_atomics(mut program: Program) -> Program {
    for instr in program.threads.iter_mut().flat_map(|thread| &mut thread.code) {
        if let Instr::Rmw { drains_all, .. } = instr {
            *drains_all = true;
        }
    }
    program
}

/// Does the model's set of traces differ between machine and axioms? `None`: too large to say.
fn differ(program: &Program, model: MemoryModel) -> Option<bool> {
    let mut allowed = candidates(program, MOST_CANDIDATES)?;
    allowed.retain(|trace| Axioms::from(model).allow(trace));
    Some(allowed != machine_traces(program, model))
}

fn check_shape(shape: &Shape, seeds: std::ops::Range<u64>, at_least: usize) {
    let mut checked = 0;
    for seed in seeds {
        let sketch = shape.generate(seed);
        let lowered = |sketch: &Sketch| {
            let program = sketch.program();
            if seed % 4 == 0 { with_locked_atomics(program) } else { program }
        };
        for model in MemoryModel::ALL {
            match differ(&lowered(&sketch), model) {
                None => break,
                Some(false) => checked += 1,
                Some(true) => {
                    let smallest = shrink(&sketch, |smaller| differ(&lowered(smaller), model) == Some(true));
                    panic!(
                        "seed {seed}, {}: traces of machine and axioms differ on\n{}",
                        model.name(),
                        smallest.text()
                    );
                }
            }
        }
    }
    assert!(checked >= at_least, "only {checked} checks");
}

#[test]
fn on_two_threads() {
    let shape = Shape { threads: 2..=2, statements: 1..=4, cells: 1..=3, ..Shape::straight_line() };
    check_shape(&shape, 0..4_000, 9_000);
}

#[test]
fn on_three_threads() {
    let shape = Shape { threads: 3..=3, statements: 1..=3, ..Shape::straight_line() };
    check_shape(&shape, 10_000..12_000, 4_000);
}

#[test]
fn on_plain_loads_and_stores() {
    let shape = Shape { atomics: false, statements: 1..=4, ..Shape::straight_line() };
    check_shape(&shape, 20_000..22_000, 5_000);
}

/// Mutexes, condition variables, choices, failures and deadlocks: whatever the machine does, the axioms allow.
#[test]
fn every_execution_of_the_machine_is_allowed() {
    let shape = Shape { statements: 1..=3, ..Shape::terminating() };
    let mut traces = 0;
    for seed in 70_000..71_500 {
        let sketch = shape.generate(seed);
        let program = sketch.program();
        for model in MemoryModel::ALL {
            let bounds = Bounds { visits: 20_000, ..Bounds::default() };
            let Some(found) = oracle::traces(&Machine::new(&program, model), bounds) else { continue };
            for trace in found.keys() {
                let verdict = Axioms::from(model).check(trace);
                assert_eq!(verdict, Ok(()), "seed {seed}, {}:\n{}{trace:?}", model.name(), sketch.text());
                traces += 1;
            }
        }
    }
    assert!(traces > 10_000, "only {traces} traces");
}

/// P0: x=1; r0=x; r1=y and P1: y=2; x=2.
fn n6() -> Sketch {
    let cell = SketchCell { init: 0, range: None };
    Sketch {
        cells: vec![cell.clone(), cell],
        mutexes: 0,
        condvars: 0,
        registers: 2,
        threads: vec![
            vec![Stmt::Store(0, Expr::Const(1)), Stmt::Load(0, 0), Stmt::Load(1, 1)],
            vec![Stmt::Store(1, Expr::Const(2)), Stmt::Store(0, Expr::Const(2))],
        ],
        forbidden: Vec::new(),
    }
}

#[test]
fn the_machine_produces_an_n6_trace_that_only_the_published_axioms_refuse() {
    let program = n6().program();
    let produced = machine_traces(&program, MemoryModel::Tso);
    let refused: Vec<_> = produced.iter().filter(|trace| !Axioms::TsoPublished.allow(trace)).collect();
    assert_eq!(refused.len(), 1);
    assert!(Axioms::Tso.allow(refused[0]));
    assert!(!Axioms::Sc.allow(refused[0]));
}

#[test]
fn the_published_axioms_never_allow_more_than_the_corrected_ones() {
    let shape = Shape { statements: 2..=4, threads: 2..=2, cells: 2..=2, ..Shape::straight_line() };
    let mut refused = 0;
    for seed in 30_000..33_000 {
        let Some(all) = candidates(&shape.generate(seed).program(), MOST_CANDIDATES) else { continue };
        for trace in all {
            let (published, corrected) = (Axioms::TsoPublished.allow(&trace), Axioms::Tso.allow(&trace));
            assert!(corrected || !published);
            refused += usize::from(corrected && !published);
        }
    }
    assert!(refused > 0, "the sample has no trace on which the two differ");
}

/// SC ⊆ TSO holds always. TSO ⊆ PSO does, too: every order that PSO keeps, TSO keeps, store-store fences and atomics
/// included (TSO keeps all stores in order anyway, and its atomics drain the whole buffer).
#[test]
fn weaker_models_have_every_trace_of_stronger_ones() {
    let shape = Shape::straight_line();
    for seed in 40_000..40_400 {
        let program = shape.generate(seed).program();
        let [sc, tso, pso] = MemoryModel::ALL.map(|model| machine_traces(&program, model));
        assert!(sc.is_subset(&tso), "seed {seed}");
        assert!(tso.is_subset(&pso), "seed {seed}");
    }
}

/// The trace with its fences left out, so that programs with and without them can be compared.
fn without_fences(trace: &Trace) -> Vec<(u16, String, u32)> {
    let events = trace.events().iter();
    let memory = events.filter(|event| event.operation.cell().is_some());
    memory.map(|event| (event.thread.0, format!("{:?}", event.operation), event.coherence)).collect()
}

#[test]
fn a_fence_never_adds_a_trace() {
    let shape = Shape::straight_line();
    for seed in 50_000..50_300 {
        let sketch = shape.generate(seed);
        let mut rng = Rng::new(seed);
        let mut fenced = sketch.clone();
        let thread = rng.below(fenced.threads.len());
        let at = rng.within(0..=fenced.threads[thread].len());
        let kind = rng.pick(&[FenceKind::Full, FenceKind::StoreStore, FenceKind::StoreLoad]);
        fenced.threads[thread].insert(at, Stmt::Fence(kind));
        for model in MemoryModel::ALL {
            let seen = |sketch: &Sketch| -> BTreeSet<_> {
                machine_traces(&sketch.program(), model).iter().map(without_fences).collect()
            };
            assert!(seen(&fenced).is_subset(&seen(&sketch)), "seed {seed}, {}", model.name());
        }
    }
}

#[test]
fn renaming_threads_changes_nothing() {
    let shape = Shape { threads: 3..=3, statements: 1..=2, ..Shape::straight_line() };
    for seed in 60_000..60_200 {
        let sketch = shape.generate(seed);
        let renamed = sketch.with_threads_in_order(&[2, 0, 1]);
        for model in MemoryModel::ALL {
            let back = |thread: u16| [2, 0, 1][usize::from(thread)];
            let traces = |sketch: &Sketch, name: &dyn Fn(u16) -> u16| -> BTreeSet<Vec<_>> {
                let named = |trace: &Trace| {
                    let mut events = without_fences(trace);
                    for event in &mut events {
                        event.0 = name(event.0);
                    }
                    events.sort_by_key(|event| event.0);
                    events
                };
                machine_traces(&sketch.program(), model).iter().map(named).collect()
            };
            assert_eq!(traces(&sketch, &|t| t), traces(&renamed, &back), "seed {seed}, {}", model.name());
        }
    }
}
