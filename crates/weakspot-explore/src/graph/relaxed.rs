//! Relaxed happens-before beside happens-before: SOBER's monitor as a part of the graph.
//!
//! A *watched* graph keeps, in the second half of each clock row, which writes come before the event in the corrected
//! relaxed happens-before relation: (po without store → load) ∪ co ∪ fr ∪ rf from other threads and from interlocked
//! operations. Conflict edges are the same in both relations, so one join serves both halves; program order differs, and
//! a load that is served by its own thread's plain store takes the first half only.
//!
//! The question of Fig. 2 (could the load have read an older value under TSO and not under SC?) depends on nothing but
//! the rows of two events of the load's thread: the last one and the last read. The answers are the same as those of
//! [`crate::monitor::sober::Sober`] on any linearisation, which the tests check execution by execution.
//!
//! Only the columns of writes are needed: the question is always about a write.

use super::{Event, EventKind, Graph, NONE};
use crate::graph::event::Order;
use crate::graph::rows::copy_row;

impl Graph {
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
        self.watched
            && read.kind.order() == Order::Load
            && source.kind == EventKind::Store
            && source.thread == read.thread
    }

    /// The events of its thread whose relaxed pasts together are that of an event, as far as program order goes: TSO keeps
    /// loads before everything and stores before all but loads.
    #[inline]
    pub(super) fn kept_in_order(&self, before: u32, order: Order) -> [u32; 2] {
        let (last_load, last_store) = self.last_in_order(before);
        match order {
            Order::Local => [NONE; 2],
            Order::Load => [last_load, NONE],
            Order::Store | Order::Interlocked => [last_load, last_store],
        }
    }

    /// Fills the scratch row with what comes before an event in program order: all of it in the first half, in the
    /// second as far as TSO keeps it.
    #[inline]
    pub(super) fn start_relaxed_clock(&mut self, event: &Event, order: Order) {
        let kept = self.kept_in_order(event.po_prev, order);
        if kept == [event.po_prev, NONE] {
            return copy_row(&mut self.scratch, self.happens_before.row(event.po_prev));
        }
        self.happens_before.merge(&mut self.scratch, event.po_prev, kept, &self.strict);
    }

    /// Is this a load that another thread's write serves?
    #[inline]
    pub(super) fn is_served_by_foreign(&self, event: &Event) -> bool {
        event.source != NONE && self.event(event.source).thread != event.thread && event.is_load()
    }

    /// Fig. 2: the store that could still be pending when a load comes that another thread's write serves, although it
    /// happens after that.
    #[inline(never)]
    pub(super) fn unordered_store(&self, load: u32) -> Option<u32> {
        let Event { thread, source, po_prev, .. } = *self.event(load);
        if po_prev == NONE {
            return None;
        }
        let last_load = self.event(po_prev).last_load;
        let strict = self.happens_before.row(po_prev).as_flattened();
        let relaxed = if last_load == NONE { &[] } else { self.happens_before.row(last_load).as_flattened() };
        let relaxed = relaxed.get(self.threads.len()..).unwrap_or_default();
        let mut write = source;
        while write != NONE {
            let event = self.event(write);
            let is_known =
                |row: &[u16]| row.get(event.thread as usize).is_some_and(|&count| u32::from(count) > event.index);
            if event.thread == thread || is_known(relaxed) {
                return None;
            }
            if is_known(strict) {
                return Some(write);
            }
            write = event.co_prev;
        }
        None
    }
}
