//! Going back to where a run has been, without going through the machine again.
//!
//! Live code has to run again from the start, but what the machine knows (memory, which write stands in a cell, loops) can
//! be kept. So a search that comes back to a place hands the steps that lead there to the system in one go
//! ([`System::repeat`]), as the exhaustive one does, and takes the rest from a copy.
//!
//! # Deliberately absent
//! Store buffers: a system makes its steps again on the memory of SC.

use weakspot_model::ids::ThreadId;

use super::{Buffered, Lane};
use crate::graph::Phase;
use crate::system::{CellId, Pending, Repeated, Step, System, UNBOUND, Update};

/// A copy of what the machine knows at some place of a run.
#[derive(Debug, Clone, Default)]
pub struct Saved {
    memory: Vec<i64>,
    writes: Vec<u64>,
    lanes: Vec<Lane>,
    version: u64,
    news: u64,
    bound: CellId,
    /// Cells that threads were about to use.
    about: Vec<(u32, CellId)>,
}

impl<S: System> Buffered<'_, S> {
    /// The step that a thread is about to take, for [`Buffered::go_to`].
    pub fn step_of(&mut self, thread: usize, choice: i64) -> Repeated {
        let (step, cell, value) = match self.pending(thread) {
            Pending::Load(cell) => (Step::Load, cell, 0),
            Pending::Store { cell, value } => (Step::Store, cell, value),
            Pending::InterlockedStore { cell, value } => (Step::InterlockedStore, cell, value),
            Pending::Rmw { cell, drains_all } => {
                let update = self.system.update(ThreadId::new(thread), self.found_by_atomic(thread, cell));
                match update {
                    Update::Acts { written, .. } => {
                        (Step::Rmw { drains_all, writes: written.is_some() }, cell, written.unwrap_or(0))
                    }
                    _ => (Step::TimeOut, cell, 0),
                }
            }
            Pending::TryLock(mutex) if self.memory[mutex as usize] != 0 => {
                (Step::Rmw { drains_all: true, writes: false }, mutex, 0)
            }
            Pending::Lock(mutex) | Pending::TryLock(mutex) => (Step::Acquire, mutex, 0),
            Pending::Wait { condvar, .. } if self.lanes[thread].phase == Phase::Running => (Step::Rest, condvar, 0),
            Pending::Wait { mutex, .. } if self.lanes[thread].is_late => (Step::TimeOut, mutex, 0),
            Pending::Wait { mutex, .. } => (Step::Acquire, mutex, 0),
            Pending::Unlock(mutex) => (Step::Unlock, mutex, 0),
            Pending::Notify { condvar, .. } => (Step::Notify, condvar, 0),
            Pending::Signal(cell) => (Step::Signal, cell, 0),
            Pending::Await(cell) => (Step::Await, cell, 0),
            Pending::Fence(kind) => (Step::Fence(kind), UNBOUND, 0),
            _ => (Step::Choose, UNBOUND, choice),
        };
        Repeated { thread: thread as u32, step, cell, value, changed: false, bound: false }
    }

    /// Keeps what the machine knows. All buffers are empty.
    pub fn save(&self, into: &mut Saved) {
        into.memory.clone_from(&self.memory);
        into.writes.clone_from(&self.writes);
        into.lanes.clone_from(&self.lanes);
        (into.version, into.news, into.bound) = (self.version, self.news, self.bound);
        into.about.clear();
        for (thread, &about) in self.about.iter().enumerate() {
            if let Some(cell) = about.and_then(cell_of) {
                into.about.push((thread as u32, cell));
            }
        }
    }

    /// Goes along these steps from the beginning of a run, to where the machine was when this was kept. False if the
    /// system does not do the same again: then it has to be restarted.
    pub fn go_to(&mut self, saved: &Saved, steps: &mut Vec<Repeated>) -> bool {
        let way = steps.len();
        let mut used = vec![false; saved.bound as usize];
        for step in &mut *steps {
            (step.changed, step.bound) = (false, false);
            match used.get_mut(step.cell as usize) {
                Some(used) => *used = true,
                None if step.cell == UNBOUND => {}
                // These steps lead elsewhere.
                None => return false,
            }
        }
        let new = saved.about.iter().filter(|&&(_, cell)| used.get(cell as usize) != Some(&true));
        steps.extend(new.map(|&(thread, cell)| Repeated {
            thread,
            step: Step::Rest,
            cell,
            value: 0,
            changed: false,
            bound: false,
        }));
        let mut all = self.system.repeat(steps) == steps.len();
        if all {
            self.about.clear();
            self.memory.clone_from(&saved.memory);
            self.writes.clone_from(&saved.writes);
            self.lanes.clone_from(&saved.lanes);
            (self.version, self.news, self.bound) = (saved.version, saved.news, saved.bound);
            self.widen();
            all = self.note_values(steps, way);
        }
        steps.truncate(way);
        all
    }

    /// Values are those of this run: addresses may be others than before. False if a step is to a cell that was not there: then
    /// the system does something else than before.
    fn note_values(&mut self, steps: &[Repeated], way: usize) -> bool {
        for (at, step) in steps.iter().enumerate() {
            let writes = match step.step {
                Step::Load | Step::Rmw { writes: false, .. } | Step::TimeOut => false,
                Step::Store | Step::InterlockedStore | Step::Rmw { writes: true, .. } => true,
                Step::Rest if at >= way => false,
                _ => continue,
            };
            let Some(memory) = self.memory.get_mut(step.cell as usize) else { return false };
            if writes {
                *memory = step.value;
            } else if step.bound {
                *memory = self.system.initial(step.cell);
            }
        }
        true
    }
}

/// The cell that a thread is about to use, if it has a number already.
fn cell_of(pending: Pending) -> Option<CellId> {
    match pending {
        Pending::Load(cell)
        | Pending::Store { cell, .. }
        | Pending::InterlockedStore { cell, .. }
        | Pending::Rmw { cell, .. }
        | Pending::Lock(cell)
        | Pending::TryLock(cell)
        | Pending::Unlock(cell)
        | Pending::Wait { condvar: cell, .. }
        | Pending::Notify { condvar: cell, .. }
        | Pending::Signal(cell) => Some(cell).filter(|&cell| cell != UNBOUND),
        _ => None,
    }
}
