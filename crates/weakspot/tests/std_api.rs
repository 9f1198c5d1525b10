//! The mirrors have what the standard library's types have: methods, traits and auto traits. Most of this is a matter of
//! compiling; what is called is called twice, outside a model and inside one.
#![allow(clippy::unwrap_used)]

use std::any::Any;
use std::borrow::Cow;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weakspot::cell::{Cell, UnsafeCell};
use weakspot::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize};
use weakspot::sync::{
    Arc, Barrier, Condvar, LazyLock, Mutex, MutexGuard, Once, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
    Weak, mpsc,
};
use weakspot::thread;

/// Runs something outside a model and inside one.
fn both(body: fn()) {
    body();
    weakspot::model(body);
}

/// Asks a type whether it has a trait, without failing to compile if it has not.
macro_rules! has {
    ($type:ty: $($bound:tt)+) => {{
        #[allow(dead_code)]
        trait Fallback {
            const HAS: bool = false;
        }
        impl<T: ?Sized> Fallback for T {}
        struct Wrapper<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        impl<T: ?Sized + $($bound)+> Wrapper<T> {
            const HAS: bool = true;
        }
        <Wrapper<$type>>::HAS
    }};
}

/// Both types have the same auto traits; ours may be safe to unwind through where the other is not.
macro_rules! same_auto_traits {
    ($($ours:ty, $theirs:ty;)*) => {$(
        assert_eq!(has!($ours: Send), has!($theirs: Send), "Send for {}", stringify!($ours));
        assert_eq!(has!($ours: Sync), has!($theirs: Sync), "Sync for {}", stringify!($ours));
        assert_eq!(has!($ours: Unpin), has!($theirs: Unpin), "Unpin for {}", stringify!($ours));
        assert!(has!($ours: UnwindSafe) || !has!($theirs: UnwindSafe), "UnwindSafe for {}", stringify!($ours));
        assert!(has!($ours: RefUnwindSafe) || !has!($theirs: RefUnwindSafe), "RefUnwindSafe for {}", stringify!($ours));
    )*};
}

type NotSync = std::cell::Cell<u8>;
type NotSend = MutexGuard<'static, u8>;
type Neither = std::rc::Rc<u8>;

#[test]
fn auto_traits_are_those_of_the_standard_library() {
    use std::sync as s;
    same_auto_traits! {
        AtomicU8, s::atomic::AtomicU8;
        AtomicPtr<Neither>, s::atomic::AtomicPtr<Neither>;
        Arc<u8>, s::Arc<u8>;
        Arc<NotSync>, s::Arc<NotSync>;
        Arc<Neither>, s::Arc<Neither>;
        Weak<u8>, s::Weak<u8>;
        Weak<NotSync>, s::Weak<NotSync>;
        Mutex<u8>, s::Mutex<u8>;
        Mutex<NotSync>, s::Mutex<NotSync>;
        Mutex<Neither>, s::Mutex<Neither>;
        MutexGuard<'static, u8>, s::MutexGuard<'static, u8>;
        MutexGuard<'static, NotSync>, s::MutexGuard<'static, NotSync>;
        MutexGuard<'static, NotSend>, s::MutexGuard<'static, NotSend>;
        RwLock<u8>, s::RwLock<u8>;
        RwLock<NotSync>, s::RwLock<NotSync>;
        RwLock<Neither>, s::RwLock<Neither>;
        RwLockReadGuard<'static, u8>, s::RwLockReadGuard<'static, u8>;
        RwLockReadGuard<'static, NotSync>, s::RwLockReadGuard<'static, NotSync>;
        RwLockReadGuard<'static, NotSend>, s::RwLockReadGuard<'static, NotSend>;
        RwLockWriteGuard<'static, u8>, s::RwLockWriteGuard<'static, u8>;
        RwLockWriteGuard<'static, NotSync>, s::RwLockWriteGuard<'static, NotSync>;
        RwLockWriteGuard<'static, NotSend>, s::RwLockWriteGuard<'static, NotSend>;
        Condvar, s::Condvar;
        Barrier, s::Barrier;
        Once, s::Once;
        OnceLock<u8>, s::OnceLock<u8>;
        OnceLock<NotSync>, s::OnceLock<NotSync>;
        OnceLock<Neither>, s::OnceLock<Neither>;
        LazyLock<u8>, s::LazyLock<u8>;
        LazyLock<NotSync>, s::LazyLock<NotSync>;
        mpsc::Sender<u8>, s::mpsc::Sender<u8>;
        mpsc::Sender<NotSync>, s::mpsc::Sender<NotSync>;
        mpsc::Sender<Neither>, s::mpsc::Sender<Neither>;
        mpsc::SyncSender<NotSync>, s::mpsc::SyncSender<NotSync>;
        mpsc::Receiver<u8>, s::mpsc::Receiver<u8>;
        mpsc::Receiver<NotSync>, s::mpsc::Receiver<NotSync>;
        UnsafeCell<u8>, std::cell::UnsafeCell<u8>;
        Cell<u8>, std::cell::Cell<u8>;
        Cell<Neither>, std::cell::Cell<Neither>;
        thread::Thread, std::thread::Thread;
        thread::ThreadId, std::thread::ThreadId;
        thread::JoinHandle<u8>, std::thread::JoinHandle<u8>;
        thread::Scope<'static, 'static>, std::thread::Scope<'static, 'static>;
        thread::ScopedJoinHandle<'static, u8>, std::thread::ScopedJoinHandle<'static, u8>;
        thread::LocalKey<u8>, std::thread::LocalKey<u8>;
    }
}

static TABLE: [AtomicUsize; 2] = [const { AtomicUsize::new(7) }; 2];

#[test]
fn atomics_have_the_newer_methods() {
    both(|| {
        let number = AtomicU64::new(3);
        assert_eq!(number.update(AcqRel, Acquire, |old| old * 2), 3);
        assert_eq!(number.try_update(AcqRel, Acquire, |old| old.checked_sub(7)), Err(6));
        assert_eq!(number.into_inner(), 6);
        let flag = AtomicBool::new(false);
        assert!(!flag.fetch_not(SeqCst) && flag.load(Relaxed));
        let mut numbers = [1_u16, 2, 3, 4];
        let start = numbers.as_mut_ptr();
        let pointer = AtomicPtr::new(start);
        assert_eq!(pointer.fetch_ptr_add(2, AcqRel), start);
        assert_eq!(pointer.fetch_ptr_sub(1, AcqRel), start.wrapping_add(2));
        assert_eq!(pointer.fetch_byte_add(1, AcqRel), start.wrapping_add(1));
        assert_eq!(pointer.fetch_byte_sub(3, AcqRel), start.wrapping_add(1).wrapping_byte_add(1));
        assert_eq!(pointer.fetch_or(1, AcqRel), start);
        assert_eq!(pointer.fetch_xor(1, AcqRel), start.wrapping_byte_add(1));
        assert_eq!(pointer.fetch_and(!1, AcqRel), start);
        assert_eq!(format!("{pointer:p}"), format!("{start:p}"));
        assert_eq!(TABLE[1].load(Relaxed), 7);
    });
}

#[test]
fn counted_references_convert_and_compare() {
    both(|| {
        let _: Arc<str> = Arc::from("text");
        let _: Arc<str> = Arc::from("text".to_owned());
        let _: Arc<str> = Arc::from(Cow::Borrowed("text"));
        let _: Arc<[u8]> = Arc::from(vec![1, 2]);
        let _: Arc<[u8]> = Arc::from(&[1, 2][..]);
        let _: Arc<[u8]> = Arc::from([1, 2]);
        let _: Arc<[u8]> = [1, 2].into_iter().collect();
        let _: Arc<u8> = Arc::from(Box::new(1));
        let _: (Arc<CStr>, Arc<OsStr>, Arc<Path>) =
            (CString::default().into(), OsString::new().into(), PathBuf::new().into());
        let _: Arc<Path> = Arc::from(&mut *PathBuf::from("path").into_boxed_path());
        let _: (Arc<str>, Arc<[u8]>, Arc<u8>) = Default::default();
        let any: Arc<dyn Any + Send + Sync> = Arc::from_std(std::sync::Arc::new(7_u32));
        let any = any.downcast::<u8>().unwrap_err();
        assert_eq!(*any.downcast::<u32>().unwrap(), 7);
        let error: Arc<std::fmt::Error> = Arc::new(std::fmt::Error);
        let _: &dyn std::error::Error = &error;
        assert!(Arc::new(1) < Arc::new(2) && Arc::new(1) == Arc::new(1));
        let bytes: Arc<[u8]> = Arc::<str>::from(String::from("ab").as_mut_str()).into();
        let bytes: Arc<[u8; 3]> = match Arc::<[u8; 3]>::try_from(bytes) {
            Ok(_) => unreachable!("there are two"),
            Err(bytes) => Arc::new([bytes[0], bytes[1], 0]),
        };
        assert_eq!(*bytes, *b"ab\0");
        // A trait object: there is no coercion from a reference to another outside of the standard library.
        let doubles: Arc<dyn Fn(u8) -> u8> = Arc::from(Box::new(|number: u8| 2 * number) as Box<dyn Fn(u8) -> u8>);
        assert_eq!(doubles(2), 4);
    });
}

#[test]
fn counted_references_count() {
    both(|| {
        let mut one = Arc::new(vec![1]);
        let two = one.clone();
        Arc::make_mut(&mut one).push(2);
        assert_eq!((two.len(), one.len()), (1, 2));
        assert_eq!(Arc::unwrap_or_clone(one), [1, 2]);
        let mut slice: Arc<[u8]> = Arc::from([1, 2]);
        let same = slice.clone();
        Arc::make_mut(&mut slice)[0] = 3;
        let mut text: Arc<str> = Arc::from("ab");
        Arc::make_mut(&mut text).make_ascii_uppercase();
        assert_eq!((&*slice, &*same, &*text), (&[3, 2][..], &[1, 2][..], "AB"));
        assert_eq!(Arc::into_inner(two), Some(vec![1]));
        let cyclic = Arc::new_cyclic(|weak: &Weak<(u8, Weak<u8>)>| {
            assert!(weak.upgrade().is_none());
            (1, Weak::new())
        });
        assert!(cyclic.1.upgrade().is_none() && cyclic.0 == 1);
        let slice: Arc<[u8]> = Arc::from([1, 2]);
        let raw = Arc::into_raw(slice);
        // SAFETY: the pointer comes from `into_raw`, and the counts are balanced.
        let slice = unsafe {
            Arc::increment_strong_count(raw);
            Arc::decrement_strong_count(raw);
            Arc::from_raw(raw)
        };
        let weak = Arc::downgrade(&slice);
        let raw = weak.into_raw();
        // SAFETY: as above.
        let weak = unsafe { Weak::from_raw(raw) };
        assert!(weak.strong_count() == 1 && weak.upgrade().is_some());
        drop(slice);
        assert!(weak.upgrade().is_none());
        let memory = Arc::<u8>::new_uninit();
        let mut memory = memory;
        Arc::get_mut(&mut memory).unwrap().write(5);
        // SAFETY: written above.
        assert_eq!(*unsafe { memory.assume_init() }, 5);
        assert_eq!(Arc::<[u8]>::new_uninit_slice(3).len(), 3);
        // SAFETY: zero is a number.
        let (one, many) =
            unsafe { (Arc::<u64>::new_zeroed().assume_init(), Arc::<[u64]>::new_zeroed_slice(2).assume_init()) };
        assert_eq!((*one, &*many), (0, &[0, 0][..]));
    });
}

#[test]
fn cells_and_lazy_values() {
    both(|| {
        let mut cell = Cell::new(1);
        cell.update(|value| value + 1);
        *cell.get_mut() += 1;
        assert_eq!(cell.get(), 3);
        let mut lazy = LazyLock::<u8, _>::new(|| 4);
        assert!(LazyLock::get(&lazy).is_none());
        *lazy += 1;
        assert_eq!((LazyLock::get(&lazy), *LazyLock::force(&lazy)), (Some(&5), 5));
        *LazyLock::force_mut(&mut lazy) = 6;
        assert_eq!(LazyLock::get_mut(&mut lazy), Some(&mut 6));
        let lock = RwLock::new(1);
        assert_eq!(format!("{}", lock.read().unwrap()), "1");
        let slice: Box<Mutex<[u8]>> = Box::new(Mutex::new([1, 2]));
        assert_eq!(slice.lock().unwrap().len(), 2);
    });
}

#[test]
fn condition_variables_wait_for_conditions() {
    both(|| {
        let shared = Arc::new((Mutex::new(0), Condvar::new()));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            *other.0.lock().unwrap() = 1;
            other.1.notify_one();
        });
        let guard = shared.1.wait_while::<i32, _>(shared.0.lock().unwrap(), |value| *value == 0).unwrap();
        let (guard, result) = shared.1.wait_timeout_while(guard, Duration::ZERO, |value| *value == 1).unwrap();
        assert!(result.timed_out());
        drop(guard);
        thread.join().unwrap();
    });
}

#[test]
fn scoped_threads_nest_and_have_names() {
    both(|| {
        let count = AtomicUsize::new(0);
        let sum = thread::scope(|scope| {
            let named = thread::Builder::new().name("named".to_owned());
            let handle = named.spawn_scoped(scope, || {
                scope.spawn(|| count.fetch_add(1, Relaxed));
                thread::current().name().map(str::to_owned)
            });
            let handle = handle.unwrap();
            assert_eq!(handle.thread().name(), Some("named"));
            assert_eq!(handle.join().unwrap().as_deref(), Some("named"));
            scope.spawn(|| 2).join().unwrap()
        });
        assert_eq!((sum, count.into_inner()), (2, 1));
    });
}

#[test]
fn threads_may_borrow_from_anywhere() {
    both(|| {
        let (count, text) = (AtomicUsize::new(1), String::from("text"));
        let builder = thread::Builder::new().name("borrows".to_owned());
        // SAFETY: the thread is joined before what it borrows goes away.
        let handle = unsafe { builder.spawn_unchecked(|| (count.fetch_add(1, Relaxed), &text)) }.unwrap();
        assert_eq!(handle.thread().name(), Some("borrows"));
        assert_eq!(handle.join().unwrap(), (1, &text));
        assert_eq!(count.load(Relaxed), 2);
    });
}

#[test]
#[allow(deprecated)]
fn what_is_deprecated_is_there() {
    both(|| {
        thread::park_timeout_ms(0);
        thread::sleep_ms(0);
        let shared = (Mutex::new(0), Condvar::new());
        let (guard, is_notified) = shared.1.wait_timeout_ms(shared.0.lock().unwrap(), 0).unwrap();
        assert!(!is_notified && *guard == 0);
    });
}

#[test]
fn a_shared_file_is_a_file() {
    use std::io::{Read, Seek, Write};
    let name = format!("weakspot-shared-file-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let options = std::fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path);
    let mut file = Arc::new(options.unwrap());
    let mut same = file.clone();
    file.write_all(b"text").unwrap();
    same.rewind().unwrap();
    let mut text = String::new();
    same.read_to_string(&mut text).unwrap();
    #[cfg(unix)]
    assert_eq!(std::os::fd::AsRawFd::as_raw_fd(&file), std::os::fd::AsRawFd::as_raw_fd(&*same));
    std::fs::remove_file(path).unwrap();
    assert_eq!(text, "text");
}

#[test]
fn an_atomic_is_as_large_as_the_largest_value() {
    let bytes = if cfg!(all(feature = "allocator", target_os = "linux", target_env = "gnu")) { 8 } else { 32 };
    assert_eq!([size_of::<AtomicUsize>(), size_of::<AtomicPtr<u8>>(), size_of::<AtomicU64>()], [bytes; 3]);
    assert_eq!([size_of::<AtomicBool>(), size_of::<AtomicU8>()], [bytes; 2]);
    assert_eq!(align_of::<AtomicUsize>(), align_of::<usize>());
}

#[test]
fn handles_know_their_threads_outside_a_model() {
    let handle = thread::spawn(thread::current);
    let thread = handle.thread().clone();
    assert_eq!(handle.join().unwrap().id(), thread.id());
}

#[test]
fn whether_a_thread_has_ended_is_explored() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let all = seen.clone();
    let report = weakspot::Builder::default().check(move || {
        let handle = thread::spawn(|| ());
        let before = handle.is_finished();
        all.lock().unwrap().insert(before);
        handle.join().unwrap();
    });
    assert_eq!(report.verdict, weakspot::Verdict::Safe, "{report}");
    assert_eq!(seen.lock().unwrap().len(), 2);
    assert_eq!(report.executions, 2);
}

#[test]
fn channels_have_iterators_and_bounds() {
    both(|| {
        let (sender, receiver) = mpsc::sync_channel(2);
        sender.try_send(1).unwrap();
        sender.send(2).unwrap();
        assert!(sender.try_send(3).is_err());
        assert_eq!(receiver.try_iter().collect::<Vec<i32>>(), [1, 2]);
        sender.send(3).unwrap();
        drop(sender);
        assert_eq!(receiver.iter().next(), Some(3));
        assert!(receiver.recv_timeout(Duration::ZERO).is_err());
        assert_eq!(receiver.into_iter().count(), 0);
    });
}

#[test]
fn everything_behaves_like_std_outside_a_model() {
    let count = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let count = count.clone();
            thread::spawn(move || count.fetch_add(1, Relaxed))
        })
        .collect();
    for thread in threads {
        assert!(thread.join().unwrap() < 4);
    }
    assert_eq!(count.load(Relaxed), 4);
    let lock = Mutex::new(1);
    *lock.lock().unwrap() += 1;
    assert!(lock.try_lock().is_ok());
    assert_eq!(lock.into_inner().unwrap(), 2);
}

/// The same with the standard library's types and with ours.
macro_rules! written_down {
    ($($of:tt)+) => {{
        use $($of)+::{Barrier, Condvar, LazyLock, Mutex, OnceLock, RwLock};
        let (mutex, lock) = (Mutex::new(5), RwLock::new(5));
        let (lazy, cell) = (LazyLock::<u8>::new(|| 5), OnceLock::new());
        let mut texts = vec![format!("{mutex:?} {lock:?} {lazy:?} {cell:?} {:?}", Condvar::new())];
        let (held, written) = (mutex.lock().unwrap(), lock.write().unwrap());
        texts.push(format!("{mutex:?} {lock:?} {held} {written:?}"));
        drop((held, written));
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = (mutex.lock().unwrap(), lock.read().unwrap());
            std::panic::resume_unwind(Box::new(()));
        }));
        cell.set(*lazy).unwrap();
        texts.push(format!("{mutex:?} {lock:?} {lazy:?} {cell:?} {:?}", Barrier::new(1).wait()));
        texts
    }};
}

#[test]
fn outside_a_model_everything_is_written_down_as_the_standard_library_does() {
    assert_eq!(written_down!(weakspot::sync), written_down!(std::sync));
}

#[test]
fn a_writer_becomes_a_reader_without_letting_others_in() {
    both(|| {
        let lock = Arc::new(RwLock::new(0));
        let other = lock.clone();
        let thread = thread::spawn(move || *other.write().unwrap() = 2);
        let mut guard = lock.write().unwrap();
        let before = *guard;
        *guard = 1;
        let guard = RwLockWriteGuard::downgrade(guard);
        assert!(*guard == 1 && before != 1);
        assert!(lock.try_write().is_err() && lock.try_read().is_ok());
        drop(guard);
        thread.join().unwrap();
        let last = if before == 2 { 1 } else { 2 };
        assert_eq!(lock.try_write().map_or(0, |guard| *guard), last);
    });
}

#[test]
fn what_belongs_to_one_thread_is_the_standard_library_s() {
    use weakspot::cell::{LazyCell, OnceCell, RefCell};
    let (cell, lazy) = (RefCell::new(1_i32), LazyCell::new(|| 2));
    *cell.borrow_mut() += *lazy;
    assert_eq!(OnceCell::from(*cell.borrow()).get(), Some(&3));
    assert_eq!(weakspot::hint::select_unpredictable(cell.borrow().is_positive(), 1, 2), 1);
}

#[test]
fn a_lazy_value_whose_making_has_failed_stays_without() {
    both(|| {
        let lazy = LazyLock::<u8>::new(|| panic!("it cannot be made"));
        let try_it = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *lazy)).unwrap_err();
        assert_eq!(try_it().downcast_ref::<&str>(), Some(&"it cannot be made"));
        assert_eq!(try_it().downcast_ref::<&str>(), Some(&"LazyLock instance has previously been poisoned"));
    });
}
