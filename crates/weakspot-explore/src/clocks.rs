//! Vector clocks as rows of one flat array: no allocation for each event.
//!
//! Entry `t` of the row of an event is how many events of thread `t` are before it or equal to it in some order. So
//! event `index` of thread `t` is before-or-equal an event exactly if entry `t` of its row is greater than `index`.
//!
//! The explorer keeps two such tables ((po ∪ rf)\* and happens-before); the monitors use the same rows.

use std::ops::Range;

/// A table of clocks of the same width.
#[derive(Debug, Clone, Default)]
pub struct ClockTable {
    width: usize,
    entries: Vec<u32>,
}

impl ClockTable {
    /// An empty table of clocks with `width` entries each.
    pub fn new(width: usize) -> Self {
        Self { width, entries: Vec::new() }
    }

    /// A table of `rows` clocks, all zero.
    pub fn zeroed(width: usize, rows: usize) -> Self {
        Self { width, entries: vec![0; width * rows] }
    }

    /// Entries of each clock.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of clocks.
    pub fn rows(&self) -> usize {
        self.entries.len().checked_div(self.width).unwrap_or(0)
    }

    /// One clock.
    #[inline]
    pub fn row(&self, row: u32) -> &[u32] {
        let start = row as usize * self.width;
        &self.entries[start..start + self.width]
    }

    /// One clock, to be changed.
    #[inline]
    pub fn row_mut(&mut self, row: u32) -> &mut [u32] {
        let start = row as usize * self.width;
        &mut self.entries[start..start + self.width]
    }

    /// One entry.
    #[inline]
    pub fn entry(&self, row: u32, column: usize) -> u32 {
        self.entries[row as usize * self.width + column]
    }

    /// Appends a clock.
    #[inline]
    pub fn push(&mut self, clock: &[u32]) {
        self.entries.extend_from_slice(clock);
    }

    /// Appends a copy of one of the clocks.
    #[inline]
    pub fn push_copy(&mut self, row: u32) {
        let start = row as usize * self.width;
        self.entries.extend_from_within(start..start + self.width);
    }

    /// Appends a clock of zeros.
    #[inline]
    pub fn push_zero(&mut self) {
        self.entries.resize(self.entries.len() + self.width, 0);
    }

    /// Keeps the first `rows` clocks.
    #[inline]
    pub fn truncate(&mut self, rows: usize) {
        self.entries.truncate(rows * self.width);
    }

    /// Makes it a table of `rows` clocks, all zero.
    pub fn reset(&mut self, rows: usize) {
        self.entries.clear();
        self.entries.resize(rows * self.width, 0);
    }

    /// Makes room for wider clocks and more of them; what is new is zero.
    pub fn grow(&mut self, width: usize, rows: usize) {
        if width > self.width {
            let mut entries = Vec::with_capacity(width * rows);
            for row in 0..self.rows() as u32 {
                entries.extend_from_slice(self.row(row));
                entries.resize(entries.len() + width - self.width, 0);
            }
            self.entries = entries;
            self.width = width;
        }
        self.entries.resize(self.entries.len().max(self.width * rows), 0);
    }

    /// All clocks.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.entries.chunks_exact(self.width.max(1))
    }

    /// Becomes a copy of the first `rows` clocks of another table.
    pub fn copy_prefix(&mut self, from: &Self, rows: usize) {
        self.width = from.width;
        self.entries.clear();
        self.entries.extend_from_slice(&from.entries[..rows * from.width]);
    }

    /// Becomes a copy of another table of the same size.
    #[inline]
    pub fn copy_from(&mut self, other: &Self) {
        self.entries.copy_from_slice(&other.entries);
    }

    /// Joins one clock of the table into another.
    #[inline]
    pub fn join_rows(&mut self, into: u32, from: u32) {
        self.join_columns(into, from, 0..self.width);
    }

    /// Joins some entries of one clock of the table into another.
    #[inline]
    pub fn join_columns(&mut self, into: u32, from: u32, columns: Range<usize>) {
        let (into, from) = (into as usize * self.width, from as usize * self.width);
        for column in columns {
            let other = self.entries[from + column];
            let entry = &mut self.entries[into + column];
            *entry = (*entry).max(other);
        }
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u32>()
    }
}

/// `into` becomes the least clock that is not before either.
#[inline]
pub fn join(into: &mut [u32], from: &[u32]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into = (*into).max(*from);
    }
}

/// Is every entry of `left` at most that of `right`?
#[inline]
pub fn at_most(left: &[u32], right: &[u32]) -> bool {
    left.iter().zip(right).all(|(left, right)| left <= right)
}
