//! The store can be late.
//!
//! The machine of the model runs the steps of the SC execution with that one store held back, and what has to wait
//! behind it; every other store becomes visible at once. A step that needs a store that is held back (an access of
//! another thread to its location, a fence or an atomic of its own thread) makes it visible first, so every step does
//! what it did under SC, up to the access: that comes although the store is still held back.

use weakspot_explore::outcome;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::local::Pause;
use weakspot_model::machine::{Action, Effect, Machine, Outcome, State};

use super::{Building, Done, has_cycle};

/// How many occurrences of the store in the execution are tried: that which the monitor means, then the last ones.
const MOST_OCCURRENCES: usize = 64;

/// In long executions fewer are tried: so many steps are run in all.
const MOST_STEPS: usize = 64_000;

/// The relaxed execution, if holding back some occurrence of the store makes one.
pub fn actions(machine: &Machine<'_>, found: &outcome::Violation) -> Option<Vec<Action>> {
    let steps = &found.actions;
    let most = (MOST_STEPS / steps.len().max(1)).clamp(1, MOST_OCCURRENCES);
    let mut occurrences = occurrences(machine, found);
    if let Some(at) = found.issued.and_then(|issued| occurrences.iter().position(|&occurrence| occurrence == issued)) {
        // the one that the monitor means comes first
        let issued = occurrences.remove(at);
        occurrences.push(issued);
    }
    let tried = occurrences.into_iter().rev().take(most);
    tried.filter_map(|held| Holding::new(*machine, held).run(steps)).find(|actions| has_cycle(machine, actions))
}

/// The steps in which the store happens.
fn occurrences(machine: &Machine<'_>, found: &outcome::Violation) -> Vec<usize> {
    let machine = Machine { model: MemoryModel::Sc, ..*machine };
    let (mut index, mut occurrences) = (0, Vec::new());
    walk(&machine, &found.actions, |state, action| {
        let this = &state.threads[action.thread().index()];
        let is_store = matches!(this.pause, Pause::Store { .. });
        if is_store && (action.thread(), this.local.pc) == (found.store.thread, found.store.pc) {
            occurrences.push(index);
        }
        index += 1;
    });
    occurrences
}

/// Runs steps on a machine as far as they are possible; `see` is shown each with the state before it.
pub fn walk(machine: &Machine<'_>, steps: &[Action], mut see: impl FnMut(&State, Action)) {
    let (mut state, mut outcome) = machine.start();
    for &action in steps {
        if outcome != Outcome::Continues || !machine.allows(&state, action) {
            return;
        }
        see(&state, action);
        outcome = machine.apply(&mut state, action).1;
    }
}

/// A relaxed execution in which one store is held back.
struct Holding<'p> {
    execution: Building<'p>,
    /// The step that is the store.
    held: usize,
    /// The store's thread and location, while it is held back.
    late: Option<(ThreadId, Loc)>,
}

impl<'p> Holding<'p> {
    fn new(machine: Machine<'p>, held: usize) -> Self {
        Self { execution: Building::new(machine), held, late: None }
    }

    /// Runs SC steps, the last of which is the access.
    fn run(mut self, steps: &[Action]) -> Option<Vec<Action>> {
        for (index, &step) in steps.iter().enumerate() {
            let is_access = index + 1 == steps.len();
            if !is_access {
                self.make_visible_what_is_seen(step);
            }
            self.make_room(step);
            let effect = self.take(step)?;
            if let (true, Done::Did(Effect::Store { loc, .. })) = (index == self.held, effect) {
                self.late = Some((step.thread(), loc));
            }
            if self.execution.is_over() {
                return (is_access && self.late.is_some()).then_some(self.execution.actions);
            }
            self.settle(step.thread());
        }
        let (thread, _) = self.late?;
        while let Some(loc) = self.next_commit(thread) {
            self.take(Action::Commit { thread, loc })?;
        }
        Some(self.execution.actions)
    }

    fn pause(&self, thread: ThreadId) -> Pause {
        self.execution.state.threads[thread.index()].pause
    }

    fn next_commit(&self, thread: ThreadId) -> Option<Loc> {
        self.execution.state.threads[thread.index()].buffer.committable(self.execution.machine.model).next()
    }

    /// An access to a location whose store is held back in another thread comes after the store.
    fn make_visible_what_is_seen(&mut self, step: Action) {
        let Some((holder, _)) = self.late else { return };
        let (Pause::Load { loc } | Pause::Store { loc, .. } | Pause::Rmw { loc, .. }) = self.pause(step.thread())
        else {
            return;
        };
        if step.thread() != holder {
            self.commit_until(holder, |state| !state.threads[holder.index()].buffer.holds(loc), Some(loc));
        }
    }

    /// What the step's own thread has to make visible before it.
    fn make_room(&mut self, step: Action) {
        let (thread, machine) = (step.thread(), self.execution.machine);
        let preferred = match self.pause(thread) {
            Pause::Rmw { loc, .. } => Some(loc),
            _ => None,
        };
        self.commit_until(thread, |state| machine.is_ready(state, thread), preferred);
    }

    /// Makes stores of a thread visible, those to `preferred` first where the model leaves a choice.
    fn commit_until(&mut self, thread: ThreadId, done: impl Fn(&State) -> bool, preferred: Option<Loc>) {
        while !done(&self.execution.state) {
            let buffer = &self.execution.state.threads[thread.index()].buffer;
            let wanted = buffer.committable(self.execution.machine.model).find(|&loc| Some(loc) == preferred);
            let Some(loc) = wanted.or_else(|| self.next_commit(thread)) else { return };
            if self.take(Action::Commit { thread, loc }).is_none() {
                return;
            }
        }
    }

    /// Everything that is not held back becomes visible.
    fn settle(&mut self, thread: ThreadId) {
        let held = |loc: Loc, this: &Self| this.late == Some((thread, loc));
        loop {
            let buffer = &self.execution.state.threads[thread.index()].buffer;
            let next = buffer.committable(self.execution.machine.model).find(|&loc| !held(loc, self));
            let Some(loc) = next else { return };
            if self.take(Action::Commit { thread, loc }).is_none() {
                return;
            }
        }
    }

    /// See [`Building::take`].
    fn take(&mut self, action: Action) -> Option<Done> {
        let done = self.execution.take(action);
        if let (Action::Commit { thread, loc }, Some(_)) = (action, &done)
            && self.late == Some((thread, loc))
        {
            // Only the oldest store to a location can commit: that is the one held back.
            self.late = None;
        }
        done
    }
}
