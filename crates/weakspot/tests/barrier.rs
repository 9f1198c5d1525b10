//! Barriers inside and outside a model.
#![allow(clippy::unwrap_used)]

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::Relaxed;
use weakspot::sync::{Arc, Barrier};
use weakspot::{Builder, FailureKind, MemoryModel, Report, Verdict, thread};

fn three_threads() -> Vec<bool> {
    let shared = Arc::new((Barrier::new(3), AtomicUsize::new(0)));
    let arrive = |shared: &(Barrier, AtomicUsize)| {
        shared.1.fetch_add(1, Relaxed);
        let leader = shared.0.wait().is_leader();
        assert_eq!(shared.1.load(Relaxed), 3, "somebody passed before all had arrived");
        leader
    };
    let others = [(); 2].map(|()| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || arrive(&shared))
    });
    let mut leaders = vec![arrive(&shared)];
    leaders.extend(others.map(|thread| thread.join().unwrap()));
    leaders
}

#[test]
fn all_wait_for_the_last_and_anyone_can_be_it() {
    assert_eq!(three_threads().iter().filter(|&&leader| leader).count(), 1);
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let leaders = Arc::clone(&seen);
    let report = Builder::new().check(move || {
        let round = three_threads();
        assert_eq!(round.iter().filter(|&&leader| leader).count(), 1);
        leaders.lock().unwrap().push(round);
    });
    assert!(!report.is_failure(), "{report}");
    for thread in 0..3 {
        assert!(seen.lock().unwrap().iter().any(|round| round[thread]), "thread {thread} never leads");
    }
}

#[test]
fn a_barrier_is_used_again() {
    let report = Builder::new().check(|| {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.0.wait();
            other.1.store(1, Relaxed);
            other.0.wait();
        });
        shared.0.wait();
        shared.0.wait();
        assert_eq!(shared.1.load(Relaxed), 1);
        thread.join().unwrap();
    });
    assert!(!report.is_failure(), "{report}");
}

#[test]
fn too_few_threads_deadlock() {
    let report = Builder::new().check(|| {
        Barrier::new(2).wait();
    });
    assert!(report.is_failure());
    assert!(report.to_string().contains("Barrier::wait"), "{report}");
}

/// Threads that do nothing but wait for each other so many times.
fn rounds(threads: usize, rounds: usize) -> Report {
    Builder::new().check(move || {
        let barrier = Arc::new(Barrier::new(threads));
        let wait = move |barrier: &Barrier| (0..rounds).for_each(|_| _ = barrier.wait());
        let others = (1..threads).map(|_| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || wait(&barrier))
        });
        let others: Vec<_> = others.collect();
        wait(&barrier);
        for thread in others {
            thread.join().unwrap();
        }
    })
}

#[test]
fn only_the_order_of_arrivals_costs_executions() {
    for (threads, times, executions) in [(1, 3, 1), (2, 1, 2), (2, 2, 4), (2, 5, 32), (3, 1, 6), (3, 2, 36), (4, 1, 24)]
    {
        let report = rounds(threads, times);
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
        assert_eq!((report.executions, report.blocked), (executions, 0), "{threads} threads, {times} times: {report}");
    }
}

#[test]
fn what_was_done_before_a_barrier_happens_before_what_comes_after_it() {
    struct Slots([UnsafeCell<usize>; 2]);
    // SAFETY: weakspot runs one thread at a time, and looks for races.
    unsafe impl Sync for Slots {}
    let body = |waits: bool| {
        move || {
            let shared = Arc::new((Slots([const { UnsafeCell::new(0) }; 2]), Barrier::new(2)));
            let turn = move |shared: &(Slots, Barrier), me: usize| {
                for round in 1..3 {
                    // SAFETY: weakspot looks for races.
                    shared.0.0[me].with_mut(|own| unsafe { *own = round });
                    shared.1.wait();
                    // SAFETY: as above.
                    assert_eq!(shared.0.0[1 - me].with(|other| unsafe { *other }), round);
                    if waits {
                        shared.1.wait();
                    }
                }
            };
            let theirs = Arc::clone(&shared);
            let thread = thread::spawn(move || turn(&theirs, 1));
            turn(&shared, 0);
            thread.join().unwrap();
        }
    };
    let report = Builder::new().check(body(true));
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert_eq!(report.executions, 16, "{report}");
    let report = Builder::new().check(body(false));
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Race { .. }), "{report}");
}

#[test]
fn a_barrier_keeps_no_store_in_its_buffer() {
    let body = |waits: bool| {
        move || {
            let shared = Arc::new(([AtomicUsize::new(0), AtomicUsize::new(0)], Barrier::new(2)));
            let turn = move |shared: &([AtomicUsize; 2], Barrier), me: usize| {
                shared.0[me].store(1, Relaxed);
                if waits {
                    shared.1.wait();
                }
                shared.0[1 - me].load(Relaxed)
            };
            let theirs = Arc::clone(&shared);
            let thread = thread::spawn(move || turn(&theirs, 1));
            let mine = turn(&shared, 0);
            assert!(mine + thread.join().unwrap() > 0, "nobody has seen the other");
        }
    };
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let builder = Builder { model, ..Builder::default() };
        assert_eq!(builder.check(body(true)).verdict, Verdict::Safe);
        assert_eq!(builder.check(body(false)).verdict, Verdict::Harmful);
    }
}

#[test]
fn every_search_knows_barriers() {
    let report = Builder::new().check(|| {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let leads = other.0.wait().is_leader();
            other.1.fetch_add(1, Relaxed);
            other.0.wait();
            leads
        });
        let leads = shared.0.wait().is_leader();
        shared.0.wait();
        assert!(leads != thread.join().unwrap() && shared.1.load(Relaxed) == 1);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    // Few preemptions, random schedules and several workers come to the same.
    for builder in [
        Builder { max_preemptions: Some(1), ..Builder::default() },
        Builder { seed: Some(3), max_executions: Some(50), ..Builder::default() },
        Builder { jobs: 2, ..Builder::default() },
    ] {
        let report = builder.check(|| _ = three_threads());
        assert!(!report.is_failure() && report.executions > 0, "{report}");
    }
}
