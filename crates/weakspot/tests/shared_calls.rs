//! Loops that say that they wait in a function that others use as well, and loops whose number of rounds matters later.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use weakspot::hint::spin_loop;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::sync::{Arc, Condvar, Mutex};
use weakspot::{Bound, Builder, FailureKind, Report, Verdict, thread};

/// One thread stores, while another one does something.
fn storing_and(waits: fn(&AtomicUsize)) -> impl Fn() + Send + Sync + 'static {
    move || {
        let flag = Arc::new(AtomicUsize::new(0));
        let other = flag.clone();
        let storing = thread::spawn(move || other.store(1, SeqCst));
        waits(&flag);
        storing.join().unwrap();
    }
}

fn while_one_stores(waits: fn(&AtomicUsize)) -> Report {
    Builder::default().check(storing_and(waits))
}

fn fails(report: &Report) -> bool {
    matches!(report.failure.as_ref().map(|failure| &failure.kind), Some(FailureKind::Panic { .. }))
}

fn backoff() {
    thread::yield_now();
}

/// Looks up to so many times.
fn looks(flag: &AtomicUsize, times: u32) -> bool {
    for _ in 0..times {
        if flag.load(SeqCst) != 0 {
            return true;
        }
        backoff();
    }
    false
}

#[test]
fn giving_up_before_waiting_on_is_found() {
    let report = while_one_stores(|flag| {
        let has_seen = looks(flag, 3);
        while flag.load(SeqCst) == 0 {
            backoff();
        }
        assert!(has_seen, "gave up");
    });
    assert!(fails(&report), "{report}");
}

#[test]
fn giving_up_before_waiting_in_the_same_function_is_found() {
    let report = while_one_stores(|flag| {
        let has_seen = looks(flag, 3);
        if !has_seen {
            while !looks(flag, 3) {}
        }
        assert!(has_seen, "gave up");
    });
    assert!(fails(&report), "{report}");
}

/// As those that are published: it spins, then yields.
#[derive(Default)]
struct Backoff {
    step: u32,
}

impl Backoff {
    fn snooze(&mut self) {
        if self.step < 2 {
            (0..1 << self.step).for_each(|_| spin_loop());
            self.step += 1;
        } else {
            thread::yield_now();
        }
    }
}

#[test]
fn a_backoff_is_used_by_two_loops() {
    let report = while_one_stores(|flag| {
        let (mut backoff, mut rounds) = (Backoff::default(), 0);
        while flag.load(SeqCst) == 0 && rounds < 4 {
            backoff.snooze();
            rounds += 1;
        }
        let mut backoff = Backoff::default();
        while flag.load(SeqCst) == 0 {
            backoff.snooze();
        }
        assert!(rounds < 4, "gave up");
    });
    assert!(fails(&report), "{report}");
}

#[test]
fn loops_that_share_a_call_are_explored_exactly() {
    let report = while_one_stores(|flag| {
        looks(flag, 3);
        while flag.load(SeqCst) == 0 {
            backoff();
        }
    });
    assert!(report.exhaustive, "{report}");
    // The store is seen in one of three rounds, before the waiting or after a round of it.
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 5), "{report}");
}

#[test]
fn a_function_that_calls_itself_waits_like_a_loop() {
    fn wait(flag: &AtomicUsize) {
        if flag.load(SeqCst) == 0 {
            thread::yield_now();
            wait(flag);
            // Not the last thing that it does, so the stack grows.
            std::hint::black_box(flag);
        }
    }
    let report = while_one_stores(wait);
    assert!(report.failure.is_none() && report.executions > 0, "{report}");
    assert!(matches!(report.verdict, Verdict::Safe | Verdict::Bounded(Bound::Loops)), "{report}");
}

#[test]
fn a_loop_whose_number_of_rounds_matters_later_is_named() {
    let waits: [fn(&AtomicUsize); 2] = [
        |flag| {
            let mut is_odd = false;
            while flag.load(SeqCst) == 0 {
                is_odd = !is_odd;
                spin_loop();
            }
            AtomicUsize::new(0).store(usize::from(is_odd), SeqCst);
        },
        |flag| {
            let mut rounds = 0;
            while flag.compare_exchange(1, 2, SeqCst, SeqCst).is_err() {
                rounds += 1;
                spin_loop();
            }
            if rounds > 50 {
                flag.store(3, SeqCst);
            }
        },
    ];
    for (number, waits) in waits.into_iter().enumerate() {
        let report = while_one_stores(waits);
        assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{number}: {report}");
        assert!(!report.exhaustive && report.to_string().contains("number of its rounds"), "{number}: {report}");
    }
}

/// The schedule of a report leads to the same failure.
fn fails_again(report: &Report, waits: fn(&AtomicUsize)) {
    let replay = report.replay().map(str::to_owned);
    let again = Builder { replay, ..Builder::default() }.check(storing_and(waits));
    let message = |report: &Report| report.failure.as_ref().map(|failure| failure.message.clone());
    assert_eq!(message(&again), message(report), "{again}");
}

#[test]
fn a_loop_after_which_a_thread_fails_if_it_has_waited_long_is_a_failure() {
    let waits: [fn(&AtomicUsize); 3] = [
        |flag| {
            let mut rounds = 0;
            while flag.load(SeqCst) == 0 {
                rounds += 1;
                thread::yield_now();
            }
            assert!(rounds < 3, "{rounds} rounds");
        },
        // With a timeout.
        |flag| {
            let mut rounds = 0;
            while flag.load(SeqCst) == 0 {
                rounds += 1;
                thread::park_timeout(Duration::from_millis(1));
            }
            assert!(rounds < 4, "{rounds} rounds");
        },
        // In a loop that takes and gives back something in each round.
        |flag| {
            let (lock, mut rounds) = (AtomicUsize::new(0), 0);
            loop {
                lock.swap(1, SeqCst);
                let is_set = flag.load(SeqCst) != 0;
                lock.store(0, SeqCst);
                if is_set {
                    break;
                }
                rounds += 1;
                spin_loop();
            }
            assert!(rounds < 20, "{rounds} rounds");
        },
    ];
    for (number, waits) in waits.into_iter().enumerate() {
        let report = while_one_stores(waits);
        assert!(fails(&report), "{number}: {report}");
        assert!(report.failure.as_ref().unwrap().message.contains("rounds"), "{number}: {report}");
        assert!(report.notes.is_empty(), "{number}: {report}");
        fails_again(&report, waits);
        // Who takes scheduling to be fair wants to hear of it, but not as a failure.
        let report = Builder { fair: true, ..Builder::default() }.check(storing_and(waits));
        assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{number}: {report}");
    }
}

#[test]
fn timeouts_that_are_counted_are_a_failure() {
    let report = Builder::default().check(|| {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = shared.clone();
        let setting = thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let (mut is_set, mut timeouts) = (shared.0.lock().unwrap(), 0);
        while !*is_set {
            let (guard, result) = shared.1.wait_timeout(is_set, Duration::from_millis(1)).unwrap();
            (is_set, timeouts) = (guard, timeouts + u32::from(result.timed_out()));
        }
        drop(is_set);
        setting.join().unwrap();
        assert!(timeouts < 4, "{timeouts} timeouts");
    });
    assert!(fails(&report), "{report}");
}

#[test]
fn giving_up_before_a_wait_with_the_same_timeout_is_not_forgotten() {
    fn nap() {
        thread::park_timeout(Duration::from_millis(1));
    }
    let report = while_one_stores(|flag| {
        let has_seen = (0..3).any(|_| {
            let is_set = flag.load(SeqCst) != 0;
            if !is_set {
                nap();
            }
            is_set
        });
        while flag.load(SeqCst) == 0 {
            nap();
        }
        assert!(has_seen, "gave up");
    });
    assert!(fails(&report) || report.verdict == Verdict::Bounded(Bound::Loops), "{report}");
}

#[test]
fn a_loop_that_counts_for_itself_is_not_named() {
    let report = while_one_stores(|flag| {
        let mut rounds = 0_u32;
        while flag.load(SeqCst) == 0 {
            rounds += 1;
            (0..rounds.min(8)).for_each(|_| spin_loop());
        }
        std::hint::black_box(rounds);
    });
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
}
