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
//! between two models. Those that have come to two locks in different orders would wait for each other for ever: whoever has
//! waited for too long says so. (Statics belong to one model at a time, so that cannot happen with them.)

use std::cell::RefCell;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, TryLockError, TryLockResult};

use super::objects::Stamp;
use super::runtime::Runtime;
use super::turns::{self, PATIENCE};
use super::{Place, foreign, statics};

thread_local! {
    /// Locks that ordinary code on this OS thread holds, by address, and since where.
    static HELD: RefCell<Vec<(usize, Place)>> = const { RefCell::new(Vec::new()) };
}

/// Ordinary code holds a lock, until this is dropped.
#[derive(Debug)]
pub(crate) struct Holding(usize);

impl Holding {
    /// It holds the lock with this stamp.
    pub(crate) fn new(stamp: &Stamp, place: Place) -> Self {
        let address = address_of(stamp);
        // Nobody asks when the OS thread ends.
        let _ = HELD.try_with(|held| held.borrow_mut().push((address, place)));
        Self(address)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        let _ = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            let at = held.iter().rposition(|&(address, _)| address == self.0);
            at.map(|at| held.remove(at));
        });
    }
}

fn address_of(stamp: &Stamp) -> usize {
    std::ptr::from_ref(stamp).addr()
}

/// Where ordinary code on this OS thread has got the lock with this stamp.
fn held_since(stamp: &Stamp) -> Option<Place> {
    let address = address_of(stamp);
    HELD.with_borrow(|held| held.iter().rev().find(|&&(held, _)| held == address).map(|&(_, place)| place))
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
    /// A run, which has not left its stamp, comes to a lock: nobody else has it, and nobody gets it before the stamp is there,
    /// as long as there is the guard that `outside` gives. Nothing if another worker of the model uses the lock.
    pub(crate) fn enter<G>(&self, runtime: &Runtime, outside: impl Fn() -> Option<G>, place: Place) -> Option<G> {
        // Those who have to wait for the statics keep nobody from locks.
        runtime.note_object(address_of(self));
        let guard = outside().unwrap_or_else(|| self.wait_for_ordinary_code(runtime, &outside, place));
        if let Some(message) = runtime.foreign_use(address_of(self)) {
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
        let is_over = || turns::owner_of(run).is_none_or(|model| model == runtime.number).then_some(());
        if is_over().is_none() {
            runtime.rests();
            if turns::wait_for(is_over).is_none() {
                drop(guard);
                let message = format!(
                    "another model, on another OS thread, uses this lock, and its execution has not come to an end for {} \
                     seconds: perhaps they wait for each other. Give each model locks of its own",
                    PATIENCE.as_secs()
                );
                runtime.fail(message, place);
            }
        }
        Some(guard)
    }

    #[cold]
    fn wait_for_ordinary_code<G>(&self, runtime: &Runtime, outside: &dyn Fn() -> Option<G>, place: Place) -> G {
        if let Some(since) = held_since(self) {
            let message = format!(
                "this lock is held since {since}, from before the model, by the code that has called it: the model would \
                 wait for ever. Drop the guard before the model begins, or make the lock inside of it"
            );
            runtime.fail(message, place);
        }
        runtime.rests();
        turns::wait_for(outside).unwrap_or_else(|| {
            let message = format!(
                "ordinary code, outside of this model and on another OS thread, has held this lock for {} seconds: perhaps \
                 they wait for each other",
                PATIENCE.as_secs()
            );
            runtime.fail(message, place)
        })
    }

    /// The last run that has left its stamp.
    fn run(&self) -> u64 {
        Self::run_of(self.mark.load(Ordering::Relaxed))
    }

    /// Has a run that is going on, on another OS thread, come to the lock? For ordinary code that holds the lock of `std`.
    pub(crate) fn is_in_use(&self) -> bool {
        is_going_on(self.run())
    }

    /// Waits for the end of such a run.
    #[inline]
    pub(crate) fn wait_for_models(&self, place: Place) {
        let is_let_through = foreign::use_outside(address_of(self), |run| run == self.run(), Some(place));
        if !is_let_through && self.is_in_use() {
            self.wait_for_run(place);
        }
    }

    #[cold]
    fn wait_for_run(&self, place: Place) {
        let is_over = turns::wait_for(|| (!self.is_in_use()).then_some(()));
        assert!(
            is_over.is_some(),
            "a model uses the lock that is used at {place}, and its execution has not come to an end for {} seconds. Ordinary \
             code, on another OS thread, cannot use it meanwhile: perhaps they wait for each other",
            PATIENCE.as_secs()
        );
    }
}

impl Runtime {
    /// Was this incomplete when the model came to it?
    pub(crate) fn stays_incomplete(&self, stamp: &Stamp) -> bool {
        self.incomplete.borrow().contains(&address_of(stamp))
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
