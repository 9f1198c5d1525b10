//! Asking the question of a monitor while the graph is built, and no more often than needed.
//!
//! Many executions share a long beginning, so watching each of them from its first event would cost far more than
//! exploring it. The question of a monitor (is there a store that could still be pending when this access comes?) is
//! about one access and can be answered from the graph: [`Graph::pending_store`]. An answer can change only if a row of
//! happens-before of the access, or of an event of its thread before it, changes: then the access comes after an event
//! that was put into the middle of coherence.
//!
//! So the graph remembers how far it has asked. Events are numbered in the order in which they were added; `asked` says
//! that all accesses before this event have been asked, and `first_pending` which of them was the first with a pending
//! store. An event that changes rows takes `asked` back to the lowest of them. When the event is removed, what was known
//! before it is known again, or, if that is more, what is known now of accesses whose rows it did not change.

use super::{Event, EventKind, Graph, NONE, Status};
use crate::graph::rows::{Rows, row_of};
use crate::monitor::Finding;
use weakspot_model::buffer::MemoryModel;

/// Which question is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Watching {
    /// None.
    #[default]
    Nothing,
    /// SOBER's, corrected.
    Sober,
    /// That of the operational monitor of a model.
    Operational(MemoryModel),
}

impl Graph {
    /// Asks a question from now on. The graph has to be empty.
    pub(crate) fn watch(&mut self, watching: Watching) {
        self.watching = watching;
        self.watched = watching == Watching::Sober;
        if self.watched {
            let threads = self.threads.len();
            self.happens_before = Rows::new(2 * threads);
            self.scratch = row_of(0, 2 * threads, 0);
            self.strict = row_of(threads, 2 * threads, u16::MAX);
        }
    }

    /// Which question is asked.
    #[inline]
    pub fn watches(&self) -> Watching {
        self.watching
    }

    /// The store that could still be pending when an access comes, although the access happens after it.
    #[inline]
    fn pending_store(&self, access: u32) -> u32 {
        match self.watching {
            Watching::Nothing => NONE,
            Watching::Sober => self.unordered_store(access),
            Watching::Operational(model) => self.buffered_store(access, model),
        }
    }

    /// Every access with a store that could still be pending.
    pub fn findings(&self) -> impl Iterator<Item = Finding> + '_ {
        let asked_about = (0..self.len()).filter(|&access| self.event(access).asked_about);
        let found = asked_about.map(|access| Finding { store: self.pending_store(access), access });
        found.filter(|finding| finding.store != NONE)
    }

    /// Is there an access with a store that could still be pending? Tells `found` of those that are new since it was
    /// asked last, or if it does not want to know of `all`, of the first only.
    #[inline]
    pub fn is_borderline(&self, all: bool, found: impl FnMut(Finding)) -> bool {
        if self.asked.get() < self.len() && (all || self.first_pending.get() == NONE) {
            // What was found last time is likely to be found again.
            let likely = self.likely.get();
            let is_likely = !all && likely < self.len() && self.event(likely).asked_about;
            if is_likely && self.pending_store(likely) != NONE {
                return true;
            }
            self.ask(all, found);
        }
        self.first_pending.get() != NONE
    }

    #[inline(never)]
    fn ask(&self, all: bool, mut found: impl FnMut(Finding)) {
        for access in self.asked.get()..self.len() {
            if !self.event(access).asked_about {
                continue;
            }
            let store = self.pending_store(access);
            if store != NONE {
                found(Finding { store, access });
                self.first_pending.set(self.first_pending.get().min(access));
                if !all {
                    self.likely.set(access);
                    return self.asked.set(access + 1);
                }
            }
        }
        self.asked.set(self.len());
    }

    /// Has somebody been put off by a mutex or a condition variable for good? Such a read has not happened, but the graph
    /// orders it: then the answers need not be those of the monitor.
    pub fn has_stuck_read(&self) -> bool {
        self.threads.iter().any(|end| end.status == Status::Stuck && end.last != NONE && self.event(end.last).stuck)
    }

    /// Could the answer for an event ever be other than no? What decides this never changes, except for a read that is
    /// given another source.
    #[inline]
    pub(super) fn is_asked_about(&self, event: &Event) -> bool {
        if self.watching == Watching::Nothing || event.po_prev == NONE {
            return false;
        }
        let reads_foreign_store = || {
            event.source != NONE && {
                let source = self.event(event.source);
                source.thread != event.thread && (self.watched || source.kind == EventKind::Store)
            }
        };
        match event.kind {
            EventKind::Load => reads_foreign_store(),
            EventKind::RmwRead { .. } => !self.watched && reads_foreign_store(),
            EventKind::Store | EventKind::RmwWrite { .. } => !self.watched,
            _ => false,
        }
    }

    /// All rows are new.
    pub(super) fn forget_all_answers(&mut self) {
        self.asked.set(0);
        self.first_pending.set(NONE);
    }

    /// Rows have changed, none of them before this event.
    #[inline]
    pub(super) fn forget_answers(&mut self, from: u32) {
        if self.asked.get() > from {
            self.asked.set(from);
        }
        if self.first_pending.get() >= from {
            self.first_pending.set(NONE);
        }
    }

    /// The newest event is about to be removed, and its changes have been taken back.
    #[inline]
    pub(super) fn recall_answers(&mut self, id: u32) {
        let Event { touched, asked, first_pending, .. } = *self.event(id);
        let still_known = self.asked.get().min(touched).min(id);
        if still_known < asked {
            self.asked.set(asked);
            self.first_pending.set(first_pending);
        } else {
            self.asked.set(still_known);
            if self.first_pending.get() >= still_known {
                self.first_pending.set(NONE);
            }
        }
    }
}
