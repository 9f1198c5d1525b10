//! Threads and cells that appear while the graph is being built.
//!
//! A graph is as wide as the threads that any run has started so far: their number only grows, and seldom, so everything
//! is laid out anew when it does. Cells come and go with the events that use them; a number that no event uses is free.

use super::{CellEnds, Graph, NONE};
use crate::graph::event::ThreadEnd;
use crate::graph::rows::{LANES, Lanes, Rows, lanes_of, make_row};
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
        regroup(&mut self.last_read, old, threads, NONE);
        let narrow = Wider { watched: false, ..wider };
        narrow.table(&mut self.causes);
        wider.table(&mut self.happens_before);
        wider.rows(&mut self.trail_rows);
        make_row(&mut self.scratch, 0, wider.width(), 0);
        make_row(&mut self.strict_scratch, 0, wider.width(), 0);
        make_row(&mut self.strict, threads, wider.width(), u16::MAX);
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

    /// Makes room between the two halves of a row whose lanes are enough.
    fn stretch(&self, row: &mut [u16]) {
        row.copy_within(self.old..2 * self.old, self.new);
        row[self.old..self.new].fill(0);
    }

    fn rows(&self, rows: &mut Vec<Lanes>) {
        let (old_stride, stride) = (lanes_of(self.old_width()), lanes_of(self.width()));
        if old_stride == 0 {
            return;
        }
        if stride > old_stride {
            let count = rows.len() / old_stride;
            rows.resize(count * stride, [0; LANES]);
            for row in (0..count).rev() {
                // The rows before it are still where they were.
                rows.copy_within(row * old_stride..(row + 1) * old_stride, row * stride);
                rows[row * stride + old_stride..(row + 1) * stride].fill([0; LANES]);
            }
        }
        if self.watched {
            rows.chunks_exact_mut(stride).for_each(|row| self.stretch(row.as_flattened_mut()));
        }
    }

    fn table(&self, table: &mut Rows) {
        table.change(self.width(), |lanes| self.rows(lanes));
    }
}

/// Groups of `old` entries become groups of `new`.
fn regroup(entries: &mut Vec<u32>, old: usize, new: usize, fill: u32) {
    if old == 0 {
        return;
    }
    let groups = entries.len() / old;
    entries.resize(groups * new, fill);
    for group in (0..groups).rev() {
        entries.copy_within(group * old..(group + 1) * old, group * new);
        entries[group * new + old..(group + 1) * new].fill(fill);
    }
}

#[cfg(test)]
mod tests {
    use super::{Wider, regroup};
    use crate::graph::rows::{LANES, Lanes};

    #[test]
    fn groups_keep_their_entries() {
        let mut entries = vec![1, 2, 3, 4, 5, 6];
        regroup(&mut entries, 2, 5, 9);
        assert_eq!(entries, [1, 2, 9, 9, 9, 3, 4, 9, 9, 9, 5, 6, 9, 9, 9]);
    }

    /// Entries of a row, by thread: happens-before, and relaxed happens-before where it is kept.
    fn entries(rows: &[Lanes], stride: usize, threads: usize, watched: bool) -> Vec<Vec<u16>> {
        let width = if watched { 2 * threads } else { threads };
        rows.chunks_exact(stride)
            .map(|row| {
                let row = row.as_flattened();
                assert!(row[width..].iter().all(|&entry| entry == 0), "what fills the row up is 0");
                row[..width].to_vec()
            })
            .collect()
    }

    #[test]
    fn rows_keep_their_entries_in_and_out_of_place() {
        for (old, new, watched) in [(1, 3, true), (2, 4, true), (3, 5, true), (1, 8, false), (7, 9, false)] {
            let width = |threads: usize| if watched { 2 * threads } else { threads };
            let stride = width(old).div_ceil(LANES);
            let mut rows = vec![[0; LANES]; 3 * stride];
            for (at, row) in rows.chunks_exact_mut(stride).enumerate() {
                for (entry, to) in row.as_flattened_mut()[..width(old)].iter_mut().enumerate() {
                    *to = (10 * at + entry + 1) as u16;
                }
            }
            let before = entries(&rows, stride, old, watched);
            Wider { old, new, watched }.rows(&mut rows);
            let after = entries(&rows, width(new).div_ceil(LANES), new, watched);
            for (before, after) in before.iter().zip(&after) {
                let added = vec![0; new - old];
                let halves = before.chunks_exact(old);
                let expected: Vec<u16> = halves.flat_map(|half| half.iter().chain(&added).copied()).collect();
                assert_eq!(*after, expected, "{old} -> {new}");
            }
        }
    }
}
