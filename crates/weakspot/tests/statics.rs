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
