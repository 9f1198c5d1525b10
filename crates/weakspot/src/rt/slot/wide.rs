//! An atomic with a stamp beside its value.

use std::sync::atomic::Ordering;

use super::{Found, Memory};
use crate::rt::objects::{BORN, Stamp};
use crate::rt::runtime::Runtime;
use crate::rt::state::State;
use crate::rt::{Place, statics};

/// Runs have no tokens here.
pub(crate) fn token_of_run(_run: u64) -> u64 {
    0
}

/// Nothing is.
#[allow(dead_code, reason = "asked where what is freed is known")]
pub(crate) fn is_token_of(_bits: u64, _token_of_run: u64) -> bool {
    false
}

/// Nothing is.
#[allow(dead_code, reason = "asked where what is freed is known")]
pub(crate) fn object_of(_bits: u64, _token_of_run: u64) -> Option<u32> {
    None
}

impl Stamp {
    /// Something is written outside of models: what models have done to it counts no more.
    fn written_outside(&self) {
        if !statics::is_checking() {
            self.mark.store(0, Ordering::Relaxed);
        }
    }

    /// Has a thread of the run made the object? To be asked after [`Self::object`].
    #[inline]
    fn is_born(&self) -> bool {
        self.mark.load(Ordering::Relaxed) & BORN != 0
    }

    /// A thread of the run has made the object.
    fn bear(&self) {
        self.mark.fetch_or(BORN, Ordering::Relaxed);
    }
}

/// The memory of an atomic.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Slot<M> {
    memory: M,
    stamp: Stamp,
    /// Makes the size a power of two: there is code that counts how many fit into a cache line.
    _room: u64,
}

impl<M> Slot<M> {
    pub(crate) const fn new(memory: M) -> Self {
        Self { memory, stamp: Stamp::new(), _room: 0 }
    }

    /// The memory as it is.
    pub(crate) const fn memory(&self) -> &M {
        &self.memory
    }

    pub(crate) fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }
}

#[allow(clippy::unused_self, reason = "the narrow layout needs it")]
impl<M: Memory> Slot<M> {
    /// A thread that had stopped before its access to this object goes on: is the atomic still where it was?
    #[inline]
    pub(crate) fn check_freed(&self, runtime: &Runtime, place: Place) {
        self.stamp.check_freed(runtime, place);
    }

    /// Reads, and writes what `new` says, outside of models: what was read.
    pub(crate) fn update_outside(&self, new: &dyn Fn(u64) -> Option<u64>) -> u64 {
        self.stamp.written_outside();
        let mut old = self.memory.get();
        while let Some(new) = new(old) {
            match self.memory.exchange(old, new) {
                Ok(_) => break,
                Err(found) => old = found,
            }
        }
        old
    }

    /// Reads outside of models.
    pub(crate) fn load_outside(&self) -> u64 {
        self.memory.get()
    }

    /// The object in this run.
    #[inline]
    pub(crate) fn object(&self, runtime: &Runtime, place: Place) -> Found {
        let is_new = std::cell::Cell::new(false);
        let first = || {
            is_new.set(true);
            self.memory.get()
        };
        let object = self.stamp.object(runtime, first, |first| self.memory.set(first), place);
        if is_new.get() {
            let state = &mut *runtime.state();
            let address = std::ptr::from_ref(self).addr();
            let birth = state.birth_at(address);
            state.objects[object as usize].offset = state.offset_in(birth, address);
            if let Some(birth) = birth {
                state.objects[object as usize].birth = birth;
                self.stamp.bear();
            }
        }
        Found { object, is_born: self.stamp.is_born() }
    }

    /// The number in this run, if it was used in it.
    pub(crate) fn used(&self, runtime: &Runtime) -> Option<u32> {
        self.stamp.used(runtime)
    }

    /// The value in memory, for a thread of the run.
    #[inline]
    pub(crate) fn get(&self, _runtime: &Runtime, _object: u32) -> u64 {
        self.memory.get()
    }

    /// Writes the value.
    #[inline]
    pub(crate) fn set(&self, _runtime: &Runtime, _object: u32, bits: u64) {
        self.memory.set(bits);
    }

    /// Writes a value that the object has already.
    #[inline]
    pub(crate) fn set_again(&self, _runtime: &Runtime, _object: u32, bits: u64) {
        self.memory.set(bits);
    }

    /// Somebody has a pointer to the value: it is in its memory.
    pub(crate) fn put_in_place(&self, _place: Place) {}

    /// Whoever has it exclusively begins a new life of it.
    pub(crate) fn settle(&mut self) {
        self.stamp.clear();
    }

    /// The value, without an event.
    pub(crate) fn peek(&self) -> u64 {
        self.memory.get()
    }
}

/// Where the atomics of a run are: nobody asks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Homes {}

impl Homes {
    /// The model is over.
    #[allow(clippy::unused_self, reason = "the narrow layout needs it")]
    pub(crate) fn publish(&mut self) {}
}

impl State {
    /// The run is over. What atomics hold is put right when the next run uses them.
    #[inline]
    pub(crate) fn give_values_back(&mut self) {
        let Homes {} = self.homes;
    }
}
