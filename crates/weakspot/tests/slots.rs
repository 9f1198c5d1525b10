//! The memory of atomics: while a model uses one, it holds something else than the value, and nobody must notice.
#![allow(clippy::unwrap_used)]

use weakspot::sync::Arc;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, AtomicUsize};
use weakspot::{Builder, Verdict, thread};

fn passes(body: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::default().check(body);
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    report.executions
}

/// The same atomic before and after it is moved: threads see one another.
#[test]
fn an_atomic_that_is_moved_is_still_the_same() {
    passes(|| {
        let atomic = AtomicUsize::new(1);
        atomic.store(2, Release);
        let moved = Arc::new(vec![atomic]);
        let other = thread::spawn({
            let moved = Arc::clone(&moved);
            move || moved[0].fetch_add(1, SeqCst)
        });
        moved[0].fetch_add(1, SeqCst);
        other.join().unwrap();
        let mut atomics = Arc::try_unwrap(moved).unwrap();
        assert_eq!(*atomics[0].get_mut(), 4);
        *atomics[0].get_mut() = 7;
        assert_eq!(format!("{atomics:?}"), "[7]");
        assert_eq!(atomics.pop().unwrap().into_inner(), 7);
    });
}

#[test]
fn a_pointer_to_a_value_stays_one() {
    passes(|| {
        let atomic = AtomicU8::new(3);
        atomic.store(4, SeqCst);
        let pointer = atomic.as_ptr();
        // SAFETY: there is one thread.
        assert_eq!(unsafe { *pointer }, 4);
        assert_eq!(atomic.fetch_add(1, SeqCst), 4);
        // SAFETY: as above.
        assert_eq!(unsafe { *pointer }, 5);
        assert_eq!(atomic.into_inner(), 5);
    });
    let mut outside = AtomicI64::new(-1);
    // SAFETY: as above.
    unsafe { *outside.as_ptr() = -2 };
    assert_eq!((outside.load(SeqCst), *outside.get_mut()), (-2, -2));
}

/// Its memory held a value because of the pointer, and so does that of the next one.
#[test]
fn an_atomic_that_is_made_where_one_was_is_a_new_one() {
    passes(|| {
        for first in 0..3 {
            let atomic = AtomicUsize::new(first);
            let pointer = atomic.as_ptr();
            assert_eq!((atomic.load(SeqCst), atomic.fetch_add(10, SeqCst)), (first, first));
            // SAFETY: there is one thread.
            assert_eq!(unsafe { *pointer }, first + 10);
        }
    });
}

/// The tag of tokens is no secret: a value that has it is a value like others.
#[test]
fn a_value_may_look_like_anything() {
    const ODD: u64 = 0xb75d_a300_0000_0000;
    for odd in [ODD, ODD | 1 << 24, ODD | 63 << 24, ODD | 0x00ff_ffff_ffff] {
        let executions = passes(move || {
            let atomic = Arc::new(AtomicU64::new(odd));
            let other = thread::spawn({
                let atomic = Arc::clone(&atomic);
                move || atomic.compare_exchange(odd, 1, SeqCst, SeqCst).is_ok()
            });
            let mine = atomic.compare_exchange(odd, 2, SeqCst, SeqCst).is_ok();
            assert!(mine != other.join().unwrap());
        });
        assert_eq!(executions, 2);
    }
}

/// A mapping that is gone when the execution is over.
#[cfg(target_os = "linux")]
#[test]
fn memory_with_atomics_may_be_unmapped() {
    let executions = passes(|| {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, which nobody uses after it is unmapped.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), 4096, rights, flags, -1, 0) };
        assert_ne!(mapped, libc::MAP_FAILED);
        // SAFETY: zero is a value of an atomic.
        let atomic: &'static AtomicUsize = unsafe { &*mapped.cast() };
        let other = thread::spawn(move || atomic.fetch_add(1, Relaxed));
        atomic.fetch_add(1, Relaxed);
        other.join().unwrap();
        assert_eq!(atomic.load(Acquire), 2);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::munmap(mapped, 4096) }, 0);
    });
    assert_eq!(executions, 2);
}

/// Elsewhere values are put right when the next model uses them, and what is written through a pointer is not seen.
#[cfg(all(feature = "allocator", target_os = "linux", target_env = "gnu"))]
mod given_back {
    use std::sync::atomic::AtomicBool as Flag;

    use super::passes;
    use weakspot::sync::atomic::Ordering::SeqCst;
    use weakspot::sync::atomic::{AtomicBool, AtomicI8, AtomicPtr, AtomicU8, AtomicU16, AtomicU64, AtomicUsize};
    use weakspot::thread;

    /// Somebody else uses the same statics, outside of models, all the time.
    #[test]
    fn ordinary_code_beside_a_model_sees_what_was_there_before() {
        static COUNT: AtomicUsize = AtomicUsize::new(5);
        static SMALL: AtomicI8 = AtomicI8::new(-3);
        static DONE: Flag = Flag::new(false);
        let ordinary = std::thread::spawn(|| {
            while !DONE.load(SeqCst) {
                assert_eq!(COUNT.fetch_max(1, SeqCst), 5);
                assert_eq!(COUNT.load(SeqCst), 5);
                assert_eq!(COUNT.compare_exchange(4, 1, SeqCst, SeqCst), Err(5));
                assert_eq!(SMALL.swap(-3, SeqCst), -3);
                SMALL.store(-3, SeqCst);
                std::thread::yield_now();
            }
        });
        for _ in 0..20 {
            passes(|| {
                let other = thread::spawn(|| COUNT.fetch_add(1, SeqCst));
                COUNT.fetch_add(1, SeqCst);
                SMALL.fetch_add(1, SeqCst);
                other.join().unwrap();
                assert_eq!((COUNT.load(SeqCst), SMALL.load(SeqCst)), (7, -2));
            });
        }
        DONE.store(true, SeqCst);
        ordinary.join().unwrap();
        assert_eq!((COUNT.load(SeqCst), SMALL.load(SeqCst)), (5, -3));
    }

    #[test]
    fn what_was_captured_is_as_it_was_when_the_model_is_over() {
        let pointer = AtomicPtr::new(std::ptr::without_provenance_mut::<u8>(64));
        let shared = std::sync::Arc::new((AtomicU64::new(u64::MAX), AtomicBool::new(true), pointer));
        let inside = std::sync::Arc::clone(&shared);
        let first = shared.2.load(SeqCst);
        passes(move || {
            assert_eq!(inside.0.swap(1, SeqCst), u64::MAX);
            assert!(inside.1.fetch_not(SeqCst));
            inside.2.store(std::ptr::null_mut(), SeqCst);
            let other = thread::spawn({
                let inside = std::sync::Arc::clone(&inside);
                move || inside.0.store(2, SeqCst)
            });
            inside.0.load(SeqCst);
            other.join().unwrap();
        });
        assert_eq!((shared.0.load(SeqCst), shared.1.load(SeqCst), shared.2.load(SeqCst)), (u64::MAX, true, first));
    }

    /// Two models share memory that is no static, side by side: they have it in turns.
    #[test]
    fn models_that_share_what_std_has_allocated_have_it_in_turns() {
        let shared = std::sync::Arc::new(AtomicUsize::new(3));
        let (is_used, wait) = std::sync::mpsc::channel();
        let is_used = std::sync::Mutex::new(Some(is_used));
        let inside = std::sync::Arc::clone(&shared);
        let first = std::thread::spawn(move || {
            passes(move || {
                assert_eq!(inside.swap(4, SeqCst), 3);
                if let Some(is_used) = is_used.lock().unwrap().take() {
                    is_used.send(()).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
                assert_eq!(inside.load(SeqCst), 4);
            })
        });
        wait.recv().unwrap();
        let inside = std::sync::Arc::clone(&shared);
        passes(move || assert_eq!(inside.swap(5, SeqCst), 3));
        first.join().unwrap();
        assert_eq!(shared.load(SeqCst), 3);
    }

    #[test]
    fn what_is_written_through_a_pointer_is_there() {
        passes(|| {
            let mut atomic = AtomicU8::new(1);
            atomic.store(2, SeqCst);
            // SAFETY: there is one thread.
            unsafe { *atomic.as_ptr() = 7 };
            assert_eq!(atomic.load(SeqCst), 7);
            // SAFETY: as above.
            unsafe { *atomic.as_ptr() = 8 };
            assert_eq!((*atomic.get_mut(), atomic.into_inner()), (8, 8));
        });
    }

    /// A writer that looks for models first could come too late.
    #[test]
    fn ordinary_code_writes_while_models_begin() {
        static COUNT: AtomicU16 = AtomicU16::new(7);
        static DONE: Flag = Flag::new(false);
        let ordinary = std::thread::spawn(|| {
            while !DONE.load(SeqCst) {
                COUNT.store(7, SeqCst);
                assert_eq!((COUNT.swap(7, SeqCst), COUNT.fetch_or(0, SeqCst)), (7, 7));
            }
        });
        for _ in 0..500 {
            passes(|| {
                let other = thread::spawn(|| COUNT.fetch_add(1, SeqCst));
                COUNT.fetch_add(1, SeqCst);
                other.join().unwrap();
                assert_eq!(COUNT.load(SeqCst), 9);
            });
        }
        DONE.store(true, SeqCst);
        ordinary.join().unwrap();
        assert_eq!(COUNT.load(SeqCst), 7);
    }

    /// Turns are taken, whoever is quicker.
    #[test]
    fn many_models_share_what_std_has_allocated() {
        let shared = std::sync::Arc::new([AtomicU16::new(1), AtomicU16::new(2)]);
        let check = |shared: std::sync::Arc<[AtomicU16; 2]>| {
            let executions = passes(move || {
                let theirs = std::sync::Arc::clone(&shared);
                let add = |all: &[AtomicU16; 2]| all.iter().for_each(|one| _ = one.fetch_add(1, SeqCst));
                let other = thread::spawn(move || add(&theirs));
                add(&shared);
                other.join().unwrap();
                assert_eq!((shared[0].load(SeqCst), shared[1].load(SeqCst)), (3, 4));
            });
            assert_eq!(executions, 4);
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..30).for_each(|_| check(std::sync::Arc::clone(&shared))));
            }
        });
        assert_eq!((shared[0].load(SeqCst), shared[1].load(SeqCst)), (1, 2));
    }

    /// A token goes where its atomic goes, and that may be for longer than an execution.
    #[test]
    fn what_is_moved_into_memory_that_stays_is_as_it_was_when_it_comes_again() {
        let kept = std::sync::Arc::new(std::sync::Mutex::new(vec![AtomicUsize::new(5)]));
        for _ in 0..300 {
            let inside = std::sync::Arc::clone(&kept);
            passes(move || {
                let mut all = inside.lock().unwrap();
                assert_eq!(all[0].fetch_add(1, SeqCst), 5);
                all.extend((0..64).map(AtomicUsize::new));
                assert_eq!((all[0].load(SeqCst), all[64].swap(9, SeqCst)), (6, 63));
                all.truncate(1);
                let only = all.pop().unwrap();
                assert_eq!(only.fetch_add(1, SeqCst), 6);
                all.shrink_to_fit();
                all.push(only);
            });
            assert_eq!(kept.lock().unwrap()[0].load(SeqCst), 5);
        }
        let mut all = std::mem::take(&mut *kept.lock().unwrap());
        assert_eq!(*all[0].get_mut(), 5);
        assert_eq!(all.pop().unwrap().into_inner(), 5);
    }
}
