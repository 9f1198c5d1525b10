//! The queue of Michael and Scott: a linked list with a dummy node, `head` and `tail` moved by compare-and-swap.
//!
//! A thread that finds `tail` behind helps it forward. The compare-and-swap that links a node must not overtake the
//! stores that fill it.

use crate::pool::{NIL, Pool};
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// The queue, with room for N values, the first dummy included. `RELEASE`: with the right ordering in `enqueue`.
pub struct MichaelScottQueue<const N: usize, const RELEASE: bool> {
    pool: Pool<N>,
    head: AtomicUsize,
    tail: AtomicUsize,
}

impl<const N: usize, const RELEASE: bool> Default for MichaelScottQueue<N, RELEASE> {
    fn default() -> Self {
        Self { pool: Pool::default(), head: AtomicUsize::new(0), tail: AtomicUsize::new(0) }
    }
}

impl<const N: usize, const RELEASE: bool> MichaelScottQueue<N, RELEASE> {
    const LINK: Ordering = if RELEASE { Release } else { Relaxed };

    /// Appends a value in the given unused node (not node 0, the first dummy).
    pub fn enqueue(&self, index: usize, value: usize) {
        self.pool.fill(index, value);
        loop {
            let tail = self.tail.load(Acquire);
            let last = self.pool.node(tail);
            let next = last.next.load(Acquire);
            if next != NIL {
                self.help(tail, next);
                continue;
            }
            // WEAK: the node is visible before what is in it
            if last.next.compare_exchange(NIL, index, Self::LINK, Relaxed).is_ok() {
                self.help(tail, index);
                return;
            }
        }
    }

    /// Takes the oldest value.
    pub fn dequeue(&self) -> Option<usize> {
        loop {
            let head = self.head.load(Acquire);
            let tail = self.tail.load(Acquire);
            let next = self.pool.node(head).next.load(Acquire);
            if next == NIL {
                return None;
            }
            if head == tail {
                self.help(tail, next);
                continue;
            }
            let value = self.pool.node(next).value.load(Relaxed);
            if self.head.compare_exchange(head, next, Release, Relaxed).is_ok() {
                return Some(value);
            }
        }
    }

    /// Moves `tail` forward; it does not matter who does it.
    fn help(&self, from: usize, to: usize) {
        let _ = self.tail.compare_exchange(from, to, Release, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::MichaelScottQueue;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn two_producers<const RELEASE: bool>() {
        let queue = Arc::new(MichaelScottQueue::<3, RELEASE>::default());
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.enqueue(1, 10))
        };
        queue.enqueue(2, 20);
        let mut taken: Vec<usize> = queue.dequeue().into_iter().collect();
        producer.join().expect("invariant: the producer does not panic");
        taken.extend(std::iter::from_fn(|| queue.dequeue()));
        taken.sort_unstable();
        assert_eq!(taken, [10, 20], "a node was read before it was written");
    }

    #[test]
    fn queue_delivers_each_value_once() {
        proves(Model::Tso, two_producers::<true>);
        proves(Model::Pso, two_producers::<true>);
    }

    #[test]
    fn queue_that_links_relaxed_fails_under_pso() {
        proves(Model::Tso, two_producers::<false>);
        finds(Model::Pso, file!(), include_str!("michael_scott_queue.rs"), two_producers::<false>);
    }
}
