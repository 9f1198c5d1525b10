//! A worker's own copy of what it needs from the shared [`Components`]: the tables of the hot loop.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::config::{Commit, Config, Slot, Slots, Step};
use super::interner::{Components, Rows};

/// Configurations, memories and the way from one to the next, as far as this worker has met them.
#[derive(Debug)]
pub(crate) struct Tables<'s, 'p> {
    shared: &'s Mutex<Components<'p>>,
    threads: Vec<ThreadTables>,
    memories: MemoryTables,
}

/// The configurations of one thread; [`Step::Missing`] where this worker has not met one.
#[derive(Debug, Default)]
struct ThreadTables {
    configs: Vec<Config>,
    rows: Rows,
}

#[derive(Debug)]
struct MemoryTables {
    cells: usize,
    count: u32,
    /// Value numbers, one row for each memory.
    rows: Vec<u32>,
    /// Answers of [`Components::write`], the latest for each place.
    writes: Vec<WriteAnswer>,
}

#[derive(Debug, Clone, Copy)]
struct WriteAnswer {
    memory: u32,
    cell: u32,
    value: u32,
    to: u32,
}

const NO_ANSWER: WriteAnswer = WriteAnswer { memory: u32::MAX, cell: 0, value: 0, to: 0 };
const FEWEST_ANSWERS: usize = 1 << 8;
const MOST_ANSWERS: usize = 1 << 18;

impl<'s, 'p> Tables<'s, 'p> {
    pub fn new(shared: &'s Mutex<Components<'p>>, threads: usize, cells: usize) -> Self {
        Self {
            shared,
            threads: (0..threads).map(|_| ThreadTables::default()).collect(),
            memories: MemoryTables { cells, count: 0, rows: Vec::new(), writes: vec![NO_ANSWER; FEWEST_ANSWERS] },
        }
    }

    /// The shared components.
    pub fn components(&self) -> MutexGuard<'s, Components<'p>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn thread_count(&self) -> usize {
        self.threads.len()
    }

    /// Makes sure that [`Tables::config`] knows all parts of a state.
    pub fn load(&mut self, state: &[u32]) {
        if state[0] >= self.memories.count {
            self.fetch_memories();
        }
        for (thread, &config) in state[1..=self.threads.len()].iter().enumerate() {
            let known = self.threads[thread].configs.get(config as usize);
            if known.is_none_or(|config| matches!(config.step, Step::Missing)) {
                self.fetch_config(thread, config);
            }
        }
    }

    #[cold]
    fn fetch_memories(&mut self) {
        let components = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        self.memories.rows.extend_from_slice(components.memory_rows(self.memories.count));
        self.memories.count = components.memories();
        let answers = (self.memories.count as usize * 4).next_power_of_two().min(MOST_ANSWERS);
        if answers > self.memories.writes.len() {
            self.memories.writes = vec![NO_ANSWER; answers * 2];
        }
    }

    #[cold]
    fn fetch_config(&mut self, thread: usize, config: u32) {
        let ThreadTables { configs, rows } = &mut self.threads[thread];
        if configs.len() <= config as usize {
            configs.resize(config as usize + 1, Config::MISSING);
        }
        let mut components = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        configs[config as usize] = components.describe(thread, config, rows);
    }

    /// A configuration that [`Tables::load`] has fetched.
    pub fn config(&self, thread: usize, config: u32) -> &Config {
        &self.threads[thread].configs[config as usize]
    }

    pub fn commit(&self, thread: usize, index: u32) -> Commit {
        self.threads[thread].rows.commits[index as usize]
    }

    pub fn choice(&self, thread: usize, index: u32) -> Slot {
        self.threads[thread].rows.slots[index as usize]
    }

    /// The value number of a cell.
    pub fn value(&self, memory: u32, cell: u32) -> u32 {
        self.memories.rows[memory as usize * self.memories.cells + cell as usize]
    }

    /// What comes of a load or read-modify-write.
    pub fn resolve(&mut self, thread: usize, config: u32, cell: u32, slots: Slots, value: u32) -> Slot {
        if value < slots.len {
            let slot = self.threads[thread].rows.slots[(slots.start + value) as usize];
            if slot != Slot::UNKNOWN {
                return slot;
            }
        }
        self.fetch_slot(thread, config, cell, value)
    }

    #[cold]
    fn fetch_slot(&mut self, thread: usize, config: u32, cell: u32, value: u32) -> Slot {
        let slot = self.components().resolve(thread, config, cell, value);
        let ThreadTables { configs, rows } = &mut self.threads[thread];
        let (Step::Load { slots, .. } | Step::Rmw { slots, .. }) = &mut configs[config as usize].step else {
            unreachable!("invariant: only loads and read-modify-writes have slots");
        };
        if value >= slots.len {
            *slots = longer(*slots, value, &mut rows.slots);
        }
        rows.slots[(slots.start + value) as usize] = slot;
        slot
    }

    /// The memory after a write.
    pub fn write(&mut self, memory: u32, cell: u32, value: u32) -> u32 {
        let place = place(memory, cell, value) & (self.memories.writes.len() - 1);
        let answer = self.memories.writes[place];
        if (answer.memory, answer.cell, answer.value) == (memory, cell, value) {
            return answer.to;
        }
        let to = self.components().write(memory, cell, value);
        self.memories.writes[place] = WriteAnswer { memory, cell, value, to };
        to
    }

    /// Bytes held by this worker's tables.
    pub fn bytes(&self) -> usize {
        let thread = |thread: &ThreadTables| {
            thread.configs.capacity() * size_of::<Config>()
                + thread.rows.commits.capacity() * size_of::<Commit>()
                + thread.rows.slots.capacity() * size_of::<Slot>()
        };
        self.threads.iter().map(thread).sum::<usize>()
            + self.memories.rows.capacity() * size_of::<u32>()
            + self.memories.writes.capacity() * size_of::<WriteAnswer>()
    }
}

/// A row that has room for `value`, with what the old one held.
fn longer(old: Slots, value: u32, all: &mut Vec<Slot>) -> Slots {
    let start = all.len() as u32;
    let len = (value + 1).next_power_of_two();
    all.extend_from_within(old.start as usize..(old.start + old.len) as usize);
    all.resize((start + len) as usize, Slot::UNKNOWN);
    Slots { start, len }
}

fn place(memory: u32, cell: u32, value: u32) -> usize {
    let key = u64::from(memory) << 20 ^ u64::from(cell) << 10 ^ u64::from(value);
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize
}
