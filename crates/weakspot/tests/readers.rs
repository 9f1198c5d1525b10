//! Readers of an `RwLock` cannot tell which of them came first, so that costs no executions; which writers came before them does.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Debug;

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::mpsc::channel;
use weakspot::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};
use weakspot::{Builder, FailureKind, MemoryModel, Report, Verdict, thread};

fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(body)
}

/// What the lock beside it protects.
struct Kept(UnsafeCell<i32>);

// SAFETY: whoever uses it while another one does fails before he has looked.
unsafe impl Sync for Kept {}

impl Kept {
    fn get(&self) -> i32 {
        // SAFETY: weakspot has found no race.
        self.0.with(|value| unsafe { *value })
    }

    fn set(&self, new: i32) {
        // SAFETY: the same.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}

/// Executions of a correct model.
fn executions(body: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = check(body);
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
    report.executions
}

/// Some threads read and others write, so often; each does something while it has the lock.
fn readers_and_writers(readers: usize, writers: usize, rounds: usize) -> impl Fn() + Send + Sync + 'static {
    move || {
        let lock = Arc::new(RwLock::new(0));
        let all: Vec<_> = (0..readers + writers)
            .map(|thread| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || {
                    for _ in 0..rounds {
                        if thread < readers {
                            assert!(*lock.read().unwrap() <= writers * rounds);
                        } else {
                            *lock.write().unwrap() += 1;
                        }
                    }
                })
            })
            .collect();
        for thread in all {
            thread.join().unwrap();
        }
        assert_eq!(*lock.read().unwrap(), writers * rounds);
    }
}

#[test]
fn readers_alone_have_one_execution() {
    for readers in 1..=5 {
        assert_eq!(executions(readers_and_writers(readers, 0, 3)), 1);
    }
}

#[test]
fn each_reader_comes_before_or_after_each_writer() {
    for readers in 1..=6 {
        assert_eq!(executions(readers_and_writers(readers, 1, 1)), 1 << readers);
    }
    // The writers in some order, and each reader in one of the places that leaves.
    assert_eq!(executions(readers_and_writers(1, 2, 1)), 2 * 3);
    assert_eq!(executions(readers_and_writers(2, 2, 1)), 2 * 9);
    assert_eq!(executions(readers_and_writers(1, 3, 1)), 6 * 4);
    // Two rounds of one writer, and of each reader two that do not go back.
    assert_eq!(executions(readers_and_writers(2, 1, 2)), 6 * 6);
}

#[test]
fn a_writer_that_becomes_a_reader_lets_others_read() {
    let met = || {
        let lock = Arc::new(RwLock::new(0));
        let (sender, receiver) = channel();
        let other = Arc::clone(&lock);
        let reader = thread::spawn(move || {
            let value = *other.read().unwrap();
            sender.send(value).unwrap();
        });
        let mut guard = lock.write().unwrap();
        *guard = 1;
        let guard = RwLockWriteGuard::downgrade(guard);
        // The other one has come before, or it comes now.
        let value = receiver.recv().unwrap();
        assert!(value <= *guard);
        drop(guard);
        reader.join().unwrap();
        value
    };
    assert_eq!(results(&Builder::default(), met), [0, 1]);
}

/// All results of a model that is correct.
fn results<R: Ord + Clone + Debug + Send + 'static>(
    builder: &Builder,
    body: impl Fn() -> R + Send + Sync + 'static,
) -> Vec<R> {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let all = std::sync::Arc::clone(&seen);
    let report = builder.check(move || {
        let result = body();
        all.lock().unwrap().insert(result);
    });
    assert!(matches!(report.verdict, Verdict::Safe | Verdict::Benign | Verdict::Bounded(_)), "{report}");
    let seen = seen.lock().unwrap();
    seen.iter().cloned().collect()
}

#[test]
fn a_reader_that_waits_for_another_one_is_not_kept_from_it_by_a_writer() {
    let report = check(|| {
        let lock = Arc::new(RwLock::new(0));
        let (sender, receiver) = channel();
        let (first, second) = (Arc::clone(&lock), Arc::clone(&lock));
        let patient = thread::spawn(move || {
            let guard = first.read().unwrap();
            receiver.recv().unwrap();
            *guard
        });
        let other = thread::spawn(move || {
            let value = *second.read().unwrap();
            sender.send(value).unwrap();
        });
        *lock.write().unwrap() = 1;
        patient.join().unwrap();
        other.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn the_same_with_a_loop_that_waits() {
    let report = check(|| {
        let shared = Arc::new((RwLock::new(0), AtomicUsize::new(0)));
        let (first, second) = (Arc::clone(&shared), Arc::clone(&shared));
        let patient = thread::spawn(move || {
            let _guard = first.0.read().unwrap();
            while first.1.load(Acquire) == 0 {
                thread::yield_now();
            }
        });
        let other = thread::spawn(move || {
            let _guard = second.0.read().unwrap();
            second.1.store(1, Release);
        });
        *shared.0.write().unwrap() = 1;
        patient.join().unwrap();
        other.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn deadlocks_of_writers_are_found_and_say_who_reads() {
    let report = check(|| {
        let lock = Arc::new(RwLock::new(0));
        let other = Arc::clone(&lock);
        let reader = thread::spawn(move || {
            let _guard = other.read().unwrap();
            drop(other.write());
        });
        drop(lock.read());
        reader.join().unwrap();
    });
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Deadlock), "{report}");
    let text = report.to_string();
    assert!(text.contains("thread 1 waits in RwLock::write") && text.contains("it itself reads since"), "{text}");

    // A reader that wants a mutex, and a writer that has it.
    let report = check(|| {
        let lock = Arc::new(RwLock::new(0));
        let mutex = Arc::new(Mutex::new(0));
        let (other_lock, other_mutex) = (Arc::clone(&lock), Arc::clone(&mutex));
        let reader = thread::spawn(move || {
            let _guard = other_lock.read().unwrap();
            drop(other_mutex.lock());
        });
        let guard = mutex.lock().unwrap();
        drop(lock.write());
        drop(guard);
        reader.join().unwrap();
    });
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Deadlock), "{report}");
    let text = report.to_string();
    assert!(text.contains("waits in RwLock::write") && text.contains("thread 1 reads since"), "{text}");
}

#[test]
fn two_writers_and_a_reader_that_stays_are_a_deadlock() {
    let report = check(|| {
        let lock = Arc::new(RwLock::new(0));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let lock = Arc::clone(&lock);
                thread::spawn(move || *lock.write().unwrap() += 1)
            })
            .collect();
        let _guard = lock.read().unwrap();
        for other in others {
            other.join().unwrap();
        }
    });
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Deadlock), "{report}");
    let text = report.to_string();
    assert!(text.contains("waits in RwLock::write") && text.contains("thread 0 (main) reads since"), "{text}");
    assert!(!text.contains("writes since"), "nobody writes: {text}");
}

#[test]
fn what_readers_do_to_each_other_is_not_ordered_by_the_lock() {
    let report = check(|| {
        let shared = Arc::new((RwLock::new(()), Kept(UnsafeCell::new(0))));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let _guard = other.0.read().unwrap();
            other.1.set(1);
        });
        {
            let _guard = shared.0.read().unwrap();
            shared.1.get();
        }
        thread.join().unwrap();
    });
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Race { .. }), "{report}");
}

#[test]
fn writers_order_what_readers_and_writers_do() {
    let body = || {
        let shared = Arc::new((RwLock::new(()), Kept(UnsafeCell::new(0))));
        let all: Vec<_> = (0..3)
            .map(|thread| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    if thread == 0 {
                        let _guard = shared.0.write().unwrap();
                        shared.1.set(1);
                        0
                    } else {
                        let _guard = shared.0.read().unwrap();
                        shared.1.get()
                    }
                })
            })
            .collect();
        all.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<i32>>()
    };
    let seen = results(&Builder::default(), body);
    assert_eq!(seen, [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1]]);
}

#[test]
fn who_asks_whether_it_is_free_sees_all_orders() {
    let body = || {
        let lock = Arc::new(RwLock::new(0));
        let (reader, writer) = (Arc::clone(&lock), Arc::clone(&lock));
        let reader = thread::spawn(move || *reader.read().unwrap());
        let writer = thread::spawn(move || *writer.write().unwrap() = 1);
        let could_write = lock.try_write().is_ok();
        let could_read = lock.try_read().is_ok();
        (could_write, could_read, reader.join().unwrap(), writer.join().is_ok())
    };
    let seen = results(&Builder::default(), body);
    for could_write in [false, true] {
        for could_read in [false, true] {
            for value in [0, 1] {
                assert!(seen.contains(&(could_write, could_read, value, true)), "{seen:?}");
            }
        }
    }
}

/// What the threads of a small random program do: a number for each step.
fn program(seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut below = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) % limit
    };
    (0..3).map(|_| (0..=below(2)).map(|_| below(6) as u8).collect()).collect()
}

/// Runs it: what each thread has seen. `asks`: readers are told apart.
fn run(program: &[Vec<u8>], asks: bool) -> Vec<Vec<usize>> {
    let shared = Arc::new((RwLock::new(0_usize), AtomicUsize::new(0), AtomicUsize::new(0)));
    if asks {
        drop(shared.0.try_read());
    }
    let threads: Vec<_> = program
        .iter()
        .enumerate()
        .map(|(me, steps)| {
            let (shared, steps) = (Arc::clone(&shared), steps.clone());
            thread::spawn(move || {
                let (lock, x, y) = &*shared;
                let mut seen = Vec::new();
                for step in steps {
                    match step {
                        0 => seen.push(*lock.read().unwrap()),
                        1 => *lock.write().unwrap() += 1 + me,
                        2 => {
                            let guard = lock.read().unwrap();
                            x.store(me + 1, Relaxed);
                            seen.extend([*guard, y.load(Relaxed)]);
                        }
                        3 => {
                            let mut guard = lock.write().unwrap();
                            *guard += 10;
                            y.store(*guard, Release);
                            let guard = RwLockWriteGuard::downgrade(guard);
                            seen.extend([*guard, x.load(Acquire)]);
                        }
                        4 => y.store(me + 1, SeqCst),
                        _ => {
                            x.store(7, Relaxed);
                            seen.push(y.load(Relaxed));
                        }
                    }
                }
                seen
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn what_can_be_seen_does_not_depend_on_whether_readers_are_told_apart() {
    for seed in 0..120 {
        let program = program(seed);
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let outcome = |asks: bool| {
                let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
                let (all, steps) = (std::sync::Arc::clone(&seen), program.clone());
                let report = Builder { model, ..Builder::default() }.check(move || {
                    let result = run(&steps, asks);
                    all.lock().unwrap().insert(result);
                });
                let seen = seen.lock().unwrap().clone();
                (seen, report)
            };
            let ((apart, told), (together, report)) = (outcome(true), outcome(false));
            assert!(report.failure.is_none(), "{seed}: {report}");
            // An order of readers may be what a late store turns round, and nobody has seen it.
            let is_safe = |report: &Report| report.verdict == Verdict::Safe;
            assert!(is_safe(&report) || !is_safe(&told), "{seed} {program:?}\n{report}\n{told}");
            assert!(report.executions <= told.executions, "{seed}: {} {}", report.executions, told.executions);
            // With store buffers what is tried out besides SC differs, so that only SC's results have to be the same.
            if report.verdict == Verdict::Safe {
                assert_eq!(together, apart, "{seed} {program:?}");
            }
        }
    }
}

#[test]
fn a_violation_beside_a_lock_is_found_and_replayed() {
    let body = || {
        let shared = Arc::new((RwLock::new(0), AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            drop(other.0.read());
            other.2.store(1, Release);
            let seen = other.1.load(Acquire);
            drop(other.0.write());
            seen
        });
        drop(shared.0.write());
        shared.1.store(1, Release);
        let seen = shared.2.load(Acquire);
        drop(shared.0.read());
        assert!(seen + thread.join().unwrap() > 0, "nobody has seen anything");
    };
    let report = check(body);
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    let text = report.to_string();
    let replay = report.replay().unwrap().to_owned();
    assert!(replay.contains("~r3"), "who reads is a part of it: {replay}");
    let again = Builder { replay: Some(replay), ..Builder::default() }.check(body);
    assert_eq!(again.verdict, Verdict::Failed, "{again}");
    assert!(again.to_string().contains("nobody has seen anything"), "{again}");
    // The writer of a report is one line, wherever the shares are.
    assert!(!text.contains("… RwLock"), "{text}");
}

#[test]
fn with_a_bound_on_preemptions_or_at_random_the_same_is_seen() {
    let body = || {
        let lock = Arc::new(RwLock::new(0));
        let (reader, writer) = (Arc::clone(&lock), Arc::clone(&lock));
        let reader = thread::spawn(move || *reader.read().unwrap());
        let writer = thread::spawn(move || *writer.write().unwrap() += 1);
        *lock.write().unwrap() += 2;
        let value = reader.join().unwrap();
        writer.join().unwrap();
        value
    };
    let seen = results(&Builder::default(), body);
    assert_eq!(seen, [0, 1, 2, 3]);
    let bounded = Builder { max_preemptions: Some(2), ..Builder::default() };
    assert_eq!(results(&bounded, body), seen);
    let random = Builder { seed: Some(3), max_executions: Some(200), ..Builder::default() };
    assert_eq!(results(&random, body), seen);
    let parallel = Builder { jobs: 2, ..Builder::default() };
    assert_eq!(results(&parallel, body), seen);
}

#[test]
fn nobody_writes_while_somebody_reads_in_runs_that_are_given_up_either() {
    static WRITTEN_MEANWHILE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let report = check(|| {
        let lock = Arc::new(RwLock::new(0));
        let [first, second, third] = [(); 3].map(|()| Arc::clone(&lock));
        let writer = thread::spawn(move || *first.write().unwrap() = 1);
        let reader = thread::spawn(move || drop(second.read()));
        let other = thread::spawn(move || drop(third.read()));
        let guard = lock.read().unwrap();
        let before = *guard;
        other.join().unwrap();
        if std::hint::black_box(*guard) != before {
            WRITTEN_MEANWHILE.fetch_add(1, Relaxed);
        }
        drop(guard);
        writer.join().unwrap();
        reader.join().unwrap();
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 6), "{report}");
    assert_eq!(WRITTEN_MEANWHILE.load(Relaxed), 0);
}

#[test]
fn a_guard_belongs_to_whoever_has_got_it_wherever_it_is_dropped() {
    struct Sent<T>(T);
    // SAFETY: threads of a model run on one OS thread.
    unsafe impl<T> Send for Sent<T> {}
    let report = check(|| {
        let lock: &'static RwLock<i32> = Box::leak(Box::new(RwLock::new(0)));
        let guard = Sent(lock.read().unwrap());
        let thread = thread::spawn(move || {
            let guard = guard;
            drop(guard.0);
        });
        thread.join().unwrap();
        *lock.write().unwrap() = 1;
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 1), "{report}");
}
