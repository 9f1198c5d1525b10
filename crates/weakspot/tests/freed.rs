//! Memory that is freed twice, or used after it was freed, fails the model, and does not end the process.
#![cfg(all(target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::AtomicPtr as Outside;

use weakspot::sync::Arc;
use weakspot::sync::atomic::Ordering::{Relaxed, SeqCst};
use weakspot::sync::atomic::{AtomicBool, Ordering};
use weakspot::{Builder, FailureKind, MemoryModel, Report, Verdict, thread};

/// Each of two threads says that it comes, and frees the value if it does not see the other.
fn both_take<T: 'static>(model: MemoryModel, order: Ordering, value: fn() -> T) -> Report {
    Builder { model, ..Builder::default() }.check(move || {
        let flags = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let value = Arc::new(Outside::new(Box::into_raw(Box::new(value()))));
        // SAFETY: none, that is what is tested.
        let take = |value: &Outside<T>| drop(unsafe { Box::from_raw(value.load(Relaxed)) });
        let (others, same) = (flags.clone(), value.clone());
        let thread = thread::spawn(move || {
            others.0.store(true, order);
            let free = !others.1.load(order);
            if free {
                take(&same);
            }
            free
        });
        flags.1.store(true, order);
        let free = !flags.0.load(order);
        if free {
            take(&value);
        }
        if !free && !thread.join().unwrap() {
            take(&value);
        }
    })
}

#[test]
fn a_delayed_store_lets_both_free_it() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let reports = [both_take(model, Relaxed, || 5_u64), both_take(model, Relaxed, || vec![1, 2, 3])];
        for report in reports {
            assert_eq!(report.verdict, Verdict::Harmful, "{report}");
            let text = report.to_string();
            assert!(text.contains("is freed twice: by thread "), "{text}");
            assert!(text.contains("no execution fails"), "{text}");
        }
    }
}

#[test]
fn each_of_two_may_be_last() {
    for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
        let report = both_take(model, SeqCst, || vec![1, 2, 3]);
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
    }
}

#[test]
fn every_processor_frees_it_twice() {
    let check = |replay| {
        Builder { replay, ..Builder::default() }.check(|| {
            let taken = Arc::new(AtomicBool::new(false));
            let value = Arc::new(Outside::new(Box::into_raw(Box::new(String::from("taken twice")))));
            let take = |taken: &AtomicBool, value: &Outside<String>| {
                if !taken.load(SeqCst) {
                    taken.store(true, SeqCst);
                    // SAFETY: none, that is what is tested.
                    drop(unsafe { Box::from_raw(value.load(Relaxed)) });
                }
            };
            let (other, same) = (taken.clone(), value.clone());
            let thread = thread::spawn(move || take(&other, &same));
            take(&taken, &value);
            thread.join().unwrap();
        })
    };
    let report = check(None);
    let failure = report.failure.as_ref().unwrap_or_else(|| panic!("{report}"));
    assert!(matches!(failure.kind, FailureKind::Other), "{report}");
    let text = report.to_string();
    let line = line!() - 15; // of the store
    let place = format!(", after its event at crates/weakspot/tests/freed.rs:{line}:");
    assert_eq!(text.matches(&place).count(), 2, "{line}: {text}");
    let schedule = text.split("WEAKSPOT_REPLAY=").nth(1).unwrap().split_whitespace().next().unwrap();
    let again = check(Some(schedule.to_owned()));
    assert!(again.to_string().contains("is freed twice"), "{again}");
}

#[test]
fn what_is_made_anew_may_be_freed_again() {
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| (0..100).for_each(|i| drop(vec![i; 10])));
        (0..100).for_each(|i| drop(vec![i; 10]));
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

/// The value in a box, used after that was freed.
fn used_after<T: 'static>(value: fn() -> T, before: fn(&T), after: fn(&T)) -> String {
    let report = Builder::default().check(move || {
        let boxed = Box::into_raw(Box::new(value()));
        // SAFETY: none, that is what is tested.
        unsafe {
            before(&*boxed);
            drop(Box::from_raw(boxed));
            after(&*boxed);
        }
    });
    assert!(report.failure.is_some(), "{report}");
    report.to_string()
}

#[test]
fn what_is_used_after_it_was_freed_is_shown() {
    let atomic = || AtomicBool::new(false);
    let load = |flag: &AtomicBool| _ = flag.load(SeqCst);
    let cell = || weakspot::cell::UnsafeCell::new(5_u8);
    let read = |cell: &weakspot::cell::UnsafeCell<u8>| cell.with(|_| ());
    let mutex = || weakspot::sync::Mutex::new(5_u8);
    let lock = |mutex: &weakspot::sync::Mutex<u8>| drop(mutex.lock());
    let texts = [
        used_after(atomic, load, load),
        used_after(atomic, |_| (), load),
        used_after(cell, read, read),
        used_after(cell, |_| (), read),
        used_after(mutex, lock, lock),
        used_after(mutex, |_| (), lock),
    ];
    for text in texts {
        assert!(text.contains("memory is used that was freed before, by thread 0"), "{text}");
        assert!(text.contains("tests/freed.rs:"), "{text}");
    }
}

#[test]
fn what_is_moved_out_may_be_used_after_its_memory_was_freed() {
    let report = Builder::default().check(|| {
        let boxed = Box::new((AtomicBool::new(false), weakspot::cell::UnsafeCell::new(1)));
        boxed.0.store(true, SeqCst);
        boxed.1.with_mut(|_| ());
        let (flag, cell) = *boxed;
        assert!(flag.load(SeqCst));
        cell.with(|_| ());
        let mut many = vec![flag];
        for at in 0..100 {
            many[at].store(true, SeqCst);
            many.push(AtomicBool::new(false));
        }
        assert!(many.iter().filter(|flag| flag.load(SeqCst)).count() == 100);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}
