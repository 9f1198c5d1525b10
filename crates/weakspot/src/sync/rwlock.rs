//! The readers-writer lock.
//!
//! Inside a model its word says who has it, or says only that a writer has it, and readers have shares: [`crate::rt::shares`].

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::rt::kept::Data;
use crate::rt::ordinary::{Holding, How, Writer, if_free, is_read_here};
use crate::rt::poison::Poison;
use crate::rt::shares::READS;
use crate::rt::{self, Place, Runtime, Step, Sync as Synchronises, Word};

/// The word of a lock that a writer has.
const WRITER: u64 = 1;
/// One reader.
const READER: u64 = 2;

/// A readers-writer lock. It poisons as the standard library's does.
pub struct RwLock<T: ?Sized> {
    outside: std::sync::RwLock<()>,
    /// Whose turn it is to write, outside of models: a writer that becomes a reader keeps other writers out meanwhile.
    turn: std::sync::Mutex<()>,
    poison: Poison,
    word: Word,
    /// The last run that has come to write.
    writer: Writer,
    data: UnsafeCell<T>,
}

// SAFETY: the lock hands out its data to one writer or to readers: outside a model by `outside`, inside by its events,
// which all happen on one OS thread, and between the two as `rt::ordinary` says.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}
// A panic while the data is changed poisons the lock.
impl<T: ?Sized> UnwindSafe for RwLock<T> {}
impl<T: ?Sized> RefUnwindSafe for RwLock<T> {}

/// Read access to the data of a lock.
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    _outside: Option<(std::sync::RwLockReadGuard<'a, ()>, Holding)>,
    /// Where it was made.
    place: Place,
    /// The thread of a model that reads. Whoever drops the guard may be another one.
    reader: Option<u32>,
}

/// Write access to the data of a lock.
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    outside: Option<(Turn<'a>, Holding)>,
    was_panicking: bool,
    /// Where it was made.
    place: Place,
}

/// A writer outside of models.
struct Turn<'a> {
    /// Given back first.
    alone: std::sync::RwLockWriteGuard<'a, ()>,
    turn: std::sync::MutexGuard<'a, ()>,
}

// SAFETY: shared guards give shared access to the data.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T> RwLock<T> {
    /// A lock around a value.
    pub const fn new(value: T) -> Self {
        Self {
            outside: std::sync::RwLock::new(()),
            turn: std::sync::Mutex::new(()),
            poison: Poison::new(),
            word: Word::new(0),
            writer: Writer::new(),
            data: UnsafeCell::new(value),
        }
    }

    /// The value, at the end of the lock's life.
    pub fn into_inner(self) -> LockResult<T> {
        let poisoned = self.poison.get();
        let value = self.data.into_inner();
        if poisoned { Err(PoisonError::new(value)) } else { Ok(value) }
    }
}

fn add_reader(word: u64) -> Step {
    if word & WRITER == 0 { Step::Write(word + READER) } else { Step::Block }
}

fn add_writer(word: u64) -> Step {
    if word == 0 { Step::Write(WRITER) } else { Step::Block }
}

fn or_keep(step: Step) -> Step {
    if step == Step::Block { Step::Keep } else { step }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until there is no writer.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let place = Location::caller();
        if rt::in_model() {
            self.keep_to_read(place);
            self.begin_to_read(place);
            return self.reader(None, "… RwLock::read", place);
        }
        self.word.stamp().let_models_first();
        let guard = self.outside.read().unwrap_or_else(PoisonError::into_inner);
        self.reader(Some((guard, self.held_to_read(place))), "… RwLock::read", place)
    }

    /// Waits until there is neither writer nor reader.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let place = Location::caller();
        if rt::in_model() {
            self.keep_to_write(place);
            self.begin_to_write(place);
            return self.writer(None, "… RwLock::write", place);
        }
        self.word.stamp().let_models_first();
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let alone = self.outside.write().unwrap_or_else(PoisonError::into_inner);
        self.writer(Some((Turn { alone, turn }, self.held_to_write(place))), "… RwLock::write", place)
    }

    /// Read access if there is no writer.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let place = Location::caller();
        if rt::in_model() {
            self.keep_to_read(place);
            if !self.tries("RwLock::try_read", add_reader) {
                return Err(TryLockError::WouldBlock);
            }
            return Ok(self.reader(None, "… RwLock::try_read", place)?);
        }
        match self.try_read_outside() {
            Some(guard) => Ok(self.reader(Some((guard, self.held_to_read(place))), "… RwLock::try_read", place)?),
            None => Err(TryLockError::WouldBlock),
        }
    }

    fn try_read_outside(&self) -> Option<std::sync::RwLockReadGuard<'_, ()>> {
        if_free(self.outside.try_read()).filter(|_| !self.writer.is_in_use())
    }

    /// Write access if there is neither writer nor reader.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let place = Location::caller();
        if rt::in_model() {
            self.keep_to_write(place);
            if !self.tries("RwLock::try_write", add_writer) {
                return Err(TryLockError::WouldBlock);
            }
            return Ok(self.writer(None, "… RwLock::try_write", place)?);
        }
        match self.try_turn().filter(|_| !self.word.stamp().is_in_use()) {
            Some(turn) => Ok(self.writer(Some((turn, self.held_to_write(place))), "… RwLock::try_write", place)?),
            None => Err(TryLockError::WouldBlock),
        }
    }

    /// What a writer outside of models has, and a run when it comes to write.
    fn try_turn(&self) -> Option<Turn<'_>> {
        let turn = if_free(self.turn.try_lock())?;
        let alone = if_free(self.outside.try_write())?;
        Some(Turn { alone, turn })
    }

    /// Ordinary code has it, as soon as no model has.
    fn held_to_write(&self, place: Place) -> Holding {
        self.word.stamp().wait_alone_for_models(place);
        Holding::new(self.word.stamp(), How::Alone, place)
    }

    /// Ordinary code reads, as soon as no model may write.
    fn held_to_read(&self, place: Place) -> Holding {
        self.word.stamp().wait_for_writer(&self.writer, place);
        Holding::new(self.word.stamp(), How::Shared, place)
    }

    /// The run comes to the lock to read, perhaps for the first time.
    fn keep_to_read(&self, place: Place) {
        if rt::current().is_some_and(|runtime| runtime.writes(self.word.stamp())) {
            return self.keep_to_write(place);
        }
        let outside = || {
            if is_read_here(self.word.stamp()) { Some(None) } else { if_free(self.outside.try_read()).map(Some) }
        };
        self.word.keep(self.data(), outside, place);
    }

    /// The same to write.
    fn keep_to_write(&self, place: Place) {
        if let Some(runtime) = rt::current()
            && !self.writer.is(runtime)
        {
            let (stamp, has_read) = (self.word.stamp(), self.word.stamp().used(runtime).is_some());
            let was_used = !has_read && stamp.was_used();
            let outside = || {
                let turn = self.try_turn();
                // A writer outside waits until the run is over.
                if turn.is_none() && has_read && stamp.is_pending(runtime) { Some(None) } else { turn.map(Some) }
            };
            let turn = self.word.enter(runtime, self.data(), outside, place);
            self.writer.set(runtime, stamp, was_used);
            drop(turn);
        }
    }

    /// The run, and the object of the word, if readers have shares.
    fn shared<'r>(&self, place: Place) -> Option<(&'r Runtime, u32)> {
        let runtime = rt::current().filter(|runtime| runtime.has_shares())?;
        Some((runtime, self.word.come_to(runtime, place)))
    }

    fn begin_to_read(&self, place: Place) {
        match self.shared(place) {
            Some((runtime, lock)) => {
                runtime.begin_to_read(lock, place);
                self.word.stamp().check_freed(runtime, place);
            }
            None => _ = self.word.update_at(place, READS, Synchronises::Acquire, add_reader),
        }
    }

    fn begin_to_write(&self, place: Place) {
        let names = ("RwLock::write", "… RwLock::write");
        let begin = |what| _ = self.word.update_at(place, what, Synchronises::Acquire, add_writer);
        match self.shared(place) {
            Some((runtime, lock)) => runtime.begin_to_write(lock, names, place, begin),
            None => begin(names.0),
        }
    }

    fn end_to_read(&self, reader: u32, place: Place) {
        let what = "RwLock: end of read";
        match self.shared(place) {
            Some((runtime, lock)) => {
                runtime.end_to_read(lock, reader, what, place);
                self.word.stamp().check_freed(runtime, place);
            }
            // In a model that is not deterministic nobody may have begun to read, by what the explorer knows until it finds out.
            None => release(&self.word, place, what, |word| Step::Write(word.saturating_sub(READER))),
        }
    }

    /// The writer gives it back, or goes on reading.
    fn end_to_write(&self, names: (&'static str, &'static str), place: Place, goes_on: bool) {
        match self.shared(place) {
            Some((runtime, lock)) => {
                let end = |what| release(&self.word, place, what, |_| Step::Write(0));
                runtime.end_to_write(lock, names, place, goes_on, end);
            }
            None => release(&self.word, place, names.0, |_| Step::Write(if goes_on { READER } else { 0 })),
        }
    }

    /// Changes the state if that need not wait. std looks first: whoever is refused has no fence, and acquires nothing.
    #[track_caller]
    fn tries(&self, what: &'static str, step: fn(u64) -> Step) -> bool {
        if let Some(runtime) = rt::current() {
            runtime.observe_readers(Location::caller());
        }
        let syncs = (Synchronises::Acquire, Synchronises::Relaxed);
        let found = self.word.look_and_update(what, syncs, |word| or_keep(step(word)));
        step(found) != Step::Block
    }

    fn data(&self) -> Data<'_> {
        Data::new(&self.data, &self.poison, self.word.stamp())
    }

    fn reader<'a>(
        &'a self,
        outside: Option<(std::sync::RwLockReadGuard<'a, ()>, Holding)>,
        what: &'static str,
        place: Place,
    ) -> LockResult<RwLockReadGuard<'a, T>> {
        let guard = RwLockReadGuard { lock: self, _outside: outside, place, reader: rt::current_thread() };
        rt::note_guard(self.word.stamp(), true);
        if self.poison.find(self.word.stamp(), what, place) { Err(PoisonError::new(guard)) } else { Ok(guard) }
    }

    fn writer<'a>(
        &'a self,
        outside: Option<(Turn<'a>, Holding)>,
        what: &'static str,
        place: Place,
    ) -> LockResult<RwLockWriteGuard<'a, T>> {
        let guard = RwLockWriteGuard { lock: self, outside, was_panicking: crate::thread::panicking(), place };
        rt::note_guard(self.word.stamp(), true);
        if self.poison.find(self.word.stamp(), what, place) { Err(PoisonError::new(guard)) } else { Ok(guard) }
    }

    /// Has a thread panicked while it had write access?
    #[track_caller]
    pub fn is_poisoned(&self) -> bool {
        let place = Location::caller();
        if rt::in_model() {
            self.keep_to_read(place);
        } else {
            let _guard = if_free(self.outside.try_read());
            self.word.stamp().wait_for_writer(&self.writer, place);
        }
        self.poison.ask(self.word.stamp(), "RwLock::is_poisoned", place)
    }

    /// Forgets that.
    #[track_caller]
    pub fn clear_poison(&self) {
        let place = Location::caller();
        if rt::in_model() {
            self.keep_to_write(place);
        } else {
            let _guard = if_free(self.outside.try_read());
            self.word.stamp().wait_for_models(place);
        }
        self.poison.set(false, self.word.stamp(), "RwLock::clear_poison", place);
    }

    /// The value, which nobody else can access.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        let poisoned = self.poison.get();
        let value = self.data.get_mut();
        if poisoned { Err(PoisonError::new(value)) } else { Ok(value) }
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Goes on with read access. No other writer comes in between.
    #[track_caller]
    pub fn downgrade(this: Self) -> RwLockReadGuard<'a, T> {
        let mut this = ManuallyDrop::new(this);
        let (lock, place) = (this.lock, Location::caller());
        lock.end_to_write(("RwLockWriteGuard::downgrade", "… RwLockWriteGuard::downgrade"), place, true);
        let outside = this.outside.take().map(|(Turn { alone, turn }, mut holding)| {
            holding.downgrade();
            drop(alone);
            let guard = lock.outside.read().unwrap_or_else(PoisonError::into_inner);
            drop(turn);
            (guard, holding)
        });
        RwLockReadGuard { lock, _outside: outside, place, reader: rt::current_thread() }
    }
}

/// The compiler calls destructors, so there is no place in the source: `place` is where the guard was made.
fn release(word: &Word, place: Place, what: &'static str, step: impl Fn(u64) -> Step) {
    if rt::in_model() {
        word.update_at(place, what, Synchronises::Release, step);
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        rt::note_guard(self.lock.word.stamp(), false);
        self.lock.end_to_read(self.reader.unwrap_or_default(), self.place);
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        if !self.was_panicking && crate::thread::panicking() {
            self.lock.poison.set(true, self.lock.word.stamp(), "poisons the RwLock", self.place);
        }
        rt::note_guard(self.lock.word.stamp(), false);
        self.lock.end_to_write(("RwLock: end of write", "… RwLock: end of write"), self.place, false);
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard has read access.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard has write access.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        rt::note_change_of(self.lock.word.stamp());
        // SAFETY: the guard has write access, and it is borrowed exclusively.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RwLockWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

/// As the standard library has it. In a model the data is not looked at: that would be an event.
impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("RwLock");
        if !rt::in_model() {
            match self.try_read_outside() {
                Some(_guard) => {
                    // SAFETY: there is no writer as long as the guard is there.
                    let data = unsafe { &*self.data.get() };
                    text.field("data", &data)
                }
                None => text.field("data", &format_args!("<locked>")),
            };
        }
        text.field("poisoned", &self.poison.get()).finish_non_exhaustive()
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}
