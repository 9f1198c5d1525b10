//! Several workers find what one finds.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::AtomicUsize as Outside;

use weakspot::sync::atomic::{AtomicUsize, Ordering};
use weakspot::sync::{Arc, Condvar, Mutex};
use weakspot::thread;
use weakspot::{Builder, FailOn, Report};

/// What must not depend on the number of workers.
fn answer(report: &Report) -> String {
    let failure = report.failure.as_ref().map(|failure| (&failure.message, failure.thread));
    let Report { verdict, executions, blocked, events, borderline, exhaustive, schedule, left_out, .. } = report;
    let violations = &report.violations;
    format!(
        "{verdict:?} {executions} {blocked} {events} {borderline} {exhaustive} {schedule:?} {left_out:?} {failure:?} \
         {violations:?}"
    )
}

/// Checks a model with 1 to 4 workers: what one of them says.
#[track_caller]
fn check(least: u64, body: impl Fn() + Send + Sync + Copy + 'static) -> Report {
    check_each(least, || body)
}

/// The same with a model that is made anew each time.
#[track_caller]
fn check_each<B: Fn() + Send + Sync + 'static>(least: u64, body: impl Fn() -> B) -> Report {
    let with = |jobs| Builder { jobs, fail_on: FailOn::Nothing, ..Builder::default() }.check(body());
    let one = with(1);
    assert!(one.executions >= least, "{} executions are too few", one.executions);
    for jobs in 2..=4 {
        assert_eq!(answer(&with(jobs)), answer(&one), "{jobs} workers");
    }
    one
}

fn increments(times: usize) -> (Arc<AtomicUsize>, thread::JoinHandle<()>) {
    let x = Arc::new(AtomicUsize::new(0));
    let other = x.clone();
    let thread = thread::spawn(move || (0..times).for_each(|_| _ = other.fetch_add(1, Ordering::AcqRel)));
    (x, thread)
}

#[test]
fn atomics() {
    let report = check(3_432, || {
        let (x, thread) = increments(7);
        (0..7).for_each(|_| _ = x.fetch_add(1, Ordering::AcqRel));
        thread.join().unwrap();
        assert_eq!(x.load(Ordering::Relaxed), 14);
    });
    assert_eq!(report.executions, 3_432);
}

#[test]
fn loads_and_stores_with_violations() {
    let report = check(1_001, || {
        let cells = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let turn = |cells: Arc<[AtomicUsize; 2]>, me: usize| {
            for round in 1..=3 {
                cells[me].store(round, Ordering::Release);
                cells[1 - me].load(Ordering::Acquire);
                cells[me].store(0, Ordering::Release);
            }
        };
        let shared = cells.clone();
        let thread = thread::spawn(move || turn(shared, 1));
        turn(cells, 0);
        thread.join().unwrap();
    });
    assert!(!report.violations.is_empty() && report.borderline > 0);
}

#[test]
fn a_failure_in_a_late_execution_is_the_one_that_one_worker_finds() {
    let report = check(1_001, || {
        let (x, thread) = increments(7);
        let seen: Vec<usize> = (0..7).map(|_| x.fetch_add(1, Ordering::AcqRel)).collect();
        thread.join().unwrap();
        assert!(seen != [0, 1, 2, 3, 4, 6, 9] && seen != [0, 1, 2, 3, 6, 8, 11], "not so: {seen:?}");
    });
    assert!(report.failure.is_some() && report.executions < 3_432, "{report}");
}

#[test]
fn locks_and_condition_variables() {
    check(1_001, || {
        let pair = Arc::new((Mutex::new(0), Condvar::new()));
        let threads = [1, 2, 3].map(|number| {
            let pair = pair.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    *pair.0.lock().unwrap() += number;
                }
                pair.1.notify_all();
            })
        });
        let mut sum = pair.0.lock().unwrap();
        while *sum < 4 {
            sum = pair.1.wait(sum).unwrap();
        }
        drop(sum);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn storage_of_a_run_is_not_shared() {
    weakspot::lazy_static! {
        static ref COUNT: AtomicUsize = AtomicUsize::new(3);
    }
    weakspot::thread_local! {
        static OWN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }
    let turn = || {
        for _ in 0..7 {
            COUNT.fetch_add(1, Ordering::AcqRel);
            OWN.set(OWN.get() + 1);
        }
        assert_eq!(OWN.get(), 7);
    };
    check(3_432, move || {
        let thread = thread::spawn(turn);
        turn();
        thread.join().unwrap();
        assert_eq!(COUNT.load(Ordering::Relaxed), 17);
    });
}

#[test]
fn what_was_captured_is_used_by_one_worker() {
    let report = check_each(3_432, || {
        let x = std::sync::Arc::new(AtomicUsize::new(5));
        move || {
            let other = x.clone();
            let thread = thread::spawn(move || (0..7).for_each(|_| _ = other.fetch_add(1, Ordering::AcqRel)));
            (0..7).for_each(|_| _ = x.fetch_add(1, Ordering::AcqRel));
            thread.join().unwrap();
            assert_eq!(x.load(Ordering::Relaxed), 19);
        }
    });
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn something_captured_that_only_late_executions_use() {
    let report = check_each(3_432, || {
        let (late, plain) = (AtomicUsize::new(40), std::sync::Mutex::new(()));
        move || {
            let (x, thread) = increments(7);
            let seen: Vec<usize> = (0..7).map(|_| x.fetch_add(1, Ordering::AcqRel)).collect();
            thread.join().unwrap();
            if seen[0] > 3 {
                drop(plain.lock());
                late.fetch_add(1, Ordering::Relaxed);
                assert_eq!(late.load(Ordering::Relaxed), 41);
            }
        }
    });
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn threads_that_only_some_executions_start() {
    let report = check(1_001, || {
        let (x, thread) = increments(7);
        let seen: Vec<usize> = (0..7).map(|_| x.fetch_add(1, Ordering::AcqRel)).collect();
        let more = (seen[0] > 3).then(|| thread::spawn(|| ()));
        thread.join().unwrap();
        more.map(thread::JoinHandle::join);
    });
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn counts_that_late_executions_observe() {
    let report = check(1_001, || {
        let (x, thread) = increments(7);
        let seen: Vec<usize> = (0..7).map(|_| x.fetch_add(1, Ordering::AcqRel)).collect();
        if seen[0] > 3 {
            assert!(Arc::strong_count(&x) <= 2);
        }
        thread.join().unwrap();
    });
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn leaks_are_found_in_the_run_that_leaks() {
    let report = check(1_001, || {
        let (x, thread) = increments(7);
        let seen: Vec<usize> = (0..7).map(|_| x.fetch_add(1, Ordering::AcqRel)).collect();
        let tracked = weakspot::alloc::Track::new(());
        thread.join().unwrap();
        if seen == [0, 1, 2, 3, 6, 8, 11] {
            std::mem::forget(tracked);
        }
    });
    assert!(report.failure.is_some_and(|failure| failure.message.contains("leaked")));
}

#[test]
fn a_model_with_a_limit_is_explored_by_one() {
    let runs = std::sync::Arc::new(Outside::new(0));
    let seen = runs.clone();
    let report = Builder { jobs: 3, max_executions: Some(2_000), ..Builder::default() }.check(move || {
        seen.fetch_add(1, Ordering::Relaxed);
        let (x, thread) = increments(7);
        (0..7).for_each(|_| _ = x.fetch_add(1, Ordering::AcqRel));
        thread.join().unwrap();
    });
    assert_eq!((report.executions, runs.load(Ordering::Relaxed)), (2_000, 2_000));
}
