//! Making an atomic or a cell is a plain write: it has to happen before the accesses of other threads.
#![cfg(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
#![allow(clippy::unwrap_used)]

use std::ptr;

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicPtr, AtomicU32, fence};
use weakspot::sync::{Arc, Mutex};
use weakspot::{Builder, FailureKind, Report, Verdict, thread};

struct Node {
    atomic: AtomicU32,
    cell: UnsafeCell<u32>,
}

// SAFETY: that is what the tests are about; all threads of a model run on one of the operating system.
unsafe impl Sync for Node {}

fn read_atomic(node: &Node) -> u32 {
    node.atomic.load(Relaxed)
}

fn read_cell(node: &Node) -> u32 {
    // SAFETY: nobody writes it.
    node.cell.with(|value| unsafe { *value })
}

/// A thread makes a node and publishes its pointer, another one reads it.
fn publish(store: Ordering, load: Ordering, fences: bool, read: fn(&Node) -> u32) -> Report {
    Builder::default().check(move || {
        let slot = Arc::new(AtomicPtr::new(ptr::null_mut()));
        let other = Arc::clone(&slot);
        let thread = thread::spawn(move || {
            let node = Node { atomic: AtomicU32::new(1), cell: UnsafeCell::new(1) };
            let node = Box::into_raw(Box::new(node));
            if fences {
                fence(Release);
            }
            other.store(node, store);
        });
        let node = slot.load(load);
        if fences {
            fence(Acquire);
        }
        // SAFETY: it is null or comes from the other thread's box, which lives until it has ended.
        if let Some(node) = unsafe { node.as_ref() } {
            assert_eq!(read(node), 1);
        }
        thread.join().unwrap();
        // SAFETY: the other thread has put its box there.
        drop(unsafe { Box::from_raw(slot.load(Relaxed)) });
    })
}

fn assert_race(report: &Report) {
    let failure = report.failure.as_ref().unwrap();
    let FailureKind::Race { first, second } = &failure.kind else { panic!("{report}") };
    assert!(first.makes && first.thread == 1 && !second.makes && second.thread == 0, "{report}");
    assert!(report.to_string().contains("thread 1 makes it before this"), "{report}");
    assert!(report.to_string().contains("other.store(node, store)"), "{report}");
}

#[test]
fn a_pointer_published_without_release_is_a_race_even_if_all_only_read() {
    for (store, load) in [(Relaxed, Relaxed), (Relaxed, Acquire), (Release, Relaxed)] {
        assert_race(&publish(store, load, false, read_atomic));
        assert_race(&publish(store, load, false, read_cell));
    }
}

#[test]
fn release_and_acquire_publish() {
    for (store, load, fences) in [(Release, Acquire, false), (SeqCst, SeqCst, false), (Relaxed, Relaxed, true)] {
        for read in [read_atomic, read_cell] {
            let report = publish(store, load, fences, read);
            assert_eq!(report.verdict, Verdict::Safe, "{report}");
        }
    }
}

#[test]
fn locks_and_starts_of_threads_publish() {
    let report = Builder::default().check(|| {
        let old = Arc::new(AtomicU32::new(1));
        let nodes = Arc::new(Mutex::new(Vec::<Box<AtomicU32>>::new()));
        let (theirs, nodes_of_child) = (Arc::clone(&old), Arc::clone(&nodes));
        let child = thread::spawn(move || {
            let new = Arc::new(AtomicU32::new(2));
            let new_of_grandchild = Arc::clone(&new);
            let grandchild = thread::spawn(move || theirs.load(Relaxed) + new_of_grandchild.load(Relaxed));
            nodes_of_child.lock().unwrap().push(Box::new(AtomicU32::new(3)));
            assert_eq!(grandchild.join().unwrap(), 3);
            new
        });
        let seen = nodes.lock().unwrap().iter().map(|node| node.load(Relaxed)).sum::<u32>();
        let new = child.join().unwrap();
        assert!((seen == 0 || seen == 3) && new.load(Relaxed) == 2);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

/// A thread makes a node, uses it itself and publishes it; one that is joined looks at it, too, and so does another one.
fn use_and_publish(store: Ordering, using: fn(&Node), reading: fn(&Node) -> u32) -> Report {
    Builder::default().check(move || {
        let slot = Arc::new(AtomicPtr::new(ptr::null_mut()));
        let other = Arc::clone(&slot);
        let thread = thread::spawn(move || {
            let node = Node { atomic: AtomicU32::new(1), cell: UnsafeCell::new(1) };
            let node = Arc::new(node);
            using(&node);
            let theirs = Arc::clone(&node);
            assert!(thread::spawn(move || reading(&theirs)).join().unwrap() > 0);
            other.store(Arc::into_raw(node).cast_mut(), store);
        });
        // SAFETY: it is null or comes from the other thread's `Arc`, which lives until that is over.
        if let Some(node) = unsafe { slot.load(Acquire).as_ref() } {
            assert!(reading(node) > 0);
        }
        thread.join().unwrap();
        // SAFETY: the other thread has put its `Arc` there.
        drop(unsafe { Arc::from_raw(slot.load(Relaxed)) });
    })
}

#[test]
fn every_thread_is_checked_and_not_only_the_first_that_uses_it() {
    let using: [fn(&Node); 3] = [|node| assert_eq!(read_atomic(node), 1), |node| node.atomic.store(2, Release), |_| ()];
    for using in using {
        for reading in [read_atomic, read_cell] {
            let report = use_and_publish(Relaxed, using, reading);
            let Some(FailureKind::Race { first, second }) = report.failure.as_ref().map(|failure| &failure.kind) else {
                panic!("{report}")
            };
            assert!(first.makes && first.thread == 1 && second.thread == 0, "{report}");
            let report = use_and_publish(Release, using, reading);
            assert_eq!(report.verdict, Verdict::Safe, "{report}");
        }
    }
}

#[test]
fn who_acquires_what_the_maker_has_released_to_the_atomic_itself_comes_after_its_making() {
    let acquire = |node: &Node| node.atomic.load(Acquire);
    let report = use_and_publish(Relaxed, |node| node.atomic.store(2, Release), acquire);
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    let report = use_and_publish(Relaxed, |node| node.atomic.store(2, Relaxed), acquire);
    assert!(matches!(report.failure.unwrap().kind, FailureKind::Race { .. }));
}
