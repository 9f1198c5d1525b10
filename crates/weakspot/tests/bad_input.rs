//! Models that are used wrongly: the message says what is wrong, and where.
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use weakspot::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, fence};
use weakspot::sync::{Arc, Condvar, Mutex, mpsc};
use weakspot::{Bound, Builder, FailureKind, MAX_THREADS, Report, Verdict, thread};

fn check(test: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(test)
}

#[track_caller]
fn says(report: &Report, parts: &[&str]) {
    let text = report.to_string();
    assert_eq!(report.verdict, Verdict::Failed, "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in the report:\n{text}");
    }
}

#[test]
fn outside_a_model_everything_is_the_standard_librarys() {
    let shared = Arc::new((AtomicUsize::new(0), Mutex::new(0)));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.0.fetch_add(1, SeqCst);
        *other.1.lock().unwrap() += 1;
    });
    thread.join().unwrap();
    assert_eq!((shared.0.load(SeqCst), *shared.1.lock().unwrap()), (1, 1));
}

#[test]
fn a_model_in_a_model_is_refused_where_it_is_started() {
    let line = line!() + 1;
    let report = check(|| weakspot::model(|| {}));
    says(&report, &["a model inside a model", &format!("bad_input.rs:{line}:")]);
}

#[test]
fn a_thread_that_is_not_joined_is_explored_nevertheless() {
    let report = check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let other = flag.clone();
        thread::spawn(move || assert!(!other.load(Relaxed), "found"));
        flag.store(true, Relaxed);
    });
    says(&report, &["thread 1 panicked: found"]);
}

#[test]
fn a_loop_on_what_weakspot_does_not_see_is_named() {
    let line = line!() + 6;
    let report = check(|| {
        let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let other = flag.clone();
        let thread = thread::spawn(move || other.store(true, SeqCst));
        while !flag.load(SeqCst) {
            thread::yield_now();
        }
        thread.join().unwrap();
    });
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::TooLong), "{report}");
    says(&report, &["anything that weakspot can see", "of `std`", &format!("bad_input.rs:{line}:")]);
}

#[test]
fn a_loop_that_waits_for_what_weakspot_does_not_see_is_no_livelock() {
    // What a loop does may depend on a static of `std`. Nothing that weakspot sees changes any more when the loop goes on.
    let line = line!() + 9;
    let body = |ends: bool| {
        move || {
            let hidden = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let sets = hidden.clone();
            let thread = thread::spawn(move || sets.store(ends, SeqCst));
            let flag = AtomicBool::new(false);
            while !flag.load(SeqCst) {
                flag.store(hidden.load(SeqCst), SeqCst);
                thread::yield_now();
            }
            thread.join().unwrap();
        }
    };
    let report = check(body(true));
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{report}");
    assert!(report.to_string().contains(&format!("bad_input.rs:{line}:")), "{report}");
    assert!(report.to_string().contains("something that weakspot does not see"), "{report}");
    let mut sampled = Builder::default();
    (sampled.seed, sampled.max_executions) = (Some(1), Some(50));
    assert!(!sampled.check(body(true)).is_failure());
    let report = check(body(false));
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Livelock), "{report}");
}

#[test]
#[allow(invalid_atomic_ordering)]
fn an_ordering_that_an_operation_cannot_have_is_an_error_where_it_is_used() {
    type Misuse = (&'static str, fn(&AtomicUsize));
    let line = line!() + 2;
    let misuses: [Misuse; 6] = [
        ("a release load", |atomic| _ = atomic.load(Release)),
        ("an acquire store", |atomic| atomic.store(1, Acquire)),
        ("an acquire-release store", |atomic| atomic.store(1, AcqRel)),
        ("a release failure ordering", |atomic| _ = atomic.compare_exchange(0, 1, AcqRel, Release)),
        ("a release load", |atomic| _ = atomic.fetch_update(AcqRel, Release, Some)),
        ("a relaxed fence", |_| fence(Relaxed)),
    ];
    for ((what, misuse), line) in misuses.into_iter().zip(line..) {
        let report = check(move || misuse(&AtomicUsize::new(0)));
        says(&report, &[&format!("there is no such thing as {what}"), &format!("bad_input.rs:{line}:")]);
    }
}

#[test]
fn a_model_has_no_more_threads_than_there_may_be_whatever_the_builder_says() {
    let builder = Builder { max_threads: usize::MAX, ..Builder::default() };
    let report = builder.check(|| (0..MAX_THREADS).for_each(|_| _ = thread::spawn(|| ())));
    says(&report, &[&format!("this would be the thread number {} of the model", MAX_THREADS + 1)]);
    let report = builder.check(|| (1..MAX_THREADS).for_each(|_| _ = thread::spawn(|| ())));
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn any_number_of_rounds_may_be_asked_for() {
    let report = Builder { max_spins: u32::MAX, ..Builder::default() }.check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let other = flag.clone();
        let thread = thread::spawn(move || other.store(true, Release));
        let _ = (0..4).any(|_| {
            thread::yield_now();
            flag.load(Acquire)
        });
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn an_endless_loop_is_shown_once() {
    let report = check(|| {
        let never = AtomicBool::new(false);
        while !never.load(Acquire) {}
    });
    says(&report, &["goes round a loop", "hint::spin_loop()", "(80 times)"]);
}

/// However often they do the same, and also if others do something meanwhile.
#[test]
fn a_long_loop_with_an_end_is_no_endless_one() {
    const ROUNDS: u32 = 2_500;
    let alone: [fn(); 5] = [
        || {
            let cell = AtomicU32::new(0);
            (0..ROUNDS).for_each(|value| cell.store(value, Relaxed));
        },
        || {
            let cell = AtomicU32::new(0);
            (0..ROUNDS).for_each(|_| assert_eq!(cell.load(Relaxed), 0));
        },
        || {
            let count = Mutex::new(0);
            (0..ROUNDS).for_each(|_| *count.lock().unwrap() += 1);
        },
        || {
            let slots: Vec<_> = (0..ROUNDS).map(|_| AtomicU32::new(0)).collect();
            for slot in &slots {
                slot.store(1, Relaxed);
            }
            assert!(slots.iter().all(|slot| slot.load(Relaxed) == 1));
        },
        || {
            let (sender, receiver) = mpsc::channel();
            (0..ROUNDS).for_each(|value| sender.send(value).unwrap());
            assert!(receiver.try_iter().eq(0..ROUNDS));
        },
    ];
    for body in alone {
        let report = check(body);
        assert_eq!((report.verdict, report.executions), (Verdict::Safe, 1), "{report}");
    }
    let some = || Builder { max_executions: Some(100), ..Builder::default() };
    let looks_as_often_each_time = some().check(|| {
        let cell = Arc::new(AtomicU32::new(0));
        let other = Arc::clone(&cell);
        let thread = thread::spawn(move || (0..2 * ROUNDS).filter(|_| other.load(Relaxed) == 0).count());
        cell.store(1, Relaxed);
        thread.join().unwrap();
    });
    let looks_at_another_each_time = some().check(|| {
        let slots: Arc<Vec<_>> = Arc::new((0..ROUNDS).map(|_| AtomicU32::new(0)).collect());
        let other = Arc::clone(&slots);
        let thread = thread::spawn(move || other.iter().position(|slot| slot.load(Relaxed) != 0));
        for slot in slots.iter().rev() {
            slot.store(1, Relaxed);
        }
        thread.join().unwrap();
    });
    for report in [looks_as_often_each_time, looks_at_another_each_time] {
        assert_eq!((report.verdict, report.executions), (Verdict::Bounded(Bound::Executions), 100), "{report}");
    }
}

/// That there are too many orders of events is no failure.
#[test]
fn too_many_orders_end_a_search() {
    let report = Builder { max_executions: Some(3_000), ..Builder::default() }.check(|| {
        let count = Arc::new(Mutex::new(0));
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || (0..4_000).for_each(|_| *other.lock().unwrap() += 1));
        (0..4_000).for_each(|_| *count.lock().unwrap() += 1);
        thread.join().unwrap();
    });
    assert!(matches!(report.verdict, Verdict::Bounded(Bound::Memory | Bound::Executions)), "{report}");
}

#[test]
fn the_panic_that_leaves_a_thread_is_reported_and_not_one_of_its_destructors() {
    struct Noisy;
    impl Drop for Noisy {
        fn drop(&mut self) {
            assert!(catch_unwind(|| panic!("on the way out")).is_err());
        }
    }
    let report = check(|| {
        let _noisy = Noisy;
        panic!("the reason");
    });
    says(&report, &["thread 0 panicked: the reason"]);
}

#[test]
fn poison_is_handed_on_and_can_be_cleared() {
    let report = check(|| {
        let mutex = Arc::new(Mutex::new(0));
        let other = mutex.clone();
        let thread = thread::spawn(move || {
            let work = AssertUnwindSafe(|| {
                let _guard = other.lock().unwrap();
                panic!("while it is held");
            });
            assert!(catch_unwind(work).is_err());
        });
        thread.join().unwrap();
        assert!(mutex.is_poisoned() && mutex.lock().is_err());
        mutex.clear_poison();
        assert_eq!(*mutex.lock().unwrap(), 0);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

/// Runs one of the tests below in a process of its own: what it printed. They do nothing otherwise.
fn in_a_process(test: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--test-threads=1"])
        .env("WEAKSPOT_TEST_CRASHES", "1")
        .output()
        .unwrap();
    assert!(!output.status.success(), "{test} was to end its process");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_wanted() -> bool {
    std::env::var_os("WEAKSPOT_TEST_CRASHES").is_some()
}

#[test]
fn crashes_by_a_panic_in_a_destructor() {
    struct Noisy;
    impl Drop for Noisy {
        fn drop(&mut self) {
            panic!("on the way out");
        }
    }
    if is_wanted() {
        check(|| {
            let _noisy = Noisy;
            panic!("the reason");
        });
    }
}

#[test]
fn panics_while_panicking_are_both_told_before_the_process_ends() {
    let text = in_a_process("crashes_by_a_panic_in_a_destructor");
    for part in ["crashes_by_a_panic_in_a_destructor", "thread 0 of the model", "the reason", "on the way out"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

fn without_end(depth: usize) -> usize {
    let some = std::hint::black_box([depth; 64]);
    if depth == usize::MAX { depth } else { without_end(depth + 1) + some[depth % 64] }
}

#[test]
fn crashes_by_a_stack_that_is_too_small() {
    if is_wanted() {
        check(|| {
            thread::spawn(|| without_end(0)).join().unwrap();
        });
    }
}

#[test]
fn a_stack_overflow_names_the_test_and_the_thread() {
    let text = in_a_process("crashes_by_a_stack_that_is_too_small");
    let said = "crashes_by_a_stack_that_is_too_small: thread 1 of the model has overflowed its stack";
    assert!(text.contains(said), "{text}");
}

/// Store buffering. If nobody sees the other one, memory is used that is not there.
#[test]
fn crashes_by_memory_that_is_gone() {
    if !is_wanted() {
        return;
    }
    check(|| {
        let shared = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other[0].store(1, Release);
            other[1].load(Acquire)
        });
        shared[1].store(1, Release);
        let seen = shared[0].load(Acquire);
        if seen + thread.join().unwrap() == 0 {
            // SAFETY: it is not safe: the process is to crash where a delayed store leads here.
            unsafe { std::ptr::without_provenance::<usize>(64).read_volatile() };
        }
    });
}

#[cfg(unix)]
#[test]
fn a_crash_of_a_relaxed_execution_says_which_test_and_why() {
    let text = in_a_process("crashes_by_memory_that_is_gone");
    for part in ["the test crashes_by_memory_that_is_gone crashes when a store is delayed", "bad_input.rs:"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn random_schedules_also_differ_in_when_a_thread_begins() {
    // What the thread does first is no event, but the other one sees it.
    let seen = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let all = seen.clone();
    let mut builder = Builder::default();
    (builder.seed, builder.max_executions) = (Some(1), Some(100));
    let report = builder.check(move || {
        let hidden = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let theirs = hidden.clone();
        let thread = thread::spawn(move || theirs.store(true, SeqCst));
        AtomicBool::new(false).load(SeqCst);
        all.lock().unwrap().insert(hidden.load(SeqCst));
        thread.join().unwrap();
    });
    assert!(!report.is_failure(), "{report}");
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[test]
fn a_test_that_looks_at_a_std_count_is_run_schedule_by_schedule() {
    let body = |fails: bool| {
        move || {
            let counted = std::sync::Arc::new(());
            let other = counted.clone();
            let cells = Arc::new([(); 3].map(|()| AtomicUsize::new(0)));
            let (cells2, cells3) = (cells.clone(), cells.clone());
            let one = thread::spawn(move || {
                cells2[0].store(1, SeqCst);
                cells2[1].store(1, SeqCst);
                drop(other);
            });
            let two = thread::spawn(move || {
                cells3[0].load(SeqCst);
                // No event says which of these it is.
                if std::sync::Arc::strong_count(&counted) > 1 {
                    cells3[2].load(SeqCst);
                } else {
                    cells3[2].store(1, SeqCst);
                }
                assert!(cells3[1].load(SeqCst) == 1 || !fails, "the other thread was late");
            });
            one.join().unwrap();
            two.join().unwrap();
        }
    };
    let report = Builder::default().check(body(false));
    assert!(matches!(report.verdict, Verdict::Bounded(Bound::Preemptions(_))), "{report}");
    assert!(report.to_string().contains("schedule by schedule"), "{report}");
    let report = Builder::default().check(body(true));
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(report.to_string().contains("the other thread was late"), "{report}");
}

/// Three threads send so much to a fourth, which looks again and again whether all is there, that there is no end to the ways
/// to do it.
fn sending(ends_round: fn(&AtomicBool)) {
    const THREADS: usize = 3;
    const ITEMS: usize = 16;
    let queue = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
    let send = |_| {
        let queue = queue.clone();
        thread::spawn(move || {
            for _ in 0..ITEMS {
                *queue.0.lock().unwrap() += 1;
                queue.1.fetch_add(1, SeqCst);
            }
        })
    };
    let senders: Vec<_> = (0..THREADS).map(send).collect();
    let take = || std::mem::take(&mut *queue.0.lock().unwrap());
    let mut received = take();
    let looked = AtomicBool::new(false);
    while queue.1.fetch_add(0, SeqCst) < THREADS * ITEMS {
        ends_round(&looked);
        thread::yield_now();
        received += take();
    }
    for sender in senders {
        sender.join().unwrap();
    }
    assert_eq!(received + take(), THREADS * ITEMS);
}

#[test]
fn the_limit_of_time_also_ends_a_search_that_finds_no_execution() {
    let limit = Builder { max_duration: Some(Duration::from_millis(200)), ..Builder::default() };
    let report = limit.check(|| sending(|looked| looked.store(true, Relaxed)));
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Time), "{report}");
}

#[test]
fn rounds_of_a_loop_that_write_do_not_keep_executions_from_being_found() {
    let report = Builder { max_executions: Some(20), ..Builder::default() }.check(|| sending(|_| {}));
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Executions), "{report}");
    assert!(report.executions > 0, "{report}");
}

#[test]
fn the_limit_of_time_is_looked_at_more_often_if_executions_are_long() {
    let limit = Builder { max_duration: Some(Duration::from_millis(100)), ..Builder::default() };
    let report = limit.check(|| {
        std::thread::sleep(Duration::from_millis(20));
        let counter = Arc::new(AtomicUsize::new(0));
        let count = |_| {
            let counter = counter.clone();
            thread::spawn(move || (0..4).for_each(|_| _ = counter.fetch_add(1, SeqCst)))
        };
        let threads: Vec<_> = (0..3).map(count).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Time), "{report}");
    assert!(report.executions < 64, "{report}");
}

#[test]
fn the_limit_of_executions_also_counts_what_comes_to_nothing() {
    // Ten threads that all wait for the same: before the second execution is found, hundreds of thousands of explorations
    // come to nothing.
    let report = Builder { max_executions: Some(3), ..Builder::default() }.check(|| {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let wait = |_| {
            let shared = shared.clone();
            thread::spawn(move || drop(shared.1.wait_while(shared.0.lock().unwrap(), |set| !*set).unwrap()))
        };
        let threads: Vec<_> = (0..10).map(wait).collect();
        *shared.0.lock().unwrap() = true;
        shared.1.notify_all();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Executions), "{report}");
    assert!(report.executions > 0 && report.runs < 20_000, "{report}");
}
