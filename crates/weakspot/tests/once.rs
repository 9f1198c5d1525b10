//! `Once`, `OnceLock` and `LazyLock` inside and outside a model.
#![allow(clippy::unwrap_used)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::Relaxed;
use weakspot::sync::{Arc, LazyLock, Once, OnceLock};
use weakspot::{Builder, Report, Verdict, thread};

fn passes(test: fn()) -> Report {
    let report = Builder::new().check(test);
    assert!(!report.is_failure(), "{report}");
    assert!(report.exhaustive, "{report}");
    report
}

#[test]
fn once_runs_one_closure_and_the_other_waits() {
    let report = passes(|| {
        let shared = Arc::new((Once::new(), AtomicUsize::new(0)));
        let call = |shared: &(Once, AtomicUsize)| {
            shared.0.call_once(|| shared.1.store(shared.1.load(Relaxed) + 1, Relaxed));
            assert_eq!(shared.1.load(Relaxed), 1);
        };
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || call(&other));
        call(&shared);
        thread.join().unwrap();
        assert!(shared.0.is_completed());
    });
    assert_eq!(report.executions, 2, "one for each thread that can be first");
}

#[test]
fn once_is_poisoned_by_a_panic_and_forced_after_it() {
    let test = || {
        let once = Once::new();
        assert!(catch_unwind(AssertUnwindSafe(|| once.call_once(|| panic!("first")))).is_err());
        assert!(!once.is_completed());
        assert!(catch_unwind(AssertUnwindSafe(|| once.call_once(|| {}))).is_err());
        once.call_once_force(|state| assert!(state.is_poisoned()));
        once.call_once(|| unreachable!("it is complete"));
    };
    test();
    passes(test);
}

#[test]
fn once_lock_keeps_the_first_value() {
    let report = passes(|| {
        let cell = Arc::new(OnceLock::new());
        let other = Arc::clone(&cell);
        let thread = thread::spawn(move || other.set(1).is_ok());
        let second = cell.set(2);
        let first = thread.join().unwrap();
        assert_ne!(first, second.is_ok());
        assert_eq!(cell.get(), Some(if first { &1 } else { &2 }));
    });
    assert_eq!(report.executions, 2);
}

#[test]
fn a_static_once_lock_is_empty_at_the_start_of_each_execution() {
    static CELL: OnceLock<usize> = OnceLock::new();
    let report = passes(|| {
        let thread = thread::spawn(|| *CELL.get_or_init(|| 1));
        let seen = *CELL.get_or_init(|| 2);
        assert_eq!(thread.join().unwrap(), seen);
    });
    assert_eq!(report.executions, 2);
    assert_eq!(CELL.get(), None);
}

#[test]
fn a_value_that_was_set_outside_is_there_inside() {
    static CELL: OnceLock<String> = OnceLock::new();
    CELL.set("outside".to_owned()).unwrap();
    passes(|| assert_eq!(CELL.get().unwrap(), "outside"));
}

#[test]
fn once_lock_waits_for_another_thread() {
    let report = passes(|| {
        let cell = Arc::new(OnceLock::new());
        let other = Arc::clone(&cell);
        let thread = thread::spawn(move || other.set(7).unwrap());
        assert_eq!(*cell.wait(), 7);
        thread.join().unwrap();
    });
    assert_eq!(report.executions, 1);
}

#[test]
fn a_panicking_initialiser_leaves_the_cell_empty() {
    let test = || {
        let cell: OnceLock<u8> = OnceLock::new();
        assert!(catch_unwind(AssertUnwindSafe(|| cell.get_or_init(|| panic!("no value")))).is_err());
        assert_eq!(*cell.get_or_init(|| 3), 3);
        assert_eq!(cell.into_inner(), Some(3));
    };
    test();
    passes(test);
}

#[test]
fn once_lock_gives_its_value_back() {
    let test = || {
        let mut cell = OnceLock::from("value".to_owned());
        cell.get_mut().unwrap().push('s');
        assert_eq!(cell.clone().into_inner().unwrap(), "values");
        assert_eq!(cell.take().unwrap(), "values");
        assert_eq!(cell.get(), None);
        assert!(cell.set("again".to_owned()).is_ok());
    };
    test();
    passes(test);
}

#[test]
fn a_static_lazy_lock_is_made_once_in_each_execution() {
    static MADE: LazyLock<AtomicUsize> = LazyLock::new(|| AtomicUsize::new(10));
    let report = passes(|| {
        let thread = thread::spawn(|| MADE.fetch_add(1, Relaxed));
        let mine = MADE.fetch_add(1, Relaxed);
        assert_eq!(mine + thread.join().unwrap(), 21);
    });
    assert!(report.executions >= 2);
    assert_eq!(MADE.load(Relaxed), 10, "outside the model it is another one");
}

#[test]
fn a_deadlock_of_a_once_on_itself_is_reported() {
    let report = Builder::new().check(|| {
        let once = Once::new();
        once.call_once(|| once.call_once(|| {}));
    });
    assert!(report.is_failure());
    assert!(report.to_string().contains("Once::call_once"), "{report}");
}

#[test]
fn who_has_seen_a_value_does_not_look_again() {
    weakspot::lazy_static! {
        static ref SHARED: (std::sync::atomic::AtomicUsize, std::sync::atomic::AtomicUsize) = Default::default();
    }
    // Between two uses of the static nothing happens that another thread could see.
    let count = || {
        let (first, second) = (SHARED.0.load(Relaxed), SHARED.1.load(Relaxed));
        assert_eq!(first, second);
        SHARED.0.store(first + 1, Relaxed);
        SHARED.1.store(second + 1, Relaxed);
        SHARED.0.load(Relaxed)
    };
    let report = Builder::default().check(move || {
        let thread = thread::spawn(count);
        let (mine, theirs) = (count(), thread.join().unwrap());
        assert_eq!(mine + theirs, 3);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert_eq!(report.executions, 2, "{report}");
}

/// As with the standard library's: whoever comes after a panic of the initialiser panics, too, and it is not run again.
#[test]
fn a_lazy_value_outside_of_models_that_panics_is_not_made_again() {
    static RUNS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    static LAZY: LazyLock<u32> = LazyLock::new(|| {
        RUNS.fetch_add(1, Relaxed);
        panic!("on purpose")
    });
    for _ in 0..3 {
        assert!(catch_unwind(|| *LAZY).is_err());
    }
    assert_eq!(RUNS.load(Relaxed), 1);
}
