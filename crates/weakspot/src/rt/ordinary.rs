//! Locks that ordinary code, outside of models, uses as well: statics, and what a closure has captured.
//!
//! Ordinary code excludes itself by a lock of `std`, and threads of a model by their events. Between the two, the lock of `std`
//! decides when a run may come to the lock, and the stamp of the run says that it has:
//!
//! - A run that comes to a lock for the first time takes the lock of `std` for a moment, and leaves its stamp meanwhile.
//!   So it waits for ordinary code that holds the lock.
//! - Ordinary code that has got the lock of `std` looks at the stamp. If that run is going on, it waits for its end,
//!   when everything is as it was before, and keeps the lock of `std`: the next run waits for it in turn.
//!
//! Nothing has to be done when a run is over, so that it does not matter whether the lock is still there. The same holds
//! between two models. A run that waits, and is waited for, makes way and begins again: see [`anew`](super::anew). Whoever
//! waits for something else (a channel, the end of a thread) may wait in vain nevertheless: if that takes too long, it says so.
//!
//! # Readers
//! A run that only reads what an `RwLock` holds shares it with ordinary code that does the same. It takes the lock of `std` for
//! reading then, and readers outside of models wait for its end only if it has come to write. Until then its stamp keeps
//! writers out, and when it comes to write it has to wait for readers like anybody else, but not for a writer who waits for
//! the run. Later runs of the model come to that lock as writers. What the lock holds is put back after the run only if it
//! is not the same anyway.
//!
//! # Whoever has called the model
//! The code that has called a model, and waits for its end, cannot give back what it holds meanwhile. So a run that would have
//! to wait for it fails at once. That code may read where the model only reads.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError, TryLockResult};

use super::anew::{Waited, Whom, is_asked_for};
use super::objects::Stamp;
use super::runtime::Runtime;
use super::turns::{self, Waiter};
use super::{Place, foreign, statics};

/// How ordinary code has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// For itself.
    Alone,
    /// For reading.
    Shared,
    /// It runs the initialiser.
    Makes,
}

/// Something that ordinary code has.
#[derive(Debug, Clone, Copy)]
struct Held {
    address: usize,
    how: How,
    since: Place,
}

thread_local! {
    /// What ordinary code on this OS thread has.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

/// Ordinary code has something, until this is dropped.
#[derive(Debug)]
pub(crate) struct Holding(usize, How);

impl Holding {
    /// It has the lock with this stamp.
    pub(crate) fn new(stamp: &Stamp, how: How, since: Place) -> Self {
        let address = address_of(stamp);
        // Nobody asks when the OS thread ends.
        let _ = HELD.try_with(|held| held.borrow_mut().push(Held { address, how, since }));
        Self(address, how)
    }

    /// From now on it only reads.
    pub(crate) fn downgrade(&mut self) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            let one = held.iter_mut().rev().find(|held| (held.address, held.how) == (self.0, self.1));
            if let Some(held) = one {
                held.how = How::Shared;
            }
        });
        self.1 = How::Shared;
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            let at = held.iter().rposition(|held| (held.address, held.how) == (self.0, self.1));
            at.map(|at| held.remove(at));
        });
    }
}

pub(super) fn address_of(stamp: &Stamp) -> usize {
    std::ptr::from_ref(stamp).addr()
}

/// What ordinary code on this OS thread has of the lock with this stamp.
fn held_here(stamp: &Stamp) -> Option<Held> {
    let address = address_of(stamp);
    HELD.with_borrow(|held| held.iter().rev().find(|held| held.address == address).copied())
}

/// All that ordinary code on this OS thread has.
pub(super) fn all_held() -> Vec<usize> {
    HELD.try_with(|held| held.borrow().iter().map(|held| held.address).collect()).unwrap_or_default()
}

/// Does ordinary code on this OS thread read what the lock with this stamp holds? Then there is no writer outside of models.
pub(crate) fn is_read_here(stamp: &Stamp) -> bool {
    held_here(stamp).is_some_and(|held| held.how == How::Shared)
}

/// Does ordinary code on this OS thread run the initialiser of what has this stamp? Then that stays incomplete until all that the
/// initialiser has called is over.
pub(crate) fn is_made_here(stamp: &Stamp) -> bool {
    held_here(stamp).is_some_and(|held| held.how == How::Makes)
}

/// The guard, if nobody else has it. Whether something is poisoned is known elsewhere.
pub(crate) fn if_free<G>(locked: TryLockResult<G>) -> Option<G> {
    match locked {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// A lock of `std`, as [`Stamp::enter`] needs it.
pub(crate) fn try_take(lock: &Mutex<()>) -> Option<MutexGuard<'_, ()>> {
    if_free(lock.try_lock())
}

impl Stamp {
    /// A run comes to a lock, for the first time or to do more than it has done so far: nobody else has it, and nobody gets it
    /// before the stamp is there, as long as there is the guard that `outside` gives. Nothing if another worker of the
    /// model uses the lock.
    pub(crate) fn enter<G>(&self, runtime: &Runtime, outside: impl Fn() -> Option<G>, place: Place) -> Option<G> {
        let address = address_of(self);
        // Those who have to wait for the statics keep nobody from locks.
        runtime.note_object(address);
        let guard = outside().unwrap_or_else(|| self.wait_for_ordinary_code(runtime, &outside, place));
        runtime.note_entered(address);
        if let Some(message) = runtime.foreign_use(address) {
            drop(guard);
            runtime.fail(message, place);
        }
        let run = self.run();
        if run == 0 {
            return Some(guard);
        }
        if runtime.is_foreign(run) {
            return None;
        }
        let other = || turns::owner_of(run).filter(|&model| model != runtime.number);
        if let Some(model) = other() {
            let waiter = Waiter::new(model, &[]);
            let waited = runtime.wait_outside(address, Whom::Model(model), || other().is_none().then_some(()));
            drop(waiter);
            match waited {
                Waited::Found(()) => {}
                Waited::InTheWay => {
                    drop(guard);
                    runtime.make_way(address);
                }
                Waited::TooLong => {
                    drop(guard);
                    let message = format!(
                        "another model, on another OS thread, uses this lock, and its execution has not come to an end for \
                         {}: perhaps they wait for each other. Give each model locks of its own",
                        turns::patience_in_words()
                    );
                    runtime.fail(message, place);
                }
            }
        }
        Some(guard)
    }

    #[cold]
    fn wait_for_ordinary_code<G>(&self, runtime: &Runtime, outside: &dyn Fn() -> Option<G>, place: Place) -> G {
        if let Some(Held { how, since, .. }) = held_here(self) {
            runtime.fail(would_wait_for_caller(how, since), place);
        }
        match runtime.wait_outside(address_of(self), Whom::Ordinary, outside) {
            Waited::Found(guard) => guard,
            Waited::InTheWay => runtime.make_way(address_of(self)),
            Waited::TooLong => {
                let message = format!(
                    "ordinary code, outside of this model and on another OS thread, has held this lock for {}: perhaps \
                     they wait for each other{}",
                    turns::patience_in_words(),
                    runtime.why_in_the_way()
                );
                runtime.fail(message, place)
            }
        }
    }

    /// Has any run left its stamp?
    pub(crate) fn was_used(&self) -> bool {
        self.run() != 0
    }

    /// The last run that has left its stamp.
    fn run(&self) -> u64 {
        Self::run_of(self.mark.load(Ordering::Relaxed))
    }

    /// Has a run that is going on, on another OS thread, come to the lock? For ordinary code that holds the lock of `std`.
    pub(crate) fn is_in_use(&self) -> bool {
        is_going_on(self.run())
    }

    /// Ordinary code is about to take the lock of `std`: lets an execution go first that has asked for it.
    #[inline]
    pub(crate) fn let_models_first(&self) {
        if is_asked_for(address_of(self)) {
            self.stand_back();
        }
    }

    #[cold]
    fn stand_back(&self) {
        let has_nothing = HELD.try_with(|held| held.borrow().is_empty()).unwrap_or(false);
        if has_nothing && !statics::is_checking() {
            turns::wait_for(|| (!is_asked_for(address_of(self))).then_some(()));
        }
    }

    /// Waits for the end of a run that is going on and has come to the lock.
    #[inline]
    pub(crate) fn wait_for_models(&self, place: Place) {
        self.wait_for_run(|| self.run(), false, place);
    }

    /// The same for somebody who has the lock of `std` alone.
    #[inline]
    pub(crate) fn wait_alone_for_models(&self, place: Place) {
        self.wait_for_run(|| self.run(), true, place);
    }

    /// Does ordinary code that has the lock of `std` alone wait for the end of a run of this model? Then nobody else has the lock.
    pub(crate) fn is_pending(&self, runtime: &Runtime) -> bool {
        turns::is_pending(runtime.number, address_of(self))
    }

    /// The same for somebody who only reads: the run that has come to write is this one.
    #[inline]
    pub(crate) fn wait_for_writer(&self, writer: &Writer, place: Place) {
        self.wait_for_run(|| writer.run(), false, place);
    }

    #[inline]
    fn wait_for_run(&self, run: impl Fn() -> u64, alone: bool, place: Place) {
        let is_let_through = foreign::use_outside(address_of(self), |own| own == self.run(), Some(place));
        if !is_let_through && is_going_on(run()) {
            self.wait_for_end(run(), alone, place);
        }
    }

    #[cold]
    fn wait_for_end(&self, run: u64, alone: bool, place: Place) {
        let Some(model) = turns::owner_of(run) else { return };
        let _waiter = Waiter::new(model, &all_held());
        let _pending = alone.then(|| turns::Pending::new(model, address_of(self)));
        let is_over = turns::wait_for(|| (!is_going_on(run)).then_some(()));
        assert!(
            is_over.is_some(),
            "a model uses the lock that is used at {place}, and its execution has not come to an end for {}. Ordinary code, on \
             another OS thread, cannot use it meanwhile: perhaps they wait for each other",
            turns::patience_in_words()
        );
    }
}

/// The last run that has come to write what an `RwLock` holds.
#[derive(Debug, Default)]
pub(crate) struct Writer(AtomicU64);

impl Writer {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    fn run(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Is it this one?
    #[inline]
    pub(crate) fn is(&self, runtime: &Runtime) -> bool {
        self.run() == runtime.run.get()
    }

    /// It is from now on, and so are later runs of the model if the lock, with this stamp, outlives the run. Whoever says so has
    /// the lock of `std`.
    pub(crate) fn set(&self, runtime: &Runtime, stamp: &Stamp, was_used: bool) {
        self.0.store(runtime.run.get(), Ordering::Relaxed);
        let address = address_of(stamp);
        if was_used || runtime.claim.get().is_none() && statics::is_static(address) {
            runtime.written.borrow_mut().insert(address);
        }
    }

    /// Is it going on, on another OS thread? For ordinary code that holds the lock of `std`.
    pub(crate) fn is_in_use(&self) -> bool {
        is_going_on(self.run())
    }
}

/// Why a run must not wait for the code that has called its model.
fn would_wait_for_caller(how: How, since: Place) -> String {
    match how {
        How::Alone => format!(
            "this lock is held since {since}, from before the model, by the code that has called it: the model would \
             wait for ever. Drop the guard before the model begins, or make the lock inside of it"
        ),
        How::Shared => format!(
            "this lock is held for reading since {since}, from before the model, by the code that has called it, and the \
             model does not only read: it would wait for ever. Drop the guard before the model begins, or make the lock \
             inside of it"
        ),
        How::Makes => format!(
            "this is being initialised since {since}, and it is the initialiser that has called the model: the model would wait \
             for the end of the initialiser, which waits for the end of the model. Do not run a model that uses it in there"
        ),
    }
}

impl Runtime {
    /// Was this incomplete when the model came to it?
    pub(crate) fn stays_incomplete(&self, stamp: &Stamp) -> bool {
        self.incomplete.borrow().contains(&address_of(stamp))
    }

    /// Has an earlier run come to write what the lock with this stamp holds?
    pub(crate) fn writes(&self, stamp: &Stamp) -> bool {
        let written = self.written.borrow();
        !written.is_empty() && written.contains(&address_of(stamp))
    }

    /// The run finds this incomplete, and has not left its stamp. What is neither a static nor was used before the run is
    /// one that the run has made, as far as is known.
    pub(crate) fn keep_incomplete(&self, stamp: &Stamp) {
        let address = address_of(stamp);
        if stamp.run() != 0 || self.claim.get().is_none() && statics::is_static(address) {
            self.incomplete.borrow_mut().insert(address);
        }
    }
}

/// Is this a run that is going on, but for those of this OS thread?
fn is_going_on(run: u64) -> bool {
    run != 0 && turns::owner_of(run).is_some_and(|model| statics::checking() != Some(model))
}
