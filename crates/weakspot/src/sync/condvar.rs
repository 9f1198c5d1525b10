//! The condition variable.
//!
//! In a model there are no spurious wake-ups. A wait with a timeout may time out or be notified: both ways are explored. One
//! that times out ends a round of a loop that waits, so that a loop that would time out again and again is no endless one.

use std::fmt;
use std::panic::Location;
use std::sync::{LockResult, PoisonError};
use std::time::{Duration, Instant};

use super::mutex::MutexGuard;
use crate::rt::objects::Stamp;
use crate::rt::runtime::Runtime;
use crate::rt::{self, Place};

/// A condition variable.
#[derive(Default)]
pub struct Condvar {
    outside: std::sync::Condvar,
    stamp: Stamp,
}

/// Did a wait end because its time was over?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Did it?
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A condition variable nobody waits for.
    pub const fn new() -> Self {
        Self { outside: std::sync::Condvar::new(), stamp: Stamp::new() }
    }

    /// Releases the mutex, waits for a notification, acquires the mutex again.
    #[track_caller]
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        self.wait_at(guard, Location::caller())
    }

    fn wait_at<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>, place: Place) -> LockResult<MutexGuard<'a, T>> {
        if let (Some(runtime), Some(mutex)) = (rt::current(), guard.object()) {
            self.wait_inside(runtime, mutex, place);
            return if guard.finds_poison_again(place) { Err(PoisonError::new(guard)) } else { Ok(guard) };
        }
        let (mutex, place) = (guard.mutex(), guard.place());
        let hold = guard.into_outside().expect("invariant: outside a model a guard is of outside");
        let hold = self.outside.wait(hold).unwrap_or_else(PoisonError::into_inner);
        MutexGuard::from_outside(mutex, hold, place)
    }

    /// Waits in a model: was the time over?
    fn wait_inside(&self, runtime: &Runtime, mutex: u32, place: Place) -> bool {
        let condvar = self.stamp.plain_object(runtime, place);
        runtime.wait(condvar, mutex, place)
    }

    /// Waits while a condition holds.
    #[track_caller]
    pub fn wait_while<'a, T: ?Sized, F: FnMut(&mut T) -> bool>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>> {
        let place = Location::caller();
        while condition(&mut guard) {
            guard = self.wait_at(guard, place)?;
        }
        Ok(guard)
    }

    /// Waits for a notification or until some time is over.
    #[track_caller]
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        self.wait_timeout_at(guard, duration, Location::caller())
    }

    /// The predecessor of [`Self::wait_timeout`]: false if the time was over.
    #[deprecated(note = "replaced by `Condvar::wait_timeout`")]
    #[track_caller]
    pub fn wait_timeout_ms<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        milliseconds: u32,
    ) -> LockResult<(MutexGuard<'a, T>, bool)> {
        let duration = Duration::from_millis(milliseconds.into());
        match self.wait_timeout_at(guard, duration, Location::caller()) {
            Ok((guard, result)) => Ok((guard, !result.timed_out())),
            Err(error) => {
                let (guard, result) = error.into_inner();
                Err(PoisonError::new((guard, !result.timed_out())))
            }
        }
    }

    fn wait_timeout_at<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: Duration,
        place: Place,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        if let (Some(runtime), Some(mutex)) = (rt::current(), guard.object()) {
            let is_over = if runtime.times_out(place) {
                runtime.unlock(mutex, "Condvar::wait_timeout: the time is over", place);
                runtime.lock(mutex, "Mutex::lock", place);
                true
            } else {
                // In a run that was given up nobody comes to notify: the time is over.
                self.wait_inside(runtime, mutex, place) || runtime.is_free()
            };
            let is_poisoned = guard.finds_poison_again(place);
            let result = (guard, WaitTimeoutResult(is_over));
            return if is_poisoned { Err(PoisonError::new(result)) } else { Ok(result) };
        }
        let (mutex, place) = (guard.mutex(), guard.place());
        let hold = guard.into_outside().expect("invariant: outside a model a guard is of outside");
        let (hold, result) = self.outside.wait_timeout(hold, duration).unwrap_or_else(PoisonError::into_inner);
        let result = WaitTimeoutResult(result.timed_out());
        match MutexGuard::from_outside(mutex, hold, place) {
            Ok(guard) => Ok((guard, result)),
            Err(error) => Err(PoisonError::new((error.into_inner(), result))),
        }
    }

    /// Waits while a condition holds, or until some time is over.
    #[track_caller]
    pub fn wait_timeout_while<'a, T: ?Sized, F: FnMut(&mut T) -> bool>(
        &self,
        mut guard: MutexGuard<'a, T>,
        duration: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let (place, start) = (Location::caller(), Instant::now());
        let mut result = WaitTimeoutResult(false);
        while condition(&mut guard) {
            // There is no time in a model.
            let left = if rt::in_model() { duration } else { duration.saturating_sub(start.elapsed()) };
            if result.timed_out() || (left.is_zero() && !rt::in_model()) {
                return Ok((guard, WaitTimeoutResult(true)));
            }
            (guard, result) = self.wait_timeout_at(guard, left, place)?;
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    /// Wakes one waiter, if there is any. Which one is explored.
    #[track_caller]
    pub fn notify_one(&self) {
        self.notify(false, Location::caller());
    }

    /// Wakes all waiters.
    #[track_caller]
    pub fn notify_all(&self) {
        self.notify(true, Location::caller());
    }

    fn notify(&self, all: bool, place: Place) {
        match rt::current() {
            Some(runtime) => {
                let condvar = self.stamp.plain_object(runtime, place);
                runtime.notify(condvar, all, place);
                self.stamp.check_freed(runtime, place);
            }
            None if all => self.outside.notify_all(),
            None => self.outside.notify_one(),
        }
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
