//! The clock and the scales inside long operations on automata.
//!
//! A search asks its budget between two steps; one determinisation can take longer, and more memory, than all steps before
//! it. So the loops of the constructions ask as well, once in a few hundred rounds. An operation that is stopped gives some
//! automaton; nobody may use it, and it is not remembered.

use std::cell::Cell;

use weakspot_model::task::{Budget, Limit};

/// How many rounds pass between two looks at the budget.
const ROUNDS: u32 = 256;

/// Counts rounds and bytes and looks at the budget.
#[derive(Debug, Default)]
pub(super) struct Meter {
    budget: Option<Budget>,
    rounds: Cell<u32>,
    /// Bytes of all automata that are kept.
    held: Cell<usize>,
    /// Bytes of the construction under way.
    spent: Cell<usize>,
    stopped: Cell<Option<Limit>>,
}

impl Meter {
    pub(super) fn new(budget: &Budget) -> Self {
        Self { budget: Some(budget.clone()), ..Self::default() }
    }

    pub(super) fn stopped(&self) -> Option<Limit> {
        self.stopped.get()
    }

    /// A construction holds this many bytes more.
    pub(super) fn spend(&self, bytes: usize) {
        self.spent.set(self.spent.get() + bytes);
    }

    /// A construction is over; this is what all of them have left.
    pub(super) fn settle(&self, held: usize) {
        self.held.set(held);
        self.spent.set(0);
    }

    /// One more round: may it go on?
    pub(super) fn goes_on(&self) -> bool {
        let Some(budget) = &self.budget else { return true };
        self.rounds.set(self.rounds.get() + 1);
        if self.rounds.get() >= ROUNDS {
            self.rounds.set(0);
            if self.stopped.get().is_none() {
                self.stopped.set(budget.exhausted((self.held.get() + self.spent.get()) as u64));
            }
        }
        self.stopped.get().is_none()
    }
}
