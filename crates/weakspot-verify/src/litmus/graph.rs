//! The events of one execution, and everything about them that does not depend on what is read.

use weakspot_model::axioms::preserves;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::trace::{Cell, Class};

use super::path::{Check, Path, Value};

/// No such event.
pub(super) const NONE: u32 = u32::MAX;

/// One event.
#[derive(Debug, Clone, Copy)]
pub(super) struct GraphEvent {
    pub class: Class,
    /// Whose event: index of the thread.
    pub thread: u32,
    /// What it writes.
    pub written: Option<Value>,
    /// The thread's last write to the same cell before this event, or [`NONE`].
    pub write_before: u32,
    /// The thread's first write to the same cell after this event, or [`NONE`].
    pub write_after: u32,
    /// The thread's last read of the same cell before this event that does not write, or [`NONE`].
    pub read_before: u32,
}

impl GraphEvent {
    /// A store whose own thread may read it before anybody else.
    pub fn is_plain_store(&self) -> bool {
        matches!(self.class, Class::Store(_))
    }
}

/// The accesses of one location.
#[derive(Debug, Clone, Default)]
pub(super) struct Accesses {
    /// Events that write, thread by thread in program order.
    pub writes: Vec<u32>,
    /// Events that read and do not write, thread by thread in program order.
    pub reads: Vec<u32>,
}

/// One path of each thread, put together.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub model: Option<MemoryModel>,
    /// Thread by thread, in program order.
    pub events: Vec<GraphEvent>,
    /// The first event of each thread, and the number of all events at the end.
    pub first: Vec<u32>,
    /// The accesses of each location.
    pub accesses: Vec<Accesses>,
    /// What has to be true of the values: (thread, check), each thread's in program order.
    pub checks: Vec<(u32, Check)>,
    /// The registers of all threads at the end, one thread after the other.
    pub registers: Vec<Value>,
    /// The first register of each thread.
    pub first_register: Vec<u32>,
}

impl Graph {
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Puts the paths together.
    pub fn build<'p>(&mut self, model: MemoryModel, locations: usize, paths: impl Iterator<Item = &'p Path>) {
        self.clear(model, locations);
        for (thread, path) in (0..).zip(paths) {
            self.first.push(self.events.len() as u32);
            self.first_register.push(self.registers.len() as u32);
            self.checks.extend(path.checks.iter().map(|&check| (thread, check)));
            self.registers.extend_from_slice(&path.registers);
            for event in &path.events {
                let id = self.events.len() as u32;
                if let Some(Cell::Memory(loc)) = event.class.cell() {
                    let accesses = &mut self.accesses[loc.index()];
                    let list = if event.written.is_some() { &mut accesses.writes } else { &mut accesses.reads };
                    list.push(id);
                }
                self.events.push(GraphEvent {
                    class: event.class,
                    thread,
                    written: event.written,
                    write_before: NONE,
                    write_after: NONE,
                    read_before: NONE,
                });
            }
        }
        self.first.push(self.events.len() as u32);
        self.link_accesses();
    }

    fn clear(&mut self, model: MemoryModel, locations: usize) {
        self.model = Some(model);
        self.events.clear();
        self.first.clear();
        self.checks.clear();
        self.registers.clear();
        self.first_register.clear();
        self.accesses.resize_with(locations, Accesses::default);
        for accesses in &mut self.accesses {
            accesses.writes.clear();
            accesses.reads.clear();
        }
    }

    /// Finds the neighbours of each access in its own thread.
    fn link_accesses(&mut self) {
        for accesses in &self.accesses {
            link(&mut self.events, &accesses.writes, &accesses.reads);
        }
    }

    /// Writes the transitive closure of the program order that `model` keeps: row `i`, of `W` words, holds the events
    /// that come after event `i`.
    pub fn program_order<const W: usize>(&self, model: MemoryModel, rows: &mut [[u64; W]]) {
        for thread in self.first.windows(2) {
            for earlier in (thread[0] as usize..thread[1] as usize).rev() {
                let mut row = [0; W];
                for later in earlier + 1..thread[1] as usize {
                    if preserves(model, self.events[earlier].class, self.events[later].class) {
                        row[later / 64] |= 1 << (later % 64);
                        for (word, reached) in row.iter_mut().zip(rows[later]) {
                            *word |= reached;
                        }
                    }
                }
                rows[earlier] = row;
            }
        }
    }
}

/// Links the accesses of one location, each list thread by thread in program order.
fn link(events: &mut [GraphEvent], writes: &[u32], reads: &[u32]) {
    for &id in writes.iter().chain(reads) {
        let thread = events[id as usize].thread;
        let own = |other: Option<&u32>| match other {
            Some(&other) if events[other as usize].thread == thread => other,
            _ => NONE,
        };
        let (earlier, later) = (writes.partition_point(|&w| w < id), writes.partition_point(|&w| w <= id));
        let write_before = own(earlier.checked_sub(1).and_then(|at| writes.get(at)));
        let write_after = own(writes.get(later));
        let read_before = own(reads.partition_point(|&r| r < id).checked_sub(1).and_then(|at| reads.get(at)));
        let event = &mut events[id as usize];
        (event.write_before, event.write_after, event.read_before) = (write_before, write_after, read_before);
    }
}
