//! Everything that loom 0.7 has in public, with its signature. Most of this is a matter of compiling.
#![allow(clippy::unwrap_used, clippy::type_complexity, deprecated)]

use std::pin::Pin;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::task::Waker;
use std::time::Duration;
use weakspot_loom as loom;

macro_rules! integer {
    ($($name:ident $int:ty),*) => {$({
        use loom::sync::atomic::$name;
        let mut atomic: $name = $name::new(1);
        let _: $name = $name::from(1);
        let _: $name = $name::default();
        assert_eq!(atomic.with_mut(|value: &mut $int| *value), 1);
        // SAFETY: nobody else has it.
        assert_eq!(unsafe { atomic.unsync_load() }, 1);
        assert_eq!(atomic.load(Acquire), 1);
        atomic.store(2, Release);
        assert_eq!(atomic.swap(3, AcqRel), 2);
        assert_eq!(atomic.compare_and_swap(3, 4, SeqCst), 3);
        assert_eq!(atomic.compare_exchange(4, 5, AcqRel, Acquire), Ok(4));
        assert_eq!(atomic.compare_exchange_weak(4, 6, AcqRel, Acquire), Err(5));
        assert_eq!(atomic.fetch_add(1, Relaxed), 5);
        assert_eq!(atomic.fetch_sub(1, Relaxed), 6);
        assert_eq!(atomic.fetch_and(4, Relaxed), 5);
        assert_eq!(atomic.fetch_nand(4, Relaxed), 4);
        assert_eq!(atomic.fetch_or(1, Relaxed), !4);
        assert_eq!(atomic.fetch_xor(!4, Relaxed), !4 | 1);
        assert_eq!(atomic.fetch_max(9, Relaxed), 0);
        assert_eq!(atomic.fetch_min(7, Relaxed), 9);
        assert_eq!(atomic.fetch_update(AcqRel, Acquire, |value| Some(value + 1)), Ok(7));
        assert_eq!(atomic.into_inner(), 8);
    })*};
}

#[test]
fn integers() {
    loom::model(|| {
        integer!(AtomicU8 u8, AtomicU16 u16, AtomicU32 u32, AtomicU64 u64, AtomicUsize usize);
        integer!(AtomicI8 i8, AtomicI16 i16, AtomicI32 i32, AtomicI64 i64, AtomicIsize isize);
    });
}

#[test]
fn booleans_and_pointers() {
    loom::model(|| {
        use loom::sync::atomic::{AtomicBool, AtomicPtr, fence, spin_loop_hint};
        let flag = AtomicBool::new(true);
        assert!(flag.fetch_and(true, Relaxed) && flag.fetch_nand(true, Relaxed));
        assert!(!flag.fetch_or(true, Relaxed) && flag.fetch_xor(true, Relaxed));
        assert!(!flag.swap(true, Relaxed) && flag.compare_and_swap(true, false, Relaxed));
        assert_eq!(flag.compare_exchange(false, true, AcqRel, Acquire), Ok(false));
        assert_eq!(flag.compare_exchange_weak(false, true, AcqRel, Acquire), Err(true));
        assert_eq!(flag.fetch_update(AcqRel, Acquire, |_| None), Err(true));
        // SAFETY: nobody else has it.
        let unsynchronised = unsafe { flag.unsync_load() };
        assert!(unsynchronised && AtomicBool::from(true).into_inner() && !AtomicBool::default().load(SeqCst));
        flag.store(false, SeqCst);

        let (mut one, mut two) = (1, 2);
        let (first, second): (*mut i32, *mut i32) = (&raw mut one, &raw mut two);
        let mut pointer = AtomicPtr::new(first);
        assert_eq!(pointer.swap(second, AcqRel), first);
        assert_eq!(pointer.compare_and_swap(second, first, AcqRel), second);
        assert_eq!(pointer.compare_exchange(first, second, AcqRel, Acquire), Ok(first));
        assert_eq!(pointer.compare_exchange_weak(first, second, AcqRel, Acquire), Err(second));
        assert_eq!(pointer.fetch_update(AcqRel, Acquire, |_| Some(first)), Ok(second));
        assert_eq!(pointer.with_mut(|pointer| *pointer), first);
        // SAFETY: nobody else has it.
        assert_eq!(unsafe { pointer.unsync_load() }, pointer.load(Acquire));
        pointer.store(second, Release);
        assert_eq!(pointer.into_inner(), second);
        assert!(AtomicPtr::<i32>::default().load(Relaxed).is_null() && !AtomicPtr::from(first).load(Relaxed).is_null());

        for order in [Acquire, Release, AcqRel, SeqCst] {
            fence(order);
        }
        spin_loop_hint();
        loom::hint::spin_loop();
        let _: unsafe fn() -> ! = loom::hint::unreachable_unchecked;
        let _: fn(Ordering) = fence;
    });
}

#[test]
fn counted_references() {
    loom::model(|| {
        use loom::sync::Arc;
        let mut one: Arc<i32> = Arc::new(1);
        assert!(Arc::get_mut(&mut one).is_some());
        let two = Arc::clone(&one);
        assert!(Arc::ptr_eq(&one, &two) && Arc::strong_count(&one) == 2 && Arc::get_mut(&mut one).is_none());
        let raw: *const i32 = Arc::into_raw(two);
        assert_eq!(raw, Arc::as_ptr(&one));
        // SAFETY: the pointer comes from `into_raw`, and the counts are balanced.
        unsafe {
            Arc::increment_strong_count(raw);
            Arc::decrement_strong_count(raw);
            drop(Arc::from_raw(raw));
        }
        assert_eq!(Arc::try_unwrap(one).unwrap(), 1);
        let _: Pin<Arc<i32>> = Arc::pin(1);
        let slice: Arc<[u8]> = Arc::from_std(std::sync::Arc::from([1, 2]));
        assert_eq!(slice.as_ref(), [1, 2]);
        let _: (Arc<i32>, Arc<i32>) = (Arc::default(), Arc::from(1));
        let weak: loom::sync::Weak<[u8]> = Arc::downgrade(&slice);
        assert!(weak.upgrade().is_some());
    });
}

#[test]
fn locks() {
    loom::model(|| {
        use loom::sync::{Condvar, LockResult, Mutex, MutexGuard, RwLock, TryLockResult, WaitTimeoutResult};
        let mut mutex: Mutex<i32> = Mutex::new(1);
        let guard: LockResult<MutexGuard<'_, i32>> = mutex.lock();
        let refused: TryLockResult<MutexGuard<'_, i32>> = mutex.try_lock();
        assert!(refused.is_err());
        drop((guard, refused));
        *mutex.get_mut().unwrap() = 2;
        let condvar = Condvar::new();
        condvar.notify_one();
        condvar.notify_all();
        let other = std::sync::Arc::new((Mutex::new(false), Condvar::default()));
        let waker = std::sync::Arc::clone(&other);
        let thread = loom::thread::spawn(move || {
            *waker.0.lock().unwrap() = true;
            waker.1.notify_all();
        });
        let mut set = other.0.lock().unwrap();
        while !*set {
            set = other.1.wait(set).unwrap();
        }
        drop(set);
        thread.join().unwrap();
        let _: for<'a> fn(
            &Condvar,
            MutexGuard<'a, i32>,
            Duration,
        ) -> LockResult<(MutexGuard<'a, i32>, WaitTimeoutResult)> = Condvar::wait_timeout::<i32>;
        let _: fn(&WaitTimeoutResult) -> bool = WaitTimeoutResult::timed_out;
        assert_eq!(mutex.into_inner().unwrap(), 2);
        let _: (Mutex<i32>, Mutex<i32>) = (Mutex::default(), Mutex::from(1));

        let mut lock: RwLock<i32> = RwLock::new(1);
        let (one, two) = (lock.read().unwrap(), lock.try_read().unwrap());
        assert!(*one == *two && lock.try_write().is_err());
        drop((one, two));
        *lock.write().unwrap() = 2;
        *lock.get_mut().unwrap() = 3;
        assert_eq!(lock.into_inner().unwrap(), 3);
        let _: (RwLock<i32>, RwLock<i32>) = (RwLock::default(), RwLock::from(1));
    });
}

#[test]
fn cells() {
    loom::model(|| {
        use loom::cell::{Cell, ConstPtr, MutPtr, UnsafeCell};
        let cell: UnsafeCell<i32> = UnsafeCell::new(1);
        // SAFETY: one thread, one access at a time.
        unsafe {
            cell.with_mut(|value| *value = 2);
            assert_eq!(cell.with(|value| *value), 2);
            {
                let write: MutPtr<i32> = cell.get_mut();
                *write.deref() = 3;
                write.with(|value| *value += 1);
            }
            let read: ConstPtr<i32> = cell.get();
            assert_eq!(*read.deref(), read.with(|value| *value));
        }
        assert_eq!(cell.into_inner(), 4);
        let _: (UnsafeCell<i32>, UnsafeCell<i32>) = (UnsafeCell::default(), UnsafeCell::from(1));

        let (one, two) = (Cell::new(1), Cell::from(2));
        one.swap(&two);
        one.set(one.get() + 1);
        assert!(one.replace(5) == 3 && two.take() == 1 && one.clone() == one && one > two);
        assert_eq!(one.into_inner() + Cell::<i32>::default().get(), 5);
    });
}

loom::lazy_static! {
    static ref NUMBER: loom::sync::atomic::AtomicUsize = loom::sync::atomic::AtomicUsize::new(1);
    pub static ref NAME: String = "name".to_owned();
    pub(crate) static ref OTHER: u8 = 2;
}

loom::thread_local! {
    static LOCAL: std::cell::RefCell<u32> = std::cell::RefCell::new(1);
    /// One that others may use.
    pub static SECOND: u32 = 2
}

#[test]
fn threads_and_statics() {
    loom::model(|| {
        use loom::thread::{self, AccessError, JoinHandle, LocalKey, Thread, ThreadId};
        let not_send = std::rc::Rc::new(1);
        let handle: JoinHandle<std::rc::Rc<i32>> = thread::spawn(move || not_send);
        let spawned: Thread = handle.thread().clone();
        let id: ThreadId = spawned.id();
        assert!(id != thread::current().id() && spawned.name().is_none());
        assert_eq!(*handle.join().unwrap(), 1);
        let named = thread::Builder::new().name("worker".to_owned()).stack_size(1 << 16);
        let named = named.spawn(|| thread::current().name().map(str::to_owned)).unwrap();
        assert_eq!(named.join().unwrap().as_deref(), Some("worker"));
        thread::current().unpark();
        thread::park();
        thread::yield_now();
        assert!(!thread::panicking());

        let key: &'static LocalKey<std::cell::RefCell<u32>> = &LOCAL;
        key.with(|value| *value.borrow_mut() += 1);
        let value: Result<u32, AccessError> = key.try_with(|value| *value.borrow());
        assert!(value == Ok(2) && SECOND.with(|value| *value == 2));
        let _: &'static loom::lazy_static::Lazy<u8>;
        assert!(NUMBER.load(Relaxed) == 1 && *NAME == "name" && *OTHER == 2);
        let scoped = thread::scope(|scope| scope.spawn(|| 1).join().unwrap());
        assert_eq!(scoped, 1);
        const { assert!(loom::MAX_THREADS >= 5) };
    });
}

#[test]
fn channels_notifications_futures_and_allocations() {
    loom::model(|| {
        use loom::sync::mpsc;
        let (sender, receiver): (mpsc::Sender<i32>, mpsc::Receiver<i32>) = mpsc::channel();
        sender.clone().send(1).unwrap();
        assert!(receiver.recv() == Ok(1) && receiver.try_recv().is_err());
        assert!(receiver.recv_timeout(Duration::ZERO).is_err() || sender.send(2).is_err());
    });
    loom::model(|| {
        use loom::alloc::{Layout, Track, alloc, alloc_zeroed, dealloc};
        let layout = Layout::new::<u32>();
        // SAFETY: the layout is not empty and everything is freed once.
        unsafe {
            dealloc(alloc(layout), layout);
            dealloc(alloc_zeroed(layout), layout);
        }
        let mut tracked: Track<i32> = Track::new(1);
        *tracked.get_mut() += 1;
        assert!(*tracked.get_ref() == 2 && tracked.into_inner() == 2);

        let waker = loom::future::AtomicWaker::new();
        assert_eq!(loom::future::block_on(async { 7 }), 7);
        waker.register(Waker::noop().clone());
        waker.register_by_ref(Waker::noop());
        assert!(waker.take_waker().is_some());
        waker.wake();
        let _ = loom::future::AtomicWaker::default();
        let notify = loom::sync::Notify::new();
        notify.notify();
        notify.wait();
        let _ = loom::sync::Notify::default();
        assert!(loom::sync::Barrier::new(1).wait().is_leader());
        loom::explore();
        loom::stop_exploring();
        loom::skip_branch();
    });
}

/// Rounds of a loop that come to nothing may say so with `skip_branch` instead of `spin_loop`.
#[test]
fn skipped_branches_wait() {
    loom::model(|| {
        let flag = loom::sync::Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let other = flag.clone();
        let thread = loom::thread::spawn(move || other.store(true, Release));
        while !flag.load(Acquire) {
            loom::skip_branch();
        }
        thread.join().unwrap();
    });
}

#[test]
fn options() {
    let mut builder: loom::model::Builder = loom::model::Builder::default();
    builder.max_threads = 6;
    builder.max_branches = 10_000;
    builder.max_permutations = Some(1_000_000);
    builder.max_duration = Some(Duration::from_secs(60));
    builder.preemption_bound = None;
    builder.checkpoint_interval = 1;
    builder.expect_explicit_explore = false;
    builder.location = true;
    builder.log = false;
    builder.checkpoint_file = None;
    builder.check(|| {});
    loom::model::model(|| {});
}
