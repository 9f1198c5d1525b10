//! Monitors: given the events of one SC execution, could store buffers have made it come out otherwise?
//!
//! A monitor sees events and nothing else, one after the other, in the order SC executed them. It works the same while
//! a search goes on and on a recorded trace. It reports a [`Finding`]: a store that was still in its buffer, as far as
//! anybody could tell, when an access to its cell by another thread came that happens after it.
//!
//! | monitor | paper | model |
//! |---|---|---|
//! | [`sober::Sober`], corrected | Burckhardt, Musuvathi, CAV 2008, Fig. 2 and 3, with the error found by Burnim et al. put right | TSO |
//! | [`sober::Sober`], as published | the same, with the error | TSO |
//! | [`operational::Operational`] | Burnim, Sen, Stergiou, TACAS 2011, Fig. 4 and 5, with store-store fences | TSO, PSO |
//!
//! Fences, mutexes and condition variables are what the papers say they can be made of: interlocked operations, a fence
//! on a cell that nobody else uses.

pub mod operational;
pub(crate) mod rewinding;
pub mod sober;
pub mod streaming;

use crate::clocks::{ClockTable, join};

/// What an event did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A plain read.
    Load,
    /// A plain write.
    Store,
    /// An interlocked operation.
    Atomic {
        /// Did it write? A failed compare-and-swap did not.
        writes: bool,
        /// Waits for the whole own buffer under PSO too.
        drains_all: bool,
    },
    /// A fence that waits for the whole own buffer.
    FullFence,
    /// A fence that keeps earlier stores before later ones.
    StoreFence,
}

impl Operation {
    /// Does it write its cell?
    #[inline]
    pub fn writes(self) -> bool {
        matches!(self, Self::Store | Self::Atomic { writes: true, .. })
    }
}

/// One event of an SC execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Whose event.
    pub thread: u32,
    /// Grows along each thread.
    pub index: u32,
    /// What it did.
    pub operation: Operation,
    /// The cell; of no meaning for a fence.
    pub cell: u32,
    /// Given back in findings: lets the caller know which event is meant.
    pub label: u32,
}

/// A store-buffer violation: `store` may still be pending when `access` comes, although `access` happens after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Finding {
    /// The label of the store.
    pub store: u32,
    /// The label of the access.
    pub access: u32,
}

/// Watches one SC execution after the other.
pub trait Monitor {
    /// The next event of the execution.
    fn observe(&mut self, event: &Event) -> Option<Finding>;

    /// A new execution begins.
    fn reset(&mut self);
}

/// Happens-before along an execution: the usual vector clocks.
#[derive(Debug, Clone)]
struct HappensBefore {
    /// What happens before or is the last event of each thread.
    threads: ClockTable,
    /// Join of the writes of each cell.
    writes: ClockTable,
    /// Join of the accesses of each cell.
    accesses: ClockTable,
}

impl HappensBefore {
    fn new(threads: usize, cells: usize) -> Self {
        Self {
            threads: ClockTable::zeroed(threads, threads),
            writes: ClockTable::zeroed(threads, cells),
            accesses: ClockTable::zeroed(threads, cells),
        }
    }

    /// Makes room for more threads and cells.
    fn grow(&mut self, threads: usize, cells: usize) {
        self.threads.grow(threads, threads);
        self.writes.grow(threads, cells);
        self.accesses.grow(threads, cells);
    }

    /// Every clock that a thread can come to know of.
    fn clocks(&self) -> impl Iterator<Item = &[u32]> {
        self.threads.iter().chain(self.writes.iter()).chain(self.accesses.iter())
    }

    fn bytes(&self) -> usize {
        self.threads.bytes() + self.writes.bytes() + self.accesses.bytes()
    }

    fn reset(&mut self) {
        self.threads.reset(self.threads.rows());
        self.writes.reset(self.writes.rows());
        self.accesses.reset(self.accesses.rows());
    }

    /// Becomes a copy of another one with as many threads and cells.
    fn copy_from(&mut self, other: &Self) {
        self.threads.copy_from(&other.threads);
        self.writes.copy_from(&other.writes);
        self.accesses.copy_from(&other.accesses);
    }

    /// Does event `index` of `thread` happen before what `later` does next?
    #[inline]
    fn is_before(&self, thread: u32, index: u32, later: u32) -> bool {
        self.threads.entry(later, thread as usize) > index
    }

    #[inline]
    fn follow(&mut self, event: &Event) {
        let own = self.threads.row_mut(event.thread);
        own[event.thread as usize] = event.index + 1;
        let (reads_only, writes) = match event.operation {
            Operation::Load | Operation::Atomic { writes: false, .. } => (true, false),
            Operation::Store | Operation::Atomic { writes: true, .. } => (false, true),
            Operation::FullFence | Operation::StoreFence => (false, false),
        };
        if reads_only {
            join(own, self.writes.row(event.cell));
            join(self.accesses.row_mut(event.cell), own);
        } else if writes {
            join(own, self.accesses.row(event.cell));
            self.accesses.row_mut(event.cell).copy_from_slice(own);
            self.writes.row_mut(event.cell).copy_from_slice(own);
        }
    }
}
