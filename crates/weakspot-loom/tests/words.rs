//! Tests that are meant to fail with loom fail here, with loom's words among ours.

use weakspot_loom as loom;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use loom::sync::{Arc, Mutex};
use loom::thread;

fn two_threads(share: impl Fn(&UnsafeCell<u32>) + Copy + 'static, other: impl Fn(&UnsafeCell<u32>)) {
    let cell = Arc::new(UnsafeCell::new(0));
    let theirs = Arc::clone(&cell);
    let thread = thread::spawn(move || share(&theirs));
    other(&cell);
    thread.join().expect("the other thread does not panic");
}

fn write(cell: &UnsafeCell<u32>) {
    // SAFETY: none, that is what the tests are about; all threads of a model run on one of the operating system.
    cell.with_mut(|value| unsafe { *value += 1 });
}

fn read(cell: &UnsafeCell<u32>) {
    // SAFETY: as for `write`.
    cell.with(|value| assert!(unsafe { *value } < 2));
}

#[test]
#[should_panic(expected = "Causality violation: Concurrent write accesses to `UnsafeCell`")]
fn two_writes() {
    loom::model(|| two_threads(write, write));
}

#[test]
#[should_panic(expected = "Causality violation: Concurrent read and write accesses")]
fn a_read_and_a_write() {
    loom::model(|| two_threads(read, write));
}

/// A thread that reads a cell wakes the main thread through the handle in it; the main thread then writes the cell.
fn woken_through_a_cell(goes_on: bool) {
    let shared = Arc::new((UnsafeCell::new(thread::current()), AtomicBool::new(false)));
    let theirs = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        theirs.0.with(|handle| {
            // SAFETY: the main thread writes after it was woken.
            unsafe { &*handle }.unpark();
            goes_on.then(|| theirs.1.load(Relaxed));
        });
    });
    thread::park();
    // SAFETY: the other thread has woken this one, and that was the last it did with the handle.
    shared.0.with_mut(|handle| unsafe { *handle = thread::current() });
    thread.join().expect("the other thread does not panic");
}

#[test]
fn a_wake_up_may_be_the_last_that_an_access_does() {
    loom::model(|| woken_through_a_cell(false));
}

#[test]
#[should_panic(expected = "Causality violation: Concurrent read and write accesses")]
fn a_wake_up_in_the_middle_of_an_access() {
    loom::model(|| woken_through_a_cell(true));
}

/// A thread tells the other one in the middle of an access, and gives way to it before the access is over.
fn told_in_the_middle(theirs: impl FnOnce(&UnsafeCell<u32>, &dyn Fn()) + 'static, mine: impl Fn(&UnsafeCell<u32>)) {
    let shared = Arc::new((UnsafeCell::new(0), AtomicBool::new(false)));
    let other = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        theirs(&other.0, &|| {
            other.1.store(true, Release);
            thread::yield_now();
        });
    });
    while !shared.1.load(Acquire) {
        thread::yield_now();
    }
    mine(&shared.0);
    thread.join().expect("the other thread does not panic");
}

#[test]
#[should_panic(expected = "currently writing to cell")]
fn a_write_while_another_one_gives_way() {
    loom::model(|| told_in_the_middle(|cell, tell| cell.with_mut(|_| tell()), write));
}

#[test]
#[should_panic(expected = "currently reading from cell")]
fn a_write_while_a_read_gives_way() {
    loom::model(|| told_in_the_middle(|cell, tell| cell.with(|_| tell()), write));
}

#[test]
fn a_read_while_another_one_gives_way() {
    loom::model(|| told_in_the_middle(|cell, tell| cell.with(|_| tell()), read));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_lock_taken_twice() {
    loom::model(|| {
        let mutex = Mutex::new(0);
        let _one = mutex.lock();
        let _two = mutex.lock();
    });
}

#[test]
#[should_panic(expected = "Model exceeded maximum number of branches")]
fn a_loop_without_end() {
    loom::model(|| {
        let never = AtomicBool::new(false);
        while !never.load(Relaxed) {
            thread::yield_now();
        }
    });
}

#[test]
#[should_panic(expected = "Arc leaked.")]
fn an_owner_that_is_forgotten() {
    loom::model(|| std::mem::forget(Arc::new(1)));
}

#[test]
#[should_panic(expected = "Allocation leaked.")]
fn memory_that_is_forgotten() {
    loom::model(|| std::mem::forget(loom::alloc::Track::new(1)));
}

#[test]
#[should_panic(expected = "lost update")]
fn what_the_test_itself_says() {
    loom::model(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&count);
        let increment = |count: &AtomicUsize| count.store(count.load(Relaxed) + 1, Relaxed);
        let thread = thread::spawn(move || increment(&theirs));
        increment(&count);
        thread.join().expect("the other thread does not panic");
        assert_eq!(count.load(Relaxed), 2, "lost update");
    });
}

#[test]
fn a_model_inside_a_model_is_shown_where_it_is() {
    let line = line!() + 1;
    let outcome = std::panic::catch_unwind(|| loom::model(|| loom::model(|| {})));
    let payload = outcome.expect_err("it is refused");
    let message = payload.downcast_ref::<String>().expect("it is a report");
    let place = format!("words.rs:{line}:");
    assert!(message.contains("a model inside a model") && message.contains(&place), "{message}");
}

fn three_threads(limit: usize) {
    let mut builder = loom::model::Builder::new();
    builder.max_threads = limit;
    builder.check(|| {
        let threads = [thread::spawn(|| {}), thread::spawn(|| {})];
        for thread in threads {
            thread.join().expect("the others do not panic");
        }
    });
}

/// The first thread counts, as in loom.
#[test]
#[should_panic(expected = "the thread number 3 of the model, and it may have 2: see `max_threads`")]
fn fewer_threads_than_the_model_starts() {
    three_threads(2);
}

#[test]
fn as_many_threads_as_the_model_starts() {
    three_threads(3);
}

/// loom has room for five threads unless told otherwise. Nobody has asked for that limit.
#[test]
fn more_threads_than_loom_has_room_for() {
    loom::model(|| {
        let threads: Vec<_> = (0..7).map(|_| thread::spawn(|| {})).collect();
        for thread in threads {
            thread.join().expect("the others do not panic");
        }
    });
}
