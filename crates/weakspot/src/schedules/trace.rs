//! Which schedules are the same execution.
//!
//! Two schedules that differ only in the order of steps that have nothing to do with each other lead to the same state, and
//! whatever can happen after one can happen after the other. A *trace* is what they have in common: which step comes
//! after which, by program order or because both access a cell that one of them writes. Here it is a number that is the
//! same for both: every step has one, made of those of the steps it comes right after, and that of the trace is the
//! sum over all its steps.
//!
//! Numbers of cells depend on who comes first, so they are not a part of it: which cell a step accesses is determined by
//! what its thread has seen before.
//!
//! # What is left out
//! Musuvathi and Qadeer (Partial-order reduction for context-bounded state exploration, 2007) keep the traces that were
//! seen, each with the preemptions it took. A schedule whose beginning is a trace that was seen with as few preemptions
//! and with the same thread going on (or having yielded) has nothing new to come: all that can still happen within the bound was tried out
//! there, or is what was tried out elsewhere for the same reason. Traces grow with every step, so no schedule waits
//! for its own end.

use rustc_hash::FxHashMap;
use weakspot_explore::system::{CellId, Pending};

/// Traces that are kept: memory stays bounded. Those that come later are not recognised.
const MOST_TRACES: usize = 1 << 21;

/// Makes one number of two.
fn mix(one: u64, other: u64) -> u64 {
    let sum = (one ^ other.rotate_left(29)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let product = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let product = (product ^ (product >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    product ^ (product >> 31)
}

/// The steps that the next ones on a cell come right after.
#[derive(Debug, Clone, Copy, Default)]
struct Latest {
    /// The last write, or 0.
    write: u64,
    /// The sum over the reads since.
    reads: u64,
}

/// The trace of the steps so far.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The last step of each thread.
    threads: Vec<u64>,
    cells: Vec<Latest>,
    sum: u64,
}

impl Trace {
    /// Becomes a copy of another one.
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.threads.clone_from(&other.threads);
        self.cells.clone_from(&other.cells);
        self.sum = other.sum;
    }

    /// A thread takes a step. What does not write for sure counts as a write, too, unless it is a load.
    pub(super) fn step(&mut self, thread: usize, pending: Pending, choice: i64) {
        if self.threads.len() <= thread {
            self.threads.resize(thread + 1, 0);
        }
        let mut name = mix(mix(self.threads[thread], thread as u64), choice as u64);
        match pending {
            Pending::Load(cell) | Pending::Await(cell) => {
                let latest = self.latest(cell);
                name = mix(name, latest.write);
                latest.reads = latest.reads.wrapping_add(mix(name, 1));
            }
            Pending::Wait { condvar, mutex } => {
                name = self.after(name, mutex);
                name = self.write(name, condvar);
                self.cells[mutex as usize] = Latest { write: name, reads: 0 };
            }
            Pending::Store { cell, .. }
            | Pending::InterlockedStore { cell, .. }
            | Pending::Rmw { cell, .. }
            | Pending::Lock(cell)
            | Pending::TryLock(cell)
            | Pending::Unlock(cell)
            | Pending::Notify { condvar: cell, .. }
            | Pending::Signal(cell) => name = self.write(name, cell),
            _ => {}
        }
        self.threads[thread] = name;
        self.sum = self.sum.wrapping_add(mix(name, 2));
    }

    fn latest(&mut self, cell: CellId) -> &mut Latest {
        let cell = cell as usize;
        if self.cells.len() <= cell {
            self.cells.resize(cell + 1, Latest::default());
        }
        &mut self.cells[cell]
    }

    /// A step that comes after all on a cell.
    fn after(&mut self, name: u64, cell: CellId) -> u64 {
        let Latest { write, reads } = *self.latest(cell);
        mix(mix(name, write), reads)
    }

    fn write(&mut self, name: u64, cell: CellId) -> u64 {
        let write = self.after(name, cell);
        *self.latest(cell) = Latest { write, reads: 0 };
        write
    }

    /// The trace, a thread that may go on or has yielded, and how often, and what else the future depends on.
    pub(super) fn key(&self, last: Option<usize>, yields: u64, machine: u64) -> u64 {
        mix(mix(mix(self.sum, machine), last.map_or(0, |thread| thread as u64 + 1)), yields)
    }
}

/// Traces that were seen, and the fewest preemptions they took.
#[derive(Debug, Default)]
pub(super) struct Seen(FxHashMap<u64, u32>);

impl Seen {
    /// Was the trace seen with as few preemptions? From now on it was.
    pub(super) fn is_known(&mut self, trace: u64, preemptions: u32) -> bool {
        if let Some(fewest) = self.0.get_mut(&trace) {
            let is_known = *fewest <= preemptions;
            *fewest = preemptions.min(*fewest);
            return is_known;
        }
        if self.0.len() < MOST_TRACES {
            self.0.insert(trace, preemptions);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(steps: &[(usize, Pending)]) -> u64 {
        let mut trace = Trace::default();
        for &(thread, pending) in steps {
            trace.step(thread, pending, 0);
        }
        trace.key(None, 0, 0)
    }

    fn store(cell: CellId) -> Pending {
        Pending::Store { cell, value: 1 }
    }

    #[test]
    fn independent_steps_may_change_places() {
        assert_eq!(of(&[(0, store(0)), (1, store(1))]), of(&[(1, store(0)), (0, store(1))]), "cells have no names");
        let loads = [(0, Pending::Load(0)), (1, Pending::Load(0))];
        assert_eq!(of(&loads), of(&[loads[1], loads[0]]));
    }

    #[test]
    fn dependent_steps_may_not() {
        for (one, other) in [
            (store(0), store(0)),
            (store(0), Pending::Load(0)),
            (Pending::Lock(0), Pending::Lock(0)),
            (Pending::Wait { condvar: 0, mutex: 1 }, Pending::Lock(1)),
            (Pending::Wait { condvar: 0, mutex: 1 }, Pending::Notify { condvar: 0, all: true }),
        ] {
            assert_ne!(of(&[(0, one), (1, other)]), of(&[(1, other), (0, one)]), "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_write_that_is_overwritten_unread_counts() {
        let last = (2, store(0));
        assert_ne!(of(&[(0, store(0)), (1, store(0)), last]), of(&[(1, store(0)), (0, store(0)), last]));
    }

    #[test]
    fn fewer_preemptions_are_new() {
        let mut seen = Seen::default();
        assert!(!seen.is_known(7, 2));
        assert!(seen.is_known(7, 2));
        assert!(!seen.is_known(7, 1));
        assert!(seen.is_known(7, 2));
    }
}
