//! Memory that is used after it was freed, in ways that only an execution shows that nobody has explored: uses that are no
//! event, or stores into a buffer, or one of several at the same place.
#![cfg(all(target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
#![allow(clippy::unwrap_used, missing_docs)]

use std::ptr;
use std::sync::Arc as Unseen;

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};
use weakspot::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock};
use weakspot::{Builder, FailureKind, Impact, MemoryModel, Report, Verdict, thread};

const MODELS: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

/// Something that nobody owns.
struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}
// SAFETY: the tests say who uses it, and weakspot watches them.
unsafe impl<T> Send for Shared<T> {}

impl<T> Shared<T> {
    fn new(value: T) -> Self {
        Self(Box::into_raw(Box::new(value)))
    }

    fn get(&self) -> &T {
        // SAFETY: none in general, that is what is tested.
        unsafe { &*self.0 }
    }

    fn free(self) {
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// All executions, with two workers, and at random.
fn builders(model: MemoryModel) -> [Builder; 3] {
    let all = Builder { model, ..Builder::default() };
    let random = Builder { seed: Some(7), max_executions: Some(5_000), ..all.clone() };
    [Builder { jobs: 2, ..all.clone() }, all, random]
}

fn is_used_after_free(report: &Report) -> bool {
    let failure = match (&report.failure, &report.impact) {
        (Some(failure), _) => failure,
        (None, Some(Impact::Harmful(harm))) => &harm.failure,
        _ => return false,
    };
    matches!(failure.kind, FailureKind::UsedAfterFree(_))
}

/// Memory is used after it was freed, and the schedule that is shown leads there again.
fn finds(models: &[MemoryModel], body: fn()) {
    for &model in models {
        for builder in builders(model) {
            let report = builder.check(body);
            assert!(is_used_after_free(&report), "{model:?}: {report}");
            let replay = Some(report.replay().unwrap().to_owned());
            let again = Builder { model, replay, ..Builder::default() }.check(body);
            assert_eq!((again.executions, is_used_after_free(&again)), (1, true), "{:?}: {again}", report.replay());
        }
    }
}

fn passes(body: fn()) {
    for model in MODELS {
        for builder in builders(model) {
            let report = builder.check(body);
            assert!(matches!(report.verdict, Verdict::Safe | Verdict::Bounded(_)), "{model:?}: {report}");
            assert!(report.failure.is_none(), "{model:?}: {report}");
        }
    }
}

/// Of two at the same places the first is done with when it is freed. The other one is not, unless `both` are.
fn one_of_two<T: 'static>(new: fn() -> T, use_it: fn(&T), both: bool) {
    let nodes = [Shared::new(new()), Shared::new(new())];
    let done = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&done);
    let user = thread::spawn(move || {
        for (node, is_last) in nodes.into_iter().zip([false, true]) {
            use_it(node.get());
            if is_last == both {
                flag.store(true, Release);
            }
        }
    });
    let mut user = Some(user);
    if !done.load(Acquire) {
        user.take().unwrap().join().unwrap();
    }
    nodes.into_iter().for_each(Shared::free);
    if let Some(user) = user {
        user.join().unwrap();
    }
}

#[test]
fn one_of_two_cells_at_the_same_places() {
    finds(&MODELS, || one_of_two(|| UnsafeCell::new(1), |cell| cell.with(|_| ()), false));
    passes(|| one_of_two(|| UnsafeCell::new(1), |cell| cell.with(|_| ()), true));
}

#[test]
fn a_condition_variable_that_is_notified_after_the_lock_was_released() {
    finds(&MODELS, || {
        let both = Shared::new((Mutex::new(false), Condvar::new()));
        let thread = thread::spawn(move || {
            *both.get().0.lock().unwrap() = true;
            both.get().1.notify_one();
        });
        let mut ready = both.get().0.lock().unwrap();
        while !*ready {
            ready = both.get().1.wait(ready).unwrap();
        }
        drop(ready);
        both.free();
        thread.join().unwrap();
    });
}

#[test]
fn a_condition_variable_that_is_notified_under_the_lock() {
    passes(|| {
        let both = Shared::new((Mutex::new(false), Condvar::new()));
        let thread = thread::spawn(move || {
            let mut ready = both.get().0.lock().unwrap();
            *ready = true;
            both.get().1.notify_one();
        });
        let mut ready = both.get().0.lock().unwrap();
        while !*ready {
            ready = both.get().1.wait(ready).unwrap();
        }
        drop(ready);
        both.free();
        thread.join().unwrap();
    });
}

/// Whether a lock is poisoned is asked of the lock's memory.
#[test]
fn is_poisoned_of_a_lock_that_is_freed() {
    finds(&MODELS, || asks(true));
    passes(|| asks(false));
}

fn asks(late: bool) {
    freed_when_told(move |lock, told| {
        *lock.lock().unwrap() += 1;
        assert!(late || !lock.is_poisoned());
        told.store(true, Release);
        assert!(!late || !lock.is_poisoned());
    });
}

/// A lock that is freed by who is told so, or in the end.
fn freed_when_told(using: impl FnOnce(&Mutex<i32>, &AtomicBool) + Send + 'static) {
    let lock = Shared::new(Mutex::new(0));
    let told = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&told);
    let thread = thread::spawn(move || using(lock.get(), &flag));
    let is_told = told.load(Acquire);
    if is_told {
        lock.free();
    }
    thread.join().unwrap();
    if !is_told {
        lock.free();
    }
}

/// Who comes to the release of a lock has its memory, too.
#[test]
fn a_lock_that_is_freed_while_it_is_held() {
    finds(&MODELS, || {
        freed_when_told(|lock, told| {
            let _guard = lock.lock().unwrap();
            told.store(true, Release);
        });
    });
}

/// The first who goes on frees what others still wait in.
#[test]
fn a_barrier_that_is_freed_by_the_first_who_has_passed() {
    finds(&MODELS, || {
        let barrier = Shared::new(Barrier::new(3));
        let first = Arc::new(AtomicBool::new(true));
        let pass = move |first: &AtomicBool| {
            if !barrier.get().wait().is_leader() && first.swap(false, SeqCst) {
                barrier.free();
            }
        };
        let threads = [Arc::clone(&first), Arc::clone(&first)].map(|first| thread::spawn(move || pass(&first)));
        pass(&first);
        for thread in threads {
            thread.join().unwrap();
        }
    });
    passes(|| {
        let barrier = Shared::new(Barrier::new(3));
        let left = Arc::new(AtomicUsize::new(3));
        let pass = move |left: &AtomicUsize| {
            barrier.get().wait();
            if left.fetch_sub(1, AcqRel) == 1 {
                barrier.free();
            }
        };
        let threads = [Arc::clone(&left), Arc::clone(&left)].map(|left| thread::spawn(move || pass(&left)));
        pass(&left);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

/// An access that takes time begins where it begins.
#[test]
fn a_cell_that_is_used_for_longer() {
    finds(&MODELS, || {
        let cell = Shared::new(UnsafeCell::new(1));
        let other = Arc::new(AtomicUsize::new(0));
        let same = Arc::clone(&other);
        let freer = thread::spawn(move || {
            same.load(Relaxed);
            cell.free();
        });
        other.load(Relaxed);
        cell.get().with(|value| {
            other.load(Relaxed);
            // SAFETY: none, that is what is tested.
            assert_eq!(unsafe { *value }, 1);
        });
        freer.join().unwrap();
    });
}

/// Told from inside of an access, or after it.
fn told_while_it_is_used(late: bool) {
    let cell = Shared::new(UnsafeCell::new(1));
    let told = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&told);
    let thread = thread::spawn(move || {
        cell.get().with(|value| {
            if late {
                flag.store(true, Release);
            }
            // SAFETY: none, that is what is tested.
            assert_eq!(unsafe { *value }, 1);
        });
        if !late {
            flag.store(true, Release);
        }
    });
    let is_told = told.load(Acquire);
    if is_told {
        cell.free();
    }
    thread.join().unwrap();
    if !is_told {
        cell.free();
    }
}

/// An access ends where it ends, unless its last event is taken to come after it.
#[test]
fn a_cell_that_is_freed_before_an_access_to_it_is_over() {
    finds(&MODELS, || told_while_it_is_used(true));
    passes(|| told_while_it_is_used(false));
    let report = Builder { lasting: false, ..Builder::default() }.check(|| told_while_it_is_used(true));
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

/// Who frees a cell in an access of its own does not use it any more.
#[test]
fn a_cell_that_is_freed_by_who_has_a_pointer_to_it() {
    passes(|| {
        let cell = Shared::new(UnsafeCell::new(1));
        let other = Arc::new(AtomicUsize::new(0));
        let same = Arc::clone(&other);
        let thread = thread::spawn(move || same.load(Relaxed));
        let pointer = cell.get().get();
        other.load(Relaxed);
        cell.free();
        drop(pointer);
        thread.join().unwrap();
    });
}

/// One reader announces what it writes to, and whoever replaces it frees it unless it was announced.
fn announced(fenced: bool) {
    let current = Arc::new(AtomicPtr::new(Shared::new(AtomicUsize::new(1)).0));
    let hazard = Arc::new(AtomicPtr::new(ptr::null_mut()));
    let (here, mine) = (Arc::clone(&current), Arc::clone(&hazard));
    let writer = thread::spawn(move || {
        let node = here.load(Acquire);
        mine.store(node, Relaxed);
        if fenced {
            fence(SeqCst);
        }
        if here.load(Acquire) == node {
            Shared(node).get().store(2, Relaxed);
        }
        mine.store(ptr::null_mut(), Release);
    });
    let old = Shared(current.swap(Shared::new(AtomicUsize::new(1)).0, AcqRel));
    fence(SeqCst);
    let is_free = hazard.load(Acquire) != old.0;
    if is_free {
        old.free();
    }
    writer.join().unwrap();
    if !is_free {
        old.free();
    }
    Shared(current.load(Relaxed)).free();
}

/// A store goes into the buffer at once wherever the search for harm has the choice.
#[test]
fn a_store_to_what_was_announced_too_late() {
    finds(&[MemoryModel::Tso, MemoryModel::Pso], || announced(false));
    passes(|| announced(true));
}

/// Uses of what a `std` `Arc` protects, which no trial shows, and of what nothing does, are at the same two places.
#[test]
fn trials_in_vain_do_not_hide_what_comes_later() {
    struct Value(UnsafeCell<u8>);
    // SAFETY: nobody writes it.
    unsafe impl Sync for Value {}
    // SAFETY: as above.
    unsafe impl Send for Value {}
    fn read(value: &Value) {
        value.0.with(|_| ());
    }
    finds(&MODELS, || {
        let owned = Unseen::new(Box::new(Value(UnsafeCell::new(0))));
        let alone = Shared::new(Value(UnsafeCell::new(0)));
        let step = Arc::new(AtomicUsize::new(0));
        let (same, seen) = (Unseen::clone(&owned), Arc::clone(&step));
        let thread = thread::spawn(move || {
            read(&same);
            drop(same);
            if (0..3).all(|number| seen.load(SeqCst) == number) {
                read(alone.get());
            }
        });
        for number in 1..4 {
            step.store(number, SeqCst);
        }
        drop(owned);
        alone.free();
        thread.join().unwrap();
    });
}

/// Something that was made complete, freed by who is told so, or in the end.
fn complete_when_told<T: 'static>(new: fn() -> T, look: fn(&T), late: bool) {
    let once = Shared::new(new());
    let told = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&told);
    let thread = thread::spawn(move || {
        look(once.get());
        if !late {
            look(once.get());
        }
        flag.store(true, Release);
        if late {
            look(once.get());
        }
    });
    let is_told = told.load(Acquire);
    if is_told {
        once.free();
    }
    thread.join().unwrap();
    if !is_told {
        once.free();
    }
}

fn lazy() -> LazyLock<i32> {
    LazyLock::new(|| 1)
}

/// Who knows that something is complete does not look, but has to find it.
#[test]
fn what_is_known_to_be_complete_when_it_is_freed() {
    finds(&MODELS, || complete_when_told(Once::new, |once| once.call_once(|| ()), true));
    finds(&MODELS, || complete_when_told(OnceLock::new, |cell| assert_eq!(*cell.get_or_init(|| 1), 1), true));
    finds(&MODELS, || complete_when_told(lazy, |lazy| assert_eq!(**lazy, 1), true));
    passes(|| complete_when_told(Once::new, |once| once.call_once(|| ()), false));
    passes(|| complete_when_told(OnceLock::new, |cell| assert_eq!(*cell.get_or_init(|| 1), 1), false));
    passes(|| complete_when_told(lazy, |lazy| assert_eq!(**lazy, 1), false));
}
