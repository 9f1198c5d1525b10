//! Random programs, once as text for the interpreter and once as live code: the same number of executions, the same
//! answer to whether store buffers matter, and the same impact.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc as Shared;

use weakspot::sync::Arc;
use weakspot::sync::atomic::{AtomicI64, Ordering, fence};
use weakspot::{Builder, FailOn, MemoryModel, Verdict, rt, thread};
use weakspot_check::{CheckOptions, Engine};
use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_model::ir::{FenceKind, Program, RmwOp};
use weakspot_model::local::{self, Advance, Pause};
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;

/// What the threads of a program share.
type Cells = Arc<Vec<AtomicI64>>;

fn atomic(cell: &AtomicI64, op: RmwOp<i64>, drains_all: bool) -> i64 {
    let order = if drains_all { Ordering::SeqCst } else { Ordering::Relaxed };
    match op {
        RmwOp::Cas { old, new } => i64::from(cell.compare_exchange(old, new, order, Ordering::Relaxed).is_ok()),
        RmwOp::CompareExchange { old, new } => {
            cell.compare_exchange(old, new, order, Ordering::Relaxed).unwrap_or_else(|found| found)
        }
        RmwOp::Swap(value) => cell.swap(value, order),
        RmwOp::Add(delta) => cell.fetch_add(delta, order),
        RmwOp::Or(bits) => cell.fetch_or(bits, order),
        RmwOp::And(bits) => cell.fetch_and(bits, order),
    }
}

/// Runs one thread of a program with the real primitives: its registers at the end.
fn run_thread(program: &Program, number: usize, cells: &Cells) -> Vec<i64> {
    let code = &program.threads[number];
    let (mut state, mut advance) = local::start(code, &program.locations);
    loop {
        let Ok(Advance::Paused { pause, .. }) = advance else { panic!("an assertion of the program fails") };
        let result = match pause {
            Pause::Load { loc } => cells[loc.0 as usize].load(Ordering::Relaxed),
            Pause::Store { loc, value } => {
                cells[loc.0 as usize].store(value, Ordering::Relaxed);
                0
            }
            Pause::Rmw { loc, op, drains_all } => atomic(&cells[loc.0 as usize], op, drains_all),
            Pause::Fence(FenceKind::StoreStore) => {
                fence(Ordering::Release);
                0
            }
            Pause::Fence(_) => {
                fence(Ordering::SeqCst);
                0
            }
            Pause::Choose { lo, hi } => lo + i64::from(rt::choose((hi - lo + 1) as u32)),
            _ => return state.registers,
        };
        advance = local::resume(code, &program.locations, &mut state, result);
    }
}

fn run(program: &Shared<Program>) {
    let cells: Cells = Arc::new(program.locations.iter().map(|location| AtomicI64::new(location.init)).collect());
    let threads: Vec<_> = (0..program.threads.len())
        .map(|number| {
            let (program, cells) = (program.clone(), cells.clone());
            thread::spawn(move || run_thread(&program, number, &cells))
        })
        .collect();
    let registers: Vec<Vec<i64>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    run_final(program, &cells, &registers);
}

/// Runs the `final` block of a program.
fn run_final(program: &Program, cells: &Cells, registers: &[Vec<i64>]) {
    let Some(block) = &program.final_block else { return };
    let (mut state, mut advance) = local::start(block, &program.locations);
    loop {
        let Ok(Advance::Paused { pause, .. }) = advance else { panic!("the final assertion fails") };
        let result = match pause {
            Pause::Load { loc } => cells[loc.0 as usize].load(Ordering::Relaxed),
            Pause::ThreadRegister { thread, register } => registers[thread.index()][register.index()],
            _ => return,
        };
        advance = local::resume(block, &program.locations, &mut state, result);
    }
}

fn kind(model: MemoryModel) -> MonitorKind {
    if model == MemoryModel::Pso { MonitorKind::Operational(model) } else { MonitorKind::Sober }
}

/// Atomics and fences order stores: two of three programs have none, so that store buffers matter often enough.
fn shape(seed: u64) -> Shape {
    let ordered = seed.is_multiple_of(3);
    Shape {
        threads: 2..=3,
        statements: 1..=4,
        cells: 1..=2,
        choose: true,
        atomics: ordered,
        full_fences: ordered,
        store_fences: ordered,
        ..Shape::straight_line()
    }
}

#[test]
fn live_code_has_the_executions_and_the_violations_of_its_text() {
    let (mut compared, mut borderline) = (0, 0);
    for seed in 0..400 {
        let model = if seed % 2 == 0 { MemoryModel::Tso } else { MemoryModel::Pso };
        let sketch = shape(seed).generate(seed);
        let program = Shared::new(sketch.program());
        let options = ExploreOptions { all: true, monitor: Some(kind(model)), ..ExploreOptions::default() };
        let expected = explore(&program, &options, &Budget::unlimited(), &());
        if expected.executions > 3_000 {
            continue;
        }
        let body = program.clone();
        let builder = Builder { model, fail_on: FailOn::Nothing, ..Builder::default() };
        let report = builder.check(move || run(&body));
        assert!(report.exhaustive, "{report}\n{}", sketch.text());
        assert_eq!(report.executions, expected.executions, "seed {seed}: {report}\n{}", sketch.text());
        let found = report.verdict == Verdict::Unknown;
        assert_eq!(found, !expected.violations.is_empty(), "seed {seed}: {report}\n{}", sketch.text());
        compared += 1;
        borderline += u32::from(found);
    }
    assert!(compared > 300 && borderline > 15, "{compared} compared, {borderline} borderline");
}

#[test]
fn live_code_comes_to_the_harm_of_its_text() {
    let (mut harmful, mut benign) = (0, 0);
    for seed in 0..5_000 {
        let model = if seed % 2 == 0 { MemoryModel::Tso } else { MemoryModel::Pso };
        let shape = Shape { assert: true, choose: false, threads: 2..=2, statements: 2..=4, ..shape(seed) };
        let sketch = shape.generate(10_000 + seed);
        let program = sketch.program();
        let options = CheckOptions { engine: Some(Engine::Attack), ..CheckOptions::new(model) };
        let expected = weakspot_check::check(&program, &options, &Budget::unlimited(), &()).unwrap().verdict;
        let program = Shared::new(program);
        let body = program.clone();
        let report = Builder { model, ..Builder::default() }.check(move || run(&body));
        let agrees = match (&expected, report.verdict) {
            (weakspot_check::Verdict::Safe, Verdict::Safe) | (weakspot_check::Verdict::Error(_), Verdict::Failed) => {
                true
            }
            (weakspot_check::Verdict::Unsafe(weakspot_check::Impact::Harmful(_)), Verdict::Harmful) => {
                harmful += 1;
                true
            }
            // Live code is not looked at for ever.
            (weakspot_check::Verdict::Unsafe(weakspot_check::Impact::Benign), Verdict::Benign | Verdict::Unknown) => {
                benign += u32::from(report.verdict == Verdict::Benign);
                true
            }
            _ => false,
        };
        assert!(agrees, "seed {seed} on {model:?}: {expected:?}\n{report}\n{}", sketch.text());
    }
    assert!(harmful > 0 && benign > 100, "{harmful} harmful, {benign} benign");
}
