//! Writes: where they stand in coherence, and what they make possible.

use super::{Alternative, Explorer};
use crate::graph::{Event, EventKind, NONE};
use crate::system::{CellId, System};

impl<S: System> Explorer<'_, S> {
    /// The write of an atomic, right after the source of its read; false if another atomic has taken that source.
    pub(super) fn write_part(&mut self, thread: usize, kind: EventKind, read: u32, value: i64) -> bool {
        let Event { cell, source, .. } = *self.graph().event(read);
        self.graph_mut().event_mut(read).has_write = true;
        let next = self.graph().write_after(cell, source);
        let taken = next != NONE && self.graph().event(next).kind.is_exclusive_write();
        if read + 1 == self.graph().len() {
            let write = self.graph_mut().add_write_part(read, kind, value);
            self.push_revisits(write);
        } else {
            self.write(thread, kind, cell, value, source);
        }
        !taken
    }

    /// Adds a store as the last write, and leaves the other places in coherence for later.
    pub(super) fn write_store(&mut self, thread: usize, kind: EventKind, cell: CellId, value: i64) {
        let len = self.graph().len();
        let last = self.graph().last_write(cell);
        let mut next = last;
        while next != NONE && !self.graph().happens_before_next_of(next, thread) {
            let Event { kind: of_next, co_prev, .. } = *self.graph().event(next);
            if !of_next.is_exclusive_write() {
                self.push_item(len, Alternative::Place { thread: thread as u32, kind, cell, after: co_prev });
            }
            next = co_prev;
        }
        self.write(thread, kind, cell, value, last);
        self.resume(thread, 0);
    }

    /// Adds a write and leaves the revisits it makes possible for later.
    pub(super) fn write(&mut self, thread: usize, kind: EventKind, cell: CellId, value: i64, after: u32) {
        let write = self.graph_mut().add_write(thread, kind, cell, value, after);
        self.push_revisits(write);
    }
}
