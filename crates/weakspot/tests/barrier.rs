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
    let alone = Builder::new().check(|| _ = Barrier::new(2).wait());
    assert!(matches!(alone.failure.as_ref().unwrap().kind, FailureKind::Deadlock), "{alone}");
    let text = alone.to_string();
    assert!(text.contains("waits in Barrier::wait, at") && text.contains(": 1 of 2 threads has come"), "{text}");
    // Whether somebody asks for the leader or not: two of three.
    for asks in [false, true] {
        let report = Builder::new().check(move || {
            let barriers = Arc::new([Barrier::new(3), Barrier::new(3)]);
            let others = [0, 0, 1].map(|which| {
                let barriers = Arc::clone(&barriers);
                thread::spawn(move || {
                    let met = barriers[0].wait();
                    assert!(!asks || !met.is_leader() || which < 2);
                    barriers[which].wait();
                })
            });
            for thread in others {
                thread.join().unwrap();
            }
        });
        assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Deadlock), "{report}");
        let text = report.to_string();
        assert_eq!(text.matches(": 2 of 3 threads have come").count(), 2, "{text}");
        assert_eq!(text.matches(": 1 of 3 threads has come").count(), 1, "{text}");
    }
}

/// Threads that do nothing but wait for each other so many times.
fn rounds(threads: usize, rounds: usize, ask: bool) -> Report {
    Builder::new().check(move || {
        let barrier = Arc::new(Barrier::new(threads));
        let wait = move |barrier: &Barrier| {
            for _ in 0..rounds {
                let met = barrier.wait();
                if ask {
                    met.is_leader();
                }
            }
        };
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
fn nobody_is_first_as_long_as_nobody_asks() {
    for (threads, times) in [(1, 3), (2, 1), (2, 5), (3, 1), (3, 4), (6, 2)] {
        let report = rounds(threads, times, false);
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
        assert_eq!((report.executions, report.blocked), (1, 0), "{threads} threads, {times} times: {report}");
    }
}

#[test]
fn only_the_order_of_arrivals_costs_executions() {
    for (threads, times, executions) in [(1, 3, 1), (2, 1, 2), (2, 2, 4), (2, 5, 32), (3, 1, 6), (3, 2, 36), (4, 1, 24)]
    {
        let report = rounds(threads, times, true);
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
        assert_eq!((report.executions, report.blocked), (executions, 0), "{threads} threads, {times} times: {report}");
    }
}

#[test]
fn who_shows_what_a_barrier_says_asks_too() {
    let report = Builder::new().check(|| {
        let barrier = Arc::new(Barrier::new(2));
        let other = Arc::clone(&barrier);
        let thread = thread::spawn(move || format!("{:?}", other.wait()));
        let both = [format!("{:?}", barrier.wait()), thread.join().unwrap()];
        for is_leader in ["BarrierWaitResult { is_leader: true }", "BarrierWaitResult { is_leader: false }"] {
            assert!(both.iter().any(|one| one == is_leader), "{both:?}");
        }
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 2), "{report}");
}

#[test]
fn whoever_comes_first_meets_if_there_are_more_than_it_is_for() {
    // Four threads, two of which meet each time: any two.
    let seen = Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let all = Arc::clone(&seen);
    let report = Builder::new().check(move || {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0)));
        let others = [0, 1, 2, 3].map(|me| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.0.wait();
                shared.1.fetch_or(1 << me, Relaxed)
            })
        });
        let met = others.map(|thread| thread.join().unwrap());
        all.lock().unwrap().insert(met);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    let seen = seen.lock().unwrap();
    let first_two = |met: &[usize; 4]| (0..4).filter(|&one| met[one].count_ones() < 2).collect::<Vec<_>>();
    let pairs: std::collections::BTreeSet<_> = seen.iter().map(first_two).collect();
    assert_eq!(pairs.len(), 6, "{pairs:?}");
}

#[test]
fn some_meet_at_one_barrier_and_all_at_another_one() {
    let report = Builder::new().check(|| {
        let barriers = Arc::new([Barrier::new(3), Barrier::new(2)]);
        let others = [1, 2].map(|_| {
            let barriers = Arc::clone(&barriers);
            thread::spawn(move || {
                barriers[1].wait();
                barriers[0].wait();
                barriers[1].wait();
            })
        });
        barriers[0].wait();
        for thread in others {
            thread.join().unwrap();
        }
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 4), "{report}");
}

#[test]
fn a_barrier_that_is_freed_while_somebody_waits_is_found() {
    // Whoever comes back first frees it.
    struct Alone(*const Barrier);
    // SAFETY: this is what the test is about; weakspot gives memory back when the execution is over.
    unsafe impl Send for Alone {}
    impl Alone {
        fn wait(&self) {
            // SAFETY: it is not freed before both have come.
            unsafe { &*self.0 }.wait();
        }
    }
    let body = |waits: bool| {
        move || {
            let barrier = Box::into_raw(Box::new(Barrier::new(2)));
            let other = Alone(barrier);
            let thread = thread::spawn(move || other.wait());
            Alone(barrier).wait();
            if waits {
                thread.join().unwrap();
            }
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(barrier) });
        }
    };
    let report = Builder::new().check(body(true));
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 1), "{report}");
    let report = Builder::new().check(body(false));
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(report.to_string().contains("freed"), "{report}");
}

#[test]
fn a_violation_beside_a_barrier_is_found_and_replayed() {
    let body = || {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.0.wait();
            other.2.store(1, Relaxed);
            let seen = other.1.load(Relaxed);
            other.0.wait();
            seen
        });
        shared.0.wait();
        shared.1.store(1, Relaxed);
        let seen = shared.2.load(Relaxed);
        shared.0.wait();
        assert!(seen + thread.join().unwrap() > 0, "nobody has seen anything");
    };
    let report = Builder::new().check(body);
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    let text = report.to_string();
    // One line for each that comes, and one where it goes on.
    assert_eq!(text.matches("Barrier::wait: all are there").count(), 4, "{text}");
    let replay = report.replay().unwrap().to_owned();
    assert!(replay.contains("~m3"), "who comes to barriers is a part of it: {replay}");
    let again = Builder { replay: Some(replay), ..Builder::default() }.check(body);
    assert!(again.to_string().contains("nobody has seen anything"), "{again}");
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
    assert_eq!(report.executions, 1, "{report}");
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
