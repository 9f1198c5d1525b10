//! The graph of a revisit: some events removed, one read given a new source.
//!
//! # What need not be computed again
//! Most revisits are of a late read, and most of the graph stays as it is. Two things are taken over where that is right:
//!
//! - *An order.* The graph before had an order in which SC could have executed it, but for the few events that were not
//!   put at its end (those are *aslant*: they read what was overwritten by then, or write before others). Without the
//!   removed events, and with the read at its end, it often is one of the new graph. An order can only be wrong where an
//!   event comes after a write that has to come after it; for all events that were put at the end that is impossible,
//!   and it stays so when others are removed. So the events that are aslant, the write and the read are all that has to
//!   be looked at ([`Graph::inherit_order`]).
//! - *Clocks.* If that is so, the write is the last of its cell and nothing comes after the read, so all edges that are
//!   new lead to the write or to the read. The clock of an event whose past had neither of them and none of the removed
//!   events is what it was; only the others are computed ([`Graph::inherit_clocks`]), and those before the first removed
//!   event in the order are not even looked at.

use super::rows::{Lanes, Rows, copy_row, exceeds};
use super::{Event, Graph, NONE, Status};

impl Graph {
    fn copy_from(&mut self, other: &Self) {
        self.events.clone_from(&other.events);
        self.threads.clone_from(&other.threads);
        self.cells.clone_from(&other.cells);
        self.last_read.clone_from(&other.last_read);
        self.trail.clear();
        self.trail_rows.clear();
        self.aslant.clear();
        if self.question != other.question || self.strict != other.strict {
            self.set_watching(other.watching);
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
        self.causes.copy_prefix(&from.causes, from.events.len());
        map.clear();
        map.resize((write - read) as usize + 1, NONE);
        let mut kept = read;
        for (id, new) in (read..).zip(map.iter_mut()) {
            if id == read || from.causes(id, write) {
                self.causes.move_row(id, kept);
                *new = kept;
                kept += 1;
            }
        }
        self.causes.truncate(kept as usize);
        for id in (read + 1..write).rev() {
            if map[(id - read) as usize] == NONE {
                self.detach(id);
            }
        }
        self.link(write, after);
        self.note_revisited(from, read, map);
        if kept <= write {
            self.renumber(read, map);
        }
        self.take_new_source(read, kept - 1);
        self.note_early_readers(read);
        for end in self.threads.iter_mut().filter(|end| end.status == Status::FailedInVain) {
            end.status = Status::Live;
        }
    }

    /// Which reads are left of those whose sources were added after them, and what their sources are now.
    fn note_revisited(&mut self, from: &Self, first: u32, map: &[u32]) {
        let new = |id: u32| if id < first { id } else { map[(id - first) as usize] };
        self.revisited.clear();
        for &id in &from.revisited {
            let left = new(id);
            if left == NONE || id == first {
                continue;
            }
            self.revisited.push(left);
            if id < first {
                let event = &mut self.events[id as usize];
                event.source = new(event.source);
            }
        }
        self.revisited.push(first);
    }

    /// The read takes the write.
    fn take_new_source(&mut self, read: u32, write: u32) {
        let value = self.event(write).value;
        let event = self.event_mut(read);
        (event.source, event.value, event.stuck, event.has_write) = (write, value, false, false);
        let Event { thread, before, phase, index, po_prev, .. } = *event;
        let end = self.thread_mut(thread as usize);
        (end.token, end.phase, end.status) = (before, phase, Status::Live);
        self.causes.row_mut(read).fill(Default::default());
        self.causes.set(read, thread as usize, index + 1);
        if po_prev != NONE {
            self.causes.join_rows(read, po_prev);
        }
        self.causes.join_rows(read, write);
    }

    /// Puts the order of the graph that this one came from, without the removed events and with the revisited read at its
    /// end, into `order`; nothing if that is no order of this graph, else how many of its first events are what they were
    /// before. `before` orders the first events of `from`, and those that were added since follow in that order.
    pub(crate) fn inherit_order(
        &mut self,
        from: &Self,
        before: &[u32],
        read: u32,
        map: &[u32],
        order: &mut Vec<u32>,
    ) -> Option<usize> {
        order.clear();
        let split = before.iter().position(|&id| id >= read).unwrap_or(before.len());
        let (unchanged, others) = before.split_at(split);
        order.extend_from_slice(unchanged);
        let since = before.len() as u32;
        if others.is_empty() {
            order.extend(since..read);
        }
        let same = order.len();
        let new = |id: u32| if id < read { id } else { map[(id - read) as usize] };
        let is_left = |&id: &u32| id != NONE && id != read;
        order.extend(others.iter().map(|&id| new(id)).filter(is_left));
        let since = if others.is_empty() { since.max(read) } else { since };
        order.extend((since..from.len()).map(new).filter(is_left));
        order.push(read);
        let write = self.len() - 1;
        let stands = self.event(write).co_next == NONE && from.aslant.iter().all(|&id| self.stands(id, read, map));
        debug_assert_eq!(stands, self.is_order(order), "only what is aslant can be wrong");
        stands.then_some(same)
    }

    /// Does an event that was aslant come before the write that it has to come before?
    fn stands(&self, id: u32, read: u32, map: &[u32]) -> bool {
        let id = if id < read { id } else { map[(id - read) as usize] };
        if id == NONE || id == read {
            return true;
        }
        let event = self.event(id);
        let later = if event.kind.is_read() { self.write_after(event.cell, event.source) } else { event.co_next };
        later == NONE || later > id
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

    /// Computes happens-before along an inherited order, and takes over what is not changed: the first `same` events are
    /// what they were. Returns the first event whose past has changed: the read at the latest.
    pub(crate) fn inherit_clocks(&mut self, from: &Self, read: u32, map: &[u32], order: &[u32], same: usize) -> u32 {
        self.happens_before.copy_prefix(&from.happens_before, read as usize);
        for (offset, &id) in map.iter().enumerate() {
            if id != NONE {
                self.happens_before.push(from.happens_before.row(read + offset as u32));
            }
        }
        let limit = self.unchanged(read);
        let write = self.len() - 1;
        let mut changed = read;
        for &id in &order[same..] {
            if id == read || id == write || exceeds(self.happens_before.row(id), &limit) {
                changed = changed.min(id);
                self.compute_clock(id);
            }
        }
        self.unchanged = limit;
        changed
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

    /// Closes the gaps in the numbering from `first` on. Of what has a lower number, only reads that were revisited and
    /// neighbours in coherence know of anything later.
    fn renumber(&mut self, first: u32, map: &[u32]) {
        let new = |id: u32| {
            // Nothing at all is not a number either.
            if id.wrapping_add(1) > first { map[(id - first) as usize] } else { id }
        };
        let width = self.threads.len();
        let mut next = first;
        for (offset, &id) in map.iter().enumerate() {
            if id == NONE {
                continue;
            }
            let mut event = self.events[first as usize + offset];
            event.po_prev = new(event.po_prev);
            event.last_load = new(event.last_load);
            event.last_store = new(event.last_store);
            self.threads[event.thread as usize].last = id;
            event.read_prev = new(event.read_prev);
            if event.kind.is_read() {
                event.source = new(event.source);
                self.last_read[event.cell as usize * width + event.thread as usize] = id;
            } else if event.kind.is_write() {
                self.tell_neighbours(&event, first, id);
                event.co_prev = new(event.co_prev);
                event.co_next = new(event.co_next);
            }
            self.events[next as usize] = event;
            next += 1;
        }
        self.events.truncate(next as usize);
    }

    /// A write has got another number: its neighbours in coherence that keep theirs have to know.
    fn tell_neighbours(&mut self, write: &Event, first: u32, id: u32) {
        let Event { cell, co_prev, co_next, .. } = *write;
        if co_prev == NONE {
            self.cells[cell as usize].first = id;
        } else if co_prev < first {
            self.events[co_prev as usize].co_next = id;
        }
        if co_next == NONE {
            self.cells[cell as usize].last = id;
        } else if co_next < first {
            self.events[co_next as usize].co_prev = id;
        }
    }

    /// Notes which writes from `first` on are read by events that were added before them. (What the events say of trails
    /// is not true any more, and nobody asks: what a graph begins with is never taken back.)
    fn note_early_readers(&mut self, first: u32) {
        for event in &mut self.events[first as usize..] {
            event.early_reader = false;
        }
        let Self { events, revisited, .. } = self;
        for &read in revisited.iter() {
            let source = events[read as usize].source;
            if source >= first {
                events[source as usize].early_reader = true;
            }
        }
    }
}
