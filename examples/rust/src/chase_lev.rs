//! The work-stealing deque of Chase and Lev, of fixed size.
//!
//! The owner pushes and takes at `bottom`; thieves take at `top`. When the owner lowers `bottom` and then reads `top`,
//! and a thief reads `top` and then `bottom`, a fence must keep the owner's two steps apart: without it both see the last
//! element as theirs.

use std::array;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicIsize, AtomicUsize, fence};

/// The deque, with room for N elements that are there at the same time. `FENCED`: with the owner's fence.
pub struct ChaseLev<const N: usize, const FENCED: bool> {
    slots: [AtomicUsize; N],
    top: AtomicIsize,
    bottom: AtomicIsize,
}

impl<const N: usize, const FENCED: bool> Default for ChaseLev<N, FENCED> {
    fn default() -> Self {
        Self { slots: array::from_fn(|_| AtomicUsize::new(0)), top: AtomicIsize::new(0), bottom: AtomicIsize::new(0) }
    }
}

impl<const N: usize, const FENCED: bool> ChaseLev<N, FENCED> {
    fn slot(&self, index: isize) -> &AtomicUsize {
        &self.slots[index.unsigned_abs() % N]
    }

    /// Adds an element at the bottom. For the owner only.
    pub fn push(&self, value: usize) {
        let bottom = self.bottom.load(Relaxed);
        assert!(bottom - self.top.load(Acquire) < N as isize, "the deque is full");
        self.slot(bottom).store(value, Relaxed);
        self.bottom.store(bottom + 1, Release);
    }

    /// Takes the element at the bottom. For the owner only.
    pub fn take(&self) -> Option<usize> {
        let bottom = self.bottom.load(Relaxed) - 1;
        self.bottom.store(bottom, Relaxed); // DELAYED
        if FENCED {
            fence(SeqCst);
        }
        let top = self.top.load(Relaxed); // WEAK: thieves may still see the old bottom
        if top > bottom {
            self.bottom.store(bottom + 1, Relaxed);
            return None;
        }
        let value = self.slot(bottom).load(Relaxed);
        if top < bottom {
            return Some(value);
        }
        let won = self.top.compare_exchange(top, top + 1, SeqCst, Relaxed).is_ok();
        self.bottom.store(bottom + 1, Relaxed);
        won.then_some(value)
    }

    /// Takes the element at the top, unless another thread is faster.
    pub fn steal(&self) -> Option<usize> {
        let top = self.top.load(Acquire);
        fence(SeqCst);
        if top >= self.bottom.load(Acquire) {
            return None;
        }
        let value = self.slot(top).load(Relaxed);
        self.top.compare_exchange(top, top + 1, SeqCst, Relaxed).ok().map(|_| value)
    }
}

#[cfg(test)]
mod tests {
    use super::ChaseLev;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn owner_and_thief<const FENCED: bool>() {
        let deque = Arc::new(ChaseLev::<2, FENCED>::default());
        deque.push(10);
        deque.push(20);
        let thief = {
            let deque = Arc::clone(&deque);
            thread::spawn(move || [deque.steal(), deque.steal()])
        };
        let mut taken: Vec<usize> = [deque.take(), deque.take()].into_iter().flatten().collect();
        taken.extend(thief.join().expect("invariant: the thief does not panic").into_iter().flatten());
        taken.extend(deque.take());
        taken.sort_unstable();
        assert_eq!(taken, [10, 20], "an element is lost or was taken twice");
    }

    #[test]
    fn every_element_is_taken_once() {
        proves(Model::Tso, owner_and_thief::<true>);
        proves(Model::Pso, owner_and_thief::<true>);
    }

    #[test]
    fn an_element_is_taken_twice_without_the_fence_under_tso() {
        finds(Model::Tso, file!(), include_str!("chase_lev.rs"), owner_and_thief::<false>);
    }
}
