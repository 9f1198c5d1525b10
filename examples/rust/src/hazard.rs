//! Hazard pointers, with one reader and one place where readers announce themselves.
//!
//! A reader announces the node it is about to use and looks again whether the node is still the current one. Between
//! the two it needs a fence: otherwise both looks happen before the announcement arrives.

use crate::pool::{GARBAGE, NIL, Pool};
use weakspot::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicUsize, fence};

/// A value that one thread reads and another one replaces. `FENCED`: with the reader's fence.
pub struct Hazard<const N: usize, const FENCED: bool> {
    nodes: Pool<N>,
    current: AtomicUsize,
    /// The node the reader uses.
    announced: AtomicUsize,
}

impl<const N: usize, const FENCED: bool> Hazard<N, FENCED> {
    /// With its first value, in node 0.
    pub fn new(value: usize) -> Self {
        let hazard = Self { nodes: Pool::default(), current: AtomicUsize::new(0), announced: AtomicUsize::new(NIL) };
        hazard.nodes.fill(0, value);
        hazard
    }

    /// Reads the value. For the reader only.
    pub fn read(&self) -> usize {
        let node = self.protect();
        let value = self.nodes.node(node).value.load(Relaxed);
        self.announced.store(NIL, Release);
        value
    }

    fn protect(&self) -> usize {
        let mut node = self.current.load(Acquire);
        loop {
            self.announced.store(node, Relaxed); // DELAYED
            if FENCED {
                fence(SeqCst);
            }
            let again = self.current.load(Acquire); // WEAK: the announcement may still be in the buffer
            if again == node {
                return node;
            }
            node = again;
        }
    }

    /// Puts a value into an unused node and makes it the current one. Frees the old node, if nobody uses it, and says
    /// whether it could. For the writer only.
    pub fn replace(&self, fresh: usize, value: usize) -> bool {
        self.nodes.fill(fresh, value);
        let old = self.current.swap(fresh, AcqRel);
        fence(SeqCst);
        let free = self.announced.load(Acquire) != old;
        if free {
            self.nodes.fill(old, GARBAGE);
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::Hazard;
    use crate::harness::{Model, finds, proves};
    use crate::pool::GARBAGE;
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn read_and_replace<const FENCED: bool>() {
        let hazard = Arc::new(Hazard::<3, FENCED>::new(10));
        let reader = {
            let hazard = Arc::clone(&hazard);
            thread::spawn(move || hazard.read())
        };
        hazard.replace(1, 20);
        hazard.replace(2, 30);
        let value = reader.join().expect("invariant: the reader does not panic");
        assert_ne!(value, GARBAGE, "used after it was freed");
    }

    #[test]
    fn an_announced_node_is_not_freed() {
        proves(Model::Tso, read_and_replace::<true>);
        proves(Model::Pso, read_and_replace::<true>);
    }

    #[test]
    fn reader_without_its_fence_fails_under_tso() {
        finds(Model::Tso, file!(), include_str!("hazard.rs"), read_and_replace::<false>);
    }
}
