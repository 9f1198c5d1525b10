//! Harris's list: a sorted set without locks.
//!
//! The link that leaves a node carries a mark when the node is removed, so that one compare-and-swap both checks and
//! changes it. The compare-and-swap that links a new node must not overtake the stores that fill it.

use crate::pool::{NIL, Pool};
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

/// The index of no node, small enough to leave room for the mark.
const END: usize = NIL >> 1;

/// The index of a node and whether the node that holds the link is removed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Link {
    node: usize,
    removed: bool,
}

impl Link {
    fn to(node: usize) -> Self {
        Self { node, removed: false }
    }

    /// As it is in memory: the mark is the lowest bit.
    fn word(self) -> usize {
        (self.node << 1) | usize::from(self.removed)
    }

    fn from_word(word: usize) -> Self {
        Self { node: word >> 1, removed: word & 1 == 1 }
    }
}

/// A set with room for N nodes; node 0 stands before all keys. `RELEASE`: with the right ordering in `insert`.
pub struct HarrisList<const N: usize, const RELEASE: bool> {
    pool: Pool<N>,
}

impl<const N: usize, const RELEASE: bool> Default for HarrisList<N, RELEASE> {
    fn default() -> Self {
        let list = Self { pool: Pool::default() };
        list.next(0).store(Link::to(END).word(), Relaxed);
        list
    }
}

impl<const N: usize, const RELEASE: bool> HarrisList<N, RELEASE> {
    const LINK: Ordering = if RELEASE { Release } else { Relaxed };

    fn next(&self, node: usize) -> &AtomicUsize {
        &self.pool.node(node).next
    }

    fn key(&self, node: usize) -> usize {
        self.pool.node(node).value.load(Relaxed)
    }

    /// The last node with a smaller key, and the one after it. Unlinks removed nodes on the way.
    fn find(&self, key: usize) -> (usize, usize) {
        'again: loop {
            let mut before = 0;
            let mut node = Link::from_word(self.next(before).load(Acquire)).node;
            while node != END {
                let link = Link::from_word(self.next(node).load(Acquire));
                if link.removed {
                    let (old, new) = (Link::to(node).word(), Link::to(link.node).word());
                    if self.next(before).compare_exchange(old, new, AcqRel, Relaxed).is_err() {
                        continue 'again;
                    }
                } else if self.key(node) >= key {
                    break;
                } else {
                    before = node;
                }
                node = link.node;
            }
            return (before, node);
        }
    }

    /// Adds a key in the given unused node, unless it is there.
    pub fn insert(&self, index: usize, key: usize) -> bool {
        let fresh = self.pool.fill(index, key);
        loop {
            let (before, after) = self.find(key);
            if after != END && self.key(after) == key {
                return false;
            }
            let (old, new) = (Link::to(after).word(), Link::to(index).word());
            fresh.next.store(old, Relaxed);
            // WEAK: the node is visible before what is in it
            if self.next(before).compare_exchange(old, new, Self::LINK, Relaxed).is_ok() {
                return true;
            }
        }
    }

    /// Takes a key out, if it is there.
    pub fn remove(&self, key: usize) -> bool {
        loop {
            let (_, node) = self.find(key);
            if node == END || self.key(node) != key {
                return false;
            }
            let link = Link::from_word(self.next(node).load(Acquire));
            let marked = Link { removed: true, ..link }.word();
            if !link.removed && self.next(node).compare_exchange(link.word(), marked, AcqRel, Relaxed).is_ok() {
                let _ = self.find(key);
                return true;
            }
        }
    }

    /// Is a key there? Changes nothing.
    pub fn contains(&self, key: usize) -> bool {
        let mut node = Link::from_word(self.next(0).load(Acquire)).node;
        while node != END && self.key(node) < key {
            node = Link::from_word(self.next(node).load(Acquire)).node;
        }
        node != END && self.key(node) == key && !Link::from_word(self.next(node).load(Acquire)).removed
    }
}

#[cfg(test)]
mod tests {
    use super::HarrisList;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn look_past_an_insertion<const RELEASE: bool>() {
        let list = Arc::new(HarrisList::<3, RELEASE>::default());
        assert!(list.insert(1, 20));
        let writer = {
            let list = Arc::clone(&list);
            thread::spawn(move || list.insert(2, 10))
        };
        assert!(list.contains(20), "a key is missing that was never removed");
        assert!(writer.join().expect("invariant: the writer does not panic"));
    }

    fn insert_behind_a_removed_node<const RELEASE: bool>() {
        let list = Arc::new(HarrisList::<3, RELEASE>::default());
        assert!(list.insert(1, 10));
        let remover = {
            let list = Arc::clone(&list);
            thread::spawn(move || list.remove(10))
        };
        assert!(list.insert(2, 20));
        assert!(remover.join().expect("invariant: the remover does not panic"));
        assert!(!list.contains(10) && list.contains(20), "the new node hangs on a removed one");
    }

    #[test]
    fn list_is_a_set() {
        for model in [Model::Tso, Model::Pso] {
            proves(model, look_past_an_insertion::<true>);
            proves(model, insert_behind_a_removed_node::<true>);
        }
    }

    #[test]
    fn list_that_links_relaxed_fails_under_pso() {
        proves(Model::Tso, look_past_an_insertion::<false>);
        finds(Model::Pso, file!(), include_str!("harris_list.rs"), look_past_an_insertion::<false>);
    }
}
