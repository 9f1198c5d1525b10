//! What is left out of the schedules, and what is not run again, changes no answer.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::{Arc as StdArc, Mutex as StdMutex};
use std::time::Instant;

use super::path::Path;
use super::*;
use crate::hint::spin_loop;
use crate::rt;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{Arc, Condvar, Mutex};
use crate::thread;

/// Executions, runs and violations, and what executions have ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Answer {
    executions: u64,
    violations: usize,
    outcomes: BTreeSet<Vec<usize>>,
}

fn explore(model: impl Fn() -> Vec<usize> + Send + Sync + 'static, mut path: Path) -> (Answer, u64) {
    let outcomes = StdArc::new(StdMutex::new(BTreeSet::new()));
    let seen = StdArc::clone(&outcomes);
    let body = move || {
        let outcome = model();
        // Runs that are given up come to their end, too.
        if rt::current().is_some_and(|runtime| !runtime.is_free()) {
            seen.lock().unwrap().insert(outcome);
        }
    };
    let builder = Builder::default();
    let runtime = Runtime::new(builder.model, builder.max_threads, StdArc::new(body));
    let mut search = Search::new(&builder, &runtime, Instant::now());
    search.follow(&mut path);
    let judge = search.finish(Bound::Preemptions(0));
    assert!(judge.report.failure.is_none(), "{:?}", judge.report.failure);
    let outcomes = outcomes.lock().unwrap().clone();
    let answer = Answer { executions: judge.report.executions, violations: judge.found.len(), outcomes };
    (answer, judge.report.runs)
}

fn store_buffering() -> Vec<usize> {
    let cells = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)]);
    let threads: Vec<_> = (0..3)
        .map(|number| {
            let cells = cells.clone();
            thread::spawn(move || {
                cells[number].store(1, Release);
                cells[(number + 1) % 3].load(Acquire)
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

fn lost_updates() -> Vec<usize> {
    let cell = Arc::new(AtomicUsize::new(0));
    let add = |cell: &AtomicUsize, what: usize| {
        let old = cell.load(Relaxed);
        let _ = cell.compare_exchange(old, old + what, AcqRel, Relaxed);
        cell.store(cell.load(Relaxed) * 2, Relaxed);
    };
    let threads: Vec<_> = [1, 10]
        .map(|what| {
            let cell = cell.clone();
            thread::spawn(move || add(&cell, what))
        })
        .into_iter()
        .collect();
    add(&cell, 100);
    for thread in threads {
        thread.join().unwrap();
    }
    vec![cell.load(Relaxed)]
}

fn a_queue_with_a_condition() -> Vec<usize> {
    let shared = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
    let threads: Vec<_> = (0..2)
        .map(|number| {
            let shared = shared.clone();
            thread::spawn(move || {
                for item in 0..2 {
                    shared.0.lock().unwrap().push(number * 10 + item);
                    shared.1.notify_one();
                }
            })
        })
        .collect();
    let mut queue = shared.0.lock().unwrap();
    while queue.len() < 3 {
        queue = shared.1.wait(queue).unwrap();
    }
    let taken = queue.clone();
    drop(queue);
    for thread in threads {
        thread.join().unwrap();
    }
    taken
}

fn a_lock_that_spins() -> Vec<usize> {
    let shared = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let work = |[lock, value]: &[AtomicUsize; 2], factor: usize| {
        while lock.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            spin_loop();
        }
        value.store(value.load(Relaxed) * factor + 1, Relaxed);
        lock.store(0, Release);
    };
    let other = shared.clone();
    let thread = thread::spawn(move || work(&other, 3));
    work(&shared, 5);
    let seen = shared[1].load(SeqCst);
    thread.join().unwrap();
    vec![seen, shared[1].load(SeqCst)]
}

fn two_that_wait() -> Vec<usize> {
    let shared = Arc::new([AtomicUsize::new(0), AtomicUsize::new(1)]);
    let threads: Vec<_> = [3, 5]
        .map(|factor| {
            let shared = shared.clone();
            thread::spawn(move || {
                while shared[0].load(Acquire) < factor {
                    spin_loop();
                }
                shared[1].store(shared[1].load(Relaxed) * factor, Relaxed);
            })
        })
        .into_iter()
        .collect();
    shared[0].store(4, Release);
    let before = shared[1].load(Relaxed);
    shared[0].store(5, Release);
    for thread in threads {
        thread.join().unwrap();
    }
    vec![before, shared[1].load(Relaxed)]
}

/// Addresses are values, too.
fn pointers() -> Vec<usize> {
    let cell = Arc::new(AtomicUsize::new(0));
    let push = |cell: &AtomicUsize, value: usize| {
        let new = Box::into_raw(Box::new((value, 0)));
        let mut head = cell.load(Acquire);
        loop {
            // SAFETY: nobody else has the box before the exchange succeeds.
            unsafe { (*new).1 = head };
            match cell.compare_exchange(head, new.expose_provenance(), AcqRel, Acquire) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
    };
    let other = cell.clone();
    let thread = thread::spawn(move || push(&other, 1));
    push(&cell, 2);
    push(&cell, 3);
    thread.join().unwrap();
    let (mut head, mut values) = (cell.load(Acquire), Vec::new());
    while head != 0 {
        // SAFETY: all threads have ended, and every box is in the list once.
        let (value, next) = *unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<(usize, usize)>(head)) };
        values.push(value);
        head = next;
    }
    values
}

const MODELS: [fn() -> Vec<usize>; 6] =
    [store_buffering, lost_updates, a_queue_with_a_condition, a_lock_that_spins, two_that_wait, pointers];

fn forgetful(most: u32, is_determined: bool) -> Path {
    let mut path = Path::new(most, is_determined);
    path.is_forgetful = true;
    path
}

#[test]
fn going_back_to_snapshots_is_running_from_the_beginning() {
    for (model, most) in MODELS.iter().flat_map(|model| (0..=2).map(move |most| (*model, most))) {
        for is_determined in [false, true] {
            assert_eq!(explore(model, Path::new(most, is_determined)), explore(model, forgetful(most, is_determined)));
        }
    }
}

#[test]
fn equal_traces_are_followed_once_and_nothing_is_lost() {
    let mut left_out = 0;
    for (model, most) in MODELS.iter().flat_map(|model| (0..=2).map(move |most| (*model, most))) {
        let (all, runs) = explore(model, Path::new(most, false));
        let (some, fewer) = explore(model, Path::new(most, true));
        assert_eq!((&some.outcomes, some.violations), (&all.outcomes, all.violations), "{most} preemptions");
        assert!(some.executions <= all.executions && fewer <= runs);
        left_out += all.executions - some.executions;
    }
    assert!(left_out > 0, "there are such schedules");
}

/// A thread that yields may go on all the same. Only a loop has to let others go first.
#[test]
fn a_yield_outside_of_loops_leaves_nothing_out() {
    let model = || {
        let cells = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let other = cells.clone();
        let thread = thread::spawn(move || {
            let first = other[0].load(SeqCst);
            thread::yield_now();
            other[1].store(1, SeqCst);
            first
        });
        let seen = cells[1].load(SeqCst);
        cells[0].store(1, SeqCst);
        vec![thread.join().unwrap(), seen]
    };
    for is_determined in [false, true] {
        let (answer, _) = explore(model, Path::new(1, is_determined));
        assert_eq!(answer.outcomes, BTreeSet::from([vec![0, 0], vec![0, 1], vec![1, 0]]));
    }
}

/// What a thread of a random program does with one of three cells.
#[derive(Clone, Copy)]
enum Act {
    Load,
    Store(usize),
    Add(usize),
    Exchange(usize, usize),
    Fence,
    /// The second cell stands for a lock of its own here.
    Locked(usize),
}

fn random_program(rng: &mut Random) -> Vec<Vec<(usize, Act)>> {
    let act = |rng: &mut Random| match rng.below(8) {
        0..=2 => Act::Load,
        3..=4 => Act::Store(1 + rng.below(3)),
        5 => Act::Add(1),
        6 => Act::Exchange(rng.below(2), 5),
        _ if rng.below(2) == 0 => Act::Fence,
        _ => Act::Locked(7),
    };
    let threads = 2 + rng.below(2);
    (0..threads).map(|_| (0..2 + rng.below(2)).map(|_| (rng.below(3), act(rng))).collect()).collect()
}

fn perform(cells: &[AtomicUsize; 3], lock: &Mutex<usize>, acts: &[(usize, Act)]) -> Vec<usize> {
    let perform = |&(cell, act): &(usize, Act)| match act {
        Act::Load => cells[cell].load(Acquire),
        Act::Store(value) => {
            cells[cell].store(value, Release);
            0
        }
        Act::Add(value) => cells[cell].fetch_add(value, AcqRel),
        Act::Exchange(old, new) => usize::from(cells[cell].compare_exchange(old, new, AcqRel, Acquire).is_ok()),
        Act::Fence => {
            crate::sync::atomic::fence(SeqCst);
            0
        }
        Act::Locked(value) => {
            let mut held = lock.lock().unwrap();
            let seen = cells[cell].load(Relaxed);
            *held = *held * 2 + value;
            *held + seen
        }
    };
    acts.iter().map(perform).collect()
}

fn run(program: &[Vec<(usize, Act)>]) -> Vec<usize> {
    let shared = Arc::new(([const { AtomicUsize::new(0) }; 3], Mutex::new(0)));
    let threads: Vec<_> = program[1..]
        .iter()
        .map(|acts| {
            let (shared, acts) = (shared.clone(), acts.clone());
            thread::spawn(move || perform(&shared.0, &shared.1, &acts))
        })
        .collect();
    let mut seen = perform(&shared.0, &shared.1, &program[0]);
    for thread in threads {
        seen.extend(thread.join().unwrap());
    }
    seen.extend(shared.0.iter().map(|cell| cell.load(Relaxed)));
    seen
}

#[test]
fn random_programs_end_in_the_same_ways() {
    let mut rng = Random(0x5eed);
    for number in 0..60 {
        let program = StdArc::new(random_program(&mut rng));
        for most in 0..=2 {
            let explore_by = |path| {
                let program = StdArc::clone(&program);
                explore(move || run(&program), path)
            };
            let (all, runs) = explore_by(Path::new(most, false));
            assert_eq!(explore_by(forgetful(most, false)), (all.clone(), runs), "program {number}, {most}");
            let (some, fewer) = explore_by(Path::new(most, true));
            assert_eq!((&some.outcomes, some.violations), (&all.outcomes, all.violations), "program {number}, {most}");
            assert!(some.executions <= all.executions && fewer <= runs);
        }
    }
}
