//! Threads that rest in a loop until memory changes, and how a run ends.

use weakspot_model::ids::ThreadId;

use super::{Buffered, Lane, Rest};
use crate::system::{Pending, System};
use crate::trust::MOST_ROUNDS;

/// Rounds that a thread goes on for when all rest, before it is another one's turn.
const TURN: u32 = 50;

impl<S: System> Buffered<'_, S> {
    /// The thread has come round a loop. It rests if it is about to do what it did before, on the same memory.
    pub(super) fn end_round(&mut self, thread: ThreadId) {
        let is_awake = self.restless || self.system.ends_by_itself(thread);
        let pending = Some(self.pending(thread.index()));
        let version = self.version;
        let lane = &mut self.lanes[thread.index()];
        let again = lane.round_began_at == version && lane.round_began_with == pending;
        lane.rounds = if lane.passed_at == version { lane.rounds + 1 } else { 0 };
        (lane.round_began_at, lane.passed_at) = (0, version);
        if again && !(is_awake && lane.rounds <= self.exact_rounds) {
            lane.idle_at = version;
        }
    }

    /// Has the thread come round a loop in its last step?
    pub fn has_yielded(&self, thread: usize) -> bool {
        self.system.jumped_back(ThreadId::new(thread))
    }

    /// May the loop that the thread has come round end by itself, as far as is known?
    pub fn ends_by_itself(&self, thread: usize) -> bool {
        self.restless || self.system.ends_by_itself(ThreadId::new(thread))
    }

    /// Nobody can move: lets a thread that rests in a loop go on, if it has not done so too often; false if there is
    /// none. They take turns.
    fn rouse(&mut self) -> bool {
        let version = self.version;
        let rests = |lane: &&mut Lane| lane.idle_at == version && lane.rounds < MOST_ROUNDS;
        match self.lanes.iter_mut().filter(rests).min_by_key(|lane| lane.rounds / TURN) {
            Some(lane) => {
                lane.idle_at = 0;
                self.roused += 1;
                true
            }
            None => false,
        }
    }

    /// How often a thread that rests in a loop was roused because nobody could move.
    pub fn times_roused(&self) -> u64 {
        self.roused
    }

    /// Is the run over, and how? If only threads that rest in loops are left, one of them is roused instead.
    pub fn rest(&mut self) -> Option<Rest> {
        let (mut all_ended, mut idle, mut stores) = (true, false, false);
        for thread in 0..self.lanes.len() {
            match self.pending(thread) {
                Pending::Failed => return Some(Rest::Failed(thread)),
                Pending::Ended | Pending::Absent => {}
                _ => {
                    all_ended = false;
                    idle |= self.lanes[thread].idle_at == self.version;
                }
            }
            stores |= !self.lanes[thread].buffer.is_empty();
        }
        if stores {
            return None;
        }
        if all_ended {
            return Some(Rest::Complete);
        }
        let can_step = |this: &mut Self| (0..this.lanes.len()).any(|thread| this.can_step(thread));
        if can_step(self) {
            return None;
        }
        while self.rouse() {
            if can_step(self) {
                return None;
            }
        }
        Some(if idle { Rest::Livelock } else { Rest::Deadlock })
    }
}
