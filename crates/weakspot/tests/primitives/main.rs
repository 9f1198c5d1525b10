//! Locks, barriers, cells that are written once, channels, parking and condition variables beside atomics: answers of weakspot
//! beside those of a machine that tries everything.
#![allow(missing_docs, clippy::unwrap_used)]

mod machine;
#[path = "../programs/outcomes.rs"]
mod outcomes;
mod program;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc as StdArc, LockResult, Mutex as StdMutex, PoisonError};

use weakspot::sync::atomic::AtomicU8;
use weakspot::sync::atomic::Ordering::{Relaxed, Release};
use weakspot::sync::mpsc::{self, Receiver, RecvError, Sender, SyncSender, TryRecvError, TrySendError};
use weakspot::sync::{Arc, Barrier, Condvar, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard};
use weakspot::{Builder, FailureKind, MemoryModel, Report, Verdict, thread};

use machine::{EMPTY, Everything, GONE, NOTHING};
use outcomes::{Outcome, bad_outcome};
use program::{Act, Kind, LOCATIONS, Program, Random};

struct Shared {
    atomics: [AtomicU8; LOCATIONS],
    lock: RwLock<()>,
    barrier: Barrier,
    cell: OnceLock<u8>,
    mutex: Mutex<()>,
    condvar: Condvar,
}

#[derive(Clone)]
enum Sends {
    Freely(Sender<u8>),
    Bounded(SyncSender<u8>),
}

/// What a thread has for itself.
#[derive(Default)]
struct Own<'a> {
    sender: Option<Sends>,
    receiver: Option<Receiver<u8>>,
    /// Those it may unpark.
    threads: Vec<Option<thread::Thread>>,
    reads: Option<RwLockReadGuard<'a, ()>>,
    writes: Option<RwLockWriteGuard<'a, ()>>,
    held: Option<MutexGuard<'a, ()>>,
    has_readers: bool,
}

impl<'a> Own<'a> {
    fn send(&self, value: u8, waits: bool) -> u8 {
        match self.sender.as_ref().unwrap() {
            Sends::Freely(sender) => u8::from(sender.send(value).is_ok()),
            Sends::Bounded(sender) if waits => u8::from(sender.send(value).is_ok()),
            Sends::Bounded(sender) => match sender.try_send(value) {
                Ok(()) => 1,
                Err(TrySendError::Full(_)) => 2,
                Err(TrySendError::Disconnected(_)) => 0,
            },
        }
    }

    fn receive(&self, waits: bool) -> u8 {
        let receiver = self.receiver.as_ref().unwrap();
        let found =
            if waits { receiver.recv().map_err(|RecvError| TryRecvError::Disconnected) } else { receiver.try_recv() };
        found.unwrap_or_else(|error| if error == TryRecvError::Empty { EMPTY } else { GONE })
    }

    /// Does something; what it finds is noted.
    fn perform(&mut self, shared: &'a Shared, act: Act, notes: &mut Vec<u8>) {
        match act {
            Act::Load(location) => notes.push(shared.atomics[location].load(Relaxed)),
            Act::Store(location, value) => shared.atomics[location].store(value, Relaxed),
            Act::Publish(location, value) => shared.atomics[location].store(value, Release),
            Act::Read => self.reads = Some(shared.lock.read().unwrap()),
            Act::Write => self.writes = Some(shared.lock.write().unwrap()),
            Act::TryRead => {
                self.reads = shared.lock.try_read().ok();
                notes.push(u8::from(self.reads.is_some()));
            }
            Act::TryWrite => {
                self.writes = shared.lock.try_write().ok();
                notes.push(u8::from(self.writes.is_some()));
            }
            Act::Downgrade => self.reads = self.writes.take().map(RwLockWriteGuard::downgrade),
            Act::EndLock => (self.reads, self.writes) = (None, None),
            Act::Meet { asks } => {
                let met = shared.barrier.wait();
                notes.extend(asks.then(|| u8::from(met.is_leader())));
            }
            Act::Get => notes.push(shared.cell.get().copied().unwrap_or(NOTHING)),
            Act::Set(value) => notes.push(u8::from(shared.cell.set(value).is_ok())),
            Act::GetOrInit(value, location) => {
                let value = *shared.cell.get_or_init(|| {
                    notes.push(shared.atomics[location].load(Relaxed));
                    value
                });
                notes.push(value);
            }
            Act::Send(value) => notes.push(self.send(value, true)),
            Act::TrySend(value) => notes.push(self.send(value, false)),
            Act::Receive => notes.push(self.receive(true)),
            Act::TryReceive => notes.push(self.receive(false)),
            Act::Park => thread::park(),
            Act::Unpark(thread) => self.threads[thread].as_ref().unwrap().unpark(),
            Act::Lock => self.held = Some(shared.mutex.lock().unwrap()),
            Act::Unlock => self.held = None,
            Act::Wait => self.held = self.held.take().map(|held| shared.condvar.wait(held).unwrap()),
            Act::Notify { all: true } => shared.condvar.notify_all(),
            Act::Notify { all: false } => shared.condvar.notify_one(),
            Act::Enter if self.has_readers => self.writes = Some(enter(shared.lock.write(), notes)),
            Act::Enter => self.held = Some(enter(shared.mutex.lock(), notes)),
            Act::EnterToRead => self.reads = Some(enter(shared.lock.read(), notes)),
            Act::Leave => (self.held, self.reads, self.writes) = (None, None, None),
            Act::Panic => {
                let had = (self.held.take(), self.reads.take(), self.writes.take());
                let panics = catch_unwind(AssertUnwindSafe(|| {
                    let _had = had;
                    panic!("while it is held");
                }));
                assert!(panics.is_err());
            }
            Act::AskPoison if self.has_readers => notes.push(u8::from(shared.lock.is_poisoned())),
            Act::AskPoison => notes.push(u8::from(shared.mutex.is_poisoned())),
            Act::ClearPoison if self.has_readers => shared.lock.clear_poison(),
            Act::ClearPoison => shared.mutex.clear_poison(),
        }
    }

    fn perform_all(mut self, shared: &'a Shared, acts: &[Act]) -> Vec<u8> {
        let mut notes = Vec::new();
        for &act in acts {
            self.perform(shared, act, &mut notes);
        }
        notes
    }
}

/// Whether a lock was poisoned is noted.
fn enter<G>(locked: LockResult<G>, notes: &mut Vec<u8>) -> G {
    notes.push(u8::from(locked.is_err()));
    locked.unwrap_or_else(PoisonError::into_inner)
}

/// One execution.
fn run_live(kind: Kind, program: &StdArc<Program>) -> Outcome {
    let shared = Arc::new(Shared {
        atomics: [const { AtomicU8::new(0) }; LOCATIONS],
        lock: RwLock::new(()),
        barrier: Barrier::new(program.len()),
        cell: OnceLock::new(),
        mutex: Mutex::new(()),
        condvar: Condvar::new(),
    });
    let (sender, receiver) = match kind {
        Kind::Channel(Some(limit)) => {
            let (sender, receiver) = mpsc::sync_channel(limit);
            (Some(Sends::Bounded(sender)), Some(receiver))
        }
        Kind::Channel(None) => {
            let (sender, receiver) = mpsc::channel();
            (Some(Sends::Freely(sender)), Some(receiver))
        }
        _ => (None, None),
    };
    let main = thread::current();
    let has_readers = kind == Kind::Poison { has_readers: true };
    let threads: Vec<_> = (1..program.len())
        .map(|number| {
            let (shared, program) = (shared.clone(), program.clone());
            let (sender, main) = (sender.clone(), main.clone());
            thread::spawn(move || {
                let own = Own { sender, threads: vec![Some(main)], has_readers, ..Own::default() };
                own.perform_all(&shared, &program[number])
            })
        })
        .collect();
    drop(sender);
    let others = std::iter::once(None).chain(threads.iter().map(|thread| Some(thread.thread().clone())));
    let own = Own { receiver, threads: others.collect(), has_readers, ..Own::default() };
    let mut outcome = own.perform_all(&shared, &program[0]);
    for thread in threads {
        outcome.extend(thread.join().unwrap());
    }
    outcome.extend(shared.atomics.iter().map(|atomic| atomic.load(Relaxed)));
    let is_poisoned = if has_readers { shared.lock.is_poisoned() } else { shared.mutex.is_poisoned() };
    outcome.push(u8::from(is_poisoned));
    outcome
}

/// Is this the right answer? Executions that SC does not have may look like some that it has.
fn is_right(verdict: Verdict, sc: &Everything, relaxed: &Everything, bad: Option<&Outcome>) -> bool {
    let fails = |all: &Everything| all.deadlock || bad.is_some_and(|bad| all.outcomes.contains(bad));
    match verdict {
        Verdict::Failed => fails(sc),
        Verdict::Harmful => !fails(sc) && fails(relaxed),
        Verdict::Safe => !fails(relaxed) && relaxed.outcomes.is_subset(&sc.outcomes),
        // Live code is not looked at for ever.
        Verdict::Benign | Verdict::Unknown => !fails(relaxed),
        Verdict::Bounded(_) => false,
    }
}

/// The failure is one of those that there are, and happens again in a replay.
fn check_failure(report: &Report, all: &Everything, body: impl Fn() + Send + Sync + 'static, about: &str) {
    let replay = report.replay().map(str::to_owned);
    let again = Builder { replay, ..Builder::default() }.check(body);
    let failure = again.failure.unwrap_or_else(|| panic!("{about}: {} does not fail", report.replay().unwrap()));
    let is_possible = match failure.kind {
        FailureKind::Deadlock => all.deadlock,
        FailureKind::Panic { .. } => true,
        _ => false,
    };
    assert!(is_possible, "{about}: {}", failure.message);
}

type Generate = fn(&mut Random) -> (Kind, Program);

/// Compares the program of a seed, and the same in which nobody asks: what the verdicts were, if the programs were small enough.
fn compare(seed: u64, generate: Generate, model: MemoryModel) -> Vec<(Kind, Verdict)> {
    let mut random = Random::new(seed);
    let (kind, program) = generate(&mut random);
    let quiet = program::without_questions(&program);
    let programs = [Some(program), quiet].into_iter().flatten();
    programs.filter_map(|program| compare_one(seed, &mut random, (kind, program), model)).collect()
}

fn compare_one(
    seed: u64,
    random: &mut Random,
    (kind, program): (Kind, Program),
    model: MemoryModel,
) -> Option<(Kind, Verdict)> {
    let program = StdArc::new(program);
    let sc = machine::run(kind, &program, MemoryModel::Sc)?;
    let relaxed = machine::run(kind, &program, model)?;
    let bad = bad_outcome(|limit| random.below(limit), &sc.outcomes, &relaxed.outcomes);
    let seen: StdArc<StdMutex<BTreeSet<Outcome>>> = StdArc::default();
    let body = {
        let (program, bad, seen) = (program.clone(), bad.clone(), seen.clone());
        move || {
            let outcome = run_live(kind, &program);
            seen.lock().unwrap().insert(outcome.clone());
            assert!(bad.as_ref() != Some(&outcome), "the bad outcome");
        }
    };
    let report = Builder { model, ..Builder::default() }.check(body.clone());
    let about = format!("seed {seed}, {model:?}, {kind:?}, bad {bad:?}, {program:?}");
    assert!(is_right(report.verdict, &sc, &relaxed, bad.as_ref()), "{about}\n{report}\n{sc:?}\n{relaxed:?}");
    match report.verdict {
        Verdict::Failed => check_failure(&report, &sc, body, &about),
        Verdict::Harmful => check_failure(&report, &relaxed, body, &about),
        _ => {
            let seen = seen.lock().unwrap();
            assert!(seen.is_superset(&sc.outcomes), "{about}: not all outcomes were seen: {seen:?}, {sc:?}");
            let wrong: Vec<_> = seen.difference(&relaxed.outcomes).collect();
            assert!(wrong.is_empty(), "{about}: outcomes were seen that there are not: {wrong:?}");
        }
    }
    Some((kind, report.verdict))
}

#[test]
fn answers_are_those_of_a_machine_that_tries_everything() {
    let mut verdicts = BTreeSet::new();
    // The last ones are of senders that wait beside others that try, and of two that come late to an initialisation.
    for seed in (0..300).chain([190, 642, 1387, 1700]) {
        for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
            let found = compare(seed, program::program, model);
            verdicts.extend(found.into_iter().map(|(kind, verdict)| format!("{kind:?} {verdict:?}")));
        }
    }
    for kind in ["RwLock", "Barrier", "OnceLock", "Channel(None)", "Channel(Some(0))", "Parking", "Condvar"] {
        let some = verdicts.iter().filter(|verdict| verdict.starts_with(kind)).count();
        assert!(some >= 3, "{kind}: {verdicts:?}");
    }
}

#[test]
fn whether_a_lock_is_poisoned_is_what_the_machine_says() {
    let mut verdicts = BTreeSet::new();
    for seed in 0..200 {
        for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
            let found = compare(seed, program::poisonous, model);
            verdicts.extend(found.into_iter().map(|(_, verdict)| format!("{verdict:?}")));
        }
    }
    assert!(verdicts.len() >= 3, "{verdicts:?}");
}
