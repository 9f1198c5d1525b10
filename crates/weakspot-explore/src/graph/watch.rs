//! Asking the question of a monitor while the graph is built, and no more often than needed.
//!
//! Many executions share a long beginning, so watching each of them from its first event would cost far more than
//! exploring it. The question of a monitor (is there a store that could still be pending when this access comes?) is
//! about one access and can be answered from the graph: [`Graph::pending_store`]. An answer can change only if a row of
//! happens-before of the access, or of an event of its thread before it, changes: then the access comes after an event
//! that was put into the middle of coherence.
//!
//! What is known is kept beside the graph (`answers`), put aside when such a row changes, and taken back when the event
//! that changed the row is removed. A revisit makes a new graph; an access whose past is the same there keeps its answer.

use super::answers::{Change, ClearLoad, Fate, Place};
use super::{Event, EventKind, Graph, NONE, Status};
use crate::graph::rows::{LANES, exceeds, make_row};
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
    /// A number for each question; 0 for none.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Sober => 1,
            Self::Operational(model) => 2 + model as u8,
        }
    }

    /// Is any question asked?
    #[inline]
    pub(super) fn is_anything(self) -> bool {
        !matches!(self, Self::Nothing)
    }
}

impl Graph {
    /// Asks a question from now on. The graph has to be empty.
    pub(crate) fn watch(&mut self, watching: Watching) {
        self.set_watching(watching);
        if self.watched {
            let threads = self.threads.len();
            self.happens_before.restart(2 * threads);
            make_row(&mut self.scratch, 0, 2 * threads, 0);
            self.strict_scratch.clone_from(&self.scratch);
            make_row(&mut self.strict, threads, 2 * threads, u16::MAX);
        }
    }

    pub(super) fn set_watching(&mut self, watching: Watching) {
        self.watching = watching;
        self.watched = watching == Watching::Sober;
        self.question = watching.number();
    }

    /// Which question is asked.
    #[inline]
    pub fn watches(&self) -> Watching {
        self.watching
    }

    /// Is this question asked? (Somebody wants to know for each execution; comparing takes several branches.)
    #[inline]
    pub(crate) fn answers(&self, question: u8) -> bool {
        self.question == question
    }

    /// The thread of an event, and its index.
    #[inline]
    fn place(&self, id: u32) -> Place {
        let &Event { thread, index, .. } = self.event(id);
        (thread, index)
    }

    /// The store that could still be pending when an access comes, although the access happens after it.
    #[inline]
    fn pending_store(&self, access: u32) -> Option<u32> {
        match self.watching {
            Watching::Sober if self.is_served_by_foreign(self.event(access)) => self.unordered_store(access),
            Watching::Operational(model) if self.follows_foreign(self.event(access)) => {
                self.buffered_store(access, model)
            }
            _ => None,
        }
    }

    /// [`Answers::find_witness`] among the first `len` accesses.
    ///
    /// [`Answers::find_witness`]: super::answers::Answers::find_witness
    #[inline(never)]
    fn find_witness(&self, len: u32) {
        let accesses = &self.events[..len as usize];
        let place = |store| self.place(store);
        let concerns = |change: &Change, access: u32| self.is_concerned(change, access);
        match self.watching {
            Watching::Nothing => {}
            Watching::Sober => {
                let interest = |event: &Event| self.is_served_by_foreign(event);
                let pending = |access| self.unordered_store(access).map(place);
                self.answers.find_witness(accesses, concerns, interest, pending);
            }
            Watching::Operational(model) => {
                let interest = |event: &Event| self.follows_foreign(event);
                let pending = |access| self.buffered_store(access, model).map(place);
                self.answers.find_witness(accesses, concerns, interest, pending);
            }
        }
    }

    /// Is there an access with a store that could still be pending? Tells of those that are new since it was asked last.
    /// Who has asked [`Graph::is_borderline`] once is not told any more.
    pub fn tell(&self, found: impl FnMut(Finding)) -> bool {
        match self.watching {
            Watching::Nothing => {}
            Watching::Sober => {
                self.tell_of(|event| self.is_served_by_foreign(event), |access| self.unordered_store(access), found);
            }
            Watching::Operational(model) => {
                self.tell_of(|event| self.follows_foreign(event), |access| self.buffered_store(access, model), found);
            }
        }
        self.is_known_borderline()
    }

    /// Most accesses are of no `interest`, whatever happens before them.
    #[inline]
    fn tell_of(
        &self,
        interest: impl Fn(&Event) -> bool,
        pending: impl Fn(u32) -> Option<u32>,
        mut found: impl FnMut(Finding),
    ) {
        let start = self.answers.begin_telling(self.len());
        let mut first = None;
        for (access, event) in (start..).zip(&self.events[start as usize..]) {
            if interest(event)
                && let Some(store) = pending(access)
            {
                found(Finding { store, access });
                first = first.or_else(|| Some((access, self.place(store))));
            }
        }
        self.answers.end_telling(start, self.len(), first);
    }

    /// For events to which the graph will be cut, the newest first: of how many of them will have been told then, if nothing
    /// more is told.
    pub(crate) fn note_told<'a>(&self, cuts: impl Iterator<Item = (u32, &'a mut u32)>) {
        let mut memory = self.answers.memory();
        for (len, told) in cuts {
            let put_aside = self.events.get(len as usize).map(|event| event.put_aside);
            *told = self.answers.told_after_cut(&mut memory, put_aside, len);
        }
    }

    /// So many accesses have been told of, and not more.
    #[inline]
    pub(crate) fn set_told(&mut self, told: u32) {
        debug_assert!(told <= self.len(), "what has been told of is there");
        self.answers.set_told(told);
    }

    /// Asks the question of the newest access, of all others it is answered. A load that is clear would be so if it read
    /// something later in coherence: the store that could be pending for it is the last one that happens before what its
    /// thread did last, which it reads or overtakes in either case, and its past would be greater.
    #[inline]
    fn ask_newest(&self) {
        let id = self.len() - 1;
        let &Event { kind, thread, source, .. } = &self.events[id as usize];
        let known = self.answers.clear_load();
        let is_clear = known.id == id
            && known.thread == thread
            && (known.source == NONE || source != NONE && self.happens_before(known.source, source));
        let pending = if is_clear { None } else { self.pending_store(id) };
        self.answers.note_newest(id, pending.map(|store| self.place(store)));
        if pending.is_none() && kind == EventKind::Load && !is_clear {
            self.answers.note_clear_load(ClearLoad { id, thread, source });
        }
    }

    /// Every access with a store that could still be pending.
    pub fn findings(&self) -> impl Iterator<Item = Finding> + '_ {
        (0..self.len()).filter_map(|access| self.pending_store(access).map(|store| Finding { store, access }))
    }

    /// Is there an access with a store that could still be pending?
    #[inline]
    pub fn is_borderline(&self) -> bool {
        self.answers.tell_no_more();
        self.is_known_borderline()
    }

    /// The same, found out if it is not known.
    #[inline]
    fn is_known_borderline(&self) -> bool {
        self.answers.witness() != NONE || self.answers.is_unsure(self.len()) && self.find_out()
    }

    /// Nobody knows: is there such an access?
    #[inline(never)]
    fn find_out(&self) -> bool {
        let len = self.len();
        if self.answers.lacks_newest(len) {
            self.ask_newest();
        } else {
            self.find_witness(len);
        }
        self.answers.witness() != NONE
    }

    /// An event of this kind is about to be added that comes before some that are there. What is not known of those is
    /// found out before: it is worth knowing for whatever else is added in its place.
    #[inline]
    pub(super) fn prepare_for_change(&mut self, kind: EventKind) {
        // Whether an atomic writes is not certain before it has.
        let len = self.len() - u32::from(kind.is_exclusive_write());
        if self.watching.is_anything() && self.answers.is_unsure(len) {
            self.find_witness(len);
        }
    }

    /// Does an access come after what changed?
    #[inline]
    pub(super) fn is_concerned(&self, change: &Change, access: u32) -> bool {
        self.happens_before.entry(access, change.after.0 as usize) > change.after.1
    }

    /// The rows of the events from place `unchanged` of the trail on are about to change, because the newest event comes
    /// before `from`; it is `alone` if it brings nothing of other threads along. Mostly what is known stays true.
    #[inline]
    pub(super) fn put_answers_aside(&mut self, from: u32, after: Place, unchanged: usize, alone: bool) {
        let witness = self.answers.witness();
        if !self.answers.tells() {
            if witness == NONE {
                if alone && self.brings_loads_only(from) {
                    return;
                }
            } else if self.happens_before.entry(witness, after.0 as usize) <= after.1 {
                return self.answers.note_change(self.len() - 1);
            } else if alone && self.keeps_witness(from) {
                return;
            }
        }
        self.put_concerned_aside(from, unchanged, alone);
    }

    /// The same, if what is known may not stay true, or somebody is told of everything.
    #[inline(never)]
    fn put_concerned_aside(&mut self, from: u32, unchanged: usize, alone: bool) {
        let witness = self.answers.witness();
        let tells = self.answers.tells();
        let knows_clear = self.answers.knows_clear();
        let brings_loads_only = alone && self.brings_loads_only(from);
        let keeps_witness = witness == NONE
            || tells && (!self.happens_before(from, witness) || brings_loads_only && self.keeps_witness(from));
        let keeps_clear = knows_clear && (brings_loads_only || self.keeps_clear(from));
        if keeps_clear && keeps_witness && !tells {
            return;
        }
        // If only loads come, what took the store of a witness is that one of them notices it or a later store of its thread.
        // Under PSO that may be a store which does not drag it along.
        let fate = match (keeps_witness, brings_loads_only, self.watching) {
            (true, ..) => Fate::Same,
            (false, true, Watching::Operational(MemoryModel::Tso)) => Fate::Clear,
            (false, ..) => Fate::Open,
        };
        let &Event { thread, index, .. } = self.event(from);
        let first = if knows_clear { self.trail[unchanged..].iter().fold(NONE, |first, &id| first.min(id)) } else { 0 };
        self.answers.put_aside_for(Change { after: (thread, index), first }, fate, keeps_clear);
    }

    /// Does an access that comes after `from` keep its pending store? If only loads come before it that did not, SOBER's
    /// answers stay. All that such loads can do to the operational ones is to notice a store, which then is not pending
    /// any more.
    #[inline]
    fn keeps_witness(&self, from: u32) -> bool {
        let own = || self.happens_before.entry(from, self.events[self.events.len() - 1].thread as usize);
        self.brings_loads_only(from) && (self.watched || !self.is_noticed_now(self.answers.overtaken(), own()))
    }

    /// Does no access get a pending store that had none? So it is if the newest event brings loads only; and for the
    /// operational question, which is asked here, if it is a load that brings more, and every store among that has been
    /// committed.
    #[inline]
    fn keeps_clear(&self, from: u32) -> bool {
        self.events[self.events.len() - 1].kind == EventKind::Load
            && matches!(self.watching, Watching::Operational(model) if !self.brings_pending(from, model))
    }

    /// Is the newest event a load, and nothing but loads among those of its thread that `from`, which it comes before, does
    /// not come after yet? (Of other threads there is nothing.)
    #[inline]
    fn brings_loads_only(&self, from: u32) -> bool {
        let newest = &self.events[self.events.len() - 1];
        let own = self.happens_before.entry(from, newest.thread as usize);
        newest.kind == EventKind::Load && {
            let (_, last_store) = self.last_in_order(newest.po_prev);
            last_store == NONE || own > self.event(last_store).index
        }
    }

    /// The graph is a revisit of `read` in another one, and event `read + n` of that is event `map[n]` here, if any.
    /// What was known there of an access is still true if the access has the same past, and neither the read nor the
    /// write it now reads is a part of it. `changed` is the first access for which that is not so, if it is known.
    pub(crate) fn adopt_answers(&mut self, from: &Self, read: u32, map: &[u32], changed: Option<u32>) {
        if !self.watching.is_anything() {
            return;
        }
        self.scratch.fill([u16::MAX; LANES]);
        for id in [read, from.len() - 1] {
            let event = from.event(id);
            let least = &mut self.scratch.as_flattened_mut()[event.thread as usize];
            *least = (*least).min(event.index as u16);
        }
        let (known, first) = from.answers.extent();
        let first_here = if first < read { first } else { map.get((first - read) as usize).copied().unwrap_or(NONE) };
        let is_witness = first_here != NONE && from.answers.witness() != NONE && {
            let row = from.happens_before.row(first);
            self.happens_before.row(first_here) == row && !exceeds(row, &self.scratch)
        };
        let witness = if is_witness { first_here } else { NONE };
        // A witness is enough.
        let known = if is_witness && !from.answers.tells() { 0 } else { known.min(read) };
        let count = || self.happens_before.same_rows(&from.happens_before, known as usize, &self.scratch) as u32;
        let same = changed.map_or_else(count, |changed| known.min(changed));
        debug_assert_eq!(same, count(), "clocks were taken over exactly where nothing changed");
        self.answers.adopt(&from.answers, same, witness, first_here);
    }

    /// Has somebody been put off by a mutex or a condition variable for good? Such a read has not happened, but the graph
    /// orders it: then the answers need not be those of the monitor.
    pub fn has_stuck_read(&self) -> bool {
        self.threads.iter().any(|end| end.status == Status::Stuck && end.last != NONE && self.event(end.last).stuck)
    }

    /// Does somebody wait in a read that is not of the last word of its cell, or for a notification that has come? Then the
    /// graph is no execution. Without that read it is the beginning of one, in which the thread goes on, and which is
    /// explored as well: whatever a monitor sees here, it sees there.
    pub fn is_premature(&self) -> bool {
        let is_woken = |event: &Event| event.kind == EventKind::WakeRead && event.value >> (event.thread % 64) & 1 == 0;
        let is_premature =
            |event: &Event| event.stuck && (event.source != self.last_write(event.cell) || is_woken(event));
        self.threads
            .iter()
            .any(|end| end.status == Status::Stuck && end.last != NONE && is_premature(self.event(end.last)))
    }
}
