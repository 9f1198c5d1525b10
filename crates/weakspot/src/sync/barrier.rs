//! `Barrier`: threads that wait for each other.
//!
//! One word counts the generation in its upper half and those who have arrived in its lower half. The others wait at a gate,
//! one for each generation: if they looked at the word, it would matter who has arrived for the next round meanwhile.

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
#[derive(Debug)]
pub struct BarrierWaitResult {
    is_leader: bool,
}

impl BarrierWaitResult {
    /// Was this the thread that arrived last?
    pub fn is_leader(&self) -> bool {
        self.is_leader
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
        if !rt::in_model() {
            return BarrierWaitResult { is_leader: self.outside.wait().is_leader() };
        }
        let threads = self.threads as u64;
        let completes = |word: u64| word % ONE_GENERATION + 1 >= threads;
        let generation = |word: u64| word / ONE_GENERATION;
        let found = self.word.update("Barrier::wait", Sync::AcqRel, |word| {
            Step::Write(if completes(word) { (generation(word) + 1) * ONE_GENERATION } else { word + 1 })
        });
        let is_leader = completes(found);
        if let (Some(runtime), Some(object)) = (rt::current(), self.word.object()) {
            let place = Location::caller();
            let gate = runtime.gate(object, generation(found), place);
            if is_leader {
                runtime.open_gate(gate, "Barrier::wait", place);
            } else {
                runtime.pass_gate(gate, "Barrier::wait", place);
                self.word.stamp().check_freed(runtime, place);
            }
        }
        BarrierWaitResult { is_leader }
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
