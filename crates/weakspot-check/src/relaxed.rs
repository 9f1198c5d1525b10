//! From a borderline SC execution to the relaxed execution that it borders on.
//!
//! A monitor names a store and an access of another thread that comes after it under SC and need not under the model.
//! There are two reasons why it need not, and for each a way to build the relaxed execution:
//!
//! | module | reason | the monitors that see it |
//! |---|---|---|
//! | `hold` | the store can be late: it stays in its buffer while its thread goes on | operational (Burnim, Sen, Stergiou, TACAS 2011, Sec. 4) |
//! | `ahead` | the access can be early: its own thread's earlier stores stay in their buffer | SOBER (Burckhardt, Musuvathi, CAV 2008, Sec. 3) |
//!
//! Either way the machine of the model runs every step, and the trace of the result must have a happens-before cycle:
//! that is what no SC execution has.

mod ahead;
mod hold;

use weakspot_explore::outcome;
use weakspot_model::axioms::Axioms;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::Pc;
use weakspot_model::ir::Program;
use weakspot_model::local::Pause;
use weakspot_model::machine::{Action, Effect, Machine, Outcome, State};
use weakspot_model::replay::{Replay, replay};
use weakspot_verify::robust;

use crate::CheckOptions;

/// Pending stores, summed over the commits of a relaxed execution, that are too many: each commit looks through them.
const MOST_PENDING: usize = 20_000_000_000;

/// Up to here the cycle that is shown is a shortest one.
pub const SHORT: usize = 1_000;

/// A relaxed execution, and why it departs from SC.
pub struct Relaxed {
    /// The execution.
    pub replay: Replay,
    /// Is the store that the monitor names the one that is late? Else the access is early.
    pub store_is_late: bool,
}

/// The relaxed execution that a finding of a monitor promises, replayed; `None` if it cannot be built, or if some
/// `assume` is false in the end whatever happens.
pub fn build(program: &Program, options: &CheckOptions, found: &outcome::Violation) -> Option<Relaxed> {
    let machine = Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, options.model) };
    let late = hold::actions(&machine, found).map(|actions| (actions, true));
    let (actions, store_is_late) = late.or_else(|| {
        // the order in which SOBER's clocks tick is that of TSO
        let early = (options.model == MemoryModel::Tso).then(|| ahead::actions(&machine, found))??;
        Some((early, false))
    })?;
    let actions = if program.assumes() { meeting_assumptions(&machine, actions, found)? } else { actions };
    Some(Relaxed { replay: replay(&machine, &actions).ok()?, store_is_late })
}

/// The execution, or if it cannot go on so that every `assume` is true, one that begins like it and does, although what is
/// late becomes visible later there.
fn meeting_assumptions(
    machine: &Machine<'_>,
    mut actions: Vec<Action>,
    found: &outcome::Violation,
) -> Option<Vec<Action>> {
    if robust::completion(machine, &actions).is_some() {
        return Some(actions);
    }
    let is_late = |action: &Action| matches!(action, Action::Commit { thread, .. } if *thread == found.store.thread);
    let commits = actions.iter().rev().take_while(|action| is_late(action)).count();
    actions.truncate(actions.len() - commits);
    actions.extend(robust::completion(machine, &actions)?);
    has_cycle(machine, &actions).then_some(actions)
}

/// The other instructions with which the thread of the store writes the same location before the access, while the
/// store is late: each of them may be the one that is named.
pub fn stores_of_the_same_location(program: &Program, found: &outcome::Violation) -> Vec<Pc> {
    let machine = Machine { spurious_wakeups: true, ..Machine::new(program, MemoryModel::Sc) };
    let mut stores = Vec::new();
    hold::walk(&machine, &found.actions, |state, action| {
        let this = &state.threads[action.thread().index()];
        if let (true, Pause::Store { loc, .. }) = (action.thread() == found.store.thread, this.pause) {
            stores.push((loc, this.local.pc));
        }
    });
    let location = stores.iter().rev().find(|(_, pc)| *pc == found.store.pc).map(|(loc, _)| *loc);
    let mut others: Vec<Pc> = Vec::new();
    for (loc, pc) in stores {
        if Some(loc) == location && pc != found.store.pc && !others.contains(&pc) {
            others.push(pc);
        }
    }
    others
}

/// A relaxed execution that is being built.
struct Building<'p> {
    machine: Machine<'p>,
    state: State,
    actions: Vec<Action>,
    /// What came of the last action: anything else than going on ends the execution.
    outcome: Outcome,
    /// Pending stores, summed over the commits.
    pending: usize,
}

impl<'p> Building<'p> {
    fn new(machine: Machine<'p>) -> Self {
        let (state, _) = machine.start();
        Self { machine, state, actions: Vec::new(), outcome: Outcome::Continues, pending: 0 }
    }

    /// Has the specification been broken, or is an `assume` false?
    fn is_over(&self) -> bool {
        self.outcome != Outcome::Continues
    }

    /// Takes an action and gives its effect, or that it failed; nothing if it is not possible.
    fn take(&mut self, action: Action) -> Option<Done> {
        if self.is_over() || !self.machine.allows(&self.state, action) {
            return None;
        }
        let (effect, outcome) = self.machine.apply(&mut self.state, action);
        self.actions.push(action);
        if matches!(action, Action::Commit { .. }) {
            self.pending += self.state.threads[action.thread().index()].buffer.entries().len();
        }
        if self.pending > MOST_PENDING {
            return None;
        }
        self.outcome = outcome;
        Some(effect.map_or(Done::Failed, Done::Did))
    }
}

/// What an action did.
enum Done {
    /// This.
    Did(Effect),
    /// Its instruction failed.
    Failed,
}

/// Does the execution replay, with a trace that SC does not allow?
fn has_cycle(machine: &Machine<'_>, actions: &[Action]) -> bool {
    replay(machine, actions).is_ok_and(|replay| !Axioms::sc_allows_long(&replay.trace(machine.program)))
}
