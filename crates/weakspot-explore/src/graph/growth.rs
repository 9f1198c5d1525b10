//! Threads and cells that appear while the graph is being built.
//!
//! A graph is as wide as the threads that any run has started so far: their number only grows, and seldom, so everything
//! is laid out anew when it does. Cells come and go with the events that use them; a number that no event uses is free.

use super::{CellEnds, Graph, NONE};
use crate::graph::event::ThreadEnd;
use crate::graph::rows::{Lanes, Rows, row_of};
use crate::system::CellId;

impl Graph {
    /// Makes room for more threads.
    #[cold]
    pub(crate) fn widen(&mut self, threads: usize) {
        let old = self.threads.len();
        if threads <= old {
            return;
        }
        let wider = Wider { old, new: threads, watched: self.watched };
        self.threads.resize(threads, ThreadEnd::START);
        self.last_read = regroup(&self.last_read, old, threads, NONE);
        let narrow = Wider { watched: false, ..wider };
        self.causes = narrow.table(&self.causes);
        self.happens_before = wider.table(&self.happens_before);
        self.trail_rows = wider.rows(&self.trail_rows);
        self.scratch = row_of(0, wider.width(), 0);
        self.strict_scratch.clone_from(&self.scratch);
        self.strict = row_of(threads, wider.width(), u16::MAX);
    }

    /// The number of a cell that no event uses; `near` is where the search for one begins.
    pub(crate) fn free_cell(&mut self, near: usize) -> CellId {
        let count = self.cells.len();
        let free = (near..count).chain(0..near.min(count)).find(|&cell| self.is_unused(cell));
        let cell = free.unwrap_or(count);
        if cell == count {
            self.cells.push(CellEnds::new(0));
            self.last_read.resize(self.last_read.len() + self.threads.len(), NONE);
        }
        cell as CellId
    }

    fn is_unused(&self, cell: usize) -> bool {
        let width = self.threads.len();
        self.cells[cell].first == NONE && self.last_read[cell * width..][..width].iter().all(|&read| read == NONE)
    }

    /// The initial value of a cell.
    pub(crate) fn initial(&self, cell: CellId) -> i64 {
        self.cells[cell as usize].initial
    }

    /// Sets the initial value of a cell.
    pub(crate) fn set_initial(&mut self, cell: CellId, value: i64) {
        self.cells[cell as usize].initial = value;
    }
}

/// How rows change when threads are added.
#[derive(Clone, Copy)]
struct Wider {
    old: usize,
    new: usize,
    watched: bool,
}

impl Wider {
    fn width(&self) -> usize {
        if self.watched { 2 * self.new } else { self.new }
    }

    fn old_width(&self) -> usize {
        if self.watched { 2 * self.old } else { self.old }
    }

    fn copy(&self, row: &[u16], into: &mut [u16]) {
        into[..self.old].copy_from_slice(&row[..self.old]);
        if self.watched {
            into[self.new..self.new + self.old].copy_from_slice(&row[self.old..2 * self.old]);
        }
    }

    fn rows(&self, rows: &[Lanes]) -> Vec<Lanes> {
        let mut wider = Vec::new();
        for row in rows.chunks_exact(Rows::new(self.old_width()).stride().max(1)) {
            let mut into = row_of(0, self.width(), 0);
            self.copy(row.as_flattened(), into.as_flattened_mut());
            wider.append(&mut into);
        }
        wider
    }

    fn table(&self, table: &Rows) -> Rows {
        let mut wider = Rows::new(self.width());
        wider.push(&self.rows(table.lanes()));
        wider
    }
}

/// Groups of `old` entries become groups of `new`.
fn regroup(entries: &[u32], old: usize, new: usize, fill: u32) -> Vec<u32> {
    let mut wider = Vec::with_capacity(entries.len() / old.max(1) * new);
    for group in entries.chunks_exact(old) {
        wider.extend_from_slice(group);
        wider.resize(wider.len() + new - old, fill);
    }
    wider
}
