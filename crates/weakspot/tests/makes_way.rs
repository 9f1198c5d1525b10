//! What an execution has done decides whether it makes way for ordinary code: only what was changed and is not put back keeps it.
#![allow(clippy::unwrap_used)]

use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError};

use weakspot::sync::{Mutex, RwLock};
use weakspot::{Builder, Report};

static HELD: Mutex<u64> = Mutex::new(0);
static USED: Mutex<u64> = Mutex::new(0);

/// Explores a model that does something, and then waits for ordinary code that waits for the model.
fn in_the_way(does: impl Fn() + Send + Sync + 'static) -> Report {
    // Tests that run side by side would wait for each other here.
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let ((held, is_held), (came, has_come)) = (channel(), channel());
    let came = std::sync::Mutex::new(Some(came));
    let ordinary = std::thread::spawn(move || {
        let _guard = HELD.lock().unwrap();
        held.send(()).unwrap();
        has_come.recv().unwrap();
        drop(USED.lock().unwrap());
    });
    is_held.recv().unwrap();
    let report = Builder::default().check(move || {
        does();
        *USED.lock().unwrap() += 1;
        if let Some(came) = came.lock().unwrap().take() {
            came.send(()).unwrap();
        }
        *HELD.lock().unwrap() += 1;
    });
    ordinary.join().unwrap();
    report
}

/// Whether it has only looked, or what it has changed is as it was.
#[test]
fn a_model_that_has_left_as_it_was_what_it_has_captured_makes_way() {
    for was_used in [false, true] {
        let captured = Arc::new(Mutex::new(0));
        if was_used {
            let used = captured.clone();
            weakspot::model(move || drop(used.lock()));
        }
        let (looks, writes) = (captured.clone(), captured.clone());
        let report = in_the_way(move || assert_eq!(*looks.lock().unwrap(), 0));
        assert!(report.failure.is_none(), "{report}");
        let report = in_the_way(move || {
            *writes.lock().unwrap() = 1;
            *writes.lock().unwrap() = 0;
        });
        assert!(report.failure.is_none(), "{report}");
    }
}

/// What a run has made goes with it, wherever it is.
#[test]
fn a_model_that_has_changed_what_it_has_made_itself_makes_way() {
    weakspot::lazy_static! {
        static ref LAZY: Mutex<u8> = Mutex::new(0);
    }
    weakspot::thread_local! {
        static LOCAL: Mutex<u8> = Mutex::new(0);
    }
    let report = in_the_way(|| {
        let (on_stack, before) = (Mutex::new(0), Arc::new(Mutex::new(0)));
        let (theirs, moved) = (before.clone(), Mutex::new(0));
        let other = weakspot::thread::spawn(move || {
            *moved.lock().unwrap() += 1;
            *theirs.lock().unwrap() += 1;
            let in_thread = Arc::new(Mutex::new(0));
            *in_thread.lock().unwrap() += 1;
        });
        let after = Box::new(RwLock::new(0));
        *after.write().unwrap() += 1;
        *on_stack.lock().unwrap() += 1;
        *LAZY.lock().unwrap() += 1;
        LOCAL.with(|lock| *lock.lock().unwrap() += 1);
        other.join().unwrap();
        assert_eq!(*before.lock().unwrap(), 1);
    });
    assert!(report.failure.is_none(), "{report}");
}

/// A thread that has not come to the lock when the execution makes way does not begin a change that it could not end.
#[test]
#[cfg(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
fn an_execution_that_makes_way_begins_no_change() {
    let captured = Arc::new(Mutex::new(0));
    let theirs = captured.clone();
    let report = in_the_way(move || {
        let captured = theirs.clone();
        weakspot::thread::spawn(move || {
            let mut held = captured.lock().unwrap();
            assert_eq!(*held, 0);
            *held = 1;
            drop(held);
            *HELD.lock().unwrap() += 1;
            *captured.lock().unwrap() = 0;
        });
    });
    assert!(report.failure.is_none(), "{report}");
    assert_eq!(*captured.lock().unwrap(), 0);
}
