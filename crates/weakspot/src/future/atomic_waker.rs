//! A waker that one task leaves for others to take.

use crate::rt::{self, Step, Sync, Word};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

const EMPTY: u64 = 0;
const REGISTERED: u64 = 1;

/// Holds the waker of a task. Registering and taking are atomic.
pub struct AtomicWaker {
    /// Orders the operations inside a model.
    word: Word,
    /// Never contended inside a model: what follows an event happens in the order of the events.
    waker: Mutex<Option<Waker>>,
}

impl AtomicWaker {
    /// Without a waker.
    pub const fn new() -> Self {
        Self { word: Word::new(EMPTY), waker: Mutex::new(None) }
    }

    /// Leaves a waker, in place of the one that was there.
    #[track_caller]
    pub fn register(&self, waker: Waker) {
        if rt::in_model() {
            self.word.update("AtomicWaker::register", Sync::AcqRel, |_| Step::Write(REGISTERED));
        }
        let old = self.exchange(Some(waker));
        drop(old);
    }

    /// Leaves a clone of a waker.
    #[track_caller]
    pub fn register_by_ref(&self, waker: &Waker) {
        self.register(waker.clone());
    }

    /// Takes the waker and calls it.
    #[track_caller]
    pub fn wake(&self) {
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    /// Takes the waker.
    #[track_caller]
    pub fn take_waker(&self) -> Option<Waker> {
        if rt::in_model() {
            let found = self.word.update("AtomicWaker::take_waker", Sync::AcqRel, |state| match state {
                EMPTY => Step::Keep,
                _ => Step::Write(EMPTY),
            });
            if found == EMPTY {
                return None;
            }
        }
        self.exchange(None)
    }

    fn exchange(&self, waker: Option<Waker>) -> Option<Waker> {
        std::mem::replace(&mut *self.waker.lock().unwrap_or_else(PoisonError::into_inner), waker)
    }
}

impl Default for AtomicWaker {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for AtomicWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicWaker").finish_non_exhaustive()
    }
}
