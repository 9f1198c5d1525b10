//! The two-lock queue of Michael and Scott: one mutex for those who append, one for those who take.
//!
//! When the queue is empty both sides work on the same node, under different locks, so the link is published like in a
//! queue without locks.

use crate::pool::{NIL, Pool};
use std::sync::PoisonError;
use weakspot::sync::Mutex;
use weakspot::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// The queue, with room for N values, the first dummy included. `RELEASE`: with the right ordering in `enqueue`.
pub struct TwoLockQueue<const N: usize, const RELEASE: bool> {
    pool: Pool<N>,
    head: Mutex<usize>,
    tail: Mutex<usize>,
}

impl<const N: usize, const RELEASE: bool> Default for TwoLockQueue<N, RELEASE> {
    fn default() -> Self {
        Self { pool: Pool::default(), head: Mutex::new(0), tail: Mutex::new(0) }
    }
}

impl<const N: usize, const RELEASE: bool> TwoLockQueue<N, RELEASE> {
    const LINK: Ordering = if RELEASE { Release } else { Relaxed };

    /// Appends a value in the given unused node (not node 0, the first dummy).
    pub fn enqueue(&self, index: usize, value: usize) {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        self.pool.fill(index, value);
        self.pool.node(*tail).next.store(index, Self::LINK); // WEAK: the other lock does not wait for the value
        *tail = index;
    }

    /// Takes the oldest value.
    pub fn dequeue(&self) -> Option<usize> {
        let mut head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let next = self.pool.node(*head).next.load(Acquire);
        if next == NIL {
            return None;
        }
        *head = next;
        Some(self.pool.node(next).value.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::TwoLockQueue;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn one_of_each<const RELEASE: bool>() {
        let queue = Arc::new(TwoLockQueue::<3, RELEASE>::default());
        let producers = [1, 2].map(|node| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.enqueue(node, 10 * node))
        });
        let mut taken: Vec<usize> = queue.dequeue().into_iter().collect();
        for producer in producers {
            producer.join().expect("invariant: the producers do not panic");
        }
        taken.extend(std::iter::from_fn(|| queue.dequeue()));
        taken.sort_unstable();
        assert_eq!(taken, [10, 20], "a node was read before it was written");
    }

    #[test]
    fn queue_delivers_each_value_once() {
        proves(Model::Tso, one_of_each::<true>);
        proves(Model::Pso, one_of_each::<true>);
    }

    #[test]
    fn queue_that_links_relaxed_fails_under_pso() {
        proves(Model::Tso, one_of_each::<false>);
        finds(Model::Pso, file!(), include_str!("two_lock_queue.rs"), one_of_each::<false>);
    }
}
