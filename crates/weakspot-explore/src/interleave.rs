//! One interleaving at a time: the SC memory, the threads of a [`System`], and steps that can be taken back.
//!
//! This is what the bounded and the random modes run on. A step is one event of a thread. `choose` and leaving a
//! critical block are steps of their own for the reference machine but no places to switch: a choice follows the event
//! before it at once, and a thread stays in its critical block until it takes its next step (it could, so nothing is
//! lost).
//!
//! # Loops that wait
//! A thread that has gone round a loop without effect, and nobody wrote meanwhile, rests until somebody has written:
//! going round again before that would only read the same values again. If only such threads are left, the execution never ends.

use weakspot_model::ids::ThreadId;
use weakspot_model::machine::Action;

use crate::graph::{NONE, Phase};
use crate::monitor::{Event, Operation};
use crate::system::{CellId, Judgement, Misuse, Pending, System, Token, Update};
use crate::trust::bit;
use weakspot_model::ir::FenceKind;

/// How an interleaving ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Every thread has ended and the specification holds.
    Complete,
    /// The specification is broken: by a failed thread, by the `final` block, by two threads inside critical blocks.
    Wrong,
    /// Nobody can move.
    Deadlock,
    /// A false `assume`, or only threads that wait in loops are left.
    Blocked,
    /// The bound on loop rounds, or a loop without events.
    Unfinished,
}

/// What a thread needs beside the system's own state.
#[derive(Debug, Clone, Copy)]
struct Lane {
    phase: Phase,
    /// Number of writes when it last completed a round without effect.
    idle_at: u64,
    /// The reads since its last effect: a list in `reads`.
    last_read: u32,
    index: u32,
}

/// How to take a step back.
#[derive(Debug, Clone, Copy)]
struct Undo {
    thread: u32,
    lane: Lane,
    token: Option<Token>,
    writes: u64,
    /// Cells with the values they had.
    cells: [(CellId, i64); 2],
    events: u32,
    actions: u32,
    reads: u32,
}

const NO_CELL: (CellId, i64) = (NONE, 0);

/// An interleaving.
#[derive(Debug)]
pub struct Interleaving<'s, S: System> {
    system: &'s mut S,
    /// Mutexes hold the number of their owner plus one, condition variables the set of their waiters.
    memory: Vec<i64>,
    lanes: Vec<Lane>,
    writes: u64,
    /// State before the read, number of writes then, and the read before it.
    reads: Vec<(Token, u64, u32)>,
    events: Vec<Event>,
    /// The events that have stayed since somebody last asked.
    kept: usize,
    actions: Vec<Action>,
    /// The thread's state before each action.
    tokens: Vec<Token>,
    undo: Vec<Undo>,
}

impl<'s, S: System> Interleaving<'s, S> {
    /// Nothing has happened.
    pub fn new(system: &'s mut S) -> Self {
        let threads = system.threads();
        let lane = Lane { phase: Phase::Running, idle_at: u64::MAX, last_read: NONE, index: 0 };
        let mut this = Self {
            system,
            memory: Vec::new(),
            lanes: vec![lane; threads],
            writes: 0,
            reads: Vec::new(),
            events: Vec::new(),
            kept: 0,
            actions: Vec::new(),
            tokens: Vec::new(),
            undo: Vec::new(),
        };
        this.restart();
        this
    }

    /// Back to the beginning.
    pub fn restart(&mut self) {
        self.system.restart();
        let initial = (0..self.system.cells()).map(|cell| self.system.initial(cell as CellId));
        self.memory = initial.collect();
        self.lanes.fill(Lane { phase: Phase::Running, idle_at: u64::MAX, last_read: NONE, index: 0 });
        self.writes = 0;
        self.reads.clear();
        self.events.clear();
        self.kept = 0;
        self.actions.clear();
        self.tokens.clear();
        self.undo.clear();
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.lanes.len()
    }

    /// What the monitors see of it.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// How many events are those that were there when this was asked last.
    pub(crate) fn kept(&mut self) -> usize {
        std::mem::replace(&mut self.kept, self.events.len()).min(self.events.len())
    }

    /// As steps of the SC machine.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The state of its thread before an action.
    pub fn token(&self, action: u32) -> Token {
        self.tokens[action as usize]
    }

    /// The system.
    pub fn system(&mut self) -> &mut S {
        self.system
    }

    /// Steps taken that can be taken back.
    pub fn depth(&self) -> usize {
        self.undo.len()
    }

    /// Is the thread about to choose a value?
    pub fn is_choosing(&self, thread: usize) -> bool {
        matches!(self.system.pending(ThreadId::new(thread)), Pending::Choose { .. })
    }

    /// Can the thread take a step?
    pub fn is_enabled(&self, thread: usize) -> bool {
        let lane = &self.lanes[thread];
        match self.system.pending(ThreadId::new(thread)) {
            Pending::Lock(mutex) => self.memory[mutex as usize] == 0,
            Pending::Wait { condvar, mutex } => match lane.phase {
                Phase::Running => true,
                _ => self.memory[condvar as usize] & bit(thread) == 0 && self.memory[mutex as usize] == 0,
            },
            pending => !pending.is_last() && lane.idle_at != self.writes,
        }
    }

    /// The choices of an enabled thread's step: values, waiters, or just 0.
    pub fn choices(&self, thread: usize, into: &mut Vec<i64>) {
        into.clear();
        match self.system.pending(ThreadId::new(thread)) {
            Pending::Choose { lo, hi } => into.extend(lo..=hi),
            Pending::Notify { condvar, all: false } => {
                let waiters = self.memory[condvar as usize];
                into.extend((0..self.lanes.len()).filter(|&t| waiters & bit(t) != 0).map(|t| t as i64));
            }
            _ => {}
        }
        if into.is_empty() {
            into.push(0);
        }
    }

    /// Is the execution over, and how? `None`: somebody can move.
    pub fn rest(&mut self) -> Option<Rest> {
        let mut all_ended = true;
        let (mut enabled, mut unfinished, mut idle) = (false, false, false);
        for thread in 0..self.lanes.len() {
            let pending = self.system.pending(ThreadId::new(thread));
            match pending {
                Pending::Failed => return Some(Rest::Wrong),
                Pending::Pruned => return Some(Rest::Blocked),
                Pending::Bounded | Pending::Spinning => unfinished = true,
                _ => {}
            }
            all_ended &= pending == Pending::Ended;
            enabled |= self.is_enabled(thread);
            idle |= !pending.is_last() && self.lanes[thread].idle_at == self.writes;
        }
        if self.intruded() {
            return Some(Rest::Wrong);
        }
        if enabled {
            return None;
        }
        if all_ended {
            let memory = &self.memory;
            return Some(match self.system.judge(&|cell| memory[cell as usize]) {
                Judgement::Holds => Rest::Complete,
                Judgement::Pruned => Rest::Blocked,
                Judgement::Fails => Rest::Wrong,
            });
        }
        Some(if unfinished {
            Rest::Unfinished
        } else if idle {
            Rest::Blocked
        } else {
            Rest::Deadlock
        })
    }

    /// Are two threads inside critical blocks?
    fn intruded(&self) -> bool {
        self.system.has_critical()
            && (0..self.lanes.len()).filter(|&thread| self.system.is_inside(ThreadId::new(thread))).count() > 1
    }

    /// An enabled thread takes a step.
    pub fn step(&mut self, thread: usize, choice: i64) {
        self.push_undo(thread);
        while self.system.pending(ThreadId::new(thread)) == Pending::LeaveCritical {
            self.act(thread, 0);
        }
        if self.is_enabled(thread) {
            self.act(thread, choice);
        }
    }

    fn push_undo(&mut self, thread: usize) {
        self.undo.push(Undo {
            thread: thread as u32,
            lane: self.lanes[thread],
            token: self.system.save(ThreadId::new(thread)),
            writes: self.writes,
            cells: [NO_CELL; 2],
            events: self.events.len() as u32,
            actions: self.actions.len() as u32,
            reads: self.reads.len() as u32,
        });
    }

    /// Takes the last steps back until `depth` are left. Without tokens: runs the rest again from the start.
    pub fn back_to(&mut self, depth: usize) {
        while self.undo.len() > depth {
            let Some(undo) = self.undo.pop() else { return };
            let Some(token) = undo.token else {
                self.undo.push(undo);
                return self.run_again(depth);
            };
            self.system.restore(ThreadId(undo.thread as u16), token);
            self.lanes[undo.thread as usize] = undo.lane;
            self.writes = undo.writes;
            for (cell, value) in undo.cells {
                if cell != NONE {
                    self.memory[cell as usize] = value;
                }
            }
            // A notification leaves an event with each thread it wakes.
            for event in self.events.drain(undo.events as usize..).filter(|event| event.thread != undo.thread) {
                self.lanes[event.thread as usize].index -= 1;
            }
            self.kept = self.kept.min(self.events.len());
            self.actions.truncate(undo.actions as usize);
            self.tokens.truncate(undo.actions as usize);
            self.reads.truncate(undo.reads as usize);
        }
    }

    /// Runs the first `depth` steps again, each as many actions as it was.
    fn run_again(&mut self, depth: usize) {
        let ends: Vec<u32> = self.undo[1..=depth].iter().map(|undo| undo.actions).collect();
        let actions = self.actions.clone();
        self.restart();
        for end in ends {
            let first = self.actions.len();
            for (index, &action) in actions[first..end as usize].iter().enumerate() {
                let Action::Step { thread, choice } = action else { continue };
                if index == 0 {
                    self.push_undo(thread.index());
                }
                self.act(thread.index(), choice);
            }
        }
    }

    fn set(&mut self, cell: CellId, value: i64) {
        let old = self.memory[cell as usize];
        if let Some(undo) = self.undo.last_mut() {
            let slot = usize::from(undo.cells[0].0 != NONE);
            undo.cells[slot] = (cell, old);
        }
        self.memory[cell as usize] = value;
        self.writes += 1;
    }

    fn emit(&mut self, thread: usize, operation: Operation, cell: CellId) {
        let lane = &mut self.lanes[thread];
        let label = self.actions.len() as u32 - 1;
        self.events.push(Event { thread: thread as u32, index: lane.index, operation, cell, label });
        lane.index += 1;
    }

    fn act(&mut self, thread: usize, choice: i64) {
        let id = ThreadId::new(thread);
        let pending = self.system.pending(id);
        let before = self.system.save(id);
        self.actions.push(Action::Step { thread: id, choice: self.machine_choice(pending, choice) });
        self.tokens.push(before.unwrap_or(Token(0)));
        let interlocked = Operation::Atomic { writes: true, drains_all: true };
        let mut without_effect = false;
        match pending {
            Pending::Load(cell) => {
                self.emit(thread, Operation::Load, cell);
                without_effect = true;
                self.system.resume(id, self.memory[cell as usize]);
            }
            Pending::Store { cell, value } => {
                self.emit(thread, Operation::Store, cell);
                self.set(cell, value);
                self.system.resume(id, 0);
            }
            Pending::Rmw { cell, drains_all } => without_effect = self.update(thread, cell, drains_all),
            Pending::Fence(kind) => {
                let full = kind != FenceKind::StoreStore;
                self.emit(thread, if full { Operation::FullFence } else { Operation::StoreFence }, NONE);
                without_effect = true;
                self.system.resume(id, 0);
            }
            Pending::Lock(mutex) => {
                self.emit(thread, interlocked, mutex);
                self.set(mutex, thread as i64 + 1);
                self.system.resume(id, 0);
            }
            Pending::Unlock(mutex) if self.memory[mutex as usize] != thread as i64 + 1 => {
                self.system.fail(id, Misuse::NotHolding);
            }
            Pending::Unlock(mutex) => {
                self.emit(thread, interlocked, mutex);
                self.set(mutex, 0);
                self.system.resume(id, 0);
            }
            Pending::Wait { condvar, mutex } => self.wait(thread, condvar, mutex),
            Pending::Notify { condvar, all } => {
                self.emit(thread, interlocked, condvar);
                let waiters = self.memory[condvar as usize];
                let woken = if all { waiters } else { waiters & bit(choice as usize) };
                self.set(condvar, waiters & !woken);
                for waiter in (0..self.lanes.len()).filter(|&waiter| woken & bit(waiter) != 0) {
                    self.emit(waiter, Operation::Atomic { writes: false, drains_all: true }, condvar);
                }
                self.system.resume(id, 0);
            }
            Pending::Choose { .. } => self.system.resume(id, choice),
            Pending::LeaveCritical => self.system.resume(id, 0),
            _ => unreachable!("invariant: only enabled threads step"),
        }
        self.end_round(thread, before, without_effect);
    }

    /// The reference machine's choice is 0 where there is nothing to choose.
    fn machine_choice(&self, pending: Pending, choice: i64) -> i64 {
        match pending {
            Pending::Choose { .. } => choice,
            Pending::Notify { condvar, all: false } if self.memory[condvar as usize] != 0 => choice,
            _ => 0,
        }
    }

    /// An atomic; true if it wrote nothing.
    fn update(&mut self, thread: usize, cell: CellId, drains_all: bool) -> bool {
        let id = ThreadId::new(thread);
        let current = self.memory[cell as usize];
        match self.system.update(id, current) {
            Update::Fails => {
                self.system.fail(id, Misuse::Update(current));
                false
            }
            Update::Blocks => unreachable!("invariant: only enabled threads step"),
            Update::Acts { result, written } => {
                self.emit(thread, Operation::Atomic { writes: written.is_some(), drains_all }, cell);
                if let Some(value) = written {
                    self.set(cell, value);
                }
                self.system.resume(id, result);
                written.is_none()
            }
        }
    }

    fn wait(&mut self, thread: usize, condvar: CellId, mutex: CellId) {
        let id = ThreadId::new(thread);
        let interlocked = Operation::Atomic { writes: true, drains_all: true };
        if self.lanes[thread].phase == Phase::Running {
            if self.memory[mutex as usize] != thread as i64 + 1 {
                self.system.fail(id, Misuse::NotHolding);
                return;
            }
            self.emit(thread, interlocked, condvar);
            self.emit(thread, interlocked, mutex);
            self.set(condvar, self.memory[condvar as usize] | bit(thread));
            self.set(mutex, 0);
            self.lanes[thread].phase = Phase::Asleep;
        } else {
            self.emit(thread, interlocked, mutex);
            self.set(mutex, thread as i64 + 1);
            self.lanes[thread].phase = Phase::Running;
            self.system.resume(id, 0);
        }
    }

    /// Notes a read, and rests the thread if it has come round without effect.
    fn end_round(&mut self, thread: usize, before: Option<Token>, without_effect: bool) {
        let Some(before) = before else { return };
        let id = ThreadId::new(thread);
        if !without_effect {
            self.lanes[thread].last_read = NONE;
            return;
        }
        self.reads.push((before, self.writes, self.lanes[thread].last_read));
        self.lanes[thread].last_read = self.reads.len() as u32 - 1;
        if !self.system.jumped_back(id) {
            return;
        }
        let Some(now) = self.system.save(id) else { return };
        let mut read = self.lanes[thread].last_read;
        while read != NONE {
            let (token, writes, previous) = self.reads[read as usize];
            if writes != self.writes {
                return;
            }
            if self.system.same_state(id, token, now) {
                self.system.restore(id, token);
                self.lanes[thread].idle_at = self.writes;
                return;
            }
            read = previous;
        }
    }
}
