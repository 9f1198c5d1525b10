//! Futures inside and outside a model.
#![allow(clippy::unwrap_used)]

use std::future::poll_fn;
use std::task::{Poll, Waker};
use weakspot::future::{AtomicWaker, block_on};
use weakspot::sync::atomic::Ordering::{Acquire, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicUsize};
use weakspot::sync::{Arc, Mutex, Notify};
use weakspot::{Builder, Verdict, thread};

/// Waits for a flag: registers, then looks.
fn wait_for_flag() {
    let shared = Arc::new((AtomicWaker::new(), AtomicBool::new(false)));
    let other = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        other.1.store(true, Release);
        other.0.wake();
    });
    block_on(poll_fn(|context| {
        shared.0.register_by_ref(context.waker());
        if shared.1.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }));
    thread.join().unwrap();
    drop(shared.0.take_waker());
}

#[test]
fn a_future_that_registers_first_is_woken() {
    wait_for_flag();
    let report = Builder::new().check(wait_for_flag);
    assert!(!report.is_failure(), "{report}");
    assert!(report.exhaustive);
}

#[test]
fn a_future_that_looks_first_sleeps_for_ever() {
    let report = Builder::new().check(|| {
        let shared = Arc::new((AtomicWaker::new(), AtomicBool::new(false)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.1.store(true, Release);
            other.0.wake();
        });
        block_on(poll_fn(|context| {
            if shared.1.load(Acquire) {
                return Poll::Ready(());
            }
            shared.0.register_by_ref(context.waker());
            Poll::Pending
        }));
        thread.join().unwrap();
    });
    assert!(report.is_failure());
    assert!(report.to_string().contains("waits in `block_on` for a call of its waker"), "{report}");
}

#[test]
fn a_leaked_waker_is_reported() {
    let report = Builder::new().check(|| {
        let kept: Arc<Mutex<Option<Waker>>> = Arc::new(Mutex::new(None));
        block_on(poll_fn(|context| {
            *kept.lock().unwrap() = Some(context.waker().clone());
            Poll::Ready(())
        }));
        std::mem::forget(kept.lock().unwrap().take());
    });
    assert!(report.is_failure());
    assert!(report.to_string().contains("waker"), "{report}");
}

fn wait_and_notify() {
    let notify = Arc::new((Notify::new(), AtomicBool::new(false)));
    let other = Arc::clone(&notify);
    let thread = thread::spawn(move || {
        other.1.store(true, Release);
        other.0.notify();
    });
    while !notify.1.load(Acquire) {
        notify.0.wait();
    }
    thread.join().unwrap();
}

#[test]
fn notify_wakes_the_waiting_thread() {
    wait_and_notify();
    let report = Builder::new().check(wait_and_notify);
    assert!(!report.is_failure(), "{report}");
}

/// A task that wakes itself while somebody else is busy, as `AtomicWaker::register` does: a loop that waits.
#[test]
fn a_task_that_wakes_itself_in_each_round_waits() {
    let report = Builder::default().check(|| {
        let busy = Arc::new(AtomicUsize::new(1));
        let other = Arc::clone(&busy);
        let thread = thread::spawn(move || other.store(0, SeqCst));
        block_on(poll_fn(|context| {
            if busy.load(SeqCst) == 0 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            weakspot::hint::spin_loop();
            Poll::Pending
        }));
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(report.exhaustive, "{report}");
}

/// The message speaks of what the test has called.
#[test]
fn a_future_that_nobody_wakes_is_named_as_such() {
    let report = Builder::default().check(|| {
        block_on(std::future::pending::<()>());
    });
    let failure = report.failure.as_ref().unwrap_or_else(|| panic!("{report}"));
    assert!(failure.message.contains("waits in `block_on` for a call of its waker, at"), "{report}");
    assert!(failure.message.contains("futures.rs:") && !report.to_string().contains("Notify"), "{report}");
}
