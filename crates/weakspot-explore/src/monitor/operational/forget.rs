//! The operational monitors over long executions: see [`crate::monitor::streaming`].
//!
//! All pending stores of a cell are of one thread, so a clock knows those up to its own entry for that thread.

use super::{Operational, Pending};
use crate::graph::NONE;
use crate::monitor::streaming::Streaming;

impl Streaming for Operational {
    fn grow(&mut self, threads: usize, cells: usize) {
        self.happens_before.grow(threads, cells);
        self.buffers.resize(self.buffers.len().max(threads), Vec::new());
        self.segments.resize(self.segments.len().max(threads), 0);
        self.owner.resize(self.owner.len().max(cells), NONE);
    }

    fn forget(&mut self) {
        let pending: usize = self.buffers.iter().map(Vec::len).sum();
        if self.threshold.is_reached(pending) {
            self.forget_now();
        }
    }

    fn forget_now(&mut self) {
        let (mut ends, mut newer) = (Vec::new(), vec![NONE; self.owner.len()]);
        let mut left = 0;
        for thread in 0..self.buffers.len() {
            ends.clear();
            ends.extend(self.happens_before.clocks().map(|clock| clock[thread]));
            ends.sort_unstable();
            ends.dedup();
            newer.fill(NONE);
            let buffer = &mut self.buffers[thread];
            let keep: Vec<bool> =
                buffer.iter().rev().map(|pending| is_told_apart(pending, &ends, &mut newer)).collect();
            let mut keep = keep.into_iter().rev();
            buffer.retain(|_| keep.next().unwrap_or(true));
            left += buffer.len();
        }
        self.threshold.set(left, self.owner.len());
    }

    fn bytes(&self) -> u64 {
        let pending: usize = self.buffers.iter().map(Vec::capacity).sum();
        (self.happens_before.bytes() + pending * size_of::<Pending>()) as u64
    }
}

/// Does some clock know this store, and not the next one of its cell? The last one is always kept.
fn is_told_apart(pending: &Pending, ends: &[u32], newer: &mut [u32]) -> bool {
    let next = std::mem::replace(&mut newer[pending.cell as usize], pending.index);
    let first = ends.partition_point(|&end| end <= pending.index);
    next == NONE || ends.get(first).is_some_and(|&end| end <= next)
}
