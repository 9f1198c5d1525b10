//! The clock inside long operations on automata.
//!
//! A search asks its budget between two steps; one determinisation can take longer than all steps before it. So the
//! loops of the constructions ask as well, once in a few hundred rounds. An operation that is stopped gives some
//! automaton; nobody may use it, and it is not remembered.

use std::cell::Cell;

use weakspot_model::task::Budget;

/// How many rounds pass between two looks at the clock.
const ROUNDS: u32 = 256;

/// Counts rounds and looks at the clock.
#[derive(Debug, Default)]
pub(super) struct Meter {
    budget: Option<Budget>,
    rounds: Cell<u32>,
    stopped: Cell<bool>,
}

impl Meter {
    pub(super) fn new(budget: &Budget) -> Self {
        // Memory is the search's business.
        Self { budget: Some(Budget { memory: None, ..budget.clone() }), ..Self::default() }
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// One more round: may it go on?
    pub(super) fn goes_on(&self) -> bool {
        let Some(budget) = &self.budget else { return true };
        self.rounds.set(self.rounds.get() + 1);
        if self.rounds.get() >= ROUNDS {
            self.rounds.set(0);
            self.stopped.set(self.stopped.get() || budget.exhausted(0).is_some());
        }
        !self.stopped.get()
    }
}
