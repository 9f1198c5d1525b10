// Part of `tests/items.rs`: the public items of `tested`.

use std::borrow::Borrow;
use std::fmt::Debug;
use std::future::Ready;
use std::hash::Hash;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{LockResult, TryLockResult};
use std::task::Waker;
use std::time::Duration;

use tested::alloc::{Layout, Track, alloc, alloc_zeroed, dealloc};
use tested::cell::{Cell, ConstPtr, MutPtr, UnsafeCell};
use tested::future::{AtomicWaker, block_on};
use tested::model::Builder as Model;
use tested::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32,
    AtomicU64, AtomicUsize, fence, spin_loop_hint,
};
use tested::sync::mpsc::{Receiver, Sender, channel};
use tested::sync::{
    Arc, Barrier, Condvar, Mutex, MutexGuard, Notify, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult,
};
use tested::thread::{AccessError, Builder, JoinHandle, LocalKey, Thread, ThreadId};

type Send_<T> = PhantomData<T>;
fn is_send<T: Send + ?Sized>() {}
fn is_shared<T: Send + Sync + ?Sized>() {}
fn unwinds<T: UnwindSafe + RefUnwindSafe>() {}
fn is_debug<T: Debug + ?Sized>() {}
fn is_default<T: Default>() {}
fn comes_from<T: From<U>, U>() {}
fn is_copy<T: Clone + Copy + Eq + Hash + Debug>() {}

macro_rules! common {
    ($atomic:ty, $value:ty) => {
        is_shared::<$atomic>();
        unwinds::<$atomic>();
        is_debug::<$atomic>();
        is_default::<$atomic>();
        comes_from::<$atomic, $value>();
        let _: fn($value) -> $atomic = <$atomic>::new;
        let _: unsafe fn(&$atomic) -> $value = <$atomic>::unsync_load;
        let _: fn($atomic) -> $value = <$atomic>::into_inner;
        let _: fn(&$atomic, Ordering) -> $value = <$atomic>::load;
        let _: fn(&$atomic, $value, Ordering) = <$atomic>::store;
        let _: fn(&$atomic, $value, Ordering) -> $value = <$atomic>::swap;
        let _: fn(&$atomic, $value, $value, Ordering) -> $value = <$atomic>::compare_and_swap;
        let _: fn(&$atomic, $value, $value, Ordering, Ordering) -> Result<$value, $value> = <$atomic>::compare_exchange;
        let _: fn(&$atomic, $value, $value, Ordering, Ordering) -> Result<$value, $value> =
            <$atomic>::compare_exchange_weak;
        let _: fn(&$atomic, Ordering, Ordering, fn($value) -> Option<$value>) -> Result<$value, $value> =
            <$atomic>::fetch_update::<fn($value) -> Option<$value>>;
    };
}

macro_rules! fetches {
    ($atomic:ty, $value:ty, $($method:ident)*) => {$(
        let _: fn(&$atomic, $value, Ordering) -> $value = <$atomic>::$method;
    )*};
}

macro_rules! integers {
    ($($atomic:ty, $value:ty;)*) => {$(
        common!($atomic, $value);
        fetches!($atomic, $value, fetch_add fetch_sub fetch_and fetch_nand fetch_or fetch_xor fetch_max fetch_min);
        let _ = |atomic: &mut $atomic| atomic.with_mut::<u8>(|value: &mut $value| u8::from(*value == 0));
    )*};
}

fn atomics() {
    integers! {
        AtomicU8, u8; AtomicU16, u16; AtomicU32, u32; AtomicU64, u64; AtomicUsize, usize;
        AtomicI8, i8; AtomicI16, i16; AtomicI32, i32; AtomicI64, i64; AtomicIsize, isize;
    }
    common!(AtomicBool, bool);
    fetches!(AtomicBool, bool, fetch_and fetch_nand fetch_or fetch_xor);
    common!(AtomicPtr<u8>, *mut u8);
    is_shared::<AtomicPtr<*const u8>>();
    let _ = |atomic: &mut AtomicPtr<u8>| atomic.with_mut::<bool>(|value: &mut *mut u8| value.is_null());
    let _: fn(tested::sync::atomic::Ordering) = fence;
    let _: fn() = spin_loop_hint;
    let _: fn() = tested::hint::spin_loop;
    let _: unsafe fn() -> ! = tested::hint::unreachable_unchecked;
}

fn arcs() {
    is_shared::<Arc<u8>>();
    is_shared::<Arc<dyn Debug + Send + Sync>>();
    is_debug::<Arc<u8>>();
    is_default::<Arc<u8>>();
    comes_from::<Arc<u8>, u8>();
    let _: fn(u8) -> Arc<u8> = Arc::new;
    let _: fn(u8) -> Pin<Arc<u8>> = Arc::pin;
    let _: fn(Arc<u8>) -> Result<u8, Arc<u8>> = Arc::try_unwrap;
    let _: fn(std::sync::Arc<dyn Debug>) -> Arc<dyn Debug> = Arc::from_std;
    let _: fn(&Arc<[u8]>) -> usize = Arc::strong_count;
    let _: unsafe fn(*const str) = Arc::increment_strong_count;
    let _: unsafe fn(*const str) = Arc::decrement_strong_count;
    let _: for<'a> fn(&'a mut Arc<str>) -> Option<&'a mut str> = Arc::get_mut;
    let _: fn(&Arc<str>, &Arc<str>) -> bool = Arc::ptr_eq;
    let _: fn(Arc<str>) -> *const str = Arc::into_raw;
    let _: fn(&Arc<str>) -> *const str = Arc::as_ptr;
    let _: unsafe fn(*const u8) -> Arc<u8> = Arc::from_raw;
    let _: for<'a> fn(&'a Arc<str>) -> &'a str = <Arc<str> as Deref>::deref;
    let _: for<'a> fn(&'a Arc<str>) -> &'a str = <Arc<str> as AsRef<str>>::as_ref;
    let _: for<'a> fn(&'a Arc<str>) -> &'a str = <Arc<str> as Borrow<str>>::borrow;
    let _: fn(&Arc<str>) -> Arc<str> = <Arc<str> as Clone>::clone;
}

fn cells() {
    is_send::<UnsafeCell<u8>>();
    is_debug::<UnsafeCell<u8>>();
    is_default::<UnsafeCell<u8>>();
    comes_from::<UnsafeCell<u8>, u8>();
    let _: fn(u8) -> UnsafeCell<u8> = UnsafeCell::new;
    let _: fn(UnsafeCell<u8>) -> u8 = UnsafeCell::into_inner;
    let _: fn(&UnsafeCell<str>, fn(*const str) -> u8) -> u8 = UnsafeCell::with::<_, u8>;
    let _: fn(&UnsafeCell<str>, fn(*mut str) -> u8) -> u8 = UnsafeCell::with_mut::<_, u8>;
    let _: fn(&UnsafeCell<str>) -> ConstPtr<str> = UnsafeCell::get;
    let _: fn(&UnsafeCell<str>) -> MutPtr<str> = UnsafeCell::get_mut;
    is_debug::<ConstPtr<u8>>();
    is_debug::<MutPtr<u8>>();
    let _: for<'a> unsafe fn(&'a ConstPtr<str>) -> &'a str = ConstPtr::deref;
    let _: for<'a> unsafe fn(&'a MutPtr<str>) -> &'a mut str = MutPtr::deref;
    let _: fn(&ConstPtr<str>, fn(*const str) -> u8) -> u8 = ConstPtr::with::<_, u8>;
    let _: fn(&MutPtr<str>, fn(*mut str) -> u8) -> u8 = MutPtr::with::<_, u8>;

    is_send::<Cell<u8>>();
    is_debug::<Cell<u8>>();
    is_default::<Cell<u8>>();
    comes_from::<Cell<u8>, u8>();
    fn is_ordered<T: Clone + PartialEq + Eq + PartialOrd + Ord>() {}
    is_ordered::<Cell<u8>>();
    let _: fn(u8) -> Cell<u8> = Cell::new;
    let _: fn(&Cell<u8>, u8) = Cell::set;
    let _: fn(&Cell<u8>, &Cell<u8>) = Cell::swap;
    let _: fn(&Cell<u8>, u8) -> u8 = Cell::replace;
    let _: fn(&Cell<u8>) -> u8 = Cell::get;
    let _: fn(&Cell<String>) -> String = Cell::take;
    let _: fn(Cell<u8>) -> u8 = Cell::into_inner;
}

fn locks() {
    is_shared::<Mutex<u8>>();
    unwinds::<Mutex<u8>>();
    is_debug::<Mutex<u8>>();
    is_default::<Mutex<u8>>();
    comes_from::<Mutex<u8>, u8>();
    let _: fn(u8) -> Mutex<u8> = Mutex::new;
    let _: fn(Mutex<u8>) -> LockResult<u8> = Mutex::into_inner;
    let _: for<'a> fn(&'a Mutex<str>) -> LockResult<MutexGuard<'a, str>> = Mutex::lock;
    let _: for<'a> fn(&'a Mutex<str>) -> TryLockResult<MutexGuard<'a, str>> = Mutex::try_lock;
    let _: for<'a> fn(&'a mut Mutex<str>) -> tested::sync::LockResult<&'a mut str> = Mutex::get_mut;
    fn is_guard<T: Deref<Target = u8> + Debug>() {}
    fn is_exclusive<T: DerefMut<Target = u8> + Debug>() {}
    is_exclusive::<MutexGuard<'static, u8>>();

    is_shared::<RwLock<u8>>();
    is_debug::<RwLock<u8>>();
    is_default::<RwLock<u8>>();
    comes_from::<RwLock<u8>, u8>();
    let _: fn(u8) -> RwLock<u8> = RwLock::new;
    let _: for<'a> fn(&'a RwLock<u8>) -> LockResult<RwLockReadGuard<'a, u8>> = RwLock::read;
    let _: for<'a> fn(&'a RwLock<u8>) -> LockResult<RwLockWriteGuard<'a, u8>> = RwLock::write;
    let _: for<'a> fn(&'a RwLock<u8>) -> TryLockResult<RwLockReadGuard<'a, u8>> = RwLock::try_read;
    let _: for<'a> fn(&'a RwLock<u8>) -> tested::sync::TryLockResult<RwLockWriteGuard<'a, u8>> = RwLock::try_write;
    let _: for<'a> fn(&'a mut RwLock<u8>) -> LockResult<&'a mut u8> = RwLock::get_mut;
    let _: fn(RwLock<u8>) -> LockResult<u8> = RwLock::into_inner;
    is_guard::<RwLockReadGuard<'static, u8>>();
    is_exclusive::<RwLockWriteGuard<'static, u8>>();

    is_shared::<Condvar>();
    unwinds::<Condvar>();
    is_debug::<Condvar>();
    is_default::<Condvar>();
    let _: fn() -> Condvar = Condvar::new;
    let _: for<'a> fn(&Condvar, MutexGuard<'a, u8>) -> LockResult<MutexGuard<'a, u8>> = Condvar::wait::<u8>;
    let _: for<'a> fn(&Condvar, MutexGuard<'a, u8>, Duration) -> LockResult<(MutexGuard<'a, u8>, WaitTimeoutResult)> =
        Condvar::wait_timeout::<u8>;
    let _: fn(&Condvar) = Condvar::notify_one;
    let _: fn(&Condvar) = Condvar::notify_all;
    is_debug::<WaitTimeoutResult>();
    let _: fn(&WaitTimeoutResult) -> bool = WaitTimeoutResult::timed_out;

    is_shared::<Barrier>();
    is_debug::<Barrier>();
    let _: fn(usize) -> Barrier = Barrier::new;
    let _ = |barrier: &Barrier| barrier.wait().is_leader();
    is_shared::<Notify>();
    is_debug::<Notify>();
    is_default::<Notify>();
    let _: fn() -> Notify = Notify::new;
    let _: fn(&Notify) = Notify::notify;
    let _: fn(&Notify) = Notify::wait;
}

fn channels_and_futures() {
    is_send::<Sender<u8>>();
    is_send::<Receiver<u8>>();
    is_debug::<Sender<u8>>();
    is_debug::<Receiver<u8>>();
    let _: fn() -> (Sender<u8>, Receiver<u8>) = channel::<u8>;
    let _: fn(&Sender<u8>, u8) -> Result<(), std::sync::mpsc::SendError<u8>> = Sender::send;
    let _: fn(&Sender<Mutex<u8>>) -> Sender<Mutex<u8>> = Clone::clone;
    let _: fn(&Receiver<u8>) -> Result<u8, std::sync::mpsc::RecvError> = Receiver::recv;
    let _: fn(&Receiver<u8>) -> Result<u8, std::sync::mpsc::TryRecvError> = Receiver::try_recv;
    let _: fn(&Receiver<u8>, Duration) -> Result<u8, std::sync::mpsc::RecvTimeoutError> = Receiver::recv_timeout;

    is_shared::<AtomicWaker>();
    is_debug::<AtomicWaker>();
    is_default::<AtomicWaker>();
    let _: fn() -> AtomicWaker = AtomicWaker::new;
    let _: fn(&AtomicWaker, Waker) = AtomicWaker::register;
    let _: fn(&AtomicWaker, &Waker) = AtomicWaker::register_by_ref;
    let _: fn(&AtomicWaker) = AtomicWaker::wake;
    let _: fn(&AtomicWaker) -> Option<Waker> = AtomicWaker::take_waker;
    let _: fn(Ready<u8>) -> u8 = block_on::<Ready<u8>>;

    let _: unsafe fn(Layout) -> *mut u8 = alloc;
    let _: unsafe fn(Layout) -> *mut u8 = alloc_zeroed;
    let _: unsafe fn(*mut u8, Layout) = dealloc;
    is_shared::<Track<u8>>();
    is_debug::<Track<u8>>();
    let _: fn(u8) -> Track<u8> = Track::new;
    let _: for<'a> fn(&'a Track<u8>) -> &'a u8 = Track::get_ref;
    let _: for<'a> fn(&'a mut Track<u8>) -> &'a mut u8 = Track::get_mut;
    let _: fn(Track<u8>) -> u8 = Track::into_inner;
}

fn threads() {
    is_shared::<JoinHandle<u8>>();
    is_debug::<JoinHandle<u8>>();
    let _: fn(fn() -> Send_<*const u8>) -> JoinHandle<Send_<*const u8>> = tested::thread::spawn;
    let _: fn(JoinHandle<u8>) -> std::thread::Result<u8> = JoinHandle::join;
    let _: for<'a> fn(&'a JoinHandle<u8>) -> &'a Thread = JoinHandle::thread;
    is_shared::<Thread>();
    is_debug::<Thread>();
    let _: fn(&Thread) -> Thread = Clone::clone;
    let _: fn(&Thread) -> ThreadId = Thread::id;
    let _: for<'a> fn(&'a Thread) -> Option<&'a str> = Thread::name;
    let _: fn(&Thread) = Thread::unpark;
    is_copy::<ThreadId>();
    is_shared::<ThreadId>();
    is_debug::<Builder>();
    let _: fn() -> Builder = Builder::new;
    let _: fn(Builder, String) -> Builder = Builder::name;
    let _: fn(Builder, usize) -> Builder = Builder::stack_size;
    let _: fn(Builder, fn() -> u8) -> std::io::Result<JoinHandle<u8>> = Builder::spawn;
    let _: fn() -> Thread = tested::thread::current;
    let _: fn() = tested::thread::park;
    let _: fn() = tested::thread::yield_now;
    let _: fn() -> bool = tested::thread::panicking;
    let _: fn() = tested::lazy_static::yield_now;
    let _: fn() -> bool = tested::lazy_static::panicking;
    is_debug::<tested::lazy_static::AccessError>();
    is_debug::<AccessError>();
    is_debug::<LocalKey<u8>>();
    is_shared::<LocalKey<u8>>();
    is_debug::<tested::lazy_static::Lazy<u8>>();
    let _: fn(&'static tested::lazy_static::Lazy<u8>) -> &'static u8 = tested::lazy_static::Lazy::get;
    let _: fn(&'static LocalKey<u8>, fn(&u8) -> u8) -> u8 = LocalKey::with::<fn(&u8) -> u8, u8>;
    let _: fn(&'static LocalKey<u8>, fn(&u8) -> u8) -> Result<u8, AccessError> =
        LocalKey::try_with::<fn(&u8) -> u8, u8>;
}

tested::thread_local! {}
tested::thread_local!(static ALONE: u8 = 1);
tested::thread_local! {
    /// With an attribute.
    #[allow(unused)]
    static FIRST: std::cell::RefCell<Vec<u8>> = std::cell::RefCell::new(Vec::new());
    #[allow(unused)]
    pub(crate) static SECOND: Arc<u8> = Arc::new(2);
    pub static LAST: u8 = 3
}
tested::lazy_static! {}
tested::lazy_static! {
    /// With an attribute.
    #[derive(Debug)]
    static ref PRIVATE: Mutex<u8> = Mutex::new(1);
    pub static ref PUBLIC: Arc<u8> = Arc::new(1);
    pub(crate) static ref VISIBLE: Vec<u8> = vec![1];
    pub(in crate) static ref SOMEWHERE: u8 = 1;
}

fn models() {
    let mut model: Model = Model::new();
    is_default::<Model>();
    is_debug::<Model>();
    let _: &mut usize = &mut model.max_threads;
    let _: &mut usize = &mut model.max_branches;
    let _: &mut Option<usize> = &mut model.max_permutations;
    let _: &mut Option<Duration> = &mut model.max_duration;
    let _: &mut Option<usize> = &mut model.preemption_bound;
    let _: &mut Option<PathBuf> = &mut model.checkpoint_file;
    let _: &mut usize = &mut model.checkpoint_interval;
    let _: &mut bool = &mut model.expect_explicit_explore;
    let _: &mut bool = &mut model.location;
    let _: &mut bool = &mut model.log;
    let _: for<'a> fn(&'a mut Model, &str) -> &'a mut Model = Model::checkpoint_file;
    let _: fn(&Model, fn()) = Model::check::<fn()>;
    let _: fn(fn()) = tested::model::<fn()>;
    let _: fn(fn()) = tested::model::model::<fn()>;
    let _: [fn(); 3] = [tested::explore, tested::stop_exploring, tested::skip_branch];
    const { assert!(tested::MAX_THREADS == 5) };
}

/// What is here is used.
pub(super) const GROUPS: [fn(); 7] = [atomics, arcs, cells, locks, channels_and_futures, threads, models];
