//! Whether a lock is poisoned: a flag that threads can see, and so a cell of its own.
//!
//! As in the standard library, all accesses to the flag are relaxed ones, and no fences.
//!
//! | what a thread does | event |
//! |---|---|
//! | `is_poisoned` | load |
//! | `clear_poison` | store |
//! | it panics while it holds the lock | store, before the lock is released |
//! | it has acquired the lock, which was poisoned before | load |
//! | it has acquired the lock, which was not | none |
//!
//! Who acquires a lock that nobody has ever poisoned does not look. Only those who hold the lock can poison it, and they
//! come before or after in every order that is the same execution; whatever others clear meanwhile, the flag is not set. So locks
//! that are not poisoned cost nothing. A load of one that is finds what was written last under the lock, unless somebody clears
//! without having it: then both orders are explored.

use std::sync::atomic::{AtomicBool, Ordering};

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;

use super::lane::Operation;
use super::objects::{Object, Stamp};
use super::ordinary::address_of;
use super::{Place, Runtime, Sync, current};

/// What it is called if a panic sets a flag begins with this.
pub(crate) const POISONS: &str = "poisons ";

/// The flag of a lock.
#[derive(Debug)]
pub(crate) struct Poison(AtomicBool);

/// A flag that is an object of the run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// The object of its lock.
    lock: u32,
    object: u32,
    /// Was the lock ever poisoned, before the run or in it?
    was_set: bool,
}

impl Seen {
    /// The lock, and the flag.
    pub(super) fn parts(&self) -> (u32, u32) {
        (self.lock, self.object)
    }
}

impl Poison {
    pub(crate) const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Is it set? For ordinary code, and for those who have the lock for themselves.
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Where it is.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.0
    }

    /// Is the lock with this stamp poisoned?
    pub(crate) fn ask(&self, stamp: &Stamp, what: &'static str, place: Place) -> bool {
        let Some((runtime, lock)) = in_run(stamp) else { return self.get() };
        let object = runtime.flag_of(lock, self.get(), place).object;
        let is_set = runtime.look(object, || u64::from(self.get()), what, Sync::Relaxed, place) != 0;
        stamp.check_freed(runtime, place);
        is_set
    }

    /// The same for a thread that has just acquired the lock.
    pub(crate) fn find(&self, stamp: &Stamp, what: &'static str, place: Place) -> bool {
        let was_set = in_run(stamp).map_or_else(|| self.get(), |(runtime, lock)| runtime.was_set(lock, self.get()));
        was_set && self.ask(stamp, what, place)
    }

    /// The lock with this stamp is poisoned, or is not any more.
    pub(crate) fn set(&self, poisoned: bool, stamp: &Stamp, what: &'static str, place: Place) {
        let Some((runtime, lock)) = in_run(stamp) else { return self.0.store(poisoned, Ordering::Relaxed) };
        runtime.note_poison_of(address_of(stamp));
        let object = runtime.flag_of(lock, self.get(), place).object;
        if poisoned {
            runtime.note_poison(lock);
        }
        let interlocked = runtime.write_flag(object, poisoned, what, place);
        stamp.check_freed(runtime, place);
        self.0.store(poisoned, Ordering::Relaxed);
        if interlocked {
            runtime.synchronise_store(object, Sync::Relaxed);
        } else {
            runtime.synchronise_plain_store(object, Sync::Relaxed, place);
        }
    }
}

/// The run of the caller, and what a lock that it has come to is in it.
fn in_run<'a>(stamp: &Stamp) -> Option<(&'a Runtime, u32)> {
    current().and_then(|runtime| Some((runtime, stamp.used(runtime)?)))
}

impl Runtime {
    /// Was this lock ever poisoned? `is_set` says whether its flag is set now.
    fn was_set(&self, lock: u32, is_set: bool) -> bool {
        let seen = &self.state().seen_flags;
        seen.iter().find(|seen| seen.lock == lock).map_or(is_set, |seen| seen.was_set)
    }

    /// The flag of this lock, which is set now or is not.
    fn flag_of(&self, lock: u32, is_set: bool, place: Place) -> Seen {
        let known = self.state().seen_flags.iter().find(|seen| seen.lock == lock).copied();
        known.unwrap_or_else(|| {
            let object = self.add_object(Object::new(u64::from(is_set), place));
            let seen = Seen { lock, object, was_set: is_set };
            self.state().seen_flags.push(seen);
            seen
        })
    }

    fn note_poison(&self, lock: u32) {
        for seen in self.state().seen_flags.iter_mut().filter(|seen| seen.lock == lock) {
            seen.was_set = true;
        }
    }

    /// The event of a relaxed store: was it made an interlocked one?
    fn write_flag(&self, object: u32, value: bool, what: &'static str, place: Place) -> bool {
        if self.is_free() {
            return false;
        }
        let strength = self.strength_of(place);
        let interlocked = strength.seq_cst && self.model != MemoryModel::Sc;
        if self.has_debts() && !interlocked {
            self.pay();
        }
        if strength.release && self.model == MemoryModel::Pso {
            self.fence(FenceKind::StoreStore, place);
        }
        let value = u64::from(value);
        let operation =
            if interlocked { Operation::InterlockedStore(object, value) } else { Operation::Store(object, value) };
        self.note_store(!interlocked);
        self.post(operation, what, place);
        interlocked
    }
}
