//! State words: what locks, channels, barriers and parking are made of.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use weakspot_model::ir::FenceKind;

use super::causality::Sync;
use super::interlocked::Manner;
use super::kept::Data;
use super::lane::Effect;
use super::objects::Stamp;
use super::{Place, Runtime, current};

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
        self.update_that(Manner { drains_all: true, looks: false }, place, what, (sync, sync), step)
    }

    /// The same as the atomic that it is in the standard library, and no more of a fence than that.
    pub(crate) fn count_at(&self, place: Place, what: &'static str, sync: Sync, step: impl Fn(u64) -> Step) -> u64 {
        let drains_all = sync != Sync::Relaxed || current().is_none_or(Runtime::is_behind_fence);
        self.update_that(Manner { drains_all, looks: false }, place, what, (sync, sync), step)
    }

    /// The same for what the standard library looks at first: a plain load, and no fence, where it keeps what is there. It
    /// synchronises as the first of the two says if it writes, else as the other. A look that leads to a change is no event of its own.
    /// Where no store of the thread can be late for it, it is an update like any other.
    #[track_caller]
    pub(crate) fn look_and_update(&self, what: &'static str, syncs: (Sync, Sync), step: impl Fn(u64) -> Step) -> u64 {
        let (runtime, place) = (current().expect("a state word is updated inside a model only"), Location::caller());
        if runtime.strength_of(place).fence_before {
            runtime.fence(FenceKind::Full, place);
        }
        let looks = runtime.may_have_pending_store();
        self.update_that(Manner { drains_all: true, looks }, place, what, syncs, step)
    }

    fn update_that(
        &self,
        manner: Manner,
        place: Place,
        what: &'static str,
        (sync, kept): (Sync, Sync),
        step: impl Fn(u64) -> Step,
    ) -> u64 {
        let runtime = current().expect("a state word is updated inside a model only");
        let object = self.object_at(runtime, place);
        let probe = |value: Option<u64>| {
            let value = value.unwrap_or_else(|| self.value.load(Ordering::Relaxed));
            let effect = match step(value) {
                Step::Write(new) => Effect::Writes(new),
                Step::Keep => Effect::Reads,
                Step::Block => Effect::Blocks,
            };
            (value, effect)
        };
        let old = runtime.blocking_rmw(object, manner, &probe, what, place);
        self.stamp.check_freed(runtime, place);
        let written = match probe(Some(old)).1 {
            Effect::Writes(new) => {
                self.value.store(new, Ordering::Relaxed);
                true
            }
            _ => false,
        };
        runtime.synchronise_rmw(object, if written { sync } else { kept }, written);
        old
    }

    /// The current run is about to use the word of a lock with this data, for which ordinary code needs what `outside` gives.
    pub(crate) fn keep<G>(&self, data: Data<'_>, outside: impl Fn() -> Option<G>, place: Place) {
        if let Some(runtime) = current()
            && self.stamp.used(runtime).is_none()
        {
            drop(self.enter(runtime, data, outside, place));
        }
    }

    /// The same for one that may be in use already: what ordinary code needs.
    pub(crate) fn enter<G>(
        &self,
        runtime: &Runtime,
        data: Data<'_>,
        outside: impl Fn() -> Option<G>,
        place: Place,
    ) -> Option<G> {
        let guard = self.stamp.enter(runtime, outside, place);
        if self.stamp.used(runtime).is_none() {
            self.entered_object(runtime, place);
            runtime.keep(data, place);
        }
        guard
    }

    /// Its stamp.
    pub(crate) fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// One event that is a plain load, and no fence. What the standard library only looks at is looked at so.
    #[track_caller]
    pub(crate) fn look(&self, what: &'static str, sync: Sync) -> u64 {
        let (runtime, place) = (current().expect("a state word is looked at inside a model only"), Location::caller());
        let object = self.object_at(runtime, place);
        let seen = runtime.look(object, || self.value.load(Ordering::Relaxed), what, sync, place);
        self.stamp.check_freed(runtime, place);
        seen
    }

    /// One event that only reads, and is a full fence.
    #[track_caller]
    pub fn get(&self, what: &'static str, sync: Sync) -> u64 {
        self.update(what, sync, |_| Step::Keep)
    }

    /// The object of a word that was not used in this run, after [`Stamp::enter`].
    pub(crate) fn entered_object(&self, runtime: &Runtime, place: Place) -> u32 {
        let set = |first| self.value.store(first, Ordering::Relaxed);
        self.stamp.entered_object(runtime, || self.value.load(Ordering::Relaxed), set, place)
    }

    /// Its number in this run, whether it has been used or not.
    pub(crate) fn come_to(&self, runtime: &Runtime, place: Place) -> u32 {
        self.object_at(runtime, place)
    }

    fn object_at(&self, runtime: &Runtime, place: Place) -> u32 {
        let set = |first| self.value.store(first, Ordering::Relaxed);
        self.stamp.object(runtime, || self.value.load(Ordering::Relaxed), set, place)
    }

    /// Its number in this run, once it has been used.
    pub(crate) fn object(&self) -> Option<u32> {
        current().and_then(|runtime| self.stamp.used(runtime))
    }

    /// The current thread has seen the last value that the word will ever have.
    pub(crate) fn learn(&self) {
        if let Some(runtime) = current()
            && let Some(object) = self.stamp.used(runtime)
        {
            runtime.state().objects[object as usize].aware |= 1 << runtime.thread.get();
        }
    }

    /// Does the current thread know that the word has this value, the last one it will ever have? It does if it has seen it, or
    /// comes after it in every order. Then looking shows nothing new and need not be an event; but the word has to be there still.
    #[track_caller]
    pub(crate) fn is_known_as(&self, last: u64) -> bool {
        let Some(runtime) = current().filter(|runtime| !runtime.is_free()) else { return false };
        let Some(object) = self.stamp.used(runtime) else { return false };
        let is_aware = runtime.state().objects[object as usize].aware & 1 << runtime.thread.get() != 0;
        let is_known = is_aware || self.value.load(Ordering::Relaxed) == last && runtime.comes_after(object);
        if is_known && !is_aware {
            self.learn();
        }
        if is_known {
            runtime.use_unseen(object, &self.stamp, Location::caller());
        }
        is_known
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
