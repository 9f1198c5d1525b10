//! Symbolic states: control, memory, and one automaton for each store buffer.
//!
//! A symbolic state stands for the *product* of its languages: every combination of one word for each buffer. Loads
//! narrow, stores lengthen and commits shorten the buffer of one thread only, and what they do to the rest (control,
//! memory) is the same for all words they apply to. So the successors of a product are products again, and nothing is
//! lost or added.
//!
//! What is not a buffer is a [`Cell`]: where every thread rests, what memory holds, who owns the mutexes. Cells are kept
//! once and compared by id; states of the same cell differ in their buffers alone.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::ir::Program;

use super::automaton::Language;
use crate::threads::LocalId;

/// The languages of all buffers, in the order of [`Layout`].
pub(super) type Buffers = Box<[Language]>;

/// Which buffers there are: none under SC, one for each thread under TSO, one for each thread and location under PSO.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) model: MemoryModel,
    threads: usize,
    locations: usize,
}

impl Layout {
    pub(super) fn new(program: &Program, model: MemoryModel) -> Self {
        Self { model, threads: program.threads.len(), locations: program.locations.len() }
    }

    /// Number of buffers.
    pub(super) fn len(&self) -> usize {
        self.threads * self.each()
    }

    /// Buffers of one thread.
    fn each(&self) -> usize {
        match self.model {
            MemoryModel::Sc => 0,
            MemoryModel::Tso => 1,
            MemoryModel::Pso => self.locations,
        }
    }

    /// The buffer a thread's stores to a location go to; `None` under SC.
    pub(super) fn buffer(&self, thread: ThreadId, loc: Loc) -> Option<usize> {
        match self.model {
            MemoryModel::Sc => None,
            MemoryModel::Tso => Some(thread.index()),
            MemoryModel::Pso => Some(thread.index() * self.locations + loc.index()),
        }
    }

    /// All buffers of a thread.
    pub(super) fn of_thread(&self, thread: ThreadId) -> std::ops::Range<usize> {
        thread.index() * self.each()..(thread.index() + 1) * self.each()
    }
}

/// A cell: index into [`Cells`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CellId(u32);

impl CellId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Everything of a state but its buffers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    /// Where each thread rests.
    pub(super) locals: Box<[LocalId]>,
    /// The value of each location.
    pub(super) memory: Box<[i64]>,
    /// Who holds each mutex.
    pub(super) owners: Box<[Option<ThreadId>]>,
}

/// Every cell met so far, each once.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: Vec<Cell>,
    index: HashTable<CellId>,
}

impl Cells {
    pub(super) fn intern(&mut self, cell: Cell) -> CellId {
        let hash = FxBuildHasher.hash_one(&cell);
        let cells = &self.cells;
        if let Some(&known) = self.index.find(hash, |id| cells[id.index()] == cell) {
            return known;
        }
        let id = CellId(u32::try_from(self.cells.len()).expect("invariant: memory ends before cells do"));
        self.cells.push(cell);
        let cells = &self.cells;
        self.index.insert_unique(hash, id, |id| FxBuildHasher.hash_one(&cells[id.index()]));
        id
    }

    pub(super) fn get(&self, id: CellId) -> &Cell {
        &self.cells[id.index()]
    }

    pub(super) fn bytes(&self) -> usize {
        let inside = self.cells.first().map_or(0, |cell| {
            cell.locals.len() * size_of::<LocalId>()
                + cell.memory.len() * size_of::<i64>()
                + cell.owners.len() * size_of::<Option<ThreadId>>()
        });
        self.cells.len() * inside
            + self.cells.capacity() * size_of::<Cell>()
            + self.index.capacity() * (size_of::<CellId>() + 1)
    }
}
