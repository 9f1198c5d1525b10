//! What has happened before, made again without the explorer.
//!
//! The beginning of most runs is known: the explorer hands it over as a list of steps ([`System::repeat`]). While there
//! are steps left, a thread that posts an event looks whether the next step is its own. If so, and if it fits, the event
//! happens at once and the thread runs on; otherwise it suspends, and the thread whose turn it is goes on.
//!
//! Loads, stores and atomics do not even post their events then: see [`Runtime::load_again`] and its like.
//!
//! The values of atomics are kept beside their objects meanwhile, because that is what the explorer knows of them: memory
//! may have been written through pointers that it knows nothing of.
//!
//! [`System::repeat`]: weakspot_explore::system::System::repeat

use weakspot_explore::system::{Repeated, Step, UNBOUND};

use super::causality::Sync;
use super::lane::{Effect, Happened, Operation};
use super::objects::Object;
use super::runtime::Runtime;
use super::state::State;
use super::{Place, enter};

/// The steps of a run that are known.
#[derive(Default)]
pub(crate) struct Script {
    steps: Vec<Repeated>,
    next: usize,
    /// A step that its thread did not take by itself.
    refused: Option<usize>,
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

/// The object of a step, if it is the one of this cell. One that has no number yet gets that of the cell, unless the cell is
/// another one's in this run: then the thread does something else than before.
#[inline]
fn find<'o>(
    objects: &'o mut [Object],
    bound: &mut Vec<u32>,
    object: u32,
    step: &mut Repeated,
) -> Option<&'o mut Object> {
    let found = &mut objects[object as usize];
    if found.cell == UNBOUND && !is_bound(bound, step.cell) {
        found.cell = step.cell;
        step.bound = true;
        bind(bound, object, step.cell);
    }
    (found.cell == step.cell).then_some(found)
}

/// Notes what a step writes.
#[inline]
fn write(step: &mut Repeated, value: u64) {
    step.changed = step.value != value as i64;
    step.value = value as i64;
}

/// Does a cell have an object in this run?
pub(super) fn is_bound(bound: &[u32], cell: u32) -> bool {
    bound.get(cell as usize).is_some_and(|&object| object != u32::MAX)
}

/// Notes the object of a cell.
#[inline]
pub(super) fn bind(bound: &mut Vec<u32>, object: u32, cell: u32) {
    if bound.len() <= cell as usize {
        bound.resize(cell as usize + 1, u32::MAX);
    }
    bound[cell as usize] = object;
}

impl State {
    /// Takes the next step of the script, which is that of a thread that has posted an event.
    #[inline]
    pub(super) fn take_step(&mut self) -> Taken {
        let thread = self.script.steps[self.script.next].thread as usize;
        if self.script.steps[self.script.next].step == Step::Rest {
            if let Some(object) = self.lanes[thread].operation.object() {
                find(&mut self.objects, &mut self.bound, object, &mut self.script.steps[self.script.next]);
            }
            self.script.next += 1;
            return Taken::Rests;
        }
        let Some(result) = self.result_of_step(thread, self.lanes[thread].operation) else { return Taken::Differs };
        self.script.next += 1;
        Runtime::note_event(self, thread, result);
        Taken::Goes(result)
    }

    /// Takes the next step of the script, if it is what a thread is about to post: the result. The thread goes on, and
    /// nobody will ask what it was about to do.
    #[inline]
    pub(super) fn take_unposted(
        &mut self,
        thread: u32,
        operation: Operation,
        what: &'static str,
        place: Place,
    ) -> Option<i64> {
        if self.script.turn() != Some(thread) {
            return None;
        }
        let result = self.result_of_step(thread as usize, operation)?;
        let written = self.lanes[thread as usize].written.take();
        self.took(thread, Again { object: u32::MAX, what, place }, operation, result, written);
        Some(result)
    }

    /// The result of the next step, if this is what the thread is about to do.
    #[inline]
    fn result_of_step(&mut self, thread: usize, operation: Operation) -> Option<i64> {
        let Self { lanes, objects, bound, script, .. } = self;
        let lane = &mut lanes[thread];
        let step = &mut script.steps[script.next];
        Some(match (step.step, operation) {
            (Step::Load, Operation::Load(object)) => find(objects, bound, object, step)?.value as i64,
            (Step::Store, Operation::Store(object, value))
            | (Step::InterlockedStore, Operation::InterlockedStore(object, value)) => {
                find(objects, bound, object, step)?.value = value;
                write(step, value);
                0
            }
            (Step::Rmw { drains_all, writes }, Operation::Rmw { object, drains_all: now, probe, .. })
                if drains_all == now =>
            {
                let current = &mut find(objects, bound, object, step)?.value;
                // SAFETY: the thread is suspended, or about to be, in the call that owns the probe.
                let (read, effect) = unsafe { (*probe)(Some(*current)) };
                match effect {
                    Effect::Writes(value) if writes || value == read => {
                        *current = value;
                        write(step, value);
                        lane.written.set(Some(value as i64));
                    }
                    Effect::Reads if !writes => {}
                    _ => return None,
                }
                read as i64
            }
            (Step::TimeOut, Operation::Rmw { object, .. }) => find(objects, bound, object, step)?.value as i64,
            (Step::TimeOut, Operation::Wait { mutex, .. }) => find(objects, bound, mutex, step).map(|_| 1)?,
            (Step::Rmw { writes: false, .. }, Operation::TryLock(object)) => {
                find(objects, bound, object, step).map(|_| 0)?
            }
            (Step::Acquire, Operation::TryLock(object)) => find(objects, bound, object, step).map(|_| 1)?,
            (Step::Choose, Operation::Choose(count)) if (0..i64::from(count)).contains(&step.value) => step.value,
            (Step::Fence(kind), Operation::Fence(now)) if kind == now => 0,
            (Step::Acquire, Operation::Lock(object) | Operation::Wait { mutex: object, .. })
            | (Step::Unlock, Operation::Unlock(object))
            | (Step::Notify, Operation::Notify { condvar: object, .. })
            | (
                Step::Signal,
                Operation::Spawn { birth: object, .. } | Operation::End(object) | Operation::Open(object),
            )
            | (Step::Await, Operation::Begin(object) | Operation::Join { end: object, .. } | Operation::Pass(object)) => {
                find(objects, bound, object, step).map(|_| 0)?
            }
            _ => return None,
        })
    }
}

/// An access to an atomic that may be the next step of the script.
#[derive(Clone, Copy)]
pub(crate) struct Again {
    pub(crate) object: u32,
    pub(crate) what: &'static str,
    pub(crate) place: Place,
}

impl State {
    /// Does nothing stand against taking the next step without posting it? It has to be the thread's, about this object,
    /// which has a number; and the thread is neither unwinding nor in a destructor that is watched.
    #[inline]
    fn is_next(&self, thread: u32, object: u32) -> bool {
        self.script.steps.get(self.script.next).is_some_and(|step| {
            let lane = &self.lanes[thread as usize];
            step.thread == thread
                && step.cell == self.objects[object as usize].cell
                && !lane.unwinding
                && lane.last_owner_of.is_none()
        })
    }

    /// The next step of the script has been taken.
    #[inline]
    fn took(&mut self, thread: u32, again: Again, operation: Operation, result: i64, written: Option<i64>) {
        let Again { what, place, .. } = again;
        self.script.next += 1;
        let lane = &mut self.lanes[thread as usize];
        (lane.marker, lane.place) = (0, place);
        let after_change = lane.has_changed.take();
        self.log.push(Happened { thread, operation, what, place, result, written, after_change });
    }
}

impl Runtime {
    /// A load that is the next step of the script: the value. `None`: it has to be posted.
    #[inline]
    pub(crate) fn load_again(&self, again: Again, sync: Sync) -> Option<u64> {
        let (state, thread) = (&mut *self.state(), self.thread.get());
        if !state.is_next(thread, again.object) || state.script.steps[state.script.next].step != Step::Load {
            return None;
        }
        let value = state.objects[again.object as usize].value;
        state.causality.read(thread, again.object, sync);
        state.took(thread, again, Operation::Load(again.object), value as i64, None);
        Some(value)
    }

    /// The same for a store: false if it has to be posted.
    #[inline]
    pub(crate) fn store_again(&self, again: Again, value: u64, interlocked: bool, sync: Sync) -> bool {
        let (state, thread) = (&mut *self.state(), self.thread.get());
        let kind = if interlocked { Step::InterlockedStore } else { Step::Store };
        if !state.is_next(thread, again.object) || state.script.steps[state.script.next].step != kind {
            return false;
        }
        state.objects[again.object as usize].value = value;
        write(&mut state.script.steps[state.script.next], value);
        state.causality.write(thread, again.object, sync, false);
        let operation = if interlocked { Operation::InterlockedStore } else { Operation::Store };
        state.took(thread, again, operation(again.object, value), 0, None);
        true
    }

    /// The same for an atomic: what it read. It synchronises as the first ordering says if it writes, else as the other.
    #[inline]
    pub(crate) fn update_again(
        &self,
        again: Again,
        drains_all: bool,
        (success, failure): (Sync, Sync),
        new: impl Fn(u64) -> Option<u64>,
    ) -> Option<u64> {
        let (state, thread) = (&mut *self.state(), self.thread.get());
        if !state.is_next(thread, again.object) {
            return None;
        }
        let step = &mut state.script.steps[state.script.next];
        let object = &mut state.objects[again.object as usize];
        let old = object.value;
        let written = new(old);
        let writes = match step.step {
            Step::Rmw { drains_all: then, writes } if then == drains_all => writes,
            _ => return None,
        };
        match written {
            Some(value) if writes || value == old => {
                object.value = value;
                write(step, value);
                state.causality.update(thread, again.object, success);
            }
            None if !writes => state.causality.read(thread, again.object, failure),
            _ => return None,
        }
        let operation = Operation::Rmw {
            object: again.object,
            drains_all,
            may_block: false,
            looks: false,
            probe: &raw const NO_PROBE,
        };
        state.took(thread, again, operation, old as i64, written.map(|value| value as i64));
        Some(old)
    }
}

/// What is in the place of the probe of an atomic that was not posted.
static NO_PROBE: fn(Option<u64>) -> (u64, Effect) = |_| (0, Effect::Reads);

impl Runtime {
    /// Runs the threads along a script, from the beginning of a run, as far as they follow it: how many steps that is.
    pub(super) fn follow(&self, steps: &mut Vec<Repeated>) -> usize {
        self.state().script = Script { steps: std::mem::take(steps), next: 0, refused: None };
        loop {
            enter(self, || while !self.is_in_the_way() && self.follow_on() {});
            if !self.is_in_the_way() {
                break;
            }
            self.begin_again_if_due();
        }
        let script = std::mem::take(&mut self.state().script);
        *steps = script.steps;
        script.next
    }

    /// Lets the thread whose turn it is go on; false if there is none, or it is about to do something else.
    #[inline]
    fn follow_on(&self) -> bool {
        let (thread, taken) = {
            let state = &mut *self.state();
            let Some(thread) = state.script.turn() else { return false };
            let next = state.script.next;
            let is_posted = !state.lanes[thread as usize].takes_steps || state.script.refused == Some(next);
            (thread, if is_posted { Ok(state.take_step()) } else { Err(next) })
        };
        match taken {
            Ok(Taken::Goes(result)) => self.run_on(thread as usize, result),
            Ok(Taken::Rests) => {}
            Ok(Taken::Differs) => return false,
            Err(next) => {
                self.its_turn.set(true);
                self.run_on(thread as usize, 0);
                self.its_turn.set(false);
                let script = &mut self.state().script;
                if script.next == next {
                    // It has posted its event again.
                    script.refused = Some(next);
                }
            }
        }
        true
    }
}
