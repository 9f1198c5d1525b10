//! Outside a model everything is as in the standard library: ordinary tests run in a build for loom, too.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use weakspot_loom as loom;

use loom::alloc::{Layout, Track, alloc_zeroed, dealloc};
use loom::cell::{Cell, UnsafeCell};
use loom::future::{AtomicWaker, block_on};
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, fence};
use loom::sync::{Arc, Barrier, Condvar, Mutex, Notify, RwLock, Weak, mpsc};
use loom::{hint, thread};

const THREADS: usize = 4;
const ROUNDS: usize = 200;

/// Does something in several threads at once.
fn together<T: 'static>(work: impl Fn(usize) -> T + Send + Clone + 'static) -> Vec<T> {
    let start = |number| {
        let work = work.clone();
        thread::spawn(move || work(number))
    };
    let threads: Vec<_> = (0..THREADS).map(start).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn threads_are_real_ones() {
    let ids: BTreeSet<String> = together(|_| format!("{:?}", std::thread::current().id())).into_iter().collect();
    assert_eq!(ids.len(), THREADS);
    let handle = thread::spawn(thread::current);
    let thread = handle.thread().clone();
    assert_eq!(handle.join().unwrap().id(), thread.id());
    let named = thread::Builder::new().name("named".to_owned()).stack_size(1 << 16);
    let named = named.spawn(|| thread::current().name().map(str::to_owned)).unwrap();
    assert_eq!(named.join().unwrap().as_deref(), Some("named"));
}

#[test]
fn a_panic_is_handed_to_whoever_joins() {
    let panic = thread::spawn(|| panic!("on purpose")).join().unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
}

#[test]
#[should_panic(expected = "outside of `model` a thread's closure and its value must be `Send`")]
fn a_closure_that_may_not_go_to_another_thread_does_not() {
    let counted = Rc::new(1);
    let _ = thread::spawn(move || *counted);
}

#[test]
#[should_panic(expected = "outside of `model` a thread's closure and its value must be `Send`")]
fn nor_does_such_a_value_come_back() {
    let _ = thread::spawn(|| Rc::new(1));
}

#[test]
fn in_a_model_both_may_be_anything() {
    loom::model(|| {
        let counted = Rc::new(1);
        let thread = thread::spawn(move || counted);
        assert_eq!(*thread.join().unwrap(), 1);
    });
}

#[test]
fn threads_park_and_are_woken() {
    let flag = Arc::new(AtomicBool::new(false));
    let theirs = flag.clone();
    let thread = thread::spawn(move || {
        while !theirs.load(Acquire) {
            thread::park();
        }
    });
    thread::yield_now();
    flag.store(true, Release);
    thread.thread().unpark();
    thread.join().unwrap();
    assert!(!thread::panicking());
}

#[test]
fn scoped_threads_borrow() {
    let count = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| count.fetch_add(1, Relaxed));
        }
    });
    assert_eq!(count.into_inner(), THREADS);
}

#[test]
fn atomics_are_atomic() {
    let shared = Arc::new((AtomicUsize::new(0), AtomicU8::new(0), AtomicPtr::new(std::ptr::null_mut::<u8>())));
    let theirs = shared.clone();
    together(move |_| {
        for _ in 0..ROUNDS {
            theirs.0.fetch_add(1, SeqCst);
            theirs.0.fetch_update(AcqRel, Acquire, |value| Some(value + 1)).unwrap();
            theirs.1.fetch_xor(1, Relaxed);
            theirs.2.swap(std::ptr::dangling_mut(), AcqRel);
            fence(SeqCst);
        }
    });
    assert_eq!((shared.0.load(SeqCst), shared.1.load(SeqCst)), (2 * THREADS * ROUNDS, 0));
    // SAFETY: the other threads are over.
    assert_eq!(unsafe { shared.0.unsync_load() }, 2 * THREADS * ROUNDS);
}

#[test]
fn a_spin_lock_locks_real_threads() {
    struct Spin(AtomicBool, UnsafeCell<usize>);
    // SAFETY: the lock protects the cell.
    unsafe impl Sync for Spin {}
    let lock = Arc::new(Spin(AtomicBool::new(false), UnsafeCell::new(0)));
    let theirs = lock.clone();
    together(move |_| {
        for _ in 0..ROUNDS {
            while theirs.0.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
                hint::spin_loop();
                thread::yield_now();
            }
            // SAFETY: the lock is held.
            theirs.1.with_mut(|count| unsafe { *count += 1 });
            theirs.0.store(false, Release);
        }
    });
    // SAFETY: the other threads are over.
    assert_eq!(unsafe { *lock.1.get().deref() }, THREADS * ROUNDS);
    let cell = Cell::new(1);
    cell.set(2);
    assert_eq!(cell.get(), 2);
}

#[test]
fn locks_lock() {
    let shared = Arc::new((Mutex::new(0), RwLock::new(0)));
    let theirs = shared.clone();
    together(move |_| {
        for _ in 0..ROUNDS {
            *theirs.0.lock().unwrap() += 1;
            *theirs.1.write().unwrap() += 1;
            assert!(*theirs.1.read().unwrap() > 0);
        }
    });
    assert_eq!((*shared.0.lock().unwrap(), *shared.1.read().unwrap()), (THREADS * ROUNDS, THREADS * ROUNDS));
    let held = shared.0.lock().unwrap();
    assert!(shared.0.try_lock().is_err());
    drop(held);
    let theirs = shared.clone();
    thread::spawn(move || {
        let _held = theirs.0.lock();
        panic!("poison");
    })
    .join()
    .unwrap_err();
    assert!(shared.0.lock().is_err());
}

#[test]
fn condition_variables_barriers_and_notifications_wake() {
    let shared = Arc::new((Mutex::new(0), Condvar::new(), Barrier::new(THREADS), Notify::new()));
    let theirs = shared.clone();
    let main = thread::spawn(move || {
        let mut count = theirs.0.lock().unwrap();
        while *count < THREADS {
            count = theirs.1.wait(count).unwrap();
        }
        drop(count);
        theirs.3.wait();
    });
    let theirs = shared.clone();
    let leaders = together(move |_| {
        *theirs.0.lock().unwrap() += 1;
        theirs.1.notify_all();
        theirs.2.wait().is_leader()
    });
    assert_eq!(leaders.into_iter().filter(|&is_leader| is_leader).count(), 1);
    shared.3.notify();
    main.join().unwrap();
    let count = shared.0.lock().unwrap();
    assert!(shared.1.wait_timeout(count, Duration::ZERO).unwrap().1.timed_out());
}

#[test]
fn channels_carry() {
    let (sender, receiver) = mpsc::channel();
    let thread = thread::spawn(move || (0..THREADS * ROUNDS).map(|_| receiver.recv().unwrap()).sum::<usize>());
    let sender = Arc::new(Mutex::new(sender));
    together(move |_| {
        let sender = sender.lock().unwrap().clone();
        (0..ROUNDS).for_each(|number| sender.send(number).unwrap());
    });
    assert_eq!(thread.join().unwrap(), THREADS * ROUNDS * (ROUNDS - 1) / 2);
}

#[test]
fn references_are_counted() {
    let shared = Arc::new(Track::new(1));
    let weak: Weak<_> = Arc::downgrade(&shared);
    let theirs = shared.clone();
    together(move |_| (0..ROUNDS).map(|_| *theirs.clone().get_ref()).sum::<usize>());
    assert_eq!(Arc::strong_count(&shared), 1);
    assert_eq!(Arc::try_unwrap(shared).unwrap().into_inner(), 1);
    assert!(weak.upgrade().is_none());
    let layout = Layout::new::<u64>();
    // SAFETY: the layout has a size, and is the same.
    unsafe { dealloc(alloc_zeroed(layout), layout) };
}

#[test]
fn futures_are_woken_by_real_threads() {
    let shared = Arc::new((AtomicBool::new(false), AtomicWaker::new()));
    let theirs = shared.clone();
    let thread = thread::spawn(move || {
        theirs.0.store(true, Release);
        theirs.1.wake();
    });
    block_on(poll_fn(|context| {
        shared.1.register_by_ref(context.waker());
        if shared.0.load(Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }));
    thread.join().unwrap();
}

loom::thread_local! {
    static LOCAL: std::cell::Cell<usize> = std::cell::Cell::new(0);
}
loom::lazy_static! {
    static ref SHARED: AtomicUsize = AtomicUsize::new(0);
}

#[test]
fn statics_are_shared_and_thread_locals_are_not() {
    let counts = together(|_| {
        for _ in 0..ROUNDS {
            LOCAL.with(|local| local.set(local.get() + 1));
            SHARED.fetch_add(1, Relaxed);
        }
        LOCAL.with(std::cell::Cell::get)
    });
    assert_eq!(counts, [ROUNDS; THREADS]);
    assert_eq!(SHARED.load(Relaxed), THREADS * ROUNDS);
}
