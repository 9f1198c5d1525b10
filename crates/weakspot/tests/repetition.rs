//! Models that do not repeat themselves are found out, and the first event that differs is named.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;

use weakspot::sync::Arc;
use weakspot::sync::RwLock;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::{Builder, FailureKind, Report, Verdict, thread};

/// So many elements that two maps hardly ever have the same order.
const ELEMENTS: usize = 24;

fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(body)
}

fn atomics() -> (Arc<Vec<AtomicUsize>>, Arc<Vec<AtomicUsize>>) {
    let all: Arc<Vec<_>> = Arc::new((0..ELEMENTS).map(AtomicUsize::new).collect());
    (all.clone(), all)
}

#[track_caller]
fn is_found_out(report: &Report, parts: &[&str]) {
    let text = report.to_string();
    let failure = report.failure.as_ref().expect("it is found out");
    assert!(matches!(failure.kind, FailureKind::NotDeterministic), "{text}");
    assert!(text.starts_with("weakspot: the model is not deterministic\n"), "{text}");
    assert!(!text.contains("on every processor") && !text.contains("WEAKSPOT_REPLAY"), "{text}");
    for part in ["ime, random numbers, the order of hash maps"].iter().chain(parts) {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

#[test]
fn the_order_of_a_hash_set_decides_what_a_thread_does() {
    let report = check(|| {
        let (all, theirs) = atomics();
        let thread = thread::spawn(move || theirs[0].fetch_add(1, SeqCst));
        for element in (0..ELEMENTS).collect::<HashSet<_>>() {
            if element % 2 == 0 {
                all[element].load(SeqCst);
            } else {
                all[element].store(1, SeqCst);
            }
        }
        thread.join().unwrap();
    });
    is_found_out(&report, &["repetition.rs:"]);
}

#[test]
fn the_order_of_a_hash_set_decides_which_atomic_is_used() {
    let report = check(|| {
        let (all, theirs) = atomics();
        let thread = thread::spawn(move || theirs[..4].iter().for_each(|one| _ = one.fetch_add(1, SeqCst)));
        let order: HashSet<usize> = (0..ELEMENTS).collect();
        for element in order {
            all[element].fetch_add(1, SeqCst);
        }
        thread.join().unwrap();
    });
    is_found_out(&report, &["repetition.rs:"]);
}

#[test]
fn a_model_with_one_execution_is_run_again_as_well() {
    let report = check(|| {
        let (all, _) = atomics();
        for element in (0..ELEMENTS).collect::<HashSet<_>>() {
            if element % 2 == 0 { _ = all[0].load(SeqCst) } else { all[0].store(1, SeqCst) }
        }
    });
    is_found_out(&report, &["the same schedule was run again", "; now it is `", "repetition.rs:"]);
}

/// Up to where the shorter of two runs ends, nothing differs.
#[test]
fn a_run_that_goes_on_where_another_has_ended_is_another_one() {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let report = check(|| {
        let count = AtomicUsize::new(0);
        for _ in 0..=NEXT.fetch_add(1, SeqCst) % 3 {
            count.fetch_add(1, SeqCst);
        }
    });
    is_found_out(&report, &["where one of the two runs ends, after event ", " with `fetch_add: ", "repetition.rs:"]);
}

#[test]
fn values_that_differ_are_told_and_are_no_failure() {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let report = check(|| {
        let shared = Arc::new(AtomicUsize::new(0));
        let other = shared.clone();
        let thread = thread::spawn(move || other.load(SeqCst));
        shared.store(NEXT.fetch_add(1, SeqCst), SeqCst);
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    let text = report.to_string();
    assert!(text.contains("note: values differ from run to run") && text.contains("; now it is `store "), "{text}");
    assert!(report.has_notes());
}

#[test]
fn what_a_static_keeps_from_the_first_run_is_no_difference() {
    static CACHE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let report = check(|| {
        let shared = Arc::new(AtomicUsize::new(0));
        let known = *CACHE.get_or_init(|| 3);
        shared.store(known, SeqCst);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(!report.has_notes(), "{report}");
}

/// The making of what a static keeps has events of its own, once.
#[test]
fn what_is_initialised_in_the_first_run_does_not_weaken_the_answer() {
    static CACHE: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let report = check(|| {
        let make = || {
            let atomic = AtomicUsize::new(2);
            atomic.store(3, SeqCst);
            atomic.load(SeqCst)
        };
        let shared = Arc::new(AtomicUsize::new(*CACHE.get_or_init(make)));
        let theirs = shared.clone();
        let thread = thread::spawn(move || theirs.fetch_add(1, SeqCst));
        shared.fetch_add(1, SeqCst);
        thread.join().unwrap();
        assert_eq!(shared.load(SeqCst), 5);
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 2), "{report}");
    let text = report.to_string();
    assert!(
        text.contains("note: the first execution of all did something that later ones do not do (seen at"),
        "{text}"
    );
}

/// Some order of so many elements: another one each time.
fn some_order(elements: usize, random: &std::sync::atomic::AtomicU64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..elements).collect();
    for last in (1..elements).rev() {
        let next = |state: u64| Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f));
        let state = random.fetch_update(SeqCst, SeqCst, next).unwrap();
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    order
}

#[test]
fn whatever_does_not_repeat_itself_comes_to_an_end() {
    for round in 0..1_000 {
        let elements = 4 + round % 8;
        let random = std::sync::atomic::AtomicU64::new(round as u64);
        let report = check(move || {
            let (all, theirs) = atomics();
            let thread = thread::spawn(move || theirs[..4].iter().for_each(|one| _ = one.fetch_add(1, SeqCst)));
            for element in some_order(elements, &random) {
                all[element].fetch_add(1, SeqCst);
            }
            thread.join().unwrap();
        });
        assert!(!report.to_string().is_empty());
    }
}

#[test]
fn a_failure_that_does_not_come_again_is_told() {
    static ONCE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let body = |always: bool| {
        move || {
            AtomicUsize::new(0).load(SeqCst);
            assert!(!always && ONCE.swap(true, SeqCst), "now and then");
        }
    };
    let report = check(body(false));
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    let text = report.to_string();
    assert!(text.contains("now and then") && text.contains("note: the execution did not fail in this way"), "{text}");
    let report = check(body(true));
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(report.notes.is_empty(), "{report}");
}

/// Whether a reference of `std` can still be upgraded is nothing that weakspot sees: a thread that runs earlier than before does
/// something else. It was taken for what it had done before, to another object, and an `RwLock` had readers it never had.
#[test]
fn what_a_thread_does_to_something_else_is_not_the_same() {
    let report = check(|| {
        let (number, theirs) = atomics();
        let lock = std::sync::Arc::new(RwLock::new(0));
        let weak = std::sync::Arc::downgrade(&lock);
        let thread = thread::spawn(move || {
            if let Some(lock) = weak.upgrade() {
                drop(lock.read().unwrap());
            }
            theirs[0].fetch_add(1, SeqCst);
        });
        number[0].fetch_add(1, SeqCst);
        drop(lock.write().unwrap());
        drop(lock);
        thread.join().unwrap();
    });
    assert!(report.failure.is_none(), "{report}");
    assert!(report.executions > 2 && matches!(report.verdict, Verdict::Bounded(_)), "{report}");
}

fn adds_twice() {
    let (number, theirs) = atomics();
    let thread = thread::spawn(move || theirs[0].fetch_add(1, SeqCst));
    number[0].fetch_add(1, SeqCst);
    thread.join().unwrap();
}

/// Once in three runs it does more.
fn sometimes_adds_again() {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let (number, _) = atomics();
    number[0].fetch_add(1, SeqCst);
    if RUNS.fetch_add(1, SeqCst) % 3 == 2 {
        number[0].fetch_add(1, SeqCst);
    }
}

/// All functions have one type, and so do all boxes with closures in them.
#[test]
fn functions_of_the_same_type_are_all_looked_at() {
    for (function, repeats_itself) in [(adds_twice as fn(), true), (sometimes_adds_again, false)] {
        let report = Builder::default().check(function);
        assert_eq!(report.failure.is_none(), repeats_itself, "{report}");
    }
}
