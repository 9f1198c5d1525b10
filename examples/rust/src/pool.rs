//! Nodes with an index instead of an address.

use std::array;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::Relaxed;

/// The index of no node.
pub const NIL: usize = usize::MAX;

/// What a fresh node holds until somebody writes to it.
pub const GARBAGE: usize = 0;

/// A node of a linked structure.
pub struct Node {
    /// What the node carries.
    pub value: AtomicUsize,
    /// The next node.
    pub next: AtomicUsize,
}

/// N nodes, handed out one after the other and never taken back.
pub struct Pool<const N: usize> {
    nodes: [Node; N],
}

impl<const N: usize> Default for Pool<N> {
    fn default() -> Self {
        let fresh = |_| Node { value: AtomicUsize::new(GARBAGE), next: AtomicUsize::new(NIL) };
        Self { nodes: array::from_fn(fresh) }
    }
}

impl<const N: usize> Pool<N> {
    /// A node.
    pub fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    /// Writes the value of a node nobody else knows of yet.
    pub fn fill(&self, index: usize, value: usize) -> &Node {
        let node = self.node(index);
        node.value.store(value, Relaxed); // DELAYED
        node
    }
}
