//! Lamport's bakery: mutual exclusion of any number of threads.
//!
//! A thread takes a number larger than all it sees and waits for those with a smaller one. It needs a fence after it
//! says that it is choosing, and another after it has chosen; the second is the one that is left out here. Then a
//! thread can enter while its number is still in its buffer, and a second one draws the same number and, with the
//! smaller name, goes first.

use std::array;
use weakspot::hint::spin_loop;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicUsize, fence};

/// A lock for the threads 0 to N-1.
pub struct Bakery<const N: usize, const FENCED: bool> {
    choosing: [AtomicBool; N],
    /// 0: not interested.
    number: [AtomicUsize; N],
}

impl<const N: usize, const FENCED: bool> Default for Bakery<N, FENCED> {
    fn default() -> Self {
        Self { choosing: array::from_fn(|_| AtomicBool::new(false)), number: array::from_fn(|_| AtomicUsize::new(0)) }
    }
}

impl<const N: usize, const FENCED: bool> Bakery<N, FENCED> {
    /// Takes a number and waits for its turn.
    pub fn lock(&self, me: usize) {
        let mine = self.draw(me);
        if FENCED {
            fence(SeqCst);
        }
        // WEAK: the number may still be in the buffer
        for other in (0..N).filter(|&other| other != me) {
            while self.choosing[other].load(Acquire) {
                spin_loop();
            }
            while self.goes_first(other, me, mine) {
                spin_loop();
            }
        }
    }

    fn draw(&self, me: usize) -> usize {
        self.choosing[me].store(true, Relaxed);
        fence(SeqCst);
        let others = (0..N).filter(|&other| other != me);
        let mine = 1 + others.map(|other| self.number[other].load(Acquire)).max().unwrap_or(0);
        self.number[me].store(mine, Relaxed); // DELAYED
        self.choosing[me].store(false, Release);
        mine
    }

    fn goes_first(&self, other: usize, me: usize, mine: usize) -> bool {
        let number = self.number[other].load(Acquire);
        number != 0 && (number, other) < (mine, me)
    }

    /// Leaves.
    pub fn unlock(&self, me: usize) {
        self.number[me].store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::Bakery;
    use crate::harness::{Model, finds, lost_update, proves};

    fn two_increments<const FENCED: bool>() {
        lost_update(Bakery::<2, FENCED>::default(), Bakery::lock, Bakery::unlock);
    }

    #[test]
    fn fenced_bakery_excludes() {
        proves(Model::Tso, two_increments::<true>);
        proves(Model::Pso, two_increments::<true>);
    }

    #[test]
    fn bakery_without_its_second_fence_fails_under_tso() {
        finds(Model::Tso, file!(), include_str!("bakery.rs"), two_increments::<false>);
    }
}
