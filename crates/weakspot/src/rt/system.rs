//! The runtime as a system for the explorer.

use std::panic::{AssertUnwindSafe, catch_unwind};

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult};
use weakspot_explore::system::{CellId, Judgement, LeftOut, Misuse, Pending, Repeated, System, Token, Update};
use weakspot_model::ids::ThreadId;

use super::channels::Closing;
use super::lane::{Effect, Happened, Issued, Lane, Operation, Suspender};
use super::runtime::{Mode, Runtime, marker_of};
use super::script::{bind, is_bound};
use super::{enter, overflow, panics, stacks};
use crate::failure::{Failure, FailureKind};

/// Live code as a system.
pub(crate) struct Live<'r> {
    pub(crate) runtime: &'r Runtime,
}

impl std::fmt::Debug for Live<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").finish_non_exhaustive()
    }
}

impl Runtime {
    /// Resumes a thread: its event happens, and it runs to its next one.
    pub(crate) fn switch_to(&self, thread: usize, result: i64) {
        enter(self, || self.run_on(thread, result));
    }

    /// The same where this runtime is the current one.
    pub(super) fn run_on(&self, thread: usize, result: i64) {
        let (berth, guard, place) = {
            let lane = &self.state().lanes[thread];
            (lane.berth.pointer(), lane.guard, lane.place)
        };
        if let Some(pulse) = &self.pulse {
            pulse.goes_on(thread as u32, place);
        }
        self.thread.set(thread as u32);
        overflow::running(thread as u32, guard);
        // SAFETY: the lane is there as long as the runtime is, and its berth does not move. While the coroutine runs,
        // nobody but this function uses what is in it: others do so between two calls of it only.
        let berth = unsafe { &mut *berth };
        let routine = berth.as_mut().expect("invariant: a thread that goes on exists");
        if let CoroutineResult::Return(()) = routine.resume(result)
            && let Some(routine) = berth.take()
        {
            stacks::give_back(routine.into_stack());
        }
        if let Some(pulse) = &self.pulse {
            pulse.rests();
        }
    }

    /// Makes the coroutine of a thread. It begins when it is resumed for the first time.
    pub(crate) fn add_routine(&self, thread: u32, stack: DefaultStack, body: impl FnOnce() + 'static) {
        let (guard, top) = (stack.limit().get(), stack.base().get());
        let routine = Coroutine::with_stack(stack, move |suspender: &Suspender, _| run_thread(suspender, body));
        let lane = &mut self.state().lanes[thread as usize];
        lane.berth.put(routine);
        (lane.guard, lane.top) = (guard, top);
    }

    /// The beginning of a run: the first thread stands before its first event.
    pub(super) fn begin_run(&self) {
        if self.counts.borrow().observed.closing == Closing::Asked {
            self.forget_hidden();
        }
        // What was used is as it was before, and then others may have it.
        {
            let mut state = self.state();
            state.forget_run();
            state.lanes[0].place = self.start;
        }
        self.forget_entered();
        self.next_run();
        self.debts.set(0);
        self.counts.borrow_mut().reset();
        {
            let observed = &self.counts.borrow().observed;
            self.shares.borrow_mut().reset(observed.readers.is_ordered);
            self.meetings.borrow_mut().reset(observed.members);
            self.channels.borrow_mut().reset(observed.closing);
        }
        self.freed.release();
        self.mode.set(Mode::Explored);
        let body = self.body.clone();
        self.add_routine(0, stacks::take(), move || body());
        self.switch_to(0, 0);
    }

    /// A store of a thread to an object reaches memory.
    pub(super) fn commit(&self, thread: usize, object: u32) {
        let state = &mut *self.state();
        let lane = &mut state.lanes[thread];
        let Some(at) = lane.issued.iter().position(|issued| issued.object == object) else { return };
        let Issued { row, place, .. } = lane.issued.remove(at);
        state.causality.commit(object, row);
        let (thread, operation, what) = (thread as u32, Operation::Commit(object), "commit");
        let after_change = false;
        state.log.push(Happened { thread, operation, what, place, result: 0, written: None, after_change });
    }

    /// The end of a run in which every thread has ended: what it stored is destroyed, and leaks are counted. No thread
    /// runs, so events happen at once and nothing can wait.
    pub(crate) fn end_run(&self) -> Option<Failure> {
        let mode = self.mode.replace(Mode::Free);
        self.state().lanes[0].suspender = std::ptr::null();
        self.thread.set(0);
        let ended = enter(self, || self.storage.end_run());
        self.state().give_back();
        self.mode.set(mode);
        let leak = ended.and_then(|()| self.counts.borrow().check_leaks()).err();
        leak.map(|message| Failure::new(FailureKind::Leak, message)).or_else(|| {
            self.freed_twice()
                .or_else(|| self.foreign_complaint())
                .map(|message| Failure::new(FailureKind::Other, message))
        })
    }
}

/// The life of a thread inside its coroutine.
fn run_thread(suspender: &Suspender, body: impl FnOnce()) {
    let runtime = super::current().expect("invariant: coroutines run inside their runtime");
    let thread = runtime.thread.get();
    runtime.state().lanes[thread as usize].suspender = suspender;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        body();
        if !runtime.is_free() {
            super::counts::ends(runtime, thread);
        }
        runtime.storage.end_thread(thread);
    }));
    let failed = match outcome {
        Ok(()) => false,
        Err(payload) => {
            let explored = runtime.mode.get() == Mode::Explored;
            let failure = panics::take_failure(runtime, thread, Some(&*payload));
            if explored {
                runtime.note_failure(failure);
            } else {
                runtime.free_panic.borrow_mut().get_or_insert_with(|| panics::in_words(&failure));
            }
            explored
        }
    };
    if !failed && thread != 0 {
        runtime.end_thread(thread);
    }
    let last = if failed { Operation::Failed } else { Operation::Ended };
    runtime.state().lanes[thread as usize].operation = last;
}

impl System for Live<'_> {
    fn restart(&mut self) {
        self.runtime.finish_run(true);
        self.runtime.forget_waiting();
        self.runtime.begin_run();
        self.runtime.begin_again_if_due();
    }

    fn threads(&self) -> usize {
        self.runtime.state.borrow().lanes.len()
    }

    fn cells(&self) -> usize {
        0
    }

    fn initial(&self, cell: CellId) -> i64 {
        let state = self.runtime.state.borrow();
        state.objects[state.bound[cell as usize] as usize].initial as i64
    }

    fn bind(&mut self, thread: ThreadId, cell: CellId) {
        let state = &mut *self.runtime.state();
        let object = state.lanes[thread.index()].operation.object();
        let object = object.expect("invariant: only unbound objects are bound");
        state.objects[object as usize].cell = cell;
        bind(&mut state.bound, object, cell);
    }

    fn is_bound(&self, cell: CellId) -> bool {
        is_bound(&self.runtime.state.borrow().bound, cell)
    }

    #[inline]
    fn may_block(&self, thread: ThreadId) -> bool {
        matches!(self.runtime.state.borrow().lanes[thread.index()].operation, Operation::Rmw { may_block: true, .. })
    }

    fn blocks_at_first(&self, thread: ThreadId) -> bool {
        let Operation::Rmw { probe, .. } = self.runtime.state.borrow().lanes[thread.index()].operation else {
            return false;
        };
        // SAFETY: the thread is suspended in the call that owns the probe.
        matches!(unsafe { (*probe)(None) }.1, Effect::Blocks)
    }

    #[inline]
    fn looks(&self, thread: ThreadId) -> bool {
        matches!(self.runtime.state.borrow().lanes[thread.index()].operation, Operation::Rmw { looks: true, .. })
    }

    fn repeat(&mut self, steps: &mut Vec<Repeated>) -> usize {
        self.runtime.follow(steps)
    }

    #[inline]
    fn pending(&self, thread: ThreadId) -> Pending {
        let state = self.runtime.state.borrow();
        let cell = |object: u32| state.objects[object as usize].cell;
        match state.lanes[thread.index()].operation {
            Operation::Absent => Pending::Absent,
            Operation::Load(object) => Pending::Load(cell(object)),
            Operation::Store(object, value) => Pending::Store { cell: cell(object), value: value as i64 },
            Operation::InterlockedStore(object, value) => {
                Pending::InterlockedStore { cell: cell(object), value: value as i64 }
            }
            Operation::Rmw { object, drains_all, .. } => Pending::Rmw { cell: cell(object), drains_all },
            Operation::Fence(kind) => Pending::Fence(kind),
            Operation::Lock(object) => Pending::Lock(cell(object)),
            Operation::TryLock(object) => Pending::TryLock(cell(object)),
            Operation::Unlock(object) => Pending::Unlock(cell(object)),
            Operation::Wait { condvar, mutex } => Pending::Wait { condvar: cell(condvar), mutex: cell(mutex) },
            Operation::Notify { condvar, all } => Pending::Notify { condvar: cell(condvar), all },
            Operation::Choose(count) => Pending::Choose { lo: 0, hi: i64::from(count) - 1 },
            Operation::Spawn { birth: object, .. } | Operation::End(object) | Operation::Open(object) => {
                Pending::Signal(cell(object))
            }
            Operation::Begin(object) | Operation::Join { end: object, .. } | Operation::Pass(object) => {
                Pending::Await(cell(object))
            }
            Operation::Ended | Operation::Commit(_) | Operation::Plain => Pending::Ended,
            Operation::Failed => Pending::Failed,
        }
    }

    fn update(&self, thread: ThreadId, current: i64) -> Update {
        let state = self.runtime.state.borrow();
        let Operation::Rmw { probe, .. } = state.lanes[thread.index()].operation else {
            return Update::Fails;
        };
        // SAFETY: the thread is suspended in the call that owns the probe.
        let (_, effect) = unsafe { (*probe)(Some(current as u64)) };
        let written = if let Effect::Writes(value) = effect { Some(value as i64) } else { None };
        state.lanes[thread.index()].written.set(written);
        match effect {
            Effect::Writes(value) => Update::Acts { result: current, written: Some(value as i64) },
            Effect::Reads => Update::Acts { result: current, written: None },
            Effect::Blocks => Update::Blocks,
        }
    }

    fn resume(&mut self, thread: ThreadId, result: i64) {
        Runtime::note_event(&mut self.runtime.state(), thread.index(), result);
        self.runtime.switch_to(thread.index(), result);
        self.runtime.begin_again_if_due();
    }

    fn fail(&mut self, thread: ThreadId, _misuse: Misuse) {
        let message = "a mutex was released that is not held".to_owned();
        self.runtime.note_failure(Failure::new(FailureKind::Other, message).of_thread(u32::from(thread.0)));
        self.runtime.state().lanes[thread.index()].operation = Operation::Failed;
    }

    fn committed(&mut self, thread: ThreadId, cell: CellId) {
        let object = self.runtime.state().bound[cell as usize];
        self.runtime.commit(thread.index(), object);
    }

    fn jumped_back(&self, thread: ThreadId) -> bool {
        self.runtime.state.borrow().lanes[thread.index()].marker != 0
    }

    fn marker(&self, thread: ThreadId) -> Token {
        Token(self.runtime.state.borrow().lanes[thread.index()].marker)
    }

    fn idle_passes(&self, thread: ThreadId) -> u32 {
        self.runtime.state.borrow().lanes[thread.index()].silent_rounds
    }

    fn place_of_choice(&self, thread: ThreadId) -> Token {
        let state = self.runtime.state.borrow();
        let lane = &state.lanes[thread.index()];
        if lane.timeouts_here().is_some() { Token(marker_of(lane.place)) } else { Token(0) }
    }

    fn may_time_out(&self, thread: ThreadId) -> bool {
        self.runtime.state.borrow().lanes[thread.index()].may_time_out()
    }

    fn may_stay(&self, thread: ThreadId) -> bool {
        self.runtime.state.borrow().is_hidden(thread.index())
    }

    fn has_timed_out(&self, thread: ThreadId) -> bool {
        self.runtime.state.borrow().lanes[thread.index()].has_timed_out()
    }

    fn unseen_changes(&self, thread: ThreadId) -> Vec<u32> {
        let state = self.runtime.state();
        let is_own = |happened: &&Happened| {
            happened.thread == u32::from(thread.0) && !matches!(happened.operation, Operation::Commit(_))
        };
        let own = || state.log.iter().filter(is_own);
        let mut changes: Vec<u32> =
            own().zip(0..).filter(|(happened, _)| happened.after_change).map(|(_, step)| step).collect();
        if state.lanes[thread.index()].has_changed.get() {
            changes.push(own().count() as u32);
        }
        changes
    }

    fn leave_rounds_out(&mut self, thread: ThreadId, why: LeftOut) {
        let Lane { place, marker_place, .. } = self.runtime.state().lanes[thread.index()];
        let place = if why == LeftOut::Timeouts { place } else { marker_place.unwrap_or(place) };
        self.runtime.loops_left_out.borrow_mut().insert((place.into(), why));
    }

    fn note_end(&mut self, thread: ThreadId) {
        let marker = self.marker(thread).0;
        self.runtime.ending_loops.borrow_mut().insert(marker);
    }

    fn is_known_to_end(&self, marker: Token) -> bool {
        let ending = self.runtime.ending_loops.borrow();
        !ending.is_empty() && ending.contains(&marker.0)
    }

    fn judge(&self, _memory: &dyn Fn(CellId) -> i64) -> Judgement {
        match self.runtime.end_run() {
            None => Judgement::Holds,
            Some(failure) => {
                self.runtime.note_failure(failure);
                Judgement::Fails
            }
        }
    }
}
