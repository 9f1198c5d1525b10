//! What goes wrong in a model is found, named and placed.
#![allow(missing_docs, clippy::unwrap_used)]

use weakspot::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weakspot::sync::{Arc, Condvar, Mutex, OnceLock, RwLock};
use weakspot::{Builder, FailOn, FailureKind, MemoryModel, Report, Verdict, hint, thread};

use Ordering::{Acquire, Relaxed, Release, SeqCst};

fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(body)
}

/// Fails, and the report says all of this.
#[track_caller]
fn fails(body: impl Fn() + Send + Sync + 'static, says: &[&str]) -> Report {
    let report = check(body);
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    let text = report.to_string();
    for what in says {
        assert!(text.contains(what), "no `{what}` in\n{text}");
    }
    report
}

#[test]
fn a_panic_of_a_thread_is_reported_with_its_place_and_the_interleaving() {
    let line = line!() + 6;
    let report = fails(
        || {
            let x = Arc::new(AtomicUsize::new(0));
            let other = x.clone();
            let thread = thread::Builder::new().name("reader".to_owned()).spawn(move || {
                assert_eq!(other.load(SeqCst), 0, "it has changed");
            });
            x.store(7, SeqCst);
            thread.unwrap().join().unwrap();
        },
        &[
            "thread 1 (reader) panicked",
            "it has changed",
            "thread 1 (reader)",
            "store 7",
            "load: 7",
            "WEAKSPOT_REPLAY=sc:",
        ],
    );
    assert!(report.to_string().contains(&format!("failures.rs:{line}")), "{report}");
}

#[test]
fn a_failing_schedule_can_be_replayed() {
    let body = || {
        let x = Arc::new(AtomicUsize::new(0));
        let other = x.clone();
        let thread = thread::spawn(move || other.store(other.load(SeqCst) + 1, SeqCst));
        x.store(x.load(SeqCst) + 1, SeqCst);
        thread.join().unwrap();
        assert_eq!(x.load(SeqCst), 2, "an update is lost");
    };
    let schedule = check(body).replay().unwrap().to_owned();
    let again = Builder { replay: Some(schedule), ..Builder::default() }.check(body);
    assert_eq!(again.verdict, Verdict::Failed);
    assert!(again.to_string().contains("an update is lost"), "{again}");
    for wrong in ["nonsense", "sc:0", "sc:7", "sc:q", "sc:0.0.0.0.0.0.0.0.0"] {
        let report = Builder { replay: Some(wrong.to_owned()), ..Builder::default() }.check(body);
        assert!(report.to_string().contains("schedule"), "{wrong}: {report}");
    }
}

#[test]
fn a_harmful_relaxed_execution_can_be_replayed() {
    let body = || {
        let (x, y) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (x2, y2) = (x.clone(), y.clone());
        let thread = thread::spawn(move || {
            x2.store(1, Release);
            y2.load(Acquire)
        });
        y.store(1, Release);
        let mine = x.load(Acquire);
        assert!(mine + thread.join().unwrap() > 0, "both have read 0");
    };
    let report = check(body);
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    assert!(report.to_string().contains("reaches memory"), "{report}");
    let schedule = report.replay().unwrap().to_owned();
    assert!(schedule.starts_with("tso:"));
    let again = Builder { replay: Some(schedule), ..Builder::default() }.check(body);
    assert!(again.to_string().contains("both have read 0"), "{again}");
}

#[test]
fn whether_a_benign_violation_fails_a_test_is_a_choice() {
    let body = || {
        let (x, y) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (x2, y2) = (x.clone(), y.clone());
        let thread = thread::spawn(move || {
            x2.store(1, Release);
            y2.load(Acquire)
        });
        y.store(1, Release);
        x.load(Acquire);
        thread.join().unwrap();
    };
    let report = check(body);
    assert_eq!(report.verdict, Verdict::Benign, "{report}");
    assert!(!report.is_failure() && report.has_notes());
    assert!(Builder { fail_on: FailOn::Unsafe, ..Builder::default() }.check(body).is_failure());
    let unwatched = Builder { monitor: false, ..Builder::default() }.check(body);
    assert_eq!(unwatched.verdict, Verdict::Safe);
    assert!(unwatched.to_string().contains("what TSO adds was not looked at"), "{unwatched}");
}

#[test]
fn a_deadlock_says_who_waits_for_what() {
    let report = fails(
        || {
            let (one, two) = (Arc::new(Mutex::new(())), Arc::new(Mutex::new(())));
            let (one2, two2) = (one.clone(), two.clone());
            let thread = thread::spawn(move || {
                let _two = two2.lock().unwrap();
                let _one = one2.lock().unwrap();
            });
            let guard = one.lock().unwrap();
            drop(two.lock().unwrap());
            drop(guard);
            thread.join().unwrap();
        },
        &["deadlock", "thread 0 (main) waits for a mutex that thread 1 holds", "that thread 0 (main) holds"],
    );
    assert!(matches!(report.failure.unwrap().kind, FailureKind::Deadlock));
}

#[test]
fn a_lost_wake_up_is_a_deadlock() {
    fails(
        || {
            let shared = Arc::new((Mutex::new(()), Condvar::new(), AtomicBool::new(false)));
            let other = shared.clone();
            let thread = thread::spawn(move || {
                other.2.store(true, SeqCst);
                other.1.notify_one();
            });
            let mut guard = shared.0.lock().unwrap();
            while !shared.2.load(SeqCst) {
                guard = shared.1.wait(guard).unwrap();
            }
            drop(guard);
            thread.join().unwrap();
        },
        &["deadlock", "waits for a notification", "Condvar::wait: does not return"],
    );
}

/// A wait that does not return is a part of the execution: without it, the others could not have got the mutex.
#[test]
fn a_wait_that_does_not_return_is_shown_where_it_begins() {
    for is_notified_before in [false, true] {
        let report = fails(
            move || {
                let shared = Arc::new((Mutex::new(0), Condvar::new()));
                if is_notified_before {
                    shared.1.notify_all();
                }
                let other = shared.clone();
                let guard = shared.0.lock().unwrap();
                let thread = thread::spawn(move || *other.0.lock().unwrap() += 1);
                drop(shared.1.wait(guard));
                thread.join().unwrap();
            },
            &["deadlock", "waits for a notification"],
        );
        let timeline = report.timeline.unwrap();
        let at = |thread: u32, text: &str| {
            let is_it = |moment: &weakspot::Moment| moment.thread == thread && moment.text.contains(text);
            timeline.moments.iter().position(is_it).unwrap_or_else(|| panic!("no `{text}` in {timeline}"))
        };
        let wait = at(0, "Condvar::wait: does not return");
        assert!(at(0, "spawn") < wait && wait < at(1, "Mutex::lock"), "{timeline}");
        assert!(!is_notified_before || at(0, "Condvar::notify_all") < wait, "{timeline}");
    }
}

#[test]
fn a_loop_that_waits_for_ever_is_a_livelock() {
    let report = fails(
        || {
            let flag = Arc::new(AtomicBool::new(false));
            let other = flag.clone();
            let thread = thread::spawn(move || {
                while !other.load(Acquire) {
                    hint::spin_loop();
                }
            });
            thread.join().unwrap();
        },
        &["livelock", "waits in a loop"],
    );
    assert!(matches!(report.failure.unwrap().kind, FailureKind::Livelock));
}

#[test]
fn a_loop_without_a_marker_that_looks_at_two_places_is_named() {
    let report = fails(
        || {
            let flags = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
            let other = flags.clone();
            let thread = thread::spawn(move || while !other.0.load(Acquire) && !other.1.load(Acquire) {});
            flags.1.store(true, Release);
            thread.join().unwrap();
        },
        &["spin_loop"],
    );
    assert!(matches!(report.failure.unwrap().kind, FailureKind::TooLong));
}

#[test]
fn a_loop_without_a_marker_is_named_with_the_remedy() {
    let line = line!() + 5;
    let report = fails(
        || {
            let flag = Arc::new(AtomicBool::new(false));
            let other = flag.clone();
            let thread = thread::spawn(move || while !other.load(Acquire) {});
            flag.store(true, Release);
            thread.join().unwrap();
        },
        &["spin_loop"],
    );
    assert!(report.to_string().contains(&format!("failures.rs:{line}")), "{report}");
    assert!(matches!(report.failure.unwrap().kind, FailureKind::TooLong));
}

#[test]
fn an_execution_without_end_stops_at_the_limit_on_events() {
    let builder = Builder { max_events: 500, ..Builder::default() };
    let report = builder.check(|| {
        let x = AtomicUsize::new(0);
        loop {
            x.fetch_add(1, Relaxed);
        }
    });
    assert_eq!(report.verdict, Verdict::Failed);
    assert!(report.to_string().contains("500 events"), "{report}");
}

#[test]
fn a_model_that_does_not_repeat_itself_is_found_out() {
    use std::sync::atomic::AtomicUsize as Outside;
    static RUNS: Outside = Outside::new(0);
    let report = fails(
        || {
            let x = Arc::new(AtomicUsize::new(0));
            let other = x.clone();
            let thread = thread::spawn(move || other.store(1, SeqCst));
            if RUNS.fetch_add(1, Relaxed).is_multiple_of(2) {
                x.load(SeqCst);
            } else {
                x.store(2, SeqCst);
            }
            thread.join().unwrap();
        },
        &["not deterministic", "was a load", "about to store"],
    );
    assert!(matches!(report.failure.unwrap().kind, FailureKind::NotDeterministic));
}

#[test]
fn more_threads_than_the_limit_are_refused() {
    let builder = Builder { max_threads: 3, ..Builder::default() };
    let report = builder.check(|| {
        for _ in 0..5 {
            thread::spawn(|| ());
        }
    });
    assert!(report.to_string().contains("max_threads"), "{report}");
}

#[test]
fn threads_that_nobody_joins_are_run_to_their_end() {
    let report = check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let other = x.clone();
        thread::spawn(move || assert_eq!(other.load(SeqCst), 0, "seen too late"));
        x.store(1, SeqCst);
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(report.to_string().contains("seen too late"));
}

#[test]
#[should_panic(expected = "a model inside a model")]
fn a_model_inside_a_model_is_refused() {
    weakspot::model(|| weakspot::model(|| ()));
}

#[test]
#[should_panic(expected = "an execution fails, on every processor")]
fn model_panics_with_the_report() {
    Builder::default().model(|| panic!("no"));
}

#[test]
fn panics_that_are_caught_are_no_failures_and_poison_mutexes() {
    let report = check(|| {
        let lock = Arc::new(Mutex::new(0));
        let other = lock.clone();
        let thread = thread::spawn(move || {
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _guard = other.lock();
                panic!("while holding it");
            }));
            assert!(caught.is_err());
        });
        drop(lock.lock());
        thread.join().unwrap();
        assert!(lock.is_poisoned());
        assert!(lock.lock().is_err());
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

/// Set in the process that is to overflow a stack.
#[cfg(unix)]
const OVERFLOWS: &str = "WEAKSPOT_TEST_OVERFLOWS";

#[cfg(unix)]
fn recurse(depth: usize) -> usize {
    let frame = std::hint::black_box([depth; 64]);
    if depth == usize::MAX { 0 } else { recurse(depth + 1) + frame[depth % 64] }
}

#[cfg(unix)]
#[test]
fn a_stack_overflow_names_the_thread() {
    if std::env::var_os(OVERFLOWS).is_some() {
        let name = std::env::var(OVERFLOWS).ok().filter(|name| !name.is_empty());
        check(move || {
            let builder = thread::Builder::new();
            let builder = if let Some(name) = name.clone() { builder.name(name) } else { builder };
            builder.spawn(|| _ = recurse(0)).unwrap().join().unwrap();
        });
        return;
    }
    for (name, says) in [("", "thread 1"), ("deep diver", "thread 1 (deep diver)")] {
        let itself = std::env::current_exe().unwrap();
        let test = std::process::Command::new(itself)
            .args(["--exact", "a_stack_overflow_names_the_thread", "--nocapture"])
            .env(OVERFLOWS, name)
            .output()
            .unwrap();
        assert!(!test.status.success());
        let text = String::from_utf8_lossy(&test.stderr);
        assert!(text.contains(&format!("{says} of the model has overflowed its stack")), "{text}");
    }
}

#[test]
fn limits_make_the_answer_a_bounded_one() {
    let builder = Builder { max_executions: Some(10), model: MemoryModel::Tso, ..Builder::default() };
    let report = builder.check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let other = x.clone();
        let thread = thread::spawn(move || (0..4).for_each(|_| _ = other.fetch_add(1, SeqCst)));
        (0..4).for_each(|_| _ = x.fetch_add(1, SeqCst));
        thread.join().unwrap();
    });
    assert!(matches!(report.verdict, Verdict::Bounded(_)), "{report}");
    assert!(!report.exhaustive && report.executions == 10);
}

#[test]
fn events_of_locks_are_where_the_test_calls_them() {
    let report = check(|| {
        let (lock, once) = (Arc::new(RwLock::new(0)), OnceLock::new());
        let other = lock.clone();
        let thread = thread::spawn(move || *other.write().unwrap() += 1);
        let seen = *lock.read().unwrap();
        once.set(seen).unwrap();
        let mut once = OnceLock::from(once.into_inner());
        assert!(once.take().is_some());
        thread.join().unwrap();
        assert_eq!(seen, 0, "it has changed");
    });
    let moments = &report.timeline.as_ref().unwrap().moments;
    assert!(moments.iter().any(|moment| moment.text.contains("end of read")), "{report}");
    assert!(moments.iter().all(|moment| moment.place.file.ends_with("failures.rs")), "{report}");
}

#[test]
fn a_deadlock_on_a_readers_writer_lock_says_who_reads_and_who_writes() {
    let line = line!() + 8;
    let one_waits_for_readers = || {
        let (lock, gate) = (Arc::new(RwLock::new(0)), Arc::new(Mutex::new(())));
        let held = gate.lock().unwrap();
        let reader = |name: &str| {
            let (lock, gate) = (lock.clone(), gate.clone());
            let body = move || {
                drop(lock.read().unwrap());
                let _reads = lock.read().unwrap();
                drop(gate.lock().unwrap());
            };
            thread::Builder::new().name(name.to_owned()).spawn(body).unwrap()
        };
        let (one, two) = (reader("one"), reader("two"));
        drop(lock.write().unwrap());
        drop(held);
        one.join().unwrap();
        two.join().unwrap();
    };
    let place = format!("failures.rs:{line}:");
    let report = fails(
        one_waits_for_readers,
        &[
            "deadlock",
            "waits in RwLock::write, at ",
            "thread 1 (one) reads since ",
            "thread 2 (two) reads since ",
            &place,
        ],
    );
    assert!(!report.to_string().contains(&format!("reads since tests/failures.rs:{}", line - 1)), "{report}");
    fails(
        || {
            let lock = Arc::new(RwLock::new(0));
            let other = lock.clone();
            let _writes = lock.try_write().unwrap();
            thread::spawn(move || drop(other.read())).join().unwrap();
        },
        &["waits for thread 1 to end", "thread 1 waits in RwLock::read, at ", ": thread 0 (main) writes since "],
    );
    fails(
        || {
            let lock = RwLock::new(0);
            let _reads = weakspot::sync::RwLockWriteGuard::downgrade(lock.write().unwrap());
            drop(lock.write());
        },
        &["thread 0 (main) waits in RwLock::write, at ", ": it itself reads since "],
    );
}

#[test]
fn a_deadlock_on_something_made_once_says_who_makes_it() {
    fails(
        || {
            let cells = Arc::new((OnceLock::new(), OnceLock::new()));
            let other = cells.clone();
            let thread = thread::spawn(move || *other.0.get_or_init(|| *other.1.get_or_init(|| 1)));
            cells.1.get_or_init(|| *cells.0.get_or_init(|| 1));
            thread.join().unwrap();
        },
        &[
            "thread 0 (main) waits in OnceLock::get_or_init, at ",
            ": thread 1 runs the closure since ",
            ": thread 0 (main) runs the closure since ",
        ],
    );
}

#[test]
fn a_mutex_that_nobody_can_release_says_so() {
    fails(
        || {
            let lock = Mutex::new(());
            let _held = lock.lock().unwrap();
            drop(lock.lock());
        },
        &["thread 0 (main) waits for a mutex that it itself holds since "],
    );
    fails(
        || {
            let lock = Arc::new(Mutex::new(()));
            let other = lock.clone();
            thread::spawn(move || std::mem::forget(other.lock())).join().unwrap();
            drop(lock.lock());
        },
        &["waits for a mutex that thread 1, which has ended, holds since "],
    );
}

#[test]
fn a_thread_has_the_stack_it_asks_for() {
    /// Goes deeper until the stack is so many bytes lower than where it began.
    fn lower_by(bytes: usize, began: usize) -> usize {
        let frame = std::hint::black_box([0_u8; 256]);
        let here = frame.as_ptr().addr();
        if began.saturating_sub(here) >= bytes { began - here } else { std::hint::black_box(lower_by(bytes, began)) }
    }
    fn uses(bytes: usize) {
        let here = std::hint::black_box(0_u8);
        assert!(lower_by(bytes, std::ptr::from_ref(&here).addr()) >= bytes);
    }
    // What fits into 2 MiB, as in the standard library, fits here.
    let report = check(|| thread::spawn(|| uses(1_800_000)).join().unwrap());
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    let report = check(|| {
        let large = || thread::Builder::new().stack_size(64 << 20);
        large().spawn(|| uses(60 << 20)).unwrap().join().unwrap();
        thread::scope(|scope| large().spawn_scoped(scope, || uses(60 << 20)).unwrap().join().unwrap());
        thread::spawn(|| uses(1 << 20)).join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

/// Looks a hundred times, and does not say that it waits.
fn impatient() {
    let flag = Arc::new(AtomicUsize::new(0));
    let other = flag.clone();
    let thread = thread::spawn(move || (0..100).any(|_| other.load(Relaxed) == 1));
    flag.store(1, Relaxed);
    thread.join().unwrap();
}

#[test]
fn how_often_a_loop_may_look_in_vain_can_be_said() {
    let report = Builder::default().check(impatient);
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 101), "{report}");
    let report = Builder { max_retries: 50, ..Builder::default() }.check(impatient);
    let failure = report.failure.as_ref().unwrap();
    assert!(matches!(failure.kind, FailureKind::TooLong), "{report}");
    assert!(failure.message.contains("after more than 50 rounds needs a larger `max_retries`"), "{report}");
    let again = Builder { max_retries: 50, replay: report.schedule.clone(), ..Builder::default() }.check(impatient);
    let failure = again.failure.as_ref().unwrap();
    assert!(matches!(failure.kind, FailureKind::TooLong), "{again}");
    assert!(failure.message.contains("after more than 50 rounds needs a larger `max_retries`"), "{again}");
}
