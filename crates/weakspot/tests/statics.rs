//! Statics that several tests of a program use: they run side by side, and none must see what the others do.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::sync::{Mutex, OnceLock, RwLock};
use weakspot::{Builder, Verdict, thread};

static COUNT: AtomicUsize = AtomicUsize::new(0);
static LOCK: Mutex<()> = Mutex::new(());
static ACCESS: RwLock<()> = RwLock::new(());
static VALUE: OnceLock<usize> = OnceLock::new();

fn uses_statics() {
    let work = |_| {
        thread::spawn(|| {
            COUNT.fetch_add(1, SeqCst);
            drop(LOCK.lock().unwrap());
            COUNT.fetch_add(1, SeqCst);
            drop(ACCESS.read().unwrap());
            *VALUE.get_or_init(|| 7)
        })
    };
    let threads: Vec<_> = (0..2).map(work).collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 7));
    assert_eq!(COUNT.load(SeqCst), 4);
}

#[test]
fn models_that_share_statics_do_not_disturb_each_other() {
    let explore = || {
        let report = Builder::default().check(uses_statics);
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
        report.executions
    };
    let threads: Vec<_> = (0..6).map(|_| std::thread::spawn(move || [explore(), explore()])).collect();
    let all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert!(all[0] > 1 && all.iter().all(|&executions| executions == all[0]), "{all:?}");
}

/// A model comes to a static while another one, in its first execution, is using it: it waits, however many models there
/// were in between.
#[test]
fn what_one_model_is_using_is_not_taken_for_what_another_one_has_used() {
    static SHARED: AtomicUsize = AtomicUsize::new(3);
    for between in 0..8 {
        let (is_used, wait) = std::sync::mpsc::channel();
        let is_used = std::sync::Mutex::new(Some(is_used));
        let first = std::thread::spawn(move || {
            weakspot::model(move || {
                SHARED.store(4, SeqCst);
                if let Some(is_used) = is_used.lock().unwrap().take() {
                    is_used.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(30));
                }
                assert_eq!(SHARED.load(SeqCst), 4);
            });
        });
        wait.recv().unwrap();
        for _ in 0..between {
            weakspot::model(|| {});
        }
        weakspot::model(|| assert_eq!(SHARED.load(SeqCst), 3));
        first.join().unwrap();
    }
}

#[test]
fn a_model_begins_with_what_was_there_before_all_models() {
    static STARTS: AtomicUsize = AtomicUsize::new(5);
    let adds_one = || assert_eq!(STARTS.fetch_add(1, SeqCst), 5);
    weakspot::model(adds_one);
    weakspot::model(adds_one);
    STARTS.store(8, SeqCst);
    weakspot::model(|| assert_eq!(STARTS.swap(0, SeqCst), 8));
    weakspot::model(|| assert_eq!(STARTS.load(SeqCst), 8));
}

#[test]
fn a_model_that_fails_leaves_no_lock_behind() {
    static HELD: RwLock<()> = RwLock::new(());
    let report = Builder::default().check(|| {
        let _one = HELD.write().unwrap();
        let _again = HELD.read().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    weakspot::model(|| drop(HELD.write().unwrap()));
}

/// What static locks hold is put back: each execution begins with what was there before the model, and so does what
/// comes after it.
#[test]
fn what_static_locks_hold_is_as_new_in_every_execution() {
    static NUMBER: Mutex<u32> = Mutex::new(5);
    static PAIR: RwLock<(u8, Option<u64>)> = RwLock::new((1, None));
    let add = || {
        *NUMBER.lock().unwrap() += 1;
        PAIR.write().unwrap().1.get_or_insert(7);
        assert!(PAIR.try_read().is_ok_and(|pair| pair.0 == 1) || PAIR.read().unwrap().0 == 1);
        NUMBER.try_lock().map(|mut number| *number += 10).is_ok()
    };
    let report = Builder::default().check(move || {
        assert_eq!(*PAIR.read().unwrap(), (1, None));
        let thread = thread::spawn(add);
        let times = u32::from(add()) + u32::from(thread.join().unwrap());
        assert_eq!(*NUMBER.lock().unwrap(), 7 + 10 * times);
        assert_eq!(*PAIR.read().unwrap(), (1, Some(7)));
    });
    assert!(report.verdict == Verdict::Safe && report.executions > 10 && report.notes.is_empty(), "{report}");
    assert_eq!((*NUMBER.lock().unwrap(), *PAIR.read().unwrap()), (5, (1, None)));
}

#[test]
fn a_static_mutex_that_an_execution_has_poisoned_is_not_poisoned_in_the_next() {
    static POISONED: Mutex<u32> = Mutex::new(0);
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| {
            let caught = std::panic::catch_unwind(|| {
                let _held = POISONED.lock();
                panic!("on purpose");
            });
            assert!(caught.is_err());
        });
        let was_poisoned = POISONED.lock().is_err();
        thread.join().unwrap();
        assert!(POISONED.is_poisoned());
        std::hint::black_box(was_poisoned);
    });
    assert!(report.verdict == Verdict::Safe && report.executions == 2, "{report}");
    assert!(!POISONED.is_poisoned());
}

/// What owns something is not put back, and the report says so if that may be why it fails.
#[test]
fn data_with_a_destructor_is_left_as_it_is() {
    static LIST: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| LIST.lock().unwrap().push(1));
        LIST.lock().unwrap().push(2);
        thread.join().unwrap();
        assert_eq!(LIST.lock().unwrap().len(), 2);
    });
    assert!(report.is_failure(), "{report}");
    let note = report.notes.iter().find(|note| note.contains("lazy_static")).unwrap_or_else(|| panic!("{report}"));
    assert!(note.contains("statics.rs"), "{note}");
}
