//! Waits with a timeout: each of them may time out or not, as often as it comes to it, and loops of them come to an end.
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use weakspot::sync::atomic::AtomicBool;
use weakspot::sync::atomic::Ordering::{Acquire, Release};
use weakspot::sync::{Arc, Condvar, Mutex};
use weakspot::{Bound, Builder, FailureKind, Report, Verdict, hint, thread};

const SOON: Duration = Duration::from_millis(1);

fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(body)
}

#[derive(Default)]
struct Flag {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Flag {
    fn set(&self) {
        *self.is_set.lock().unwrap() = true;
        self.changed.notify_one();
    }

    /// Waits until the flag is set; panics if the time was over so often.
    fn wait(&self, patience: u32) {
        let mut guard = self.is_set.lock().unwrap();
        let mut timeouts = 0;
        while !*guard {
            let result;
            (guard, result) = self.changed.wait_timeout(guard, SOON).unwrap();
            timeouts += u32::from(result.timed_out());
            assert!(timeouts < patience, "it takes too long");
        }
    }
}

/// So many threads that wait for a flag, which is set.
fn waiters(number: usize, patience: u32) -> Report {
    check(move || {
        let flag = Arc::new(Flag::default());
        let start = |_| {
            let flag = Arc::clone(&flag);
            thread::spawn(move || flag.wait(patience))
        };
        let threads: Vec<_> = (0..number).map(start).collect();
        flag.set();
        for thread in threads {
            thread.join().unwrap();
        }
    })
}

#[test]
fn a_wait_may_time_out_wherever_it_has_done_so_before() {
    let report = check(|| {
        let flag = Flag::default();
        let times_out = || flag.changed.wait_timeout(flag.is_set.lock().unwrap(), SOON).unwrap().1.timed_out();
        assert!(!(times_out() && times_out() && times_out()), "three times in a row");
    });
    assert!(report.to_string().contains("three times in a row"), "{report}");
}

#[test]
fn a_loop_that_gives_up_after_some_timeouts_does() {
    for patience in [1, 2, 5, 12] {
        let report = waiters(1, patience);
        assert!(report.to_string().contains("it takes too long"), "{patience}: {report}");
        let schedule = report.replay().unwrap().to_owned();
        let again = Builder { replay: Some(schedule), ..Builder::default() }.check(move || {
            let flag = Arc::new(Flag::default());
            let other = Arc::clone(&flag);
            let threads = vec![thread::spawn(move || other.wait(patience))];
            flag.set();
            for thread in threads {
                thread.join().unwrap();
            }
        });
        assert!(again.to_string().contains("it takes too long"), "{again}");
    }
}

#[test]
fn a_loop_that_may_time_out_for_ever_is_explored_completely() {
    let report = waiters(1, u32::MAX);
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
    let report = check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&flag);
        let thread = thread::spawn(move || {
            while !other.load(Acquire) {
                thread::park_timeout(SOON);
            }
        });
        flag.store(true, Release);
        thread.join().unwrap();
    });
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
}

#[test]
fn a_loop_that_nobody_ends_is_a_livelock() {
    let report = check(|| Flag::default().wait(u32::MAX));
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Livelock), "{report}");
}

/// A thread that spins until another one has stored; that one waits with a timeout before, and nobody else ends its wait.
fn spins_beside(store_after_waiting: impl Fn(&Flag, &AtomicBool) + Send + Sync + 'static) -> Report {
    check(move || {
        let shared = Arc::new((AtomicBool::new(false), Flag::default()));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            while !other.0.load(Acquire) {
                hint::spin_loop();
            }
        });
        store_after_waiting(&shared.1, &shared.0);
        thread.join().unwrap();
    })
}

#[test]
fn a_wait_beside_a_loop_is_over_after_its_time() {
    let reports = [
        spins_beside(|_, done| {
            thread::park_timeout(SOON);
            done.store(true, Release);
        }),
        spins_beside(|_, done| {
            thread::park_timeout(SOON);
            thread::park_timeout(SOON);
            done.store(true, Release);
        }),
        spins_beside(|flag, done| {
            let result = flag.changed.wait_timeout(flag.is_set.lock().unwrap(), SOON).unwrap().1;
            // Nobody notifies.
            done.store(result.timed_out(), Release);
        }),
    ];
    for report in reports {
        assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
    }
    let nobody_stores = spins_beside(|_, _| thread::park_timeout(SOON));
    assert!(matches!(nobody_stores.failure.as_ref().unwrap().kind, FailureKind::Livelock), "{nobody_stores}");
}

/// Runs that are given up, too: somebody may collect what comes of them.
#[test]
fn a_wait_that_nobody_ends_never_says_that_somebody_did() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let collected = std::sync::Arc::clone(&seen);
    let report = check(move || {
        let flag = Flag::default();
        let result = flag.changed.wait_timeout(flag.is_set.lock().unwrap(), SOON).unwrap().1;
        collected.lock().unwrap().push(result.timed_out());
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(seen.lock().unwrap().iter().all(|&is_late| is_late));
}

#[test]
fn loops_that_make_news_for_each_other_are_named() {
    let report = waiters(2, u32::MAX);
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Bounded(Bound::Loops), false), "{report}");
    assert!(report.to_string().contains("waits with a timeout that may be over again and again"), "{report}");
}

/// Store buffering that does no harm, and then this in one of the threads.
fn store_buffering_and(body: impl Fn(&Flag) + Copy + Send + Sync + 'static) -> Report {
    check(move || {
        let shared = Arc::new((AtomicBool::new(false), AtomicBool::new(false), Flag::default()));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.0.store(true, Release);
            other.1.load(Acquire);
            body(&other.2);
        });
        shared.1.store(true, Release);
        shared.0.load(Acquire);
        shared.2.set();
        thread.join().unwrap();
    })
}

/// Where a wait may time out, nobody is stuck: neither on store buffers.
#[test]
fn a_wait_with_a_timeout_is_no_harm_that_store_buffers_do() {
    let reports = [
        store_buffering_and(|_| thread::park_timeout(SOON)),
        store_buffering_and(|_| (0..3).for_each(|_| thread::park_timeout(SOON))),
        store_buffering_and(|flag| flag.wait(u32::MAX)),
        store_buffering_and(|flag| {
            let mut guard = flag.is_set.lock().unwrap();
            for _ in 0..2 {
                guard = flag.changed.wait_timeout(guard, SOON).unwrap().0;
            }
        }),
    ];
    for report in reports {
        assert_eq!(report.verdict, Verdict::Benign, "{report}");
    }
}

/// What comes after two timeouts is looked at on store buffers, too.
#[test]
fn harm_after_two_timeouts_is_found() {
    let report = check(|| {
        let shared = Arc::new((AtomicBool::new(false), AtomicBool::new(false), Flag::default()));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let flag = &other.2;
            let times_out = |_| flag.changed.wait_timeout(flag.is_set.lock().unwrap(), SOON).unwrap().1.timed_out();
            let timeouts = (0..2).map(times_out).filter(|&is_late| is_late).count();
            other.0.store(true, Release);
            timeouts == 2 && !other.1.load(Acquire)
        });
        shared.1.store(true, Release);
        let missed = !shared.0.load(Acquire);
        shared.2.set();
        assert!(!(thread.join().unwrap() && missed), "both have missed it");
    });
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
}

fn poisoned() -> Flag {
    let flag = Flag::default();
    let panics = || {
        let _guard = flag.is_set.lock().unwrap();
        panic!("this poisons it");
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    flag
}

#[test]
fn a_poisoned_mutex_is_poisoned_after_a_wait_too() {
    let body = || {
        let flag = poisoned();
        let guard = flag.is_set.lock().unwrap_err().into_inner();
        let (_, result) = flag.changed.wait_timeout(guard, SOON).unwrap_err().into_inner();
        assert!(result.timed_out());
    };
    body();
    assert_eq!(check(body).verdict, Verdict::Safe);
}

#[test]
fn outside_a_model_notifications_do_not_wind_the_clock_back() {
    let flag = Arc::new(Flag::default());
    let other = Arc::clone(&flag);
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let ends = std::sync::Arc::clone(&is_over);
    let thread = std::thread::spawn(move || {
        let start = Instant::now();
        while !ends.load(std::sync::atomic::Ordering::Relaxed) && start.elapsed() < Duration::from_secs(20) {
            other.changed.notify_all();
            std::thread::sleep(SOON);
        }
        start.elapsed()
    });
    let guard = flag.is_set.lock().unwrap();
    let (_, result) = flag.changed.wait_timeout_while(guard, Duration::from_millis(50), |is_set| !*is_set).unwrap();
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(result.timed_out());
    assert!(thread.join().unwrap() < Duration::from_secs(20), "it ended by itself");
}

#[test]
fn a_token_that_is_there_is_taken_even_if_the_time_is_over() {
    let report = check(|| {
        thread::current().unpark();
        thread::park_timeout(SOON);
        let is_set = Arc::new(AtomicBool::new(false));
        let (other, main) = (Arc::clone(&is_set), thread::current());
        let thread = thread::spawn(move || {
            other.store(true, Release);
            main.unpark();
        });
        thread::park();
        assert!(is_set.load(Acquire));
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    // The token of another thread comes before the time is over, or after it.
    let report = check(|| {
        let main = thread::current();
        let thread = thread::spawn(move || main.unpark());
        thread::park_timeout(SOON);
        thread::park();
        thread.join().unwrap();
    });
    assert!(matches!(report.failure, Some(ref failure) if matches!(failure.kind, FailureKind::Deadlock)), "{report}");
}
