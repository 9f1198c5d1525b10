//! Memory that one thread frees while another one may still use it: found also if every execution that is explored happens to use
//! it first, and only if there is one that uses it afterwards.
#![cfg(all(target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
#![allow(clippy::unwrap_used, missing_docs)]

use std::ptr;
use std::sync::Arc as Unseen;

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};
use weakspot::sync::{Arc, Mutex, mpsc};
use weakspot::{Builder, FailureKind, MemoryModel, Report, Verdict, thread};

const MODELS: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

fn check(model: MemoryModel, body: fn()) -> Report {
    Builder { model, ..Builder::default() }.check(body)
}

/// Where the only line of this file that ends with a comment like this is.
fn line_of(mark: &str) -> String {
    let end = format!("// {mark}");
    let line = include_str!("reclaimed.rs").lines().position(|line| line.ends_with(&end)).unwrap();
    format!("tests/reclaimed.rs:{}:", line + 1)
}

/// Fails in an execution in which the use comes after the free: both places are named, and it can be run again.
fn finds(body: fn(), used_at: &str, freed_after: &str) {
    for model in MODELS {
        for bounded in [false, true] {
            let mut builder = Builder { model, ..Builder::default() };
            if bounded {
                (builder.max_preemptions, builder.max_executions) = (None, Some(2_000));
                builder.seed = Some(7);
            }
            let report = builder.check(body);
            let failure = report.failure.as_ref().unwrap_or_else(|| panic!("{model:?}, {bounded}: {report}"));
            assert!(matches!(failure.kind, FailureKind::UsedAfterFree(_)), "{report}");
            let text = report.to_string();
            let place = failure.place.as_ref().unwrap().to_string();
            assert!(place.contains(&line_of(used_at)), "{used_at}: {text}");
            assert!(text.contains("memory is used that was freed before, by thread "), "{text}");
            assert!(text.contains(&line_of(freed_after)), "{freed_after}: {text}");
            let schedule = report.replay().unwrap();
            assert!(text.contains(&format!("WEAKSPOT_REPLAY={schedule}")), "{text}");
            let again = Builder { model, replay: Some(schedule.to_owned()), ..Builder::default() }.check(body);
            assert_eq!(again.executions, 1, "{again}");
            let failure = again.failure.as_ref().unwrap_or_else(|| panic!("{again}"));
            assert!(matches!(failure.kind, FailureKind::UsedAfterFree(_)), "{again}");
            assert_eq!(failure.place.as_ref().unwrap().to_string(), place);
        }
    }
}

/// No execution uses what was freed.
fn passes(body: fn()) {
    for model in MODELS {
        let report = check(model, body);
        assert_eq!(report.verdict, Verdict::Safe, "{model:?}: {report}");
        let random = Builder { model, seed: Some(3), max_executions: Some(300), ..Builder::default() }.check(body);
        assert!(random.failure.is_none(), "{model:?}: {random}");
    }
}

/// What several threads own.
struct Owned<C> {
    count: AtomicUsize,
    cell: C,
}

// SAFETY: the tests say who accesses what, and cells are watched.
unsafe impl<C> Sync for Owned<C> {}
// SAFETY: as above.
unsafe impl<C> Send for Owned<C> {}

/// A stack that frees its nodes, or not.
mod stack {
    use super::*;

    struct Node {
        next: AtomicPtr<Node>,
    }

    pub struct Stack {
        head: AtomicPtr<Node>,
        frees: bool,
    }

    impl Stack {
        pub fn new(frees: bool, nodes: usize) -> Self {
            let stack = Self { head: AtomicPtr::new(ptr::null_mut()), frees };
            for _ in 0..nodes {
                let next = AtomicPtr::new(stack.head.load(Relaxed));
                stack.head.store(Box::into_raw(Box::new(Node { next })), Relaxed);
            }
            stack
        }

        pub fn pop(&self) -> bool {
            loop {
                let head = self.head.load(Acquire);
                if head.is_null() {
                    return false;
                }
                // SAFETY: none, if nodes are freed: that is what is tested.
                let next = unsafe { (*head).next.load(Relaxed) }; // next of an atomic
                let taken = self.head.compare_exchange(head, next, AcqRel, Relaxed); // the node is taken
                if taken.is_ok() {
                    if self.frees {
                        // SAFETY: as above.
                        drop(unsafe { Box::from_raw(head) });
                    }
                    return true;
                }
            }
        }
    }
}

fn two_pop(frees: bool) {
    let stack = Arc::new(stack::Stack::new(frees, 2));
    let other = Arc::clone(&stack);
    let thread = thread::spawn(move || other.pop());
    assert!(stack.pop());
    assert!(thread.join().unwrap());
}

#[test]
fn a_stack_that_frees_at_once() {
    finds(|| two_pop(true), "next of an atomic", "the node is taken");
}

#[test]
fn a_stack_that_frees_nothing() {
    passes(|| two_pop(false));
}

/// The same with a cell, whose accesses are no events.
mod cells {
    use super::*;

    struct Node {
        next: UnsafeCell<*mut Node>,
    }

    pub struct Stack {
        head: AtomicPtr<Node>,
    }

    impl Stack {
        pub fn new(nodes: usize) -> Self {
            let stack = Self { head: AtomicPtr::new(ptr::null_mut()) };
            for _ in 0..nodes {
                let next = UnsafeCell::new(stack.head.load(Relaxed));
                stack.head.store(Box::into_raw(Box::new(Node { next })), Relaxed);
            }
            stack
        }

        pub fn pop(&self) {
            loop {
                let head = self.head.load(Acquire);
                // SAFETY: none, that is what is tested.
                let next = unsafe { (*head).next.with(|next| *next) }; // next of a cell
                let taken = self.head.compare_exchange(head, next, AcqRel, Relaxed); // the node of cells is taken
                if taken.is_ok() {
                    // SAFETY: as above.
                    return drop(unsafe { Box::from_raw(head) });
                }
            }
        }
    }
}

#[test]
fn a_stack_of_cells_that_frees_at_once() {
    let body = || {
        let stack = Arc::new(cells::Stack::new(2));
        let other = Arc::clone(&stack);
        let thread = thread::spawn(move || other.pop());
        stack.pop();
        thread.join().unwrap();
    };
    finds(body, "next of a cell", "the node of cells is taken");
}

/// A lock in memory that the other one frees.
#[test]
fn a_lock_that_is_freed() {
    let body = || {
        let taken = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(Mutex::new(5)))));
        let other = Arc::clone(&taken);
        let thread = thread::spawn(move || {
            let lock = other.load(SeqCst);
            if !lock.is_null() {
                // SAFETY: none, that is what is tested.
                unsafe { *(*lock).lock().unwrap() += 1 }; // the lock is used
            }
        });
        let lock = taken.swap(ptr::null_mut(), SeqCst); // the lock is taken
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(lock) });
        thread.join().unwrap();
    };
    finds(body, "the lock is used", "the lock is taken");
}

/// One reader announces what it uses, and whoever replaces it frees it unless it was announced.
fn hazard_of<T: 'static>(fenced: bool, new: fn() -> T, read: fn(&T) -> usize) {
    let current = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(new()))));
    let announced = Arc::new(AtomicPtr::new(ptr::null_mut::<T>()));
    let (here, mine) = (Arc::clone(&current), Arc::clone(&announced));
    let reader = thread::spawn(move || {
        let node = here.load(Acquire);
        mine.store(node, Relaxed);
        if fenced {
            fence(SeqCst);
        }
        if here.load(Acquire) == node {
            // SAFETY: it is announced, and was there afterwards.
            assert_eq!(read(unsafe { &*node }), 1);
        }
        mine.store(ptr::null_mut(), Release);
    });
    let old = current.swap(Box::into_raw(Box::new(new())), AcqRel);
    fence(SeqCst);
    let is_free = announced.load(Acquire) != old;
    if is_free {
        // SAFETY: nobody has announced it, and nobody finds it any more.
        drop(unsafe { Box::from_raw(old) });
    }
    reader.join().unwrap();
    if !is_free {
        // SAFETY: the reader has ended.
        drop(unsafe { Box::from_raw(old) });
    }
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(current.load(Relaxed)) });
}

fn hazard(fenced: bool) {
    hazard_of(fenced, || AtomicUsize::new(1), |value| value.load(Relaxed));
}

/// The same with a value that no event tells of.
fn hazard_of_cell(fenced: bool) {
    // SAFETY: nobody writes it.
    hazard_of(fenced, || UnsafeCell::new(1), |value| value.with(|value| unsafe { *value }));
}

#[test]
fn what_is_announced_is_not_freed() {
    passes(|| hazard(true));
}

#[test]
fn an_announcement_that_is_late_does_harm() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = check(model, || hazard(false));
        assert_eq!(report.verdict, Verdict::Harmful, "{report}");
        assert!(report.to_string().contains("memory is used that was freed before, by thread 0"), "{report}");
    }
    assert_eq!(check(MemoryModel::Sc, || hazard(false)).verdict, Verdict::Safe);
}

#[test]
fn a_cell_that_is_announced_is_not_freed() {
    passes(|| hazard_of_cell(true));
}

#[test]
fn a_late_announcement_of_a_cell_does_harm() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = check(model, || hazard_of_cell(false));
        assert_eq!(report.verdict, Verdict::Harmful, "{report}");
        let text = report.to_string();
        assert!(text.contains("memory is used that was freed before, by thread 0"), "{text}");
        let schedule = report.replay().unwrap();
        assert!(text.contains(&format!("WEAKSPOT_REPLAY={schedule}")), "{text}");
        let again = Builder { model, replay: Some(schedule.to_owned()), ..Builder::default() };
        let again = again.check(|| hazard_of_cell(false));
        assert_eq!(again.executions, 1, "{again}");
        assert!(again.to_string().contains("memory is used that was freed before"), "{again}");
    }
}

/// Whoever drops the last owner frees: no event says who that is, nor could say it for the standard library's.
#[test]
fn the_last_owner_frees() {
    passes(|| {
        let owned = Arc::new(Owned { count: AtomicUsize::new(0), cell: UnsafeCell::new(0) });
        for _ in 0..2 {
            let owned = Arc::clone(&owned);
            thread::spawn(move || {
                owned.cell.with(|_| ());
                owned.count.fetch_add(1, Relaxed);
            });
        }
        owned.count.fetch_add(1, Relaxed);
        owned.cell.with(|_| ());
    });
    passes(|| {
        let owned = Unseen::new(Owned { count: AtomicUsize::new(0), cell: Box::new(UnsafeCell::new(0)) });
        for _ in 0..2 {
            let owned = Unseen::clone(&owned);
            thread::spawn(move || {
                owned.cell.with(|_| ());
                owned.count.fetch_add(1, Relaxed);
            });
        }
        owned.count.fetch_add(1, Relaxed);
        owned.cell.with(|_| ());
    });
}

/// A store is in memory before its thread gives up an owner, whenever the simulated buffer lets it go.
#[test]
fn who_gives_up_an_owner_has_stored() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let body = || {
            let flags = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
            let other = Arc::clone(&flags);
            thread::spawn(move || {
                other.0.store(true, Relaxed);
                other.1.load(Relaxed);
            });
            flags.1.store(true, Relaxed);
            flags.0.load(Relaxed);
        };
        let report = Builder { model, ..Builder::default() }.check(body);
        assert_eq!(report.verdict, Verdict::Benign, "{report}");
    }
}

/// A count of one's own.
#[test]
fn who_counts_down_to_zero_frees() {
    struct Counted {
        owners: AtomicUsize,
        value: AtomicUsize,
        cell: UnsafeCell<usize>,
    }
    fn release(shared: &AtomicPtr<Counted>) {
        let counted = shared.load(Relaxed);
        // SAFETY: one of the owners.
        unsafe {
            (*counted).value.load(Relaxed);
            (*counted).cell.with(|value| assert_eq!(*value, 3));
            if (*counted).owners.fetch_sub(1, Release) == 1 {
                fence(Acquire);
                drop(Box::from_raw(counted));
            }
        }
    }
    passes(|| {
        let counted = Counted { owners: AtomicUsize::new(2), value: AtomicUsize::new(0), cell: UnsafeCell::new(3) };
        let shared = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(counted))));
        let other = Arc::clone(&shared);
        thread::spawn(move || release(&other));
        release(&shared);
    });
}

#[test]
fn what_is_handed_over_may_be_freed() {
    passes(|| {
        let place = Arc::new(Mutex::new(None));
        let other = Arc::clone(&place);
        let thread = thread::spawn(move || {
            let boxed = Box::new((AtomicUsize::new(1), UnsafeCell::new(2)));
            boxed.0.store(2, Relaxed);
            boxed.1.with_mut(|_| ());
            *other.lock().unwrap() = Some(boxed);
        });
        drop(place.lock().unwrap().take());
        thread.join().unwrap();
    });
    passes(|| {
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let boxed = Box::new((AtomicUsize::new(1), UnsafeCell::new(2)));
            boxed.0.store(2, Relaxed);
            boxed.1.with_mut(|_| ());
            sender.send(boxed).unwrap();
        });
        drop(receiver.recv().unwrap());
    });
}

#[test]
fn what_threads_that_were_joined_have_used_may_be_freed() {
    passes(|| {
        let boxed = Box::new((AtomicUsize::new(0), UnsafeCell::new(2)));
        thread::scope(|scope| {
            scope.spawn(|| boxed.0.fetch_add(1, Relaxed));
            scope.spawn(|| boxed.0.fetch_add(1, Relaxed));
        });
        drop(boxed);
    });
}

/// Who has moved something out of memory may free that, even while others use what was there.
#[test]
fn what_was_moved_out_is_elsewhere() {
    passes(|| {
        let many: Vec<AtomicUsize> = (0..2).map(AtomicUsize::new).collect();
        for one in &many {
            one.store(5, Relaxed);
        }
        let go = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for one in many {
            let go = Arc::clone(&go);
            threads.push(thread::spawn(move || {
                one.fetch_add(1, Relaxed);
                go.load(Relaxed);
                one.load(Relaxed)
            }));
        }
        go.store(true, Relaxed);
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 6);
        }
    });
}

/// Orderings that are too weak are no use after the free, as long as the processor keeps the order.
#[test]
fn a_flag_that_orders_nothing() {
    let body = || {
        let node = Arc::new(AtomicPtr::new(Box::into_raw(Box::new(AtomicUsize::new(1)))));
        let done = Arc::new(AtomicBool::new(false));
        let (same, flag) = (Arc::clone(&node), Arc::clone(&done));
        let thread = thread::spawn(move || {
            // SAFETY: it is there until the flag is.
            unsafe { (*same.load(Relaxed)).load(Relaxed) };
            flag.store(true, Relaxed);
        });
        if !done.load(Relaxed) {
            thread.join().unwrap();
        }
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(node.load(Relaxed)) });
    };
    passes(body);
}
