//! What a report suggests: the fewest changes, tried out, for what the test fails on.
#![allow(clippy::unwrap_used)]

use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicUsize, fence};
use weakspot::sync::{Arc, Mutex};
use weakspot::{Builder, Change, FailOn, MemoryModel, Report, Verdict, thread};

fn check(model: MemoryModel, fail_on: FailOn, test: fn()) -> Report {
    Builder { model, fail_on, ..Builder::default() }.check(test)
}

/// The changes, in the order of their places.
fn changes(report: &Report) -> Vec<Change> {
    report.suggestions.iter().map(|suggestion| suggestion.change).collect()
}

/// With all suggestions the test passes, with one less it does not.
#[track_caller]
fn none_can_be_left_out(report: &Report, fail_on: FailOn, test: fn()) {
    let all: Vec<_> = report.suggestions.iter().map(|one| (one.place.clone(), one.change)).collect();
    let run = |strengthened| Builder { model: report.model, fail_on, strengthened, ..Builder::default() }.check(test);
    let changed = run(all.clone());
    assert!(!changed.is_failure(), "{changed}");
    for left_out in 0..all.len() {
        let mut fewer = all.clone();
        fewer.remove(left_out);
        assert!(run(fewer).is_failure(), "suggestion {left_out} is not needed:\n{report}");
    }
}

fn two(
    shared: [AtomicUsize; 2],
    first: fn(&[AtomicUsize; 2]) -> usize,
    second: fn(&[AtomicUsize; 2]) -> usize,
) -> usize {
    let shared = Arc::new(shared);
    let other = shared.clone();
    let thread = thread::spawn(move || first(&other));
    second(&shared) + 10 * thread.join().unwrap()
}

fn cells() -> [AtomicUsize; 2] {
    [AtomicUsize::new(0), AtomicUsize::new(0)]
}

fn store_buffering() {
    let first = |shared: &[AtomicUsize; 2]| {
        shared[0].store(1, Release);
        shared[1].load(Acquire)
    };
    let second = |shared: &[AtomicUsize; 2]| {
        shared[1].store(1, Release);
        shared[0].load(Acquire)
    };
    assert_ne!(two(cells(), first, second), 0, "nobody has seen the other");
}

#[test]
fn store_buffering_needs_both_stores() {
    let report = check(MemoryModel::Tso, FailOn::Harmful, store_buffering);
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    assert_eq!(changes(&report), [Change::SeqCst, Change::SeqCst], "{report}");
    assert!(report.suggestions.iter().all(|one| one.tried && one.proved && one.fewest), "{report}");
    none_can_be_left_out(&report, FailOn::Harmful, store_buffering);
    let text = report.to_string();
    assert!(text.contains("shared[0].store(1, SeqCst);"), "{text}");
    assert!(text.contains("fewer changes are not enough"), "{text}");
}

/// Each thread looks in the same place, whatever it has written.
fn look(shared: &[AtomicUsize; 2], index: usize) -> usize {
    shared[index].load(Acquire)
}

fn store_buffering_with_a_common_load() {
    let first = |shared: &[AtomicUsize; 2]| {
        shared[0].store(1, Release);
        look(shared, 1)
    };
    let second = |shared: &[AtomicUsize; 2]| {
        shared[1].store(1, Release);
        look(shared, 0)
    };
    assert_ne!(two(cells(), first, second), 0, "nobody has seen the other");
}

#[test]
fn one_fence_before_a_common_load_is_less_than_two_stores() {
    let report = check(MemoryModel::Tso, FailOn::Harmful, store_buffering_with_a_common_load);
    assert_eq!(changes(&report), [Change::FenceBefore], "{report}");
    none_can_be_left_out(&report, FailOn::Harmful, store_buffering_with_a_common_load);
    assert!(report.to_string().contains("put `fence(SeqCst)` before the load at"), "{report}");
}

fn message_passing() {
    let first = |shared: &[AtomicUsize; 2]| {
        shared[0].store(1, Relaxed);
        shared[1].store(1, Relaxed);
        0
    };
    let second = |shared: &[AtomicUsize; 2]| {
        if shared[1].load(Acquire) == 1 { shared[0].load(Relaxed) } else { 1 }
    };
    assert_eq!(two(cells(), first, second), 1, "the message is missing");
}

#[test]
fn message_passing_under_pso_needs_a_release() {
    let report = check(MemoryModel::Pso, FailOn::Harmful, message_passing);
    assert_eq!(changes(&report), [Change::Release], "{report}");
    none_can_be_left_out(&report, FailOn::Harmful, message_passing);
    assert!(report.to_string().contains("shared[1].store(1, Release);"), "{report}");
}

/// Store buffering in one pair of locations, and nobody minds; message passing that matters.
fn harmless_and_harmful() {
    let first = |shared: &[AtomicUsize; 2]| {
        shared[0].store(1, Relaxed);
        shared[1].load(Acquire);
        0
    };
    let second = |shared: &[AtomicUsize; 2]| {
        shared[1].store(1, Relaxed);
        shared[0].load(Acquire);
        0
    };
    two(cells(), first, second);
    message_passing();
}

#[test]
fn what_must_go_depends_on_what_fails() {
    let harmful = check(MemoryModel::Pso, FailOn::Harmful, harmless_and_harmful);
    assert_eq!(changes(&harmful), [Change::Release], "{harmful}");
    none_can_be_left_out(&harmful, FailOn::Harmful, harmless_and_harmful);
    let unsafe_ = check(MemoryModel::Pso, FailOn::Unsafe, harmless_and_harmful);
    assert_eq!(unsafe_.suggestions.len(), 3, "{unsafe_}");
    assert!(unsafe_.suggestions.iter().all(|one| one.tried && one.proved && one.fewest), "{unsafe_}");
    none_can_be_left_out(&unsafe_, FailOn::Unsafe, harmless_and_harmful);
}

/// One side is interlocked already, so the store of the other side is the one that is delayed.
fn half_fenced() {
    let first = |shared: &[AtomicUsize; 2]| {
        shared[0].swap(1, SeqCst);
        shared[1].load(Acquire)
    };
    let second = |shared: &[AtomicUsize; 2]| {
        shared[1].store(1, Release);
        shared[0].load(Acquire)
    };
    assert_ne!(two(cells(), first, second), 0, "nobody has seen the other");
}

#[test]
fn the_delayed_store_is_named_and_never_an_interlocked_operation() {
    let report = check(MemoryModel::Tso, FailOn::Harmful, half_fenced);
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    for violation in &report.violations {
        assert_eq!(violation.store.what, "store", "{report}");
        assert_eq!(violation.overtaken_by.as_ref().unwrap().what, "load", "{report}");
    }
    assert_eq!(changes(&report), [Change::SeqCst], "{report}");
    assert_eq!(report.suggestions[0].place, report.violations[0].store.place, "{report}");
    none_can_be_left_out(&report, FailOn::Harmful, half_fenced);
}

#[test]
fn a_fence_is_as_good_as_the_suggestion() {
    let report = check(MemoryModel::Tso, FailOn::Unsafe, || {
        let first = |shared: &[AtomicUsize; 2]| {
            shared[0].store(1, Relaxed);
            fence(SeqCst);
            shared[1].load(Relaxed)
        };
        let second = |shared: &[AtomicUsize; 2]| {
            shared[1].store(1, Relaxed);
            fence(SeqCst);
            shared[0].load(Relaxed)
        };
        assert_ne!(two(cells(), first, second), 0);
    });
    assert_eq!((report.verdict, report.suggestions.len()), (Verdict::Safe, 0), "{report}");
}

#[test]
fn the_store_that_is_named_is_one_that_can_be_delayed() {
    // The first thread's write cannot wait in a buffer: it is an exchange, or a fence follows it. So it is the other
    // thread's store that does.
    fn body(exchange: bool) -> impl Fn() + Send + Sync + 'static {
        move || {
            let [x, y] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
            let (x2, y2) = (x.clone(), y.clone());
            let thread = thread::spawn(move || {
                if exchange {
                    x2.swap(1, SeqCst);
                } else {
                    x2.store(1, Relaxed);
                    fence(SeqCst);
                }
                y2.load(Relaxed)
            });
            y.store(1, Relaxed);
            let mine = x.load(Relaxed);
            assert!(mine == 1 || thread.join().unwrap() == 1, "both have read 0");
        }
    }
    for exchange in [true, false] {
        let report = Builder::default().check(body(exchange));
        assert_eq!(report.verdict, Verdict::Harmful, "{report}");
        assert!(!report.violations.is_empty(), "{report}");
        for violation in &report.violations {
            assert_eq!((violation.store.thread, violation.store.what), (0, "store"), "{report}");
        }
        assert_eq!(report.suggestions.len(), 1, "{report}");
        assert!(report.suggestions[0].tried, "{report}");
    }
}

/// A poisoned mutex, and what two threads do to it.
fn poisoned(first: fn(&Mutex<u8>, &AtomicUsize) -> bool, second: fn(&Mutex<u8>, &AtomicUsize) -> bool) -> (bool, bool) {
    let shared = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
    poison(&shared.0);
    let other = shared.clone();
    let thread = thread::spawn(move || first(&other.0, &other.1));
    let found = second(&shared.0, &shared.1);
    (thread.join().unwrap(), found)
}

fn poison(mutex: &Mutex<u8>) {
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _guard = mutex.lock();
        panic!("while it is held");
    }));
    assert!(panics.is_err());
}

/// `clear_poison` has no ordering that could be another one.
#[test]
fn what_says_no_ordering_needs_a_fence() {
    let late = || {
        let clears = |mutex: &Mutex<u8>, number: &AtomicUsize| {
            mutex.clear_poison();
            number.load(Relaxed) == 0
        };
        let stores = |mutex: &Mutex<u8>, number: &AtomicUsize| {
            number.store(1, SeqCst);
            mutex.is_poisoned()
        };
        assert_ne!(poisoned(clears, stores), (true, true), "nobody has seen the other");
    };
    let report = check(MemoryModel::Tso, FailOn::Harmful, late);
    assert_eq!(changes(&report), [Change::SeqCst], "{report}");
    none_can_be_left_out(&report, FailOn::Harmful, late);
    let text = report.to_string();
    assert!(text.contains("help: put `fence(SeqCst)` after the call at"), "{text}");
    assert!(!text.contains("Ordering::"), "{text}");
    let early = || {
        let clears = |mutex: &Mutex<u8>, number: &AtomicUsize| {
            number.store(1, Relaxed);
            mutex.clear_poison();
            true
        };
        let looks = |mutex: &Mutex<u8>, number: &AtomicUsize| !mutex.is_poisoned() && number.load(Relaxed) == 0;
        assert_ne!(poisoned(clears, looks), (true, true), "it is cleared before the number is there");
    };
    let report = check(MemoryModel::Pso, FailOn::Harmful, early);
    assert_eq!(changes(&report), [Change::Release], "{report}");
    none_can_be_left_out(&report, FailOn::Harmful, early);
    assert!(report.to_string().contains("help: put `fence(Release)` before the call at"), "{report}");
}

/// Nothing can be put before what a panic does.
#[test]
fn a_panic_is_no_place_for_a_fence() {
    let test = || {
        let shared = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _guard = other.0.lock();
                other.1.store(2, Relaxed);
                panic!("while it is held");
            }));
            assert!(panics.is_err());
        });
        if shared.0.is_poisoned() {
            assert_eq!(shared.1.load(Relaxed), 2, "it is poisoned before the number is there");
        }
        thread.join().unwrap();
    };
    let report = check(MemoryModel::Pso, FailOn::Harmful, test);
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    none_can_be_left_out(&report, FailOn::Harmful, test);
    let [suggestion] = &*report.suggestions else { panic!("{report}") };
    assert_eq!((suggestion.change, suggestion.says_ordering), (Change::SeqCst, true), "{report}");
}
