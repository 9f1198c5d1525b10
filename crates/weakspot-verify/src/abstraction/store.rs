//! The states met so far: every row once, and of each cell only an antichain (Sec. 4.1).
//!
//! Rows lie one behind the other in one array. States of the same *cell* agree on everything exact: control, memory,
//! mutexes, and the latest pending store of each location; they differ in heads and sets of buffers only. A state that
//! another of its cell covers is not kept; a state that covers older ones retires them. A retired state keeps its number
//! and names the one that took its place, so that graphs and paths can be read afterwards.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use weakspot_model::ids::ThreadId;

use super::buffers::{BufferId, Buffers};
use super::system::{Step, buffer_at};

/// No state.
const NONE: u32 = u32::MAX;

/// What came of entering a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entered {
    /// It is new.
    New(u32),
    /// It was there, or this state covers it.
    Known(u32),
}

/// How a state was first reached.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// From here; none for an initial state.
    pub(super) parent: Option<u32>,
    pub(super) thread: ThreadId,
    pub(super) step: Step,
}

/// A state of a cell. Most comparisons within a cell are settled by the bits, which lie together.
#[derive(Debug, Clone, Copy)]
struct Member {
    state: u32,
    bits: u64,
}

/// All states.
#[derive(Debug)]
pub(super) struct Store {
    width: usize,
    threads: usize,
    rows: Vec<u32>,
    by_row: HashTable<u32>,
    origins: Vec<Origin>,
    /// The state that covers this one and was met later.
    covered_by: Vec<u32>,
    /// Antichains are kept.
    ordered: bool,
    /// The first state of each cell; its content finds the cell.
    by_cell: HashTable<u32>,
    /// The states of each cell that are not retired.
    members: Vec<Vec<Member>>,
    /// The cell of each state.
    cell_of: Vec<u32>,
}

impl Store {
    pub(super) fn new(width: usize, ordered: bool) -> Self {
        Self {
            width,
            threads: (width - 1) / 2,
            rows: Vec::new(),
            by_row: HashTable::new(),
            origins: Vec::new(),
            covered_by: Vec::new(),
            ordered,
            by_cell: HashTable::new(),
            members: Vec::new(),
            cell_of: Vec::new(),
        }
    }

    /// How many states there are, retired ones included.
    pub(super) fn len(&self) -> usize {
        self.origins.len()
    }

    pub(super) fn row(&self, state: u32) -> &[u32] {
        row(&self.rows, self.width, state)
    }

    pub(super) fn origin(&self, state: u32) -> Origin {
        self.origins[state as usize]
    }

    pub(super) fn is_retired(&self, state: u32) -> bool {
        self.covered_by[state as usize] != NONE
    }

    /// The state that stands for this one by now.
    pub(super) fn resolve(&self, mut state: u32) -> u32 {
        while self.covered_by[state as usize] != NONE {
            state = self.covered_by[state as usize];
        }
        state
    }

    /// Enters a row unless it is there or covered.
    pub(super) fn enter(&mut self, new: &[u32], origin: Origin, buffers: &mut Buffers) -> Entered {
        let hash = FxBuildHasher.hash_one(new);
        let (rows, width) = (&self.rows, self.width);
        if let Some(&known) = self.by_row.find(hash, |&state| row(rows, width, state) == new) {
            return Entered::Known(self.resolve(known));
        }
        let cell = self.ordered.then(|| self.find_cell(new, buffers)).flatten();
        if let Some(known) = cell.and_then(|cell| self.covering(cell, new, buffers)) {
            return Entered::Known(known);
        }
        let state = u32::try_from(self.origins.len()).expect("invariant: memory ends before states do");
        self.rows.extend_from_slice(new);
        self.origins.push(origin);
        self.covered_by.push(NONE);
        let (rows, width) = (&self.rows, self.width);
        self.by_row.insert_unique(hash, state, |&state| FxBuildHasher.hash_one(row(rows, width, state)));
        if self.ordered {
            self.join_cell(cell, state, buffers);
        }
        Entered::New(state)
    }

    /// A state of the cell that covers the row.
    fn covering(&self, cell: u32, new: &[u32], buffers: &mut Buffers) -> Option<u32> {
        let bits = pending_bits(new, self.threads, buffers);
        let may_cover = |member: &&Member| bits & !member.bits == 0;
        let mut members = self.members[cell as usize].iter().filter(may_cover).map(|member| member.state);
        members.find(|&member| covers(self.row(member), new, self.threads, buffers))
    }

    /// Adds a state to its cell, which it may be the first of, and retires what it covers.
    fn join_cell(&mut self, cell: Option<u32>, state: u32, buffers: &mut Buffers) {
        let bits = pending_bits(self.row(state), self.threads, buffers);
        let Some(cell) = cell else {
            self.cell_of.push(self.members.len() as u32);
            self.members.push(vec![Member { state, bits }]);
            let hash = cell_hash(self.row(state), self.threads, buffers);
            let (rows, width, threads) = (&self.rows, self.width, self.threads);
            self.by_cell.insert_unique(hash, state, |&first| cell_hash(row(rows, width, first), threads, buffers));
            return;
        };
        self.cell_of.push(cell);
        let mut members = std::mem::take(&mut self.members[cell as usize]);
        members.retain(|member| {
            let covered =
                member.bits & !bits == 0 && covers(self.row(state), self.row(member.state), self.threads, buffers);
            if covered {
                self.covered_by[member.state as usize] = state;
            }
            !covered
        });
        members.push(Member { state, bits });
        self.members[cell as usize] = members;
    }

    fn find_cell(&self, new: &[u32], buffers: &Buffers) -> Option<u32> {
        let hash = cell_hash(new, self.threads, buffers);
        let same = |&first: &u32| same_cell(self.row(first), new, self.threads, buffers);
        self.by_cell.find(hash, same).map(|&first| self.cell_of[first as usize])
    }

    /// Bytes held by the tables.
    pub(super) fn bytes(&self) -> usize {
        let entry = size_of::<u32>() + 1;
        self.rows.capacity() * size_of::<u32>()
            + self.origins.capacity() * size_of::<Origin>()
            + (self.covered_by.capacity() + self.cell_of.capacity()) * size_of::<u32>()
            + (self.by_row.capacity() + self.by_cell.capacity()) * entry
            + self.members.len() * size_of::<Vec<Member>>()
            + self.len() * size_of::<Member>()
    }
}

fn row(rows: &[u32], width: usize, state: u32) -> &[u32] {
    &rows[state as usize * width..(state as usize + 1) * width]
}

/// The numbers of a row with every buffer replaced by its signature.
fn cell_key<'a>(row: &'a [u32], threads: usize, buffers: &'a Buffers) -> impl Iterator<Item = u32> + 'a {
    let threads = (0..threads).map(ThreadId::new);
    let pairs = threads.flat_map(move |thread| {
        let at = buffer_at(thread);
        [row[at - 1], buffers.signature(BufferId(row[at]))]
    });
    std::iter::once(row[0]).chain(pairs)
}

fn cell_hash(row: &[u32], threads: usize, buffers: &Buffers) -> u64 {
    use std::hash::Hasher;
    let mut hasher = FxBuildHasher.build_hasher();
    cell_key(row, threads, buffers).for_each(|number| hasher.write_u32(number));
    hasher.finish()
}

fn same_cell(a: &[u32], b: &[u32], threads: usize, buffers: &Buffers) -> bool {
    cell_key(a, threads, buffers).eq(cell_key(b, threads, buffers))
}

/// Some bits for every state, such that one covers another of its cell only if it has all the bits of that one.
fn pending_bits(row: &[u32], threads: usize, buffers: &Buffers) -> u64 {
    (0..threads).map(ThreadId::new).fold(0, |bits, thread| {
        bits | buffers.bits(BufferId(row[buffer_at(thread)])).rotate_left(23 * thread.index() as u32)
    })
}

/// Does a state stand for everything another one of its cell stands for?
fn covers(large: &[u32], small: &[u32], threads: usize, buffers: &mut Buffers) -> bool {
    (0..threads).map(ThreadId::new).all(|thread| {
        let at = buffer_at(thread);
        buffers.covers(BufferId(large[at]), BufferId(small[at]))
    })
}
