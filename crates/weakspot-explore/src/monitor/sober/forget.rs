//! SOBER over long executions: see [`crate::monitor::streaming`].
//!
//! A store is known by happens-before and by relaxed happens-before, so the parts end where clocks of either kind say.
//! The walk of [`Sober::search`] back along the stores of a cell ends at a store that the loading thread knows by either,
//! and at the thread's own; it knows its own. So the stores between those that are kept change nothing for it.

use super::{Sober, Write};
use crate::clocks::ClockTable;
use crate::graph::NONE;
use crate::monitor::streaming::Streaming;

impl Streaming for Sober {
    fn grow(&mut self, threads: usize, cells: usize) {
        self.happens_before.grow(threads, cells);
        self.loads.grow(2 * threads, threads);
        self.stores.grow(2 * threads, threads);
        self.accesses.grow(2 * threads, cells);
        self.last_write.grow(2 * threads, cells);
        self.foreign_write.grow(2 * threads, cells);
        self.last.resize(self.last.len().max(cells), NONE);
        self.timestamp.resize(self.timestamp.len().max(2 * threads), 0);
    }

    fn forget(&mut self) {
        if self.threshold.is_reached(self.writes.len()) {
            self.forget_now();
        }
    }

    fn forget_now(&mut self) {
        let mut kept = Vec::new();
        let mut chain = Vec::new();
        let mut keep = Vec::new();
        for cell in 0..self.last.len() {
            chain.clear();
            let mut write = self.last[cell];
            while write != NONE {
                chain.push(self.writes[write as usize]);
                write = self.writes[write as usize].previous;
            }
            if chain.is_empty() {
                continue;
            }
            self.mark(&chain, &mut keep);
            let mut previous = NONE;
            for (write, _) in chain.iter().zip(&keep).rev().filter(|(_, keep)| **keep) {
                kept.push(Write { previous, ..*write });
                previous = kept.len() as u32 - 1;
            }
            self.last[cell] = previous;
        }
        self.writes = kept;
        let clocks = 3 * self.last.len() + self.happens_before.threads.rows();
        self.threshold.set(self.writes.len(), self.last.len() * clocks / 4);
    }

    fn bytes(&self) -> u64 {
        let tables = [&self.loads, &self.stores, &self.accesses, &self.last_write, &self.foreign_write];
        let clocks: usize = tables.iter().map(|table| table.bytes()).sum();
        (self.happens_before.bytes() + clocks + self.writes.capacity() * size_of::<Write>()) as u64
    }
}

impl Sober {
    /// Which writes of a cell, newest first, are still told apart.
    fn mark(&self, chain: &[Write], keep: &mut Vec<bool>) {
        keep.clear();
        keep.resize(chain.len(), false);
        keep[0] = true;
        let mut mark = |knows: &dyn Fn(&Write) -> bool| {
            // Whoever knows a write knows those before it.
            let first_known = chain.partition_point(|write| !knows(write));
            if let Some(keep) = keep.get_mut(first_known) {
                *keep = true;
            }
        };
        for clock in self.happens_before.clocks() {
            mark(&|write| clock[write.thread as usize] > write.index);
        }
        let relaxed = [&self.loads, &self.stores, &self.accesses, &self.last_write, &self.foreign_write];
        for clock in relaxed.into_iter().flat_map(ClockTable::iter) {
            mark(&|write| clock[2 * write.thread as usize + 1] >= write.count);
        }
    }
}
