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

use std::cell::Cell;

use super::NONE;

/// Which accesses are concerned by a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    /// All of them come after this event: its thread and index.
    pub(super) after: (u32, u32),
    /// None of them has a lower number.
    pub(super) first: u32,
}

/// What was known before rows changed.
#[derive(Debug, Clone, Copy)]
struct Aside {
    change: Change,
    clear: u32,
    told: u32,
    witness: u32,
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
    /// An access that had one, or [`NONE`]: where to look first for a new witness. (It may be gone.)
    hint: Cell<u32>,
    /// Another one, that was found when the first had none any more.
    second_hint: Cell<u32>,
    aside: Vec<Aside>,
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            clear: Cell::new(0),
            told: Cell::new(0),
            tells: Cell::new(true),
            witness: Cell::new(NONE),
            hint: Cell::new(NONE),
            second_hint: Cell::new(NONE),
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

    /// The accesses that a change concerns may get other answers, or only lose their pending stores if those that are
    /// clear stay so.
    #[inline]
    pub(super) fn put_aside_for(&mut self, change: Change, keeps_witness: bool, keeps_clear: bool) {
        let (clear, told, witness) = (self.clear.get(), self.told.get(), self.witness.get());
        self.aside.push(Aside { change, clear, told, witness });
        if !keeps_clear {
            self.clear.set(clear.min(change.first));
            self.told.set(told.min(change.first));
        }
        if !keeps_witness {
            self.lose_witness();
        }
    }

    #[inline]
    fn lose_witness(&self) {
        self.hint.set(self.witness.replace(NONE));
    }

    /// Only `len` events are left, and before the next one something had been put aside so often.
    #[inline]
    pub(super) fn take_back(&mut self, put_aside: u32, len: u32, concerns: impl Fn(&Change, u32) -> bool) {
        while self.aside.len() > put_aside as usize
            && let Some(aside) = self.aside.pop()
        {
            self.undo(&aside, len, &concerns);
        }
        self.clear.set(self.clear.get().min(len));
        self.told.set(self.told.get().min(len));
        if self.witness.get() >= len {
            self.witness.set(NONE);
        }
    }

    fn undo(&mut self, aside: &Aside, len: u32, concerns: impl Fn(&Change, u32) -> bool) {
        let &Aside { change, clear, told, witness } = aside;
        self.told.set(self.told.get().min(change.first).max(told));
        if witness != NONE {
            self.clear.set(clear);
            self.witness.set(witness);
            return;
        }
        self.clear.set(self.clear.get().min(change.first).max(clear));
        let now = self.witness.get();
        if now < len && concerns(&change, now) {
            self.lose_witness();
        }
    }

    /// Takes over what is known of another graph: the first `same` accesses are the same ones, and so is the witness if
    /// there is one here; `hint` is where to look if not.
    pub(super) fn adopt(&mut self, other: &Self, same: u32, witness: u32, hint: u32) {
        self.aside.clear();
        self.clear.set(other.clear.get().min(same));
        self.told.set(other.told.get().min(same));
        self.tells.set(other.tells.get());
        self.witness.set(witness);
        self.hint.set(hint);
        self.second_hint.set(NONE);
    }

    /// How many accesses anything but a witness is known of, and the access to look at first, or [`NONE`].
    pub(super) fn extent(&self) -> (u32, u32) {
        let first = if self.witness.get() == NONE { self.hint.get() } else { self.witness.get() };
        (if self.tells.get() { self.clear.get().max(self.told.get()) } else { self.clear.get() }, first)
    }

    /// Tells of every access of `len` that has a pending store and has not been told of.
    pub(super) fn tell(&self, len: u32, mut has_pending: impl FnMut(u32) -> bool) {
        for access in self.told.replace(len)..len {
            if has_pending(access) {
                if self.witness.get() == NONE {
                    self.witness.set(access);
                }
            } else if self.clear.get() == access {
                self.clear.set(access + 1);
            }
        }
    }

    /// Looks for a witness among the first `len` accesses until there is one or all are clear.
    #[inline]
    pub(super) fn find_witness(
        &self,
        len: u32,
        concerns: impl Fn(&Change, u32) -> bool,
        mut has_pending: impl FnMut(u32) -> bool,
    ) {
        let hint = self.hint.replace(NONE);
        if hint < len {
            let second = self.second_hint.get();
            for hint in [hint, second] {
                if hint < len && has_pending(hint) {
                    return self.witness.set(hint);
                }
            }
        }
        // What was clear before rows changed last still is if its own have not.
        let last = self.aside.last();
        let was_clear = last.map_or(0, |aside| aside.clear);
        for access in self.clear.get()..len {
            let is_clear = access < was_clear && !last.is_some_and(|aside| concerns(&aside.change, access));
            if !is_clear && access != hint && has_pending(access) {
                self.clear.set(access);
                if hint != NONE {
                    self.second_hint.set(access);
                }
                return self.witness.set(access);
            }
        }
        self.clear.set(len);
    }
}
