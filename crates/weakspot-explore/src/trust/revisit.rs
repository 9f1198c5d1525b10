//! Backward revisits: an earlier read takes a write that was added later.

use weakspot_model::ids::ThreadId;

use super::{Alternative, Explorer, Frame, Item};
use crate::graph::{Event, EventKind, Graph, NONE};
use crate::system::{CellId, System};

impl<S: System> Explorer<'_, S> {
    /// The reads that the newest event, a write, may revisit: those of its cell that do not cause it, if every event
    /// that would be removed, and the read itself, was maximally added.
    ///
    /// Whether an event was does not depend on the read, and a read removes all that later reads remove: one walk back
    /// finds all reads, and ends at the first event that was not.
    pub(super) fn push_revisits(&mut self, write: u32) {
        let Event { cell, .. } = *self.graph().event(write);
        let Some(first) = earliest_candidate(self.graph(), cell, write) else { return };
        for id in (first..write).rev() {
            if self.graph().causes(id, write) {
                continue;
            }
            if !self.is_maximal(id, write) {
                return;
            }
            let event = self.graph().event(id);
            if event.kind.is_read() && event.cell == cell && !event.repeated && self.may_take(id, write) {
                self.push_places(id, write);
            }
        }
    }

    /// Was an event maximally added, seen from a write that is about to remove it? All events between the two that the
    /// write removes have been.
    fn is_maximal(&self, id: u32, write: u32) -> bool {
        let graph = self.graph();
        let event = graph.event(id);
        if event.early_reader || !event.first_choice {
            return false;
        }
        if event.repeated {
            return true;
        }
        let mut later = if event.kind.is_read() {
            graph.write_after(event.cell, event.source)
        } else if event.kind.is_write() {
            event.co_next
        } else {
            NONE
        };
        // Nothing after it in coherence that was there before it or that causes the write.
        while later != NONE {
            if later != write && self.would_take(event, later) {
                // If that is removed, it was maximally added after this event: so is what comes after it.
                return later > id && !graph.causes(later, write);
            }
            later = graph.event(later).co_next;
        }
        true
    }

    /// Is anything gained if a read takes a write? A thread that sleeps wakes up from one notification only.
    fn may_take(&self, read: u32, write: u32) -> bool {
        let event = self.graph().event(read);
        event.kind != EventKind::WakeRead || self.spurious_wakeups || self.is_woken_by(event.thread as usize, write)
    }

    /// `VisitCOs` after a revisit: a place for the write among the writes that remain.
    pub(super) fn push_places(&mut self, read: u32, write: u32) {
        let Frame { graph, items, .. } = &mut *self.frame;
        let Event { cell, kind, co_prev, .. } = *graph.event(write);
        let remains = |id: u32| id != write && (id < read || graph.causes(id, write));
        let mut next = NONE;
        let mut place = graph.last_write(cell);
        let before_read = graph.event(read).po_prev;
        loop {
            // What overwrites the write must not cause it, nor anything its new reader's thread did before.
            if next != NONE && (graph.causes(next, write) || before_read != NONE && graph.causes(next, before_read)) {
                break;
            }
            while place != NONE && !remains(place) {
                place = graph.event(place).co_prev;
            }
            let splits_atomic = next != NONE && graph.event(next).kind.is_exclusive_write();
            if !splits_atomic && (!kind.is_exclusive_write() || place == co_prev) {
                items.push(Item::new(write + 1, Alternative::Revisit { read, after: place }));
            }
            if place == NONE {
                break;
            }
            next = place;
            place = graph.event(place).co_prev;
        }
    }

    /// Opens a frame with the graph in which the newest event, a write, is read by an earlier read, and goes on there.
    pub(super) fn revisit(&mut self, read: u32, after: u32) -> bool {
        if !self.open_revisit(read, after) {
            return false;
        }
        if self.replays {
            return self.run_revisit(read, Alternative::Revisit { read, after });
        }
        let Event { thread, before, .. } = *self.graph().event(read);
        self.system.restore(ThreadId(thread as u16), before);
        self.read_anew(read)
    }

    /// Opens the frame; false if the graph is inconsistent, or hopeless in a system without tokens: that is found out
    /// before anything is ordered.
    pub(super) fn open_revisit(&mut self, read: u32, after: u32) -> bool {
        self.counters.revisits += 1;
        let mut above = self.spare.pop().unwrap_or_default();
        let below = &self.frame.graph;
        above.graph.become_revisit(below, read, after, &mut self.map);
        above.graph.set_above(Some(below));
        self.enter_frame(above);
        let is_open = !(self.replays && self.is_hopeless()) && self.order_revisit(read);
        if !is_open {
            self.leave_frame();
        }
        is_open
    }

    /// Orders the graph of a frame that is being opened, and computes its clocks; false if it is inconsistent.
    fn order_revisit(&mut self, read: u32) -> bool {
        let below = self.below.last().expect("invariant: a revisit is opened from another frame");
        let Frame { graph, order, .. } = &mut *self.frame;
        let mut changed = None;
        if let Some(same) = graph.inherit_order(&below.graph, &below.order, read, &self.map, order) {
            changed = Some(graph.inherit_clocks(&below.graph, read, &self.map, order, same));
        } else {
            if !self.lineariser.linearise_holding(graph, if self.replays { read } else { NONE }) {
                self.counters.inconsistent += 1;
                return false;
            }
            order.clear();
            order.extend_from_slice(self.lineariser.order());
            graph.compute_clocks(order);
        }
        graph.adopt_answers(&below.graph, read, &self.map, changed);
        true
    }

    /// Goes on from a read that has got its source, in a system that is where the graph is.
    pub(super) fn read_anew(&mut self, read: u32) -> bool {
        let Event { thread, .. } = *self.graph().event(read);
        let pending = self.system.pending(ThreadId(thread as u16));
        self.after_read(thread as usize, pending, read)
    }
}

/// The earliest read of a cell that does not cause a write.
#[inline]
fn earliest_candidate(graph: &Graph, cell: CellId, write: u32) -> Option<u32> {
    let mut earliest = None;
    for thread in 0..graph.width() {
        let mut read = graph.last_read(cell, thread);
        while read != NONE && !graph.causes(read, write) {
            earliest = Some(earliest.map_or(read, |earliest: u32| earliest.min(read)));
            read = graph.event(read).read_prev;
        }
    }
    earliest
}
