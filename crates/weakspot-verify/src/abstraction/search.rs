//! The fixpoint: abstract states breadth first, until nothing is new.
//!
//! Breadth first, because the path to a failure is then a short one, and short paths are the ones that can most often be
//! followed on the machine.

use weakspot_model::ids::ThreadId;
use weakspot_model::ir::Program;
use weakspot_model::task::{Budget, Limit, Progress};

use super::AbstractOptions;
use super::failure::Failure;
use super::store::{Entered, Origin, Store};
use super::system::{Expansion, Step, System, Transition};

/// How often the budget is asked, in expanded states.
const ASK_BUDGET_EVERY: u64 = 256;

/// A failure: the state it happens in, and the step that fails, if it is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    /// None: the start itself fails.
    pub(super) state: Option<u32>,
    /// None: the state itself is the failure.
    pub(super) step: Option<(ThreadId, Step)>,
    pub(super) failure: Failure,
}

/// Told about everything a search meets.
pub(super) trait Visitor {
    /// A failure; true: the search may stop.
    fn failure(&mut self, found: Found) -> bool;

    /// A transition from one state to another, which is the one that covers the new state.
    fn transition(&mut self, from: u32, thread: ThreadId, step: Step, to: u32);
}

/// A search under way.
pub(super) struct Search<'p> {
    pub(super) system: System<'p>,
    pub(super) store: Store,
    pub(super) transitions: u64,
    allow_deadlock: bool,
    max_states: Option<u64>,
}

impl<'p> Search<'p> {
    pub(super) fn new(program: &'p Program, options: &AbstractOptions, labelled: bool) -> Self {
        let system = System::new(program, options, labelled);
        let store = Store::new(system.width(), system.buffers.rules.has_order());
        let AbstractOptions { allow_deadlock, max_states, .. } = *options;
        Self { system, store, transitions: 0, allow_deadlock, max_states }
    }

    /// Explores until everything is covered, the visitor has enough or a limit is reached.
    pub(super) fn run(
        &mut self,
        visitor: &mut impl Visitor,
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<(), Limit> {
        let mut expansion = Expansion::default();
        self.system.start(&mut expansion);
        if self.record(None, &expansion, visitor) {
            return Ok(());
        }
        let (mut next, mut expanded) = (0, 0_u64);
        while (next as usize) < self.store.len() {
            let state = next;
            next += 1;
            if self.store.is_retired(state) {
                continue;
            }
            expanded += 1;
            if expanded.is_multiple_of(ASK_BUDGET_EVERY) {
                self.ask(u64::from(next), budget, progress)?;
            }
            if self.expand(state, &mut expansion, visitor) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn ask(&self, next: u64, budget: &Budget, progress: &dyn Progress) -> Result<(), Limit> {
        let states = self.store.len() as u64;
        progress.update(states, self.transitions, states - next);
        if let Some(most) = self.max_states.filter(|&most| states > most) {
            return Err(Limit::States(most));
        }
        budget.exhausted((self.system.bytes() + self.store.bytes()) as u64).map_or(Ok(()), Err)
    }

    /// Expands one state; true: stop.
    fn expand(&mut self, state: u32, expansion: &mut Expansion, visitor: &mut impl Visitor) -> bool {
        let row = self.store.row(state).to_vec();
        self.system.expand(&row, expansion);
        if !expansion.enabled {
            let failure = self.system.rest(&row, self.allow_deadlock);
            return failure.is_some_and(|failure| visitor.failure(Found { state: Some(state), step: None, failure }));
        }
        self.record(Some(state), expansion, visitor)
    }

    /// Enters the states of an expansion; true: stop.
    fn record(&mut self, state: Option<u32>, expansion: &Expansion, visitor: &mut impl Visitor) -> bool {
        let mut rows = expansion.rows.chunks_exact(self.system.width());
        for &Transition { thread, step, failure } in &expansion.transitions {
            self.transitions += 1;
            if let Some(failure) = failure {
                let step = state.is_some().then_some((thread, step));
                if visitor.failure(Found { state, step, failure }) {
                    return true;
                }
                continue;
            }
            let row = rows.next().expect("invariant: a row for each transition that does not fail");
            let origin = Origin { parent: state, thread, step };
            let (Entered::New(to) | Entered::Known(to)) = self.store.enter(row, origin, &mut self.system.buffers);
            if let Some(state) = state {
                visitor.transition(state, thread, step, to);
            }
        }
        false
    }

    /// The steps from the start to a state.
    pub(super) fn path_to(&self, state: u32) -> Vec<(ThreadId, Step)> {
        let mut path = Vec::new();
        let mut here = self.store.origin(state);
        while let Some(parent) = here.parent {
            path.push((here.thread, here.step));
            here = self.store.origin(parent);
        }
        path.reverse();
        path
    }
}
