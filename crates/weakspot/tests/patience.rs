//! Whoever waits for something that weakspot does not see waits for a while, and then says so. Here that is a short while, so that
//! tests in which nobody waits for long are elsewhere: on a busy machine a short while is soon over.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::sync::{Mutex, OnceLock, RwLock};
use weakspot::{Builder, Report};

fn be_impatient() {
    weakspot::rt::set_patience(Duration::from_millis(250));
}

/// What an OS thread has said when it panicked.
fn panic_of(thread: std::thread::JoinHandle<()>) -> String {
    let payload = thread.join().unwrap_err();
    payload.downcast_ref::<String>().unwrap().clone()
}

fn message_of(report: &Report) -> &str {
    let failure = report.failure.as_ref().unwrap_or_else(|| panic!("{report}"));
    assert!(failure.place.as_ref().is_some_and(|place| place.to_string().contains("patience.rs")), "{report}");
    &failure.message
}

/// Explores a model whose first execution does something, and then waits for somebody by a channel.
fn waits(does: impl Fn() + Send + Sync + 'static) -> (std::thread::JoinHandle<Report>, Receiver<()>, Sender<()>) {
    let ((go_on, goes_on), (came, has_come)) = (channel::<()>(), channel());
    let (goes_on, came) = (std::sync::Mutex::new(goes_on), std::sync::Mutex::new(Some(came)));
    let model = std::thread::spawn(move || {
        Builder::default().check(move || {
            does();
            if let Some(came) = came.lock().unwrap().take() {
                came.send(()).unwrap();
                let _ = goes_on.lock().unwrap().recv();
            }
        })
    });
    (model, has_come, go_on)
}

#[test]
fn ordinary_code_that_waits_for_a_model_says_so() {
    static MUTEX: Mutex<u64> = Mutex::new(0);
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    static CELL: OnceLock<u64> = OnceLock::new();
    be_impatient();
    let (model, has_come, go_on) = waits(|| {
        *MUTEX.lock().unwrap() += 1;
        NUMBER.fetch_add(1, SeqCst);
        CELL.get_or_init(|| 1);
    });
    has_come.recv().unwrap();
    let uses: [(fn(), &str); 3] = [
        (|| *MUTEX.lock().unwrap() += 1, "a model uses the lock that is used at crates/weakspot/tests/patience.rs:"),
        (|| _ = CELL.set(2), "a model uses the lock that is used at crates/weakspot/tests/patience.rs:"),
        (|| _ = NUMBER.fetch_add(1, SeqCst), "a model uses this atomic"),
    ];
    for (uses, said) in uses {
        // Where atomics are wide, nobody waits for them.
        let thread = std::thread::spawn(uses);
        if said.contains("atomic") && size_of::<AtomicUsize>() > size_of::<usize>() {
            thread.join().unwrap();
            continue;
        }
        let panic = panic_of(thread);
        assert!(panic.starts_with(said), "{panic}");
        assert!(panic.contains("its execution has not come to an end for 0.25 seconds"), "{panic}");
        assert!(
            panic.contains("on another OS thread, cannot use it meanwhile: perhaps they wait for each other"),
            "{panic}"
        );
    }
    drop(go_on);
    let report = model.join().unwrap();
    assert!(report.failure.is_none(), "{report}");
}

#[test]
fn a_model_that_waits_for_ordinary_code_says_so() {
    static MUTEX: Mutex<u64> = Mutex::new(0);
    be_impatient();
    let guard = MUTEX.lock().unwrap();
    let model = std::thread::spawn(|| Builder::default().check(|| *MUTEX.lock().unwrap() += 1));
    let report = model.join().unwrap();
    let said = "ordinary code, outside of this model and on another OS thread, has held this lock for 0.25 seconds: perhaps they \
                wait for each other";
    assert_eq!(message_of(&report), said, "{report}");
    drop(guard);
}

/// Ordinary code comes again and again to what the execution has used, so that it makes way each time, but the lock that it waits
/// for never is free.
#[test]
fn a_model_that_makes_way_does_not_wait_for_longer() {
    static HELD: Mutex<u64> = Mutex::new(0);
    static USED: Mutex<u64> = Mutex::new(0);
    be_impatient();
    let guard = HELD.lock().unwrap();
    let (end, ends) = channel::<()>();
    let others = std::thread::spawn(move || {
        while ends.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            *USED.lock().unwrap() += 1;
        }
    });
    let model = std::thread::spawn(|| {
        Builder::default().check(|| {
            *USED.lock().unwrap() += 1;
            *HELD.lock().unwrap() += 1;
        })
    });
    let report = model.join().unwrap();
    assert!(message_of(&report).starts_with("ordinary code, outside of this model"), "{report}");
    drop((guard, end));
    // It may have waited for too long itself, for the end of an execution that has failed.
    let _ = others.join();
}

#[test]
fn a_model_that_waits_for_another_one_says_so() {
    be_impatient();
    let shared = Arc::new((Mutex::new(0), AtomicUsize::new(0)));
    let theirs = Arc::clone(&shared);
    let (model, has_come, go_on) = waits(move || {
        *theirs.0.lock().unwrap() = 1;
        theirs.1.store(1, SeqCst);
    });
    has_come.recv().unwrap();
    for (is_lock, said) in [(true, "uses this lock"), (false, "uses this atomic")] {
        if !is_lock && size_of::<AtomicUsize>() > size_of::<usize>() {
            continue;
        }
        let ours = Arc::clone(&shared);
        let report = Builder::default().check(move || {
            if is_lock {
                *ours.0.lock().unwrap() = 1;
            } else {
                ours.1.store(1, SeqCst);
            }
        });
        let message = message_of(&report);
        assert!(message.starts_with(&format!("another model, on another OS thread, {said}")), "{message}");
        assert!(message.contains("its execution has not come to an end for 0.25 seconds: perhaps"), "{message}");
    }
    drop(go_on);
    let report = model.join().unwrap();
    assert!(report.failure.is_none(), "{report}");
}

/// A model changes something, waits for ordinary code that waits for the model, and changes it back.
fn changes_meanwhile(
    change: impl Fn() + Send + Sync + 'static,
    change_back: impl Fn() + Send + Sync + 'static,
) -> Report {
    static HELD: Mutex<u64> = Mutex::new(0);
    static USED: Mutex<u64> = Mutex::new(0);
    // Tests that run side by side would wait for each other here.
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    be_impatient();
    let (held, is_held) = channel();
    let (came, has_come) = channel();
    let came = std::sync::Mutex::new(Some(came));
    let ordinary = std::thread::spawn(move || {
        let _guard = HELD.lock().unwrap();
        held.send(()).unwrap();
        has_come.recv().unwrap();
        // It does not give up, so that it is the model that says so.
        while std::panic::catch_unwind(|| drop(USED.lock().unwrap())).is_err() {}
    });
    is_held.recv().unwrap();
    let report = Builder::default().check(move || {
        change();
        *USED.lock().unwrap() += 1;
        if let Some(came) = came.lock().unwrap().take() {
            came.send(()).unwrap();
        }
        *HELD.lock().unwrap() += 1;
        change_back();
    });
    ordinary.join().unwrap();
    report
}

/// To leave an execution in the middle could leave half a change behind, where nothing is put back. So both wait.
#[test]
fn a_model_that_has_changed_what_is_not_put_back_does_not_make_way() {
    static LIST: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    // What is changed by those who only read.
    static BOTH: RwLock<(AtomicU8, Vec<u64>)> = RwLock::new((AtomicU8::new(0), Vec::new()));
    let captured = Arc::new(Mutex::new(Cell::new(0)));
    weakspot::model({
        let captured = captured.clone();
        move || drop(captured.lock())
    });
    let set_captured = |value: u8| {
        let captured = captured.clone();
        move || assert_ne!(captured.lock().unwrap().replace(value), value)
    };
    let set_both = |value| move || assert_ne!(BOTH.read().unwrap().0.swap(value, SeqCst), value);
    let reports = [
        changes_meanwhile(|| LIST.lock().unwrap().push(1), || assert_eq!(LIST.lock().unwrap().pop(), Some(1))),
        changes_meanwhile(set_captured(1), set_captured(0)),
        changes_meanwhile(set_both(1), set_both(0)),
    ];
    for report in reports {
        let message = message_of(&report);
        assert!(message.starts_with("ordinary code, outside of this model"), "{message}");
        let why = message.split_once("each other. ").unwrap().1;
        let start =
            "The execution would make way, but it has changed what the lock at crates/weakspot/tests/patience.rs:";
        assert!(why.starts_with(start) && why.ends_with(" holds, and that is not put back"), "{message}");
    }
}

/// Nor does one that has poisoned a lock that the closure has captured.
#[test]
fn a_model_that_has_poisoned_what_it_has_captured_does_not_make_way() {
    let captured = Arc::new(Mutex::new(0_u8));
    let used = captured.clone();
    weakspot::model(move || drop(used.lock()));
    let (poisons, clears) = (captured.clone(), captured.clone());
    let poison = move || {
        let guard = poisons.lock().unwrap();
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = guard;
            panic!("while it is held");
        }));
        assert!(panics.is_err());
    };
    let report = changes_meanwhile(poison, move || clears.clear_poison());
    assert!(message_of(&report).contains("The execution would make way, but it has changed"), "{report}");
}

/// Also if no execution has come to the lock before: that the closure has captured it is known nevertheless, where it is known what
/// a model allocates.
#[test]
#[cfg(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
fn the_first_execution_of_all_that_comes_to_a_captured_lock_does_not_make_way_after_a_change() {
    let set = |lock: &Arc<Mutex<u8>>, value: u8| {
        let lock = lock.clone();
        move || {
            let mut held = lock.lock().unwrap();
            assert_ne!(*held, value);
            *held = value;
        }
    };
    let captured = Arc::new(Mutex::new(0));
    let report = changes_meanwhile(set(&captured, 1), set(&captured, 0));
    assert!(message_of(&report).contains("The execution would make way, but it has changed"), "{report}");
}
