//! Asking the question of a monitor while the graph is built, and no more often than needed.
//!
//! Many executions share a long beginning, so watching each of them from its first event would cost far more than
//! exploring it. The question of a monitor (is there a store that could still be pending when this access comes?) is
//! about one access and can be answered from the graph: [`Graph::pending_store`]. An answer can change only if a row of
//! happens-before of the access, or of an event of its thread before it, changes: then the access comes after an event
//! that was put into the middle of coherence.
//!
//! So the graph remembers the answer for each access (`answers`), puts it aside when such a row changes, and takes it
//! back when the event that changed the row is removed. A revisit makes a new graph; an access whose past is the same
//! there keeps its answer.

use super::answers::Answer;
use super::buffered::Notice;
use super::{Event, EventKind, Graph, NONE, Status};
use crate::graph::rows::{exceeds_besides, make_row};
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

impl Watching {
    /// Is any question asked?
    #[inline]
    pub(super) fn is_anything(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

impl Graph {
    /// Asks a question from now on. The graph has to be empty.
    pub(crate) fn watch(&mut self, watching: Watching) {
        self.watching = watching;
        self.watched = watching == Watching::Sober;
        if self.watched {
            let threads = self.threads.len();
            self.happens_before.restart(2 * threads);
            make_row(&mut self.scratch, 0, 2 * threads, 0);
            self.strict_scratch.clone_from(&self.scratch);
            make_row(&mut self.strict, threads, 2 * threads, u16::MAX);
        }
    }

    /// Which question is asked.
    #[inline]
    pub fn watches(&self) -> Watching {
        self.watching
    }

    /// The store that could still be pending when an access comes, although the access happens after it.
    #[inline]
    fn pending_store(&self, access: u32) -> Answer {
        match self.watching {
            Watching::Nothing => Answer::Settled,
            Watching::Sober => self.unordered_store(access),
            Watching::Operational(model) => self.buffered_store(access, model),
        }
    }

    /// Every access with a store that could still be pending.
    pub fn findings(&self) -> impl Iterator<Item = Finding> + '_ {
        let asked_about = (0..self.len()).filter(|&access| self.event(access).asked_about);
        asked_about.filter_map(|access| match self.pending_store(access) {
            Answer::Pending(store) => Some(Finding { store, access }),
            Answer::No | Answer::Settled => None,
        })
    }

    /// Is there an access with a store that could still be pending? Tells `found` of those that are new since it was
    /// asked last, or if it does not want to know of `all`, of the first only.
    #[inline]
    pub fn is_borderline(&self, all: bool, found: impl FnMut(Finding)) -> bool {
        if all || !self.answers.is_any_pending() {
            self.ask(all, found);
        }
        self.answers.is_any_pending()
    }

    #[inline(never)]
    fn ask(&self, all: bool, mut found: impl FnMut(Finding)) {
        self.answers.ask_open(all, |access| {
            let answer = self.pending_store(access);
            if let Answer::Pending(store) = answer {
                found(Finding { store, access });
            }
            answer
        });
    }

    /// The rows of the events from place `unchanged` of the trail on are about to change, because the newest event comes
    /// before `from`. Most loads that do so bring nothing else along that those events did not come after already: then
    /// SOBER's answers stay, and the operational ones do unless the load itself matters to them.
    pub(super) fn put_answers_aside(&mut self, from: u32, unchanged: usize) {
        let newest = &self.events[self.events.len() - 1];
        let changed = &self.trail[unchanged..];
        let is_load = newest.kind == EventKind::Load;
        if !is_load || self.brings_news(newest, from) {
            return self.answers.put_aside_for(changed, !is_load, |_| true);
        }
        if !self.watched {
            let notice = Notice::of(newest, self.writers_up_to(newest.source), self.event(from));
            let (events, rows) = (&self.events, &self.happens_before);
            let is_affected = |access: u32| notice.affects(&events[access as usize], rows);
            self.answers.put_aside_for(changed, false, is_affected);
        }
    }

    /// Does the newest event, a load, come after anything that `from`, which it comes before, does not come after, and
    /// that an answer can depend on? SOBER's question is about writes only.
    #[inline]
    fn brings_news(&self, newest: &Event, from: u32) -> bool {
        let known = self.happens_before.row(from).as_flattened();
        let own = newest.thread as usize;
        let needed = if self.watched {
            let (_, last_store) = self.last_in_order(newest.po_prev);
            if last_store == NONE { 0 } else { self.event(last_store).index + 1 }
        } else {
            newest.index
        };
        if u32::from(known[own]) < needed {
            return true;
        }
        exceeds_besides(&self.scratch, self.happens_before.row(from), own)
    }

    /// The graph is a revisit of `read` in another one, and event `read + n` of that is event `map[n]` here, if any.
    /// What was known there of an access is still true if the access has the same past, and neither the read nor the
    /// write it now reads is a part of it.
    pub(crate) fn adopt_answers(&mut self, from: &Self, read: u32, map: &[u32]) {
        if !self.watching.is_anything() {
            return;
        }
        self.answers.reset_like(&from.answers, read);
        for (id, event) in (read..).zip(&self.events[read as usize..]) {
            self.answers.add(id, event.asked_about);
        }
        let new = [read, from.len() - 1].map(|id| (from.event(id).thread as usize, from.event(id).index));
        for old in from.answers.known() {
            let id = if old < read { old } else { map[(old - read) as usize] };
            if id == NONE {
                continue;
            }
            let row = from.happens_before.row(old);
            let is_past = |&(thread, index): &(usize, u32)| u32::from(row.as_flattened()[thread]) > index;
            if self.happens_before.row(id) == row && !new.iter().any(is_past) {
                self.answers.adopt(id, &from.answers, old);
            }
        }
    }

    /// Has somebody been put off by a mutex or a condition variable for good? Such a read has not happened, but the graph
    /// orders it: then the answers need not be those of the monitor.
    pub fn has_stuck_read(&self) -> bool {
        self.threads.iter().any(|end| end.status == Status::Stuck && end.last != NONE && self.event(end.last).stuck)
    }

    /// Does somebody wait in a read that is not of the last word of its cell? Then the graph is no execution. Without that
    /// read it is the beginning of one, in which the thread goes on, and which is explored as well: whatever a monitor sees
    /// here, it sees there.
    pub fn is_premature(&self) -> bool {
        let is_premature = |event: &Event| event.stuck && event.source != self.last_write(event.cell);
        self.threads
            .iter()
            .any(|end| end.status == Status::Stuck && end.last != NONE && is_premature(self.event(end.last)))
    }

    /// Could the answer for an event ever be other than no? What decides this never changes, except for a read that is
    /// given another source.
    #[inline]
    pub(super) fn is_asked_about(&self, event: &Event) -> bool {
        if !self.watching.is_anything() || event.po_prev == NONE {
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
}
