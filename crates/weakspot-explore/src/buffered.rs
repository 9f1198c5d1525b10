//! The threads of a [`System`] on simulated store buffers.
//!
//! This is how the harm of a violation is shown for live code: the real code runs, its stores wait in buffers, and a
//! search decides when they reach memory. TSO has one buffer a thread, PSO one for each thread and cell, divided by
//! store-store fences. A load takes the youngest own pending store, else memory.
//!
//! | operation | TSO | PSO |
//! |---|---|---|
//! | atomic, exchange | waits until the own buffer is empty | the same, or until nothing is pending for its cell |
//! | full fence, mutex, condition variable, starting and ending threads | waits until the own buffer is empty | the same |
//! | store-store fence | – | begins a new segment |
//!
//! A thread that has gone round a marked loop while memory stayed as it was rests until memory changes. Where nobody else
//! can move, it goes on: a loop may count its rounds and end by itself. Only after [`MOST_ROUNDS`](crate::trust::MOST_ROUNDS) of them does it wait
//! for ever. A loop that is known to end by itself does not rest in its first rounds, so that all orders of these and of
//! what others do are possible.
//!
//! A thread that waits with a timeout, and has chosen not to time out, waits as long as anybody can move, and goes on
//! without what it waits for then. Who has no other limit on timeouts can be spared those that come to nothing: a wait that
//! has timed out does so again only when there is something new in memory (or the loop is known to end by itself).
//!
//! # Deliberately absent
//! No undoing: live code runs again from the start, though what the machine knows can be kept ([`Saved`]). What the searches
//! have in common is in [`Buffered`]; which move comes next is theirs.

mod fingerprint;
mod resting;
mod saved;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::FenceKind;

use crate::graph::Phase;
use crate::system::{CellId, Misuse, Pending, System, Token, UNBOUND, Update};
use crate::trust::{bit, mix};
pub use saved::Saved;

/// One move of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// A thread takes a step; a choice where there is one.
    Step {
        /// Which.
        thread: usize,
        /// The value chosen, the waiter woken, or 0.
        choice: i64,
    },
    /// A pending store of a thread reaches memory: the oldest that is to this cell.
    Commit {
        /// Which.
        thread: usize,
        /// The cell.
        cell: CellId,
    },
}

impl Move {
    /// Whose move it is.
    pub fn thread(self) -> usize {
        match self {
            Self::Step { thread, .. } | Self::Commit { thread, .. } => thread,
        }
    }
}

/// A pending store.
#[derive(Debug, Clone, Copy)]
struct Store {
    cell: CellId,
    value: i64,
    /// Which write it is: see [`Buffered::fingerprint`].
    name: u64,
    /// Store-store fences of its thread before it.
    segment: u32,
}

/// What the machine keeps of a thread.
#[derive(Debug, Clone, Default)]
struct Lane {
    buffer: Vec<Store>,
    segment: u32,
    phase: Phase,
    /// Steps so far.
    steps: u64,
    /// A hash of what it was given.
    history: u64,
    /// The version of memory when it last came round a loop that waits; it rests while that is the present one.
    idle_at: u64,
    /// The version of memory at the first event since it last came round a loop, or 0 if there was none.
    round_began_at: u64,
    /// What that event was.
    round_began_with: Option<Pending>,
    /// The version of memory when it last came round a loop.
    passed_at: u64,
    /// The marker it passed then.
    passed: Option<Token>,
    /// It has passed it twice in a row, and is about to do what it did before.
    repeats: bool,
    /// How often it has come round a loop since memory is as it is.
    rounds: u32,
    /// It waits with a timeout, and the time is over.
    is_late: bool,
    /// How often that was so.
    timeouts: u32,
    /// Where it has chosen to time out: the place, the state of [`Buffered::news`] then, and how often since.
    late_at: Vec<(Token, u64, u32)>,
}

impl Lane {
    /// Forgets everything but its memory.
    fn restart(&mut self) {
        let (mut buffer, mut late_at) = (std::mem::take(&mut self.buffer), std::mem::take(&mut self.late_at));
        buffer.clear();
        late_at.clear();
        *self = Self { buffer, late_at, ..Self::default() };
    }
}

/// How a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Every thread has ended.
    Complete,
    /// This thread has failed.
    Failed(usize),
    /// Nobody can move, and somebody waits for a lock, a notification or another thread.
    Deadlock,
    /// Only threads that wait in loops are left, and no store is pending.
    Livelock,
}

/// Threads, memory and store buffers.
#[derive(Debug)]
pub struct Buffered<'s, S: System> {
    system: &'s mut S,
    model: MemoryModel,
    memory: Vec<i64>,
    /// The write that each cell holds, or 0.
    writes: Vec<u64>,
    lanes: Vec<Lane>,
    /// Counts changes of memory, from 1.
    version: u64,
    bound: CellId,
    /// What threads are about to do, as far as it was asked for since they moved.
    about: Vec<Option<Pending>>,
    exact_rounds: u32,
    restless: bool,
    /// Counts changes of memory but for locks that are taken, waited with and released.
    news: u64,
    spares_timeouts: bool,
    /// How often a thread was roused, see [`Buffered::rest`].
    roused: u64,
}

impl<'s, S: System> Buffered<'s, S> {
    /// The machine at the beginning of a run.
    pub fn new(system: &'s mut S, model: MemoryModel) -> Self {
        let mut this = Self {
            system,
            model,
            memory: Vec::new(),
            writes: Vec::new(),
            lanes: Vec::new(),
            version: 1,
            bound: 0,
            about: Vec::new(),
            exact_rounds: 0,
            restless: false,
            news: 0,
            spares_timeouts: false,
            roused: 0,
        };
        this.restart();
        this
    }

    /// So many rounds of a loop that is known to end by itself are followed without a rest.
    #[must_use]
    pub fn with_exact_rounds(mut self, rounds: u32) -> Self {
        self.exact_rounds = rounds;
        self
    }

    /// Treats every loop as one that may end by itself.
    #[must_use]
    pub fn restless(mut self, restless: bool) -> Self {
        self.restless = restless;
        self
    }

    /// Waits that have timed out do not do so again unless there is something new.
    #[must_use]
    pub fn sparing_timeouts(mut self) -> Self {
        self.spares_timeouts = true;
        self
    }

    /// Back to the beginning.
    pub fn restart(&mut self) {
        self.system.restart();
        let cells = self.system.cells();
        self.memory.clear();
        self.memory.extend((0..cells).map(|cell| self.system.initial(cell as CellId)));
        self.writes.clear();
        self.writes.resize(cells, 0);
        self.bound = cells as CellId;
        self.lanes.iter_mut().for_each(Lane::restart);
        self.about.clear();
        (self.version, self.news) = (1, 0);
        self.widen();
    }

    #[inline]
    fn widen(&mut self) {
        let threads = self.system.threads();
        if threads != self.lanes.len() {
            self.lanes.resize(threads, Lane::default());
        }
    }

    /// The system.
    pub fn system(&mut self) -> &mut S {
        self.system
    }

    /// Number of threads so far.
    pub fn threads(&self) -> usize {
        self.lanes.len()
    }

    /// What memory holds.
    pub fn memory(&self, cell: CellId) -> i64 {
        self.memory[cell as usize]
    }

    /// Number of stores that a thread has pending.
    pub fn pending_stores(&self, thread: usize) -> usize {
        self.lanes[thread].buffer.len()
    }

    /// What a thread is about to do; its cell has a number.
    #[inline]
    pub fn pending(&mut self, thread: usize) -> Pending {
        match self.about.get(thread) {
            Some(&Some(pending)) => pending,
            _ => self.ask(thread),
        }
    }

    fn ask(&mut self, thread: usize) -> Pending {
        let id = ThreadId::new(thread);
        let mut pending = self.system.pending(id);
        match pending {
            // Another thread may start it, or be the first to use the cell.
            Pending::Absent | Pending::Await(UNBOUND) => return pending,
            _ if pending.is_unbound() => {
                self.system.bind(id, self.bound);
                self.memory.push(self.system.initial(self.bound));
                self.writes.push(0);
                self.bound += 1;
                pending = self.system.pending(id);
            }
            _ => {}
        }
        if self.about.len() <= thread {
            self.about.resize(thread + 1, None);
        }
        self.about[thread] = Some(pending);
        pending
    }

    /// The thread has moved.
    #[inline]
    fn forget(&mut self, thread: ThreadId) {
        if let Some(about) = self.about.get_mut(thread.index()) {
            *about = None;
        }
    }

    /// Is this a step that others cannot see the moment of? It can be taken at once.
    pub fn is_quiet(&mut self, thread: usize) -> bool {
        let quiet = match self.pending(thread) {
            Pending::Signal(_) | Pending::Await(_) | Pending::Fence(_) => true,
            // Into the own buffer: what others see is the commit.
            Pending::Store { .. } => self.model != MemoryModel::Sc,
            _ => false,
        };
        quiet && self.can_step(thread)
    }

    /// Can the thread take a step?
    pub fn can_step(&mut self, thread: usize) -> bool {
        let pending = self.pending(thread);
        let lane = &self.lanes[thread];
        let empty = lane.buffer.is_empty();
        match pending {
            Pending::Load(_) | Pending::Store { .. } | Pending::Choose { .. } | Pending::LeaveCritical => {
                lane.idle_at != self.version
            }
            Pending::InterlockedStore { .. } | Pending::Unlock(_) | Pending::Notify { .. } | Pending::Signal(_) => {
                empty
            }
            Pending::TryLock(_) => empty && lane.idle_at != self.version,
            Pending::Fence(FenceKind::StoreStore) => lane.idle_at != self.version,
            Pending::Fence(_) => empty && lane.idle_at != self.version,
            Pending::Lock(mutex) => empty && self.memory[mutex as usize] == 0,
            Pending::Wait { condvar, mutex } => {
                empty
                    && (lane.phase == Phase::Running
                        || self.memory[condvar as usize] & bit(thread) == 0 && self.memory[mutex as usize] == 0)
            }
            Pending::Await(cell) => empty && self.memory.get(cell as usize).is_some_and(|&written| written != 0),
            Pending::Rmw { cell, drains_all } => {
                let drained = empty
                    || self.model == MemoryModel::Pso
                        && !drains_all
                        && lane.buffer.iter().all(|store| store.cell != cell);
                let update = || self.system.update(ThreadId::new(thread), self.found_by_atomic(thread, cell));
                (drained || self.only_looks(thread, cell))
                    && lane.idle_at != self.version
                    && (lane.is_late || update() != Update::Blocks)
            }
            Pending::Absent
            | Pending::Ended
            | Pending::Spinning
            | Pending::Pruned
            | Pending::Failed
            | Pending::Bounded => false,
        }
    }

    /// Can a pending store of this thread to this cell reach memory?
    pub fn can_commit(&self, thread: usize, cell: CellId) -> bool {
        let buffer = &self.lanes[thread].buffer;
        let Some(first) = buffer.first() else { return false };
        let Some(store) = buffer.iter().find(|store| store.cell == cell) else { return false };
        if self.model == MemoryModel::Pso { store.segment == first.segment } else { first.cell == cell }
    }

    /// How many stores of a thread stand before its oldest one to a cell. Unlike the number of the cell, that is the same
    /// whenever the same moves are made.
    pub fn place_in_buffer(&self, thread: usize, cell: CellId) -> Option<usize> {
        self.lanes[thread].buffer.iter().position(|store| store.cell == cell)
    }

    /// The cell of the store of a thread that so many stand before.
    pub fn cell_in_buffer(&self, thread: usize, place: usize) -> Option<CellId> {
        self.lanes[thread].buffer.get(place).map(|store| store.cell)
    }

    /// Lets all stores of a thread reach memory.
    pub fn commit_all(&mut self, thread: usize) {
        while let Some(&Store { cell, .. }) = self.lanes[thread].buffer.first() {
            self.commit(thread, cell);
        }
    }

    /// All moves there are, steps first.
    pub fn moves(&mut self, into: &mut Vec<Move>) {
        into.clear();
        for thread in 0..self.lanes.len() {
            if self.can_step(thread) {
                self.push_steps(thread, into);
            }
        }
        for thread in 0..self.lanes.len() {
            self.push_commits(thread, into);
        }
    }

    fn push_steps(&mut self, thread: usize, into: &mut Vec<Move>) {
        match self.pending(thread) {
            Pending::Choose { lo, .. } if self.spares_timeouts && !self.may_time_out_again(thread) => {
                into.push(Move::Step { thread, choice: lo });
            }
            Pending::Choose { lo, hi } => into.extend((lo..=hi).map(|choice| Move::Step { thread, choice })),
            Pending::Notify { condvar, all: false } if self.memory[condvar as usize] != 0 => {
                let waiters = self.memory[condvar as usize];
                let waiting = (0..self.lanes.len()).filter(|&waiter| waiters & bit(waiter) != 0);
                into.extend(waiting.map(|waiter| Move::Step { thread, choice: waiter as i64 }));
            }
            _ => into.push(Move::Step { thread, choice: 0 }),
        }
    }

    fn push_commits(&mut self, thread: usize, into: &mut Vec<Move>) {
        let start = into.len();
        for index in 0..self.lanes[thread].buffer.len() {
            let cell = self.lanes[thread].buffer[index].cell;
            let commit = Move::Commit { thread, cell };
            if !into[start..].contains(&commit) && self.can_commit(thread, cell) {
                into.push(commit);
            }
        }
    }

    /// Makes a move that is possible.
    pub fn make(&mut self, what: Move) {
        match what {
            Move::Commit { thread, cell } => self.commit(thread, cell),
            Move::Step { thread, choice } => self.step(thread, choice),
        }
    }

    fn commit(&mut self, thread: usize, cell: CellId) {
        let buffer = &mut self.lanes[thread].buffer;
        let Some(at) = buffer.iter().position(|store| store.cell == cell) else { return };
        let store = buffer.remove(at);
        self.set(store.cell, store.value, store.name);
        self.system.committed(ThreadId::new(thread), cell);
    }

    fn set(&mut self, cell: CellId, value: i64, name: u64) {
        self.memory[cell as usize] = value;
        self.writes[cell as usize] = name;
        (self.version, self.news) = (self.version + 1, self.news + 1);
    }

    /// The same for a lock, or those who wait.
    fn set_lock(&mut self, cell: CellId, value: i64, name: u64) {
        self.set(cell, value, name);
        self.news -= 1;
    }

    /// What a value is called in fingerprints: addresses differ from run to run.
    fn name_of(value: i64) -> u64 {
        if (-(1 << 31)..1 << 32).contains(&value) { value as u64 } else { u64::MAX }
    }

    /// The write that a thread is about to read, if it reads. What it then happens after depends on that, too, and not on
    /// the value alone.
    fn source_of(&mut self, thread: usize) -> u64 {
        match self.pending(thread) {
            Pending::Load(cell)
            | Pending::Rmw { cell, .. }
            | Pending::Lock(cell)
            | Pending::TryLock(cell)
            | Pending::Wait { condvar: cell, .. } => {
                let own = self.lanes[thread].buffer.iter().rev().find(|store| store.cell == cell);
                own.map_or(self.writes[cell as usize], |store| store.name)
            }
            _ => 0,
        }
    }

    fn step(&mut self, thread: usize, choice: i64) {
        let id = ThreadId::new(thread);
        let source = self.source_of(thread);
        let lane = &mut self.lanes[thread];
        lane.steps += 1;
        lane.history = mix(mix(lane.history, choice as u64), source);
        let writer = mix(thread as u64, lane.steps);
        let name = |value: i64| mix(writer, Self::name_of(value));
        let result = match self.pending(thread) {
            Pending::Load(cell) => self.visible(thread, cell),
            Pending::Store { cell, value } => {
                let segment = self.lanes[thread].segment;
                self.lanes[thread].buffer.push(Store { cell, value, segment, name: name(value) });
                0
            }
            Pending::InterlockedStore { cell, value } => {
                self.set(cell, value, name(value));
                0
            }
            Pending::Rmw { cell, .. } => return self.update(thread, cell, writer),
            Pending::Fence(FenceKind::StoreStore) => {
                self.lanes[thread].segment += 1;
                0
            }
            Pending::Lock(mutex) => {
                self.set_lock(mutex, 1, name(1));
                0
            }
            Pending::TryLock(mutex) => {
                let free = self.memory[mutex as usize] == 0;
                if free {
                    self.set_lock(mutex, 1, name(1));
                } else {
                    // Who has the lock has been seen.
                    self.news += 1;
                }
                i64::from(free)
            }
            Pending::Unlock(mutex) => {
                self.set_lock(mutex, 0, name(0));
                0
            }
            Pending::Wait { condvar, mutex } => return self.wait(thread, condvar, mutex, writer),
            Pending::Notify { condvar, all } => {
                let waiters = self.memory[condvar as usize];
                let left = if all { 0 } else { waiters & !bit(choice as usize) };
                self.set(condvar, left, name(left));
                0
            }
            Pending::Signal(cell) => {
                self.set(cell, 1, name(1));
                0
            }
            Pending::Choose { lo, .. } => {
                if choice != lo && self.spares_timeouts {
                    self.note_chosen_timeout(thread);
                }
                choice
            }
            _ => 0,
        };
        self.go_on(id, result);
    }

    /// The value a thread sees: its own youngest pending store, else memory.
    fn visible(&self, thread: usize, cell: CellId) -> i64 {
        let own = self.lanes[thread].buffer.iter().rev().find(|store| store.cell == cell);
        own.map_or(self.memory[cell as usize], |store| store.value)
    }

    /// The value that the atomic of a thread finds: one that looks first may find what is in the thread's own buffer.
    fn found_by_atomic(&self, thread: usize, cell: CellId) -> i64 {
        if self.system.looks(ThreadId::new(thread)) { self.visible(thread, cell) } else { self.memory[cell as usize] }
    }

    /// Does the atomic of a thread look, and come to nothing? Then it does not wait for the buffer.
    fn only_looks(&self, thread: usize, cell: CellId) -> bool {
        let id = ThreadId::new(thread);
        self.system.looks(id)
            && matches!(self.system.update(id, self.visible(thread, cell)), Update::Acts { written: None, .. })
    }

    fn update(&mut self, thread: usize, cell: CellId, writer: u64) {
        let id = ThreadId::new(thread);
        let current = self.found_by_atomic(thread, cell);
        match self.system.update(id, current) {
            Update::Fails => {
                self.system.fail(id, Misuse::Update(current));
                self.forget(id);
            }
            Update::Blocks if self.lanes[thread].is_late => {
                self.lanes[thread].is_late = false;
                self.go_on(id, current);
            }
            Update::Blocks => {}
            Update::Acts { result, written } => {
                self.lanes[thread].is_late = false;
                // A test-and-set that changes nothing is no news to others that wait.
                if let Some(value) = written.filter(|&value| value != current) {
                    self.set(cell, value, mix(writer, Self::name_of(value)));
                }
                self.go_on(id, result);
            }
        }
    }

    fn wait(&mut self, thread: usize, condvar: CellId, mutex: CellId, writer: u64) {
        if self.lanes[thread].phase == Phase::Running {
            let waiters = self.memory[condvar as usize] | bit(thread);
            self.set_lock(condvar, waiters, mix(writer, waiters as u64));
            self.set_lock(mutex, 0, mix(writer, 0));
            self.lanes[thread].phase = Phase::Asleep;
        } else {
            self.set_lock(mutex, 1, mix(writer, 1));
            self.lanes[thread].phase = Phase::Running;
            let is_late = std::mem::take(&mut self.lanes[thread].is_late);
            self.go_on(ThreadId::new(thread), i64::from(is_late));
        }
    }

    fn go_on(&mut self, thread: ThreadId, result: i64) {
        let pending = self.pending(thread.index());
        let lane = &mut self.lanes[thread.index()];
        lane.history = mix(lane.history, Self::name_of(result));
        if lane.round_began_at == 0 {
            (lane.round_began_at, lane.round_began_with) = (self.version, Some(pending));
        }
        self.system.resume(thread, result);
        self.forget(thread);
        self.widen();
        if self.system.jumped_back(thread) {
            self.end_round(thread);
        }
    }
}
