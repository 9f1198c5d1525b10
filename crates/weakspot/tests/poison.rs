//! Whether a lock is poisoned is something that threads can see: it is asked in every order, and costs nothing where nobody asks.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc as StdArc, Mutex as StdMutex, PoisonError, TryLockError};
use std::time::Duration;

use weakspot::cell::Cell;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use weakspot::sync::atomic::fence;
use weakspot::sync::{Arc, Condvar, Mutex, RwLock};
use weakspot::{Builder, MemoryModel, Report, Verdict, thread};

/// Panics while it holds something.
fn panic_with<G>(guard: G) {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _guard = guard;
        panic!("while it is held");
    }));
    assert!(caught.is_err());
}

fn poison(mutex: &Mutex<u8>) {
    panic_with(mutex.lock().unwrap_or_else(PoisonError::into_inner));
}

fn poison_writing(lock: &RwLock<u8>) {
    panic_with(lock.write().unwrap_or_else(PoisonError::into_inner));
}

/// What executions come to, and how many there are.
fn outcomes<R: Ord + Send + 'static>(body: impl Fn() -> R + Send + Sync + 'static) -> (Vec<R>, u64) {
    let seen = StdArc::new(StdMutex::new(BTreeSet::new()));
    let all = seen.clone();
    let report = Builder::default().check(move || {
        let outcome = body();
        all.lock().unwrap().insert(outcome);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    (seen.into_iter().collect(), report.executions)
}

/// Something that two threads do to a lock: what the first one finds, and what is asked in the end.
fn beside<L: Send + Sync + 'static, R: Ord + Send + 'static>(
    new: impl Fn() -> L + Send + Sync + 'static,
    looks: fn(&L) -> R,
    works: fn(&L),
) -> (Vec<R>, u64) {
    outcomes(move || {
        let lock = Arc::new(new());
        let other = lock.clone();
        let thread = thread::spawn(move || works(&other));
        let found = looks(&lock);
        thread.join().unwrap();
        found
    })
}

fn mutex() -> Mutex<u8> {
    Mutex::new(0)
}

fn poisoned_mutex() -> Mutex<u8> {
    let mutex = mutex();
    poison(&mutex);
    mutex
}

fn rwlock() -> RwLock<u8> {
    RwLock::new(0)
}

fn poisoned_rwlock() -> RwLock<u8> {
    let lock = rwlock();
    poison_writing(&lock);
    lock
}

#[test]
fn whoever_asks_comes_before_or_after_a_panic() {
    assert_eq!(beside(mutex, Mutex::is_poisoned, poison), (vec![false, true], 2));
    assert_eq!(beside(rwlock, RwLock::is_poisoned, poison_writing), (vec![false, true], 2));
    let twice = beside(mutex, |mutex| (mutex.is_poisoned(), mutex.is_poisoned()), poison);
    assert_eq!(twice, (vec![(false, false), (false, true), (true, true)], 3));
}

#[test]
fn two_panics_are_three_moments_to_ask() {
    // Before, between and after: the second one writes what is there already.
    let between = beside(mutex, Mutex::is_poisoned, |mutex| {
        poison(mutex);
        poison(mutex);
    });
    assert_eq!(between, (vec![false, true], 3));
}

#[test]
fn poison_that_nobody_asks_for_costs_nothing() {
    let of_locks = outcomes(|| {
        let mutex = Arc::new(mutex());
        let threads = [0, 1, 2].map(|_| {
            let mutex = mutex.clone();
            thread::spawn(move || poison(&mutex))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(mutex.lock().is_err());
        Arc::into_inner(mutex).unwrap().into_inner().is_err()
    });
    assert_eq!(of_locks, (vec![true], 6));
}

#[test]
fn who_locks_finds_what_was_done_under_the_lock() {
    // The lock alone decides.
    let locks = beside(mutex, |mutex| mutex.lock().is_err(), poison);
    assert_eq!(locks, (vec![false, true], 2));
    let reads = beside(rwlock, |lock| lock.read().is_err(), poison_writing);
    assert_eq!(reads, (vec![false, true], 2));
    let cleared = beside(
        poisoned_mutex,
        |mutex| mutex.lock().is_err(),
        |mutex| {
            let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
            mutex.clear_poison();
            drop(guard);
        },
    );
    assert_eq!(cleared, (vec![false, true], 2));
}

#[test]
fn a_lock_may_be_cleared_before_or_after_it_is_taken() {
    let locks: [fn(&Mutex<u8>) -> bool; 2] =
        [|mutex| mutex.lock().is_err(), |mutex| matches!(mutex.try_lock(), Err(TryLockError::Poisoned(_)))];
    for lock in locks {
        assert_eq!(beside(poisoned_mutex, lock, Mutex::clear_poison), (vec![false, true], 2));
    }
    let locks: [fn(&RwLock<u8>) -> bool; 4] = [
        |lock| lock.read().is_err(),
        |lock| lock.write().is_err(),
        |lock| matches!(lock.try_read(), Err(TryLockError::Poisoned(_))),
        |lock| matches!(lock.try_write(), Err(TryLockError::Poisoned(_))),
    ];
    for lock in locks {
        assert_eq!(beside(poisoned_rwlock, lock, RwLock::clear_poison), (vec![false, true], 2));
    }
}

#[test]
fn what_is_cleared_while_somebody_panics_may_stay_poisoned() {
    let last = outcomes(|| {
        let mutex = Arc::new(mutex());
        let other = mutex.clone();
        let thread = thread::spawn(move || poison(&other));
        mutex.clear_poison();
        thread.join().unwrap();
        Arc::into_inner(mutex).unwrap().get_mut().is_err()
    });
    assert_eq!(last, (vec![false, true], 2));
    let is_asked = outcomes(|| {
        let lock = Arc::new(rwlock());
        let other = lock.clone();
        let thread = thread::spawn(move || poison_writing(&other));
        lock.clear_poison();
        thread.join().unwrap();
        lock.is_poisoned()
    });
    assert_eq!(is_asked, (vec![false, true], 2));
}

#[test]
fn who_has_waited_finds_a_lock_poisoned_or_cleared() {
    let wait: fn(&(Mutex<u8>, Condvar)) -> bool = |(mutex, condvar)| {
        let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        condvar.wait_timeout(guard, Duration::ZERO).is_err()
    };
    // The time is over; whether that is before or after it is cleared is seen in both looks.
    let (found, _) = beside(|| (poisoned_mutex(), Condvar::new()), wait, |(mutex, _)| mutex.clear_poison());
    assert_eq!(found, [false, true]);
    let wait: fn(&(Mutex<u8>, Condvar)) -> Option<bool> = |(mutex, condvar)| {
        let guard = mutex.lock().ok()?;
        Some(condvar.wait_while(guard, |value| *value == 0).is_err())
    };
    let works: fn(&(Mutex<u8>, Condvar)) = |(mutex, condvar)| {
        let mut guard = mutex.lock().unwrap();
        *guard = 1;
        condvar.notify_one();
        panic_with(guard);
    };
    assert_eq!(beside(|| (mutex(), Condvar::new()), wait, works), (vec![None, Some(true)], 2));
}

/// Both clear what is poisoned or announce themselves, and look for the other one.
fn store_buffering(model: MemoryModel) -> Report {
    Builder { model, ..Builder::default() }.check(|| {
        let shared = Arc::new((poisoned_mutex(), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            other.0.is_poisoned()
        });
        shared.0.clear_poison();
        let is_announced = shared.1.load(Relaxed) == 1;
        assert!(is_announced || !thread.join().unwrap(), "nobody has seen the other");
    })
}

#[test]
fn asking_and_clearing_are_no_fences() {
    assert_eq!(store_buffering(MemoryModel::Sc).verdict, Verdict::Safe);
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = store_buffering(model);
        assert_eq!(report.verdict, Verdict::Harmful, "{report}");
        let text = report.to_string();
        assert!(text.contains("nobody has seen the other") && text.contains("clear_poison"), "{report}");
        assert!(report.suggestions.iter().all(|suggestion| suggestion.tried), "{report}");
        assert_eq!(report.suggestions.len(), 2, "{report}");
    }
}

/// A `Cell` belongs to one thread; this does not.
struct Anywhere(Arc<(Mutex<u8>, Cell<u8>)>);

// SAFETY: accesses are checked for data races.
unsafe impl Send for Anywhere {}

/// As relaxed atomics do, with fences around.
#[test]
fn clearing_hands_on_what_was_done_before_with_fences_only() {
    let publishes = |with_fences: bool| {
        Builder::default().check(move || {
            let shared = Arc::new((poisoned_mutex(), Cell::new(0)));
            let other = Anywhere(shared.clone());
            let thread = thread::spawn(move || {
                let Anywhere(other) = { other };
                other.1.set(1);
                if with_fences {
                    fence(Release);
                }
                other.0.clear_poison();
            });
            if !shared.0.is_poisoned() {
                if with_fences {
                    fence(Acquire);
                }
                assert_eq!(shared.1.get(), 1);
            }
            thread.join().unwrap();
        })
    };
    assert_eq!(publishes(true).verdict, Verdict::Safe);
    let report = publishes(false);
    assert!(report.to_string().contains("data race"), "{report}");
}

/// Statics begin as ordinary code has left them.
#[test]
fn a_static_that_is_poisoned_before_may_be_cleared_meanwhile() {
    static LOCK: Mutex<u8> = Mutex::new(0);
    poison(&LOCK);
    for _ in 0..2 {
        let found = outcomes(|| {
            let thread = thread::spawn(|| LOCK.clear_poison());
            let found = LOCK.lock().is_err();
            thread.join().unwrap();
            assert!(!LOCK.is_poisoned());
            found
        });
        assert_eq!(found, (vec![false, true], 2));
        assert!(LOCK.is_poisoned());
    }
}

#[test]
fn readers_and_those_who_panicked_before_poison_nothing() {
    struct Locks<'a>(&'a Mutex<u8>);
    impl Drop for Locks<'_> {
        fn drop(&mut self) {
            drop(self.0.lock());
        }
    }
    assert_eq!(beside(mutex, Mutex::is_poisoned, |mutex| panic_with(Locks(mutex))), (vec![false], 1));
    assert_eq!(beside(rwlock, RwLock::is_poisoned, |lock| panic_with(lock.read().unwrap())), (vec![false], 1));
}
