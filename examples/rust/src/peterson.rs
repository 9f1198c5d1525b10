//! Peterson's algorithm: mutual exclusion of two threads, shorter than Dekker's.
//!
//! A thread announces itself, gives the turn away and waits while the other one is there and has the turn. Both stores
//! must arrive before the loads, and in this order: `SeqCst` says so. With release stores and acquire loads both threads
//! can find nobody there.

use std::array;
use weakspot::hint::spin_loop;
use weakspot::sync::atomic::Ordering::{self, Acquire, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicUsize};

/// A lock for the threads 0 and 1. `SEQ_CST`: with the right orderings in `lock`.
pub struct Peterson<const SEQ_CST: bool> {
    wants: [AtomicBool; 2],
    turn: AtomicUsize,
}

impl<const SEQ_CST: bool> Default for Peterson<SEQ_CST> {
    fn default() -> Self {
        Self { wants: array::from_fn(|_| AtomicBool::new(false)), turn: AtomicUsize::new(0) }
    }
}

impl<const SEQ_CST: bool> Peterson<SEQ_CST> {
    const STORE: Ordering = if SEQ_CST { SeqCst } else { Release };
    const LOAD: Ordering = if SEQ_CST { SeqCst } else { Acquire };

    /// Waits until the other thread is out or has given the turn away, and enters.
    pub fn lock(&self, me: usize) {
        let other = 1 - me;
        self.wants[me].store(true, Self::STORE); // DELAYED
        self.turn.store(other, Self::STORE);
        // WEAK: neither store need have arrived
        while self.wants[other].load(Self::LOAD) && self.turn.load(Self::LOAD) == other {
            spin_loop();
        }
    }

    /// Leaves.
    pub fn unlock(&self, me: usize) {
        self.wants[me].store(false, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::Peterson;
    use crate::harness::{Model, finds, lost_update, proves};

    fn two_increments<const SEQ_CST: bool>() {
        lost_update(Peterson::<SEQ_CST>::default(), Peterson::lock, Peterson::unlock);
    }

    #[test]
    fn peterson_excludes() {
        proves(Model::Tso, two_increments::<true>);
        proves(Model::Pso, two_increments::<true>);
    }

    #[test]
    fn peterson_with_release_and_acquire_fails_under_tso() {
        finds(Model::Tso, file!(), include_str!("peterson.rs"), two_increments::<false>);
    }
}
