//! Notifications that nobody waits for cost no executions; those that somebody may wait for do.
#![allow(clippy::unwrap_used)]

use weakspot::sync::{Arc, Condvar, Mutex};
use weakspot::{Builder, FailureKind, Verdict, thread};

type Shared = Arc<(Mutex<usize>, Condvar)>;

/// Threads that do something with a counter and its condition variable.
fn threads(count: usize, body: fn(&Mutex<usize>, &Condvar)) -> (Shared, Vec<thread::JoinHandle<()>>) {
    let shared = Arc::new((Mutex::new(0), Condvar::new()));
    let thread = |_| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || body(&shared.0, &shared.1))
    };
    let threads = (0..count).map(thread).collect();
    (shared, threads)
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Executions of a correct model.
#[track_caller]
fn executions(body: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::default().check(body);
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
    report.executions
}

#[test]
fn notifications_that_nobody_waits_for_are_not_ordered() {
    for count in 1..=5 {
        let one = executions(move || join(threads(count, |_, condvar| condvar.notify_one()).1));
        let all = executions(move || join(threads(count, |_, condvar| condvar.notify_all()).1));
        assert_eq!((one, all), (1, 1), "{count}");
    }
}

#[test]
fn only_the_mutex_orders_those_who_notify_after_it() {
    let count = |mutex: &Mutex<usize>, condvar: &Condvar| {
        *mutex.lock().unwrap() += 1;
        condvar.notify_one();
    };
    assert_eq!([1, 2, 3, 4].map(|many| executions(move || join(threads(many, count).1))), [1, 2, 6, 24]);
}

#[test]
fn one_that_somebody_may_wait_for_comes_before_or_after_the_wait() {
    let body = || {
        let (shared, threads) = threads(1, |mutex, condvar| {
            *mutex.lock().unwrap() = 1;
            condvar.notify_one();
        });
        let mut count = shared.0.lock().unwrap();
        while *count == 0 {
            count = shared.1.wait(count).unwrap();
        }
        drop(count);
        join(threads);
    };
    assert_eq!(executions(body), 2);
}

#[test]
fn a_notification_that_comes_too_early_is_lost_still() {
    let report = Builder::default().check(|| {
        let (shared, threads) = threads(2, |_, condvar| condvar.notify_one());
        let count = shared.0.lock().unwrap();
        drop(shared.1.wait(count).unwrap());
        join(threads);
    });
    let kind = report.failure.as_ref().map(|failure| &failure.kind);
    assert!(matches!(kind, Some(FailureKind::Deadlock)), "{report}");
}
