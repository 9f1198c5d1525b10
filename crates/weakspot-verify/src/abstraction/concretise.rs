//! Is an abstract violation real? The abstract path is followed on the reference machine, then the explicit engine looks
//! at everything within small bounds.
//!
//! # Following a path
//! Every step of the path is tried on the machine. The machine's buffers hold what was really stored, so a flush that the
//! abstraction repeats or moves forward cannot be done there; it is left out, and where a step has to wait for the own
//! buffer, what is still in it is committed first. If the execution ends with any problem, it is a witness: the problem
//! need not be the one the abstraction saw.

use weakspot_model::ids::ThreadId;
use weakspot_model::machine::{Action, Machine, Outcome, Rest, State};
use weakspot_model::problem::{Problem, ProblemKind};
use weakspot_model::replay::Witness;
use weakspot_model::task::{Budget, Progress, Verdict};

use super::AbstractOptions;
use super::system::Step;
use crate::explicit::{ExplicitOptions, InternalError};
use crate::portfolio;

/// Bounds on buffers for the explicit search.
const BOUNDS: [usize; 4] = [1, 2, 4, 8];

/// States of one explicit search.
const MAX_STATES: u64 = 100_000;

/// Follows a path; gives the witness if it ends with a problem.
pub(super) fn follow(machine: &Machine<'_>, path: &[(ThreadId, Step)], allow_deadlock: bool) -> Option<Witness> {
    let (state, outcome) = machine.start();
    let mut guide = Guide { machine, state, actions: Vec::new() };
    if let Outcome::Failed(problem) = outcome {
        return guide.witness(problem);
    }
    for &(thread, step) in path {
        match guide.take(thread, step)? {
            Outcome::Continues => {}
            Outcome::Failed(problem) => return guide.witness(problem),
            Outcome::Pruned => return None,
        }
    }
    for thread in machine.program.thread_ids() {
        guide.drain(thread);
    }
    if !machine.enabled(&guide.state).is_empty() {
        return None;
    }
    match machine.rest(&guide.state) {
        Rest::Failed(problem) if allow_deadlock && problem.kind == ProblemKind::Deadlock => None,
        Rest::Failed(problem) => guide.witness(problem),
        Rest::Finished | Rest::Pruned | Rest::Spinning => None,
    }
}

/// An execution in the making.
struct Guide<'m, 'p> {
    machine: &'m Machine<'p>,
    state: State,
    actions: Vec<Action>,
}

impl Guide<'_, '_> {
    /// Takes a step of the path as well as it goes; `None` if it does not go at all.
    fn take(&mut self, thread: ThreadId, step: Step) -> Option<Outcome> {
        match step {
            Step::Commit { loc } => {
                let action = Action::Commit { thread, loc };
                let enabled = self.machine.enabled(&self.state).contains(&action);
                Some(if enabled { self.apply(action) } else { Outcome::Continues })
            }
            Step::Wake => self.try_apply(Action::Wake { thread }),
            Step::Event { pc, choice } => {
                if self.state.threads[thread.index()].local.pc != pc {
                    return None;
                }
                let action = Action::Step { thread, choice };
                if let Some(outcome) = self.try_apply(action) {
                    return Some(outcome);
                }
                self.drain(thread);
                self.try_apply(action)
            }
        }
    }

    fn try_apply(&mut self, action: Action) -> Option<Outcome> {
        self.machine.enabled(&self.state).contains(&action).then(|| self.apply(action))
    }

    fn apply(&mut self, action: Action) -> Outcome {
        self.actions.push(action);
        self.machine.apply(&mut self.state, action).1
    }

    /// Commits everything a thread has pending.
    fn drain(&mut self, thread: ThreadId) {
        loop {
            let oldest = self.state.threads[thread.index()].buffer.committable(self.machine.model).next();
            let Some(loc) = oldest else { return };
            self.apply(Action::Commit { thread, loc });
        }
    }

    /// The execution so far, replayed.
    fn witness(self, problem: Problem) -> Option<Witness> {
        let witness = Witness { actions: self.actions, problem };
        witness.replay(self.machine).is_ok().then_some(witness)
    }
}

/// Looks at everything within small bounds.
pub(super) fn search(
    machine: &Machine<'_>,
    options: &AbstractOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Option<Witness>, InternalError> {
    let search = ExplicitOptions {
        allow_deadlock: options.allow_deadlock,
        spurious_wakeups: options.spurious_wakeups,
        max_states: Some(MAX_STATES),
        ..ExplicitOptions::new(options.model)
    };
    let answer = portfolio::climb(machine.program, &search, &BOUNDS, budget, progress)?;
    Ok(match answer.verdict {
        Verdict::Violated(witness) => Some(witness),
        Verdict::Verified | Verdict::Inconclusive(_) => None,
    })
}
