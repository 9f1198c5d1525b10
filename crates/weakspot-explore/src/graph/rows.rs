//! The clocks of a graph, packed so that a whole row is compared and joined at once.
//!
//! An entry is 16 bits wide and eight of them are a [`Lanes`]: one register of any 64-bit processor. Up to eight threads
//! (four, where relaxed happens-before is kept beside happens-before) joining two rows is one operation. So an execution
//! may have [`MOST_EVENTS`] events, far more than anybody can explore exhaustively.
//!
//! The monitors, which also read recorded traces of any length, have clocks of their own ([`crate::clocks`]).

use super::NONE;

/// Events one graph may have: what an entry can count.
pub const MOST_EVENTS: u32 = u16::MAX as u32;

/// Entries that are handled together.
pub(super) const LANES: usize = 8;

/// Some entries of a row.
pub(super) type Lanes = [u16; LANES];

/// Lanes, entry by entry. Tests are built without optimisation, and then a closure that is called for each entry costs
/// far more than what it computes.
macro_rules! lanes {
    (|$at:ident| $entry:expr) => {
        lanes!(@ $at $entry; 0 1 2 3 4 5 6 7)
    };
    (@ $at:ident $entry:expr; $($number:literal)*) => {
        [$({ let $at: usize = $number; $entry }),*]
    };
}

/// Lanes of a row that has at least `width` entries.
pub(super) fn lanes_of(width: usize) -> usize {
    width.div_ceil(LANES)
}

/// Makes it a row with this many entries, all of them `value`; what fills the row up is 0.
pub(super) fn make_row(row: &mut Vec<Lanes>, entries: usize, width: usize, value: u16) {
    row.clear();
    row.resize(lanes_of(width), [0; LANES]);
    row.as_flattened_mut()[..entries].fill(value);
}

/// A table of clocks of the same width.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    /// How many lanes a row has.
    stride: usize,
    lanes: Vec<Lanes>,
}

impl Rows {
    /// No rows yet; each will have at least `width` entries.
    pub(super) fn new(width: usize) -> Self {
        Self { stride: lanes_of(width), lanes: Vec::new() }
    }

    /// Forgets all rows; the next ones will have at least `width` entries.
    pub(super) fn restart(&mut self, width: usize) {
        self.stride = lanes_of(width);
        self.lanes.clear();
    }

    /// Changes all rows, which have at least `width` entries then.
    pub(super) fn change(&mut self, width: usize, change: impl FnOnce(&mut Vec<Lanes>)) {
        change(&mut self.lanes);
        self.stride = lanes_of(width);
    }

    /// Lanes of a row.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// All rows, one after the other.
    pub(super) fn lanes_mut(&mut self) -> &mut [Lanes] {
        &mut self.lanes
    }

    #[inline]
    pub(super) fn row(&self, row: u32) -> &[Lanes] {
        let start = row as usize * self.stride;
        &self.lanes[start..start + self.stride]
    }

    #[inline]
    pub(super) fn row_mut(&mut self, row: u32) -> &mut [Lanes] {
        let start = row as usize * self.stride;
        &mut self.lanes[start..start + self.stride]
    }

    #[inline]
    pub(super) fn entry(&self, row: u32, column: usize) -> u32 {
        u32::from(self.lanes.as_flattened()[row as usize * self.stride * LANES + column])
    }

    #[inline]
    pub(super) fn set(&mut self, row: u32, column: usize, entry: u32) {
        self.lanes.as_flattened_mut()[row as usize * self.stride * LANES + column] = entry as u16;
    }

    #[inline]
    pub(super) fn push(&mut self, row: &[Lanes]) {
        push_row(&mut self.lanes, row);
    }

    #[inline]
    pub(super) fn push_copy(&mut self, row: u32) {
        if self.stride == 1 {
            let lanes = self.lanes[row as usize];
            return self.lanes.push(lanes);
        }
        let start = row as usize * self.stride;
        for at in start..start + self.stride {
            let lanes = self.lanes[at];
            self.lanes.push(lanes);
        }
    }

    #[inline]
    pub(super) fn push_zero(&mut self) {
        self.lanes.resize(self.lanes.len() + self.stride, [0; LANES]);
    }

    /// Keeps the first rows.
    #[inline]
    pub(super) fn truncate(&mut self, rows: usize) {
        self.lanes.truncate(rows * self.stride);
    }

    /// Makes it a table of so many rows, all zero.
    pub(super) fn reset(&mut self, rows: usize) {
        self.lanes.clear();
        self.lanes.resize(rows * self.stride, [0; LANES]);
    }

    /// Moves a row to the place of an earlier one.
    #[inline]
    pub(super) fn move_row(&mut self, from: u32, to: u32) {
        if self.stride == 1 {
            self.lanes[to as usize] = self.lanes[from as usize];
        } else {
            let (from, to) = (from as usize * self.stride, to as usize * self.stride);
            self.lanes.copy_within(from..from + self.stride, to);
        }
    }

    /// Becomes a copy of the first rows of another table.
    pub(super) fn copy_prefix(&mut self, from: &Self, rows: usize) {
        self.stride = from.stride;
        self.lanes.clear();
        self.lanes.extend_from_slice(&from.lanes[..rows * from.stride]);
    }

    /// How many of the first `most` rows are those of another table, and do not exceed a limit.
    pub(super) fn same_rows(&self, other: &Self, most: usize, limit: &[Lanes]) -> usize {
        if let &[limit] = limit {
            let rows = self.lanes[..most].iter().zip(&other.lanes[..most]);
            return rows.take_while(|(row, other)| row == other && !exceeds(&[**row], &[limit])).count();
        }
        let rows = self.lanes.chunks_exact(self.stride).zip(other.lanes.chunks_exact(self.stride));
        rows.take(most).take_while(|(row, other)| row == other && !exceeds(row, limit)).count()
    }

    /// Joins one row into another.
    #[inline]
    pub(super) fn join_rows(&mut self, into: u32, from: u32) {
        if self.stride == 1 {
            let other = self.lanes[from as usize];
            return join_lanes(&mut self.lanes[into as usize], &other);
        }
        let (into, from) = (into as usize * self.stride, from as usize * self.stride);
        for at in 0..self.stride {
            let other = self.lanes[from + at];
            join_lanes(&mut self.lanes[into + at], &other);
        }
    }

    /// `into` becomes one row where `mask` lets it through, and elsewhere what is in some others, if there are any.
    #[inline]
    pub(super) fn merge(&self, into: &mut [Lanes], row: u32, others: [u32; 2], mask: &[Lanes]) {
        if let ([into], [mask], 1) = (&mut *into, mask, self.stride) {
            let [first, second] = others.map(|row| if row == NONE { [0; LANES] } else { self.lanes[row as usize] });
            *into = merged(&self.lanes[row as usize], &first, &second, mask);
            return;
        }
        self.merge_many(into, row, others, mask);
    }

    #[inline(never)]
    fn merge_many(&self, into: &mut [Lanes], row: u32, others: [u32; 2], mask: &[Lanes]) {
        let lanes = |row: u32, at: usize| {
            if row == NONE { [0; LANES] } else { self.lanes[row as usize * self.stride + at] }
        };
        for ((at, into), mask) in into.iter_mut().enumerate().zip(mask) {
            *into = merged(&lanes(row, at), &lanes(others[0], at), &lanes(others[1], at), mask);
        }
    }

    /// Appends copies of some rows to `into`.
    #[inline]
    pub(super) fn copy_to(&self, rows: &[u32], into: &mut Vec<Lanes>) {
        if self.stride == 1 {
            into.extend(rows.iter().map(|&row| self.lanes[row as usize]));
        } else {
            for &row in rows {
                push_row(into, self.row(row));
            }
        }
    }

    /// Takes some rows back from the end of `from`, where they were copied to; the copy made first is the last to come.
    #[inline]
    pub(super) fn copy_back(&mut self, rows: &[u32], from: &[Lanes]) {
        let copies = &from[from.len() - rows.len() * self.stride..];
        if self.stride == 1 {
            for (&row, &copy) in rows.iter().zip(copies).rev() {
                self.lanes[row as usize] = copy;
            }
        } else {
            for (&row, copy) in rows.iter().zip(copies.chunks_exact(self.stride)).rev() {
                copy_row(self.row_mut(row), copy);
            }
        }
    }

    /// Sets an entry of some rows.
    #[inline]
    pub(super) fn set_all(&mut self, rows: &[u32], column: usize, entry: u32) {
        if self.stride == 1 {
            for &row in rows {
                self.lanes[row as usize][column % LANES] = entry as u16;
            }
        } else {
            for &row in rows {
                self.set(row, column, entry);
            }
        }
    }

    /// Joins a row into some others.
    #[inline]
    pub(super) fn join_all(&mut self, rows: &[u32], from: &[Lanes]) {
        if let [from] = from {
            for &row in rows {
                join_lanes(&mut self.lanes[row as usize], from);
            }
        } else {
            for &row in rows {
                join(self.row_mut(row), from);
            }
        }
    }

    /// Joins one of two rows into some others: the first, if their entry in a column is greater than `least`.
    #[inline]
    pub(super) fn join_either(&mut self, rows: &[u32], column: usize, least: u32, first: &[Lanes], second: &[Lanes]) {
        if let ([first], [second]) = (first, second) {
            for &row in rows {
                let lanes = &mut self.lanes[row as usize];
                let from = if u32::from(lanes[column % LANES]) > least { first } else { second };
                join_lanes(lanes, from);
            }
        } else {
            for &row in rows {
                let from = if self.entry(row, column) > least { first } else { second };
                join(self.row_mut(row), from);
            }
        }
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.lanes.capacity() * size_of::<Lanes>()
    }
}

/// Appends a row. Rows are short: a call to copy memory would cost more than the copy.
#[inline]
pub(super) fn push_row(rows: &mut Vec<Lanes>, row: &[Lanes]) {
    if let &[lanes] = row {
        return rows.push(lanes);
    }
    for &lanes in row {
        rows.push(lanes);
    }
}

/// Works on the lanes of two rows. A row of one is not gone through in a loop.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the work is one instruction, a call is ten")]
fn each(into: &mut [Lanes], from: &[Lanes], work: impl Fn(&mut Lanes, &Lanes)) {
    if let ([into], [from]) = (&mut *into, from) {
        return work(into, from);
    }
    each_of_many(into, from, work);
}

#[inline(never)]
fn each_of_many(into: &mut [Lanes], from: &[Lanes], work: impl Fn(&mut Lanes, &Lanes)) {
    for (into, from) in into.iter_mut().zip(from) {
        work(into, from);
    }
}

/// The same with a mask.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as for `each`")]
fn each_masked(into: &mut [Lanes], from: &[Lanes], mask: &[Lanes], work: impl Fn(&mut Lanes, &Lanes, &Lanes)) {
    if let ([into], [from], [mask]) = (&mut *into, from, mask) {
        return work(into, from, mask);
    }
    each_of_many_masked(into, from, mask, work);
}

#[inline(never)]
fn each_of_many_masked(into: &mut [Lanes], from: &[Lanes], mask: &[Lanes], work: impl Fn(&mut Lanes, &Lanes, &Lanes)) {
    for ((into, from), mask) in into.iter_mut().zip(from).zip(mask) {
        work(into, from, mask);
    }
}

/// `into` becomes `from`.
#[inline]
pub(super) fn copy_row(into: &mut [Lanes], from: &[Lanes]) {
    each(into, from, |into, from| *into = *from);
}

#[inline]
fn greater(left: u16, right: u16) -> u16 {
    if left < right { right } else { left }
}

#[inline]
pub(super) fn join_lanes(into: &mut Lanes, from: &Lanes) {
    // By value, so that the compiler sees that the two do not overlap and takes all entries at once.
    let (left, right) = (*into, *from);
    *into = lanes!(|at| greater(left[at], right[at]));
}

/// The entries that a mask lets through.
#[inline]
pub(super) fn masked(lanes: &Lanes, mask: &Lanes) -> Lanes {
    lanes!(|at| lanes[at] & mask[at])
}

/// The entries that a mask lets through, and the greater ones of two others where it does not.
#[inline]
pub(super) fn merged(lanes: &Lanes, first: &Lanes, second: &Lanes, mask: &Lanes) -> Lanes {
    lanes!(|at| lanes[at] & mask[at] | greater(first[at], second[at]) & !mask[at])
}

/// Is some entry of a row greater than that of another?
#[inline(always)]
#[expect(clippy::inline_always, reason = "as for `each`")]
pub(super) fn exceeds(row: &[Lanes], limit: &[Lanes]) -> bool {
    let more = |row: &Lanes, limit: &Lanes| -> bool {
        let more: Lanes = lanes!(|at| row[at].saturating_sub(limit[at]));
        more != [0; LANES]
    };
    if let ([row], [limit]) = (row, limit) {
        return more(row, limit);
    }
    row.iter().zip(limit).any(|(row, limit)| more(row, limit))
}

/// `into` becomes the entries that `mask` lets through.
#[inline]
pub(super) fn copy_masked(into: &mut [Lanes], from: &[Lanes], mask: &[Lanes]) {
    each_masked(into, from, mask, |into, from, mask| *into = masked(from, mask));
}

/// `into` becomes the least row that is not before either.
#[inline]
pub(super) fn join(into: &mut [Lanes], from: &[Lanes]) {
    each(into, from, join_lanes);
}

/// The same with the entries that `mask` lets through.
#[inline]
pub(super) fn join_masked(into: &mut [Lanes], from: &[Lanes], mask: &[Lanes]) {
    each_masked(into, from, mask, |into, from, mask| join_lanes(into, &masked(from, mask)));
}

/// Is an entry of one row greater than that of another, a column apart?
#[inline]
pub(super) fn exceeds_besides(left: &[Lanes], right: &[Lanes], apart: usize) -> bool {
    // Nothing is written to memory and read again as a whole at once: processors wait for that.
    let exceeds = |left: &Lanes, right: &Lanes, apart: u16| {
        let more: Lanes = lanes!(|at| if at as u16 == apart { 0 } else { left[at].saturating_sub(right[at]) });
        more != [0; LANES]
    };
    if let ([left], [right]) = (left, right) {
        return exceeds(left, right, apart as u16);
    }
    let mut lanes = left.iter().zip(right).enumerate();
    lanes.any(|(at, (left, right))| exceeds(left, right, apart.wrapping_sub(at * LANES) as u16))
}
