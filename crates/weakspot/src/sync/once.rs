//! `Once`: something that is done by whoever comes first, while the others wait.
//!
//! Inside a model the state is one word that blocks; outside it is std's `Once`. [`Once::run`] is also what
//! [`OnceLock`](super::OnceLock) is built on. What is complete stays so: a thread that has seen it once, or that comes after it
//! in every order, does not look, and what it does with the value between two other events is not torn apart by them. Such a look
//! would be a plain load, and whether something is complete is asked by one.
//!
//! | std finds | and does | is it a fence? |
//! |---|---|---|
//! | complete, or poisoned | nothing more: an acquire load | no |
//! | incomplete | a compare-and-swap; an exchange in the end | yes, both |
//! | running | a compare-and-swap or not (somebody else has said that threads wait), a futex or a queue | most often |
//!
//! So whoever has a store that may be late looks first ([`Word::look_first`]), and changes the word, which is a fence, only if it
//! was not complete. One that has waited might have come late as well and found it complete at once, with the same stores in
//! memory, so whether waiting is a fence makes no difference.

use crate::rt::{self, Place, Step, Sync, Word};
use std::fmt;
use std::panic::Location;

const INCOMPLETE: u64 = 0;
const RUNNING: u64 = 1;
const COMPLETE: u64 = 2;
const POISONED: u64 = 3;

/// Runs an initialisation once. Mirrors [`std::sync::Once`].
pub struct Once {
    word: Word,
    outside: std::sync::Once,
}

/// What [`Once::call_once_force`] tells its closure.
#[derive(Debug)]
pub struct OnceState {
    poisoned: bool,
}

impl OnceState {
    /// Did an earlier closure panic?
    pub fn is_poisoned(&self) -> bool {
        self.poisoned
    }
}

/// What a panic of the closure leaves behind.
#[derive(Debug, Clone, Copy)]
pub(super) enum AfterPanic {
    /// Later callers panic, too.
    Poisoned,
    /// The next caller tries again.
    Incomplete,
}

impl Once {
    /// Nothing has run yet.
    pub const fn new() -> Self {
        Self { word: Word::new(INCOMPLETE), outside: std::sync::Once::new() }
    }

    /// Runs the closure unless one has run already; returns when one has.
    ///
    /// # Panics
    /// If an earlier closure panicked.
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if self.outside.is_completed() || !rt::in_model() {
            self.outside.call_once(f);
            return;
        }
        let done = self.run("Once::call_once", false, AfterPanic::Poisoned, |_| f());
        assert!(done.is_ok(), "Once instance has previously been poisoned");
    }

    /// Like [`Once::call_once`], but runs the closure even if an earlier one panicked.
    #[track_caller]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        if self.outside.is_completed() || !rt::in_model() {
            self.outside.call_once_force(|state| f(&OnceState { poisoned: state.is_poisoned() }));
            return;
        }
        let done = self.run("Once::call_once_force", true, AfterPanic::Poisoned, f);
        done.expect("invariant: poison is ignored");
    }

    /// Has a closure run to its end?
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        self.outside.is_completed() || (rt::in_model() && self.is_completed_inside())
    }

    #[track_caller]
    fn is_completed_inside(&self) -> bool {
        self.word.is_known_as(COMPLETE) || self.note(self.word.look("Once::is_completed", Sync::Acquire)) == COMPLETE
    }

    /// The current thread has seen this state.
    fn note(&self, state: u64) -> u64 {
        if state == COMPLETE {
            self.word.learn();
        }
        state
    }

    /// Waits until a closure has run to its end.
    ///
    /// # Panics
    /// If the closure panicked.
    #[track_caller]
    pub fn wait(&self) {
        if self.outside.is_completed() || !rt::in_model() {
            self.outside.wait();
            return;
        }
        let state = self.await_state(|state| state == COMPLETE || state == POISONED);
        assert!(state == COMPLETE, "Once instance has previously been poisoned");
    }

    /// Waits until a closure has run to its end, whatever panicked before.
    #[track_caller]
    pub fn wait_force(&self) {
        if self.outside.is_completed() || !rt::in_model() {
            self.outside.wait_force();
            return;
        }
        self.await_state(|state| state == COMPLETE);
    }

    #[track_caller]
    fn await_state(&self, over: impl Fn(u64) -> bool) -> u64 {
        if self.word.is_known_as(COMPLETE) {
            return COMPLETE;
        }
        let what = "Once::wait";
        if let Some(state) = self.word.look_first(what, Sync::Acquire).filter(|&state| over(state)) {
            return self.note(state);
        }
        let step = |state| if over(state) { Step::Keep } else { Step::Block };
        self.note(self.word.update(what, Sync::Acquire, step))
    }

    /// Inside a model: runs the closure or waits for the one who does. An error if it is poisoned and that matters.
    #[track_caller]
    pub(super) fn run(
        &self,
        what: &'static str,
        force: bool,
        after_panic: AfterPanic,
        f: impl FnOnce(&OnceState),
    ) -> Result<(), ()> {
        if self.word.is_known_as(COMPLETE) {
            return Ok(());
        }
        match self.word.look_first(what, Sync::Acquire).map(|state| self.note(state)) {
            Some(COMPLETE) => return Ok(()),
            Some(POISONED) if !force => return Err(()),
            _ => {}
        }
        let found = self.word.update(what, Sync::AcqRel, |state| match state {
            RUNNING => Step::Block,
            INCOMPLETE => Step::Write(RUNNING),
            POISONED if force => Step::Write(RUNNING),
            _ => Step::Keep,
        });
        match self.note(found) {
            COMPLETE => return Ok(()),
            POISONED if !force => return Err(()),
            _ => {}
        }
        let mut finish = Finish { word: &self.word, what, state: after_panic.state(), place: Location::caller() };
        f(&OnceState { poisoned: found == POISONED });
        finish.state = COMPLETE;
        drop(finish);
        self.word.learn();
        Ok(())
    }
}

impl AfterPanic {
    fn state(self) -> u64 {
        match self {
            Self::Poisoned => POISONED,
            Self::Incomplete => INCOMPLETE,
        }
    }
}

/// Leaves the running state, by the normal way or by a panic.
struct Finish<'a> {
    word: &'a Word,
    what: &'static str,
    state: u64,
    place: Place,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        let state = self.state;
        self.word.update_at(self.place, self.what, Sync::Release, |_| Step::Write(state));
    }
}

impl Default for Once {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").finish_non_exhaustive()
    }
}
