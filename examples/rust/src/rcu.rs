//! A pointer that is read without locks and replaced by a writer who waits for the readers of the old value.
//!
//! A reader says that it reads, then loads the pointer; the writer swaps the pointer, then looks who reads. Between the
//! two steps both need a fence, as in Dekker's algorithm. Without the reader's the writer sees nobody and frees what the
//! reader is about to use.

use crate::pool::{GARBAGE, Pool};
use std::array;
use weakspot::hint::spin_loop;
use weakspot::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicUsize, fence};

/// A value for N readers and one writer. `FENCED`: with the reader's fence.
pub struct Rcu<const N: usize, const FENCED: bool> {
    /// Two versions are enough for one writer that waits.
    versions: Pool<2>,
    current: AtomicUsize,
    reading: [AtomicBool; N],
}

impl<const N: usize, const FENCED: bool> Rcu<N, FENCED> {
    /// With its first value.
    pub fn new(value: usize) -> Self {
        let rcu = Self {
            versions: Pool::default(),
            current: AtomicUsize::new(0),
            reading: array::from_fn(|_| AtomicBool::new(false)),
        };
        rcu.versions.fill(0, value);
        rcu
    }

    /// Reads the value, as the given reader.
    pub fn read(&self, reader: usize) -> usize {
        self.reading[reader].store(true, Relaxed); // DELAYED
        if FENCED {
            fence(SeqCst);
        }
        let version = self.current.load(Acquire); // WEAK: the writer may not know of the reader yet
        let value = self.versions.node(version).value.load(Relaxed);
        self.reading[reader].store(false, Release);
        value
    }

    /// Replaces the value and waits until the old one can be freed. For the writer only.
    pub fn replace(&self, value: usize) {
        let fresh = 1 - self.current.load(Relaxed);
        self.versions.fill(fresh, value);
        let old = self.current.swap(fresh, AcqRel);
        fence(SeqCst);
        for reader in &self.reading {
            while reader.load(Acquire) {
                spin_loop();
            }
        }
        self.versions.fill(old, GARBAGE);
    }
}

#[cfg(test)]
mod tests {
    use super::Rcu;
    use crate::harness::{Model, finds, proves};
    use crate::pool::GARBAGE;
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn read_and_replace<const FENCED: bool>() {
        let rcu = Arc::new(Rcu::<1, FENCED>::new(10));
        let reader = {
            let rcu = Arc::clone(&rcu);
            thread::spawn(move || rcu.read(0))
        };
        rcu.replace(20);
        let value = reader.join().expect("invariant: the reader does not panic");
        assert_ne!(value, GARBAGE, "used after it was freed");
    }

    #[test]
    fn readers_never_use_a_freed_version() {
        proves(Model::Tso, read_and_replace::<true>);
        proves(Model::Pso, read_and_replace::<true>);
    }

    #[test]
    fn reader_without_its_fence_fails_under_tso() {
        finds(Model::Tso, file!(), include_str!("rcu.rs"), read_and_replace::<false>);
    }
}
