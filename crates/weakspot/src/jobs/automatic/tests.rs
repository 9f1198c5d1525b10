//! Workers that come by themselves change nothing but the time.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::AtomicUsize as Outside;
use std::time::Duration;

use crate::report::{Bound, Verdict};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex};
use crate::{Builder, FailOn, Report, thread};

thread_local! {
    /// How many workers join, one after the other and soon, if the tests of this OS thread say so.
    pub(super) static WORKERS: Cell<Option<usize>> = const { Cell::new(None) };
}

/// What must not depend on the workers.
fn answer(report: &Report) -> String {
    let failure = report.failure.as_ref().map(|failure| (&failure.message, failure.thread));
    let Report { verdict, executions, blocked, borderline, exhaustive, schedule, left_out, notes, violations, .. } =
        report;
    format!(
        "{verdict:?} {executions} {blocked} {borderline} {exhaustive} {schedule:?} {left_out:?} {notes:?} {failure:?} \
         {violations:?}"
    )
}

/// Checks a model with workers that join after some executions.
pub(in crate::jobs) fn with_workers<B: Fn() + Send + Sync + 'static>(
    builder: &Builder,
    workers: usize,
    body: B,
) -> Report {
    WORKERS.set(Some(workers));
    let report = builder.check(body);
    WORKERS.set(None);
    report
}

/// Checks a model with one worker, and with some that come by themselves: what the one says.
#[track_caller]
fn check<B: Fn() + Send + Sync + 'static>(least: u64, body: impl Fn() -> B) -> Report {
    let builder = Builder { jobs: 1, fail_on: FailOn::Nothing, ..Builder::default() };
    let one = builder.check(body());
    assert!(one.executions >= least, "{} executions are too few", one.executions);
    for workers in 1..=3 {
        let several = with_workers(&Builder { jobs: 0, ..builder.clone() }, workers, body());
        assert_eq!(answer(&several), answer(&one), "{workers} more workers");
        assert_eq!(several.events, one.events, "{workers} more workers");
    }
    one
}

fn increments(times: usize) -> (Arc<AtomicUsize>, thread::JoinHandle<()>) {
    let x = Arc::new(AtomicUsize::new(0));
    let other = x.clone();
    let thread = thread::spawn(move || (0..times).for_each(|_| _ = other.fetch_add(1, Ordering::AcqRel)));
    (x, thread)
}

/// Runs 3432 executions, and gives each what its main thread has seen.
fn seen() -> Vec<usize> {
    let (x, thread) = increments(7);
    let seen = (0..7).map(|_| x.fetch_add(1, Ordering::AcqRel)).collect();
    thread.join().expect("nobody panics");
    seen
}

#[test]
fn nothing_is_explored_again() {
    let runs = std::sync::Arc::new(StdMutex::new(HashMap::<Vec<usize>, usize>::new()));
    let ran = runs.clone();
    let builder = Builder { jobs: 0, ..Builder::default() };
    let body = move || *ran.lock().expect("nobody panics").entry(seen()).or_default() += 1;
    let report = with_workers(&builder, 2, body);
    let runs = runs.lock().expect("nobody panics");
    assert_eq!((report.executions, runs.len()), (3_432, 3_432));
    // Whoever begins with a part of the search runs the model once to do so, and the first execution is run again in the
    // end, to see whether the model repeats itself.
    let all = runs.values().sum::<usize>() as u64;
    assert_eq!(all, report.runs + 1);
    assert!(all < 4_000, "{all} runs");
}

#[test]
fn locks_and_condition_variables() {
    check(1_001, || {
        || {
            let pair = Arc::new((Mutex::new(0), Condvar::new()));
            let threads = [1, 2, 3].map(|number| {
                let pair = pair.clone();
                thread::spawn(move || {
                    for _ in 0..2 {
                        *pair.0.lock().expect("nobody panics") += number;
                    }
                    pair.1.notify_all();
                })
            });
            let mut sum = pair.0.lock().expect("nobody panics");
            while *sum < 4 {
                sum = pair.1.wait(sum).expect("nobody panics");
            }
            drop(sum);
            for thread in threads {
                thread.join().expect("nobody panics");
            }
        }
    });
}

#[test]
fn violations() {
    let report = check(1_001, || {
        || {
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
            thread.join().expect("nobody panics");
        }
    });
    assert!(!report.violations.is_empty());
}

#[test]
fn a_failure_is_the_one_that_one_worker_finds() {
    let panics = check(1_001, || {
        || {
            let seen = seen();
            assert!(seen != [0, 1, 2, 3, 4, 6, 9] && seen != [0, 1, 2, 3, 6, 8, 11], "not so: {seen:?}");
        }
    });
    assert!(panics.failure.is_some(), "{panics}");
    let leaks = check(1_001, || {
        || {
            let tracked = crate::alloc::Track::new(());
            if seen() == [0, 1, 2, 3, 6, 8, 11] {
                std::mem::forget(tracked);
            }
        }
    });
    assert!(leaks.failure.is_some_and(|failure| failure.message.contains("leaked")));
}

#[test]
fn what_executions_share_of_ours_has_one_worker() {
    let report = check(3_432, || {
        let x = std::sync::Arc::new(AtomicUsize::new(5));
        move || {
            let other = x.clone();
            let thread = thread::spawn(move || (0..7).for_each(|_| _ = other.fetch_add(1, Ordering::AcqRel)));
            (0..7).for_each(|_| _ = x.fetch_add(1, Ordering::AcqRel));
            thread.join().expect("nobody panics");
            assert_eq!(x.load(Ordering::Relaxed), 19);
        }
    });
    assert!(report.failure.is_none(), "{report}");
    check(1_001, || {
        || {
            let more = (seen()[0] > 3).then(|| thread::spawn(|| ()));
            more.map(thread::JoinHandle::join);
        }
    });
    check(1_001, || {
        || {
            let (x, thread) = increments(7);
            let seen: Vec<usize> = (0..7).map(|_| x.fetch_add(1, Ordering::AcqRel)).collect();
            if seen[0] > 3 {
                assert!(Arc::strong_count(&x) <= 2);
            }
            thread.join().expect("nobody panics");
        }
    });
}

/// A counter that each execution has for itself as long as they run one after the other.
#[test]
fn a_counter_of_std_that_is_for_one_execution_at_a_time() {
    static DROPPED: Outside = Outside::new(0);
    struct Value;
    impl Drop for Value {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let report = check(3_432, || {
        || {
            DROPPED.store(0, Ordering::Relaxed);
            let value = Value;
            let other = Value;
            let (x, thread) = increments(7);
            (0..7).for_each(|_| _ = x.fetch_add(1, Ordering::AcqRel));
            drop(value);
            thread.join().expect("nobody panics");
            drop(other);
            assert_eq!(DROPPED.load(Ordering::Relaxed), 2);
        }
    });
    assert!(report.failure.is_none() && report.notes.is_empty(), "{report}");
}

#[test]
fn a_table_of_std_that_is_for_one_execution_at_a_time() {
    static ALIVE: StdMutex<Vec<usize>> = StdMutex::new(Vec::new());
    struct Entry;
    impl Drop for Entry {
        fn drop(&mut self) {
            ALIVE.lock().expect("nobody panics").pop();
        }
    }
    let report = check(3_432, || {
        || {
            ALIVE.lock().expect("nobody panics").push(1);
            let entry = Entry;
            let seen = seen();
            let alive = ALIVE.lock().expect("nobody panics").len();
            drop(entry);
            assert_eq!(alive, 1, "{seen:?}");
        }
    });
    assert!(report.failure.is_none() && report.notes.is_empty(), "{report}");
}

/// A thread that fails leaves the others of its execution behind, and with them what they have in the table.
#[test]
fn what_a_false_failure_leaves_behind_is_no_failure() {
    static ALIVE: Outside = Outside::new(0);
    struct Value;
    impl Drop for Value {
        fn drop(&mut self) {
            ALIVE.fetch_sub(1, Ordering::Relaxed);
        }
    }
    let body = || {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        let _value = Value;
        let (x, thread) = increments(7);
        let watcher = thread::spawn(|| assert_eq!(ALIVE.load(Ordering::Relaxed), 1));
        (0..5).for_each(|_| _ = x.fetch_add(1, Ordering::AcqRel));
        thread.join().expect("nobody panics");
        watcher.join().expect("nobody panics");
    };
    let report = with_workers(&Builder { jobs: 0, ..Builder::default() }, 3, body);
    assert!(report.failure.is_none(), "{report}");
    // If they never met, there is nothing to say.
    let is_spoilt = ALIVE.load(Ordering::Relaxed) != 0;
    assert_eq!(report.notes.iter().any(|note| note.contains("WEAKSPOT_JOBS=1")), is_spoilt, "{report}");
}

#[test]
fn numbers_that_a_counter_of_std_gives_out() {
    static NEXT: Outside = Outside::new(0);
    let body = || {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let x = AtomicUsize::new(0);
        x.store(number, Ordering::Relaxed);
        seen();
    };
    let report = with_workers(&Builder { jobs: 0, ..Builder::default() }, 2, body);
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 3_432), "{report}");
    // The same as one worker says of it.
    assert!(report.notes.iter().all(|note| note.starts_with("values differ from run to run")), "{report}");
    assert_eq!(report.notes.len(), 1);
}

#[test]
fn thread_locals_of_std_that_are_made_with_events() {
    thread_local! {
        static MADE: Cell<bool> = const { Cell::new(false) };
    }
    let builder = Builder { jobs: 0, ..Builder::default() };
    let body = || {
        let x = AtomicUsize::new(0);
        if !MADE.replace(true) {
            x.store(1, Ordering::Relaxed);
        }
        seen();
    };
    MADE.set(true);
    let one = Builder { jobs: 1, ..builder.clone() }.check(body);
    let several = with_workers(&builder, 2, body);
    assert_eq!(answer(&several), answer(&one));
    assert!(several.failure.is_none() && several.notes.is_empty(), "{several}");
}

#[test]
fn a_limit_in_time_is_kept() {
    let builder = Builder { jobs: 0, max_duration: Some(Duration::from_millis(50)), ..Builder::default() };
    let body = || {
        let (x, thread) = increments(40);
        (0..40).for_each(|_| _ = x.fetch_add(1, Ordering::AcqRel));
        thread.join().expect("nobody panics");
    };
    let report = with_workers(&builder, 2, body);
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Time), "{report}");
}

#[test]
fn workers_have_the_name_of_the_test() {
    let others = std::sync::Arc::new(StdMutex::new(HashMap::new()));
    let (ran, here) = (others.clone(), std::thread::current().name().map(str::to_owned));
    let body = move || {
        let thread = std::thread::current();
        ran.lock().expect("nobody panics").insert(thread.id(), thread.name().map(str::to_owned));
        seen();
    };
    let report = with_workers(&Builder { jobs: 0, ..Builder::default() }, 3, body);
    assert_eq!(report.executions, 3_432);
    let others = others.lock().expect("nobody panics");
    assert!(others.len() > 1 && others.values().all(|name| *name == here), "{others:?}");
}
