//! Atomics that may no longer be where they were when a run used them first.
//!
//! An atomic with a token may have got a new home that outlives the run: a vector has grown, or something that was captured
//! was replaced. What it was before the run is kept here, so that it is that again for whoever comes to it later. Nobody
//! sees an atomic being moved, so that is done for all. Of the oldest nothing is known any more, and a model that comes to
//! one of those is told so.

use std::sync::{Mutex, PoisonError};

use super::BORN;

/// Values that are kept: memory stays bounded.
const MOST: usize = 1 << 12;
/// Objects that are likely to be lost: no value is taken for one of them by chance.
const LIKELY: u64 = 1 << 12;

/// Those of models that are over.
static LOST: Mutex<Lost> = Mutex::new(Lost(Vec::new()));

/// The value that a token of a model that is over stands for.
pub(super) fn find(token: u64) -> Option<u64> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner).find(token)
}

/// A model is over.
pub(super) fn publish(lost: &mut Lost) {
    LOST.lock().unwrap_or_else(PoisonError::into_inner).take_over(lost);
}

/// Tokens, and the values that they stand for. The latest come last.
#[derive(Debug, Default)]
pub(super) struct Lost(Vec<(u64, u64)>);

impl Lost {
    #[inline]
    pub(super) fn keep(&mut self, token: u64, value: u64) {
        if self.0.len() == self.0.capacity() {
            self.make_room();
        }
        self.0.push((token, value));
    }

    /// All memory is allocated at once: every run begins with as much in use.
    #[cold]
    fn make_room(&mut self) {
        self.0.drain(..self.0.len() / 2);
        self.0.reserve_exact(MOST - self.0.len());
    }

    /// The value that a token stands for.
    pub(super) fn find(&self, token: u64) -> Option<u64> {
        self.0.iter().rev().find(|&&(kept, _)| kept == token).map(|&(_, value)| value)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes all of another one.
    fn take_over(&mut self, other: &mut Self) {
        for (token, value) in other.0.drain(..) {
            self.keep(token, value);
        }
    }
}

/// Was this a token of a run before the current one, as far as can be seen, and no value?
pub(super) fn is_likely(token: u64, current: u64) -> bool {
    token < current && token & (BORN - 1) < LIKELY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_kept() {
        let mut lost = Lost::default();
        let last = 10 * MOST as u64;
        for token in 0..=last {
            lost.keep(token, token + 1);
        }
        assert_eq!(
            (lost.find(last), lost.find(last - MOST as u64 / 3), lost.find(3)),
            (Some(last + 1), Some(last - MOST as u64 / 3 + 1), None)
        );
        assert!(lost.0.len() <= MOST);
        let mut all = Lost::default();
        all.take_over(&mut lost);
        assert!(lost.is_empty() && all.find(last).is_some());
    }
}
