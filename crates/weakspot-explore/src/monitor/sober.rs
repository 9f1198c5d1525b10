//! SOBER's monitor for TSO (Burckhardt, Musuvathi, CAV 2008), as published and corrected.
//!
//! | the paper | here |
//! |---|---|
//! | Fig. 2, lines 5 to 16 | [`Sober::search`] |
//! | →\*hb | the usual vector clocks, shared with the other monitors |
//! | Fig. 3, `process_event` | [`Sober::advance`] |
//! | `lc[p]` (the timestamp of p's last read), `sc[p]` | [`Sober`]'s `loads`, `stores` |
//! | `mc2[a]` | `accesses` |
//! | `mc1[p][a]` | `last_write` of `a`, or `foreign_write` if the last one is p's own plain store |
//!
//! # The correction
//! The published relation puts every earlier write of a cell before a load of it. A load that is served by the thread's
//! own pending store waits for nobody, so those edges must go: a load whose source is the own thread's plain store does
//! not merge `mc1[p][a]`. The smallest program that shows the difference is known as n6.
//!
//! # Why two rows are enough for `mc1`
//! Timestamps of the writes of a cell grow along coherence. So the join of all writes that are not p's own plain stores
//! is the timestamp of the last such write: the last write of the cell, or else the last one before p's own began.
//!
//! # Atomics that do not write, and fences
//! A failed compare-and-swap drains the buffer and reads memory: ordered after the own stores like any interlocked
//! operation, after the writes of its cell, and before the write that overwrites what it read. A full fence is an
//! interlocked operation on a cell of its own. A store-store fence means nothing to TSO.

mod forget;

use super::{Event, Finding, HappensBefore, Monitor, Operation};
use crate::clocks::{ClockTable, join};
use crate::graph::NONE;
use crate::monitor::streaming::Threshold;

/// A write, in the list of its cell.
#[derive(Debug, Clone, Copy)]
struct Write {
    thread: u32,
    index: u32,
    /// How many writes its thread had made, this one included: its place in the timestamps.
    count: u32,
    label: u32,
    /// Can it be forwarded to a load of its thread?
    plain: bool,
    /// The write of the same cell before it.
    previous: u32,
}

/// The monitor.
#[derive(Debug, Clone)]
pub struct Sober {
    published: bool,
    happens_before: HappensBefore,
    /// `lc`: entry 2t is reads of thread t, entry 2t+1 its writes.
    loads: ClockTable,
    /// `sc`
    stores: ClockTable,
    /// `mc2`
    accesses: ClockTable,
    /// The timestamp of the last write of each cell.
    last_write: ClockTable,
    /// The timestamp of the last write of each cell that is not a plain store of the thread that wrote last.
    foreign_write: ClockTable,
    /// All writes so far; the last of each cell is in `last`.
    writes: Vec<Write>,
    last: Vec<u32>,
    /// How many writes there were.
    written: usize,
    timestamp: Vec<u32>,
    threshold: Threshold,
}

impl Sober {
    /// The corrected monitor.
    pub fn corrected(threads: usize, cells: usize) -> Self {
        Self::new(threads, cells, false)
    }

    /// The monitor as published.
    pub fn published(threads: usize, cells: usize) -> Self {
        Self::new(threads, cells, true)
    }

    fn new(threads: usize, cells: usize, published: bool) -> Self {
        Self {
            published,
            happens_before: HappensBefore::new(threads, cells),
            loads: ClockTable::zeroed(2 * threads, threads),
            stores: ClockTable::zeroed(2 * threads, threads),
            accesses: ClockTable::zeroed(2 * threads, cells),
            last_write: ClockTable::zeroed(2 * threads, cells),
            foreign_write: ClockTable::zeroed(2 * threads, cells),
            writes: Vec::new(),
            last: vec![NONE; cells],
            written: 0,
            timestamp: vec![0; 2 * threads],
            threshold: Threshold::default(),
        }
    }

    /// The timestamp of the event observed last: Theorem 5 (Theorem 12 of the report) says that they are ordered as
    /// the relaxed happens-before relation is.
    pub fn timestamp(&self) -> &[u32] {
        &self.timestamp
    }

    /// Becomes a copy of another one with as many threads and cells. The list of writes is not copied but cut off: the
    /// other one is a copy of this one as it was, or the other way round.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        self.happens_before.copy_from(&other.happens_before);
        self.loads.copy_from(&other.loads);
        self.stores.copy_from(&other.stores);
        self.accesses.copy_from(&other.accesses);
        self.last_write.copy_from(&other.last_write);
        self.foreign_write.copy_from(&other.foreign_write);
        self.last.clone_from(&other.last);
        self.written = other.written;
        self.writes.truncate(self.written);
    }

    /// Fig. 2: could the load have read an older value under TSO that it cannot read under SC?
    fn search(&self, event: &Event) -> Option<Finding> {
        let mut write = self.last[event.cell as usize];
        while write != NONE {
            let Write { thread, index, count, label, previous, .. } = self.writes[write as usize];
            if thread == event.thread {
                return None;
            }
            if self.loads.entry(event.thread, 2 * thread as usize + 1) >= count {
                return None;
            }
            if self.happens_before.is_before(thread, index, event.thread) {
                return Some(Finding { store: label, access: event.label });
            }
            write = previous;
        }
        None
    }

    /// Fig. 3.
    fn advance(&mut self, event: &Event) {
        let Event { thread, cell, .. } = *event;
        let own = thread as usize;
        match event.operation {
            Operation::Load => {
                self.timestamp.copy_from_slice(self.loads.row(thread));
                self.merge_sources(event);
                self.timestamp[2 * own] += 1;
                self.loads.row_mut(thread).copy_from_slice(&self.timestamp);
                join(self.accesses.row_mut(cell), &self.timestamp);
            }
            Operation::Store => {
                self.start_after_all(thread);
                join(&mut self.timestamp, self.accesses.row(cell));
                self.timestamp[2 * own + 1] += 1;
                self.note_write(event, true);
                self.stores.row_mut(thread).copy_from_slice(&self.timestamp);
            }
            Operation::Atomic { writes, .. } => {
                self.start_after_all(thread);
                let before = if writes { &self.accesses } else { &self.last_write };
                join(&mut self.timestamp, before.row(cell));
                self.timestamp[2 * own] += 1;
                self.timestamp[2 * own + 1] += 1;
                if writes {
                    self.note_write(event, false);
                } else {
                    join(self.accesses.row_mut(cell), &self.timestamp);
                }
                self.finish_interlocked(thread);
            }
            Operation::FullFence => {
                self.start_after_all(thread);
                self.timestamp[2 * own] += 1;
                self.timestamp[2 * own + 1] += 1;
                self.finish_interlocked(thread);
            }
            Operation::StoreFence => {}
        }
    }

    fn start_after_all(&mut self, thread: u32) {
        self.timestamp.copy_from_slice(self.stores.row(thread));
        join(&mut self.timestamp, self.loads.row(thread));
    }

    fn finish_interlocked(&mut self, thread: u32) {
        self.loads.row_mut(thread).copy_from_slice(&self.timestamp);
        self.stores.row_mut(thread).copy_from_slice(&self.timestamp);
    }

    /// `mc1[p][a]`, with or without the correction.
    fn merge_sources(&mut self, event: &Event) {
        let last = self.last[event.cell as usize];
        if last == NONE {
            return;
        }
        let Write { thread, plain, .. } = self.writes[last as usize];
        if !(thread == event.thread && plain) {
            join(&mut self.timestamp, self.last_write.row(event.cell));
        } else if self.published {
            join(&mut self.timestamp, self.foreign_write.row(event.cell));
        }
    }

    fn note_write(&mut self, event: &Event, plain: bool) {
        let Event { thread, index, cell, label, .. } = *event;
        let previous = self.last[cell as usize];
        let own_again = previous != NONE && {
            let previous = self.writes[previous as usize];
            previous.thread == thread && previous.plain
        };
        if !own_again {
            self.foreign_write.row_mut(cell).copy_from_slice(self.last_write.row(cell));
        }
        self.last_write.row_mut(cell).copy_from_slice(&self.timestamp);
        self.accesses.row_mut(cell).copy_from_slice(&self.timestamp);
        self.last[cell as usize] = self.writes.len() as u32;
        let count = self.timestamp[2 * thread as usize + 1];
        self.writes.push(Write { thread, index, count, label, plain, previous });
        self.written = self.writes.len();
    }
}

impl Monitor for Sober {
    fn observe(&mut self, event: &Event) -> Option<Finding> {
        let finding = if event.operation == Operation::Load { self.search(event) } else { None };
        self.advance(event);
        self.happens_before.follow(event);
        finding
    }

    fn reset(&mut self) {
        self.happens_before.reset();
        for table in
            [&mut self.loads, &mut self.stores, &mut self.accesses, &mut self.last_write, &mut self.foreign_write]
        {
            table.reset(table.rows());
        }
        self.writes.clear();
        self.written = 0;
        self.last.fill(NONE);
    }
}
