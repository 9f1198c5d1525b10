//! Atomics that are accessed as plain memory: what others do to them must happen before. How long accesses last.
#![allow(clippy::unwrap_used)]

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use weakspot::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};
use weakspot::sync::{Arc, Mutex};
use weakspot::{Builder, FailureKind, Report, Verdict, thread};

fn check(test: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(test)
}

/// Two threads share an allocation; the one that counts down last frees it and looks at an atomic in it.
struct Counted {
    owners: AtomicUsize,
    value: AtomicUsize,
}

fn count_down(last: Ordering, acquire: bool) {
    let shared = Box::into_raw(Box::new(Counted { owners: AtomicUsize::new(2), value: AtomicUsize::new(0) }));
    let address = shared.expose_provenance();
    let leave = move || {
        let shared = std::ptr::with_exposed_provenance_mut::<Counted>(address);
        // SAFETY: the allocation lives until the last of the two owners is gone.
        unsafe {
            (*shared).value.fetch_add(1, Relaxed);
            if (*shared).owners.fetch_sub(1, last) == 1 {
                if acquire {
                    fence(Acquire);
                }
                assert_eq!(Box::from_raw(shared).value.with_mut(|value| *value), 2);
            }
        }
    };
    let thread = thread::spawn(leave);
    leave();
    thread.join().unwrap();
}

#[test]
fn the_last_owner_must_acquire_before_it_accesses_an_atomic_exclusively() {
    let report = check(|| count_down(Release, false));
    let failure = report.failure.as_ref().unwrap();
    let FailureKind::Race { first, second } = &failure.kind else { panic!("{report}") };
    assert_ne!(first.thread, second.thread);
    assert!(second.writes && first.place.line < second.place.line, "{report}");
    assert!(first.place.file.ends_with("races.rs") && second.place.file.ends_with("races.rs"), "{report}");
}

#[test]
fn an_acquire_fence_is_enough() {
    assert_eq!(check(|| count_down(Release, true)).verdict, Verdict::Safe);
}

fn unsynchronised_load(order: Ordering) {
    let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.0.store(1, Relaxed);
        other.1.store(1, order);
    });
    if shared.1.load(Acquire) == 1 {
        // SAFETY: the point of the test: nobody writes at the same time if the flag was released.
        assert_eq!(unsafe { shared.0.unsync_load() }, 1);
    }
    thread.join().unwrap();
}

#[test]
fn a_load_as_plain_memory_needs_the_writes_before_it() {
    let report = check(|| unsynchronised_load(Relaxed));
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Race { .. }), "{report}");
    assert_eq!(check(|| unsynchronised_load(Release)).verdict, Verdict::Safe);
}

#[test]
fn a_load_as_plain_memory_races_whichever_comes_first() {
    let report = check(|| {
        let shared = Arc::new(AtomicUsize::new(0));
        let other = shared.clone();
        // SAFETY: it is not: that is what is to be found.
        let thread = thread::spawn(move || unsafe { other.unsync_load() });
        shared.store(1, Relaxed);
        thread.join().unwrap();
    });
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Race { .. }), "{report}");
}

#[test]
fn exclusive_access_in_one_thread_is_no_race() {
    let report = check(|| {
        let mut pointer = AtomicPtr::new(std::ptr::null_mut::<u8>());
        assert!(pointer.load(Relaxed).is_null());
        *pointer.get_mut() = std::ptr::dangling_mut();
        let shared = Arc::new(pointer);
        let other = shared.clone();
        thread::spawn(move || other.store(std::ptr::null_mut(), Relaxed)).join().unwrap();
        let mut pointer = Arc::try_unwrap(shared).unwrap();
        assert!(pointer.get_mut().is_null());
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

struct Protected(UnsafeCell<usize>);

// SAFETY: the tests access it under a lock, or want to see the race.
unsafe impl Sync for Protected {}

/// The lock is given back while the memory it protects is still in use.
#[test]
fn an_access_lasts_until_its_call_is_over_and_its_pointer_is_gone() {
    fn body(how: u32) -> impl Fn() + Send + Sync + 'static {
        move || {
            let shared = Arc::new((Mutex::new(()), Protected(UnsafeCell::new(0))));
            let other = shared.clone();
            let thread = thread::spawn(move || {
                let _held = other.0.lock().unwrap();
                // SAFETY: the lock is held. Who does not hold it any more is to blame.
                other.1.0.with_mut(|value| unsafe { *value += 1 });
            });
            let held = shared.0.lock().unwrap();
            match how {
                0 => shared.1.0.with(|_| drop(held)),
                1 => shared.1.0.with_mut(|_| drop(held)),
                2 => {
                    let _pointer = shared.1.0.get();
                    drop(held);
                }
                3 => {
                    let _pointer = shared.1.0.get_mut();
                    drop(held);
                }
                4 => {
                    drop(shared.1.0.get_mut());
                    drop(held);
                }
                _ => {
                    shared.1.0.with_mut(|_| {});
                    drop(held);
                }
            }
            thread.join().unwrap();
        }
    }
    for how in 0..6 {
        let report = Builder::default().check(body(how));
        let kind = report.failure.as_ref().map(|failure| &failure.kind);
        assert_eq!(matches!(kind, Some(FailureKind::Race { .. })), how < 4, "{how}: {report}");
        assert!(how < 4 || report.verdict == Verdict::Safe, "{report}");
    }
}

#[test]
fn a_failing_compare_exchange_cannot_release() {
    for order in [Release, Ordering::AcqRel] {
        let report = Builder::default().check(move || {
            let _ = AtomicUsize::new(0).compare_exchange(0, 1, Ordering::SeqCst, order);
        });
        assert!(report.to_string().contains("failure ordering"), "{report}");
    }
}

#[test]
fn accesses_of_one_thread_that_overlap_both_read() {
    fn fails(test: fn(&UnsafeCell<usize>)) -> bool {
        let report = check(move || test(&UnsafeCell::new(0)));
        if report.verdict == Verdict::Failed {
            let text = report.to_string();
            assert!(matches!(report.failure.unwrap().kind, FailureKind::Race { .. }), "{text}");
            assert!(text.contains("two accesses of one thread overlap"), "{text}");
            return true;
        }
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
        false
    }
    assert!(fails(|cell| cell.with(|_| cell.with_mut(|_| ()))));
    assert!(fails(|cell| cell.with_mut(|_| cell.with(|_| ()))));
    assert!(fails(|cell| {
        let pointer = cell.get();
        cell.with_mut(|_| ());
        drop(pointer);
    }));
    assert!(!fails(|cell| cell.with(|_| cell.with(|_| ()))));
    assert!(!fails(|cell| {
        let (one, other) = (cell.get(), cell.get());
        drop(one);
        drop(other);
        cell.with_mut(|_| ());
        cell.get_mut().with(|_| ());
        cell.with(|_| ());
    }));
    // Outside a model nobody looks.
    let cell = UnsafeCell::new(0);
    cell.with(|_| cell.with_mut(|_| ()));
}

#[test]
fn an_access_that_panics_is_over() {
    weakspot::model(|| {
        let cell = UnsafeCell::new(0);
        let fails = std::panic::AssertUnwindSafe(|| cell.with_mut(|_| panic!("in the middle of it")));
        assert!(std::panic::catch_unwind(fails).is_err());
        cell.with_mut(|_| ());
        let number = weakspot::cell::Cell::new(1);
        let fails = std::panic::AssertUnwindSafe(|| number.update(|_| panic!("again")));
        assert!(std::panic::catch_unwind(fails).is_err());
        number.set(2);
    });
}
