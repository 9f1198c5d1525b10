//! The lazy list: a sorted set whose nodes have locks for those who change it, while `contains` takes none.
//!
//! `remove` first marks a node and then unlinks it. `contains` walks through nodes that others are just adding, so the
//! link to a new node must not overtake the stores that fill it.

use crate::pool::{NIL, Pool};
use std::array;
use std::sync::PoisonError;
use weakspot::sync::atomic::AtomicBool;
use weakspot::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use weakspot::sync::{Mutex, MutexGuard};

/// A set with room for N nodes; node 0 stands before all keys. `RELEASE`: with the right ordering in `insert`.
pub struct LazyList<const N: usize, const RELEASE: bool> {
    pool: Pool<N>,
    removed: [AtomicBool; N],
    locks: [Mutex<()>; N],
}

impl<const N: usize, const RELEASE: bool> Default for LazyList<N, RELEASE> {
    fn default() -> Self {
        Self {
            pool: Pool::default(),
            removed: array::from_fn(|_| AtomicBool::new(false)),
            locks: array::from_fn(|_| Mutex::new(())),
        }
    }
}

impl<const N: usize, const RELEASE: bool> LazyList<N, RELEASE> {
    const LINK: Ordering = if RELEASE { Release } else { Relaxed };

    /// The last node with a smaller key, and the one after it.
    fn find(&self, key: usize) -> (usize, usize) {
        let mut before = 0;
        loop {
            let after = self.pool.node(before).next.load(Acquire);
            if after == NIL || self.key(after) >= key {
                return (before, after);
            }
            before = after;
        }
    }

    fn key(&self, node: usize) -> usize {
        self.pool.node(node).value.load(Relaxed)
    }

    fn lock(&self, node: usize) -> Option<MutexGuard<'_, ()>> {
        (node != NIL).then(|| self.locks[node].lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_removed(&self, node: usize) -> bool {
        node != NIL && self.removed[node].load(Acquire)
    }

    /// Are the two still neighbours and both in the list? Asked with both locks held.
    fn still_neighbours(&self, before: usize, after: usize) -> bool {
        !self.is_removed(before) && !self.is_removed(after) && self.pool.node(before).next.load(Relaxed) == after
    }

    /// Adds a key in the given unused node, unless it is there.
    pub fn insert(&self, index: usize, key: usize) -> bool {
        loop {
            let (before, after) = self.find(key);
            let (_one, _other) = (self.lock(before), self.lock(after));
            if !self.still_neighbours(before, after) {
                continue;
            }
            if after != NIL && self.key(after) == key {
                return false;
            }
            self.pool.fill(index, key).next.store(after, Relaxed);
            self.pool.node(before).next.store(index, Self::LINK); // WEAK: arrives before what is in the node
            return true;
        }
    }

    /// Takes a key out, if it is there.
    pub fn remove(&self, key: usize) -> bool {
        loop {
            let (before, after) = self.find(key);
            let (_one, _other) = (self.lock(before), self.lock(after));
            if !self.still_neighbours(before, after) {
                continue;
            }
            if after == NIL || self.key(after) != key {
                return false;
            }
            self.removed[after].store(true, Release);
            let rest = self.pool.node(after).next.load(Relaxed);
            self.pool.node(before).next.store(rest, Release);
            return true;
        }
    }

    /// Is a key there? Takes no lock.
    pub fn contains(&self, key: usize) -> bool {
        let (_, node) = self.find(key);
        node != NIL && self.key(node) == key && !self.is_removed(node)
    }
}

#[cfg(test)]
mod tests {
    use super::LazyList;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn look_past_an_insertion<const RELEASE: bool>() {
        let list = Arc::new(LazyList::<3, RELEASE>::default());
        assert!(list.insert(1, 20));
        let writer = {
            let list = Arc::clone(&list);
            thread::spawn(move || list.insert(2, 10))
        };
        assert!(list.contains(20), "a key is missing that was never removed");
        assert!(writer.join().expect("invariant: the writer does not panic"));
    }

    fn insert_and_remove<const RELEASE: bool>() {
        let list = Arc::new(LazyList::<3, RELEASE>::default());
        assert!(list.insert(1, 10));
        let remover = {
            let list = Arc::clone(&list);
            thread::spawn(move || list.remove(10))
        };
        assert!(list.insert(2, 20));
        assert!(remover.join().expect("invariant: the remover does not panic"));
        assert!(!list.contains(10) && list.contains(20));
    }

    #[test]
    fn list_is_a_set() {
        for model in [Model::Tso, Model::Pso] {
            proves(model, look_past_an_insertion::<true>);
            proves(model, insert_and_remove::<true>);
        }
    }

    #[test]
    fn list_that_links_relaxed_fails_under_pso() {
        proves(Model::Tso, look_past_an_insertion::<false>);
        finds(Model::Pso, file!(), include_str!("lazy_list.rs"), look_past_an_insertion::<false>);
    }
}
