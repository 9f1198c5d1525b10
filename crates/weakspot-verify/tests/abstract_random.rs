//! The abstract engine against brute force over the reference machine, on programs nobody wrote.
//!
//! Two claims. Every state the machine reaches (buffers of up to four stores) is covered by an abstract state, in every
//! domain and for every k. And what the engine verifies, brute force does not break.

#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::ops::Range;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::{FenceKind, RmwOp};
use weakspot_model::machine::{Machine, Outcome, State};
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_testkit::rng::Rng;
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::{Expr, Observed, Sketch, SketchCell, Stmt};
use weakspot_verify::abstraction::{self, AbstractOptions, AbstractVerdict, Domain, ValueDomain, covers};

/// States brute force may visit, and states the engine may store.
const VISITS: usize = 4_000;
const STORED: u64 = 100_000;

/// Every domain, with its k.
const DOMAINS: [(Domain, u32); 7] = [
    (Domain::Set, 0),
    (Domain::Fd, 0),
    (Domain::Fd, 1),
    (Domain::Fd, 2),
    (Domain::Pd, 0),
    (Domain::Pd, 1),
    (Domain::Pd, 2),
];

/// How a comparison came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// Everything covered, both say it is correct.
    Verified,
    /// Everything covered, both say it is wrong.
    Violated,
    /// Everything covered, brute force finds nothing and the abstraction fails.
    Spurious,
    /// One of them gave up.
    Unknown,
    /// A state that is not covered, or a violation that was missed.
    Unsound,
}

fn compare(sketch: &Sketch, options: &AbstractOptions) -> Comparison {
    let program = sketch.program();
    let machine = Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(&program, options.model) };
    let Some(reach) = oracle::reach(&machine, Bounds { visits: VISITS, buffer: Some(4) }) else {
        return Comparison::Unknown;
    };
    let Ok(cover) = covers::explore(&program, options, &Budget::unlimited()) else { return Comparison::Unknown };
    if !reach.states.iter().all(|state| cover.covers(state)) {
        return Comparison::Unsound;
    }
    match (reach.problems.is_empty(), cover.fails) {
        (true, false) => Comparison::Verified,
        (false, true) => Comparison::Violated,
        (true, true) => Comparison::Spurious,
        (false, false) => Comparison::Unsound,
    }
}

/// The counts of all comparisons.
#[derive(Debug, Default)]
struct Tally {
    verified: usize,
    violated: usize,
    spurious: usize,
    unknown: usize,
}

/// Compares on many programs; shrinks the first that is unsound.
fn compare_all(shape: &Shape, seeds: Range<u64>, options: impl Fn(u64, &Sketch) -> AbstractOptions) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        let sketch = shape.generate(seed);
        let asked = options(seed, &sketch);
        match compare(&sketch, &asked) {
            Comparison::Verified => tally.verified += 1,
            Comparison::Violated => tally.violated += 1,
            Comparison::Spurious => tally.spurious += 1,
            Comparison::Unknown => tally.unknown += 1,
            Comparison::Unsound => {
                let small = shrink(&sketch, |sketch| compare(sketch, &options(seed, sketch)) == Comparison::Unsound);
                panic!("seed {seed}, {asked:?}:\n{}", small.text());
            }
        }
    }
    tally
}

/// One domain after the other, seed by seed.
fn in_turn(model: MemoryModel) -> impl Fn(u64, &Sketch) -> AbstractOptions {
    move |seed, _| {
        let (domain, k) = DOMAINS[seed as usize % DOMAINS.len()];
        AbstractOptions { domain, k, max_states: Some(STORED), ..AbstractOptions::new(model) }
    }
}

/// Two threads that do little but store and load in loops.
fn growing() -> Shape {
    Shape {
        statements: 2..=5,
        cells: 2..=2,
        atomics: false,
        full_fences: true,
        locks: false,
        condvars: false,
        assume: false,
        critical: false,
        range_errors: false,
        ..Shape::looping()
    }
}

/// One thread that stores a lot and looks around in between, one that watches: every register is observed, so that the
/// order in which stores became visible shows in the states.
fn burst(seed: u64) -> Sketch {
    let mut rng = Rng::new(seed);
    let registers = 3;
    let mut next_register = [0, 0];
    let mut body = |thread: usize, count: usize, stores: usize| {
        let statement = |rng: &mut Rng, register: &mut usize| {
            let cell = usize::from(rng.one_in(3));
            match rng.below(12) {
                0 => Stmt::Fence(FenceKind::Full),
                1 => Stmt::Fence(FenceKind::StoreStore),
                kind if kind < 2 + stores => Stmt::Store(cell, Expr::Const(rng.within(1..=3) as i64)),
                _ => {
                    *register = (*register + 1) % registers;
                    Stmt::Load(*register, if thread == 0 { 1 - cell } else { cell })
                }
            }
        };
        (0..count).map(|_| statement(&mut rng, &mut next_register[thread])).collect::<Vec<Stmt>>()
    };
    let threads = vec![body(0, 6, 8), body(1, 5, 2)];
    let all = (0..2).flat_map(|thread| (0..registers).map(move |register| (Observed::Register(thread, register), 9)));
    Sketch {
        cells: vec![SketchCell { init: 0, range: None }; 2],
        mutexes: 0,
        condvars: 0,
        registers,
        threads,
        forbidden: all.collect(),
    }
}

#[test]
fn every_reachable_state_is_covered_when_many_stores_are_pending() {
    for (model, seeds) in [(MemoryModel::Pso, 0..1_000), (MemoryModel::Tso, 1_000..2_000)] {
        let mut spread = 0;
        for seed in seeds {
            let sketch = burst(seed);
            let options = in_turn(model)(seed, &sketch);
            let comparison = compare(&sketch, &options);
            assert_ne!(comparison, Comparison::Unsound, "seed {seed}, {options:?}:\n{}", sketch.text());
            spread += usize::from(comparison == Comparison::Verified);
        }
        assert!(spread > 600, "{spread} verified");
    }
}

#[test]
fn every_reachable_state_is_covered_under_pso() {
    let tally = compare_all(&Shape::looping(), 0..4_000, in_turn(MemoryModel::Pso));
    assert!(tally.verified > 600 && tally.violated > 600 && tally.unknown < 400, "{tally:?}");
}

#[test]
fn every_reachable_state_is_covered_under_tso() {
    let tally = compare_all(&Shape::looping(), 10_000..14_000, in_turn(MemoryModel::Tso));
    assert!(tally.verified > 600 && tally.violated > 600 && tally.unknown < 400, "{tally:?}");
}

#[test]
fn every_reachable_state_is_covered_where_buffers_grow_for_ever() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let tally = compare_all(&growing(), 20_000..21_500, in_turn(model));
        assert!(tally.verified > 100 && tally.violated > 100, "{tally:?}");
    }
}

#[test]
fn every_reachable_state_is_covered_in_programs_that_end() {
    for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
        let tally = compare_all(&Shape::terminating(), 30_000..31_000, in_turn(model));
        assert!(tally.verified > 100 && tally.violated > 100, "{tally:?}");
    }
}

#[test]
fn every_reachable_state_is_covered_with_spurious_wakeups() {
    let options =
        |seed, sketch: &Sketch| AbstractOptions { spurious_wakeups: true, ..in_turn(MemoryModel::Pso)(seed, sketch) };
    let tally = compare_all(&Shape::terminating(), 40_000..41_000, options);
    assert!(tally.verified > 100 && tally.violated > 100, "{tally:?}");
}

/// Domains of values, chosen by the seed; one cell may stay exact.
fn with_values(model: MemoryModel) -> impl Fn(u64, &Sketch) -> AbstractOptions {
    move |seed, sketch| {
        let pick = |cell: usize| match (seed as usize / DOMAINS.len() + cell * 3) % 4 {
            0 => Some(ValueDomain::Sign),
            1 => Some(ValueDomain::Parity),
            2 => Some(ValueDomain::Interval),
            _ => None,
        };
        AbstractOptions { values: (0..sketch.cells.len()).map(pick).collect(), ..in_turn(model)(seed, sketch) }
    }
}

#[test]
fn every_reachable_state_is_covered_with_abstract_values() {
    for (model, shape) in [
        (MemoryModel::Sc, Shape::looping()),
        (MemoryModel::Tso, Shape::looping()),
        (MemoryModel::Pso, Shape::looping()),
        (MemoryModel::Pso, Shape::terminating()),
    ] {
        let tally = compare_all(&shape, 50_000..51_500, with_values(model));
        assert!(tally.verified > 50 && tally.violated > 100, "{} {tally:?}", model.name());
    }
}

/// The first states of the machine, breadth first, buffers of up to four stores.
fn first_states(machine: &Machine<'_>, count: usize) -> Vec<State> {
    let (start, outcome) = machine.start();
    if outcome != Outcome::Continues {
        return Vec::new();
    }
    let mut known: HashSet<State> = HashSet::from([start.clone()]);
    let mut states = vec![start];
    let mut next = 0;
    while next < states.len() && states.len() < count {
        let state = states[next].clone();
        next += 1;
        for action in machine.enabled(&state) {
            let mut after = state.clone();
            let continues = machine.apply(&mut after, action).1 == Outcome::Continues;
            let fits = after.threads.iter().all(|thread| thread.buffer.len() <= 4);
            if continues && fits && known.insert(after.clone()) {
                states.push(after);
            }
        }
    }
    states
}

/// Cells without a range: atomics count for ever, and only value domains end the search.
#[test]
fn the_first_states_of_counters_without_end_are_covered() {
    let shape = Shape { cells: 2..=2, ..growing() };
    let (mut endless, mut ended) = (0, 0);
    for seed in 70_000..70_600 {
        let mut sketch = shape.generate(seed);
        sketch.cells.iter_mut().for_each(|cell| cell.range = None);
        for (thread, body) in sketch.threads.iter_mut().enumerate() {
            body.push(Stmt::Rmw(Some(0), thread, RmwOp::Add(Expr::Const(1))));
            body.push(Stmt::Store(1 - thread, Expr::Reg(0)));
            *body = vec![Stmt::Loop(std::mem::take(body))];
        }
        let domain = ValueDomain::ALL[seed as usize / DOMAINS.len() % 3];
        let model = MemoryModel::ALL[seed as usize % 3];
        let values = vec![Some(domain); sketch.cells.len()];
        let options = AbstractOptions { values, max_states: Some(20_000), ..in_turn(model)(seed, &sketch) };
        let program = sketch.program();
        let machine = Machine::new(&program, model);
        let states = first_states(&machine, 300);
        endless += usize::from(states.len() >= 300);
        let Ok(cover) = covers::explore(&program, &options, &Budget::unlimited()) else { continue };
        ended += 1;
        for state in &states {
            assert!(cover.covers(state), "seed {seed}, {options:?}:\n{}\n{state:?}", sketch.text());
        }
    }
    assert!(endless > 300 && ended > 450, "{endless} with many states, {ended} searches ended");
}

/// The engine as it is asked on the command line: what it calls violated is real, what it verifies is correct.
#[test]
fn verdicts_agree_with_brute_force() {
    let mut decided = 0;
    for seed in 60_000..61_000 {
        let sketch = Shape::looping().generate(seed);
        let program = sketch.program();
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let machine = Machine::new(&program, model);
            let Some(reach) = oracle::reach(&machine, Bounds { visits: VISITS, buffer: Some(4) }) else { continue };
            let options = AbstractOptions { max_states: Some(STORED), ..AbstractOptions::new(model) };
            let report = abstraction::climb(&program, &options, &Budget::unlimited(), &()).unwrap();
            match report.verdict {
                AbstractVerdict::Verified => assert!(reach.problems.is_empty(), "seed {seed}:\n{}", sketch.text()),
                AbstractVerdict::Violated(witness) => {
                    witness.replay(&machine).unwrap();
                    let possible = !reach.problems.is_empty() || reach.buffer_was_full;
                    assert!(possible, "seed {seed}:\n{}", sketch.text());
                }
                AbstractVerdict::Alarm(_) | AbstractVerdict::Inconclusive(_) => continue,
            }
            decided += 1;
        }
    }
    assert!(decided > 1_800, "{decided} decided");
}
