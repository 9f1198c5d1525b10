//! Ordinary code holds a lock and waits for what an execution uses, and the execution waits for the lock: the execution makes
//! way, and begins again.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool as Flag, AtomicUsize as Number};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Relaxed, SeqCst};
use weakspot::sync::{Condvar, LazyLock, Mutex, MutexGuard, OnceLock, RwLock};
use weakspot::{Builder, FailOn, MemoryModel, Report, Verdict, thread};

/// A place in a model. When it is passed for the nth time, ordinary code takes something before the model goes on.
struct Passage {
    times: Number,
    nth: usize,
    meeting: std::sync::Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Passage {
    fn pass(&self) {
        if self.times.fetch_add(1, SeqCst) == self.nth
            && let Some((passes, goes_on)) = self.meeting.lock().unwrap().take()
        {
            passes.send(()).unwrap();
            goes_on.recv().unwrap();
        }
    }

    /// Nobody else is there.
    fn alone() -> Arc<Self> {
        Arc::new(Self { times: Number::new(0), nth: 0, meeting: std::sync::Mutex::new(None) })
    }
}

/// Ordinary code that takes one thing at the passage, and wants another one then.
fn holds_and_wants<G>(
    nth: usize,
    takes: impl FnOnce() -> G + Send + 'static,
    wants: impl FnOnce(&mut G) + Send + 'static,
) -> (Arc<Passage>, JoinHandle<()>) {
    let ((passes, comes), (go_on, goes_on)) = (channel(), channel());
    let meeting = std::sync::Mutex::new(Some((passes, goes_on)));
    let thread = std::thread::spawn(move || {
        comes.recv().unwrap();
        let mut guard = takes();
        go_on.send(()).unwrap();
        wants(&mut guard);
    });
    (Arc::new(Passage { times: Number::new(0), nth, meeting }), thread)
}

fn is_safe(report: &Report) {
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn ordinary_code_that_holds_a_lock_goes_first() {
    static ONE: Mutex<u64> = Mutex::new(0);
    static TWO: Mutex<u64> = Mutex::new(0);
    let wants = |one: &mut MutexGuard<'_, u64>| {
        let mut two = TWO.lock().unwrap();
        **one += 1;
        *two += 1;
    };
    let (passage, ordinary) = holds_and_wants(0, || ONE.lock().unwrap(), wants);
    let report = Builder::default().check(move || {
        let two = *TWO.lock().unwrap();
        passage.pass();
        // What is read under both locks belongs together.
        assert_eq!(*ONE.lock().unwrap(), two);
    });
    ordinary.join().unwrap();
    is_safe(&report);
    assert_eq!(report.executions, 1, "{report}");
    assert_eq!((*ONE.lock().unwrap(), *TWO.lock().unwrap()), (1, 1));
}

/// The nth run comes to the passage. Whatever that is, the model is explored as if nobody else had been there.
fn is_explored_alike(
    builder: &Builder,
    takes: impl Fn() -> Box<dyn std::any::Any> + Send + Sync + Copy + 'static,
    wants: impl Fn() + Send + Copy + 'static,
    model: impl Fn(&Passage) + Send + Sync + Copy + 'static,
) {
    let explore = |passage: &Arc<Passage>| {
        let passage = Arc::clone(passage);
        builder.check(move || model(&passage))
    };
    // The first time of all some executions are run once more.
    explore(&Passage::alone());
    let alone = Passage::alone();
    let before = explore(&alone);
    let runs = alone.times.load(SeqCst);
    for nth in [0, 1, runs / 3, runs / 2, runs - 1] {
        let (passage, ordinary) = holds_and_wants(nth, takes, move |_| wants());
        let report = explore(&passage);
        ordinary.join().unwrap();
        let figures = |report: &Report| (report.verdict, report.executions, report.blocked, report.exhaustive);
        assert_eq!(figures(&report), figures(&before), "run {nth} of {runs}\n{before}\n{report}");
        assert_eq!(report.violations.len(), before.violations.len(), "{before}\n{report}");
        assert_eq!(report.notes, before.notes, "{before}\n{report}");
        // A run that is given up in any case does not begin again.
        assert!(nth > 0 || passage.times.load(SeqCst) > runs, "nobody was in the way");
    }
}

static HELD: Mutex<u64> = Mutex::new(0);
static USED: Mutex<u64> = Mutex::new(0);

fn takes_held() -> Box<dyn std::any::Any> {
    Box::new(HELD.lock().unwrap())
}

fn wants_used() {
    drop(USED.lock().unwrap());
}

/// Several threads, with events of all kinds before and after the lock that ordinary code holds.
fn threads_with_many_events(passage: &Passage) {
    let shared = Arc::new((AtomicUsize::new(0), Mutex::new(0), Condvar::new(), RwLock::new(0)));
    let theirs = Arc::clone(&shared);
    *USED.lock().unwrap() += 1;
    let other = thread::spawn(move || {
        theirs.0.fetch_add(1, SeqCst);
        *theirs.1.lock().unwrap() += 1;
        theirs.2.notify_all();
        *theirs.3.write().unwrap() += 1;
        *HELD.lock().unwrap() += 1;
        theirs.0.fetch_add(1, Relaxed);
    });
    passage.pass();
    let ready = shared.2.wait_while(shared.1.lock().unwrap(), |ready| *ready == 0).unwrap();
    drop(ready);
    let seen = shared.0.load(SeqCst);
    assert!((1..=2).contains(&seen));
    *HELD.lock().unwrap() += 1;
    drop(shared.3.read().unwrap());
    other.join().unwrap();
    assert_eq!((*HELD.lock().unwrap(), shared.0.load(SeqCst)), (2, 2));
}

/// The statics of this test are those of others, too.
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn an_execution_that_begins_again_is_the_same_one() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let all = Builder::default();
    let few = Builder { max_preemptions: Some(2), ..Builder::default() };
    let random = Builder { seed: Some(7), max_executions: Some(60), ..Builder::default() };
    for builder in [all, few, random] {
        is_explored_alike(&builder, takes_held, wants_used, threads_with_many_events);
    }
}

/// Also where stores wait in store buffers.
#[test]
fn a_relaxed_execution_that_begins_again_is_the_same_one() {
    fn store_buffering(passage: &Passage, is_wrong: fn(usize, usize) -> bool) {
        let flags = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)));
        let theirs = Arc::clone(&flags);
        drop(USED.lock().unwrap());
        let other = thread::spawn(move || {
            theirs.2.store(1, Relaxed);
            theirs.0.store(1, Relaxed);
            theirs.1.load(Relaxed)
        });
        passage.pass();
        flags.1.store(1, Relaxed);
        let mine = flags.0.load(Relaxed);
        drop(HELD.lock().unwrap());
        assert!(!is_wrong(mine, other.join().unwrap()), "both were late");
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let harmful = Builder { model, ..Builder::default() };
        is_explored_alike(&harmful, takes_held, wants_used, |passage| {
            store_buffering(passage, |one, other| one + other == 0);
        });
        let benign = Builder { model, fail_on: FailOn::Unsafe, ..Builder::default() };
        is_explored_alike(&benign, takes_held, wants_used, |passage| store_buffering(passage, |one, _| one > 1));
    }
}

/// Ordinary code changes what the model begins with: all executions begin with the new value, and nothing is said of that.
#[test]
fn an_atomic_that_ordinary_code_changes_meanwhile_is_another_one_from_the_beginning() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    // Where atomics are wide, ordinary code does not wait for them.
    if size_of::<AtomicUsize>() > size_of::<usize>() {
        return;
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = || _ = COUNT.fetch_add(1, SeqCst);
    is_explored_alike(&Builder::default(), takes_held, counts, |passage| {
        let before = COUNT.load(SeqCst);
        let other = thread::spawn(|| COUNT.fetch_add(1, SeqCst));
        passage.pass();
        drop(HELD.lock().unwrap());
        COUNT.fetch_add(1, SeqCst);
        other.join().unwrap();
        assert_eq!(COUNT.load(SeqCst), before + 2);
    });
    assert_eq!(COUNT.load(SeqCst), 5);
}

#[test]
fn a_model_that_does_something_else_then_is_explored_anew() {
    static ONE: Mutex<u64> = Mutex::new(0);
    static TWO: Mutex<u64> = Mutex::new(0);
    let (passage, ordinary) = holds_and_wants(0, || ONE.lock().unwrap(), |_| *TWO.lock().unwrap() = 1);
    let report = Builder::default().check(move || {
        let number = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&number);
        let other = thread::spawn(move || theirs.fetch_add(1, SeqCst));
        if *TWO.lock().unwrap() == 0 {
            number.fetch_add(1, SeqCst);
            passage.pass();
        }
        drop(ONE.lock().unwrap());
        other.join().unwrap();
    });
    ordinary.join().unwrap();
    is_safe(&report);
    assert!(report.exhaustive && report.notes.is_empty() && report.executions == 1, "{report}");
}

/// The same if what a thread adds to an atomic has changed, which no event shows before.
#[test]
fn a_model_that_writes_something_else_then_is_explored_anew() {
    static ONE: Mutex<usize> = Mutex::new(1);
    static TWO: Mutex<usize> = Mutex::new(1);
    let (passage, ordinary) = holds_and_wants(0, || ONE.lock().unwrap(), |_| *TWO.lock().unwrap() = 5);
    let report = Builder::default().check(move || {
        let number = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&number);
        let adds = *TWO.lock().unwrap();
        let other = thread::spawn(move || theirs.fetch_add(adds, SeqCst));
        number.fetch_add(adds, SeqCst);
        passage.pass();
        drop(ONE.lock().unwrap());
        other.join().unwrap();
        assert_eq!(number.load(SeqCst), 2 * *TWO.lock().unwrap());
    });
    ordinary.join().unwrap();
    is_safe(&report);
}

#[test]
fn readers_writers_and_initialisers_go_first_as_well() {
    static LOCK: RwLock<u64> = RwLock::new(0);
    static USED_TOO: RwLock<u64> = RwLock::new(0);
    static CELL: OnceLock<u64> = OnceLock::new();
    static LAZY: LazyLock<u64> = LazyLock::new(|| 5);
    static FIRST: OnceLock<u64> = OnceLock::new();
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let all = Builder::default();
    let writes = || Box::new(LOCK.write().unwrap()) as Box<dyn std::any::Any>;
    let reads = || Box::new(LOCK.read().unwrap()) as Box<dyn std::any::Any>;
    is_explored_alike(
        &all,
        writes,
        || drop(USED_TOO.read().unwrap()),
        |passage| {
            let other = thread::spawn(|| *USED_TOO.write().unwrap() += 1);
            *USED_TOO.write().unwrap() += 1;
            passage.pass();
            drop(LOCK.read().unwrap());
            other.join().unwrap();
            assert_eq!(*USED_TOO.read().unwrap(), 2);
        },
    );
    is_explored_alike(
        &all,
        reads,
        || drop(USED_TOO.write().unwrap()),
        |passage| {
            let other = thread::spawn(|| *USED_TOO.read().unwrap());
            drop(USED_TOO.read().unwrap());
            passage.pass();
            *LOCK.write().unwrap() += 1;
            assert_eq!(other.join().unwrap(), 0);
        },
    );
    // What is made for good makes the later executions of the model others.
    let (passage, ordinary) = holds_and_wants(
        0,
        || LOCK.write().unwrap(),
        |_| {
            assert!(CELL.set(4).is_ok() && *LAZY == 5);
        },
    );
    let report = all.check(move || {
        let (cell, lazy) = (*CELL.get_or_init(|| 4), *LAZY);
        passage.pass();
        assert_eq!((*LOCK.read().unwrap(), cell, lazy), (0, 4, 5));
    });
    ordinary.join().unwrap();
    is_safe(&report);
    // The initialiser is what holds.
    let ((passes, comes), (go_on, goes_on)) = (channel::<()>(), channel());
    let meeting = std::sync::Mutex::new(Some((passes, goes_on)));
    let passage = Passage { times: Number::new(0), nth: 0, meeting };
    let ordinary = std::thread::spawn(move || {
        comes.recv().unwrap();
        *FIRST.get_or_init(|| {
            go_on.send(()).unwrap();
            *USED.lock().unwrap() + 3
        })
    });
    let report = all.check(move || {
        *USED.lock().unwrap() += 1;
        passage.pass();
        assert_eq!(*FIRST.get_or_init(|| 3), 3);
    });
    assert_eq!(ordinary.join().unwrap(), 3);
    is_safe(&report);
}

/// What the threads of a run own that has made way is destroyed, and its locks are not poisoned.
#[test]
fn nothing_is_left_of_a_run_that_has_made_way() {
    struct Back<'a>(MutexGuard<'a, Vec<u32>>, Arc<Number>);
    impl Drop for Back<'_> {
        fn drop(&mut self) {
            assert_eq!(self.0.pop(), Some(1));
            self.1.fetch_add(1, SeqCst);
        }
    }
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let (passage, ordinary) = holds_and_wants(0, || HELD.lock().unwrap(), |_| drop(USED.lock().unwrap()));
    let (pushed, popped) = (Arc::new(Number::new(0)), Arc::new(Number::new(0)));
    let (alive, looked_at) = (Arc::new(()), Arc::new(Mutex::new(Vec::<u32>::new())));
    let captured = (Arc::clone(&alive), Arc::clone(&looked_at), Arc::clone(&pushed), Arc::clone(&popped));
    let report = Builder::default().check(move || {
        let (alive, looked_at, pushed, popped) = captured.clone();
        let list = Arc::new(Mutex::new(Vec::new()));
        drop(USED.lock().unwrap());
        let theirs = Arc::clone(&list);
        let other = thread::spawn(move || {
            let (_alive, looked_at) = (alive, looked_at.lock().unwrap());
            assert!(looked_at.is_empty());
            let mut list = theirs.lock().unwrap();
            list.push(1);
            pushed.fetch_add(1, SeqCst);
            let _back = Back(list, popped);
            drop(HELD.lock().unwrap());
        });
        passage.pass();
        other.join().unwrap();
        assert!(list.lock().unwrap().is_empty());
    });
    ordinary.join().unwrap();
    is_safe(&report);
    assert!(pushed.load(SeqCst) > 1, "nobody was in the way");
    assert_eq!(pushed.load(SeqCst), popped.load(SeqCst));
    assert_eq!((Arc::strong_count(&alive), Arc::strong_count(&looked_at)), (1, 1));
    assert!(looked_at.lock().unwrap().is_empty());
}

/// Ordinary code that takes the locks in one order again and again, and a model that does so in the other.
#[test]
fn both_come_to_their_end_however_often_they_meet() {
    static ONE: Mutex<u64> = Mutex::new(0);
    static TWO: RwLock<u64> = RwLock::new(0);
    static DONE: Flag = Flag::new(false);
    let others: Vec<_> = (0..3)
        .map(|_| {
            std::thread::spawn(|| {
                let mut rounds = 0;
                while !DONE.load(SeqCst) {
                    let mut one = ONE.lock().unwrap();
                    let mut two = TWO.write().unwrap();
                    assert_eq!(*one, *two);
                    *one += 1;
                    *two += 1;
                    rounds += 1;
                }
                rounds
            })
        })
        .collect();
    for _ in 0..3 {
        let report = Builder::default().check(|| {
            let other = thread::spawn(|| *TWO.write().unwrap() += 1);
            let two = *TWO.read().unwrap();
            let one = *ONE.lock().unwrap();
            assert!(two == one || two == one + 1);
            other.join().unwrap();
        });
        is_safe(&report);
        assert_eq!(report.executions, 2, "{report}");
    }
    DONE.store(true, SeqCst);
    let rounds: u64 = others.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!((*ONE.lock().unwrap(), *TWO.read().unwrap()), (rounds, rounds));
}

/// Two models that have captured the same lock and the same atomic.
#[test]
fn of_two_models_that_wait_for_each_other_one_makes_way() {
    let shared = Arc::new((Mutex::new(3), AtomicUsize::new(0)));
    let meeting = Arc::new(std::sync::Barrier::new(2));
    let explore = |forwards: bool| {
        let (shared, meeting) = (Arc::clone(&shared), Arc::clone(&meeting));
        std::thread::spawn(move || {
            let has_met = Flag::new(false);
            let meet = move || {
                if !has_met.swap(true, SeqCst) {
                    meeting.wait();
                }
            };
            Builder::default().check(move || {
                if forwards {
                    assert_eq!(*shared.0.lock().unwrap(), 3);
                    meet();
                    assert_eq!(shared.1.fetch_add(1, SeqCst), 0);
                } else {
                    assert_eq!(shared.1.fetch_add(1, SeqCst), 0);
                    meet();
                    assert_eq!(*shared.0.lock().unwrap(), 3);
                }
            })
        })
    };
    for model in [true, false].map(explore) {
        is_safe(&model.join().unwrap());
    }
}

/// Ordinary code that holds the lock waits for a thread that waits for the execution. The static has a destructor, but the model
/// only reads it.
#[test]
fn whoever_holds_the_lock_may_wait_for_somebody_else_who_waits() {
    static LIST: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let wants = |_: &mut MutexGuard<'_, u64>| {
        std::thread::spawn(|| LIST.lock().unwrap().push(1)).join().unwrap();
    };
    let (passage, ordinary) = holds_and_wants(0, || HELD.lock().unwrap(), wants);
    let report = Builder::default().check(move || {
        let length = LIST.lock().unwrap().len();
        passage.pass();
        drop(HELD.lock().unwrap());
        assert_eq!(LIST.lock().unwrap().len(), length);
    });
    ordinary.join().unwrap();
    is_safe(&report);
    assert_eq!(LIST.lock().unwrap().len(), 1);
}

/// One model has the statics until it is done, and wants a lock that the other one has, which waits for the statics.
#[test]
fn a_model_that_waits_for_statics_keeps_nobody_waiting() {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let lock = Arc::new(Mutex::new(0));
    let ((has, comes), (takes, taken)) = (channel(), channel());
    let both = [std::sync::Mutex::new(Some(has)), std::sync::Mutex::new(Some(takes))];
    let [has, takes] = both;
    let (comes, taken) = (std::sync::Mutex::new(comes), std::sync::Mutex::new(taken));
    let theirs = Arc::clone(&lock);
    let owner = std::thread::spawn(move || {
        Builder::default().check(move || {
            assert_eq!(NUMBER.fetch_add(1, SeqCst), 0);
            if let Some(has) = has.lock().unwrap().take() {
                has.send(()).unwrap();
                taken.lock().unwrap().recv().unwrap();
            }
            *theirs.lock().unwrap() = 0;
        })
    });
    comes.lock().unwrap().recv().unwrap();
    let other = Builder::default().check(move || {
        *lock.lock().unwrap() = 0;
        if let Some(takes) = takes.lock().unwrap().take() {
            takes.send(()).unwrap();
        }
        assert_eq!(NUMBER.fetch_add(1, SeqCst), 0);
    });
    is_safe(&other);
    is_safe(&owner.join().unwrap());
}

/// The same if the run that waits for the statics has written into the lock, which is known to outlive it. As long as it holds what it
/// held before, nothing has changed.
#[test]
fn what_was_written_but_is_the_same_is_no_change() {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let lock = Arc::new(Mutex::new(0));
    let used = Arc::clone(&lock);
    weakspot::model(move || drop(used.lock()));
    let ((has, comes), (takes, taken)) = (channel(), channel());
    let [has, takes] = [std::sync::Mutex::new(Some(has)), std::sync::Mutex::new(Some(takes))];
    let taken = std::sync::Mutex::new(taken);
    let theirs = Arc::clone(&lock);
    let owner = std::thread::spawn(move || {
        Builder::default().check(move || {
            NUMBER.fetch_add(1, SeqCst);
            if let Some(has) = has.lock().unwrap().take() {
                has.send(()).unwrap();
                taken.lock().unwrap().recv().unwrap();
            }
            assert_eq!(*theirs.lock().unwrap(), 0);
        })
    });
    comes.recv().unwrap();
    let other = Builder::default().check(move || {
        *lock.lock().unwrap() = 1;
        *lock.lock().unwrap() = 0;
        if let Some(takes) = takes.lock().unwrap().take() {
            takes.send(()).unwrap();
        }
        NUMBER.fetch_add(1, SeqCst);
    });
    is_safe(&other);
    is_safe(&owner.join().unwrap());
}

/// A model that has to wait for the statics has nothing meanwhile: it does not begin again before they are its own.
#[test]
fn a_model_waits_for_statics_before_it_begins_again() {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let (lock, begun) = (Arc::new(Mutex::new(0)), Arc::new(Number::new(0)));
    let ((has, comes), (takes, taken)) = (channel(), channel());
    let [has, takes] = [std::sync::Mutex::new(Some(has)), std::sync::Mutex::new(Some(takes))];
    let taken = std::sync::Mutex::new(taken);
    let (theirs, seen) = (Arc::clone(&lock), Arc::clone(&begun));
    let owner = std::thread::spawn(move || {
        Builder::default().check(move || {
            let other = thread::spawn(|| _ = (NUMBER.fetch_add(1, SeqCst), NUMBER.fetch_add(1, SeqCst)));
            NUMBER.fetch_add(1, SeqCst);
            if let Some(has) = has.lock().unwrap().take() {
                has.send(()).unwrap();
                taken.lock().unwrap().recv().unwrap();
            }
            drop(theirs.lock().unwrap());
            NUMBER.fetch_add(1, SeqCst);
            other.join().unwrap();
            // There is time to begin.
            std::thread::sleep(std::time::Duration::from_millis(2));
            assert!(seen.load(SeqCst) <= 1, "the other model has begun again");
        })
    });
    comes.recv().unwrap();
    let other = Builder::default().check(move || {
        begun.fetch_add(1, SeqCst);
        drop(lock.lock().unwrap());
        if let Some(takes) = takes.lock().unwrap().take() {
            takes.send(()).unwrap();
        }
        NUMBER.fetch_add(1, SeqCst);
    });
    is_safe(&other);
    is_safe(&owner.join().unwrap());
}

#[test]
fn workers_make_way_as_well() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let builder = Builder { jobs: 2, ..Builder::default() };
    for nth in [0, 1, 2, 5] {
        let (passage, ordinary) = holds_and_wants(nth, || HELD.lock().unwrap(), |_| wants_used());
        let report = builder.check(move || threads_with_many_events(&passage));
        is_safe(&report);
        ordinary.join().unwrap();
    }
}
