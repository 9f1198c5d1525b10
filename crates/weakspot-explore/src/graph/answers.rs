//! What is known of the accesses of a graph.
//!
//! Whether a graph is borderline takes one access with a pending store, a *witness*, or the knowledge that no access has
//! one. So three numbers are kept instead of an answer for each access: the witness, if one is known; how many of the
//! first accesses are *clear*, that is, known to have no pending store; and of how many it has been *told* whether they
//! have one. (Accesses are numbered like the events of the graph.)
//!
//! When an event changes rows of happens-before, what was known of the accesses they belong to may be wrong. What is
//! known is then put aside, with what the event changes, and comes back when the event is removed; what was found
//! meanwhile stays, as far as the event did not change it.
//!
//! While there is a witness and nobody wants to be told of others, nobody asks which accesses are clear. So an event that
//! leaves the witness alone is not put aside but remembered as `unnoted`: what is clear is known again when it is gone.

use std::cell::Cell;

use super::{Event, NONE};

/// Which accesses are concerned by a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    /// All of them come after this event: its thread and index.
    pub(super) after: (u32, u32),
    /// None of them has a lower number.
    pub(super) first: u32,
}

/// What becomes of the witness when rows change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays one, or there is none.
    Same,
    /// Its store is not pending any more.
    Clear,
    /// Nobody knows.
    Open,
}

/// What was known before rows changed.
#[derive(Debug, Clone, Copy)]
struct Aside {
    change: Change,
    clear: u32,
    told: u32,
    witness: u32,
    overtaken: Place,
}

/// What has been told, while it is being found out what will have been told in smaller graphs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    told: u32,
    aside: usize,
}

/// A thread and the index of one of its events: what does not change when the events of a graph are numbered anew.
pub(super) type Place = (u32, u32);

/// A load that was found clear. It is what its thread does next for as long as the events of lower numbers stay.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClearLoad {
    /// Its number, or [`NONE`] if there is no such load.
    pub(super) id: u32,
    /// Its thread.
    pub(super) thread: u32,
    /// What it read.
    pub(super) source: u32,
}

impl ClearLoad {
    const NOTHING: Self = Self { id: NONE, thread: NONE, source: NONE };
}

/// What is known of the accesses of a graph.
#[derive(Debug, Clone)]
pub(super) struct Answers {
    /// No access before this one has a pending store.
    clear: Cell<u32>,
    /// Those before this one that have a pending store have been told of.
    told: Cell<u32>,
    /// Somebody wants to be told.
    tells: Cell<bool>,
    /// An access that has a pending store, or [`NONE`].
    witness: Cell<u32>,
    /// That store.
    overtaken: Cell<Place>,
    /// An access that had one, or [`NONE`]: where to look first for a new witness. (It may be gone.)
    hint: Cell<u32>,
    /// It has none any more: the change that is put aside last has taken it.
    hint_is_clear: Cell<bool>,
    /// Another one, that was found when the first had none any more.
    second_hint: Cell<u32>,
    /// The first event that changed rows and was not put aside, because it left the witness alone, or [`NONE`].
    unnoted: u32,
    /// The load that was found clear last.
    clear_load: Cell<ClearLoad>,
    aside: Vec<Aside>,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            clear: Cell::new(0),
            told: Cell::new(0),
            tells: Cell::new(true),
            witness: Cell::new(NONE),
            overtaken: Cell::new((NONE, NONE)),
            hint: Cell::new(NONE),
            hint_is_clear: Cell::new(false),
            second_hint: Cell::new(NONE),
            unnoted: NONE,
            clear_load: Cell::new(ClearLoad::NOTHING),
            aside: Vec::new(),
        }
    }
}

impl Answers {
    /// Nothing is known of anything.
    pub(super) fn reset(&mut self) {
        self.aside.clear();
        *self = Self { aside: std::mem::take(&mut self.aside), ..Self::default() };
    }

    /// How often something has been put aside.
    #[inline]
    pub(super) fn put_aside(&self) -> u32 {
        self.aside.len() as u32
    }

    /// An access that has a pending store, or [`NONE`].
    #[inline]
    pub(super) fn witness(&self) -> u32 {
        self.witness.get()
    }

    /// The store that is pending for the witness.
    #[inline]
    pub(super) fn overtaken(&self) -> Place {
        self.overtaken.get()
    }

    #[inline]
    fn set_witness(&self, access: u32, store: Place) {
        self.witness.set(access);
        self.overtaken.set(store);
    }

    /// Is everything to be told of?
    #[inline]
    pub(super) fn tells(&self) -> bool {
        self.tells.get()
    }

    /// From now on one access is enough.
    #[inline]
    pub(super) fn tell_no_more(&self) {
        self.tells.set(false);
    }

    /// Is neither a witness known nor that the first `len` accesses are clear?
    #[inline]
    pub(super) fn is_unsure(&self, len: u32) -> bool {
        self.witness.get() == NONE && self.clear.get() < len
    }

    /// Is it the newest of `len` accesses alone that nothing is known of?
    #[inline]
    pub(super) fn lacks_newest(&self, len: u32) -> bool {
        self.clear.get() + 1 == len
    }

    /// The load that was found clear last.
    #[inline]
    pub(super) fn clear_load(&self) -> ClearLoad {
        self.clear_load.get()
    }

    /// The newest access, the only one of which nothing was known, has a pending store, or else all are clear.
    #[inline]
    pub(super) fn note_newest(&self, newest: u32, pending: Option<Place>) {
        match pending {
            Some(store) => self.set_witness(newest, store),
            None => self.clear.set(newest + 1),
        }
    }

    /// The newest access is a clear load.
    #[inline]
    pub(super) fn note_clear_load(&self, load: ClearLoad) {
        self.clear_load.set(load);
    }

    /// The newest event changes rows, and leaves the witness alone.
    #[inline]
    pub(super) fn note_change(&mut self, newest: u32) {
        self.unnoted = self.unnoted.min(newest);
    }

    /// Is it known which accesses are clear? Not if rows have changed since there is a witness.
    #[inline]
    pub(super) fn knows_clear(&self) -> bool {
        self.tells.get() || self.witness.get() == NONE || self.unnoted == NONE
    }

    /// The accesses that a change concerns may get other answers, or only lose their pending stores if those that are
    /// clear stay so.
    #[inline]
    pub(super) fn put_aside_for(&mut self, change: Change, witness_after: Fate, keeps_clear: bool) {
        let (clear, told, witness) = (self.clear.get(), self.told.get(), self.witness.get());
        self.aside.push(Aside { change, clear, told, witness, overtaken: self.overtaken.get() });
        if !keeps_clear {
            self.clear.set(clear.min(change.first));
            self.told.set(told.min(change.first));
        }
        if witness_after != Fate::Same {
            self.lose_witness(witness_after == Fate::Clear);
        }
    }

    #[inline]
    fn lose_witness(&self, is_clear: bool) {
        self.hint.set(self.witness.replace(NONE));
        self.hint_is_clear.set(is_clear);
    }

    /// Only `len` events are left, and before the next one something had been put aside so often.
    #[inline]
    pub(super) fn take_back(&mut self, put_aside: u32, len: u32, concerns: impl Fn(&Change, u32) -> bool) {
        if self.aside.len() > put_aside as usize {
            self.undo_until(put_aside, len, concerns);
        }
        let unless_gone = |access: u32, gone: bool| if gone { NONE } else { access };
        self.clear.set(self.clear.get().min(len));
        if self.tells.get() {
            self.told.set(self.told.get().min(len));
        }
        self.witness.set(unless_gone(self.witness.get(), self.witness.get() >= len));
        self.unnoted = unless_gone(self.unnoted, self.unnoted >= len);
        let load = self.clear_load.get();
        self.clear_load.set(ClearLoad { id: unless_gone(load.id, load.id > len), ..load });
    }

    #[inline(never)]
    fn undo_until(&mut self, put_aside: u32, len: u32, concerns: impl Fn(&Change, u32) -> bool) {
        while self.aside.len() > put_aside as usize
            && let Some(aside) = self.aside.pop()
        {
            self.undo(&aside, len, &concerns);
        }
    }

    fn undo(&mut self, aside: &Aside, len: u32, concerns: impl Fn(&Change, u32) -> bool) {
        let &Aside { change, clear, told, witness, overtaken } = aside;
        self.hint_is_clear.set(false);
        self.told.set(self.told.get().min(change.first).max(told));
        let now = self.witness.get();
        if witness != NONE {
            self.clear.set(clear);
            // One that did not mind this change may outlive others, too.
            if now >= len || self.unnoted != NONE || self.tells.get() || concerns(&change, now) {
                self.set_witness(witness, overtaken);
            }
            return;
        }
        self.clear.set(self.clear.get().min(change.first).max(clear));
        if now < len && concerns(&change, now) {
            self.lose_witness(false);
        }
    }

    /// Takes over what is known of another graph: the first `same` accesses are the same ones, and so is the witness if
    /// there is one here; `hint` is where to look if not.
    pub(super) fn adopt(&mut self, other: &Self, same: u32, witness: u32, hint: u32) {
        self.aside.clear();
        self.unnoted = NONE;
        self.clear_load.set(ClearLoad::NOTHING);
        self.clear.set(other.clear.get().min(same));
        self.told.set(other.told.get().min(same));
        self.tells.set(other.tells.get());
        self.set_witness(witness, other.overtaken.get());
        self.hint.set(hint);
        self.hint_is_clear.set(false);
        self.second_hint.set(NONE);
    }

    /// How many accesses anything but a witness is known of, and the access to look at first, or [`NONE`].
    pub(super) fn extent(&self) -> (u32, u32) {
        let first = if self.witness.get() == NONE { self.hint.get() } else { self.witness.get() };
        let known = match (self.tells.get(), self.knows_clear()) {
            (true, _) => self.clear.get().max(self.told.get()),
            (false, true) => self.clear.get(),
            (false, false) => 0,
        };
        (known, first)
    }

    /// From now on all of `len` accesses have been told of. The first of which has not been.
    pub(super) fn begin_telling(&self, len: u32) -> u32 {
        self.told.replace(len).max(self.clear.get()).min(len)
    }

    /// All accesses from `start` to `len` have been asked. The first one that has a pending store, and the store, if any has.
    pub(super) fn end_telling(&self, start: u32, len: u32, first: Option<(u32, Place)>) {
        if self.clear.get() == start {
            self.clear.set(first.map_or(len, |(access, _)| access));
        }
        if let Some((access, store)) = first
            && self.witness.get() == NONE
        {
            self.set_witness(access, store);
        }
    }

    /// Of how many accesses has been told, and how much is put aside.
    pub(super) fn memory(&self) -> Memory {
        Memory { told: self.told.get(), aside: self.aside.len() }
    }

    /// Of how many accesses will have been told when only `len` events are left, before the next of which something had
    /// been put aside so often: what [`Answers::take_back`] would make of it.
    pub(super) fn told_after_cut(&self, memory: &mut Memory, put_aside: Option<u32>, len: u32) -> u32 {
        let put_aside = put_aside.map_or(memory.aside, |put_aside| put_aside as usize);
        while memory.aside > put_aside {
            memory.aside -= 1;
            let Aside { change, told, .. } = self.aside[memory.aside];
            memory.told = memory.told.min(change.first).max(told);
        }
        memory.told = memory.told.min(len);
        memory.told
    }

    #[inline]
    pub(super) fn set_told(&self, told: u32) {
        self.told.set(told);
    }

    /// Looks for a witness among some accesses, the first ones, until there is one or all are clear. Most accesses are of
    /// no `interest`, whatever happens before them.
    #[inline]
    pub(super) fn find_witness(
        &self,
        accesses: &[Event],
        concerns: impl Fn(&Change, u32) -> bool,
        interest: impl Fn(&Event) -> bool,
        pending: impl Fn(u32) -> Option<Place>,
    ) {
        let hint = self.hint.replace(NONE);
        if let Some(event) = accesses.get(hint as usize) {
            let is_clear = self.hint_is_clear.get();
            debug_assert!(!is_clear || !interest(event) || pending(hint).is_none(), "its store has been noticed");
            if !is_clear
                && interest(event)
                && let Some(store) = pending(hint)
            {
                return self.set_witness(hint, store);
            }
            let second = self.second_hint.get();
            if let Some(event) = accesses.get(second as usize)
                && interest(event)
                && let Some(store) = pending(second)
            {
                return self.set_witness(second, store);
            }
        }
        // What was clear before rows changed last still is if its own have not.
        let last = self.aside.last();
        let was_clear = last.map_or(0, |aside| if aside.witness == NONE { aside.clear } else { 0 });
        let start = self.clear.get();
        for (access, event) in (start..).zip(&accesses[start as usize..]) {
            let is_clear = access < was_clear && !last.is_some_and(|aside| concerns(&aside.change, access));
            if !is_clear
                && interest(event)
                && access != hint
                && let Some(store) = pending(access)
            {
                self.clear.set(access);
                if hint != NONE {
                    self.second_hint.set(access);
                }
                return self.set_witness(access, store);
            }
        }
        self.clear.set(accesses.len() as u32);
    }
}
