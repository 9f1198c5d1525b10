//! From a state with a problem back to the start: the actions that lead there, found again and replayed.
//!
//! The search keeps a parent for each state and no action. Going back over the parents gives the states on the way;
//! expanding each of them once more gives the action that leads to the next.

use weakspot_model::machine::{Action, Machine};
use weakspot_model::replay::{Ending, Witness, replay};

use super::InternalError;
use super::search::{Finding, Worker, action};
use super::store::NO_PARENT;
use super::successors::{Role, Sink, expand};
use super::tables::Tables;

/// Rebuilds the execution of a finding and replays it on the reference machine, which puts the problem into words.
pub(crate) fn rebuild<const W: usize>(
    machine: &Machine<'_>,
    workers: &mut [Worker<'_, '_, W>],
    finding: Finding,
) -> Result<Witness, InternalError> {
    let path = path_to(workers, finding.state);
    let tables = &mut workers[0].tables;
    let mut actions = Vec::with_capacity(path.len());
    for pair in path.windows(2) {
        actions.push(action_between(tables, machine.spurious_wakeups, &pair[0], &pair[1])?);
    }
    actions.extend(finding.action);
    let ending = replay(machine, &actions)?.ending;
    let Ending::Failed(problem) = ending else {
        return Err(InternalError::NoProblem { ending: Box::new(ending) });
    };
    let witness = Witness { actions, problem };
    witness.replay(machine)?;
    Ok(witness)
}

/// The states from the initial one to this.
fn path_to<const W: usize>(workers: &[Worker<'_, '_, W>], last: u32) -> Vec<[u32; W]> {
    let mut path = Vec::new();
    let mut at = last;
    while at != NO_PARENT {
        let (worker, index) = (at as usize % workers.len(), at as usize / workers.len());
        path.push(*workers[worker].store.row(index));
        at = workers[worker].store.parent(index);
    }
    path.reverse();
    path
}

fn action_between<const W: usize>(
    tables: &mut Tables<'_, '_>,
    spurious_wakeups: bool,
    from: &[u32; W],
    to: &[u32; W],
) -> Result<Action, InternalError> {
    let mut seek = Seek { to: *to, process: (0, Role::Step), found: None };
    expand(tables, from, spurious_wakeups, &mut seek);
    seek.found.ok_or(InternalError::NoAction)
}

/// Looks for the first action that leads to a state.
struct Seek<const W: usize> {
    to: [u32; W],
    process: (usize, Role),
    found: Option<Action>,
}

impl<const W: usize> Sink<W> for Seek<W> {
    fn process(&mut self, thread: usize, role: Role) {
        self.process = (thread, role);
    }

    fn successor(&mut self, state: &[u32; W], choice: i64, _jumped_back: bool) {
        if *state == self.to && self.found.is_none() {
            let (thread, role) = self.process;
            self.found = Some(action(thread, role, choice));
        }
    }

    fn failure(&mut self, _choice: i64) {}

    fn pruned(&mut self) {}
}
