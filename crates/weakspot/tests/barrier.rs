//! Barriers inside and outside a model.
#![allow(clippy::unwrap_used)]

use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::Relaxed;
use weakspot::sync::{Arc, Barrier};
use weakspot::{Builder, thread};

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
    let report = Builder::new().check(|| {
        Barrier::new(2).wait();
    });
    assert!(report.is_failure());
    assert!(report.to_string().contains("Barrier::wait"), "{report}");
}
