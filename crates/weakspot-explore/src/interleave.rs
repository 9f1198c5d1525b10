//! One interleaving at a time: the SC memory, the threads of a [`System`], and steps that can be taken back.
//!
//! This is what the bounded and the random modes run on. A step is one event of a thread. `choose` and leaving a
//! critical block are steps of their own for the reference machine but no places to switch: a choice follows the event
//! before it at once, and a thread stays in its critical block until it takes its next step (it could, so nothing is
//! lost).
//!
//! # Loops that wait
//! A thread that has gone round a loop without effect, and nobody wrote meanwhile, rests until somebody has written:
//! going round again before that would only read the same values again. An atomic that writes the value it has read (a
//! `swap` of a lock that is taken) has no effect either. If only such threads are left, the execution never ends.
//!
//! # Wake-ups without a notification
//! Where they may come, leaving the list of waiters is a step of its own. Who sleeps cannot go on, so switching away from
//! it is no preemption. How often a thread may come back to its `wait` without having done anything is bounded as in
//! exhaustive search: see `trust/wakeups.rs`.
//!
//! # Systems
//! All threads and cells are there from the start, as those of a program are; live code has modes of its own. Without
//! tokens, taking steps back means running the others again: see [`Interleaving::changed`].

mod again;

use weakspot_model::ids::ThreadId;
use weakspot_model::machine::Action;

use crate::graph::{NONE, Phase};
use crate::monitor::{Event, Operation};
use crate::system::{CellId, Judgement, Misuse, Pending, System, Token, Update};
use crate::trust::{MOST_FRUITLESS, bit};
pub use again::Changed;
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
    /// The waits since its last effect, all ended without a notification: a list in `waits`.
    last_wait: u32,
    /// How many rounds without effect led to the `wait` it is in.
    fruitless: u32,
    index: u32,
    /// Has it left a critical block and done nothing since?
    has_left: bool,
}

impl Lane {
    const START: Self = Self {
        phase: Phase::Running,
        idle_at: u64::MAX,
        last_read: NONE,
        last_wait: NONE,
        fruitless: 0,
        index: 0,
        has_left: false,
    };
}

/// The beginning of a `wait`.
#[derive(Debug, Clone, Copy)]
struct Waited {
    state: Token,
    /// How many events there were.
    events: u32,
    /// The one before, or [`NONE`].
    previous: u32,
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
    waits: u32,
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
    waits: Vec<Waited>,
    /// A thread may wake up without a notification.
    spurious_wakeups: bool,
    events: Vec<Event>,
    /// The events that have stayed since somebody last asked.
    kept: usize,
    actions: Vec<Action>,
    /// The thread's state before each action.
    tokens: Vec<Token>,
    /// What was done in each action; only of systems without tokens.
    did: Vec<Pending>,
    /// The system did not do the same again.
    changed: Option<Changed>,
    undo: Vec<Undo>,
}

impl<'s, S: System> Interleaving<'s, S> {
    /// Nothing has happened.
    pub fn new(system: &'s mut S) -> Self {
        let threads = system.threads();
        let mut this = Self {
            system,
            memory: Vec::new(),
            lanes: vec![Lane::START; threads],
            writes: 0,
            reads: Vec::new(),
            waits: Vec::new(),
            spurious_wakeups: false,
            events: Vec::new(),
            kept: 0,
            actions: Vec::new(),
            tokens: Vec::new(),
            did: Vec::new(),
            changed: None,
            undo: Vec::new(),
        };
        this.restart();
        this
    }

    /// Lets threads wake up without a notification.
    #[must_use]
    pub fn with_spurious_wakeups(mut self, may: bool) -> Self {
        self.spurious_wakeups = may;
        self
    }

    /// Back to the beginning.
    pub fn restart(&mut self) {
        self.system.restart();
        let initial = (0..self.system.cells()).map(|cell| self.system.initial(cell as CellId));
        self.memory = initial.collect();
        self.lanes.fill(Lane::START);
        self.writes = 0;
        self.reads.clear();
        self.waits.clear();
        self.events.clear();
        self.kept = 0;
        self.actions.clear();
        self.tokens.clear();
        self.did.clear();
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

    /// Is the thread about to choose a value, or whom to wake right after it has left a critical block? Then nobody comes
    /// in between.
    pub fn is_choosing(&self, thread: usize) -> bool {
        match self.system.pending(ThreadId::new(thread)) {
            Pending::Choose { .. } => true,
            Pending::Notify { condvar, all: false } => {
                self.lanes[thread].has_left && self.memory[condvar as usize] != 0
            }
            _ => false,
        }
    }

    /// Can the thread take a step, be it that it wakes up without a notification?
    pub fn can_move(&self, thread: usize) -> bool {
        self.is_enabled(thread) || self.can_leave(thread)
    }

    /// Does the thread sleep, and may it wake up without a notification?
    fn can_leave(&self, thread: usize) -> bool {
        let lane = &self.lanes[thread];
        self.spurious_wakeups && lane.fruitless < MOST_FRUITLESS && self.is_asleep(thread)
    }

    fn is_asleep(&self, thread: usize) -> bool {
        match self.system.pending(ThreadId::new(thread)) {
            Pending::Wait { condvar, .. } => self.memory[condvar as usize] & bit(thread) != 0,
            _ => false,
        }
    }

    /// Can the thread go on?
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
            enabled |= self.can_move(thread);
            idle |= !pending.is_last() && self.lanes[thread].idle_at == self.writes;
            idle |= self.spurious_wakeups && self.is_asleep(thread);
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
        let mut leaves = false;
        while self.system.pending(ThreadId::new(thread)) == Pending::LeaveCritical {
            self.act(thread, 0);
            leaves = true;
        }
        // What there is to choose after that nobody knew when this step's choice was made: it is the next step.
        if self.can_move(thread) && !(leaves && self.is_choosing(thread)) {
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
            waits: self.waits.len() as u32,
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
            self.waits.truncate(undo.waits as usize);
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
        let unasked = self.lanes[thread].phase != Phase::Running && self.is_asleep(thread);
        self.lanes[thread].has_left = pending == Pending::LeaveCritical;
        let step = Action::Step { thread: id, choice: self.machine_choice(pending, choice) };
        self.actions.push(if unasked { Action::Wake { thread: id } } else { step });
        self.tokens.push(before.unwrap_or(Token(0)));
        if before.is_none() {
            self.did.push(pending);
        }
        let interlocked = Operation::Atomic { writes: true, drains_all: true };
        let mut without_effect = false;
        match pending {
            Pending::Load(cell) => {
                self.emit(thread, Operation::Load, cell);
                without_effect = true;
                self.system.resume(id, self.memory[cell as usize]);
            }
            Pending::Store { cell, value } => {
                self.lanes[thread].last_wait = NONE;
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
            Pending::Wait { condvar, .. } if unasked => self.leave(thread, condvar),
            Pending::Wait { condvar, mutex } => self.wait(thread, condvar, mutex),
            Pending::Notify { condvar, all } => {
                self.lanes[thread].last_wait = NONE;
                let waiters = self.memory[condvar as usize];
                self.emit(thread, Operation::Atomic { writes: waiters != 0, drains_all: true }, condvar);
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

    /// An atomic; true if it changed nothing.
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
                let looks = self.system.looks(id);
                if looks {
                    self.emit(thread, Operation::Load, cell);
                }
                if written.is_some() || !looks {
                    self.emit(thread, Operation::Atomic { writes: written.is_some(), drains_all }, cell);
                }
                let changed = written.filter(|&value| value != current);
                if let Some(value) = changed {
                    self.set(cell, value);
                    self.lanes[thread].last_wait = NONE;
                }
                self.system.resume(id, result);
                changed.is_none()
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
            self.note_wait(thread);
            self.emit(thread, interlocked, condvar);
            self.emit(thread, interlocked, mutex);
            self.set(condvar, self.memory[condvar as usize] | bit(thread));
            self.set(mutex, 0);
            self.lanes[thread].phase = Phase::Asleep;
        } else {
            if self.lanes[thread].phase == Phase::Asleep {
                // A notification was its end.
                self.lanes[thread].last_wait = NONE;
            }
            self.emit(thread, interlocked, mutex);
            self.set(mutex, thread as i64 + 1);
            self.lanes[thread].phase = Phase::Running;
            self.system.resume(id, 0);
        }
    }

    /// A thread that sleeps leaves the list of waiters.
    fn leave(&mut self, thread: usize, condvar: CellId) {
        self.emit(thread, Operation::Atomic { writes: true, drains_all: true }, condvar);
        self.set(condvar, self.memory[condvar as usize] & !bit(thread));
        self.lanes[thread].phase = Phase::Woken;
    }

    /// A `wait` begins: how many rounds without effect have led here.
    fn note_wait(&mut self, thread: usize) {
        let id = ThreadId::new(thread);
        let (Some(state), true) = (self.system.save(id), self.spurious_wakeups) else { return };
        let mut fruitless = 0;
        let mut waited = self.lanes[thread].last_wait;
        while waited != NONE {
            let Waited { state: earlier, events, previous } = self.waits[waited as usize];
            fruitless += u32::from(self.system.same_state(id, earlier, state) && self.is_balanced(thread, events));
            waited = previous;
        }
        let lane = &mut self.lanes[thread];
        lane.fruitless = fruitless;
        self.waits.push(Waited { state, events: self.events.len() as u32, previous: lane.last_wait });
        lane.last_wait = self.waits.len() as u32 - 1;
    }

    /// Has the thread released, since there were so many events, what it has acquired, and the other way round? Since its
    /// last effect it has written nothing but mutexes, and condition variables to wait and to leave.
    fn is_balanced(&self, thread: usize, since: u32) -> bool {
        let writes = |event: &Event| matches!(event.operation, Operation::Atomic { writes: true, .. });
        let is_own = |event: &&Event| event.thread as usize == thread && writes(event);
        let mut cells: Vec<CellId> = self.events[since as usize..].iter().filter(is_own).map(|it| it.cell).collect();
        cells.sort_unstable();
        cells.chunk_by(|one, other| one == other).all(|of_cell| of_cell.len() % 2 == 0)
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
