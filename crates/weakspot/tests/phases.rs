//! Loops that look here first and there later, loops that say through one function that they wait, and loops beside threads
//! that wait for a notification.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::hint::black_box;

use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::sync::{Arc, Condvar, Mutex};
use weakspot::{Bound, Builder, FailureKind, Report, Verdict, hint, thread};

fn check(fair: bool, body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder { fair, ..Builder::default() }.check(body)
}

fn is_livelock(report: &Report) -> bool {
    matches!(report.failure.as_ref().map(|failure| &failure.kind), Some(FailureKind::Livelock))
}

/// Another thread stores to the second atomic only. What the main thread may say of its looks, and whether that is all.
fn outcomes(
    fair: bool,
    looks: impl Fn(&AtomicUsize, &AtomicUsize) -> usize + Send + Sync + 'static,
) -> (Vec<usize>, Verdict) {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let sees = std::sync::Arc::clone(&seen);
    let report = check(fair, move || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let theirs = Arc::clone(&shared);
        let other = thread::spawn(move || theirs.1.store(1, SeqCst));
        let result = looks(&shared.0, &shared.1);
        other.join().unwrap();
        sees.lock().unwrap().insert(result);
    });
    assert!(report.failure.is_none(), "{report}");
    let seen = seen.lock().unwrap().iter().copied().collect();
    (seen, report.verdict)
}

/// Looks at `x` so many times, and then waits for `y`: has it waited?
fn first_there(tries: usize, x: &AtomicUsize, y: &AtomicUsize) -> usize {
    let (mut tried, mut waited) = (0, 0);
    loop {
        if tried < tries {
            tried = if x.load(SeqCst) == 0 { tried + 1 } else { tries };
        } else if y.load(SeqCst) == 0 {
            waited = 1;
        } else {
            return waited;
        }
        hint::spin_loop();
    }
}

#[test]
fn a_loop_that_looks_elsewhere_after_some_rounds_may_wait_there() {
    for fair in [false, true] {
        for tries in 0..=6 {
            let found = outcomes(fair, move |x, y| first_there(tries, x, y));
            assert_eq!(found, (vec![0, 1], Verdict::Safe), "{tries} {fair}");
        }
    }
}

#[inline(never)]
fn relax() {
    hint::spin_loop();
    black_box(());
}

#[test]
fn two_loops_with_one_function_to_wait() {
    let looks = |x: &AtomicUsize, y: &AtomicUsize| {
        for _ in 0..2 {
            if x.load(SeqCst) != 0 {
                break;
            }
            relax();
        }
        let mut waited = 0;
        while y.load(SeqCst) == 0 {
            waited = 1;
            relax();
        }
        waited
    };
    for fair in [false, true] {
        assert_eq!(outcomes(fair, looks), (vec![0, 1], Verdict::Safe), "{fair}");
    }
}

/// So many calls of it, from functions of their own, come from the same depth of the stack.
macro_rules! waits {
    ($($name:ident)*) => {$(
        #[inline(never)]
        fn $name() {
            relax();
            black_box(stringify!($name));
        }
    )*};
}

waits! { wait_first wait_before wait_later }

#[test]
fn calls_of_the_same_depth_are_not_the_same() {
    let looks = |x: &AtomicUsize, y: &AtomicUsize| {
        for _ in 0..2 {
            if x.load(SeqCst) != 0 {
                break;
            }
            wait_first();
            wait_before();
        }
        let mut waited = 0;
        loop {
            wait_first();
            wait_later();
            if y.load(SeqCst) != 0 {
                return waited;
            }
            waited = 1;
        }
    };
    for fair in [false, true] {
        assert_eq!(outcomes(fair, looks), (vec![0, 1], Verdict::Safe), "{fair}");
    }
}

#[test]
fn a_loop_inside_another_one_has_all_its_rounds() {
    let looks = |_: &AtomicUsize, y: &AtomicUsize| {
        for round in 0..4 {
            for _ in 0..2 {
                if y.load(SeqCst) != 0 {
                    return round;
                }
                relax();
            }
            relax();
        }
        4
    };
    assert_eq!(outcomes(false, looks), ((0..=4).collect(), Verdict::Safe));
}

type Shared = Arc<(AtomicUsize, Mutex<usize>, Condvar)>;

/// Waits for a notification without looking at anything first, and says that it has had it.
fn sleeper(shared: &Shared) -> thread::JoinHandle<()> {
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        drop(shared.2.wait(shared.1.lock().unwrap()).unwrap());
        shared.0.store(1, SeqCst);
    })
}

#[test]
fn waiting_for_a_thread_that_nobody_notifies_is_a_livelock() {
    for notifies in [false, true] {
        let report = check(false, move || {
            let shared = Shared::default();
            let sleeper = sleeper(&shared);
            if notifies {
                // It may come too early.
                shared.2.notify_one();
            }
            while shared.0.load(SeqCst) == 0 {
                hint::spin_loop();
            }
            sleeper.join().unwrap();
        });
        assert!(is_livelock(&report), "{report}");
        assert!(report.to_string().contains("thread 1 waits for a notification"), "{report}");
    }
}

#[test]
fn a_thread_that_goes_on_unseen_may_notify_others() {
    for notifies in [false, true] {
        let report = check(false, move || {
            let hidden = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let sets = std::sync::Arc::clone(&hidden);
            let setter = thread::spawn(move || sets.store(true, SeqCst));
            let shared = Shared::default();
            let theirs = Arc::clone(&shared);
            let waiter = thread::spawn(move || {
                drop(theirs.2.wait_while(theirs.1.lock().unwrap(), |count| *count == 0).unwrap());
            });
            while shared.0.load(SeqCst) == 0 {
                shared.0.store(usize::from(hidden.load(SeqCst)), SeqCst);
                thread::yield_now();
            }
            *shared.1.lock().unwrap() = 1;
            if notifies {
                shared.2.notify_one();
            }
            setter.join().unwrap();
            waiter.join().unwrap();
        });
        assert!(
            if notifies { report.verdict == Verdict::Bounded(Bound::Loops) } else { report.is_failure() },
            "{report}"
        );
    }
}

/// One waits while nothing has changed, and the other one, which changes nothing, wakes it again and again.
#[test]
fn threads_that_keep_each_other_going_are_told_from_loops_that_do_not_say_that_they_wait() {
    let body = || {
        let shared = Shared::default();
        let (waits, wakes) = (Arc::clone(&shared), Arc::clone(&shared));
        let waiter = thread::spawn(move || {
            drop(waits.2.wait_while(waits.1.lock().unwrap(), |count| *count == 0).unwrap());
        });
        let waker = thread::spawn(move || {
            while *wakes.1.lock().unwrap() == 0 {
                wakes.2.notify_one();
                hint::spin_loop();
            }
        });
        drop(shared.1.lock().unwrap());
        waiter.join().unwrap();
        waker.join().unwrap();
    };
    let builder = Builder { max_events: 2_000, ..Builder::default() };
    let report = builder.check(body);
    let is_too_long =
        |report: &Report| matches!(report.failure.as_ref().map(|failure| &failure.kind), Some(FailureKind::TooLong));
    assert!(is_too_long(&report), "{report}");
    assert!(report.to_string().contains("finds something new in each round"), "{report}");
    let again = Builder { replay: report.schedule.clone(), ..builder }.check(body);
    assert!(is_too_long(&again), "{again}");
}

/// Only whoever has looked for a certain number of rounds has neither met the store in one of them nor waited.
#[test]
fn a_loop_whose_rounds_count_is_not_called_explored() {
    for (tries, more) in [(0, 2), (2, 1), (2, 3), (3, 2), (4, 2), (5, 3)] {
        let report = check(false, move || {
            let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
            let theirs = Arc::clone(&shared);
            let other = thread::spawn(move || theirs.1.store(1, SeqCst));
            let (mut met, mut waited) = (0, false);
            for round in 0.. {
                let seen = if round < tries { shared.0.load(SeqCst) } else { shared.1.load(SeqCst) };
                if round < tries + more {
                    met += seen;
                } else if seen == 0 {
                    waited = true;
                } else {
                    break;
                }
                hint::spin_loop();
            }
            other.join().unwrap();
            assert!(met > 0 || waited);
        });
        assert_ne!(report.verdict, Verdict::Safe, "{tries} {more}");
    }
}
