//! Threads and cells that appear while the graph is being built.
//!
//! A graph is as wide as the threads that any run has started so far: their number only grows, and seldom, so everything
//! is laid out anew when it does. Cells come and go with the events that use them; a number that no event uses is free.

use super::{CellEnds, Graph, NONE};
use crate::clocks::ClockTable;
use crate::graph::event::ThreadEnd;
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
        self.causes = wider_table(&self.causes, |row, into| into[..old].copy_from_slice(row), threads);
        self.happens_before = wider_table(&self.happens_before, |row, into| wider.copy(row, into), wider.width());
        self.trail = wider.trail(&self.trail);
        for event in &mut self.events {
            event.trail = wider.trail_length(event.trail);
        }
        self.scratch = vec![0; wider.width()];
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

    /// Sets the initial value of a cell.
    pub(crate) fn set_initial(&mut self, cell: CellId, value: i64) {
        self.cells[cell as usize].initial = value;
    }
}

/// How rows of happens-before change when threads are added.
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

    fn trail_length(&self, length: u32) -> u32 {
        length / (self.old_width() as u32 + 1) * (self.width() as u32 + 1)
    }

    fn copy(&self, row: &[u32], into: &mut [u32]) {
        into[..self.old].copy_from_slice(&row[..self.old]);
        if self.watched {
            into[self.new..self.new + self.old].copy_from_slice(&row[self.old..2 * self.old]);
        }
    }

    /// Old rows, each followed by the number of its event.
    fn trail(&self, trail: &[u32]) -> Vec<u32> {
        let old_width = self.old_width();
        let mut wider = Vec::new();
        for entry in trail.chunks_exact(old_width + 1) {
            let start = wider.len();
            wider.resize(start + self.width(), 0);
            self.copy(&entry[..old_width], &mut wider[start..]);
            wider.push(entry[old_width]);
        }
        wider
    }
}

fn wider_table(table: &ClockTable, copy: impl Fn(&[u32], &mut [u32]), width: usize) -> ClockTable {
    let mut wider = ClockTable::zeroed(width, table.rows());
    for row in 0..table.rows() as u32 {
        copy(table.row(row), wider.row_mut(row));
    }
    wider
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
