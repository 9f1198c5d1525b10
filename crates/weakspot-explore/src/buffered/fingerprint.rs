//! What the future of a run depends on, as a number.
//!
//! Live code cannot be asked for its state, but a thread is deterministic: what it was given so far says where it is, and
//! which write of which thread stands in a cell says what the cell holds. So a hash of these is one of the state, the
//! same in every run (numbers of cells and addresses are not).

use super::Buffered;
use crate::system::System;
use crate::trust::mix;

impl<S: System> Buffered<'_, S> {
    /// A hash of everything that what can happen from here on depends on.
    pub fn fingerprint(&self) -> u64 {
        let memory = self.writes.iter().fold(0_u64, |sum, &name| sum.wrapping_add(mix(name, 0)));
        self.lanes.iter().enumerate().fold(memory, |hash, (thread, lane)| {
            let numbers = [
                thread as u64,
                lane.history,
                lane.phase as u64,
                u64::from(lane.idle_at == self.version),
                u64::from(lane.round_began_at == self.version),
                u64::from(lane.passed_at == self.version) * u64::from(lane.rounds),
                u64::from(lane.is_late) | u64::from(lane.timeouts) << 1,
            ];
            let late = lane.late_at.iter().filter(|late| late.1 == self.news);
            let late = late.flat_map(|&(place, _, times)| [u64::from(place.0), u64::from(times)]);
            let stores = lane.buffer.iter().flat_map(|store| [store.name, u64::from(store.segment)]);
            numbers.into_iter().chain(late).chain(stores).fold(hash, mix)
        })
    }

    /// A hash of what what can happen depends on beside the steps so far and their order: which threads rest in loops.
    pub fn loops(&self) -> u64 {
        self.lanes.iter().fold(0, |hash, lane| {
            let is_idle = u64::from(lane.idle_at == self.version);
            let began = u64::from(lane.round_began_at == self.version);
            let rounds = if lane.passed_at == self.version { u64::from(lane.rounds) + 1 } else { 0 };
            let timeouts = u64::from(lane.is_late) | u64::from(lane.timeouts) << 1;
            mix(mix(hash, is_idle | began << 1 | rounds << 2), timeouts)
        })
    }
}
