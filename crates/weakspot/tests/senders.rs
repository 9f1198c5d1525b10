//! Which sender of a channel is dropped last costs no executions, unless somebody asks whether the channel is closed.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use weakspot::cell::UnsafeCell;
use weakspot::sync::Arc;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use weakspot::sync::mpsc::{Receiver, Sender, TryRecvError, channel, sync_channel};
use weakspot::{Builder, FailureKind, MemoryModel, Report, Verdict, hint, thread};

fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(body)
}

/// Executions of a correct model.
#[track_caller]
fn executions(body: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = check(body);
    assert_eq!((report.verdict, report.exhaustive, report.blocked), (Verdict::Safe, true, 0), "{report}");
    report.executions
}

/// So many threads that send something, with a sender each.
fn senders(count: usize) -> (Receiver<usize>, Vec<thread::JoinHandle<()>>) {
    let (sender, receiver) = channel();
    let thread = |number| {
        let sender = sender.clone();
        thread::spawn(move || sender.send(number).unwrap())
    };
    (receiver, (0..count).map(thread).collect())
}

fn join(threads: Vec<thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// `count!`
fn orders(count: usize) -> u64 {
    (1..=count as u64).product()
}

#[test]
fn only_the_order_of_messages_costs_executions() {
    for count in 1..=4 {
        let takes = move |(receiver, threads): (Receiver<usize>, Vec<_>)| {
            (0..count).for_each(|_| _ = receiver.recv().unwrap());
            join(threads);
        };
        assert_eq!(executions(move || takes(senders(count))), orders(count));
        let takes_all = move |(receiver, threads): (Receiver<usize>, Vec<_>)| {
            assert_eq!(receiver.iter().count(), count);
            join(threads);
        };
        assert_eq!(executions(move || takes_all(senders(count))), orders(count));
    }
}

#[test]
fn senders_that_only_go_have_one_execution() {
    let body = || {
        let (sender, receiver) = sync_channel::<usize>(1);
        let threads = (0..4).map(|_| {
            let sender = sender.clone();
            thread::spawn(move || drop((sender.clone(), sender)))
        });
        let threads: Vec<_> = threads.collect();
        drop(sender);
        assert!(receiver.recv().is_err());
        join(threads);
        assert!(receiver.recv().is_err(), "it stays so");
    };
    assert_eq!(executions(body), 1);
}

#[test]
fn whoever_waits_for_the_end_of_two_channels_sees_both() {
    let body = || {
        let (first, firsts) = senders(2);
        let (second, seconds) = senders(1);
        assert_eq!(first.iter().count() + second.iter().count(), 3);
        join(firsts);
        join(seconds);
    };
    assert_eq!(executions(body), 2);
}

#[test]
fn who_asks_sees_all_orders() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let all = std::sync::Arc::clone(&seen);
    let report = check(move || {
        let (sender, receiver) = channel::<()>();
        let gone = Arc::new(AtomicUsize::new(0));
        let threads = [sender.clone(), sender].map(|sender| {
            let gone = Arc::clone(&gone);
            thread::spawn(move || {
                drop(sender);
                gone.fetch_add(1, Release);
            })
        });
        let before = gone.load(Acquire);
        let asked = receiver.try_recv();
        assert!(before < 2 || asked == Err(TryRecvError::Disconnected), "both were gone");
        all.lock().unwrap().insert((before, asked == Err(TryRecvError::Disconnected)));
        join(threads.into_iter().collect());
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert_eq!(*seen.lock().unwrap(), [(0, false), (0, true), (1, false), (1, true), (2, true)].into());
}

struct Shared(UnsafeCell<usize>);

// SAFETY: weakspot looks for races.
unsafe impl Sync for Shared {}

#[test]
fn what_was_done_before_a_sender_went_happens_before_the_end() {
    let body = |waits: bool| {
        move || {
            let (sender, receiver) = channel::<()>();
            let cells = Arc::new([const { Shared(UnsafeCell::new(0)) }; 2]);
            let threads = [(0, sender.clone()), (1, sender)].map(|(number, sender)| {
                let cells = Arc::clone(&cells);
                thread::spawn(move || {
                    // SAFETY: nobody else does before the sender is gone.
                    cells[number].0.with_mut(|cell| unsafe { *cell = 1 });
                    drop(sender);
                })
            });
            if waits {
                assert!(receiver.recv().is_err());
            }
            // SAFETY: as above.
            let sum: usize = cells.iter().map(|cell| cell.0.with(|cell| unsafe { *cell })).sum();
            assert!(sum == 2 || !waits);
            join(threads.into_iter().collect());
        }
    };
    assert_eq!(executions(body(true)), 1);
    let report = check(body(false));
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Race { .. }), "{report}");
}

#[test]
fn what_is_done_after_a_sender_went_may_come_before_or_after_the_end() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let all = std::sync::Arc::clone(&seen);
    let report = check(move || {
        let (sender, receiver) = channel::<()>();
        let cell = Arc::new(AtomicUsize::new(0));
        let threads = [sender.clone(), sender].map(|sender| {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                drop(sender);
                cell.fetch_add(1, Relaxed);
            })
        });
        assert!(receiver.recv().is_err());
        all.lock().unwrap().insert(cell.load(Relaxed));
        join(threads.into_iter().collect());
    });
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2].into());
}

#[test]
fn somebody_may_wait_for_whoever_sees_the_end() {
    let body = || {
        let (sender, receiver) = channel::<()>();
        let done = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&done);
        let waiting = thread::spawn(move || {
            while seen.load(Acquire) == 0 {
                hint::spin_loop();
            }
        });
        let threads = [sender.clone(), sender].map(|sender| thread::spawn(move || drop(sender)));
        assert!(receiver.recv().is_err());
        done.store(1, Release);
        join([waiting].into_iter().chain(threads).collect());
    };
    let report = check(body);
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
}

#[test]
fn a_sender_that_stays_keeps_its_channel_open() {
    // Nobody waits for that.
    let forgets = || {
        let (sender, receiver) = channel::<()>();
        let (other, others) = channel::<()>();
        let thread = thread::spawn({
            let sender = sender.clone();
            move || drop(sender)
        });
        std::mem::forget(sender);
        drop((other.clone(), other));
        assert!(others.recv().is_err());
        drop(receiver);
        thread.join().unwrap();
    };
    let report = check(forgets);
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Leak), "the sender is leaked: {report}");
    // Somebody does.
    let report = check(|| {
        let (sender, receiver) = channel::<()>();
        let other = sender.clone();
        let thread = thread::spawn(move || drop(other));
        assert!(receiver.recv().is_err());
        drop(sender);
        thread.join().unwrap();
    });
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Deadlock), "{report}");
    let text = report.to_string();
    assert!(text.contains("thread 0 (main) waits in Receiver::recv") && !text.contains("thread 2"), "{text}");
}

#[test]
fn a_violation_beside_the_end_is_found_and_replayed() {
    let body = || {
        let (sender, receiver) = channel::<()>();
        let flags = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let threads = [(0, sender.clone()), (1, sender)].map(|(me, sender)| {
            let flags = Arc::clone(&flags);
            thread::spawn(move || {
                flags[me].store(1, Relaxed);
                let seen = flags[1 - me].load(Relaxed);
                flags[me].store(2 + seen, Relaxed);
                drop(sender);
            })
        });
        assert!(receiver.recv().is_err());
        let ends = flags.each_ref().map(|flag| flag.load(Relaxed));
        join(threads.into_iter().collect());
        assert_ne!(ends, [2, 2], "nobody has seen the other one");
    };
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = Builder { model, ..Builder::default() }.check(body);
        assert_eq!(report.verdict, Verdict::Harmful, "{report}");
        let replay = report.replay().unwrap().to_owned();
        assert!(replay.contains("~n") && replay.ends_with("~t0.0.0h"), "{replay}");
        let again = Builder { replay: Some(replay), ..Builder::default() }.check(body);
        assert!(again.to_string().contains("nobody has seen the other one"), "{again}");
        // Whoever closes the channel is nobody's business.
        let text = report.to_string();
        assert!(!text.contains("thread 3") && text.contains("drop of a Sender"), "{text}");
    }
}

#[test]
fn a_thread_of_nobody_does_not_count() {
    let body = || {
        let (receiver, threads) = senders(2);
        assert_eq!(receiver.iter().count(), 2);
        join(threads);
    };
    let report = Builder { max_threads: 3, ..Builder::default() }.check(body);
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 2), "{report}");
    let report = Builder { max_threads: 2, ..Builder::default() }.check(body);
    assert!(report.to_string().contains("this would be the thread number 3"), "{report}");
}

#[test]
fn threads_of_nobody_leave_room() {
    let report = check(|| {
        for _ in 0..20 {
            let (sender, receiver) = channel::<()>();
            drop((sender.clone(), sender));
            assert!(receiver.recv().is_err());
        }
        (0..58).for_each(|_| thread::spawn(|| ()).join().unwrap());
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 1), "{report}");
}

#[test]
fn every_search_sees_the_end() {
    let body = || {
        let (receiver, threads) = senders(3);
        assert_eq!(receiver.iter().sum::<usize>(), 3);
        join(threads);
    };
    for builder in [
        Builder { max_preemptions: Some(1), ..Builder::default() },
        Builder { seed: Some(5), max_executions: Some(50), ..Builder::default() },
        Builder { jobs: 2, ..Builder::default() },
    ] {
        let report = builder.check(body);
        assert!(!report.is_failure() && report.executions > 0, "{report}");
    }
}

/// What the threads of a small random program do with their senders.
fn program(seed: u64) -> Vec<Vec<u8>> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut below = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) % limit
    };
    (0..2).map(|_| (0..=below(3)).map(|_| below(6) as u8).collect()).collect()
}

/// Runs it: what has come, and what was seen when the channel was closed. `asks`: the order in which senders go is explored.
fn run(program: &[Vec<u8>], asks: bool) -> (Vec<usize>, [usize; 2]) {
    if asks {
        assert!(channel::<()>().1.try_recv().is_err());
    }
    let (sender, receiver) = channel();
    let cells = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let start = |(me, steps): (usize, &Vec<u8>)| {
        let (sender, cells, steps) = (sender.clone(), Arc::clone(&cells), steps.clone());
        thread::spawn(move || take_steps(me, &steps, sender, &cells))
    };
    let threads: Vec<_> = program.iter().enumerate().map(start).collect();
    drop(sender);
    let received: Vec<usize> = receiver.iter().collect();
    let seen = cells.each_ref().map(|cell| cell.load(Relaxed));
    join(threads);
    (received, seen)
}

fn take_steps(me: usize, steps: &[u8], sender: Sender<usize>, cells: &[AtomicUsize; 2]) {
    let mut senders = vec![sender];
    for step in steps {
        match (step, senders.last()) {
            (0 | 1, Some(sender)) => sender.send(10 * me + cells[1 - me].load(Relaxed)).unwrap(),
            (2, Some(sender)) => {
                let sender = sender.clone();
                senders.push(sender);
            }
            (3, Some(_)) => _ = senders.pop(),
            (4, Some(sender)) => {
                let sender = sender.clone();
                let child = thread::spawn(move || sender.send(100).unwrap());
                cells[me].store(2, Relaxed);
                child.join().unwrap();
            }
            _ => _ = cells[me].fetch_add(1, Relaxed),
        }
    }
}

#[test]
fn what_can_be_seen_does_not_depend_on_who_closes_a_channel() {
    for seed in 0..100 {
        let program = program(seed);
        let outcome = |asks: bool| {
            let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
            let (all, steps) = (std::sync::Arc::clone(&seen), program.clone());
            let report = check(move || {
                let result = run(&steps, asks);
                all.lock().unwrap().insert(result);
            });
            let seen = seen.lock().unwrap().clone();
            (seen, report)
        };
        let ((ordered, told), (seen, report)) = (outcome(true), outcome(false));
        assert!(report.failure.is_none() && told.failure.is_none(), "{seed}: {report}");
        assert!(report.executions <= told.executions, "{seed}: {} {}", report.executions, told.executions);
        // What is tried out besides SC need not be the same.
        if report.verdict == Verdict::Safe && told.verdict == Verdict::Safe {
            assert_eq!(seen, ordered, "{seed} {program:?}");
        }
    }
}
