//! The graph of a revisit: some events removed, one read given a new source.
//!
//! # What need not be computed again
//! Most revisits are of a late read, and most of the graph stays as it is. Two things are taken over where that is right:
//!
//! - *An order.* The graph before had an order in which SC could have executed it. Without the removed events, and with
//!   the read at its end, it often is one of the new graph: it is, exactly if each read reads the last write before it
//!   and each write comes right after the last one in coherence ([`Graph::inherit_order`]).
//! - *Clocks.* If that is so, the write is the last of its cell and nothing comes after the read, so all edges that are
//!   new lead to the write or to the read. The clock of an event whose past had neither of them and none of the removed
//!   events is what it was; only the others are computed ([`Graph::inherit_clocks`]).

use super::rows::{Lanes, Rows, copy_row, exceeds};
use super::{Event, Graph, NONE, Status};

impl Graph {
    pub(super) fn copy_from(&mut self, other: &Self) {
        self.events.clone_from(&other.events);
        self.threads.clone_from(&other.threads);
        self.cells.clone_from(&other.cells);
        self.last_read.clone_from(&other.last_read);
        self.trail.clear();
        self.trail_rows.clear();
        if self.watching != other.watching || self.strict != other.strict {
            (self.watching, self.watched) = (other.watching, other.watched);
            self.scratch.clone_from(&other.scratch);
            self.strict_scratch.clone_from(&other.scratch);
            self.strict.clone_from(&other.strict);
            self.happens_before = Rows::new(0);
            self.happens_before.copy_prefix(&other.happens_before, 0);
        }
    }

    /// Becomes `from` without the events that were added after `read` and do not cause its newest event, a write,
    /// which `read` then reads and which stands after `after` in coherence. Happens-before is not computed.
    ///
    /// The caller has checked that no remaining event reads a removed one.
    pub(crate) fn become_revisit(&mut self, from: &Self, read: u32, after: u32, map: &mut Vec<u32>) {
        let write = from.len() - 1;
        self.copy_from(from);
        self.unlink(write);
        map.clear();
        let mut removed = 0;
        for id in read..=write {
            let kept = id == read || from.causes(id, write);
            map.push(if kept { id - removed } else { NONE });
            removed += u32::from(!kept);
        }
        for id in (read + 1..write).rev() {
            if map[(id - read) as usize] == NONE {
                self.detach(id);
            }
        }
        self.link(write, after);
        let value = self.event(write).value;
        let event = self.event_mut(read);
        (event.source, event.value, event.stuck, event.has_write) = (write, value, false, false);
        let event = *self.event(read);
        self.event_mut(read).asked_about = self.is_asked_about(&event);
        let Event { thread, before, phase, .. } = event;
        let end = self.thread_mut(thread as usize);
        (end.token, end.phase, end.status) = (before, phase, Status::Live);
        self.causes.copy_prefix(&from.causes, read as usize);
        for id in read..=write {
            if map[(id - read) as usize] != NONE {
                self.causes.push(from.causes.row(id));
            }
        }
        if removed > 0 {
            self.renumber(read, map);
        }
        self.note_early_readers(read);
        let (read_event, write) = (*self.event(read), self.len() - 1);
        self.causes.row_mut(read).fill(Default::default());
        self.causes.set(read, read_event.thread as usize, read_event.index + 1);
        if read_event.po_prev != NONE {
            self.causes.join_rows(read, read_event.po_prev);
        }
        self.causes.join_rows(read, write);
    }

    /// Puts the order of the graph that this one came from, without the removed events and with the revisited read at its
    /// end, into `order`; false if that is no order of this graph. `before` orders the first events of `from`, and those
    /// that were added since follow in that order.
    pub(crate) fn inherit_order(
        &mut self,
        from: &Self,
        before: &[u32],
        read: u32,
        map: &[u32],
        order: &mut Vec<u32>,
    ) -> bool {
        order.clear();
        let since = before.len() as u32..from.len();
        for id in before.iter().copied().chain(since) {
            let id = if id < read { id } else { map[(id - read) as usize] };
            if id != NONE && id != read {
                order.push(id);
            }
        }
        order.push(read);
        self.is_order(order)
    }

    /// Could SC have executed all events in this order?
    fn is_order(&mut self, order: &[u32]) -> bool {
        let Self { events, latest, gone, cells, threads, .. } = self;
        latest.clear();
        latest.resize(cells.len(), NONE);
        gone.clear();
        gone.resize(threads.len(), 0);
        order.iter().all(|&id| {
            let event = &events[id as usize];
            let gone = &mut gone[event.thread as usize];
            let is_next = *gone == event.index;
            *gone += 1;
            is_next
                && if event.kind.is_read() {
                    event.source == latest[event.cell as usize]
                } else if event.kind.is_write() {
                    std::mem::replace(&mut latest[event.cell as usize], id) == event.co_prev
                } else {
                    true
                }
        })
    }

    /// Computes happens-before along an inherited order, and takes over what is not changed.
    pub(crate) fn inherit_clocks(&mut self, from: &Self, read: u32, map: &[u32], order: &[u32]) {
        self.happens_before.copy_prefix(&from.happens_before, read as usize);
        for (offset, &id) in map.iter().enumerate() {
            if id != NONE {
                self.happens_before.push(from.happens_before.row(read + offset as u32));
            }
        }
        let limit = self.unchanged(read);
        let write = self.len() - 1;
        for &id in order {
            if id == read || id == write || exceeds(self.happens_before.row(id), &limit) {
                self.compute_clock(id);
            }
        }
        self.unchanged = limit;
    }

    /// How many events of each thread are as they were, and the revisiting write and the read after all of them.
    fn unchanged(&mut self, read: u32) -> Vec<Lanes> {
        let width = self.threads.len();
        let mut limit = std::mem::take(&mut self.unchanged);
        limit.clone_from(&self.scratch);
        let entries = limit.as_flattened_mut();
        let mut set = |thread: usize, count: u32| {
            entries[thread] = count as u16;
            if self.watched {
                entries[width + thread] = count as u16;
            }
        };
        for (thread, end) in self.threads.iter().enumerate() {
            set(thread, end.len);
        }
        for id in [read, self.len() - 1] {
            let event = self.event(id);
            set(event.thread as usize, event.index);
        }
        limit
    }

    /// Computes the clock of an event from those of the events before it.
    fn compute_clock(&mut self, id: u32) {
        let event = *self.event(id);
        self.start_clock(&event);
        if event.kind.is_read() && event.source != NONE {
            self.join_source(&event);
        } else if event.kind.is_write() {
            if event.co_prev != NONE {
                super::join(&mut self.scratch, self.happens_before.row(event.co_prev));
            }
            self.join_readers(event.cell, event.co_prev, false);
        }
        copy_row(self.happens_before.row_mut(id), &self.scratch);
    }

    /// Closes the gaps in the numbering from `first` on.
    pub(super) fn renumber(&mut self, first: u32, map: &[u32]) {
        let new = |id: &mut u32| {
            // Nothing at all is not a number either.
            if id.wrapping_add(1) > first {
                *id = map[(*id - first) as usize];
            }
        };
        // Of what has a lower number, only these may be later.
        for event in &mut self.events[..first as usize] {
            new(&mut event.source);
            new(&mut event.co_prev);
            new(&mut event.co_next);
        }
        let mut next = first as usize;
        for (offset, &id) in map.iter().enumerate() {
            if id == NONE {
                continue;
            }
            let mut event = self.events[first as usize + offset];
            new(&mut event.source);
            new(&mut event.co_prev);
            new(&mut event.co_next);
            new(&mut event.po_prev);
            new(&mut event.read_prev);
            new(&mut event.last_load);
            new(&mut event.last_store);
            self.events[next] = event;
            next += 1;
        }
        self.events.truncate(next);
        for cell in &mut self.cells {
            new(&mut cell.first);
            new(&mut cell.last);
        }
        self.last_read.iter_mut().for_each(new);
        for thread in &mut self.threads {
            new(&mut thread.last);
        }
    }

    /// Notes which writes from `first` on are read by events that were added before them. (What the events say of trails
    /// is not true any more, and nobody asks: what a graph begins with is never taken back.)
    fn note_early_readers(&mut self, first: u32) {
        for event in &mut self.events[first as usize..] {
            event.early_reader = false;
        }
        for id in 0..self.events.len() {
            let Event { kind, source, .. } = self.events[id];
            if source != NONE && source >= first && source as usize > id && kind.is_read() {
                self.events[source as usize].early_reader = true;
            }
        }
    }
}
