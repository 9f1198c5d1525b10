//! Systems that do not repeat themselves, in every way there is, are found out: the first event that differs is named,
//! and nothing panics or goes on for ever.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use weakspot_explore::graph::{Graph, Watching};
use weakspot_explore::interleave::Interleaving;
use weakspot_explore::system::{CellId, Misuse, Pending, System, UNBOUND, Update};
use weakspot_explore::trust::{Ending, Explorer, Subtree, Visitor};
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::FenceKind;
use weakspot_testkit::rng::Rng;

const LOCATIONS: usize = 2;
const MUTEX: CellId = 2;
const CONDVAR: CellId = 3;
const SIGNALS: CellId = 4;
const CELLS: usize = 6;

/// Something a thread does, or how it ends.
type Op = Pending;

type Script = Vec<Vec<Op>>;

fn any_op(rng: &mut Rng) -> Op {
    let cell = rng.below(LOCATIONS) as CellId;
    match rng.below(16) {
        0..=3 => Pending::Load(cell),
        4..=6 => Pending::Store { cell, value: rng.below(3) as i64 },
        7 => Pending::InterlockedStore { cell, value: 1 },
        8..=9 => Pending::Rmw { cell, drains_all: rng.below(2) == 0 },
        10 => Pending::Fence(if rng.below(2) == 0 { FenceKind::Full } else { FenceKind::StoreStore }),
        11 => Pending::TryLock(MUTEX),
        12 => Pending::Choose { lo: 0, hi: rng.below(3) as i64 },
        13 => Pending::Notify { condvar: CONDVAR, all: rng.below(2) == 0 },
        14 => Pending::Lock(MUTEX),
        _ => Pending::Unlock(MUTEX),
    }
}

/// What a good system never becomes all of a sudden.
fn any_strange_op(rng: &mut Rng) -> Op {
    match rng.below(12) {
        0 => Pending::Ended,
        1 => Pending::Absent,
        2 => Pending::Spinning,
        3 => Pending::Pruned,
        4 => Pending::Failed,
        5 => Pending::Bounded,
        6 => Pending::Wait { condvar: CONDVAR, mutex: MUTEX },
        7 => Pending::Signal(SIGNALS),
        8 => Pending::Await(SIGNALS + 1),
        9 => Pending::LeaveCritical,
        10 => Pending::Load(UNBOUND),
        _ => any_op(rng),
    }
}

fn any_script(rng: &mut Rng) -> Script {
    let threads = 2 + rng.below(2);
    (0..threads)
        .map(|_| {
            let mut ops: Vec<Op> = (0..=rng.below(4)).map(|_| any_op(rng)).collect();
            if rng.below(4) == 0 {
                ops.insert(0, Pending::Lock(MUTEX));
                if rng.below(2) == 0 {
                    ops.push(Pending::Wait { condvar: CONDVAR, mutex: MUTEX });
                }
                ops.push(Pending::Unlock(MUTEX));
            }
            ops
        })
        .collect()
}

fn mutate(script: &mut Script, rng: &mut Rng) {
    for _ in 0..=rng.below(3) {
        let thread = rng.below(script.len());
        let at = rng.below(script[thread].len() + 1);
        let threads = script.len();
        let ops = &mut script[thread];
        match rng.below(6) {
            0 => ops.truncate(at),
            1 => ops.insert(at, any_strange_op(rng)),
            2 if at < ops.len() => _ = ops.remove(at),
            3 => script.swap(0, 1),
            4 if threads < 4 => script.push(vec![any_op(rng)]),
            _ if at < ops.len() => ops[at] = any_strange_op(rng),
            _ => ops.push(any_op(rng)),
        }
    }
}

/// Threads that follow a script, which is another one after some restarts.
struct Scripted {
    script: Script,
    at: Vec<usize>,
    failed: Vec<bool>,
    bound: Vec<Option<CellId>>,
    /// Sum of the results: what the next store writes.
    sum: Vec<i64>,
    restarts: usize,
    good_for: usize,
    /// It is another one after every restart.
    every_time: bool,
    /// Atomics behave differently as well.
    updates: usize,
    /// Only what a program can do comes instead.
    of_a_program: bool,
    rng: Rng,
}

impl Scripted {
    fn new(script: Script, good_for: usize, every_time: bool, seed: u64) -> Self {
        let mut this = Self {
            at: Vec::new(),
            failed: Vec::new(),
            bound: Vec::new(),
            sum: Vec::new(),
            script,
            restarts: 0,
            good_for,
            every_time,
            updates: 0,
            of_a_program: false,
            rng: Rng::new(seed),
        };
        this.rewind();
        this
    }

    fn rewind(&mut self) {
        let threads = self.script.len();
        self.at = vec![0; threads];
        self.failed = vec![false; threads];
        self.bound = vec![None; threads];
        self.sum = vec![0; threads];
    }
}

impl System for Scripted {
    fn restart(&mut self) {
        self.restarts += 1;
        if self.restarts == self.good_for || self.every_time && self.restarts > self.good_for {
            let threads = self.script.len();
            mutate(&mut self.script, &mut self.rng);
            assert!(self.script.len() >= threads);
            self.updates = self.rng.below(if self.of_a_program { 4 } else { 5 });
            if self.of_a_program {
                self.script.iter_mut().for_each(|ops| ops.retain(|&op| is_of_a_program(op)));
            }
        }
        self.rewind();
    }
    fn threads(&self) -> usize {
        self.script.len()
    }
    fn cells(&self) -> usize {
        CELLS
    }
    fn initial(&self, _: CellId) -> i64 {
        0
    }
    fn bind(&mut self, thread: ThreadId, cell: CellId) {
        self.bound[thread.index()] = Some(cell);
    }
    fn pending(&self, thread: ThreadId) -> Pending {
        let thread = thread.index();
        if self.failed[thread] {
            return Pending::Failed;
        }
        match self.script[thread].get(self.at[thread]).copied() {
            Some(Pending::Load(UNBOUND)) => Pending::Load(self.bound[thread].unwrap_or(UNBOUND)),
            Some(Pending::Store { cell, value }) => Pending::Store { cell, value: value + self.sum[thread] },
            Some(op) => op,
            None => Pending::Ended,
        }
    }
    fn update(&self, _: ThreadId, current: i64) -> Update {
        match self.updates {
            0 | 1 => Update::Acts { result: current, written: Some(current + 1) },
            2 => Update::Acts { result: current, written: None },
            3 => Update::Fails,
            _ => Update::Blocks,
        }
    }
    fn may_block(&self, _: ThreadId) -> bool {
        self.updates > 3
    }
    fn resume(&mut self, thread: ThreadId, result: i64) {
        let thread = thread.index();
        self.at[thread] += 1;
        self.sum[thread] = (self.sum[thread] + result) % 3;
    }
    fn fail(&mut self, thread: ThreadId, _: Misuse) {
        self.failed[thread.index()] = true;
    }
}

#[derive(Default)]
struct Counting {
    graphs: u64,
    given: Vec<Subtree>,
    gives: bool,
}

impl<S: System> Visitor<S> for Counting {
    fn failed(&mut self, _: &Graph, _: &mut S, _: ThreadId) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn ended(&mut self, _: &Graph, _: &mut S, _: Ending) -> ControlFlow<()> {
        self.graphs += 1;
        ControlFlow::Continue(())
    }
    fn wants_work(&self) -> bool {
        self.gives && self.given.is_empty()
    }
    fn take(&mut self, subtree: Subtree) {
        self.given.push(subtree);
    }
}

#[test]
fn whatever_changes_is_found_out_and_nothing_panics() {
    let mut diverged = 0;
    for seed in 0..60_000 {
        let mut rng = Rng::new(seed);
        let script = any_script(&mut rng);
        let good_for = 2 + rng.below(6);
        let every_time = rng.below(2) == 0;
        let watching = [Watching::Nothing, Watching::Sober][rng.below(2)];
        let mut system = Scripted::new(script.clone(), good_for, every_time, seed);
        let mut explorer = Explorer::new(&mut system).watching(watching);
        let mut counting = Counting { gives: rng.below(2) == 0, ..Counting::default() };
        let ended = explorer.run(&mut counting);
        assert_eq!(ended.is_break(), explorer.divergence().is_some(), "{seed}: {script:?}");
        diverged += u64::from(ended.is_break());
        if let Some(divergence) = explorer.divergence() {
            let message = divergence.to_string();
            assert!(message.contains("is not deterministic"), "{message}");
        }
        // Somebody else whose system is not the same takes a part of the search.
        if let Some(subtree) = counting.given.pop() {
            let mut other = Scripted::new(script.clone(), 1, every_time, seed);
            let mut explorer = Explorer::new(&mut other).watching(watching);
            let ended = explorer.run_subtree(subtree, &mut Counting::default());
            assert_eq!(ended.is_break(), explorer.divergence().is_some(), "{seed}: {script:?}");
            diverged += u64::from(ended.is_break());
        }
    }
    assert!(diverged > 1_000, "{diverged}");
}

/// The systems that interleavings are made for have neither atomics that wait nor threads that come late.
fn is_of_a_program(op: Op) -> bool {
    let is_live = matches!(
        op,
        Pending::InterlockedStore { .. }
            | Pending::TryLock(_)
            | Pending::Signal(_)
            | Pending::Await(_)
            | Pending::Absent
            | Pending::Load(UNBOUND)
    );
    !is_live
}

#[test]
fn an_interleaving_that_is_run_again_must_be_the_same() {
    let (mut changed, mut same) = (0, 0);
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let script = any_script(&mut rng);
        let mut system = Scripted::new(script.clone(), 2 + rng.below(4), rng.one_in(2), seed);
        system.of_a_program = true;
        system.script.iter_mut().for_each(|ops| ops.retain(|&op| is_of_a_program(op)));
        let mut interleaving = Interleaving::new(&mut system);
        for _ in 0..24 {
            let movable: Vec<usize> =
                (0..interleaving.threads()).filter(|&thread| interleaving.is_enabled(thread)).collect();
            if interleaving.rest().is_none() && !movable.is_empty() && !rng.one_in(5) {
                let thread = rng.pick(&movable);
                let mut choices = Vec::new();
                interleaving.choices(thread, &mut choices);
                interleaving.step(thread, rng.pick(&choices));
                continue;
            }
            let (depth, before) = (rng.below(interleaving.depth() + 1), interleaving.actions().to_vec());
            interleaving.back_to(depth);
            let now = interleaving.actions();
            assert!(before.starts_with(now), "{seed}: {script:?}");
            let Some(what) = interleaving.changed() else {
                same += 1;
                assert_eq!(interleaving.depth(), depth, "{seed}: {script:?}");
                continue;
            };
            changed += 1;
            let next = before[now.len()];
            assert_eq!(what.thread, next.thread(), "{seed}: {script:?}");
            assert!(interleaving.depth() <= depth && what.to_string().contains("is not deterministic"), "{what}");
            break;
        }
    }
    assert!(changed > 1_000 && same > 1_000, "{changed} {same}");
}
