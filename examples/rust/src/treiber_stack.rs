//! Treiber's stack: a linked list whose head moves by compare-and-swap.
//!
//! The compare-and-swap that publishes a node must not overtake the stores that fill it.

use crate::pool::{NIL, Pool};
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// The stack, with room for N values. `RELEASE`: with the right ordering in `push`.
pub struct TreiberStack<const N: usize, const RELEASE: bool> {
    pool: Pool<N>,
    head: AtomicUsize,
}

impl<const N: usize, const RELEASE: bool> Default for TreiberStack<N, RELEASE> {
    fn default() -> Self {
        Self { pool: Pool::default(), head: AtomicUsize::new(NIL) }
    }
}

impl<const N: usize, const RELEASE: bool> TreiberStack<N, RELEASE> {
    const PUBLISH: Ordering = if RELEASE { Release } else { Relaxed };

    /// Puts a value on top, in the given unused node.
    pub fn push(&self, index: usize, value: usize) {
        let node = self.pool.fill(index, value);
        let mut head = self.head.load(Relaxed);
        loop {
            node.next.store(head, Relaxed);
            // WEAK: the node is visible before what is in it
            match self.head.compare_exchange_weak(head, index, Self::PUBLISH, Relaxed) {
                Ok(_) => return,
                Err(current) => head = current,
            }
        }
    }

    /// Takes the topmost value.
    pub fn pop(&self) -> Option<usize> {
        let mut head = self.head.load(Acquire);
        while head != NIL {
            let node = self.pool.node(head);
            let next = node.next.load(Relaxed);
            match self.head.compare_exchange_weak(head, next, Acquire, Acquire) {
                Ok(_) => return Some(node.value.load(Relaxed)),
                Err(current) => head = current,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::TreiberStack;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn push_and_pop<const RELEASE: bool>() {
        let stack = Arc::new(TreiberStack::<2, RELEASE>::default());
        stack.push(0, 10);
        let pusher = {
            let stack = Arc::clone(&stack);
            thread::spawn(move || stack.push(1, 20))
        };
        let mut taken: Vec<usize> = stack.pop().into_iter().collect();
        pusher.join().expect("invariant: the pusher does not panic");
        taken.extend(std::iter::from_fn(|| stack.pop()));
        taken.sort_unstable();
        assert_eq!(taken, [10, 20], "a value is lost or was read before it was written");
    }

    #[test]
    fn stack_keeps_every_value() {
        proves(Model::Tso, push_and_pop::<true>);
        proves(Model::Pso, push_and_pop::<true>);
    }

    #[test]
    fn stack_that_publishes_relaxed_fails_under_pso() {
        proves(Model::Tso, push_and_pop::<false>);
        finds(Model::Pso, file!(), include_str!("treiber_stack.rs"), push_and_pop::<false>);
    }
}
