//! The atomics and locks of a run.
//!
//! A Rust object (a `Mutex`, and where [`slot`](super::slot) says so an `AtomicUsize`) can be made in a `const fn`, so nothing is known of it before its first
//! use in a run. Then it gets a number, the *object*, and a stamp in the Rust object says so: the number of the run and
//! the number of the object. The stamp of an object that is made anew is 0, so memory that is used again is a new
//! object. An object that carries the stamp of an earlier run (a static, something captured) gets its first value back: the one
//! it had before any model used it, or that was written last outside of models.
//!
//! Workers that explore parts of a model have runs of their own, and the number of a run says whose it is. Something that
//! two of them use is shared for real; whoever comes second finds the other's stamp, before it has looked at anything,
//! and then one worker explores everything.
//!
//! To the explorer an object is a *cell*; it gives it that number when an event on it happens, the same in every run of
//! the same graph. So it does not matter who uses an object first.

use std::sync::atomic::{AtomicU64, Ordering};

use weakspot_explore::system::UNBOUND;

use super::Place;
use super::runtime::{Company, Runtime};

/// Bits of a stamp that are not the number of a run.
const OBJECT_BITS: u32 = 24;
/// The one of them that says that a thread of the run has made the object, if somebody asks; the others are its number.
pub(super) const BORN: u64 = 1 << (OBJECT_BITS - 1);

/// No allocation.
pub(crate) const NO_BIRTH: u32 = u32::MAX;

/// An object of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Object {
    /// The explorer's number.
    pub(crate) cell: u32,
    /// Its value when it was first used.
    pub(crate) initial: u64,
    /// Its value now, while a script is followed.
    pub(crate) value: u64,
    /// For a mutex: is it held? For a gate: is it open?
    pub(crate) held: bool,
    /// By whom, and since where, if it is.
    pub(crate) holder: (u32, Place),
    /// The allocation of this run that it was made in, counted from 0.
    pub(crate) birth: u32,
    /// Where in it; without one, where in memory. 0 for what is in no memory of the model.
    pub(crate) offset: usize,
    /// Threads whose accesses are known to come after its making, or, if it will not change any more, that have seen it so:
    /// one bit for each.
    pub(crate) aware: u64,
}

/// Where an object is, by the allocation that it is in: the same in all runs with the same schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    birth: u32,
    offset: usize,
}

impl Object {
    /// The number of one that the explorer has given none.
    pub(super) const UNBOUND: u32 = UNBOUND;

    pub(crate) fn origin(&self) -> Option<Origin> {
        let Self { birth, offset, .. } = *self;
        (birth != NO_BIRTH || offset != 0).then_some(Origin { birth, offset })
    }

    pub(crate) fn new(initial: u64, first_use: Place) -> Self {
        let holder = (0, first_use);
        Self { cell: UNBOUND, initial, value: initial, held: false, holder, birth: NO_BIRTH, offset: 0, aware: 0 }
    }
}

/// Ties a Rust object to the runs that use it.
#[derive(Debug, Default)]
pub(crate) struct Stamp {
    /// The run and the number.
    pub(super) mark: AtomicU64,
    /// The value before the first run that used it since it was written outside of models.
    first: AtomicU64,
}

impl Stamp {
    pub(crate) const fn new() -> Self {
        Self { mark: AtomicU64::new(0), first: AtomicU64::new(0) }
    }

    /// Forgets all runs: whoever has it exclusively begins a new life of it.
    pub(crate) fn clear(&mut self) {
        *self.mark.get_mut() = 0;
    }

    /// The run that a mark is of; 0 if it is of none.
    #[inline]
    pub(super) fn run_of(mark: u64) -> u64 {
        mark >> OBJECT_BITS
    }

    /// The object that a mark is of.
    #[allow(dead_code, reason = "asked where what is freed is known")]
    pub(super) fn object_of(mark: u64) -> u32 {
        (mark & (BORN - 1)) as u32
    }

    /// A thread that had stopped before it uses this goes on: is it still where it was?
    #[inline]
    pub(crate) fn check_freed(&self, runtime: &Runtime, place: Place) {
        if self.used(runtime).is_none() {
            runtime.check_freed(std::ptr::from_ref(self).addr(), place);
        }
    }

    /// The number in this run, if it was used in it.
    #[inline]
    pub(crate) fn used(&self, runtime: &Runtime) -> Option<u32> {
        let stamp = self.mark.load(Ordering::Relaxed);
        (stamp >> OBJECT_BITS == runtime.run.get()).then_some((stamp & (BORN - 1)) as u32)
    }

    /// The number in this run. `value` is what it holds; `reset` gives it its first value back.
    #[inline]
    pub(crate) fn object(&self, runtime: &Runtime, value: impl Fn() -> u64, reset: impl Fn(u64), place: Place) -> u32 {
        let stamp = self.mark.load(Ordering::Relaxed);
        if stamp >> OBJECT_BITS == runtime.run.get() {
            return (stamp & (BORN - 1)) as u32;
        }
        runtime.note_object(std::ptr::from_ref(self).addr());
        self.entered_object(runtime, value, reset, place)
    }

    /// The same for one that was not used in this run, after [`Self::enter`].
    #[inline]
    pub(crate) fn entered_object(
        &self,
        runtime: &Runtime,
        value: impl Fn() -> u64,
        reset: impl Fn(u64),
        place: Place,
    ) -> u32 {
        runtime.check_freed(std::ptr::from_ref(self).addr(), place);
        let stamp = self.mark.load(Ordering::Relaxed);
        self.take_over(runtime, stamp, place);
        if stamp == 0 {
            self.first.store(value(), Ordering::Relaxed);
        } else {
            reset(self.first.load(Ordering::Relaxed));
        }
        let object = runtime.add_object(Object::new(self.first.load(Ordering::Relaxed), place));
        self.mark.store(runtime.run.get() << OBJECT_BITS | u64::from(object), Ordering::Relaxed);
        object
    }

    /// The object is used for the first time in this run. What another worker uses cannot be used.
    #[inline]
    fn take_over(&self, runtime: &Runtime, stamp: u64, place: Place) {
        let run = runtime.run.get();
        let mut is_foreign = runtime.is_foreign(stamp >> OBJECT_BITS);
        let is_new = stamp >> OBJECT_BITS < runtime.first_run;
        if is_new && runtime.company.get() != Company::Alone {
            let claim = run << OBJECT_BITS;
            is_foreign = self.mark.compare_exchange(stamp, claim, Ordering::Relaxed, Ordering::Relaxed).is_err();
        }
        if is_foreign {
            runtime.get_in_the_way(place);
        }
    }

    /// The number in this run of something without a value.
    #[inline]
    pub(crate) fn plain_object(&self, runtime: &Runtime, place: Place) -> u32 {
        self.used(runtime).unwrap_or_else(|| self.new_plain_object(runtime, place))
    }

    #[inline(never)]
    fn new_plain_object(&self, runtime: &Runtime, place: Place) -> u32 {
        self.object(runtime, || 0, |_| {}, place)
    }
}
