//! Relaxed happens-before beside happens-before: SOBER's monitor as a part of the graph.
//!
//! A graph is explored by adding few events to a long common prefix, so watching each execution from its first event
//! would cost far more than exploring it. A *watched* graph keeps, in the second half of each clock row, which writes
//! come before the event in the corrected relaxed happens-before relation: (po without store → load) ∪ co ∪ fr ∪ rf
//! from other threads and from interlocked operations. Conflict edges are the same in both relations, so one join
//! serves both halves; program order differs, and a load that is served by its own thread's plain store takes the first
//! half only.
//!
//! The question of Fig. 2 (could the load have read an older value under TSO and not under SC?) depends on nothing but
//! the rows of two events of the load's thread: the last one and the last read. It is asked when a load is added, and
//! again when those rows change. The answers are the same as those of [`crate::monitor::sober::Sober`] on any
//! linearisation, which the tests check execution by execution.
//!
//! Only the columns of writes are needed: the question is always about a write.

use super::{Event, EventKind, Graph, NONE};
use crate::clocks::join;
use crate::graph::event::Order;
use crate::monitor::Finding;

impl Graph {
    /// Keeps relaxed happens-before from now on. The graph has to be empty.
    pub(crate) fn watch(&mut self) {
        self.watched = true;
        let width = 2 * self.threads.len();
        self.happens_before = crate::clocks::ClockTable::new(width);
        self.scratch.resize(width, 0);
    }

    /// How many loads could have read an older value under TSO and not under SC.
    pub fn borderline_loads(&self) -> u32 {
        self.borderline
    }

    /// Those loads, each with the store that could still be pending.
    pub fn findings(&self) -> impl Iterator<Item = Finding> + '_ {
        let found = self.events.iter().enumerate().filter(|(_, event)| event.pending_store != NONE);
        found.map(|(id, event)| Finding { store: event.pending_store, access: id as u32 })
    }

    /// [`Event::last_load`] and [`Event::last_store`] after an event.
    #[inline]
    pub(super) fn last_in_order(&self, event: u32) -> (u32, u32) {
        if event == NONE {
            return (NONE, NONE);
        }
        let event = self.event(event);
        (event.last_load, event.last_store)
    }

    /// Is this a load that its own thread's plain store serves?
    #[inline]
    pub(super) fn is_forwarded(&self, read: &Event) -> bool {
        let source = self.event(read.source);
        self.watched && read.kind == EventKind::Load && source.kind == EventKind::Store && source.thread == read.thread
    }

    /// The second half of the scratch row: what comes before the event in relaxed program order.
    #[inline]
    pub(super) fn start_relaxed_clock(&mut self, event: &Event) {
        let width = self.threads.len();
        let (last_load, last_store) = self.last_in_order(event.po_prev);
        let half = &mut self.scratch[width..];
        half.fill(0);
        let order = event.kind.order();
        if order == Order::Local {
            return;
        }
        if last_load != NONE {
            half.copy_from_slice(&self.happens_before.row(last_load)[width..]);
        }
        if order != Order::Load && last_store != NONE {
            join(half, &self.happens_before.row(last_store)[width..]);
        }
    }

    /// The same, when all rows are computed anew.
    pub(super) fn join_relaxed_program_order(&mut self, id: u32, event: &Event) {
        let columns = self.threads.len()..self.scratch.len();
        let (last_load, last_store) = self.last_in_order(event.po_prev);
        let order = event.kind.order();
        if order == Order::Local {
            return;
        }
        if last_load != NONE {
            self.happens_before.join_columns(id, last_load, columns.clone());
        }
        if order != Order::Load && last_store != NONE {
            self.happens_before.join_columns(id, last_store, columns);
        }
    }

    /// Fig. 2: the store that could still be pending when this load comes, although the load happens after it.
    #[inline]
    fn pending_store(&self, load: u32) -> u32 {
        let Event { kind, thread, source, po_prev, .. } = *self.event(load);
        if kind != EventKind::Load || po_prev == NONE {
            return NONE;
        }
        let last_load = self.event(po_prev).last_load;
        let width = self.threads.len();
        let mut write = source;
        while write != NONE {
            let event = self.event(write);
            let column = event.thread as usize;
            if event.thread == thread {
                return NONE;
            }
            if last_load != NONE && self.happens_before.entry(last_load, width + column) > event.index {
                return NONE;
            }
            if self.happens_before.entry(po_prev, column) > event.index {
                return write;
            }
            write = event.co_prev;
        }
        NONE
    }

    /// Asks the question for a load that was just added.
    #[inline]
    pub(super) fn watch_load(&mut self, load: u32) {
        let store = self.pending_store(load);
        self.borderline += u32::from(store != NONE);
        self.event_mut(load).pending_store = store;
    }

    /// Asks the question again for all loads behind events that happen after this one.
    pub(super) fn watch_loads_after(&mut self, from_thread: usize, from_index: u32) {
        let newest = self.events.len() as u32 - 1;
        for thread in 0..self.threads.len() {
            let mut event = self.threads[thread].last;
            let mut next = NONE;
            while event != NONE && self.happens_before.entry(event, from_thread) > from_index {
                if next != NONE && next != newest {
                    self.watch_again(next);
                }
                next = event;
                event = self.event(event).po_prev;
            }
        }
    }

    fn watch_again(&mut self, load: u32) {
        let (old, new) = (self.event(load).pending_store, self.pending_store(load));
        if old != new {
            self.pending_trail.push((load, old));
            self.set_pending_store(load, new);
        }
    }

    fn set_pending_store(&mut self, load: u32, store: u32) {
        let old = std::mem::replace(&mut self.event_mut(load).pending_store, store);
        self.borderline += u32::from(store != NONE);
        self.borderline -= u32::from(old != NONE);
    }

    /// Takes back answers.
    pub(super) fn unwind_pending(&mut self, length: usize) {
        while self.pending_trail.len() > length {
            if let Some((load, old)) = self.pending_trail.pop() {
                self.set_pending_store(load, old);
            }
        }
    }

    /// Asks the question for every load, from nothing.
    pub(super) fn watch_all_loads(&mut self) {
        self.borderline = 0;
        for id in 0..self.events.len() as u32 {
            let store = self.pending_store(id);
            self.borderline += u32::from(store != NONE);
            self.event_mut(id).pending_store = store;
        }
    }

    /// Could the operational monitors find anything? Not unless some access happens after a plain store of another
    /// thread to its cell, with no write of the cell and no other thread's read of that store in between.
    pub fn may_have_pending_stores(&self) -> bool {
        (0..self.events.len() as u32).any(|id| self.follows_pending_store(id))
    }

    fn follows_pending_store(&self, id: u32) -> bool {
        let event = self.event(id);
        let mut write = if event.kind.is_read() {
            event.source
        } else if event.kind.is_write() {
            event.co_prev
        } else {
            NONE
        };
        if event.po_prev == NONE {
            return false;
        }
        while write != NONE && !self.happens_before(write, event.po_prev) {
            write = self.event(write).co_prev;
        }
        if write == NONE {
            return false;
        }
        let store = self.event(write);
        store.kind == EventKind::Store
            && store.thread != event.thread
            && !self.is_read_by_others(write, event.cell, event.po_prev)
    }

    /// Does another thread read a store before some event?
    fn is_read_by_others(&self, store: u32, cell: u32, before: u32) -> bool {
        let others = (0..self.threads.len()).filter(|&thread| thread != self.event(store).thread as usize);
        others.into_iter().any(|thread| {
            let mut read = self.last_read(cell, thread);
            while read != NONE && !self.happens_before(read, before) {
                read = self.event(read).read_prev;
            }
            read != NONE && self.event(read).source == store
        })
    }
}
