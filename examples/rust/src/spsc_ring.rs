//! A bounded ring for one producer and one consumer, without any atomic read-modify-write.
//!
//! `tail` belongs to the producer and `head` to the consumer; each publishes its own with a release store.

use std::array;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The ring. `RELEASE`: with the right ordering in `push`.
pub struct SpscRing<const N: usize, const RELEASE: bool> {
    slots: [AtomicUsize; N],
    head: AtomicUsize,
    tail: AtomicUsize,
}

impl<const N: usize, const RELEASE: bool> Default for SpscRing<N, RELEASE> {
    fn default() -> Self {
        Self { slots: array::from_fn(|_| AtomicUsize::new(0)), head: AtomicUsize::new(0), tail: AtomicUsize::new(0) }
    }
}

impl<const N: usize, const RELEASE: bool> SpscRing<N, RELEASE> {
    /// Appends a value, or gives it back if the ring is full. For the producer only.
    pub fn push(&self, value: usize) -> Result<(), usize> {
        let tail = self.tail.load(Relaxed);
        if tail - self.head.load(Acquire) == N {
            return Err(value);
        }
        self.slots[tail % N].store(value, Relaxed); // DELAYED
        let order = if RELEASE { Release } else { Relaxed };
        self.tail.store(tail + 1, order); // WEAK: arrives before the value
        Ok(())
    }

    /// Takes the oldest value. For the consumer only.
    pub fn pop(&self) -> Option<usize> {
        let head = self.head.load(Relaxed);
        if head == self.tail.load(Acquire) {
            return None;
        }
        let value = self.slots[head % N].load(Relaxed);
        self.head.store(head + 1, Release);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::SpscRing;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn in_order<const RELEASE: bool>() {
        let ring = Arc::new(SpscRing::<1, RELEASE>::default());
        let producer = {
            let ring = Arc::clone(&ring);
            thread::spawn(move || (1..=2).filter(|&value| ring.push(value).is_ok()).count())
        };
        let mut taken: Vec<usize> = (0..2).filter_map(|_| ring.pop()).collect();
        let pushed = producer.join().expect("invariant: the producer does not panic");
        taken.extend(ring.pop());
        assert_eq!(taken.len(), pushed, "a value is lost");
        assert!(taken.iter().all(|&value| value != 0), "a slot was read before it was written");
        assert!(taken.is_sorted(), "the order is lost");
    }

    #[test]
    fn ring_keeps_the_values_in_order() {
        proves(Model::Tso, in_order::<true>);
        proves(Model::Pso, in_order::<true>);
    }

    #[test]
    fn ring_that_publishes_relaxed_fails_under_pso() {
        proves(Model::Tso, in_order::<false>);
        finds(Model::Pso, file!(), include_str!("spsc_ring.rs"), in_order::<false>);
    }
}
