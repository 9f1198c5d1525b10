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
//! So whoever has a store that may be late looks first ([`Word::look_and_update`]), and changes the word, which is a fence, only if it
//! was not complete. One that has waited might have come late as well and found it complete at once, with the same stores in
//! memory, so whether waiting is a fence makes no difference.
//!
//! What is complete outside is so inside. Ordinary code that would make it complete waits for the end of an execution that
//! has found it incomplete, and the later executions of that model find it so, too: they would not be like the first ones
//! otherwise.

use crate::rt::ordinary::{Holding, How, is_made_here, try_take};
use crate::rt::{self, Place, Runtime, Step, Sync, Word};
use std::fmt;
use std::panic::Location;
use std::sync::PoisonError;

const INCOMPLETE: u64 = 0;
const RUNNING: u64 = 1;
const COMPLETE: u64 = 2;
const POISONED: u64 = 3;

/// Runs an initialisation once. Mirrors [`std::sync::Once`].
pub struct Once {
    word: Word,
    outside: std::sync::Once,
    /// Whoever makes it complete outside of models has this, and so has a run when it comes here.
    gate: std::sync::Mutex<()>,
}

/// Ordinary code makes it complete, until this is dropped.
pub(super) struct Gate<'a> {
    _holding: Holding,
    _gate: std::sync::MutexGuard<'a, ()>,
}

/// Which of the two counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The state word, in a model.
    Inside,
    /// What is of the standard library.
    Outside,
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
        Self { word: Word::new(INCOMPLETE), outside: std::sync::Once::new(), gate: std::sync::Mutex::new(()) }
    }

    /// The side that counts for the caller. `is_complete` says whether it is complete outside. If that must not matter any more
    /// once a run has found it incomplete, it `stays`.
    #[track_caller]
    pub(super) fn side(&self, stays: bool, is_complete: impl Fn() -> bool) -> Side {
        match rt::current() {
            None => Side::Outside,
            Some(runtime) if self.word.stamp().used(runtime).is_some() => Side::Inside,
            Some(runtime) => self.first_side(runtime, stays, &is_complete, Location::caller()),
        }
    }

    #[inline(never)]
    fn first_side(&self, runtime: &Runtime, stays: bool, is_complete: &dyn Fn() -> bool, place: Place) -> Side {
        let counts = || is_complete() && !runtime.stays_incomplete(self.word.stamp());
        if counts() {
            return Side::Outside;
        }
        let gate = self.word.stamp().enter(runtime, || try_take(&self.gate), place);
        // Ordinary code may have been here in between.
        if gate.is_some() && counts() {
            return Side::Outside;
        }
        if stays {
            runtime.keep_incomplete(self.word.stamp());
        }
        self.word.entered_object(runtime, place);
        Side::Inside
    }

    /// Ordinary code is about to make it complete, unless it is: waits for executions that have found it incomplete.
    #[track_caller]
    pub(super) fn gate(&self) -> Gate<'_> {
        let (stamp, place) = (self.word.stamp(), Location::caller());
        stamp.let_models_first();
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        stamp.wait_for_models(place);
        Gate { _holding: Holding::new(stamp, How::Makes, place), _gate: gate }
    }

    #[track_caller]
    fn is_outside(&self) -> bool {
        self.side(true, || self.outside.is_completed()) == Side::Outside
    }

    /// Runs the closure unless one has run already; returns when one has.
    ///
    /// # Panics
    /// If an earlier closure panicked.
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        if self.is_outside() {
            let _gate = if self.outside.is_completed() { None } else { Some(self.gate()) };
            self.outside.call_once(f);
            return;
        }
        let done = self.run("Once::call_once", false, AfterPanic::Poisoned, |_| f());
        assert!(done.is_ok(), "Once instance has previously been poisoned");
    }

    /// Like [`Once::call_once`], but runs the closure even if an earlier one panicked.
    #[track_caller]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        if self.is_outside() {
            let _gate = if self.outside.is_completed() { None } else { Some(self.gate()) };
            self.outside.call_once_force(|state| f(&OnceState { poisoned: state.is_poisoned() }));
            return;
        }
        let done = self.run("Once::call_once_force", true, AfterPanic::Poisoned, f);
        done.expect("invariant: poison is ignored");
    }

    /// Has a closure run to its end?
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        if self.is_made_by_caller() {
            return false;
        }
        if self.is_outside() { self.outside.is_completed() } else { self.is_completed_inside() }
    }

    /// Is this a model that the initialiser has called? It would wait for ever, but whoever only looks does not wait.
    pub(super) fn is_made_by_caller(&self) -> bool {
        rt::in_model() && is_made_here(self.word.stamp())
    }

    #[track_caller]
    pub(super) fn is_completed_inside(&self) -> bool {
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
        if self.is_outside() {
            self.outside.wait();
            return;
        }
        let state = self.await_state(|state| state == COMPLETE || state == POISONED);
        assert!(state == COMPLETE, "Once instance has previously been poisoned");
    }

    /// Waits until a closure has run to its end, whatever panicked before.
    #[track_caller]
    pub fn wait_force(&self) {
        if self.is_outside() {
            self.outside.wait_force();
            return;
        }
        self.wait_inside();
    }

    /// Waits in a model until a closure has run to its end.
    #[track_caller]
    pub(super) fn wait_inside(&self) {
        self.await_state(|state| state == COMPLETE);
    }

    #[track_caller]
    fn await_state(&self, over: impl Fn(u64) -> bool) -> u64 {
        if self.word.is_known_as(COMPLETE) {
            return COMPLETE;
        }
        let step = |state| if over(state) { Step::Keep } else { Step::Block };
        self.note(self.word.look_and_update("Once::wait", (Sync::Acquire, Sync::Acquire), step))
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
        let found = self.word.look_and_update(what, (Sync::AcqRel, Sync::Acquire), |state| match state {
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
