//! How fast and how lean the explicit engine is: `cargo bench -p weakspot-verify --bench explicit`.
//!
//! | column | bar |
//! |---|---|
//! | states/s with one job on Dekker-sized models | at least 1.5 million |
//! | bytes/state, up to 4 threads and 8 locations | at most 64 |
//! | jobs 2 against jobs 1, over 5 million states | at least 1.6 |
//!
//! A first argument that is not an option picks the models whose name contains it.

#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::task::Budget;
use weakspot_testkit::sketch::{Expr, Sketch, SketchCell, Stmt};
use weakspot_verify::explicit::{self, ExplicitOptions, Outcomes};

struct Model {
    name: &'static str,
    program: Program,
    options: ExplicitOptions,
}

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("{:<34} {:>11} {:>12} {:>9} {:>11} {:>8}", "model", "states", "transitions", "s", "states/s", "B/state");
    for model in models().iter().filter(|model| model.name.contains(&wanted)) {
        measure(model);
    }
    println!();
    println!("{:<34} {:>11} {:>9} {:>9} {:>7}", "model", "states", "1 job s", "2 jobs s", "ratio");
    for model in large_models().iter().filter(|model| model.name.contains(&wanted)) {
        measure(model);
        if std::env::var("CMP").is_ok() {
            compare_jobs(model);
        }
    }
}

fn run(model: &Model, jobs: usize) -> (Outcomes, Duration) {
    let options = ExplicitOptions { jobs, ..model.options.clone() };
    let start = Instant::now();
    let outcomes = explicit::outcomes(&model.program, &options, &Budget::unlimited(), &());
    (outcomes.expect("the engine has no internal errors"), start.elapsed())
}

/// Repeats small models until a second has passed.
fn measure(model: &Model) {
    let (outcomes, mut total) = run(model, 1);
    let mut runs = 1;
    while total < Duration::from_secs(1) {
        total += run(model, 1).1;
        runs += 1;
    }
    let seconds = total.as_secs_f64() / f64::from(runs);
    println!(
        "{:<34} {:>11} {:>12} {seconds:>9.4} {:>11.0} {:>8.1}",
        model.name,
        outcomes.states,
        outcomes.transitions,
        outcomes.states as f64 / seconds,
        outcomes.stored_bytes as f64 / outcomes.states as f64,
    );
}

fn compare_jobs(model: &Model) {
    let best = |jobs| (0..2).map(|_| run(model, jobs).1).min().unwrap_or_default().as_secs_f64();
    let (one, two) = (best(1), best(2));
    println!("{:<34} {:>11} {one:>9.3} {two:>9.3} {:>7.2}", model.name, "", one / two);
}

fn unreduced(name: &'static str, sketch: &Sketch, model: MemoryModel, buffer: usize) -> Model {
    let options =
        ExplicitOptions { reduce: false, buffer, max_states: Some(30_000_000), ..ExplicitOptions::new(model) };
    Model { name, program: sketch.program(), options }
}

fn reduced(name: &'static str, sketch: &Sketch, model: MemoryModel, buffer: usize) -> Model {
    let options = ExplicitOptions { buffer, ..ExplicitOptions::new(model) };
    Model { name, program: sketch.program(), options }
}

fn models() -> Vec<Model> {
    let fenced = dekker(2, true);
    let unfenced = dekker(2, false);
    vec![
        unreduced("dekker sc", &unfenced, MemoryModel::Sc, 8),
        unreduced("dekker tso fenced", &fenced, MemoryModel::Tso, 8),
        unreduced("dekker tso", &unfenced, MemoryModel::Tso, 8),
        unreduced("dekker pso", &unfenced, MemoryModel::Pso, 4),
        reduced("dekker tso reduced", &unfenced, MemoryModel::Tso, 8),
        reduced("dekker tso fenced reduced", &fenced, MemoryModel::Tso, 8),
    ]
}

fn large_models() -> Vec<Model> {
    vec![
        unreduced("dekker 3 tso", &dekker(3, false), MemoryModel::Tso, 3),
        unreduced("counters 3 sc", &counters(3), MemoryModel::Sc, 4),
        unreduced("counters 3 tso 1", &counters(3), MemoryModel::Tso, 1),
        unreduced("counters 3 tso 2", &counters(3), MemoryModel::Tso, 2),
        unreduced("dekker 3 tso 6", &dekker(3, false), MemoryModel::Tso, 6),
        unreduced("dekker 4 tso 3", &dekker(4, false), MemoryModel::Tso, 3),
    ]
}

const fn free_cell() -> SketchCell {
    SketchCell { init: 0, range: None }
}

/// `flag[me] = 1; while flag[next] == 1 { if turn != me { flag[me] = 0; while turn != me { } flag[me] = 1; } }
/// critical { } turn = next; flag[me] = 0;` for ever; each thread looks at the next one only.
fn dekker(threads: usize, fenced: bool) -> Sketch {
    let turn = threads;
    let body = |me: usize| {
        let next = (me + 1) % threads;
        let (flag, other) = (me, next);
        let me = me as i64;
        let raise = |body: &mut Vec<Stmt>| {
            body.push(Stmt::Store(flag, Expr::Const(1)));
            if fenced {
                body.push(Stmt::Fence(FenceKind::Full));
            }
        };
        let mut yielding = vec![
            Stmt::Store(flag, Expr::Const(0)),
            Stmt::Load(0, turn),
            Stmt::While(Expr::Ne(0, me), vec![Stmt::Load(0, turn)]),
        ];
        raise(&mut yielding);
        let mut round = Vec::new();
        raise(&mut round);
        round.push(Stmt::Load(0, other));
        round.push(Stmt::While(
            Expr::Eq(0, 1),
            vec![Stmt::Load(0, turn), Stmt::If(Expr::Ne(0, me), yielding, Vec::new()), Stmt::Load(0, other)],
        ));
        round.push(Stmt::Critical(Vec::new()));
        round.push(Stmt::Store(turn, Expr::Const(next as i64)));
        round.push(Stmt::Store(flag, Expr::Const(0)));
        vec![Stmt::Loop(round)]
    };
    sketch(threads + 1, (0..threads).map(body).collect())
}

/// Each thread reads its neighbour's cell and writes a successor of it to its own, for ever.
fn counters(threads: usize) -> Sketch {
    let body = |me: usize| {
        let next = (me + 1) % threads;
        let round = vec![
            Stmt::Load(0, next),
            Stmt::Store(me, Expr::Next(0)),
            Stmt::Load(1, (me + 2) % threads),
            Stmt::Store(threads + me, Expr::Reg(1)),
        ];
        vec![Stmt::Loop(round)]
    };
    sketch(threads * 2, (0..threads).map(body).collect())
}

fn sketch(cells: usize, threads: Vec<Vec<Stmt>>) -> Sketch {
    Sketch { cells: vec![free_cell(); cells], mutexes: 0, condvars: 0, registers: 2, threads, forbidden: Vec::new() }
}
