//! Plain memory under the eyes of the race detector, and happens-before without an event.

use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use super::causality::{Began, Racing, Sync};
use super::lane::{Happened, Operation};
use super::objects::{NO_BIRTH, Stamp};
use super::runtime::Company;
use super::slot::{Memory, Slot};
use super::{Place, Runtime, current};
use crate::failure::{Failure, PlainMoment, RacingAccess};

/// Plain memory: reads and writes of it are checked for data races in a model, and cost nothing outside.
#[derive(Debug, Default)]
pub struct Tracked {
    /// The number of the run and that of the memory in the run.
    stamp: AtomicU64,
}

const NUMBER_BITS: u32 = 24;
/// The bit that tells plain memory from what has a [`Stamp`]; those below are its number.
const PLAIN: u64 = 1 << (NUMBER_BITS - 1);

/// The plain memory that a stamp of the run is of, or else the object.
#[allow(dead_code, reason = "asked where what is freed is known")]
pub(super) fn number_of(stamp: u64) -> Result<u32, u32> {
    if stamp & PLAIN != 0 { Ok((stamp & (PLAIN - 1)) as u32) } else { Err(Stamp::object_of(stamp)) }
}

impl Tracked {
    /// Memory that nobody has accessed.
    pub const fn new() -> Self {
        Self { stamp: AtomicU64::new(0) }
    }

    /// The same memory for a pointer that may outlive the borrow of it. To be called after an access.
    pub(crate) fn alias(&self) -> Self {
        Self { stamp: AtomicU64::new(self.stamp.load(Ordering::Relaxed)) }
    }

    /// The memory is read or written from now on.
    #[track_caller]
    pub(crate) fn begin(&self, writes: bool) -> Open {
        let place = Location::caller();
        let nothing = Began { ordinal: 0, since: 0 };
        let (thread, began) = current().map_or((0, nothing), |runtime| {
            runtime.come_to_plain(place);
            self.access(runtime, writes, place);
            self.note_begin(runtime, writes, place);
            (runtime.thread.get(), runtime.began_now())
        });
        let address = std::ptr::from_ref(self).addr();
        Open { memory: self.alias(), address, thread, writes, began, place }
    }

    /// An access begins that takes time: two of one thread that overlap must both read.
    fn note_begin(&self, runtime: &Runtime, writes: bool, place: Place) {
        if runtime.is_free() {
            return;
        }
        let thread = runtime.thread.get();
        let moment = runtime.plain_moment(place);
        let mine = Unfinished { stamp: self.stamp.load(Ordering::Relaxed), thread, writes, moment };
        let other = {
            let open = &mut runtime.state().open;
            let other = open.iter().copied().find(|other| other.is_of(&mine) && (other.writes || writes));
            open.push(mine);
            other
        };
        if let Some(other) = other {
            runtime.fail_with(Failure::overlap(thread, (other.writes, other.moment), (writes, moment)));
        }
    }

    /// The memory is read now.
    #[track_caller]
    pub fn read(&self) {
        if let Some(runtime) = current() {
            runtime.come_to_plain(Location::caller());
            self.access(runtime, false, Location::caller());
        }
    }

    /// The memory is written now.
    #[track_caller]
    pub fn write(&self) {
        if let Some(runtime) = current() {
            runtime.come_to_plain(Location::caller());
            self.access(runtime, true, Location::caller());
        }
    }

    fn access(&self, runtime: &Runtime, writes: bool, place: Place) {
        if !runtime.is_free() {
            self.access_since(runtime, runtime.began_now(), writes, place);
        }
    }

    /// The same for an access that has begun before.
    fn access_since(&self, runtime: &Runtime, began: Began, writes: bool, place: Place) {
        let thread = runtime.thread.get();
        let (stamp, run) = (self.stamp.load(Ordering::Relaxed), runtime.run.get());
        let moment = runtime.plain_moment(place);
        if stamp >> NUMBER_BITS != run {
            runtime.check_freed(std::ptr::from_ref(self).addr(), place);
        }
        let race = {
            let mut state = runtime.state();
            let plain = if stamp >> NUMBER_BITS == run {
                (stamp & (PLAIN - 1)) as u32
            } else {
                let birth = state.birth_at(std::ptr::from_ref(self).addr());
                let plain = state.causality.add_plain(birth.unwrap_or(NO_BIRTH));
                let new = run << NUMBER_BITS | PLAIN | u64::from(plain);
                if runtime.company.get() == Company::Alone {
                    self.stamp.store(new, Ordering::Relaxed);
                } else if runtime.is_foreign(stamp >> NUMBER_BITS)
                    || self.stamp.compare_exchange(stamp, new, Ordering::Relaxed, Ordering::Relaxed).is_err()
                {
                    drop(state);
                    return runtime.get_in_the_way(place);
                }
                plain
            };
            match state.causality.access(thread, plain, (writes, began), moment) {
                Ok(()) => None,
                Err(Racing::Access(other)) => Some(Failure::race(thread, writes, moment, other)),
                Err(Racing::Making(birth)) => {
                    state.maker(birth).map(|maker| Failure::race_with(thread, writes, place, Some(moment), maker))
                }
            }
        };
        if let Some(race) = race {
            runtime.fail_with(race);
        }
    }
}

impl Runtime {
    /// The current thread looks at an object that will not change any more: no event, but a use of its memory.
    pub(crate) fn use_unseen(&self, object: u32, stamp: &Stamp, place: Place) {
        self.come_to_plain(place);
        stamp.check_freed(self, place);
        let began = self.began_now();
        self.state().note_unseen(object, self.thread.get(), began, place);
    }

    /// The current thread is about to access plain memory. If it is to stop here, that is an event.
    fn come_to_plain(&self, place: Place) {
        if self.is_free() {
            return;
        }
        let thread = self.thread.get();
        let ordinal = {
            let plains = &mut self.state().lanes[thread as usize].plains;
            *plains += 1;
            *plains
        };
        if self.stops_at.get() == Some((thread, ordinal)) {
            self.post(Operation::Choose(1), "is about to use memory", place);
        }
    }

    /// An access of the current thread to plain memory, which it has come to, begins now.
    fn began_now(&self) -> Began {
        let state = self.state();
        Began { ordinal: state.lanes[self.thread.get() as usize].plains, since: state.log.len() as u32 }
    }

    /// Now.
    fn plain_moment(&self, place: Place) -> PlainMoment {
        PlainMoment { place, events: self.state().log.len() as u32 }
    }
}

/// An access that has begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unfinished {
    stamp: u64,
    thread: u32,
    writes: bool,
    moment: PlainMoment,
}

impl Unfinished {
    /// Is it one of the same thread to the same memory?
    fn is_of(&self, other: &Self) -> bool {
        (self.stamp, self.thread) == (other.stamp, other.thread)
    }
}

/// An access that takes time: what happens meanwhile does not come after it. It ends when this is dropped, by a panic, too.
pub(crate) struct Open {
    /// The memory, which may be gone when the access ends.
    memory: Tracked,
    /// Where it is.
    address: usize,
    /// Whose it is, wherever it ends.
    thread: u32,
    writes: bool,
    began: Began,
    place: Place,
}

impl Open {
    /// The memory is used through a pointer.
    #[track_caller]
    pub(crate) fn use_now(&self) {
        if let Some(runtime) = current() {
            runtime.come_to_plain(Location::caller());
            runtime.check_freed(self.address, Location::caller());
            self.memory.access(runtime, self.writes, Location::caller());
        }
    }

    /// The access is over. If nothing has happened since it began, nothing is to be checked again; nor, if it does not last
    /// until its end, if that was one event, and the last that it did.
    fn end(&self) {
        let Some(runtime) = current().filter(|runtime| !runtime.is_free()) else { return };
        self.note_end(runtime);
        let is_known = self.memory.stamp.load(Ordering::Relaxed) >> NUMBER_BITS == runtime.run.get();
        if is_known && self.has_lasted(runtime) && !std::thread::panicking() {
            let began = if runtime.lasting.get() { self.come_to_end(runtime) } else { self.began };
            self.memory.access_since(runtime, began, self.writes, self.place);
        }
    }

    /// An access lasts until here: the memory must be there still. (Who frees it himself knows that he does not use it any more.)
    fn come_to_end(&self, runtime: &Runtime) -> Began {
        runtime.come_to_plain(self.place);
        runtime.check_freed_by_others(self.address, self.place);
        runtime.began_now()
    }

    fn has_lasted(&self, runtime: &Runtime) -> bool {
        let state = runtime.state();
        let since = state.log.get(self.began.since as usize..).unwrap_or_default();
        if runtime.lasting.get() {
            return !since.is_empty();
        }
        let own = since.iter().filter(|happened| happened.thread == self.thread).count();
        // Who gives way to others after an event goes on after it, too.
        own > 1 || own == 1 && state.lanes[self.thread as usize].marker != 0
    }

    fn note_end(&self, runtime: &Runtime) {
        let &Self { ref memory, thread, writes, place, .. } = self;
        let moment = runtime.plain_moment(place);
        let mine = Unfinished { stamp: memory.stamp.load(Ordering::Relaxed), thread, writes, moment };
        let open = &mut runtime.state().open;
        if let Some(at) = open.iter().rposition(|other| other.is_of(&mine) && other.writes == mine.writes) {
            open.swap_remove(at);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.end();
    }
}

/// An atomic is accessed as plain memory now: what other threads have done to it must happen before.
pub(crate) fn access_atomic<M: Memory>(slot: &Slot<M>, writes: bool, place: Place) {
    let Some(runtime) = current().filter(|runtime| !runtime.is_free() && !runtime.buffered.get()) else { return };
    let Some(object) = slot.used(runtime) else { return };
    access_object(runtime, object, writes, place);
}

fn access_object(runtime: &Runtime, object: u32, writes: bool, place: Place) {
    let thread = runtime.thread.get();
    let race = {
        let state = &mut *runtime.state();
        let other = state.causality.unordered(thread, object, !writes);
        other.and_then(|other| last_access(&state.log, other, object, !writes))
    };
    if let Some(other) = race {
        let moment = runtime.plain_moment(place);
        runtime.fail_with(Failure::race_with(thread, writes, place, Some(moment), other));
    }
}

/// The last access of a thread to an object, or its last write.
fn last_access(log: &[Happened], thread: u32, object: u32, written: bool) -> Option<RacingAccess> {
    log.iter().rev().filter(|happened| happened.thread == thread).find_map(|happened| {
        let writes = match happened.operation {
            Operation::Load(of) if of == object => false,
            Operation::Store(of, _) | Operation::InterlockedStore(of, _) if of == object => true,
            Operation::Rmw { object: of, .. } if of == object => happened.written.is_some(),
            _ => return None,
        };
        let place = happened.place.into();
        (writes || !written).then_some(RacingAccess { thread, writes, makes: false, place, moment: None })
    })
}

/// Happens-before that is handed on without an event.
#[derive(Debug, Default)]
pub struct Clock {
    stamp: Stamp,
}

impl Clock {
    /// Nothing was released.
    pub const fn new() -> Self {
        Self { stamp: Stamp::new() }
    }

    /// What the current thread has done happens before whatever acquires this later.
    #[track_caller]
    pub fn release(&self) {
        if let Some(runtime) = current()
            && !runtime.is_free()
        {
            let object = self.stamp.plain_object(runtime, Location::caller());
            let thread = runtime.thread.get();
            runtime.state().causality.write(thread, object, Sync::Release, true);
        }
    }

    /// What was released happens before what the current thread does next.
    #[track_caller]
    pub fn acquire(&self) {
        if let Some(runtime) = current()
            && !runtime.is_free()
        {
            let object = self.stamp.plain_object(runtime, Location::caller());
            let thread = runtime.thread.get();
            runtime.state().causality.read(thread, object, Sync::Acquire);
        }
    }
}
