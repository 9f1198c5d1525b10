//! `Barrier`: threads that wait for each other.
//!
//! A barrier that all come to has a gate for each of them (see [`crate::rt::meetings`]). Of others, one word counts the generation in
//! its upper half and those who have arrived in its lower half. All but the last wait at a gate, one for each generation: if they
//! looked at the word, it would matter who has arrived for the next round meanwhile.

use crate::rt::{self, Step, Sync, Word};
use std::fmt;
use std::panic::Location;

const ONE_GENERATION: u64 = 1 << 32;

/// Lets threads go on when enough have arrived. Mirrors [`std::sync::Barrier`].
pub struct Barrier {
    threads: usize,
    word: Word,
    outside: std::sync::Barrier,
}

/// What [`Barrier::wait`] returns: exactly one thread of each round is the leader.
pub struct BarrierWaitResult {
    is_leader: bool,
    /// Inside a model nobody has to know as long as nobody asks.
    is_known: bool,
}

impl BarrierWaitResult {
    /// Was this the thread that arrived last?
    #[track_caller]
    pub fn is_leader(&self) -> bool {
        if let Some(runtime) = rt::current().filter(|_| !self.is_known) {
            runtime.observe_arrivals(Location::caller());
        }
        self.is_leader
    }
}

impl fmt::Debug for BarrierWaitResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BarrierWaitResult").field("is_leader", &self.is_leader()).finish()
    }
}

impl Barrier {
    /// For this many threads; 0 means the same as 1.
    pub const fn new(threads: usize) -> Self {
        Self { threads, word: Word::new(0), outside: std::sync::Barrier::new(threads) }
    }

    /// Waits until all have arrived.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let Some(runtime) = rt::current() else {
            return BarrierWaitResult { is_leader: self.outside.wait().is_leader(), is_known: true };
        };
        let place = Location::caller();
        if runtime.is_for_all(self.threads, place) {
            let barrier = self.word.come_to(runtime, place);
            let is_first = runtime.meet_all(barrier, self.threads, ("Barrier::wait", "… Barrier::wait"), place);
            self.word.stamp().check_freed(runtime, place);
            return BarrierWaitResult { is_leader: is_first, is_known: false };
        }
        let threads = self.threads as u64;
        let completes = |word: u64| word % ONE_GENERATION + 1 >= threads;
        let generation = |word: u64| word / ONE_GENERATION;
        let found = self.word.update_at(place, "Barrier::wait", Sync::AcqRel, |word| {
            Step::Write(if completes(word) { (generation(word) + 1) * ONE_GENERATION } else { word + 1 })
        });
        let is_leader = completes(found);
        if let Some(barrier) = self.word.object() {
            runtime.note_arrival(barrier, self.threads);
            let gate = runtime.part(barrier, generation(found), place);
            if is_leader {
                runtime.open_gate(gate, "… Barrier::wait", place);
            } else {
                runtime.pass_gate(gate, "Barrier::wait", place);
                self.word.stamp().check_freed(runtime, place);
            }
        }
        BarrierWaitResult { is_leader, is_known: true }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
