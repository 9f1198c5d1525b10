//! State words: what locks, channels, barriers and parking are made of.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use super::causality::Sync;
use super::kept::Data;
use super::lane::Effect;
use super::objects::Stamp;
use super::runtime::Runtime;
use super::{Place, current};

/// What an update makes of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Writes this.
    Write(u64),
    /// Only reads.
    Keep,
    /// Waits until the value is another one.
    Block,
}

/// A word with atomic updates that may block. A full fence for store buffers.
#[derive(Debug)]
pub struct Word {
    value: AtomicU64,
    stamp: Stamp,
}

impl Word {
    /// A word.
    pub const fn new(value: u64) -> Self {
        Self { value: AtomicU64::new(value), stamp: Stamp::new() }
    }

    /// One event: the value it found. `step` may be called several times.
    #[track_caller]
    pub fn update(&self, what: &'static str, sync: Sync, step: impl Fn(u64) -> Step) -> u64 {
        self.update_at(Location::caller(), what, sync, step)
    }

    /// The same, said to be somewhere else.
    pub(crate) fn update_at(&self, place: Place, what: &'static str, sync: Sync, step: impl Fn(u64) -> Step) -> u64 {
        let runtime = current().expect("a state word is updated inside a model only");
        let object = self.object(runtime, place);
        let probe = |value: Option<u64>| {
            let value = value.unwrap_or_else(|| self.value.load(Ordering::Relaxed));
            let effect = match step(value) {
                Step::Write(new) => Effect::Writes(new),
                Step::Keep => Effect::Reads,
                Step::Block => Effect::Blocks,
            };
            (value, effect)
        };
        let old = runtime.blocking_rmw(object, &probe, what, place);
        let written = match probe(Some(old)).1 {
            Effect::Writes(new) => {
                self.value.store(new, Ordering::Relaxed);
                true
            }
            _ => false,
        };
        runtime.synchronise_rmw(object, sync, written);
        old
    }

    /// The number in this run.
    fn object(&self, runtime: &Runtime, place: Place) -> u32 {
        self.stamp.object(
            runtime,
            || self.value.load(Ordering::Relaxed),
            |first| self.value.store(first, Ordering::Relaxed),
            place,
        )
    }

    /// The current run is about to use the word of a lock with this data.
    pub(crate) fn keep(&self, data: Data<'_>, place: Place) {
        if let Some(runtime) = current()
            && self.stamp.used(runtime).is_none()
        {
            self.object(runtime, place);
            runtime.keep(data, place);
        }
    }

    /// One event that only reads.
    #[track_caller]
    pub fn get(&self, what: &'static str, sync: Sync) -> u64 {
        self.update(what, sync, |_| Step::Keep)
    }

    /// The current thread has seen the last value that the word will ever have.
    pub(crate) fn learn(&self) {
        if let Some(runtime) = current()
            && let Some(object) = self.stamp.used(runtime)
        {
            runtime.state().objects[object as usize].aware |= 1 << runtime.thread.get();
        }
    }

    /// Has the current thread seen the last value? Then looking again shows nothing new and need not be an event.
    pub(crate) fn is_known(&self) -> bool {
        current().is_some_and(|runtime| {
            let object = self.stamp.used(runtime);
            object.is_some_and(|object| runtime.state().objects[object as usize].aware & 1 << runtime.thread.get() != 0)
        })
    }

    /// The value, where nobody else can act.
    pub fn get_mut(&mut self) -> u64 {
        *self.value.get_mut()
    }

    /// Sets the value, where nobody else can act.
    pub fn set_mut(&mut self, value: u64) {
        *self.value.get_mut() = value;
        self.stamp.clear();
    }
}
