//! What events mean for happens-before, and the operations of mutexes and threads.

use super::Place;
use super::causality::Sync;
use super::lane::{Issued, Lane, Operation};
use super::runtime::Runtime;
use crate::failure::Failure;

impl Runtime {
    /// The current thread has read an object.
    #[inline]
    pub(crate) fn synchronise_load(&self, object: u32, sync: Sync) {
        let thread = self.thread.get();
        if self.is_free() || self.buffered.get() && self.has_issued(thread, object) {
            return;
        }
        self.state().causality.read(thread, object, sync);
    }

    /// Does a thread have a pending store to an object? Then that is what it reads.
    fn has_issued(&self, thread: u32, object: u32) -> bool {
        self.state().lanes[thread as usize].issued.iter().any(|issued| issued.object == object)
    }

    /// The current thread has made a store that may still be in its buffer.
    #[inline]
    pub(crate) fn synchronise_plain_store(&self, object: u32, sync: Sync, place: Place) {
        if !self.buffered.get() {
            return self.synchronise_store(object, sync);
        }
        if !self.is_free() {
            let thread = self.thread.get();
            let state = &mut *self.state();
            let row = state.causality.issue(thread, sync);
            state.lanes[thread as usize].issued.push(Issued { object, row, place });
        }
    }

    /// The current thread has written an object.
    #[inline]
    pub(crate) fn synchronise_store(&self, object: u32, sync: Sync) {
        let thread = self.thread.get();
        if !self.is_free() {
            self.state().causality.write(thread, object, sync, false);
        }
    }

    /// The current thread has read an object and maybe written it.
    #[inline]
    pub(crate) fn synchronise_rmw(&self, object: u32, sync: Sync, written: bool) {
        let thread = self.thread.get();
        if !self.is_free() {
            let causality = &mut self.state().causality;
            if written {
                causality.update(thread, object, sync);
            } else {
                causality.read(thread, object, sync);
            }
        }
    }

    /// The current thread has passed a fence.
    pub(crate) fn synchronise_fence(&self, sync: Sync) {
        let thread = self.thread.get();
        if !self.is_free() {
            self.state().causality.fence(thread, sync);
        }
    }

    /// Fails the execution with something that is already described.
    pub(crate) fn fail_with(&self, failure: Failure) -> ! {
        let place = failure.place();
        if failure.is_race() && !self.is_free() {
            self.check_learnt();
        }
        self.note_failure(failure);
        self.fail(String::new(), place)
    }

    /// Acquires a mutex.
    #[inline]
    pub(crate) fn lock(&self, mutex: u32, what: &'static str, place: Place) {
        if !self.is_free() {
            self.post(Operation::Lock(mutex), what, place);
        }
        if self.is_free() {
            while self.state().objects[mutex as usize].held && self.give_way() {}
        }
        self.take_mutex(mutex, place);
    }

    /// Acquires a mutex if it is free.
    pub(crate) fn try_lock(&self, mutex: u32, what: &'static str, place: Place) -> bool {
        let mut taken = false;
        if !self.is_free() {
            taken = self.post(Operation::TryLock(mutex), what, place) == 1;
        }
        if self.is_free() {
            taken = !self.state().objects[mutex as usize].held;
        }
        if taken {
            self.take_mutex(mutex, place);
        }
        taken
    }

    #[inline]
    fn take_mutex(&self, mutex: u32, place: Place) {
        self.synchronise_load(mutex, Sync::Acquire);
        let mut state = self.state();
        let object = &mut state.objects[mutex as usize];
        (object.held, object.holder) = (true, (self.thread.get(), place));
    }

    /// Releases a mutex.
    #[inline]
    pub(crate) fn unlock(&self, mutex: u32, what: &'static str, place: Place) {
        if !self.is_free() {
            self.post(Operation::Unlock(mutex), what, place);
        }
        self.synchronise_store(mutex, Sync::Release);
        self.state().objects[mutex as usize].held = false;
    }

    /// Waits on a condition variable: was the time over before somebody notified it? A run that was given up wakes at once:
    /// such wakes are allowed.
    pub(crate) fn wait(&self, condvar: u32, mutex: u32, place: Place) -> bool {
        self.synchronise_store(mutex, Sync::Release);
        let mut is_late = false;
        if !self.is_free() {
            is_late = self.post(Operation::Wait { condvar, mutex }, "Condvar::wait", place) != 0;
        }
        if self.is_free() {
            self.let_go(mutex, self.thread.get());
            self.give_way();
            self.lock(mutex, "Condvar::wait", place);
            return false;
        }
        self.take_mutex(mutex, place);
        if is_late {
            self.note_timeout(place);
        }
        is_late
    }

    /// A run was given up while a thread waits: it releases the mutex, unless it had done so already. Then somebody else may
    /// have it.
    pub(super) fn let_go(&self, mutex: u32, thread: u32) {
        let object = &mut self.state().objects[mutex as usize];
        if object.holder.0 == thread {
            object.held = false;
        }
    }

    /// Wakes waiters.
    pub(crate) fn notify(&self, condvar: u32, all: bool, place: Place) {
        if !self.is_free() {
            let what = if all { "Condvar::notify_all" } else { "Condvar::notify_one" };
            self.post(Operation::Notify { condvar, all }, what, place);
        }
        if self.is_free() {
            self.wake_freely(condvar, all);
        }
    }

    /// Does a thread wait with a timeout? Then it is not stuck for ever.
    pub(crate) fn waits_with_timeout(&self) -> bool {
        self.state().lanes.iter().any(Lane::may_time_out)
    }
}
