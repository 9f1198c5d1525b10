//! Loops whose rounds write and come to nothing: they end, and what only many rounds or a later round shows is found.
#![allow(missing_docs, clippy::unwrap_used)]

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use weakspot::sync::{Arc, Mutex};
use weakspot::{Bound, Builder, FailureKind, MemoryModel, Report, Verdict, hint, thread};

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

fn on(model: MemoryModel, body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder { model, max_executions: Some(100_000), ..Builder::default() }.check(body)
}

fn panics_with(report: &Report, text: &str) -> bool {
    report.failure.as_ref().is_some_and(|failure| failure.message.contains(text))
}

/// Takes a lock, looks, gives it back, and tries again.
fn consume(lock: &AtomicBool, flag: &AtomicUsize) {
    loop {
        if lock.compare_exchange(false, true, AcqRel, Acquire).is_ok() {
            let seen = flag.load(Acquire);
            lock.store(false, Release);
            if seen == 1 {
                return;
            }
        }
        hint::spin_loop();
    }
}

fn consumers(count: usize) -> impl Fn() + Send + Sync + 'static {
    move || {
        let (lock, flag) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let consumers: Vec<_> = (0..count)
            .map(|_| {
                let (lock, flag) = (lock.clone(), flag.clone());
                thread::spawn(move || consume(&lock, &flag))
            })
            .collect();
        flag.store(1, Release);
        for consumer in consumers {
            consumer.join().unwrap();
        }
    }
}

#[test]
fn threads_that_hand_a_lock_to_each_other_come_to_an_end() {
    for (count, executions) in [(1, 2), (2, 198)] {
        let report = on(MemoryModel::Tso, consumers(count));
        assert!(report.verdict == Verdict::Safe && report.exhaustive, "{report}");
        assert_eq!(report.executions, executions, "{report}");
    }
}

#[test]
fn threads_that_hand_a_lock_to_each_other_for_ever_are_caught() {
    for count in [1, 2] {
        let report = on(MemoryModel::Tso, move || {
            let (lock, flag) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
            let asked = Arc::new(AtomicBool::new(false));
            let consumers: Vec<_> = (0..count)
                .map(|_| {
                    let (lock, flag) = (lock.clone(), flag.clone());
                    thread::spawn(move || consume(&lock, &flag))
                })
                .collect();
            let theirs = asked.clone();
            let asker = thread::spawn(move || theirs.store(true, SeqCst));
            if asked.load(SeqCst) {
                flag.store(1, Release);
            }
            asker.join().unwrap();
            for consumer in consumers {
                consumer.join().unwrap();
            }
        });
        let kind = report.failure.as_ref().map(|failure| &failure.kind);
        assert!(matches!(kind, Some(FailureKind::Livelock)), "{count}: {report}");
    }
}

/// Each goes round until it has found the other one inside.
#[test]
fn threads_that_get_on_when_they_meet_are_not_caught() {
    fn meet(lock: &AtomicBool, met: &AtomicBool) {
        while !met.load(SeqCst) {
            if lock.swap(true, SeqCst) {
                return met.store(true, SeqCst);
            }
            lock.store(false, SeqCst);
            hint::spin_loop();
        }
    }
    let report = on(MemoryModel::Tso, || {
        let shared = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let theirs = shared.clone();
        let other = thread::spawn(move || meet(&theirs.0, &theirs.1));
        meet(&shared.0, &shared.1);
        other.join().unwrap();
    });
    assert!(report.verdict == Verdict::Safe && report.executions > 0, "{report}");
}

/// However often it is tried, the model can fail with "each time".
fn can_happen_each_time(model: fn(usize)) {
    for times in 1..=4 {
        let report = on(MemoryModel::Sc, move || model(times));
        assert!(panics_with(&report, "each time"), "{times}: {report}");
    }
}

/// A rule that looks at what a thread reads and writes, and not at who sees it, loses this.
#[test]
fn a_lock_that_is_taken_again_and_again_can_be_seen_so() {
    can_happen_each_time(|times| {
        let shared = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || consume(&theirs.0, &theirs.1));
        let seen = (0..times).filter(|_| shared.0.load(SeqCst) && !shared.0.load(SeqCst)).count();
        assert!(seen < times, "each time");
        shared.1.store(1, SeqCst);
        other.join().unwrap();
    });
}

/// A rule that compares a round with the one before, and not memory, loses this.
#[test]
fn a_store_that_others_overwrite_is_made_again_and_again() {
    can_happen_each_time(|times| {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || {
            loop {
                theirs.0.store(1, Relaxed);
                if theirs.1.load(Relaxed) == 1 {
                    break;
                }
                hint::spin_loop();
            }
        });
        let overwritten = |_: &usize| {
            shared.0.store(2, Relaxed);
            shared.0.load(Relaxed) == 1
        };
        assert!((0..times).filter(overwritten).count() < times, "each time");
        shared.1.store(1, Relaxed);
        other.join().unwrap();
    });
}

/// A round of two looks, of which the last is not made where the loop ends: what that one comes after is needed. Where the
/// marker stands does not matter.
#[test]
fn what_only_a_failed_round_comes_after_is_known_afterwards() {
    for first in [false, true] {
        let report = on(MemoryModel::Pso, move || {
            let [x, end, data] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
            let (x2, end2, data2, end3) = (x.clone(), end.clone(), data.clone(), end.clone());
            let reader = thread::spawn(move || {
                let mut seen = 0;
                loop {
                    if first {
                        hint::spin_loop();
                    }
                    if end2.load(Relaxed) == 1 {
                        break;
                    }
                    seen = data2.load(Relaxed);
                    if !first {
                        hint::spin_loop();
                    }
                }
                assert!(x2.load(Relaxed) >= seen, "not yet there");
            });
            let ender = thread::spawn(move || end3.store(1, Relaxed));
            x.store(1, Relaxed);
            data.store(1, Relaxed);
            ender.join().unwrap();
            reader.join().unwrap();
        });
        assert_eq!(report.verdict, Verdict::Harmful, "{first}: {report}");
        assert!(report.to_string().contains("not yet there"), "{report}");
    }
}

/// The store of the second round is what makes the difference: the first one has been seen already, and the last round
/// does not store.
#[test]
fn what_only_a_repeated_round_comes_before_is_known() {
    let report = on(MemoryModel::Tso, || {
        let [x, y, z] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let (x2, y2, z2, y3) = (x.clone(), y.clone(), z.clone(), y.clone());
        let looper = thread::spawn(move || {
            while y2.load(Relaxed) == 0 {
                x2.store(1, Relaxed);
                hint::spin_loop();
            }
            fence(SeqCst);
            z2.load(Relaxed)
        });
        let ender = thread::spawn(move || y3.store(1, Relaxed));
        if x.load(Relaxed) == 1 {
            z.store(1, Relaxed);
            x.load(Relaxed);
        }
        ender.join().unwrap();
        looper.join().unwrap();
    });
    assert!(!report.violations.is_empty(), "{report}");
}

/// A lock that is acquired without `Acquire`: whoever comes after somebody who has changed nothing does not come after
/// the one before.
#[test]
fn a_race_that_a_futile_round_makes_is_found() {
    struct Shared(AtomicBool, AtomicUsize, UnsafeCell<usize>);
    // SAFETY: the cell is used by whoever has the lock.
    unsafe impl Sync for Shared {}
    let report = on(MemoryModel::Tso, || {
        let shared = Arc::new(Shared(AtomicBool::new(false), AtomicUsize::new(0), UnsafeCell::new(0)));
        let visitors: Vec<_> = [false, true]
            .into_iter()
            .map(|is_writer| {
                let shared = shared.clone();
                thread::spawn(move || {
                    loop {
                        let order = if is_writer { Acquire } else { Release };
                        if shared.0.compare_exchange(false, true, order, Relaxed).is_ok() {
                            if is_writer {
                                // SAFETY: nobody else is inside.
                                shared.2.with_mut(|cell| unsafe { *cell += 1 });
                            }
                            let seen = shared.1.load(Relaxed);
                            shared.0.store(false, Release);
                            if is_writer || seen == 1 {
                                return;
                            }
                        }
                        hint::spin_loop();
                    }
                })
            })
            .collect();
        while shared.0.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            hint::spin_loop();
        }
        // SAFETY: nobody else is inside.
        shared.2.with_mut(|cell| unsafe { *cell += 1 });
        shared.0.store(false, Release);
        shared.1.store(1, Relaxed);
        for visitor in visitors {
            visitor.join().unwrap();
        }
    });
    let kind = report.failure.as_ref().map(|failure| &failure.kind);
    assert!(matches!(kind, Some(FailureKind::Race { .. })), "{report}");
}

/// Two threads take turns. Whose turn it is no event tells: a mutex protects it.
#[test]
fn turns_that_a_mutex_protects_are_taken() {
    fn take(turns: &Mutex<usize>, number: usize) {
        let mut taken = 0;
        while taken < 3 {
            let mut turn = turns.lock().unwrap();
            if *turn % 2 == number {
                *turn += 1;
                taken += 1;
            }
            assert!(*turn < 6, "all turns are taken");
            drop(turn);
            thread::yield_now();
        }
    }
    let report = on(MemoryModel::Sc, || {
        let turns = Arc::new(Mutex::new(0));
        let theirs = turns.clone();
        let other = thread::spawn(move || take(&theirs, 1));
        take(&turns, 0);
        other.join().unwrap();
    });
    assert!(panics_with(&report, "all turns are taken"), "{report}");
}

/// The same with a lock of one's own, and a cell.
#[test]
fn turns_in_a_cell_are_taken() {
    struct Turns(AtomicBool, UnsafeCell<usize>);
    // SAFETY: the cell is used by whoever has the lock.
    unsafe impl Sync for Turns {}
    fn take(turns: &Turns, number: usize) {
        let mut taken = 0;
        while taken < 3 {
            if turns.0.compare_exchange(false, true, Acquire, Relaxed).is_ok() {
                turns.1.with_mut(|turn| {
                    // SAFETY: nobody else is inside.
                    let turn = unsafe { &mut *turn };
                    if *turn % 2 == number {
                        *turn += 1;
                        taken += 1;
                    }
                    assert!(*turn < 6, "all turns are taken");
                });
                turns.0.store(false, Release);
            }
            hint::spin_loop();
        }
    }
    let report = on(MemoryModel::Sc, || {
        let turns = Arc::new(Turns(AtomicBool::new(false), UnsafeCell::new(0)));
        let theirs = turns.clone();
        let other = thread::spawn(move || take(&theirs, 1));
        take(&turns, 0);
        other.join().unwrap();
    });
    assert!(panics_with(&report, "all turns are taken"), "{report}");
}

/// Whoever has the lock looks at a cell in a way that could change it, and does not.
#[test]
fn a_cell_that_could_be_changed_and_is_not_makes_no_difference() {
    struct Queue(AtomicBool, UnsafeCell<usize>, AtomicUsize);
    // SAFETY: the cell is used by whoever has the lock.
    unsafe impl Sync for Queue {}
    let report = on(MemoryModel::Tso, || {
        let queue = Arc::new(Queue(AtomicBool::new(false), UnsafeCell::new(0), AtomicUsize::new(0)));
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                thread::spawn(move || {
                    loop {
                        if queue.0.compare_exchange(false, true, AcqRel, Acquire).is_ok() {
                            let new = queue.2.load(Acquire);
                            // SAFETY: nobody else is inside.
                            queue.1.with_mut(|seen| unsafe { *seen = new });
                            queue.0.store(false, Release);
                            if new == 1 {
                                return;
                            }
                        }
                        hint::spin_loop();
                    }
                })
            })
            .collect();
        queue.2.store(1, Release);
        for consumer in consumers {
            consumer.join().unwrap();
        }
    });
    assert!(report.verdict == Verdict::Safe && report.exhaustive, "{report}");
}

/// Each of two threads undoes what the other one has done.
#[test]
fn threads_that_undo_each_others_work_are_named() {
    fn insist(lock: &AtomicBool, value: &AtomicUsize, wanted: usize) {
        loop {
            if lock.compare_exchange(false, true, AcqRel, Acquire).is_ok() {
                let is_so = value.load(Relaxed) == wanted;
                value.store(wanted, Relaxed);
                lock.store(false, Release);
                if is_so {
                    return;
                }
            }
            hint::spin_loop();
        }
    }
    let report = Builder { max_executions: Some(2_000), ..Builder::default() }.check(|| {
        let shared = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
        let theirs = shared.clone();
        let other = thread::spawn(move || insist(&theirs.0, &theirs.1, 1));
        insist(&shared.0, &shared.1, 2);
        other.join().unwrap();
    });
    assert!(matches!(report.verdict, Verdict::Bounded(Bound::Loops | Bound::Executions)), "{report}");
    assert!(report.left_out.iter().any(|left_out| left_out.why.contains("again and again")), "{report}");
}

/// A bounded queue that counts who is inside: both sides try again and again, and each attempt counts up and down.
#[test]
fn attempts_that_count_up_and_down_do_not_come_between_each_other_for_ever() {
    let report = Builder { max_executions: Some(20_000), ..Builder::default() }.check(|| {
        let queue = Arc::new((AtomicUsize::new(0), Mutex::new(Vec::new())));
        let other = queue.clone();
        let producer = thread::spawn(move || {
            for item in 0..2 {
                loop {
                    other.0.fetch_add(1, SeqCst);
                    let mut items = other.1.lock().unwrap();
                    let has_room = items.is_empty();
                    if has_room {
                        items.push(item);
                    }
                    drop(items);
                    other.0.fetch_sub(1, SeqCst);
                    if has_room {
                        break;
                    }
                    thread::yield_now();
                }
            }
        });
        for item in 0..2 {
            loop {
                queue.0.fetch_add(1, SeqCst);
                let taken = queue.1.lock().unwrap().pop();
                queue.0.fetch_sub(1, SeqCst);
                if let Some(taken) = taken {
                    assert_eq!(taken, item);
                    break;
                }
                thread::yield_now();
            }
        }
        producer.join().unwrap();
    });
    assert_ne!(report.verdict, Verdict::Failed, "{report}");
}

/// What somebody changes under a lock that the waiting thread does not use cannot end its waiting.
#[test]
fn what_is_changed_elsewhere_does_not_hide_a_livelock() {
    let report = on(MemoryModel::Sc, || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(0)));
        let (one, other) = (shared.clone(), shared.clone());
        let waits = thread::spawn(move || {
            loop {
                let is_ready = one.0.load(Acquire) == 0;
                one.1.store(0, Release);
                if is_ready {
                    break;
                }
                thread::yield_now();
            }
        });
        let changes = thread::spawn(move || *other.2.lock().unwrap() += 1);
        let _ = shared.0.compare_exchange(0, 1, AcqRel, Acquire);
        waits.join().unwrap();
        changes.join().unwrap();
    });
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Livelock), "{report}");
}

/// Two threads in loops get on together, and the first thing that one of them does then is to take a lock that nobody has
/// used yet.
#[test]
fn a_lock_that_nobody_has_used_is_free_after_waiting_together() {
    let report = Builder { model: MemoryModel::Sc, max_events: 400, max_executions: Some(3_000), ..Builder::default() }
        .check(|| {
            let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(0)));
            let other = shared.clone();
            let looks = thread::spawn(move || {
                loop {
                    if other.0.compare_exchange(0, 1, AcqRel, Acquire).is_ok() {
                        let seen = other.1.load(Acquire);
                        other.0.store(0, Release);
                        if seen == 2 {
                            break;
                        }
                    }
                    thread::yield_now();
                }
            });
            loop {
                shared.1.fetch_add(1, AcqRel);
                let seen = shared.0.load(Acquire);
                shared.1.fetch_sub(1, AcqRel);
                if seen != 0 {
                    break;
                }
                thread::yield_now();
            }
            *shared.2.lock().unwrap() += 1;
            looks.join().unwrap();
        });
    assert_ne!(report.verdict, Verdict::Safe, "{report}");
}

/// One that puts and one that takes can chase each other for ever: each finds that the other was there first. They need
/// a preemption for each round, so with a bound on preemptions every schedule ends.
fn chase(max_preemptions: Option<u32>) -> Report {
    Builder { max_preemptions, max_events: 400, ..Builder::default() }.check(|| {
        let (head, tail) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (head2, tail2) = (head.clone(), tail.clone());
        let taker = thread::spawn(move || {
            loop {
                let ticket = head2.fetch_add(1, SeqCst);
                if tail2.load(SeqCst) > ticket {
                    break;
                }
                thread::yield_now();
            }
        });
        loop {
            let ticket = tail.fetch_add(1, SeqCst);
            if head.load(SeqCst) <= ticket {
                break;
            }
        }
        taker.join().unwrap();
    })
}

#[test]
fn threads_that_chase_each_other_end_with_few_preemptions() {
    let report = chase(None);
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::TooLong), "{report}");
    for most in 0..=3 {
        let report = chase(Some(most));
        assert_eq!(report.verdict, Verdict::Bounded(Bound::Preemptions(most)), "{report}");
    }
}
