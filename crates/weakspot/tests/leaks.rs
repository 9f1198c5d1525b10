//! `Arc`s that are never dropped, and those that a static keeps.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::mem;

use weakspot::alloc::Track;
use weakspot::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use weakspot::sync::{Arc, LazyLock, Mutex, OnceLock};
use weakspot::{Builder, FailureKind, Impact, MemoryModel, Report, Verdict, thread};

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

/// Two threads leave a value in a slot; who finds that the other one has gone away takes it out. If each takes the other
/// one to be there still, nobody does.
fn last_one_out(value: fn() -> *mut (), drop_it: fn(*mut ()), fenced: bool) -> impl Fn() + Send + Sync + Clone {
    move || {
        let slot = Arc::new((AtomicPtr::new(value()), AtomicBool::new(false), AtomicBool::new(false)));
        let other = Arc::clone(&slot);
        let leave = move |slot: &AtomicPtr<()>, own: &AtomicBool, other: &AtomicBool| {
            own.store(true, Ordering::Release);
            if fenced {
                fence(Ordering::SeqCst);
            }
            if other.load(Ordering::Acquire) {
                let value = slot.swap(std::ptr::null_mut(), Ordering::AcqRel);
                if !value.is_null() {
                    drop_it(value);
                }
            }
        };
        let thread = thread::spawn(move || leave(&other.0, &other.1, &other.2));
        leave(&slot.0, &slot.2, &slot.1);
        thread.join().unwrap();
    }
}

fn an_arc() -> *mut () {
    Arc::into_raw(Arc::new(1_u32)).cast_mut().cast()
}

fn drop_arc(arc: *mut ()) {
    // SAFETY: comes from `an_arc`.
    drop(unsafe { Arc::from_raw(arc.cast_const().cast::<u32>()) });
}

fn a_tracked_box() -> *mut () {
    Box::into_raw(Box::new(Track::new(1_u32))).cast()
}

fn drop_tracked(tracked: *mut ()) {
    // SAFETY: comes from `a_tracked_box`.
    drop(unsafe { Box::from_raw(tracked.cast::<Track<u32>>()) });
}

fn on(model: MemoryModel, body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder { model, ..Builder::default() }.check(body)
}

fn assert_harmful_leak(report: &Report, text: &str) {
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    let Some(Impact::Harmful(harm)) = &report.impact else { panic!("{report}") };
    assert!(matches!(harm.failure.kind, FailureKind::Leak), "{report}");
    assert!(harm.failure.message.contains(text), "{report}");
}

#[test]
fn a_leak_that_only_store_buffers_cause_is_harm() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        assert_harmful_leak(&on(model, last_one_out(an_arc, drop_arc, false)), "1 Arc(s) leaked");
        assert_harmful_leak(&on(model, last_one_out(a_tracked_box, drop_tracked, false)), "leaks.rs");
        let replayed = replay_of_harm(model, last_one_out(an_arc, drop_arc, false));
        assert_leaks(&replayed, "1");
    }
    let report = on(MemoryModel::Sc, last_one_out(an_arc, drop_arc, false));
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

fn replay_of_harm(model: MemoryModel, body: impl Fn() + Send + Sync + Clone + 'static) -> Report {
    let report = on(model, body.clone());
    let Some(Impact::Harmful(harm)) = &report.impact else { panic!("{report}") };
    Builder { model, replay: Some(harm.schedule.clone()), ..Builder::default() }.check(body)
}

#[test]
fn a_fence_stops_the_leak_that_store_buffers_cause() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = on(model, last_one_out(an_arc, drop_arc, true));
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
    }
}

/// Says that there is something to drop before it has put it there.
#[test]
fn a_leak_that_only_pso_causes_is_harm_there() {
    let body = || {
        let slot = Arc::new((AtomicPtr::<()>::new(std::ptr::null_mut()), AtomicBool::new(false)));
        let other = Arc::clone(&slot);
        let thread = thread::spawn(move || {
            other.0.store(an_arc(), Ordering::Relaxed);
            other.1.store(true, Ordering::Relaxed);
        });
        let mut taken = std::ptr::null_mut();
        let told = slot.1.load(Ordering::Acquire);
        if told {
            taken = slot.0.load(Ordering::Relaxed);
        }
        thread.join().unwrap();
        if !told {
            taken = slot.0.load(Ordering::Relaxed);
        }
        if !taken.is_null() {
            drop_arc(taken);
        }
    };
    assert_harmful_leak(&on(MemoryModel::Pso, body), "1 Arc(s) leaked");
    assert_eq!(on(MemoryModel::Tso, body).verdict, Verdict::Safe);
}

/// The store may be late, and nothing is lost by that.
#[test]
fn a_violation_after_which_all_is_dropped_is_benign() {
    let body = || {
        let flags = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let other = Arc::clone(&flags);
        let kept = Arc::new(Track::new(3));
        let theirs = Arc::clone(&kept);
        let thread = thread::spawn(move || {
            other.0.store(true, Ordering::Release);
            let _ = other.1.load(Ordering::Acquire);
            drop(theirs);
        });
        flags.1.store(true, Ordering::Release);
        let _ = flags.0.load(Ordering::Acquire);
        drop(kept);
        thread.join().unwrap();
    };
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = on(model, body);
        assert!(!report.violations.is_empty(), "{report}");
        assert!(matches!(report.impact, Some(Impact::Benign)), "{report}");
    }
}
