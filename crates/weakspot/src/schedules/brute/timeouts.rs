//! Waits with timeouts: schedules with few preemptions, and all of them, against a machine that tries everything and
//! shares nothing with weakspot.

use std::collections::HashSet;

use super::*;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::{Arc, Condvar, Mutex};
use crate::thread;

const SOON: Duration = Duration::from_millis(1);
/// Seen where a wait was over before anybody has notified the thread.
const LATE: usize = 77;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Load,
    Store(usize),
    Add,
    /// Waits for a notification up to so many times, until the cell holds something. All such waits are at one place.
    Wait(usize),
    /// The same with parking.
    Park(usize),
    /// Notifies one or all, with the lock or without it.
    Notify {
        all: bool,
        locked: bool,
    },
    /// Unparks this thread.
    Unpark(usize),
}

type Program = Vec<Vec<Act>>;

fn program(random: &mut Random) -> Program {
    let threads = 2 + usize::from(random.below(4) == 0);
    let most = 5 - threads;
    let act = |random: &mut Random| match random.below(12) {
        0 => Act::Load,
        1..=2 => Act::Store(random.below(3)),
        3 => Act::Add,
        4..=6 => Act::Wait(1 + random.below(most)),
        7..=8 => Act::Park(1 + random.below(most)),
        9..=10 => Act::Notify { all: random.below(2) == 0, locked: random.below(2) == 0 },
        _ => Act::Unpark(random.below(threads)),
    };
    (0..threads).map(|_| (0..=random.below(most)).map(|_| act(random)).collect()).collect()
}

/// Where a thread is in its act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// At the beginning.
    Begin,
    /// Holds the lock: about to look, for the so manieth time.
    Look(usize),
    /// Has looked, and is about to wait.
    Wait(usize),
    /// Waits.
    Asleep(usize),
    /// Was notified, or its time is over: has to get the lock back.
    Woken(usize, bool),
    /// Releases the lock.
    Release,
}

/// Where all threads are, and what they have seen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    next: Vec<(usize, At)>,
    seen: Vec<Vec<usize>>,
    cell: usize,
    held: bool,
    tokens: Vec<bool>,
    /// How often waits of each thread have timed out, with the lock and parked.
    times: Vec<[usize; 2]>,
    /// How often because nobody else could go on.
    forced: Vec<usize>,
}

impl State {
    fn new(threads: usize) -> Self {
        Self {
            next: vec![(0, At::Begin); threads],
            seen: vec![Vec::new(); threads],
            cell: 0,
            held: false,
            tokens: vec![false; threads],
            times: vec![[0; 2]; threads],
            forced: vec![0; threads],
        }
    }

    fn ends(mut self, thread: usize) -> Self {
        self.next[thread] = (self.next[thread].0 + 1, At::Begin);
        self
    }

    fn goes(mut self, thread: usize, at: At) -> Self {
        self.next[thread].1 = at;
        self
    }

    fn sees(mut self, thread: usize, what: usize) -> Self {
        self.seen[thread].push(what);
        self
    }

    /// The states after one event of a thread, each with what it counts beside a preemption.
    fn steps(&self, program: &Program, thread: usize) -> Vec<(Self, u32)> {
        let (act, at) = self.next[thread];
        let Some(&act) = program[thread].get(act) else { return Vec::new() };
        let after = self.clone();
        let one = |state: Self| vec![(state, 0)];
        match (act, at) {
            (Act::Load, _) => one(after.sees(thread, self.cell).ends(thread)),
            (Act::Store(value), _) => one(Self { cell: value, ..after }.ends(thread)),
            (Act::Add, _) => one(Self { cell: self.cell + 1, ..after }.sees(thread, self.cell).ends(thread)),
            (Act::Unpark(whom), _) => {
                let mut after = after;
                after.tokens[whom] = true;
                one(after.ends(thread))
            }
            (Act::Wait(_) | Act::Notify { locked: true, .. }, At::Begin) if self.held => Vec::new(),
            (Act::Wait(_) | Act::Notify { locked: true, .. }, At::Begin) => {
                one(Self { held: true, ..after }.goes(thread, At::Look(0)))
            }
            (Act::Notify { all, locked }, _) if at != At::Release => {
                let done = |state: Self| {
                    if locked { state.goes(thread, At::Release) } else { state.ends(thread) }
                };
                let mut waiters = Vec::new();
                for (waiter, &(_, at)) in self.next.iter().enumerate() {
                    if let At::Asleep(round) = at
                        && matches!(program[waiter][self.next[waiter].0], Act::Wait(_))
                    {
                        waiters.push((waiter, At::Woken(round, false)));
                    }
                }
                if all || waiters.is_empty() {
                    let woken = |state: Self, &(waiter, at): &(usize, At)| state.goes(waiter, at);
                    return one(done(waiters.iter().fold(after, woken)));
                }
                waiters.iter().map(|&(waiter, at)| (done(after.clone().goes(waiter, at)), 0)).collect()
            }
            (Act::Wait(_) | Act::Notify { .. }, At::Release) => one(Self { held: false, ..after }.ends(thread)),
            (Act::Park(most) | Act::Wait(most), At::Begin | At::Look(_)) => {
                let round = if let At::Look(round) = at { round } else { 0 };
                let after = after.sees(thread, self.cell);
                if self.cell == 0 && round < most {
                    return one(after.goes(thread, At::Wait(round)));
                }
                if act == Act::Park(most) {
                    return one(after.ends(thread));
                }
                one(after.goes(thread, At::Release))
            }
            (Act::Wait(_), At::Wait(round)) => {
                let mut late = Self { held: false, ..after.clone() }.goes(thread, At::Woken(round, true));
                late.times[thread][0] += 1;
                let asleep = Self { held: false, ..after }.goes(thread, At::Asleep(round));
                vec![(asleep, 0), (late, u32::from(self.times[thread][0] > 0))]
            }
            (Act::Park(_), At::Wait(round)) => {
                let mut late = after.clone().goes(thread, At::Look(round + 1));
                late.times[thread][1] += 1;
                vec![(after.goes(thread, At::Asleep(round)), 0), (late, u32::from(self.times[thread][1] > 0))]
            }
            (Act::Wait(_), At::Woken(round, is_late)) if !self.held => {
                let after = Self { held: true, ..after }.goes(thread, At::Look(round + 1));
                one(after.sees(thread, if is_late { LATE } else { 0 }))
            }
            (Act::Park(_), At::Woken(round, _)) => one(after.goes(thread, At::Look(round + 1))),
            (Act::Park(_), At::Asleep(round)) if self.tokens[thread] => {
                let mut after = after.goes(thread, At::Look(round + 1));
                after.tokens[thread] = false;
                one(after)
            }
            _ => Vec::new(),
        }
    }

    /// Nobody can go on: the time of whoever has waited least often is over.
    fn passes_time(&self, program: &Program) -> Option<Self> {
        let asleep = |thread: &usize| matches!(self.next[*thread].1, At::Asleep(_));
        let thread = (0..self.next.len()).filter(asleep).min_by_key(|&thread| self.forced[thread])?;
        let At::Asleep(round) = self.next[thread].1 else { return None };
        let mut after = self.clone().goes(thread, At::Woken(round, true));
        let kind = usize::from(matches!(program[thread][self.next[thread].0], Act::Park(_)));
        (after.times[thread][kind], after.forced[thread]) = (self.times[thread][kind] + 1, self.forced[thread] + 1);
        Some(after)
    }
}

/// What the threads have seen in the end, over all schedules with so many preemptions.
fn tried_out(program: &Program, most: u32) -> Outcomes {
    let mut outcomes = Outcomes::new();
    let mut known = HashSet::new();
    let mut open = vec![(State::new(program.len()), None, 0)];
    while let Some((state, last, preemptions)) = open.pop() {
        if !known.insert((state.clone(), last, preemptions)) {
            continue;
        }
        let steps: Vec<_> = (0..program.len())
            .flat_map(|thread| state.steps(program, thread).into_iter().map(move |step| (thread, step)))
            .collect();
        if steps.is_empty() {
            match state.passes_time(program) {
                Some(later) => open.push((later, None, preemptions)),
                None => _ = outcomes.insert(state.seen.concat().into_iter().chain([state.cell]).collect()),
            }
        }
        // A thread that waits for its lock is not preempted.
        let can_stay = steps.iter().any(|&(thread, _)| Some(thread) == last)
            && !last.is_some_and(|last: usize| matches!(state.next[last].1, At::Woken(..)));
        for (thread, (after, cost)) in steps {
            let preemptions = preemptions + cost + u32::from(can_stay && Some(thread) != last);
            if preemptions <= most {
                open.push((after, Some(thread), preemptions));
            }
        }
    }
    outcomes
}

struct Shared {
    cell: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
    handles: StdMutex<Vec<Option<thread::Thread>>>,
}

fn perform(shared: &Shared, acts: &[Act]) -> Vec<usize> {
    let mut seen = Vec::new();
    let look = |seen: &mut Vec<usize>| {
        seen.push(shared.cell.load(SeqCst));
        seen.last() == Some(&0)
    };
    for &act in acts {
        match act {
            Act::Load => _ = look(&mut seen),
            Act::Store(value) => shared.cell.store(value, SeqCst),
            Act::Add => seen.push(shared.cell.fetch_add(1, SeqCst)),
            Act::Wait(most) => {
                let mut guard = shared.lock.lock().unwrap();
                let mut rounds = 0;
                while look(&mut seen) && rounds < most {
                    let result;
                    (guard, result) = shared.changed.wait_timeout(guard, SOON).unwrap();
                    seen.push(if result.timed_out() { LATE } else { 0 });
                    rounds += 1;
                }
            }
            Act::Park(most) => {
                let mut rounds = 0;
                while look(&mut seen) && rounds < most {
                    // Whether it was late shows in how often the token is there later.
                    thread::park_timeout(SOON);
                    rounds += 1;
                }
            }
            Act::Notify { all, locked } => {
                let _guard = locked.then(|| shared.lock.lock().unwrap());
                if all { shared.changed.notify_all() } else { shared.changed.notify_one() }
            }
            Act::Unpark(whom) => {
                let handle = shared.handles.lock().unwrap()[whom].clone();
                handle.unwrap().unpark();
            }
        }
    }
    seen
}

fn run(program: &Program) -> Vec<usize> {
    let shared = Arc::new(Shared {
        cell: AtomicUsize::new(0),
        lock: Mutex::new(()),
        changed: Condvar::new(),
        handles: StdMutex::new(vec![None; program.len()]),
    });
    // Nobody begins before all handles are there.
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let start = |acts: &Vec<Act>| {
        let (shared, gate, acts) = (shared.clone(), gate.clone(), acts.clone());
        thread::spawn(move || {
            drop(gate.lock().unwrap());
            perform(&shared, &acts)
        })
    };
    let threads: Vec<_> = program.iter().map(start).collect();
    *shared.handles.lock().unwrap() = threads.iter().map(|thread| Some(thread.thread().clone())).collect();
    drop(closed);
    let mut seen: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    seen.push(shared.cell.load(SeqCst));
    seen
}

#[test]
fn waits_with_timeouts_come_to_what_a_machine_that_tries_all_comes_to() {
    let mut random = Random(0x71e0);
    let mut named = 0;
    for number in 0..40 {
        let program = StdArc::new(program(&mut random));
        let all = tried_out(&program, u32::MAX);
        let which = format!("{number}: {program:?}");
        compare_few(&which, &all, |most| tried_out(&program, most), runs(&program, run));
        let (everything, is_named) = found_in_all(runs(&program, run));
        assert!(everything.is_subset(&all), "{which}");
        assert!(is_named || everything == all, "{which}: {:?}", all.difference(&everything).next());
        named += u32::from(is_named);
    }
    assert!(named < 20, "most programs are explored in all ways");
}

/// The report of a search with so many preemptions.
fn bounded(most: u32, body: impl Fn() + Send + Sync + 'static) -> (crate::Report, Option<Failure>) {
    let builder = Builder::default();
    let runtime = Runtime::new(builder.model, builder.max_threads, StdArc::new(body));
    let mut search = Search::new(&builder, &runtime, Instant::now());
    search.follow(&mut Path::new(most, true));
    let report = search.finish(Bound::Preemptions(most)).report;
    let schedule = report.schedule.as_deref();
    let again = schedule.and_then(|schedule| crate::replay::failure_of(&builder, &runtime, schedule));
    (report, again)
}

#[test]
fn where_nobody_else_can_go_on_time_passes_as_often_as_need_be() {
    for rounds in [1, 2, 5, 20] {
        let (report, _) = bounded(0, move || {
            let (lock, changed) = (Mutex::new(()), Condvar::new());
            let mut guard = lock.lock().unwrap();
            for _ in 0..rounds {
                guard = changed.wait_timeout(guard, SOON).unwrap().0;
                thread::park_timeout(SOON);
            }
        });
        assert!(report.failure.is_none() && report.executions > 0 && report.blocked == 0, "{rounds}: {report}");
    }
}

#[test]
fn a_further_timeout_is_a_preemption() {
    let body = |patience: u32| {
        move || {
            let flag = Arc::new((Mutex::new(false), Condvar::new()));
            let other = flag.clone();
            let thread = thread::spawn(move || {
                *other.0.lock().unwrap() = true;
                other.1.notify_one();
            });
            let (mut guard, mut timeouts) = (flag.0.lock().unwrap(), 0);
            while !*guard {
                let result;
                (guard, result) = flag.1.wait_timeout(guard, SOON).unwrap();
                timeouts += u32::from(result.timed_out());
                assert!(timeouts < patience, "it takes too long");
            }
            drop(guard);
            thread.join().unwrap();
        }
    };
    for (patience, most) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        let (report, again) = bounded(most, body(patience));
        assert!(report.failure.is_some_and(|failure| failure.message.contains("too long")), "{patience}");
        assert!(again.is_some_and(|failure| failure.message.contains("too long")), "{patience}");
        if most > 0 {
            let (report, _) = bounded(most - 1, body(patience));
            assert!(report.failure.is_none(), "{patience}: {report}");
        }
    }
}

#[test]
fn waiting_again_and_again_is_a_livelock() {
    let (report, again) = bounded(1, || {
        let flag = Arc::new((Mutex::new(false), Condvar::new()));
        let wait = |flag: &(Mutex<bool>, Condvar)| {
            let mut guard = flag.0.lock().unwrap();
            while !*guard {
                guard = flag.1.wait_timeout(guard, SOON).unwrap().0;
            }
        };
        let other = flag.clone();
        let thread = thread::spawn(move || wait(&other));
        wait(&flag);
        thread.join().unwrap();
    });
    for failure in [report.failure, again] {
        let failure = failure.unwrap();
        assert!(matches!(failure.kind, FailureKind::Livelock), "{}", failure.message);
        assert!(failure.message.contains("waits with a timeout, again and again"), "{}", failure.message);
    }
}
