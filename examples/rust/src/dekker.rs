//! Dekker's algorithm: mutual exclusion of two threads with loads and stores alone.
//!
//! Each thread announces itself and then looks whether the other one has. Without a fence between the two both stores
//! can still wait in their buffers while both loads see nobody.

use std::array;
use weakspot::hint::spin_loop;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicUsize, fence};

/// A lock for the threads 0 and 1.
pub struct Dekker<const FENCED: bool> {
    wants: [AtomicBool; 2],
    turn: AtomicUsize,
}

impl<const FENCED: bool> Default for Dekker<FENCED> {
    fn default() -> Self {
        Self { wants: array::from_fn(|_| AtomicBool::new(false)), turn: AtomicUsize::new(0) }
    }
}

impl<const FENCED: bool> Dekker<FENCED> {
    /// Waits until the other thread is out, and enters.
    pub fn lock(&self, me: usize) {
        let other = 1 - me;
        self.announce(me);
        // WEAK: the announcement may still be in the buffer
        while self.wants[other].load(Acquire) {
            if self.turn.load(Acquire) == other {
                self.wants[me].store(false, Relaxed);
                while self.turn.load(Acquire) == other {
                    spin_loop();
                }
                self.announce(me);
            }
            spin_loop();
        }
    }

    fn announce(&self, me: usize) {
        self.wants[me].store(true, Relaxed); // DELAYED
        if FENCED {
            fence(SeqCst);
        }
    }

    /// Leaves.
    pub fn unlock(&self, me: usize) {
        self.turn.store(1 - me, Release);
        self.wants[me].store(false, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::Dekker;
    use crate::harness::{Model, finds, lost_update, proves};

    fn two_increments<const FENCED: bool>() {
        lost_update(Dekker::<FENCED>::default(), Dekker::lock, Dekker::unlock);
    }

    #[test]
    fn fenced_dekker_excludes() {
        proves(Model::Tso, two_increments::<true>);
        proves(Model::Pso, two_increments::<true>);
    }

    #[test]
    fn dekker_without_its_fence_fails_under_tso() {
        finds(Model::Tso, file!(), include_str!("dekker.rs"), two_increments::<false>);
    }
}
