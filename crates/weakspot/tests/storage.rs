//! Thread-locals, lazy statics and tracked allocations.
#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use weakspot::alloc::{Layout, Track, alloc, dealloc};
use weakspot::sync::Arc;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::Relaxed;
use weakspot::{Builder, thread};

weakspot::thread_local! {
    static COUNT: Cell<u32> = const { Cell::new(0) };
    static NAMES: RefCell<Vec<u32>> = RefCell::new(vec![1]);
}

fn thread_locals() {
    COUNT.set(COUNT.get() + 1);
    NAMES.with_borrow_mut(|names| names.push(2));
    let other = thread::spawn(|| (COUNT.replace(9), NAMES.take()));
    assert_eq!(other.join().unwrap(), (0, vec![1]));
    assert_eq!(NAMES.take(), [1, 2]);
    assert_eq!(COUNT.take(), 1);
    NAMES.set(vec![1]);
}

#[test]
fn every_thread_has_its_own_value() {
    thread_locals();
    let report = Builder::new().check(thread_locals);
    assert!(!report.is_failure(), "{report}");
    assert_eq!(report.executions, 1);
}

struct Counts(Arc<AtomicUsize>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

weakspot::thread_local! {
    static GUARD: RefCell<Option<Counts>> = const { RefCell::new(None) };
}

#[test]
fn thread_locals_are_dropped_before_the_thread_is_joined() {
    let report = Builder::new().check(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let counts = Counts(Arc::clone(&dropped));
        thread::spawn(move || GUARD.set(Some(counts))).join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
    assert!(!report.is_failure(), "{report}");
}

weakspot::lazy_static! {
    static ref TOTAL: AtomicUsize = AtomicUsize::new(5);
    pub(crate) static ref TRACKED: Track<String> = Track::new("kept to the end".to_owned());
}

#[test]
fn lazy_statics_begin_anew_in_each_execution() {
    assert_eq!(TOTAL.load(Relaxed), 5);
    let report = Builder::new().check(|| {
        let other = thread::spawn(|| TOTAL.fetch_add(1, Relaxed));
        let mine = TOTAL.fetch_add(1, Relaxed);
        assert_eq!(mine + other.join().unwrap(), 11);
    });
    assert!(!report.is_failure(), "{report}");
    assert!(report.executions >= 2);
}

#[test]
fn lazy_statics_are_dropped_before_leaks_are_counted() {
    let report = Builder::new().check(|| assert_eq!(TRACKED.get_ref(), "kept to the end"));
    assert!(!report.is_failure(), "{report}");
}

#[test]
fn a_forgotten_value_is_a_leak_with_its_place() {
    let line = line!() + 2;
    let report = Builder::new().check(|| {
        let mut value = Track::new(1);
        *value.get_mut() += 1;
        std::mem::forget(value);
    });
    assert!(report.is_failure());
    assert!(report.to_string().contains(&format!("storage.rs:{line}")), "{report}");
}

#[test]
fn a_value_that_is_taken_out_is_no_leak() {
    let report = Builder::new().check(|| {
        let value = Track::new(1);
        std::mem::forget(Box::new(value.into_inner()));
    });
    assert!(!report.is_failure(), "{report}");
}

#[test]
fn memory_is_freed_once() {
    let layout = Layout::new::<u64>();
    let balanced = Builder::new().check(move || {
        // SAFETY: the layout is not empty, and what is freed was allocated with it.
        unsafe { dealloc(alloc(layout), layout) };
    });
    assert!(!balanced.is_failure(), "{balanced}");
    let leaking = Builder::new().check(move || {
        // SAFETY: the layout is not empty.
        let _ = unsafe { alloc(layout) };
    });
    assert!(leaking.is_failure());
    assert!(leaking.to_string().contains("leaked"), "{leaking}");
}

#[test]
fn a_lazy_static_that_is_not_sync_is_for_models_only() {
    weakspot::lazy_static! {
        static ref CELL: Cell<u32> = Cell::new(1);
        static ref SHARED: u32 = 2;
    }
    weakspot::model(|| {
        CELL.set(CELL.get() + 1);
        assert_eq!(CELL.get() + *SHARED, 4);
    });
    assert_eq!(*SHARED, 2);
    let refused = std::panic::catch_unwind(|| CELL.get()).unwrap_err();
    let message = refused.downcast_ref::<&str>().unwrap();
    assert!(message.contains("not `Sync`"), "{message}");
}

struct Noted(Arc<AtomicUsize>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.store(1, Relaxed);
    }
}

weakspot::thread_local! {
    static NOTED: RefCell<Option<Noted>> = const { RefCell::new(None) };
}

/// As in the standard library: a thread that has finished may still destroy its thread-locals; one that was joined has.
#[test]
fn a_thread_has_finished_before_its_thread_locals_are_destroyed() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let all = seen.clone();
    let report = Builder::new().check(move || {
        let noted = Arc::new(AtomicUsize::new(0));
        let other = Noted(noted.clone());
        let thread = thread::spawn(|| NOTED.set(Some(other)));
        let finished = thread.is_finished();
        let before = noted.load(Relaxed);
        thread.join().unwrap();
        assert_eq!(noted.load(Relaxed), 1);
        all.lock().unwrap().insert((finished, before));
    });
    assert!(!report.is_failure(), "{report}");
    assert!(seen.lock().unwrap().iter().eq(&[(false, 0), (false, 1), (true, 0), (true, 1)]));
}
