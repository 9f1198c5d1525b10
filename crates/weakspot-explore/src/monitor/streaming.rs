//! Monitors over executions that do not fit into memory.
//!
//! A monitor keeps the stores that may still be pending or that a load may still be too early for. In a long execution
//! their number grows with its length, but most of them have become indistinguishable: every clock that a thread can
//! come to know of is a join of clocks that are in the tables now, or belongs to an event that is still to come and
//! comes after them all. Of the stores of a cell in coherence order each clock knows a first part. Where a part ends, the
//! store there can be named by a finding of the future; a store where no part ends is known exactly to those who know
//! the one after it, and is never named. So for each cell at most as many stores matter as there are clocks, and the last.
//! [`Streaming::forget`] drops the others: findings stay the same, and memory does not depend on the length.

use super::Monitor;

/// A monitor for executions of any length, with threads and cells that turn up on the way.
pub trait Streaming: Monitor {
    /// Makes room for more threads and cells.
    fn grow(&mut self, threads: usize, cells: usize);

    /// Drops what no finding can name any more. Cheap if there is little.
    fn forget(&mut self);

    /// Roughly how many bytes the tables take.
    fn bytes(&self) -> u64;
}

/// How many stores may gather before it is worth looking for those to drop.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Threshold {
    next: usize,
}

impl Threshold {
    const LEAST: usize = 1 << 14;

    /// Are there so many?
    pub(super) fn is_reached(self, stores: usize) -> bool {
        stores > self.next.max(Self::LEAST)
    }

    /// `kept` were left, after a look at `work` pairs of a cell and a clock.
    pub(super) fn set(&mut self, kept: usize, work: usize) {
        self.next = 2 * kept + work;
    }
}
