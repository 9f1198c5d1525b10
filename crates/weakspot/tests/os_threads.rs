//! `std::thread::spawn` inside of a model, by mistake: what such a thread does is no part of the model.
#![cfg(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
#![allow(clippy::unwrap_used)]

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, PoisonError};

use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::sync::{Mutex, OnceLock, RwLock};
use weakspot::{Builder, Report, Verdict, thread};

/// The report of a model that has to say whose threads are meant.
fn is_named(model: impl Fn() + Send + Sync + 'static) -> Report {
    let report = Builder::default().check(model);
    assert!(report.is_failure(), "{report}");
    assert!(report.to_string().contains("`weakspot::thread::spawn`"), "{report}");
    report
}

#[test]
fn a_lock_that_the_model_has_used_is_not_for_an_os_thread() {
    is_named(|| {
        let number = Arc::new(Mutex::new(0));
        *number.lock().unwrap() += 1;
        let theirs = Arc::clone(&number);
        let thread = std::thread::spawn(move || *theirs.lock().unwrap() += 1);
        thread.join().unwrap();
    });
}

/// Even if nobody looks at what has become of the thread.
#[test]
fn a_thread_whose_end_nobody_looks_at_is_named_as_well() {
    let report = is_named(|| {
        let number = Arc::new(RwLock::new(0));
        *number.write().unwrap() += 1;
        let theirs = Arc::clone(&number);
        let _ = std::thread::spawn(move || *theirs.read().unwrap()).join();
    });
    assert!(report.to_string().contains("os_threads.rs:"), "{report}");
}

/// An OS thread that does something, tells so, and goes on until it is told to end.
fn meanwhile(work: impl FnOnce() + Send + 'static) -> impl Drop {
    struct Running(Option<Sender<()>>, Option<std::thread::JoinHandle<()>>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.take();
            if let Some(thread) = self.1.take() {
                let _ = thread.join();
            }
        }
    }
    let (end, ends) = channel::<()>();
    let (done, is_done) = channel();
    let thread = std::thread::spawn(move || {
        work();
        done.send(()).unwrap();
        let _ = ends.recv();
    });
    let _ = is_done.recv();
    Running(Some(end), Some(thread))
}

#[test]
fn a_lock_that_an_os_thread_has_used_is_not_for_the_model() {
    let report = is_named(|| {
        let number = Arc::new(Mutex::new(0));
        let theirs = Arc::clone(&number);
        let _thread = meanwhile(move || *theirs.lock().unwrap() += 1);
        *number.lock().unwrap() += 1;
    });
    let failure = report.failure.as_ref().unwrap();
    assert!(failure.place.as_ref().is_some_and(|place| place.to_string().contains("os_threads.rs")), "{report}");
}

#[test]
fn neither_is_an_atomic() {
    is_named(|| {
        let number = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&number);
        let _thread = meanwhile(move || _ = theirs.fetch_add(1, SeqCst));
        number.fetch_add(1, SeqCst);
    });
    is_named(|| {
        let number = Arc::new(AtomicUsize::new(0));
        number.fetch_add(1, SeqCst);
        let theirs = Arc::clone(&number);
        std::thread::spawn(move || theirs.fetch_add(1, SeqCst)).join().unwrap();
    });
}

/// What an OS thread does that has ended comes before what the model does, as if it was done by the model itself.
#[test]
fn what_an_os_thread_has_made_is_for_the_model_when_it_has_ended() {
    let report = Builder::default().check(|| {
        let made = std::thread::spawn(|| {
            let made = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
            *made.0.lock().unwrap() += made.1.fetch_add(1, SeqCst) + 1;
            made
        });
        let made = made.join().unwrap();
        let theirs = Arc::clone(&made);
        let other = thread::spawn(move || *theirs.0.lock().unwrap() += theirs.1.load(SeqCst));
        *made.0.lock().unwrap() += 1;
        other.join().unwrap();
        assert_eq!(*made.0.lock().unwrap(), 3);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn nor_a_cell_that_is_written_once() {
    is_named(|| {
        let cell = Arc::new(OnceLock::new());
        assert!(cell.get().is_none());
        let theirs = Arc::clone(&cell);
        std::thread::spawn(move || theirs.set(1)).join().unwrap().unwrap();
    });
}

/// The model waits for what an OS thread should write.
#[test]
fn a_model_that_waits_for_an_os_thread_is_told_so() {
    is_named(|| {
        let flag = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&flag);
        let (go_on, waits) = channel::<()>();
        drop(std::thread::spawn(move || {
            let _ = waits.recv();
            theirs.store(1, SeqCst);
        }));
        let mut go_on = Some(go_on);
        while flag.load(SeqCst) == 0 {
            go_on.take();
            thread::yield_now();
        }
    });
}

/// A thread that such a thread has started is no better.
#[test]
fn threads_of_os_threads_are_named_as_well() {
    is_named(|| {
        let number = Arc::new(Mutex::new(0));
        *number.lock().unwrap() += 1;
        let theirs = Arc::clone(&number);
        let thread = std::thread::spawn(move || {
            std::thread::spawn(move || *theirs.lock().unwrap() += 1).join().unwrap();
        });
        thread.join().unwrap();
    });
}

/// OS threads that have nothing to do with what the model uses are the model's own business.
#[test]
fn an_os_thread_that_keeps_to_itself_is_no_mistake() {
    static THEIRS: Mutex<u64> = Mutex::new(0);
    let report = Builder::default().check(|| {
        let sum = std::thread::spawn(|| {
            let own = Arc::new(Mutex::new(1));
            *own.lock().unwrap() += 1;
            *THEIRS.lock().unwrap() += 1;
            *own.lock().unwrap()
        });
        let sum = sum.join().unwrap();
        let number = Arc::new(AtomicUsize::new(0));
        let mine = Arc::clone(&number);
        let other = thread::spawn(move || mine.fetch_add(1, SeqCst));
        number.fetch_add(sum, SeqCst);
        other.join().unwrap();
        assert_eq!(number.load(SeqCst), 3);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(*THEIRS.lock().unwrap() >= report.executions);
    assert!(report.executions > 1 && report.notes.is_empty(), "{report}");
}

/// All threads are those of `std`: there was nothing to explore, and a test that passes for that reason is told so.
#[test]
fn a_model_of_os_threads_alone_is_told_that_nothing_was_explored() {
    let report = Builder::default().check(|| {
        let number = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let theirs = Arc::clone(&number);
        let thread = std::thread::spawn(move || theirs.fetch_add(1, SeqCst));
        number.fetch_add(1, SeqCst);
        thread.join().unwrap();
    });
    assert!(!report.is_failure() && report.executions == 1, "{report}");
    assert!(report.remark(false).unwrap().contains("`weakspot::thread::spawn`"), "{report}");
}

/// A scope does not wait for the very end of its threads.
#[test]
fn a_scope_of_os_threads_is_over_when_it_ends() {
    for _ in 0..50 {
        let report = Builder::default().check(|| {
            let number = Mutex::new(0);
            std::thread::scope(|scope| {
                scope.spawn(|| *number.lock().unwrap() += 1);
            });
            assert_eq!(*number.lock().unwrap(), 1);
        });
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
    }
}

/// It panics when it is told so, and its destructors use the lock once more: that must not end the process.
#[test]
fn an_os_thread_that_unwinds_is_let_through() {
    struct Last(Arc<Mutex<u32>>);
    impl Drop for Last {
        fn drop(&mut self) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
    }
    is_named(|| {
        let number = Arc::new(Mutex::new(0));
        *number.lock().unwrap() = 1;
        let last = Last(Arc::clone(&number));
        let thread = std::thread::spawn(move || *last.0.lock().unwrap() += 1);
        let _ = thread.join();
    });
}

/// Such a thread may go on when the execution is over, and is an ordinary one then.
#[test]
fn an_os_thread_that_outlives_the_model_is_an_ordinary_one() {
    static NUMBER: Mutex<u64> = Mutex::new(0);
    let (send, threads) = channel();
    let send = std::sync::Mutex::new(send);
    let (go_on, waits) = channel::<()>();
    let waits = Arc::new(std::sync::Mutex::new(waits));
    weakspot::model(move || {
        *NUMBER.lock().unwrap() += 1;
        let waits = Arc::clone(&waits);
        let thread = std::thread::spawn(move || {
            let _ = waits.lock().unwrap().recv();
            *NUMBER.lock().unwrap() += 10;
        });
        send.lock().unwrap().send(thread).unwrap();
    });
    drop(go_on);
    let mut count = 0;
    for thread in threads {
        thread.join().unwrap();
        count += 1;
    }
    assert!(count > 0 && *NUMBER.lock().unwrap() == 10 * count);
}

/// A thread may start one before it comes to its first event: what is named then is where the model is.
#[test]
fn an_os_thread_that_is_started_before_all_events_has_a_place() {
    for _ in 0..2 {
        let line = line!() + 1;
        let report = Builder::default().check(|| {
            std::thread::spawn(|| ()).join().unwrap();
            AtomicUsize::new(0).store(1, SeqCst);
        });
        let text = report.to_string();
        let place =
            format!("started an OS thread (with `std::thread::spawn`, perhaps) after its event at {}:{line}:", file!());
        assert!(text.contains(&place), "no `{place}` in\n{text}");
    }
}
