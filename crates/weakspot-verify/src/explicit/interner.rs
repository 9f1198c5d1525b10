//! The parts states are made of, each stored once and named by a number.
//!
//! A state of the machine is `[memory, configuration of thread 0, configuration of thread 1, …]`, each a `u32`:
//! * a **memory** is one value number for each cell; cells are the locations, then the owners of the mutexes
//!   (0: free, `t + 1`: held by thread `t`), so that locking is a write like any other;
//! * a **configuration** is a local state ([`crate::threads`]) with a store buffer.
//!
//! There is one [`Components`] for a whole search, behind a lock. Workers keep what they have asked for in their own
//! [`super::tables`], so the lock is taken once for each new component and worker, not once for each state.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use weakspot_model::buffer::{Entry, MemoryModel, StoreBuffer};
use weakspot_model::ids::{Loc, MutexId, ThreadId};
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::local::{self, Pause};
use weakspot_model::machine::{Phase, State, ThreadState};

use super::ExplicitOptions;
use super::access::{FutureAccesses, ObjectNumbers};
use super::config::{Commit, Config, Objects, Slot, Slots, Step, Target};
use crate::threads::{Local, LocalId, Successor, ThreadAutomaton};

/// Values by number, numbers by value.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    items: Vec<T>,
    index: HashTable<u32>,
}

impl<T: Hash + Eq> Interner<T> {
    fn new() -> Self {
        Self { items: Vec::new(), index: HashTable::new() }
    }

    fn intern(&mut self, item: T) -> u32 {
        let items = &self.items;
        let hash = FxBuildHasher.hash_one(&item);
        if let Some(&id) = self.index.find(hash, |&id| items[id as usize] == item) {
            return id;
        }
        let id = self.items.len() as u32;
        assert!(id < Target::MAX_CONFIGS, "invariant: memory ends before numbers do");
        self.items.push(item);
        let items = &self.items;
        self.index.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(&items[id as usize]));
        id
    }

    fn get(&self, id: u32) -> &T {
        &self.items[id as usize]
    }

    fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<T>() + self.index.capacity() * (size_of::<u32>() + 1)
    }
}

/// Memories: rows of value numbers, one for each cell.
#[derive(Debug)]
struct Memories {
    cells: usize,
    rows: Vec<u32>,
    count: u32,
    index: HashTable<u32>,
}

impl Memories {
    fn row(&self, id: u32) -> &[u32] {
        &self.rows[id as usize * self.cells..(id as usize + 1) * self.cells]
    }

    fn intern(&mut self, row: &[u32]) -> u32 {
        let hash = FxBuildHasher.hash_one(row);
        if let Some(&id) = self.index.find(hash, |&id| self.row(id) == row) {
            return id;
        }
        let id = self.count;
        self.rows.extend_from_slice(row);
        self.count += 1;
        let Self { cells, rows, index, .. } = self;
        let row_of = |id: u32| &rows[id as usize * *cells..(id as usize + 1) * *cells];
        index.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(row_of(id)));
        id
    }
}

/// Rows that the description of a configuration adds to a worker's tables.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub commits: Vec<Commit>,
    pub slots: Vec<Slot>,
}

/// Everything states are made of.
#[derive(Debug)]
pub(crate) struct Components<'p> {
    program: &'p Program,
    model: MemoryModel,
    bound: usize,
    numbers: ObjectNumbers,
    automata: Vec<ThreadAutomaton<'p>>,
    futures: Vec<FutureAccesses>,
    buffers: Interner<StoreBuffer>,
    /// Heap bytes of the buffers.
    buffer_bytes: usize,
    /// For each thread: local state and buffer.
    configs: Vec<Interner<(LocalId, u32)>>,
    /// For each cell: its values.
    values: Vec<Interner<i64>>,
    memories: Memories,
    /// The longest buffer of a configuration that was described, that is, of a state that was expanded.
    pub max_buffer: usize,
    /// Some store waited for the bound.
    pub bound_reached: bool,
}

impl<'p> Components<'p> {
    pub fn new(program: &'p Program, options: &ExplicitOptions) -> Self {
        let numbers = ObjectNumbers::of(program);
        let mut buffers = Interner::new();
        buffers.intern(StoreBuffer::new());
        Self {
            program,
            model: options.model,
            bound: options.buffer,
            numbers,
            automata: program.thread_ids().map(|thread| ThreadAutomaton::new(program, thread)).collect(),
            futures: program.threads.iter().map(|thread| FutureAccesses::of(thread, numbers)).collect(),
            buffers,
            buffer_bytes: 0,
            configs: program.threads.iter().map(|_| Interner::new()).collect(),
            values: initial_values(program),
            memories: Memories { cells: numbers.cells() as usize, rows: Vec::new(), count: 0, index: HashTable::new() },
            max_buffer: 0,
            bound_reached: false,
        }
    }

    /// The numbers of a machine state: memory first, then one for each thread.
    pub fn intern(&mut self, state: &State) -> Vec<u32> {
        let owner = |owner: &Option<ThreadId>| owner.map_or(0, |thread| i64::from(thread.0) + 1);
        let cells = state.memory.iter().copied().chain(state.owners.iter().map(owner));
        let row: Vec<u32> = cells.zip(&mut self.values).map(|(value, values)| values.intern(value)).collect();
        let mut numbers = vec![self.memories.intern(&row)];
        for (index, thread) in state.threads.iter().enumerate() {
            let ThreadState { local, pause, phase, buffer } = thread.clone();
            let local = self.automata[index].intern(Local { state: local, pause, phase });
            let buffer = self.intern_buffer(buffer);
            numbers.push(self.configs[index].intern((local, buffer)));
        }
        numbers
    }

    /// The machine state behind numbers. Dead registers are 0.
    pub fn materialize(&self, numbers: &[u32]) -> State {
        let row = self.memories.row(numbers[0]);
        let value = |cell: usize| *self.values[cell].get(row[cell]);
        let locations = self.program.locations.len();
        let thread = |(index, &config): (usize, &u32)| {
            let &(local, buffer) = self.configs[index].get(config);
            let Local { state, pause, phase } = self.automata[index].local(local).clone();
            ThreadState { local: state, pause, phase, buffer: self.buffers.get(buffer).clone() }
        };
        let owner = |cell: usize| (value(cell) > 0).then(|| ThreadId::new(value(cell) as usize - 1));
        State {
            memory: (0..locations).map(value).collect(),
            threads: numbers[1..=self.program.threads.len()].iter().enumerate().map(thread).collect(),
            owners: (locations..row.len()).map(owner).collect(),
        }
    }

    /// How many memories there are.
    pub fn memories(&self) -> u32 {
        self.memories.count
    }

    /// The value numbers of all memories from `first` on.
    pub fn memory_rows(&self, first: u32) -> &[u32] {
        &self.memories.rows[first as usize * self.memories.cells..]
    }

    /// The memory after a write.
    pub fn write(&mut self, memory: u32, cell: u32, value: u32) -> u32 {
        let mut row = self.memories.row(memory).to_vec();
        row[cell as usize] = value;
        self.memories.intern(&row)
    }

    /// What comes of a load or a read-modify-write when its cell has this value.
    pub fn resolve(&mut self, thread: usize, config: u32, cell: u32, value: u32) -> Slot {
        let &(local, buffer) = self.configs[thread].get(config);
        let current = *self.values[cell as usize].get(value);
        let Pause::Rmw { loc, op, .. } = self.automata[thread].pause(local) else {
            return Slot { to: self.resume(thread, local, current, buffer), written: Slot::NOTHING };
        };
        match local::rmw(op, current, loc, &self.program.locations) {
            Err(_) => Slot { to: Target::FAULT, written: Slot::NOTHING },
            Ok((result, written)) => Slot {
                to: self.resume(thread, local, result, buffer),
                written: written.map_or(Slot::NOTHING, |value| self.values[cell as usize].intern(value)),
            },
        }
    }

    /// Describes a configuration; the rows it needs go to the end of `rows`.
    pub fn describe(&mut self, thread: usize, config: u32, rows: &mut Rows) -> Config {
        let &(local, buffer) = self.configs[thread].get(config);
        let pc = self.automata[thread].pc(local);
        let pause = self.automata[thread].pause(local);
        let code = &self.program.threads[thread];
        let future = self.futures[thread].ahead_of(code, pc, pause, self.numbers);
        self.max_buffer = self.max_buffer.max(self.buffers.get(buffer).len());
        let step = self.describe_step(thread, local, buffer, rows);
        self.bound_reached |= step == Step::Full;
        Config {
            step,
            commits: self.describe_commits(thread, local, buffer, rows),
            inside: self.automata[thread].is_inside(local),
            ended: pause == Pause::End,
            held: stores(self.buffers.get(buffer)).fold(Objects::NONE, |all, loc| all.with(Objects::only(loc.0))),
            will_read: future.reads,
            will_write: future.writes,
        }
    }

    fn describe_commits(&mut self, thread: usize, local: LocalId, buffer: u32, rows: &mut Rows) -> Slots {
        let start = rows.commits.len() as u32;
        let before = self.buffers.get(buffer).clone();
        for loc in before.committable(self.model) {
            let mut after = before.clone();
            let value = after.commit(loc).expect("invariant: only committable stores are committed");
            let value = self.values[loc.index()].intern(value);
            let after = self.intern_buffer(after);
            let to = self.target(thread, local, false, after);
            rows.commits.push(Commit { cell: loc.0, value, to });
        }
        Slots { start, len: rows.commits.len() as u32 - start }
    }

    fn describe_step(&mut self, thread: usize, local: LocalId, buffer: u32, rows: &mut Rows) -> Step {
        let mine = thread as u32 + 1;
        match self.automata[thread].local(local).phase {
            Phase::Running => {}
            Phase::Waiting(condvar) => {
                let Pause::Wait { mutex, .. } = self.automata[thread].pause(local) else {
                    unreachable!("invariant: a waiting thread rests at its wait");
                };
                let woken = self.automata[thread].in_phase(local, Phase::Reacquiring(mutex));
                let woken = self.target(thread, woken, false, buffer);
                return Step::Asleep { condvar: self.numbers.condvar(condvar), woken };
            }
            Phase::Reacquiring(mutex) => {
                let to = self.resume(thread, local, 0, buffer);
                return Step::Lock { cell: self.numbers.mutex(mutex), mine, to };
            }
        }
        let pause = self.automata[thread].pause(local);
        if let Some(blocked) = self.blocked_by_own_buffer(pause, buffer) {
            return blocked;
        }
        match pause {
            Pause::Load { loc } => match self.buffers.get(buffer).forward(loc) {
                Some(value) => Step::Forward { cell: loc.0, to: self.resume(thread, local, value, buffer) },
                None => Step::Load { cell: loc.0, slots: self.unknown_slots(loc, rows) },
            },
            Pause::Store { loc, value } if self.model == MemoryModel::Sc => {
                let to = self.resume(thread, local, 0, buffer);
                Step::Write { cell: loc.0, value: self.values[loc.index()].intern(value), to }
            }
            Pause::Store { loc, value } => {
                let buffer = self.changed(buffer, |buffer, model| buffer.store(model, loc, value));
                Step::Local { to: self.resume(thread, local, 0, buffer) }
            }
            Pause::Rmw { loc, .. } => Step::Rmw { cell: loc.0, slots: self.unknown_slots(loc, rows) },
            Pause::Fence(FenceKind::StoreStore) => {
                let buffer = self.changed(buffer, StoreBuffer::fence_stores);
                Step::Local { to: self.resume(thread, local, 0, buffer) }
            }
            Pause::Fence(_) | Pause::LeaveCritical => Step::Local { to: self.resume(thread, local, 0, buffer) },
            Pause::Choose { lo, hi } => {
                let start = rows.slots.len() as u32;
                for value in lo..=hi {
                    let to = self.resume(thread, local, value, buffer);
                    rows.slots.push(Slot { to, written: Slot::NOTHING });
                }
                Step::Choose { lo, targets: Slots { start, len: rows.slots.len() as u32 - start } }
            }
            Pause::Lock(mutex) => {
                Step::Lock { cell: self.numbers.mutex(mutex), mine, to: self.resume(thread, local, 0, buffer) }
            }
            Pause::Unlock(mutex) => {
                Step::Unlock { cell: self.numbers.mutex(mutex), mine, to: self.resume(thread, local, 0, buffer) }
            }
            Pause::Wait { condvar, mutex } => self.describe_wait(thread, local, buffer, (condvar, mutex)),
            Pause::Notify { condvar, all } => {
                let to = self.resume(thread, local, 0, buffer);
                Step::Notify { condvar: self.numbers.condvar(condvar), all, to }
            }
            Pause::Spin | Pause::End | Pause::ThreadRegister { .. } => Step::Never,
        }
    }

    fn describe_wait(
        &mut self,
        thread: usize,
        local: LocalId,
        buffer: u32,
        (condvar, mutex): (weakspot_model::ids::CondvarId, MutexId),
    ) -> Step {
        let asleep = self.automata[thread].in_phase(local, Phase::Waiting(condvar));
        Step::Wait {
            cell: self.numbers.mutex(mutex),
            mine: thread as u32 + 1,
            condvar: self.numbers.condvar(condvar),
            to: self.target(thread, asleep, false, buffer),
        }
    }

    /// What the event waits for in the thread's own buffer, if it does (`Machine::is_ready`, and the bound).
    fn blocked_by_own_buffer(&self, pause: Pause, buffer: u32) -> Option<Step> {
        let buffer = self.buffers.get(buffer);
        match pause {
            Pause::Load { .. } | Pause::Choose { .. } | Pause::LeaveCritical => None,
            Pause::Fence(FenceKind::StoreStore) | Pause::Spin | Pause::End | Pause::ThreadRegister { .. } => None,
            Pause::Store { .. } => {
                let full = self.model != MemoryModel::Sc && buffer.len() >= self.bound;
                full.then_some(Step::Full)
            }
            Pause::Rmw { loc, drains_all: false, .. } if self.model == MemoryModel::Pso => {
                buffer.holds(loc).then_some(Step::DrainCell { cell: loc.0 })
            }
            Pause::Rmw { .. }
            | Pause::Fence(_)
            | Pause::Lock(_)
            | Pause::Unlock(_)
            | Pause::Wait { .. }
            | Pause::Notify { .. } => (!buffer.is_empty()).then_some(Step::Drain),
        }
    }

    fn unknown_slots(&self, loc: Loc, rows: &mut Rows) -> Slots {
        let start = rows.slots.len() as u32;
        let len = self.values[loc.index()].items.len().next_power_of_two() as u32;
        rows.slots.resize((start + len) as usize, Slot::UNKNOWN);
        Slots { start, len }
    }

    fn changed(&mut self, buffer: u32, change: impl FnOnce(&mut StoreBuffer, MemoryModel)) -> u32 {
        let mut buffer = self.buffers.get(buffer).clone();
        change(&mut buffer, self.model);
        self.intern_buffer(buffer)
    }

    fn intern_buffer(&mut self, buffer: StoreBuffer) -> u32 {
        let bytes = size_of_val(buffer.entries());
        let before = self.buffers.items.len();
        let id = self.buffers.intern(buffer);
        if self.buffers.items.len() > before {
            self.buffer_bytes += bytes;
        }
        id
    }

    fn resume(&mut self, thread: usize, local: LocalId, result: i64, buffer: u32) -> Target {
        match self.automata[thread].resume(local, result) {
            Successor::Paused { to, jumped_back } => self.target(thread, to, jumped_back, buffer),
            Successor::Pruned => Target::PRUNED,
            Successor::Failed(_) => Target::FAULT,
        }
    }

    fn target(&mut self, thread: usize, local: LocalId, jumped_back: bool, buffer: u32) -> Target {
        let config = self.configs[thread].intern((local, buffer));
        Target::new(config, jumped_back, self.automata[thread].is_inside(local))
    }

    /// Bytes held by the tables.
    pub fn bytes(&self) -> usize {
        self.automata.iter().map(ThreadAutomaton::bytes).sum::<usize>()
            + self.buffers.bytes()
            + self.buffer_bytes
            + self.configs.iter().map(Interner::bytes).sum::<usize>()
            + self.values.iter().map(Interner::bytes).sum::<usize>()
            + self.memories.rows.capacity() * size_of::<u32>()
            + self.memories.index.capacity() * (size_of::<u32>() + 1)
    }
}

/// Initial values have number 0; a mutex has all its possible owners from the start, so that number and value agree.
fn initial_values(program: &Program) -> Vec<Interner<i64>> {
    let mut values = Vec::new();
    for location in &program.locations {
        let mut cell = Interner::new();
        cell.intern(location.init);
        values.push(cell);
    }
    for _ in &program.mutexes {
        let mut cell = Interner::new();
        for owner in 0..=program.threads.len() as i64 {
            cell.intern(owner);
        }
        values.push(cell);
    }
    values
}

fn stores(buffer: &StoreBuffer) -> impl Iterator<Item = Loc> + '_ {
    buffer.entries().iter().filter_map(|entry| match entry {
        Entry::Store { loc, .. } => Some(*loc),
        Entry::StoreFence => None,
    })
}
