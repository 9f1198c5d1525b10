//! Locks that a model uses on one OS thread and ordinary code, or another model, on another one: an execution has them for
//! itself until it is over, and what it did to them is undone then.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool as Flag, AtomicUsize as Number};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::sync::{Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, RwLockWriteGuard};
use weakspot::{Builder, Report, Verdict, thread};

/// Long enough for somebody who does not wait to do what it should not.
fn a_while() {
    std::thread::sleep(Duration::from_millis(40));
}

/// What the first execution of a model does: tells that it has come so far, and gives others time.
struct Meeting(std::sync::Mutex<Option<Sender<()>>>);

impl Meeting {
    fn new() -> (Self, Receiver<()>) {
        let (sender, receiver) = channel();
        (Self(std::sync::Mutex::new(Some(sender))), receiver)
    }

    fn meet(&self) {
        let sender = self.0.lock().unwrap().take();
        if let Some(sender) = sender {
            sender.send(()).unwrap();
            a_while();
        }
    }
}

/// Explores a model on an OS thread of its own: its verdict.
fn explore(model: impl Fn() + Send + Sync + 'static) -> std::thread::JoinHandle<()> {
    std::thread::spawn(|| {
        let report = Builder::default().check(model);
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
    })
}

#[test]
fn ordinary_code_waits_for_a_mutex_that_an_execution_has_used() {
    static SUM: Mutex<u64> = Mutex::new(5);
    let (meeting, has_met) = Meeting::new();
    let model = explore(move || {
        let before = *SUM.lock().unwrap();
        let other = thread::spawn(|| *SUM.lock().unwrap() += 1);
        *SUM.lock().unwrap() += 1;
        meeting.meet();
        other.join().unwrap();
        assert_eq!(*SUM.lock().unwrap(), before + 2);
    });
    has_met.recv().unwrap();
    {
        let mut sum = SUM.lock().unwrap();
        assert_eq!(*sum, 5, "what a model does is undone");
        *sum += 100;
    }
    model.join().unwrap();
    assert_eq!(*SUM.lock().unwrap(), 105, "what ordinary code does is not");
}

#[test]
fn ordinary_code_does_not_get_by_trying_what_an_execution_has_used() {
    static NUMBER: Mutex<u64> = Mutex::new(1);
    static LOCK: RwLock<u64> = RwLock::new(1);
    let (meeting, has_met) = Meeting::new();
    let (go_on, may_go_on) = channel::<()>();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let model = explore(move || {
        *NUMBER.lock().unwrap() = 2;
        *LOCK.write().unwrap() = 2;
        meeting.meet();
        // The sender is gone in later executions.
        let _ = may_go_on.lock().unwrap().recv();
    });
    has_met.recv().unwrap();
    assert!(NUMBER.try_lock().is_err() && LOCK.try_read().is_err() && LOCK.try_write().is_err());
    assert!(format!("{NUMBER:?}{LOCK:?}").matches("<locked>").count() == 2, "{NUMBER:?} {LOCK:?}");
    drop(go_on);
    model.join().unwrap();
    assert_eq!((*NUMBER.try_lock().unwrap(), *LOCK.try_read().unwrap()), (1, 1));
}

#[test]
fn an_execution_waits_for_a_lock_that_ordinary_code_holds() {
    static NUMBER: Mutex<u64> = Mutex::new(1);
    static LOCK: RwLock<u64> = RwLock::new(1);
    let (number, lock) = (NUMBER.lock().unwrap(), LOCK.write().unwrap());
    let (mut number, mut lock) = (number, lock);
    (*number, *lock) = (7, 8);
    let (began, has_begun) = channel();
    let began = std::sync::Mutex::new(began);
    let model = explore(move || {
        let _ = began.lock().unwrap().send(());
        assert_eq!((*NUMBER.lock().unwrap(), *LOCK.read().unwrap()), (2, 3));
    });
    has_begun.recv().unwrap();
    a_while();
    *number = 2;
    drop(number);
    *lock = 3;
    let reader = RwLockWriteGuard::downgrade(lock);
    a_while();
    assert_eq!(*reader, 3);
    drop(reader);
    model.join().unwrap();
}

/// Many threads of both worlds, each of which sees all numbers alike.
#[test]
fn what_a_lock_holds_is_never_torn() {
    static MUTEX: Mutex<[u64; 64]> = Mutex::new([0; 64]);
    static LOCK: RwLock<[u64; 64]> = RwLock::new([0; 64]);
    const ROUNDS: u64 = 300;
    fn add(numbers: &mut [u64; 64]) {
        for number in numbers {
            *number = std::hint::black_box(*number) + 1;
        }
    }
    fn value(numbers: &[u64; 64]) -> u64 {
        assert!(numbers.iter().all(|number| *number == numbers[0]), "{numbers:?}");
        numbers[0]
    }
    static DONE: Flag = Flag::new(false);
    let model = explore(|| {
        let before = (value(&MUTEX.lock().unwrap()), value(&LOCK.read().unwrap()));
        let other = thread::spawn(|| add(&mut LOCK.write().unwrap()));
        add(&mut MUTEX.lock().unwrap());
        add(&mut LOCK.write().unwrap());
        other.join().unwrap();
        let after = (value(&MUTEX.lock().unwrap()), value(&LOCK.read().unwrap()));
        assert_eq!(after, (before.0 + 1, before.1 + 2));
    });
    let models = std::thread::spawn(|| {
        while !DONE.load(SeqCst) {
            weakspot::model(|| {
                add(&mut MUTEX.lock().unwrap());
                value(&LOCK.read().unwrap());
            });
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    add(&mut MUTEX.lock().unwrap());
                    let mut numbers = LOCK.write().unwrap();
                    add(&mut numbers);
                    let now = value(&numbers);
                    let numbers = RwLockWriteGuard::downgrade(numbers);
                    assert_eq!(value(&numbers), now);
                    drop(numbers);
                    value(&LOCK.read().unwrap());
                }
            });
        }
    });
    DONE.store(true, SeqCst);
    model.join().unwrap();
    models.join().unwrap();
    assert_eq!((value(&MUTEX.lock().unwrap()), value(&LOCK.read().unwrap())), (2 * ROUNDS, 2 * ROUNDS));
}

/// The message of a model that must not wait.
fn message_of(model: impl Fn() + Send + Sync + 'static) -> String {
    let report = Builder::default().check(model);
    let failure = report.failure.as_ref().unwrap_or_else(|| panic!("{report}"));
    assert!(report.to_string().contains("two_worlds.rs"), "{report}");
    failure.message.clone()
}

#[test]
fn a_guard_that_is_held_across_a_model_is_named() {
    static MUTEX: Mutex<u64> = Mutex::new(0);
    static LOCK: RwLock<u64> = RwLock::new(0);
    let mutex = MUTEX.lock();
    assert!(message_of(|| drop(MUTEX.lock().unwrap())).contains("before the model"));
    drop(mutex);
    let writer = LOCK.write();
    assert!(message_of(|| drop(LOCK.read().unwrap())).contains("held since"));
    drop(writer);
    weakspot::model(|| drop((MUTEX.lock().unwrap(), LOCK.write().unwrap())));
}

#[test]
fn a_model_that_only_reads_may_be_called_by_a_reader() {
    static LOCK: RwLock<(u64, u64)> = RwLock::new((3, 4));
    let guard = LOCK.read().unwrap();
    let report = Builder::default().check(|| {
        let other = thread::spawn(|| LOCK.read().unwrap().0);
        assert!(LOCK.try_read().is_ok_and(|pair| *pair == (3, 4)) && !LOCK.is_poisoned());
        assert_eq!(other.join().unwrap(), 3);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    let reads_first = || {
        assert_eq!(LOCK.read().unwrap().0, 3);
        LOCK.write().unwrap().0 = 5;
    };
    for message in [message_of(reads_first), message_of(|| drop(LOCK.try_write())), message_of(|| LOCK.clear_poison())]
    {
        assert!(message.contains("held for reading since"), "{message}");
    }
    assert_eq!(*guard, (3, 4));
    // Whoever goes on as a reader is one.
    drop(guard);
    let guard = RwLockWriteGuard::downgrade(LOCK.write().unwrap());
    weakspot::model(|| assert_eq!(LOCK.read().unwrap().1, 4));
    drop(guard);
    weakspot::model(reads_first);
}

/// Even if a writer waits for the reader to end: then `std` lets nobody read any more.
#[test]
fn a_writer_that_waits_keeps_no_model_from_reading_what_its_caller_reads() {
    static LOCK: RwLock<u64> = RwLock::new(3);
    let guard = LOCK.read().unwrap();
    let writer = std::thread::spawn(|| *LOCK.write().unwrap() = 4);
    while LOCK.try_read().is_ok() {
        std::thread::yield_now();
    }
    let report = Builder::default().check(|| {
        let other = thread::spawn(|| *LOCK.read().unwrap());
        assert_eq!((*LOCK.read().unwrap(), other.join().unwrap()), (3, 3));
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    drop(guard);
    writer.join().unwrap();
    assert_eq!(*LOCK.read().unwrap(), 4);
}

/// An execution and ordinary code on another OS thread read together; whoever wants to write waits.
#[test]
fn readers_of_both_worlds_do_not_wait_for_each_other() {
    static LOCK: RwLock<u64> = RwLock::new(3);
    static IS_OVER: Flag = Flag::new(false);
    let (began, has_begun) = channel();
    let began = std::sync::Mutex::new(Some(began));
    let (go_on, may_go_on) = channel::<()>();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let model = explore(move || {
        assert_eq!(*LOCK.read().unwrap(), 3);
        if let Some(began) = began.lock().unwrap().take() {
            began.send(()).unwrap();
        }
        // The sender is gone in later executions.
        let _ = may_go_on.lock().unwrap().recv();
        *LOCK.write().unwrap() += 1;
        assert_eq!(*LOCK.read().unwrap(), 4);
        a_while();
        IS_OVER.store(true, SeqCst);
    });
    has_begun.recv().unwrap();
    // The execution has not come to its end, and cannot.
    let reader = LOCK.read().unwrap();
    assert_eq!((*reader, *LOCK.try_read().unwrap()), (3, 3));
    assert!(LOCK.try_write().is_err());
    drop(go_on);
    a_while();
    assert!(!IS_OVER.load(SeqCst), "the execution writes beside a reader");
    assert_eq!(*reader, 3);
    drop(reader);
    assert_eq!(*LOCK.read().unwrap(), 3, "what a model does is undone");
    model.join().unwrap();
}

/// A writer outside waits for the end of an execution that has read, and the execution does not wait for the writer. It must
/// not make way, either: it has changed a list that is not put back.
#[test]
fn an_execution_that_has_read_may_write_while_a_writer_waits_for_it() {
    static LOCK: RwLock<u64> = RwLock::new(3);
    static LIST: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    let (meeting, has_met) = Meeting::new();
    let model = explore(move || {
        LIST.lock().unwrap().push(1);
        let before = *LOCK.read().unwrap();
        meeting.meet();
        *LOCK.write().unwrap() += 1;
        assert_eq!(*LOCK.read().unwrap(), before + 1);
        assert_eq!(LIST.lock().unwrap().pop(), Some(1));
    });
    has_met.recv().unwrap();
    *LOCK.write().unwrap() += 10;
    model.join().unwrap();
    assert_eq!(*LOCK.read().unwrap(), 13);
}

/// In `std`, too, an initialiser that waits for its own end waits for ever.
#[test]
fn an_initialiser_that_runs_a_model_of_what_it_initialises_is_named() {
    static LAZY: LazyLock<String> = LazyLock::new(|| message_of(|| assert!(!LAZY.is_empty())));
    static CELL: OnceLock<String> = OnceLock::new();
    static ONCE: Once = Once::new();
    fn cell() -> &'static String {
        CELL.get_or_init(|| message_of(|| assert!(!cell().is_empty())))
    }
    let once = || {
        let mut message = String::new();
        ONCE.call_once(|| message = message_of(|| ONCE.call_once(|| {})));
        message
    };
    for message in [&*LAZY, cell(), &once()] {
        assert!(message.contains("it is the initialiser that has called the model"), "{message}");
        assert!(message.contains("two_worlds.rs"), "{message}");
    }
    weakspot::model(|| assert!(!LAZY.is_empty() && !cell().is_empty() && ONCE.is_completed()));
}

/// Whoever only looks does not wait, and finds nothing, as in `std`.
#[test]
fn an_initialiser_may_run_a_model_that_looks_whether_it_has_ended() {
    static LAZY: LazyLock<Report> = LazyLock::new(|| looks(|| LazyLock::get(&LAZY).is_some()));
    static CELL: OnceLock<Report> = OnceLock::new();
    static ONCE: Once = Once::new();
    fn looks(is_there: fn() -> bool) -> Report {
        Builder::default().check(move || {
            let other = thread::spawn(move || assert!(!is_there()));
            assert!(!is_there());
            other.join().unwrap();
        })
    }
    let mut of_once = None;
    ONCE.call_once(|| of_once = Some(looks(|| ONCE.is_completed())));
    for report in [&*LAZY, CELL.get_or_init(|| looks(|| CELL.get().is_some())), &of_once.unwrap()] {
        assert_eq!((report.verdict, report.executions), (Verdict::Safe, 1), "{report}");
    }
    weakspot::model(|| assert!(LazyLock::get(&LAZY).is_some() && CELL.get().is_some() && ONCE.is_completed()));
}

/// An execution that fails, and leaves its threads behind, leaves the lock to others as well.
#[test]
fn a_lock_is_free_after_an_execution_that_failed() {
    static MUTEX: Mutex<u64> = Mutex::new(3);
    let report = Builder::default().check(|| {
        let mut number = MUTEX.lock().unwrap();
        *number = 4;
        let _again = MUTEX.lock();
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert_eq!(*MUTEX.lock().unwrap(), 3);
}

/// Models share what is no static, too, if they capture it.
#[test]
fn models_have_a_captured_lock_in_turns() {
    let shared = std::sync::Arc::new((Mutex::new(vec![0_u64; 8]), RwLock::new(vec![0_u64; 8])));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let shared = std::sync::Arc::clone(&shared);
            scope.spawn(move || {
                for _ in 0..20 {
                    let shared = std::sync::Arc::clone(&shared);
                    weakspot::model(move || {
                        let theirs = std::sync::Arc::clone(&shared);
                        let other = thread::spawn(move || theirs.1.write().unwrap().push(1));
                        shared.0.lock().unwrap().push(1);
                        shared.1.write().unwrap().push(1);
                        other.join().unwrap();
                        let (mut one, mut two) = (shared.0.lock().unwrap(), shared.1.write().unwrap());
                        assert_eq!((one.pop(), two.pop(), two.pop()), (Some(1), Some(1), Some(1)));
                        assert_eq!((one.len(), two.len()), (8, 8));
                    });
                }
            });
        }
    });
}

#[test]
fn ordinary_code_that_has_waited_for_a_condition_waits_for_the_execution_as_well() {
    static NUMBER: Mutex<u64> = Mutex::new(0);
    static CHANGED: Condvar = Condvar::new();
    let (waits, has_waited) = channel();
    let (meeting, has_met) = Meeting::new();
    let waiter = std::thread::spawn(move || {
        let mut number = NUMBER.lock().unwrap();
        waits.send(()).unwrap();
        let mut seen = vec![*number];
        while *number == 0 {
            number = CHANGED.wait_timeout(number, Duration::from_millis(1)).unwrap().0;
            seen.push(*number);
        }
        seen
    });
    has_waited.recv().unwrap();
    let model = explore(move || {
        let other = thread::spawn(|| {
            let number = NUMBER.lock().unwrap();
            drop(CHANGED.wait_while(number, |number| *number < 7).unwrap());
        });
        *NUMBER.lock().unwrap() = 7;
        CHANGED.notify_all();
        meeting.meet();
        other.join().unwrap();
    });
    has_met.recv().unwrap();
    model.join().unwrap();
    *NUMBER.lock().unwrap() = 1;
    CHANGED.notify_all();
    let seen = waiter.join().unwrap();
    assert!(seen.iter().all(|number| *number < 2), "{seen:?}");
}

/// While a model runs the closure of a `Once`, nobody else does; and what ordinary code completes meanwhile does not make
/// the later executions of the model different.
#[test]
fn a_once_is_run_in_one_world_at_a_time() {
    static ONCE: Once = Once::new();
    static INSIDE: Number = Number::new(0);
    fn initialise(wait: impl FnOnce()) {
        assert_eq!(INSIDE.fetch_add(1, SeqCst), 0);
        wait();
        assert_eq!(INSIDE.fetch_sub(1, SeqCst), 1);
    }
    let (meeting, has_met) = Meeting::new();
    let model = explore(move || {
        let other = thread::spawn(|| ONCE.call_once(|| initialise(|| {})));
        ONCE.call_once(|| initialise(|| meeting.meet()));
        other.join().unwrap();
        assert!(ONCE.is_completed());
    });
    has_met.recv().unwrap();
    ONCE.call_once(|| initialise(a_while));
    model.join().unwrap();
    assert!(ONCE.is_completed());
    weakspot::model(|| ONCE.call_once(|| panic!("it is complete before the model")));
}

#[test]
fn what_is_made_once_is_made_in_one_world_at_a_time() {
    static INSIDE: Number = Number::new(0);
    static FIRST: Meetings = Meetings::new();
    static LAZY: LazyLock<Vec<u64>> = LazyLock::new(make);
    static CELL: OnceLock<Vec<u64>> = OnceLock::new();
    struct Meetings(std::sync::Mutex<Option<Sender<()>>>);
    impl Meetings {
        const fn new() -> Self {
            Self(std::sync::Mutex::new(None))
        }
    }
    fn make() -> Vec<u64> {
        assert_eq!(INSIDE.fetch_add(1, SeqCst), 0);
        if let Some(sender) = FIRST.0.lock().unwrap().take() {
            sender.send(()).unwrap();
        }
        a_while();
        assert_eq!(INSIDE.fetch_sub(1, SeqCst), 1);
        vec![1, 2, 3]
    }
    let uses: [fn() -> u64; 2] = [|| LAZY.iter().sum(), || CELL.get_or_init(make).iter().sum()];
    for uses in uses {
        let (sender, has_met) = channel();
        *FIRST.0.lock().unwrap() = Some(sender);
        let model = explore(move || {
            let other = thread::spawn(move || assert_eq!(uses(), 6));
            assert_eq!(uses(), 6);
            other.join().unwrap();
        });
        has_met.recv().unwrap();
        assert_eq!(uses(), 6);
        model.join().unwrap();
    }
}
