//! What has happened before, made again without the explorer.
//!
//! The beginning of most runs is known: the explorer hands it over as a list of steps ([`System::repeat`]). While there
//! are steps left, a thread that posts an event looks whether the next step is its own. If so, and if it fits, the event
//! happens at once and the thread runs on; otherwise it suspends, and the thread whose turn it is goes on.
//!
//! The values of atomics are kept beside their objects meanwhile, because that is what the explorer knows of them: memory
//! may have been written through pointers that it knows nothing of.
//!
//! [`System::repeat`]: weakspot_explore::system::System::repeat

use weakspot_explore::system::{Repeated, Step, UNBOUND};

use super::enter;
use super::lane::{Effect, Operation};
use super::runtime::{Runtime, State};

/// The steps of a run that are known.
#[derive(Default)]
pub(crate) struct Script {
    steps: Vec<Repeated>,
    next: usize,
}

/// What comes of the next step of the script.
pub(super) enum Taken {
    /// The thread goes on with this result.
    Goes(i64),
    /// The thread stays where it is.
    Rests,
    /// The thread is about to do something else.
    Differs,
}

impl Script {
    /// Whose turn it is.
    #[inline]
    pub(super) fn turn(&self) -> Option<u32> {
        self.steps.get(self.next).map(|step| step.thread)
    }
}

impl State {
    /// Takes the next step of the script, which is that of a thread that has posted an event.
    pub(super) fn take_step(&mut self) -> Taken {
        let Repeated { thread, step, cell, value, .. } = self.script.steps[self.script.next];
        let operation = self.lanes[thread as usize].operation;
        let object = Self::object_of(operation);
        if let Some(object) = object
            && self.objects[object as usize].cell == UNBOUND
        {
            self.bind(object, cell);
            self.script.steps[self.script.next].bound = true;
        }
        let fits = match (step, operation) {
            (Step::Rest, _) => true,
            (Step::Acquire, Operation::Wait { mutex, .. }) => self.objects[mutex as usize].cell == cell,
            _ => object.is_none_or(|object| self.objects[object as usize].cell == cell),
        };
        let result = if fits { self.result_of(step, operation, value) } else { None };
        match result {
            Some(result) => {
                self.script.next += 1;
                if step == Step::Rest {
                    return Taken::Rests;
                }
                Runtime::note_event(self, thread as usize, result);
                Taken::Goes(result)
            }
            None => Taken::Differs,
        }
    }

    /// The result of a step, if this is what the thread is about to do.
    #[inline]
    fn result_of(&mut self, step: Step, operation: Operation, choice: i64) -> Option<i64> {
        Some(match (step, operation) {
            (Step::Load, Operation::Load(object)) => self.objects[object as usize].value as i64,
            (Step::Store, Operation::Store(object, value))
            | (Step::InterlockedStore, Operation::InterlockedStore(object, value)) => {
                self.objects[object as usize].value = value;
                self.script.steps[self.script.next].value = value as i64;
                0
            }
            (Step::Rmw { drains_all, writes }, Operation::Rmw { object, drains_all: now, probe })
                if drains_all == now =>
            {
                return self.update_again(object, probe, writes);
            }
            (Step::Rmw { writes: false, .. }, Operation::TryLock(_)) => 0,
            (Step::Acquire, Operation::TryLock(_)) => 1,
            (Step::Choose, Operation::Choose(count)) if (0..i64::from(count)).contains(&choice) => choice,
            (Step::Fence(kind), Operation::Fence(now)) if kind == now => 0,
            (Step::Acquire, Operation::Lock(_) | Operation::Wait { .. })
            | (Step::Unlock, Operation::Unlock(_))
            | (Step::Notify, Operation::Notify { .. })
            | (Step::Signal, Operation::Spawn { .. } | Operation::End(_))
            | (Step::Await, Operation::Begin(_) | Operation::Join { .. })
            | (Step::Rest, _) => 0,
            _ => return None,
        })
    }

    /// The result of an atomic, if it writes as it did.
    fn update_again(
        &mut self,
        object: u32,
        probe: *const (dyn Fn(Option<u64>) -> (u64, Effect) + 'static),
        writes: bool,
    ) -> Option<i64> {
        let current = self.objects[object as usize].value;
        // SAFETY: the thread is suspended, or about to be, in the call that owns the probe.
        let (_, effect) = unsafe { (*probe)(Some(current)) };
        match effect {
            Effect::Writes(value) if writes || value == current => {
                self.objects[object as usize].value = value;
                let step = self.script.next;
                self.script.steps[step].value = value as i64;
                let thread = self.script.steps[step].thread;
                self.lanes[thread as usize].written.set(Some(value as i64));
            }
            Effect::Reads if !writes => {}
            _ => return None,
        }
        Some(current as i64)
    }
}

impl Runtime {
    /// Runs the threads along a script, from the beginning of a run, as far as they follow it: how many steps that is.
    pub(super) fn follow(&self, steps: &mut Vec<Repeated>) -> usize {
        self.state().script = Script { steps: std::mem::take(steps), next: 0 };
        enter(self, || {
            loop {
                let (thread, taken) = {
                    let state = &mut *self.state();
                    let Some(thread) = state.script.turn() else { break };
                    (thread, state.take_step())
                };
                match taken {
                    Taken::Goes(result) => self.run_on(thread as usize, result),
                    Taken::Rests => {}
                    Taken::Differs => break,
                }
            }
        });
        let script = std::mem::take(&mut self.state().script);
        *steps = script.steps;
        script.next
    }
}
