//! A sequence lock: readers take no lock and try again if a writer was at work.
//!
//! The writer makes the sequence number odd, writes the data and makes the number even again. Both borders need an
//! order among stores: the odd number before the data (a release fence; a release store would order the wrong side) and
//! the data before the even number.

use std::array;
use weakspot::hint::spin_loop;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use weakspot::sync::atomic::{AtomicUsize, fence};

/// Two words that are read together. One writer.
pub struct Seqlock<const FENCED: bool> {
    sequence: AtomicUsize,
    data: [AtomicUsize; 2],
}

impl<const FENCED: bool> Default for Seqlock<FENCED> {
    fn default() -> Self {
        Self { sequence: AtomicUsize::new(0), data: array::from_fn(|_| AtomicUsize::new(0)) }
    }
}

impl<const FENCED: bool> Seqlock<FENCED> {
    /// Writes both words. For the writer only.
    pub fn write(&self, values: [usize; 2]) {
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store(sequence + 1, Relaxed); // DELAYED
        if FENCED {
            fence(Release);
        }
        for (word, value) in self.data.iter().zip(values) {
            word.store(value, Relaxed); // WEAK: arrives before the odd number
        }
        self.sequence.store(sequence + 2, Release);
    }

    /// Reads both words, from one write.
    pub fn read(&self) -> [usize; 2] {
        loop {
            if let Some(values) = self.try_read() {
                return values;
            }
            spin_loop();
        }
    }

    /// Reads both words unless a writer is in the way.
    pub fn try_read(&self) -> Option<[usize; 2]> {
        let before = self.sequence.load(Acquire);
        if before % 2 == 1 {
            return None;
        }
        let values = array::from_fn(|word| self.data[word].load(Relaxed));
        fence(Acquire);
        (self.sequence.load(Relaxed) == before).then_some(values)
    }
}

#[cfg(test)]
mod tests {
    use super::Seqlock;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn one_write<const FENCED: bool>() {
        let lock = Arc::new(Seqlock::<FENCED>::default());
        let writer = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || lock.write([1, 1]))
        };
        let [one, other] = lock.read();
        assert_eq!(one, other, "the words come from different writes");
        writer.join().expect("invariant: the writer does not panic");
    }

    #[test]
    fn readers_never_see_half_a_write() {
        proves(Model::Tso, one_write::<true>);
        proves(Model::Pso, one_write::<true>);
    }

    #[test]
    fn seqlock_without_its_fence_fails_under_pso() {
        proves(Model::Tso, one_write::<false>);
        finds(Model::Pso, file!(), include_str!("seqlock.rs"), one_write::<false>);
    }
}
