//! Systems without tokens: taking steps back means running the others again, and they must be the same then.

use thiserror::Error;
use weakspot_model::ids::ThreadId;
use weakspot_model::machine::Action;

use super::Interleaving;
use crate::system::{Pending, System};

/// A system that did not do the same again although it was given the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("thread {} is not deterministic: its step {step} was {was:?}; run again with the same results, it is {pending:?}", thread.0)]
pub struct Changed {
    /// The thread.
    pub thread: ThreadId,
    /// The first step that differs: how many the thread had taken before.
    pub step: u32,
    /// What the step was.
    pub was: Pending,
    /// What the thread is about to do instead, or can no longer do.
    pub pending: Pending,
}

impl<S: System> Interleaving<'_, S> {
    /// What a system without tokens did not do again when steps were taken back; the interleaving ends before it then, and
    /// nothing can be said about the system.
    pub fn changed(&self) -> Option<Changed> {
        self.changed
    }

    /// Runs the first `depth` steps again, each as many actions as it was.
    pub(super) fn run_again(&mut self, depth: usize) {
        let ends: Vec<u32> = self.undo[1..=depth].iter().map(|undo| undo.actions).collect();
        let actions = self.actions.clone();
        let did = self.did.clone();
        self.restart();
        for end in ends {
            let first = self.actions.len();
            for (index, &action) in actions[first..end as usize].iter().enumerate() {
                let thread = action.thread().index();
                if !self.does_again(action, did[first + index]) {
                    return;
                }
                if index == 0 {
                    self.push_undo(thread);
                }
                let choice = if let Action::Step { choice, .. } = action { choice } else { 0 };
                self.act(thread, choice);
            }
        }
    }

    /// Is the thread of an action about to do what it did? The values of stores are not compared, as in exhaustive search:
    /// they may be addresses.
    fn does_again(&mut self, action: Action, was: Pending) -> bool {
        let thread = action.thread();
        let pending =
            if thread.index() < self.system.threads() { self.system.pending(thread) } else { Pending::Absent };
        if without_value(pending) == without_value(was) && self.can_move(thread.index()) {
            return true;
        }
        let step = self.actions.iter().filter(|earlier| earlier.thread() == thread).count() as u32;
        self.changed = self.changed.or(Some(Changed { thread, step, was, pending }));
        false
    }
}

fn without_value(pending: Pending) -> Pending {
    match pending {
        Pending::Store { cell, .. } => Pending::Store { cell, value: 0 },
        pending => pending,
    }
}
