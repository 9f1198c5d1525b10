//! Sleeping until a condition holds, at no cost for the one who sets it when nobody sleeps.
//!
//! The sleeper says that it is about to sleep and looks at the condition once more; the other side sets the condition
//! and looks whether somebody sleeps. Both need a fence in between. Without the second one the sleeper is not woken and
//! sleeps for ever.

use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, fence};
use weakspot::thread::{self, Thread};

/// A condition that is set once. `FENCED`: with the fence of [`EventCount::set`].
#[derive(Default)]
pub struct EventCount<const FENCED: bool> {
    ready: AtomicBool,
    asleep: AtomicBool,
}

impl<const FENCED: bool> EventCount<FENCED> {
    /// Sleeps until the condition is set.
    pub fn wait(&self) {
        while !self.ready.load(Acquire) {
            self.asleep.store(true, Relaxed);
            fence(SeqCst);
            if !self.ready.load(Acquire) {
                thread::park();
            }
        }
    }

    /// Sets the condition and wakes the sleeper, if there is one.
    pub fn set(&self, sleeper: &Thread) {
        self.ready.store(true, Release); // DELAYED
        if FENCED {
            fence(SeqCst);
        }
        // WEAK: the sleeper may not have seen the condition yet
        if self.asleep.load(Acquire) {
            sleeper.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EventCount;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::thread;

    fn wait_and_set<const FENCED: bool>() {
        let event = Arc::new(EventCount::<FENCED>::default());
        let setter = {
            let (event, sleeper) = (Arc::clone(&event), thread::current());
            thread::spawn(move || event.set(&sleeper))
        };
        event.wait();
        setter.join().expect("invariant: the setter does not panic");
    }

    #[test]
    fn nobody_sleeps_for_ever() {
        proves(Model::Tso, wait_and_set::<true>);
        proves(Model::Pso, wait_and_set::<true>);
    }

    #[test]
    fn a_wakeup_is_lost_without_the_fence_under_tso() {
        finds(Model::Tso, file!(), include_str!("event_count.rs"), wait_and_set::<false>);
    }
}
