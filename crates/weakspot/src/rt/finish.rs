//! What becomes of a run that is given up.
//!
//! The explorer gives up a run whose graph turned out to be no execution (a thread waits for something that is there),
//! and starts another one. The threads of the old run still have values on their stacks. They are run to their end, in
//! any order, with events that happen at once: that is one of the SC executions, and all destructors run as they should.
//! What does not end so (a real deadlock, a thread that failed) is left behind.

use std::fmt::Write;

use weakspot_explore::system::{CellId, LeftOut, UNBOUND};

use super::lane::{Effect, Operation};
use super::runtime::{Mode, Runtime};
use super::stacks;
use crate::failure::{Failure, SourcePlace};

/// Turns that threads get until one of them comes to its end.
const TURNS: usize = 2_000;

impl Runtime {
    /// Brings the threads of the run to their end, or leaves them behind.
    pub(crate) fn finish_run(&self, may_go_on: bool) {
        if self.is_over() {
            // A run that was only tried out may have come to its end: nobody has asked for what it stored.
            if !self.storage.is_empty() {
                if may_go_on && self.failure.borrow().is_none() {
                    let _ = self.end_run();
                } else {
                    self.storage.abandon();
                }
            }
            return self.state().give_back();
        }
        self.mode.set(Mode::Free);
        if may_go_on && self.failure.borrow().is_none() {
            self.run_free();
        }
        let all_over = self.is_over();
        self.leave_behind();
        if all_over {
            // Complaints belong to executions, and this is none.
            let _ = self.end_run();
        } else {
            self.storage.abandon();
            self.state().give_back();
        }
        self.failure.take();
        self.mode.set(Mode::Explored);
    }

    /// Nobody can end the waiting of the threads that are left, as far as can be seen. Lets them go on nevertheless: nothing
    /// if all come to their end without a panic. Then they wait for something that is no event, and their loops are named.
    /// Otherwise it is a livelock, and what they do at last, if they panic, is told as well. Whoever has to be notified stays
    /// where it is until somebody does that; `memory` says who waits for a condition variable.
    pub(crate) fn livelock_unless_it_ends(&self, memory: impl Fn(CellId) -> i64) -> Option<Failure> {
        let mut livelock = self.livelock();
        let loops: Vec<_> = {
            let state = self.state();
            let waiting = state.lanes.iter().filter(|lane| lane.marker != 0 && Self::is_there(lane.operation));
            waiting.filter_map(|lane| lane.marker_place.map(SourcePlace::from)).collect()
        };
        self.asleep.set(self.sleepers(memory));
        self.mode.set(Mode::Free);
        self.free_panic.take();
        self.run_free();
        self.asleep.set(0);
        let panic = self.free_panic.take();
        let ends = self.is_over() && panic.is_none();
        if ends {
            self.leave_behind();
            let _ = self.end_run();
            self.loops_left_out.borrow_mut().extend(loops.into_iter().map(|place| (place, LeftOut::Unseen)));
        }
        self.mode.set(Mode::Explored);
        if let Some(panic) = panic {
            let _ = write!(livelock.message, "\n  if they go on waiting, {panic}");
        }
        (!ends).then_some(livelock)
    }

    /// Who waits for a notification that has not come. These have given their mutexes back, which a thread otherwise does when it
    /// goes on.
    fn sleepers(&self, memory: impl Fn(CellId) -> i64) -> u64 {
        let mut sleepers = 0;
        let threads = self.state().lanes.len();
        for thread in 0..threads {
            let Operation::Wait { condvar, mutex } = self.state().lanes[thread].operation else { continue };
            let cell = self.state().objects[condvar as usize].cell;
            if cell != UNBOUND && memory(cell) >> thread & 1 != 0 {
                self.let_go(mutex, thread as u32);
                sleepers |= 1 << thread;
            }
        }
        sleepers
    }

    /// Somebody notifies threads of a run that goes on freely.
    pub(super) fn wake_freely(&self, condvar: u32, all: bool) {
        let state = self.state();
        let asleep = self.asleep.get();
        let waits = |thread: &usize| {
            asleep >> thread & 1 != 0
                && matches!(state.lanes[*thread].operation, Operation::Wait { condvar: other, .. } if other == condvar)
        };
        let woken = (0..state.lanes.len()).filter(waits).take(if all { usize::MAX } else { 1 });
        self.asleep.set(woken.fold(asleep, |asleep, thread| asleep & !(1 << thread)));
    }

    pub(super) fn is_there(operation: Operation) -> bool {
        !matches!(operation, Operation::Ended | Operation::Absent)
    }

    /// Has every thread ended?
    pub(crate) fn is_over(&self) -> bool {
        !self.state().lanes.iter().any(|lane| Self::is_there(lane.operation))
    }

    fn run_free(&self) {
        let mut turns = 0;
        while turns < TURNS {
            turns += 1;
            let mut moved = false;
            let threads = self.state().lanes.len();
            for thread in 0..threads {
                if self.can_run_free(thread) {
                    self.switch_to(thread, 0);
                    moved = true;
                    if matches!(self.state().lanes[thread].operation, Operation::Ended) {
                        turns = 0;
                    }
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn can_run_free(&self, thread: usize) -> bool {
        let state = self.state();
        match state.lanes[thread].operation {
            Operation::Absent | Operation::Ended | Operation::Failed => false,
            Operation::Begin(_) => true,
            Operation::Join { child, .. } => matches!(state.lanes[child as usize].operation, Operation::Ended),
            Operation::Lock(mutex) => !state.objects[mutex as usize].held,
            Operation::Pass(gate) => state.objects[gate as usize].held,
            Operation::Rmw { .. } | Operation::Wait { .. } if state.lanes[thread].may_time_out() => true,
            Operation::Wait { .. } => self.asleep.get() >> thread & 1 == 0,
            Operation::Rmw { probe, .. } => {
                drop(state);
                // SAFETY: the thread is suspended in the call that owns the probe.
                !matches!(unsafe { (*probe)(None) }.1, Effect::Blocks)
            }
            _ => true,
        }
    }

    /// Forgets the coroutines that have not ended. What they own is never dropped.
    fn leave_behind(&self) {
        let mut state = self.state();
        let threads = state.lanes.len();
        for thread in 0..threads {
            let lane = &mut state.lanes[thread];
            lane.operation = Operation::Absent;
            if let Some(mut routine) = lane.berth.take() {
                if !routine.done() {
                    // SAFETY: the coroutine is never resumed again, and what its stack owns is leaked: nothing outside
                    // borrows from the stack, because threads of a model own what they use.
                    unsafe { routine.force_reset() };
                }
                stacks::give_back(routine.into_stack());
            }
        }
    }
}
