//! Programs with locks, barriers, channels and atomics at once. What they do must not depend on whether readers, those who meet and
//! senders that go are told apart, which a program that asks for it brings about; and failures must replay.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::{Arc as StdArc, Mutex as StdMutex};

use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use weakspot::sync::mpsc::{Receiver, Sender, channel};
use weakspot::sync::{Arc, Barrier, Mutex, RwLock, RwLockWriteGuard};
use weakspot::{Builder, FailureKind, MemoryModel, Report, Verdict, thread};

/// A thread of the model that also runs the first one.
const THREADS: usize = 3;

/// What a thread does next. What it finds is noted.
#[derive(Debug, Clone, Copy)]
enum Act {
    Load(usize),
    Store(usize),
    /// While it reads or writes what the lock holds.
    Read(Inside),
    Write(Inside),
    /// It goes on reading.
    Downgrade(Inside),
    Meet,
    Send,
    /// Receives until all senders are gone.
    Receive,
    /// Its sender goes.
    Go,
    /// A child does that, with a sender of its own.
    Spawn(usize),
}

/// What is done while a lock is held.
#[derive(Debug, Clone, Copy)]
enum Inside {
    Load(usize),
    Store(usize),
    Send,
    /// Another lock is taken, too.
    Lock,
}

type Program = [Vec<Act>; THREADS];
type Notes = Vec<Vec<usize>>;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as usize % limit
    }
}

fn inside(random: &mut Random) -> Inside {
    match random.below(6) {
        0 | 1 => Inside::Load(random.below(2)),
        2 | 3 => Inside::Store(random.below(2)),
        4 => Inside::Send,
        _ => Inside::Lock,
    }
}

/// Only the first thread receives. All meet equally often, or now and then not.
fn program(random: &mut Random) -> Program {
    let meetings = random.below(3);
    let mut program: Program = Default::default();
    for (me, thread) in program.iter_mut().enumerate() {
        for _ in 0..=random.below(3) {
            thread.push(match random.below(12) {
                0 | 9 => Act::Load(random.below(2)),
                1 | 10 | 11 => Act::Store(random.below(2)),
                2 | 3 => Act::Read(inside(random)),
                4 => Act::Write(inside(random)),
                5 => Act::Downgrade(inside(random)),
                6 => Act::Send,
                7 => Act::Go,
                _ => Act::Spawn(random.below(2)),
            });
        }
        let misses = usize::from(meetings > 0 && random.below(12) == 0);
        for _ in misses..meetings {
            thread.insert(random.below(thread.len() + 1), Act::Meet);
        }
        if me == 0 && random.below(3) > 0 {
            thread.extend([Act::Go, Act::Receive]);
        }
    }
    program
}

/// What the threads have in common.
struct Shared {
    atomics: [AtomicUsize; 2],
    lock: RwLock<usize>,
    mutex: Mutex<usize>,
    barrier: Barrier,
}

/// One of the threads.
struct Running<'a> {
    me: usize,
    shared: &'a Arc<Shared>,
    sender: Option<Sender<usize>>,
    asks: bool,
    notes: Vec<usize>,
}

impl Running<'_> {
    fn send(&mut self, what: usize) {
        if let Some(sender) = &self.sender {
            self.notes.push(usize::from(sender.send(what).is_ok()));
        }
    }

    fn inside(&mut self, held: usize, what: Inside) {
        self.notes.push(held);
        match what {
            Inside::Load(location) => self.notes.push(self.shared.atomics[location].load(Acquire)),
            Inside::Store(location) => self.shared.atomics[location].store(self.me + 5, Release),
            Inside::Send => self.send(50 + self.me),
            Inside::Lock => {
                let mut held = self.shared.mutex.lock().unwrap();
                self.notes.push(*held);
                *held += 1;
            }
        }
    }

    fn act(&mut self, act: Act, receiver: Option<&Receiver<usize>>) {
        let lock = &self.shared.lock;
        match act {
            Act::Load(location) => self.notes.push(self.shared.atomics[location].load(Relaxed)),
            Act::Store(location) => self.shared.atomics[location].store(self.me + 1, Relaxed),
            Act::Read(what) => self.inside(*lock.read().unwrap(), what),
            Act::Write(what) => {
                let mut held = lock.write().unwrap();
                *held = 10 * *held + self.me + 1;
                self.inside(*held, what);
            }
            Act::Downgrade(what) => {
                let mut held = lock.write().unwrap();
                *held += 100;
                let held = RwLockWriteGuard::downgrade(held);
                self.inside(*held, what);
            }
            Act::Meet => {
                let met = self.shared.barrier.wait();
                if self.asks {
                    met.is_leader();
                }
            }
            Act::Send => self.send(self.me),
            Act::Go => self.sender = None,
            Act::Receive => self.notes.extend(receiver.unwrap()),
            Act::Spawn(location) => {
                let (sender, shared) = (self.sender.clone(), Arc::clone(self.shared));
                let child = thread::spawn(move || {
                    let held = *shared.lock.read().unwrap();
                    let seen = shared.atomics[location].load(Relaxed);
                    (sender.map(|sender| sender.send(90)), held, seen)
                });
                self.shared.atomics[1 - location].store(9, Relaxed);
                let (_, held, seen) = child.join().unwrap();
                self.notes.extend([held, seen]);
            }
        }
    }
}

fn run_thread(
    me: usize,
    acts: &[Act],
    shared: &Arc<Shared>,
    ends: (Sender<usize>, Option<Receiver<usize>>),
    asks: bool,
) -> Vec<usize> {
    let (sender, receiver) = ends;
    let mut running = Running { me, shared, sender: Some(sender), asks, notes: Vec::new() };
    for &act in acts {
        running.act(act, receiver.as_ref());
    }
    running.notes
}

/// Runs a program. `asks`: everybody is told apart.
fn run(program: &Program, asks: bool) -> Notes {
    if asks {
        drop(RwLock::new(()).try_read());
        assert!(channel::<()>().1.try_recv().is_err());
    }
    let (sender, receiver) = channel();
    let shared = Arc::new(Shared {
        atomics: [AtomicUsize::new(0), AtomicUsize::new(0)],
        lock: RwLock::new(0),
        mutex: Mutex::new(0),
        barrier: Barrier::new(THREADS),
    });
    let others = (1..THREADS).map(|me| {
        let (acts, shared, sender) = (program[me].clone(), Arc::clone(&shared), sender.clone());
        thread::spawn(move || run_thread(me, &acts, &shared, (sender, None), asks))
    });
    let others: Vec<_> = others.collect();
    let mut notes = vec![run_thread(0, &program[0], &shared, (sender, Some(receiver)), asks)];
    notes.extend(others.into_iter().map(|other| other.join().unwrap()));
    notes.push(shared.atomics.iter().map(|atomic| atomic.load(Relaxed)).collect());
    notes.push(vec![*shared.lock.read().unwrap(), *shared.mutex.lock().unwrap()]);
    notes
}

/// What a program does, unless there is too much of it, and all that it was seen to do.
fn check(builder: Builder, program: &Program, asks: bool, bad: Option<Notes>) -> Option<(Report, BTreeSet<Notes>)> {
    let seen: StdArc<StdMutex<BTreeSet<Notes>>> = StdArc::default();
    let (all, program) = (StdArc::clone(&seen), program.clone());
    let report = Builder { max_executions: Some(3_000), ..builder }.check(move || {
        let notes = run(&program, asks);
        all.lock().unwrap().insert(notes.clone());
        assert!(bad.as_ref() != Some(&notes), "the bad outcome");
    });
    let seen = seen.lock().unwrap().clone();
    (report.failure.is_some() || !matches!(report.verdict, Verdict::Bounded(_))).then_some((report, seen))
}

fn on(model: MemoryModel) -> Builder {
    Builder { model, ..Builder::default() }
}

fn is_deadlock(report: &Report) -> bool {
    matches!(report.failure.as_ref().map(|failure| &failure.kind), Some(FailureKind::Deadlock))
}

/// Runs what a report shows again.
fn replays(model: MemoryModel, program: &Program, report: &Report, bad: Option<Notes>) {
    let replay = report.replay().expect("a failure has a line").to_owned();
    let builder = Builder { replay: Some(replay), ..on(model) };
    let (again, _) = check(builder, program, false, bad).expect("it fails again");
    let expected = report.failure.as_ref().map(|failure| &failure.message);
    let message = again.failure.as_ref().map(|failure| &failure.message);
    assert!(expected.is_none() || message == expected, "{program:?}\n{report}\n{again}");
    assert_eq!(again.verdict, Verdict::Failed, "{program:?}\n{report}\n{again}");
}

#[test]
fn what_programs_do_does_not_depend_on_who_is_told_apart() {
    let (mut compared, mut deadlocks) = (0, 0);
    for seed in 0..300 {
        let program = program(&mut Random::new(seed));
        let default = check(on(MemoryModel::Sc), &program, false, None);
        let told = check(on(MemoryModel::Sc), &program, true, None);
        let (Some((report, seen)), Some((told, all))) = (default, told) else { continue };
        let about = format!("seed {seed}: {program:?}\n{report}\n{told}");
        assert_eq!((report.verdict, is_deadlock(&report)), (told.verdict, is_deadlock(&told)), "{about}");
        assert!(report.failure.is_some() || report.executions <= told.executions, "{about}");
        compared += 1;
        if is_deadlock(&report) {
            deadlocks += 1;
            replays(MemoryModel::Sc, &program, &report, None);
            continue;
        }
        assert_eq!(report.verdict, Verdict::Safe, "{about}");
        assert_eq!(seen, all, "{about}");
        let workers = Builder { jobs: 2, ..on(MemoryModel::Sc) };
        let (together, of_all) = check(workers, &program, false, None).expect("there is as much of it as before");
        assert_eq!((together.executions, of_all), (report.executions, seen), "{about}");
    }
    assert!(compared > 150 && deadlocks > 8, "{compared} {deadlocks}");
}

#[test]
fn failures_of_such_programs_are_found_and_replayed() {
    let mut failures = 0;
    for seed in 0..120 {
        let mut random = Random::new(seed);
        let program = program(&mut random);
        let Some((report, sc)) = check(on(MemoryModel::Sc), &program, false, None) else { continue };
        if report.failure.is_some() {
            continue;
        }
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            // That may be what only simulated buffers were seen to do.
            let Some((_, seen)) = check(on(model), &program, false, None) else { continue };
            let Some(bad) = seen.iter().nth(random.below(seen.len().max(1))).cloned() else { continue };
            let Some((report, _)) = check(on(model), &program, false, Some(bad.clone())) else { continue };
            let expected = if sc.contains(&bad) { Verdict::Failed } else { Verdict::Harmful };
            assert_eq!(report.verdict, expected, "seed {seed}, {model:?}: {program:?} {bad:?}\n{report}");
            failures += 1;
            replays(model, &program, &report, Some(bad));
        }
    }
    assert!(failures > 80, "{failures}");
}
