//! Vyukov's queue for many producers and one consumer.
//!
//! A producer takes its place with one `swap` and then links the node behind its predecessor. Both must come after the
//! stores that fill the node.

use crate::pool::{NIL, Pool};
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

/// The queue, with room for N values, the stub included. `RELEASE`: with the right orderings in `push`.
pub struct MpscQueue<const N: usize, const RELEASE: bool> {
    pool: Pool<N>,
    /// The newest node.
    newest: AtomicUsize,
    /// The node before the oldest value. Belongs to the consumer.
    stub: AtomicUsize,
}

impl<const N: usize, const RELEASE: bool> Default for MpscQueue<N, RELEASE> {
    fn default() -> Self {
        Self { pool: Pool::default(), newest: AtomicUsize::new(0), stub: AtomicUsize::new(0) }
    }
}

impl<const N: usize, const RELEASE: bool> MpscQueue<N, RELEASE> {
    const SWAP: Ordering = if RELEASE { AcqRel } else { Relaxed };
    const LINK: Ordering = if RELEASE { Release } else { Relaxed };

    /// Appends a value in the given unused node (not node 0, the first stub).
    pub fn push(&self, node: usize, value: usize) {
        self.pool.fill(node, value);
        let before = self.newest.swap(node, Self::SWAP);
        self.pool.node(before).next.store(node, Self::LINK); // WEAK: the link arrives before the value
    }

    /// Takes the oldest value whose node is linked. For the consumer only.
    pub fn pop(&self) -> Option<usize> {
        let next = self.pool.node(self.stub.load(Relaxed)).next.load(Acquire);
        if next == NIL {
            return None;
        }
        self.stub.store(next, Relaxed);
        Some(self.pool.node(next).value.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::MpscQueue;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn two_producers<const RELEASE: bool>() {
        let queue = Arc::new(MpscQueue::<3, RELEASE>::default());
        let producers = [1, 2].map(|node| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(node, 10 * node))
        });
        let mut taken: Vec<usize> = queue.pop().into_iter().collect();
        for producer in producers {
            producer.join().expect("invariant: the producers do not panic");
        }
        taken.extend(std::iter::from_fn(|| queue.pop()));
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
        finds(Model::Pso, file!(), include_str!("mpsc_queue.rs"), two_producers::<false>);
    }
}
