//! A report does not depend on how many workers there were.

use std::cell::Cell;
use std::sync::Arc as Shared;

use weakspot_testkit::generate::Shape;
use weakspot_testkit::rng::Rng;
use weakspot_testkit::sketch::Sketch;

use super::automatic::tests::with_workers;
use crate::replay::Which;
use crate::report::Bound;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Mutex};
use crate::thread;
use crate::{Builder, FailOn, Failure, FailureKind, MemoryModel, Report};

#[path = "../../tests/programs/loops.rs"]
mod loops;
#[path = "../../tests/programs/mod.rs"]
mod programs;

use loops::Loops;

thread_local! {
    /// Executions that one worker explores before there are others, if the tests of this OS thread say so.
    pub(super) static FEW: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Executions of the largest model.
const MOST: u64 = 2_000;

/// All of a report but how long it took, how often the closure was run, and which model it was. How much is covered is a
/// sum of many parts, whose order makes a difference to its last digits.
fn all_of(report: &mut Report) -> String {
    report.which = Which::FIRST;
    if let Some(Failure { kind: FailureKind::Panic { backtrace }, .. }) = &mut report.failure {
        *backtrace = None;
    }
    let text = report.to_string();
    let text = text.rsplit_once(", in ").map_or(text.as_str(), |(text, _)| text);
    let Report { verdict, executions, blocked, events, borderline, exhaustive, schedule, violations, .. } = &*report;
    let covered = report.exhaustive.then(|| format!("{:.6}", report.covered));
    format!(
        "{text}\n{verdict:?} {executions} {blocked} {events} {borderline} {exhaustive} {schedule:?} {covered:?} \
         {violations:#?}"
    )
}

/// What was compared.
#[derive(Debug, Default)]
struct Compared {
    models: u32,
    failures: u32,
    blocked: u32,
    violations: u32,
    left_out: u32,
}

impl Compared {
    /// Explores a program with several numbers of workers.
    fn compare(&mut self, sketch: &Sketch, model: MemoryModel, what: &str) {
        let program = Shared::new(sketch.program());
        let text = format!("{what}: {}", sketch.text());
        self.compare_all(model, &text, || {
            let program = program.clone();
            move || _ = programs::run(&program)
        });
    }

    fn compare_all<B: Fn() + Send + Sync + 'static>(&mut self, model: MemoryModel, what: &str, body: impl Fn() -> B) {
        let builder = Builder { model, max_events: 300, fail_on: FailOn::Nothing, ..Builder::default() };
        let few = Builder { max_executions: Some(MOST), ..builder.clone() }.check(body());
        if few.bound == Some(Bound::Executions) {
            return;
        }
        let with = |jobs| Builder { jobs, ..builder.clone() }.check(body());
        let mut one = with(1);
        FEW.set(Some(1));
        let several = [with(2), with(3), with_workers(&Builder { jobs: 0, ..builder.clone() }, 2, body())];
        FEW.set(None);
        let expected = all_of(&mut one);
        for (mut report, jobs) in several.into_iter().zip([2, 3, 0]) {
            let found = all_of(&mut report);
            assert!(found == expected, "{what}\n{jobs} workers: {found}\n1 worker: {expected}");
        }
        self.models += 1;
        self.failures += u32::from(one.failure.is_some());
        self.blocked += u32::from(one.blocked > 0);
        self.violations += u32::from(!one.violations.is_empty());
        self.left_out += u32::from(!one.left_out.is_empty());
    }
}

fn model_of(seed: u64) -> MemoryModel {
    if seed.is_multiple_of(2) { MemoryModel::Tso } else { MemoryModel::Pso }
}

#[test]
fn programs_without_loops() {
    let mut compared = Compared::default();
    for seed in 0..150 {
        let shape = Shape {
            threads: 2..=if seed % 4 == 0 { 3 } else { 2 },
            statements: 4..=8,
            cells: 2..=2,
            assert: seed % 5 == 0,
            atomics: seed % 3 == 0,
            full_fences: seed % 3 == 0,
            ..Shape::straight_line()
        };
        compared.compare(&shape.generate(seed), model_of(seed), &format!("seed {seed}"));
    }
    assert!(compared.models > 100 && compared.violations > 30 && compared.failures > 5, "{compared:?}");
}

#[test]
fn programs_with_loops() {
    let mut compared = Compared::default();
    for loops in [Loops::Looking, Loops::Locking, Loops::All] {
        for seed in 0..120 {
            let sketch = loops::sketch(seed, 2..=3, loops);
            compared.compare(&sketch, model_of(seed), &format!("{loops:?}, seed {seed}"));
        }
    }
    assert!(
        compared.models > 250 && compared.blocked > 30 && compared.violations > 25 && compared.failures > 80,
        "{compared:?}"
    );
}

/// What a thread does.
#[derive(Debug, Clone)]
enum Deed {
    Store(usize, usize),
    Load(usize),
    /// One after the other, with a lock.
    Locked(usize, Vec<Deed>),
    /// The same, if the lock is free.
    IfFree(usize, Vec<Deed>),
}

impl Deed {
    fn random(rng: &mut Rng, depth: u32) -> Self {
        let some = |rng: &mut Rng| (0..rng.within(0..=2)).map(|_| Self::random(rng, depth + 1)).collect();
        match rng.below(if depth == 0 { 8 } else { 5 }) {
            0 | 1 => Self::Load(rng.below(2)),
            2..=4 => Self::Store(rng.below(2), rng.below(3)),
            5 => Self::IfFree(0, some(rng)),
            _ => Self::Locked(rng.below(2), some(rng)),
        }
    }

    fn run(&self, cells: &[AtomicUsize; 2], locks: &[Mutex<()>; 2]) {
        match self {
            Self::Store(cell, value) => cells[*cell].store(*value, Ordering::Relaxed),
            Self::Load(cell) => _ = cells[*cell].load(Ordering::Relaxed),
            Self::Locked(lock, deeds) => {
                let _held = locks[*lock].lock();
                run_all(deeds, cells, locks);
            }
            Self::IfFree(lock, deeds) => {
                if let Ok(_held) = locks[*lock].try_lock() {
                    run_all(deeds, cells, locks);
                }
            }
        }
    }
}

fn run_all(deeds: &[Deed], cells: &[AtomicUsize; 2], locks: &[Mutex<()>; 2]) {
    for deed in deeds {
        deed.run(cells, locks);
    }
}

#[test]
fn programs_with_locks() {
    let mut compared = Compared::default();
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let threads: Vec<Vec<Deed>> = (0..rng.within(2..=3))
            .map(|number: usize| {
                let before = [Deed::Store(number % 2, 1), Deed::Load((number + 1) % 2)];
                let after = (0..rng.within(1..=3)).map(|_| Deed::random(&mut rng, 0));
                before.into_iter().chain(after).collect()
            })
            .collect();
        compared.compare_all(model_of(seed), &format!("seed {seed}: {threads:#?}"), || {
            let threads = threads.clone();
            move || {
                let shared = Arc::new(([AtomicUsize::new(0), AtomicUsize::new(0)], [Mutex::new(()), Mutex::new(())]));
                let start = |deeds: &Vec<Deed>| {
                    let (deeds, shared) = (deeds.clone(), shared.clone());
                    thread::spawn(move || run_all(&deeds, &shared.0, &shared.1))
                };
                let threads: Vec<_> = threads.iter().map(start).collect();
                for thread in threads {
                    thread.join().expect("nobody panics");
                }
            }
        });
    }
    assert!(compared.models > 100 && compared.violations > 30, "{compared:?}");
}
