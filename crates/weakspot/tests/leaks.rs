//! `Arc`s that are never dropped, and those that a static keeps.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::mem;

use weakspot::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use weakspot::sync::{Arc, LazyLock, Mutex, OnceLock};
use weakspot::{Builder, FailureKind, Report, Verdict, thread};

fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(body)
}

fn assert_leaks(report: &Report, count: &str) {
    let failure = report.failure.as_ref().unwrap();
    assert!(matches!(failure.kind, FailureKind::Leak), "{report}");
    assert!(failure.message.contains(&format!("{count} Arc(s) leaked")), "{report}");
    assert!(failure.message.contains("tests/leaks.rs:"), "{report}");
}

#[test]
fn a_forgotten_owner_is_a_leak() {
    let report = check(|| {
        let arc = Arc::new(1);
        mem::forget(Arc::clone(&arc));
        mem::forget(Arc::new(2));
    });
    assert_leaks(&report, "2");
}

#[test]
fn owners_that_own_each_other_are_a_leak() {
    struct Node(Mutex<Option<Arc<Node>>>);
    let report = check(|| {
        let node = Arc::new(Node(Mutex::new(None)));
        *node.0.lock().unwrap() = Some(Arc::clone(&node));
    });
    assert_leaks(&report, "1");
}

#[test]
fn a_leak_is_found_although_the_count_is_observed() {
    let report = check(|| {
        let arc = Arc::new(1);
        let weak = Arc::downgrade(&arc);
        mem::forget(weak.upgrade());
        assert_eq!(Arc::strong_count(&arc), 2);
    });
    assert_leaks(&report, "1");
}

/// Reclamation that forgets to free what it finds: only if both replace it at the same time.
#[test]
fn a_leak_in_one_schedule_of_many_is_found() {
    fn replace(slot: &AtomicPtr<u32>, value: u32) {
        let new = Arc::into_raw(Arc::new(value)).cast_mut();
        let old = slot.load(Ordering::SeqCst);
        slot.store(new, Ordering::SeqCst);
        if !old.is_null() {
            // SAFETY: comes from `into_raw`; as it is written here, two threads may free it twice, but not in this test,
            // where the slot is empty in the beginning.
            drop(unsafe { Arc::from_raw(old) });
        }
    }
    fn model() {
        let slot = Arc::new(AtomicPtr::new(std::ptr::null_mut()));
        let other = Arc::clone(&slot);
        let thread = thread::spawn(move || replace(&other, 1));
        replace(&slot, 2);
        thread.join().unwrap();
        // SAFETY: one of them has stored a pointer from `into_raw`.
        drop(unsafe { Arc::from_raw(slot.load(Ordering::SeqCst)) });
    }
    assert_leaks(&check(model), "1");
}

#[test]
fn owners_that_are_dropped_are_no_leak() {
    let report = check(|| {
        let arc = Arc::new(AtomicUsize::new(1));
        let (one, two) = (Arc::clone(&arc), Arc::into_raw(Arc::clone(&arc)));
        let thread = thread::spawn(move || drop(one));
        // SAFETY: comes from `into_raw`.
        drop(unsafe { Arc::from_raw(two) });
        let weak = Arc::downgrade(&arc);
        thread.join().unwrap();
        assert_eq!(Arc::try_unwrap(arc).unwrap().into_inner(), 1);
        assert!(weak.upgrade().is_none());
        let _ = Arc::into_inner(Arc::new(3));
        drop(Arc::<[u8]>::from(vec![1, 2]));
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn what_statics_and_threads_keep_is_no_leak() {
    static LAZY: LazyLock<Arc<u32>> = LazyLock::new(|| Arc::new(1));
    static ONCE: OnceLock<Mutex<Vec<Arc<u32>>>> = OnceLock::new();
    weakspot::lazy_static! {
        static ref LOOMS: Mutex<Vec<Arc<u32>>> = Mutex::new(vec![Arc::new(3)]);
    }
    weakspot::thread_local! {
        static LOCAL: RefCell<Vec<Arc<u32>>> = const { RefCell::new(Vec::new()) };
    }
    let captured = Arc::new(7);
    let report = check(move || {
        let use_all = || {
            assert_eq!(**LAZY, 1);
            let _ = ONCE.get_or_init(|| Mutex::new(vec![Arc::new(2)])).lock().unwrap().len();
            LOOMS.lock().unwrap().push(Arc::new(4));
            LOCAL.with_borrow_mut(|local| local.push(Arc::new(5)));
        };
        let theirs = Arc::clone(&captured);
        let thread = thread::spawn(move || assert_eq!(*theirs, 7));
        use_all();
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}
