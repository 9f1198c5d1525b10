//! What all atomics have in common: how an access becomes an event.
//!
//! The methods of atomics are not marked as `inline`, and what generic ones do is in functions that are not generic: a test
//! is most often built without optimisation, its dependencies with it, and what is generic or inline is built as the test
//! is.

use std::sync::atomic::{AtomicPtr, Ordering};

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;

use crate::rt::lane::Effect;
use crate::rt::script::Again;
use crate::rt::slot::{Found, Memory, Slot};
use crate::rt::strength::Part;
use crate::rt::{Place, Runtime, Sync};

/// An ordering, as far as synchronisation goes.
pub(super) fn sync_of(order: Ordering) -> Sync {
    match order {
        Ordering::Relaxed => Sync::Relaxed,
        Ordering::Acquire => Sync::Acquire,
        Ordering::Release => Sync::Release,
        _ => Sync::AcqRel,
    }
}

#[track_caller]
pub(super) fn check_load_order(order: Ordering) {
    match order {
        Ordering::Release => panic!("there is no such thing as a release load"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release load"),
        _ => {}
    }
}

#[track_caller]
pub(super) fn check_store_order(order: Ordering) {
    match order {
        Ordering::Acquire => panic!("there is no such thing as an acquire store"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release store"),
        _ => {}
    }
}

/// An atomic that fails writes nothing, so it cannot release.
#[track_caller]
pub(super) fn check_failure_order(order: Ordering) {
    match order {
        Ordering::Release => panic!("there is no such thing as a release failure ordering"),
        Ordering::AcqRel => panic!("there is no such thing as an acquire-release failure ordering"),
        _ => {}
    }
}

/// The bytes of a value in its bits.
pub(super) fn lowest_bytes(bits: *mut u64, size: usize) -> *mut u8 {
    let skipped = if cfg!(target_endian = "big") { size_of::<u64>() - size } else { 0 };
    bits.cast::<u8>().wrapping_add(skipped)
}

/// One access to an atomic inside a model.
pub(super) struct Access<'a, M: Memory> {
    runtime: &'a Runtime,
    slot: &'a Slot<M>,
    object: u32,
    place: Place,
    /// Was it made by a thread of this run?
    is_born: bool,
}

impl<'a, M: Memory> Access<'a, M> {
    #[inline]
    pub(super) fn new(runtime: &'a Runtime, slot: &'a Slot<M>, place: Place) -> Self {
        let Found { object, is_born } = slot.object(runtime, place);
        Self { runtime, slot, object, place, is_born }
    }

    /// The value in memory.
    #[inline]
    fn get(&self) -> u64 {
        self.slot.get(self.runtime, self.object)
    }

    #[inline]
    fn set(&self, bits: u64) {
        self.slot.set(self.runtime, self.object, bits);
    }

    /// The access has happened, after the thread has waited for its turn: the atomic must still have been there.
    #[inline]
    fn check_freed(&self) {
        self.slot.check_freed(self.runtime, self.place);
    }

    /// The access has happened: the making of the atomic must have happened before.
    #[inline]
    fn check_making(&self, writes: bool) {
        if self.is_born {
            self.runtime.check_making(self.object, writes, self.place);
        }
    }

    #[inline]
    pub(super) fn load(&self, order: Ordering) -> u64 {
        self.load_as(Part::Load, "load", order)
    }

    /// The load with which `fetch_update` begins.
    pub(super) fn fetch(&self, order: Ordering) -> u64 {
        self.load_as(Part::Fetch, "fetch_update", order)
    }

    #[inline]
    fn load_as(&self, part: Part, method: &'static str, order: Ordering) -> u64 {
        if self.runtime.has_debts() {
            self.runtime.pay();
        }
        let (_, order) = self.runtime.strong(order, part, method, self.place);
        let again = self.runtime.load_again(self.again("load"), sync_of(order));
        again.unwrap_or_else(|| self.load_anew(sync_of(order)))
    }

    /// A load that is not the next step of a script, or not yet.
    #[inline(never)]
    fn load_anew(&self, sync: Sync) -> u64 {
        let bits = loop {
            if let Some(bits) = self.runtime.load(self.object, || self.get(), self.place) {
                break bits;
            }
            if let Some(bits) = self.runtime.load_again(self.again("load"), sync) {
                self.check_freed();
                return bits;
            }
        };
        self.check_freed();
        self.runtime.synchronise_load(self.object, sync);
        self.check_making(false);
        bits
    }

    #[inline]
    pub(super) fn store(&self, bits: u64, order: Ordering) {
        let (order, handed_on) = self.runtime.strong(order, Part::Store, "store", self.place);
        let interlocked = order == Ordering::SeqCst && self.runtime.model != MemoryModel::Sc;
        if self.runtime.has_debts() {
            if interlocked { self.runtime.forgive() } else { self.runtime.pay() }
        }
        if order == Ordering::Release && self.runtime.model == MemoryModel::Pso {
            self.runtime.fence(FenceKind::StoreStore, self.place);
        }
        if !self.store_again(bits, interlocked, sync_of(handed_on)) {
            self.store_anew(bits, interlocked, sync_of(handed_on));
        }
    }

    /// A store that is the next step of a script; false if it is not.
    #[inline]
    fn store_again(&self, bits: u64, interlocked: bool, sync: Sync) -> bool {
        self.runtime.note_store(!interlocked);
        let again = self.runtime.store_again(self.again("store"), bits, interlocked, sync);
        if again {
            self.slot.set_again(self.runtime, self.object, bits);
        }
        again
    }

    /// One that is not, or not yet.
    #[inline(never)]
    fn store_anew(&self, bits: u64, interlocked: bool, sync: Sync) {
        while self.runtime.store(self.object, bits, interlocked, self.place).is_none() {
            if self.store_again(bits, interlocked, sync) {
                return self.check_freed();
            }
        }
        self.check_freed();
        self.set(bits);
        if interlocked {
            self.runtime.synchronise_store(self.object, sync);
        } else {
            self.runtime.synchronise_plain_store(self.object, sync, self.place);
        }
        self.check_making(true);
    }

    #[inline]
    fn again(&self, what: &'static str) -> Again {
        Again { object: self.object, what, place: self.place }
    }

    /// A read-modify-write: what it read. `None` from `new`: it does not write, and then it synchronises as `failure`
    /// says.
    #[inline]
    pub(super) fn update(
        &self,
        what: &'static str,
        order: Ordering,
        failure: Ordering,
        new: impl Fn(u64) -> Option<u64>,
    ) -> u64 {
        let (order, handed_on) = self.runtime.strong(order, Part::Update, what, self.place);
        let (_, failure) = self.runtime.strong(failure, Part::Failure, what, self.place);
        let drains_all = order != Ordering::Relaxed || self.runtime.is_behind_fence();
        if self.runtime.has_debts() {
            if drains_all { self.runtime.forgive() } else { self.runtime.pay() }
        }
        let syncs = (sync_of(handed_on), sync_of(failure));
        let again = self.update_again(what, drains_all, syncs, &new);
        again.unwrap_or_else(|| self.update_anew(what, drains_all, syncs, &new))
    }

    /// A read-modify-write that is the next step of a script: what it read. Nothing if it is not.
    #[inline]
    fn update_again(
        &self,
        what: &'static str,
        drains_all: bool,
        syncs: (Sync, Sync),
        new: &impl Fn(u64) -> Option<u64>,
    ) -> Option<u64> {
        let old = self.runtime.update_again(self.again(what), drains_all, syncs, new)?;
        if let Some(bits) = new(old) {
            self.slot.set_again(self.runtime, self.object, bits);
        }
        Some(old)
    }

    /// One that is not, or not yet.
    #[inline(never)]
    fn update_anew(
        &self,
        what: &'static str,
        drains_all: bool,
        syncs @ (success, failure): (Sync, Sync),
        new: &impl Fn(u64) -> Option<u64>,
    ) -> u64 {
        let probe = |bits: Option<u64>| {
            let bits = bits.unwrap_or_else(|| self.get());
            (bits, new(bits).map_or(Effect::Reads, Effect::Writes))
        };
        let old = loop {
            if let Some(old) = self.runtime.rmw(self.object, drains_all, &probe, what, self.place) {
                break old;
            }
            if let Some(old) = self.update_again(what, drains_all, syncs, new) {
                self.check_freed();
                return old;
            }
        };
        self.check_freed();
        match new(old) {
            Some(bits) => {
                self.set(bits);
                self.runtime.synchronise_rmw(self.object, success, true);
            }
            None => self.runtime.synchronise_rmw(self.object, failure, false),
        }
        self.check_making(true);
        old
    }
}

/// An access to an atomic pointer, to whatever it points.
pub(super) struct PointerAccess<'a>(Access<'a, AtomicPtr<()>>);

impl<'a> PointerAccess<'a> {
    pub(super) fn new(runtime: &'a Runtime, slot: &'a Slot<AtomicPtr<()>>, place: Place) -> Self {
        Self(Access::new(runtime, slot, place))
    }

    pub(super) fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }

    pub(super) fn fetch(&self, order: Ordering) -> u64 {
        self.0.fetch(order)
    }

    pub(super) fn store(&self, bits: u64, order: Ordering) {
        self.0.store(bits, order);
    }

    pub(super) fn update(
        &self,
        what: &'static str,
        order: Ordering,
        failure: Ordering,
        new: impl Fn(u64) -> Option<u64>,
    ) -> u64 {
        self.update_by(what, order, failure, &new)
    }

    fn update_by(
        &self,
        what: &'static str,
        order: Ordering,
        failure: Ordering,
        new: &dyn Fn(u64) -> Option<u64>,
    ) -> u64 {
        self.0.update(what, order, failure, new)
    }
}

/// The methods that all atomics have. `$value` is the plain type; `$bits` and `$plain` turn it into bits and back.
/// `$access` is an access to what `$slot` makes of the slot, `$current` the runtime.
macro_rules! common_methods {
    ($value:ty, $access:ty, $slot:expr, $current:path, $bits:expr, $plain:expr) => {
        /// Reads the value.
        #[track_caller]
        pub fn load(&self, order: Ordering) -> $value {
            check_load_order(order);
            match $current() {
                None => $plain($slot(&self.slot).load_outside()),
                Some(runtime) => $plain(self.access(runtime, Location::caller()).load(order)),
            }
        }

        /// Writes the value.
        #[track_caller]
        pub fn store(&self, value: $value, order: Ordering) {
            check_store_order(order);
            match $current() {
                None => _ = self.update_outside(|_| Some(value)),
                Some(runtime) => self.access(runtime, Location::caller()).store($bits(value), order),
            }
        }

        /// Writes a value and returns the one before.
        #[track_caller]
        pub fn swap(&self, value: $value, order: Ordering) -> $value {
            match $current() {
                None => self.update_outside(|_| Some(value)),
                Some(runtime) => self.modify(runtime, "swap", order, Location::caller(), move |_| value),
            }
        }

        /// Writes `new` if the value is `current`.
        #[track_caller]
        pub fn compare_exchange(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            check_failure_order(failure);
            let Some(runtime) = $current() else { return self.compare_exchange_outside(current, new) };
            let (expected, new) = ($bits(current), $bits(new));
            let access = self.access(runtime, Location::caller());
            let old = access.update("compare_exchange", success, failure, move |old| (old == expected).then_some(new));
            if old == expected { Ok($plain(old)) } else { Err($plain(old)) }
        }

        fn compare_exchange_outside(&self, current: $value, new: $value) -> Result<$value, $value> {
            let old = self.update_outside(|old| (old == current).then_some(new));
            if old == current { Ok(old) } else { Err(old) }
        }

        /// The same as [`Self::compare_exchange`]: it does not fail without a reason here.
        #[track_caller]
        pub fn compare_exchange_weak(
            &self,
            current: $value,
            new: $value,
            success: Ordering,
            failure: Ordering,
        ) -> Result<$value, $value> {
            self.compare_exchange(current, new, success, failure)
        }

        /// The predecessor of [`Self::compare_exchange`]: returns the value found. Not marked as deprecated, because
        /// loom's is not and some suites deny warnings.
        #[track_caller]
        pub fn compare_and_swap(&self, current: $value, new: $value, order: Ordering) -> $value {
            let failure = match order {
                Ordering::AcqRel => Ordering::Acquire,
                Ordering::Release => Ordering::Relaxed,
                order => order,
            };
            match self.compare_exchange(current, new, order, failure) {
                Ok(value) | Err(value) => value,
            }
        }

        /// Loads, computes and writes with `compare_exchange_weak` until that succeeds or `new` gives `None`.
        #[track_caller]
        pub fn fetch_update<F: FnMut($value) -> Option<$value>>(
            &self,
            set_order: Ordering,
            fetch_order: Ordering,
            mut new: F,
        ) -> Result<$value, $value> {
            let mut old = self.fetch(fetch_order);
            while let Some(next) = new(old) {
                match self.compare_exchange_weak(old, next, set_order, fetch_order) {
                    Ok(found) => return Ok(found),
                    Err(found) => old = found,
                }
            }
            Err(old)
        }

        #[track_caller]
        fn fetch(&self, order: Ordering) -> $value {
            check_load_order(order);
            match $current() {
                None => $plain($slot(&self.slot).load_outside()),
                Some(runtime) => $plain(self.access(runtime, Location::caller()).fetch(order)),
            }
        }

        /// The same as [`Self::fetch_update`].
        #[track_caller]
        pub fn try_update(
            &self,
            set_order: Ordering,
            fetch_order: Ordering,
            new: impl FnMut($value) -> Option<$value>,
        ) -> Result<$value, $value> {
            self.fetch_update(set_order, fetch_order, new)
        }

        /// Loads, computes and writes with `compare_exchange_weak` until that succeeds: the value before.
        #[track_caller]
        pub fn update(
            &self,
            set_order: Ordering,
            fetch_order: Ordering,
            mut new: impl FnMut($value) -> $value,
        ) -> $value {
            match self.fetch_update(set_order, fetch_order, |old| Some(new(old))) {
                Ok(old) | Err(old) => old,
            }
        }

        /// The value, which nobody else can access: in a model, what others have done to it must happen before.
        #[track_caller]
        pub fn get_mut(&mut self) -> &mut $value {
            rt::access_atomic($slot(&self.slot), true, Location::caller());
            self.settled()
        }

        /// Works on the value, which nobody else can access: see [`Self::get_mut`].
        #[track_caller]
        pub fn with_mut<R>(&mut self, work: impl FnOnce(&mut $value) -> R) -> R {
            work(self.get_mut())
        }

        /// The value, at the end of the atomic's life.
        pub fn into_inner(self) -> $value {
            self.peek()
        }

        /// Reads the value as plain memory: a write that does not happen before is a data race, which fails a model.
        ///
        /// # Safety
        /// Nobody may write it at the same time.
        #[track_caller]
        pub unsafe fn unsync_load(&self) -> $value {
            let value = self.load(Ordering::Relaxed);
            rt::access_atomic($slot(&self.slot), false, Location::caller());
            value
        }

        /// A pointer to the value. Accesses through it are no events of a model.
        #[track_caller]
        pub fn as_ptr(&self) -> *mut $value {
            $slot(&self.slot).put_in_place(Location::caller());
            self.outside().as_ptr()
        }

        /// The value, without an event.
        fn peek(&self) -> $value {
            $plain($slot(&self.slot).peek())
        }

        /// Reads, and writes what `new` says, outside of models: what was read.
        fn update_outside(&self, new: impl Fn($value) -> Option<$value>) -> $value {
            $plain($slot(&self.slot).update_outside(&|old| new($plain(old)).map($bits)))
        }

        #[inline]
        fn access<'a>(&'a self, runtime: &'a Runtime, place: Place) -> $access {
            <$access>::new(runtime, $slot(&self.slot), place)
        }

        #[inline]
        fn modify(
            &self,
            runtime: &Runtime,
            what: &'static str,
            order: Ordering,
            place: Place,
            new: impl Fn($value) -> $value,
        ) -> $value {
            let access = self.access(runtime, place);
            $plain(access.update(what, order, order, |old| Some($bits(new($plain(old))))))
        }
    };
}
pub(super) use common_methods;
