//! The mutex.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::rt::kept::Data;
use crate::rt::objects::Stamp;
use crate::rt::ordinary::{Holding, How, try_take};
use crate::rt::poison::Poison;
use crate::rt::runtime::Runtime;
use crate::rt::{self, Place};

/// A mutex. It poisons as the standard library's does.
pub struct Mutex<T: ?Sized> {
    lock: Lock,
    data: UnsafeCell<T>,
}

/// A mutex without its data: what is not generic is built with this crate, and not as the user's crate is.
struct Lock {
    /// Excludes others outside of models.
    outside: std::sync::Mutex<()>,
    poison: Poison,
    stamp: Stamp,
}

// SAFETY: the mutex hands out its data to one thread at a time: outside a model by `outside`, inside by its events, which
// all happen on one OS thread, and between the two as `rt::ordinary` says.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}
// A panic while the data is changed poisons the mutex.
impl<T: ?Sized> UnwindSafe for Mutex<T> {}
impl<T: ?Sized> RefUnwindSafe for Mutex<T> {}

/// How a guard holds its mutex.
enum Held<'a> {
    Outside { guard: std::sync::MutexGuard<'a, ()>, _holding: Holding },
    Model { object: u32 },
}

/// A mutex is held.
struct Hold<'a> {
    lock: &'a Lock,
    held: Option<Held<'a>>,
    /// The thread was panicking already when it acquired the mutex.
    was_panicking: bool,
    /// It has found the mutex poisoned.
    found_poison: bool,
    place: Place,
}

/// Access to the data of a mutex; releases it when dropped.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    hold: Hold<'a>,
    /// A guard stays where it was made.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives shared access to the data.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl Lock {
    const fn new() -> Self {
        Self { outside: std::sync::Mutex::new(()), poison: Poison::new(), stamp: Stamp::new() }
    }

    /// The object in this run of a lock with this data.
    fn object(&self, runtime: &Runtime, data: Data<'_>, place: Place) -> u32 {
        self.stamp.used(runtime).unwrap_or_else(|| self.first_use(runtime, data, place))
    }

    #[inline(never)]
    fn first_use(&self, runtime: &Runtime, data: Data<'_>, place: Place) -> u32 {
        let guard = self.stamp.enter(runtime, || try_take(&self.outside), place);
        let object = self.stamp.entered_object(runtime, || 0, |_| {}, place);
        runtime.keep(data, place);
        drop(guard);
        object
    }

    fn acquire(&self, data: Data<'_>, place: Place) -> Hold<'_> {
        let held = match rt::current() {
            None => {
                self.stamp.let_models_first();
                self.held(self.outside.lock().unwrap_or_else(PoisonError::into_inner), place)
            }
            Some(runtime) => {
                let object = self.object(runtime, data, place);
                runtime.lock(object, "Mutex::lock", place);
                self.stamp.check_freed(runtime, place);
                Held::Model { object }
            }
        };
        self.hold(held, "… Mutex::lock", place)
    }

    /// Ordinary code has it, as soon as no model has.
    fn held<'a>(&'a self, guard: std::sync::MutexGuard<'a, ()>, place: Place) -> Held<'a> {
        self.stamp.wait_for_models(place);
        Held::Outside { guard, _holding: Holding::new(&self.stamp, How::Alone, place) }
    }

    /// Acquires it if it is free.
    fn try_acquire(&self, data: Data<'_>, place: Place) -> Option<Hold<'_>> {
        let held = match rt::current() {
            None => {
                let guard = try_take(&self.outside).filter(|_| !self.stamp.is_in_use())?;
                self.held(guard, place)
            }
            Some(runtime) => {
                let object = self.object(runtime, data, place);
                let taken = runtime.try_lock(object, "Mutex::try_lock", place);
                self.stamp.check_freed(runtime, place);
                if !taken {
                    return None;
                }
                Held::Model { object }
            }
        };
        Some(self.hold(held, "… Mutex::try_lock", place))
    }

    fn hold<'a>(&'a self, held: Held<'a>, what: &'static str, place: Place) -> Hold<'a> {
        let was_panicking = crate::thread::panicking();
        let mut hold = Hold { lock: self, held: Some(held), was_panicking, found_poison: false, place };
        rt::note_guard(&self.stamp, true);
        hold.found_poison = self.poison.find(&self.stamp, what, place);
        hold
    }

    /// Somebody looks at more than the data, or changes it.
    fn keep(&self, data: Data<'_>, place: Place) {
        if let Some(runtime) = rt::current() {
            self.object(runtime, data, place);
        } else {
            let _guard = try_take(&self.outside);
            self.stamp.wait_for_models(place);
        }
    }

    fn is_poisoned(&self, data: Data<'_>, place: Place) -> bool {
        self.keep(data, place);
        self.poison.ask(&self.stamp, "Mutex::is_poisoned", place)
    }

    fn clear_poison(&self, data: Data<'_>, place: Place) {
        self.keep(data, place);
        self.poison.set(false, &self.stamp, "Mutex::clear_poison", place);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if self.held.is_some() && !self.was_panicking && crate::thread::panicking() {
            self.lock.poison.set(true, &self.lock.stamp, "poisons the Mutex", self.place);
        }
        if let (Some(Held::Model { object }), Some(runtime)) = (&self.held, rt::current()) {
            rt::note_guard(&self.lock.stamp, false);
            runtime.unlock(*object, "unlock", self.place);
            self.lock.stamp.check_freed(runtime, self.place);
        }
    }
}

impl<T> Mutex<T> {
    /// A mutex around a value.
    pub const fn new(value: T) -> Self {
        Self { lock: Lock::new(), data: UnsafeCell::new(value) }
    }

    /// The value, at the end of the mutex's life.
    pub fn into_inner(self) -> LockResult<T> {
        let poisoned = self.lock.poison.get();
        let value = self.data.into_inner();
        if poisoned { Err(PoisonError::new(value)) } else { Ok(value) }
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until the mutex is free and acquires it.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.guard(self.lock.acquire(self.data(), Location::caller()))
    }

    /// Acquires the mutex if it is free.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.lock.try_acquire(self.data(), Location::caller()) {
            Some(hold) => Ok(self.guard(hold)?),
            None => Err(TryLockError::WouldBlock),
        }
    }

    fn data(&self) -> Data<'_> {
        Data::new(&self.data, &self.lock.poison, &self.lock.stamp)
    }

    fn guard<'a>(&'a self, hold: Hold<'a>) -> LockResult<MutexGuard<'a, T>> {
        let guard = MutexGuard { mutex: self, hold, not_send: PhantomData };
        if guard.hold.found_poison { Err(PoisonError::new(guard)) } else { Ok(guard) }
    }

    /// Has a thread panicked while it held the mutex?
    #[track_caller]
    pub fn is_poisoned(&self) -> bool {
        self.lock.is_poisoned(self.data(), Location::caller())
    }

    /// Forgets that.
    #[track_caller]
    pub fn clear_poison(&self) {
        self.lock.clear_poison(self.data(), Location::caller());
    }

    /// The value, which nobody else can access.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        let poisoned = self.lock.poison.get();
        let value = self.data.get_mut();
        if poisoned { Err(PoisonError::new(value)) } else { Ok(value) }
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }

    pub(super) fn place(&self) -> Place {
        self.hold.place
    }

    /// Whoever has waited in a model has the mutex again: is it poisoned?
    pub(super) fn finds_poison_again(&self, place: Place) -> bool {
        let Lock { poison, stamp, .. } = &self.mutex.lock;
        poison.find(stamp, "… Condvar::wait", place)
    }

    /// The object of the mutex, in a model.
    pub(super) fn object(&self) -> Option<u32> {
        match self.hold.held {
            Some(Held::Model { object }) => Some(object),
            _ => None,
        }
    }

    /// The guard of the standard library, outside.
    pub(super) fn into_outside(mut self) -> Option<std::sync::MutexGuard<'a, ()>> {
        match self.hold.held.take() {
            Some(Held::Outside { guard, .. }) => Some(guard),
            other => {
                self.hold.held = other;
                None
            }
        }
    }

    pub(super) fn from_outside(
        mutex: &'a Mutex<T>,
        guard: std::sync::MutexGuard<'a, ()>,
        place: Place,
    ) -> LockResult<Self> {
        mutex.guard(mutex.lock.hold(mutex.lock.held(guard, place), "… Condvar::wait", place))
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard holds the mutex.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        rt::note_change_of(&self.mutex.lock.stamp);
        // SAFETY: the guard holds the mutex, and it is borrowed exclusively.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// As the standard library has it. In a model the data is not looked at: that would be an event.
impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Mutex");
        if !rt::in_model() {
            match try_take(&self.lock.outside).filter(|_| !self.lock.stamp.is_in_use()) {
                None => text.field("data", &"<locked>"),
                Some(_guard) => {
                    // SAFETY: the mutex is held as long as the guard is there, to the end of the match.
                    let data = unsafe { &*self.data.get() };
                    text.field("data", &data)
                }
            };
        }
        text.field("poisoned", &self.lock.poison.get()).finish_non_exhaustive()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}
