//! Threads that rest in a loop until memory changes or wait until their time is over, and how a run ends.

use weakspot_model::ids::ThreadId;

use super::{Buffered, Rest};
use crate::graph::Phase;
use crate::system::{Pending, System, Token};
use crate::trust::{MOST_ROUNDS, bit, mix};

/// Rounds that a thread goes on for when all rest, before it is another one's turn.
const TURN: u32 = 50;

impl<S: System> Buffered<'_, S> {
    /// The thread has come round a loop. It rests if it is about to do what it did before, on the same memory. (After a
    /// timeout it does not: whether there is one is up to who chooses moves.)
    pub(super) fn end_round(&mut self, thread: ThreadId) {
        let is_awake = self.ends_by_itself(thread.index());
        let is_timed = self.system.has_timed_out(thread);
        let marker = Some(self.system.marker(thread));
        let pending = Some(self.pending(thread.index()));
        let version = self.version;
        let lane = &mut self.lanes[thread.index()];
        lane.repeats = lane.passed == marker && lane.round_began_with == pending;
        let again = lane.round_began_at == version && lane.repeats;
        lane.passed = marker;
        lane.rounds = if lane.passed_at == version { lane.rounds + 1 } else { 0 };
        (lane.round_began_at, lane.passed_at) = (0, version);
        if again && !is_timed && !(is_awake && lane.rounds <= self.exact_rounds) {
            lane.idle_at = version;
        }
    }

    /// Has the thread come round a loop in its last step?
    pub fn has_yielded(&self, thread: usize) -> bool {
        self.system.jumped_back(ThreadId::new(thread))
    }

    /// The thread has come round a loop in its last step: is it about to go round once more? It has passed the marker
    /// before, and does next what it did after that.
    pub fn repeats(&self, thread: usize) -> bool {
        self.lanes[thread].repeats
    }

    /// Does the thread rest until memory changes?
    pub fn rests(&self, thread: usize) -> bool {
        self.lanes[thread].idle_at == self.version
    }

    /// Is every loop treated as one that may end by itself?
    pub fn is_restless(&self) -> bool {
        self.restless
    }

    /// May the loop that the thread has come round end by itself, as far as is known?
    pub fn ends_by_itself(&self, thread: usize) -> bool {
        self.restless || self.system.is_known_to_end(self.system.marker(ThreadId::new(thread)))
    }

    /// Is the thread stuck in a wait that may be over after some time?
    fn waits_with_timeout(&mut self, thread: usize) -> bool {
        if !self.system.may_time_out(ThreadId::new(thread)) || self.can_step(thread) {
            return false;
        }
        match self.pending(thread) {
            Pending::Wait { condvar, .. } => {
                self.lanes[thread].phase == Phase::Asleep && self.memory[condvar as usize] & bit(thread) != 0
            }
            Pending::Rmw { .. } => !self.lanes[thread].is_late && self.lanes[thread].idle_at != self.version,
            _ => false,
        }
    }

    /// A thread chooses to time out, if that is what it chooses about.
    pub(super) fn note_chosen_timeout(&mut self, thread: usize) {
        let place = self.system.place_of_choice(ThreadId::new(thread));
        let (news, late_at) = (self.news, &mut self.lanes[thread].late_at);
        match late_at.iter_mut().find(|late| late.0 == place) {
            _ if place == Token(0) => {}
            Some((_, then, times)) if *then == news => *times += 1,
            Some(late) => *late = (place, news, 1),
            None => late_at.push((place, news, 1)),
        }
    }

    /// May a thread, which is about to choose, choose to time out? Where it has done so on the same memory, it has come round
    /// a loop and does the same again, unless it counts.
    pub(super) fn may_time_out_again(&self, thread: usize) -> bool {
        let place = self.system.place_of_choice(ThreadId::new(thread));
        let late = self.lanes[thread].late_at.iter().find(|late| late.0 == place && late.1 == self.news);
        late.is_none_or(|&(_, _, times)| times <= self.exact_rounds && self.system.is_known_to_end(place))
    }

    /// The time of a thread that waits is over. One that waits for a notification has to get its mutex back.
    fn time_out(&mut self, thread: usize) {
        let lane = &mut self.lanes[thread];
        (lane.is_late, lane.timeouts) = (true, lane.timeouts + 1);
        let (steps, timeouts) = (lane.steps, u64::from(lane.timeouts));
        if let Pending::Wait { condvar, .. } = self.pending(thread) {
            let left = self.memory[condvar as usize] & !bit(thread);
            self.set_lock(condvar, left, mix(mix(thread as u64, steps), mix(timeouts, left as u64)));
        }
    }

    /// Lets a thread that rests in a loop go round once more. One that waits with a timeout does not wait any longer.
    pub fn wake(&mut self, thread: usize) {
        self.lanes[thread].idle_at = 0;
        if self.waits_with_timeout(thread) {
            self.time_out(thread);
        }
    }

    /// Nobody can move: lets a thread that rests in a loop, or waits with a timeout, go on, if it has not done so too
    /// often; false if there is none. They take turns.
    fn rouse(&mut self) -> bool {
        let mut next = None;
        for thread in 0..self.lanes.len() {
            let lane = &self.lanes[thread];
            let (rounds, timeouts) = (lane.rounds, lane.timeouts);
            let turn = if lane.idle_at == self.version && rounds < MOST_ROUNDS {
                (rounds / TURN, true)
            } else if timeouts < MOST_ROUNDS && self.waits_with_timeout(thread) {
                (timeouts, false)
            } else {
                continue;
            };
            next = [next, Some((turn, thread))].into_iter().flatten().min();
        }
        let Some((_, thread)) = next else { return false };
        self.wake(thread);
        self.roused += 1;
        true
    }

    /// How often a thread was roused because nobody could move.
    pub fn times_roused(&self) -> u64 {
        self.roused
    }

    /// Is the run over, and how? If only threads are left that rest in loops or wait with a timeout, one of them is roused
    /// instead.
    pub fn rest(&mut self) -> Option<Rest> {
        let (mut all_ended, mut idle, mut stores) = (true, false, false);
        for thread in 0..self.lanes.len() {
            match self.pending(thread) {
                Pending::Failed => return Some(Rest::Failed(thread)),
                Pending::Ended | Pending::Absent => {}
                Pending::Await(_) if self.system.may_stay(ThreadId::new(thread)) && !self.can_step(thread) => {}
                _ => {
                    all_ended = false;
                    idle |= self.lanes[thread].idle_at == self.version || self.waits_with_timeout(thread);
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
