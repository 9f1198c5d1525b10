//! The operational monitors for TSO and PSO (Burnim, Sen, Stergiou, TACAS 2011, Fig. 4 and 5).
//!
//! The monitor runs the relaxed machine beside the SC execution and commits every store as late as it can while the
//! trace stays the same. Before each access it asks whether a store to the same cell is still pending in another
//! thread although it happens before what this thread did last: then the access could have come first.
//!
//! | Fig. 4 and 5 | here |
//! |---|---|
//! | lines 5 to 8 | [`Operational::search`] |
//! | lines 10 to 14 | [`Operational::commit_foreign`] |
//! | lines 16 to 27 | [`Operational::execute`] |
//!
//! Lemma 1 of the paper: at most one thread has pending stores to a cell. So each cell knows its owner.
//!
//! # Beyond the paper
//! A store-store fence divides the buffer of its thread under PSO: to commit a store, all stores before the last fence
//! in front of it are committed first, and the earlier ones to its own cell. An atomic commits the own stores to its
//! cell only, or all of them if it says so; a full fence commits all. A failed compare-and-swap is an atomic.

mod forget;

use weakspot_model::buffer::MemoryModel;

use super::{Event, Finding, HappensBefore, Monitor, Operation};
use crate::graph::NONE;
use crate::monitor::streaming::Threshold;

/// A pending store, or a fence between pending stores.
#[derive(Debug, Clone, Copy)]
struct Pending {
    cell: u32,
    index: u32,
    label: u32,
    /// Store-store fences of the thread before it.
    segment: u32,
}

/// The monitor.
#[derive(Debug, Clone)]
pub struct Operational {
    model: MemoryModel,
    happens_before: HappensBefore,
    /// `B`: pending stores of each thread, oldest first.
    buffers: Vec<Vec<Pending>>,
    /// Store-store fences of each thread so far.
    segments: Vec<u32>,
    /// The thread that has pending stores to a cell.
    owner: Vec<u32>,
    threshold: Threshold,
}

impl Operational {
    /// The monitor of a model.
    pub fn new(model: MemoryModel, threads: usize, cells: usize) -> Self {
        Self {
            model,
            happens_before: HappensBefore::new(threads, cells),
            buffers: vec![Vec::new(); threads],
            segments: vec![0; threads],
            owner: vec![NONE; cells],
            threshold: Threshold::default(),
        }
    }

    /// Becomes a copy of another one with as many threads and cells.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.happens_before.copy_from(&other.happens_before);
        self.buffers.clone_from(&other.buffers);
        self.segments.clone_from(&other.segments);
        self.owner.clone_from(&other.owner);
    }

    /// Lines 5 to 8: could the event come before a pending store that happens before it?
    fn search(&self, event: &Event) -> Option<Finding> {
        let owner = self.owner[event.cell as usize];
        if owner == NONE || owner == event.thread {
            return None;
        }
        let pending = self.buffers[owner as usize].iter().rev().filter(|pending| pending.cell == event.cell);
        let mut before = pending.filter(|p| self.happens_before.is_before(owner, p.index, event.thread));
        before.next().map(|pending| Finding { store: pending.label, access: event.label })
    }

    /// Lines 10 to 14: what others have pending for the cell becomes visible first.
    fn commit_foreign(&mut self, event: &Event) {
        let owner = self.owner[event.cell as usize];
        if owner != NONE && owner != event.thread {
            self.commit_cell(owner, event.cell);
        }
    }

    /// Commits all pending stores of a thread to a cell, and what has to go before them.
    fn commit_cell(&mut self, thread: u32, cell: u32) {
        let buffer = &mut self.buffers[thread as usize];
        let Some(last) = buffer.iter().rposition(|pending| pending.cell == cell) else { return };
        let segment = buffer[last].segment;
        let tso = self.model != MemoryModel::Pso;
        let owner = &mut self.owner;
        let mut at = 0;
        buffer.retain(|pending| {
            let goes = at <= last && (tso || pending.segment < segment || pending.cell == cell);
            at += 1;
            if goes {
                owner[pending.cell as usize] = NONE;
            }
            !goes
        });
        // A cell may have later stores that stay.
        for pending in &self.buffers[thread as usize] {
            self.owner[pending.cell as usize] = thread;
        }
    }

    fn commit_all(&mut self, thread: u32) {
        for pending in self.buffers[thread as usize].drain(..) {
            self.owner[pending.cell as usize] = NONE;
        }
    }

    /// Lines 16 to 27.
    fn execute(&mut self, event: &Event) {
        let Event { thread, index, operation, cell, label } = *event;
        match operation {
            Operation::Load => {}
            Operation::Store => {
                let segment = self.segments[thread as usize];
                self.buffers[thread as usize].push(Pending { cell, index, label, segment });
                self.owner[cell as usize] = thread;
            }
            Operation::Atomic { drains_all, .. } => {
                if drains_all || self.model != MemoryModel::Pso {
                    self.commit_all(thread);
                } else {
                    self.commit_cell(thread, cell);
                }
            }
            Operation::FullFence => self.commit_all(thread),
            Operation::StoreFence => self.segments[thread as usize] += 1,
        }
    }
}

impl Monitor for Operational {
    fn observe(&mut self, event: &Event) -> Option<Finding> {
        let is_access = !matches!(event.operation, Operation::FullFence | Operation::StoreFence);
        let mut finding = None;
        if is_access {
            finding = self.search(event);
            self.commit_foreign(event);
        }
        self.execute(event);
        self.happens_before.follow(event);
        finding
    }

    fn reset(&mut self) {
        self.happens_before.reset();
        self.buffers.iter_mut().for_each(Vec::clear);
        self.segments.fill(0);
        self.owner.fill(NONE);
    }
}
