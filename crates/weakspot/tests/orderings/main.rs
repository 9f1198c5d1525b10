//! What orderings mean: answers of weakspot beside those of a machine that tries everything, for programs with all
//! orderings, plain memory and locks.
#![allow(missing_docs, clippy::unwrap_used)]

mod machine;
#[path = "../programs/outcomes.rs"]
mod outcomes;
mod program;
mod suggested;

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::{Arc as StdArc, Mutex as StdMutex};

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicU8, fence};
use weakspot::sync::{Arc, Mutex, MutexGuard};
use weakspot::{Builder, FailureKind, MemoryModel, Report, Verdict, thread};

use machine::Everything;
use outcomes::{Outcome, bad_outcome};
use program::{CELLS, LOCATIONS, LOCKS, Operation, Program, Random, Step};

struct Shared {
    atomics: Vec<AtomicU8>,
    cells: Vec<UnsafeCell<u8>>,
    locks: Vec<Mutex<()>>,
}

// SAFETY: weakspot runs one thread at a time; which accesses race is what is tested.
unsafe impl Sync for Shared {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> Self {
        Self {
            atomics: (0..LOCATIONS).map(|_| AtomicU8::new(0)).collect(),
            cells: (0..CELLS).map(|_| UnsafeCell::new(0)).collect(),
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Does an operation: what it has read.
    fn perform<'a>(&'a self, operation: Operation, held: &mut [Option<MutexGuard<'a, ()>>]) -> Option<u8> {
        match operation {
            Operation::Load(location, order) => Some(self.atomics[location].load(order)),
            Operation::Store(location, value, order) => {
                self.atomics[location].store(value, order);
                None
            }
            Operation::Swap(location, value, order) => Some(self.atomics[location].swap(value, order)),
            Operation::Add(location, value, order) => Some(self.atomics[location].fetch_add(value, order)),
            Operation::CompareExchange(location, expected, value, success, failure) => {
                let found = self.atomics[location].compare_exchange(expected, value, success, failure);
                Some(found.unwrap_or_else(|other| other))
            }
            Operation::Fence(order) => {
                fence(order);
                None
            }
            Operation::ReadCell(cell) => {
                // SAFETY: see `Shared`.
                self.cells[cell].with(|value| unsafe { std::ptr::read(value) });
                None
            }
            Operation::WriteCell(cell) => {
                // SAFETY: see `Shared`.
                self.cells[cell].with_mut(|value| unsafe { *value = (*value).wrapping_add(1) });
                None
            }
            Operation::Lock(lock) => {
                held[lock] = Some(self.locks[lock].lock().unwrap());
                None
            }
            Operation::Unlock(lock) => {
                held[lock] = None;
                None
            }
        }
    }

    fn perform_all(&self, steps: &[Step]) -> Vec<u8> {
        let (mut reads, mut last_read) = (Vec::new(), 0);
        let mut held: Vec<_> = (0..LOCKS).map(|_| None).collect();
        for &Step { only_after, operation } in steps {
            if only_after.is_none_or(|value| value == last_read)
                && let Some(value) = self.perform(operation, &mut held)
            {
                last_read = value;
                reads.push(value);
            }
        }
        reads
    }
}

fn run_live(program: &StdArc<Program>, shared: &(impl Deref<Target = Shared> + Clone + Send + 'static)) -> Outcome {
    let threads: Vec<_> = (1..program.len())
        .map(|number| {
            let (shared, program) = (shared.clone(), program.clone());
            thread::spawn(move || shared.perform_all(&program[number]))
        })
        .collect();
    let mut outcome = shared.perform_all(&program[0]);
    for thread in threads {
        outcome.extend(thread.join().unwrap());
    }
    outcome.extend(shared.atomics.iter().map(|atomic| atomic.load(Relaxed)));
    outcome
}

fn expected(sc: &Everything, relaxed: &Everything, bad: Option<&Outcome>) -> Verdict {
    let fails = |all: &Everything| all.race || all.deadlock || bad.is_some_and(|bad| all.outcomes.contains(bad));
    if fails(sc) {
        Verdict::Failed
    } else if fails(relaxed) {
        Verdict::Harmful
    } else if relaxed.traces.is_subset(&sc.traces) {
        Verdict::Safe
    } else {
        Verdict::Benign
    }
}

/// The failure is one of those that there are, and happens again in a replay.
fn check_failure(report: &Report, all: &Everything, body: impl Fn() + Send + Sync + 'static, about: &str) {
    let replay = report.replay().map(str::to_owned);
    let again = Builder { replay, ..Builder::default() }.check(body);
    let failure = again.failure.unwrap_or_else(|| panic!("{about}: {} does not fail", report.replay().unwrap()));
    let is_possible = match failure.kind {
        FailureKind::Race { .. } => all.race,
        FailureKind::Deadlock => all.deadlock,
        FailureKind::Panic { .. } => true,
        _ => false,
    };
    assert!(is_possible, "{about}: {}", failure.message);
}

/// Where the threads have what they share from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Each execution makes it.
    Made,
    /// The closure has captured it.
    Captured,
    /// Each execution makes it, uses it, and moves it into its place.
    Moved,
    /// Each execution makes it and has pointers to the values.
    InPlace,
    /// Each execution takes it out of what was captured, and puts it back.
    Kept,
}

/// One execution.
fn run_from(
    origin: Origin,
    program: &StdArc<Program>,
    captured: &StdArc<Shared>,
    kept: &StdMutex<Option<Shared>>,
) -> Outcome {
    match origin {
        Origin::Made => run_live(program, &Arc::new(Shared::new())),
        Origin::Captured => run_live(program, captured),
        Origin::Moved => {
            let atomics = (0..LOCATIONS).map(|_| AtomicU8::new(9)).collect::<Vec<_>>();
            for atomic in &atomics {
                atomic.store(0, Relaxed);
            }
            let shared = Box::new(Shared { atomics, ..Shared::new() });
            run_live(program, &StdArc::new(*shared))
        }
        Origin::InPlace => {
            let shared = StdArc::new(Shared::new());
            shared.atomics.iter().for_each(|atomic| _ = atomic.as_ptr());
            run_live(program, &shared)
        }
        Origin::Kept => {
            // An execution that fails does not put it back.
            let taken = kept.lock().unwrap().take().unwrap_or_else(Shared::new);
            let shared = StdArc::new(taken);
            let outcome = run_live(program, &shared);
            *kept.lock().unwrap() = StdArc::into_inner(shared);
            outcome
        }
    }
}

fn compare(seed: u64, model: MemoryModel, origin: Origin, jobs: usize) {
    let mut random = Random::new(seed);
    let program = StdArc::new(program::program(&mut random));
    let Some((sc, relaxed)) = machine::run(&program, MemoryModel::Sc).zip(machine::run(&program, model)) else {
        return;
    };
    let bad = bad_outcome(|limit| random.below(limit), &sc.outcomes, &relaxed.outcomes);
    let seen: StdArc<StdMutex<BTreeSet<Outcome>>> = StdArc::default();
    let body = {
        let (program, bad, seen) = (program.clone(), bad.clone(), seen.clone());
        let captured = StdArc::new(Shared::new());
        let kept = StdArc::new(StdMutex::new(Some(Shared::new())));
        move || {
            let outcome = run_from(origin, &program, &captured, &kept);
            seen.lock().unwrap().insert(outcome.clone());
            assert!(bad.as_ref() != Some(&outcome), "the bad outcome");
        }
    };
    let report = Builder { model, jobs, ..Builder::default() }.check(body.clone());
    let about = format!("seed {seed}, {model:?}, {origin:?}, bad {bad:?}, {program:#?}");
    assert_eq!(report.verdict, expected(&sc, &relaxed, bad.as_ref()), "{about}\n{report}");
    match report.verdict {
        Verdict::Failed => check_failure(&report, &sc, body, &about),
        Verdict::Harmful => check_failure(&report, &relaxed, body, &about),
        _ => {
            assert_eq!(report.executions, sc.traces.len() as u64, "{about}");
            let seen = seen.lock().unwrap();
            assert!(seen.is_superset(&sc.outcomes), "{about}: not all outcomes were seen");
            assert!(seen.is_subset(&relaxed.outcomes), "{about}: outcomes were seen that there are not");
        }
    }
}

#[test]
fn answers_are_those_of_a_machine_that_tries_everything() {
    for seed in 0..800 {
        compare(seed, MemoryModel::Tso, Origin::Made, 1);
        compare(seed, MemoryModel::Pso, Origin::Made, 1);
    }
}

#[test]
fn it_does_not_matter_where_atomics_come_from() {
    const ORIGINS: [Origin; 4] = [Origin::Captured, Origin::Moved, Origin::InPlace, Origin::Kept];
    for seed in 1_000..1_400 {
        let model = if seed % 8 < 4 { MemoryModel::Tso } else { MemoryModel::Pso };
        let origin = ORIGINS[seed as usize % 4];
        // Workers would take it away from each other.
        let jobs = if origin == Origin::Kept { 1 } else { 1 + seed as usize % 3 };
        compare(seed, model, origin, jobs);
    }
}

fn on_pso(body: impl Fn() + Send + Sync + 'static) -> Verdict {
    Builder { model: MemoryModel::Pso, ..Builder::default() }.check(body).verdict
}

/// Both write the same location; the first one is overtaken by a store that the other thread has seen.
fn overwritten(order: Ordering) {
    let shared = Arc::new((AtomicU8::new(0), AtomicU8::new(0)));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.0.store(1, Relaxed);
        other.1.store(1, Relaxed);
    });
    let seen = shared.1.load(Acquire);
    shared.0.store(2, order);
    thread.join().unwrap();
    assert!(seen == 0 || shared.0.load(Relaxed) == 2, "an old store came late");
}

#[test]
fn a_store_may_come_after_a_seqcst_one_that_has_seen_what_followed_it() {
    for order in [Relaxed, Release, SeqCst] {
        assert_eq!(on_pso(move || overwritten(order)), Verdict::Harmful, "{order:?}");
    }
}

/// C11 has this message arrive, and so do processors with a store-store fence.
#[test]
fn a_relaxed_atomic_behind_a_release_fence_publishes() {
    let message = |fenced: bool| {
        let shared = Arc::new((AtomicU8::new(0), AtomicU8::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.0.store(1, Relaxed);
            if fenced {
                fence(Release);
            }
            other.1.fetch_add(1, Relaxed);
        });
        if shared.1.load(Acquire) == 1 {
            assert_eq!(shared.0.load(Relaxed), 1, "the message is not there");
        }
        thread.join().unwrap();
    };
    assert_eq!(on_pso(move || message(true)), Verdict::Safe);
    assert_eq!(on_pso(move || message(false)), Verdict::Harmful);
}
