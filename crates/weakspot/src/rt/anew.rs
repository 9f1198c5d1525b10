//! Executions that begin again, because they were in the way.
//!
//! # Who waits for whom
//! An execution has every lock and atomic that it comes to until it is over, and it comes to them in the order in which its
//! threads use them. Ordinary code takes them in an order of its own. So it may hold one lock and wait for another one that the
//! execution has, while the execution waits for the first. Neither can go on, and nothing is wrong with either: the threads
//! of the model have given back what the execution keeps.
//!
//! # The rule
//! An execution that has to wait for ordinary code, while somebody waits for the execution, makes way:
//!
//! 1. Its threads are brought to their end like those of every run that is given up (see `finish`). Whoever would have to
//!    wait for ordinary code unwinds, and so does whoever takes a lock whose data is not put back. So what they own is
//!    destroyed; no lock is poisoned.
//! 2. Everything is put back, and the run is over. All who have waited for it go on, with what was there before.
//! 3. The same execution begins again, in a new run whose threads get the results that they were given before. The explorer is
//!    told nothing: it has let a thread go on, and that comes to its next event, at last. So the execution is counted once.
//!
//! The new run finds all it uses as ordinary code has left it, so that what is kept under two locks belongs together. To wait in
//! the middle, with everything put back meanwhile, would be simpler, but the threads would have seen one half as it was before.
//!
//! It does so at once if whoever holds the lock is seen to wait for the execution. The holder may also wait for somebody who
//! waits for the execution, by means that nobody sees here (a channel, the end of a thread). So after a while it is enough that
//! anybody waits.
//!
//! An execution does not make way if it has changed what is not put back: data with a destructor in a static lock, or what a
//! lock holds that the closure has captured. To leave the threads at that point could leave half a change behind. Where the
//! bytes are all there is of the data, it has changed if they are not what they were. What has a destructor, or pointers, is also
//! changed by who asks for exclusive access.
//!
//! # Courtesy
//! Ordinary code that takes two locks again and again would be met by the new run as it was by the old one. So an execution that
//! begins again asks for the locks that it had come to, and for the one that it has waited for. Ordinary code that
//! holds no lock leaves these alone until the execution is over; code that holds one does not, since it may be waited for. That
//! keeps nobody from anything for long: if the execution has to wait for longer than a moment, it takes back what it asked for.
//!
//! # What differs
//! The threads may do something else in the new run, because of what ordinary code has changed, or an atomic may begin with
//! another value. Then what the explorer knows of the execution is no longer true, and the model is not deterministic: it is
//! explored anew from its first execution, as all such models are, and now all of them begin with the new values.
//!
//! # Two models
//! Runs of models that have captured the same locks or atomics may wait for each other, too. Of all that wait in a circle,
//! one waits for a model with a lower number than its own, and makes way. A run that waits for the statics, which another
//! model may have for long, makes way for everybody, and begins again when it has them: until then it needs nothing else, and
//! what it had would only be in the way of the other model, which may have many executions to come.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::kept::Kept;
use super::lane::{Effect, Happened, Operation};
use super::objects::Object;
use super::runtime::{Company, Runtime};
use super::script::Script;
use super::turns::{self, Pause};
use super::{Place, enter, statics};
use crate::failure::{Failure, FailureKind};

/// Locks that executions have asked for: the model, and the address.
static ASKED: Mutex<Vec<(u64, usize)>> = Mutex::new(Vec::new());
/// Are there any?
static ANY: AtomicBool = AtomicBool::new(false);

/// How long an execution that has asked for locks waits for another one before it takes that back.
const MOMENT: Duration = Duration::from_millis(20);

fn asked() -> MutexGuard<'static, Vec<(u64, usize)>> {
    ASKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has an execution asked for what is at this address?
#[inline]
pub(super) fn is_asked_for(address: usize) -> bool {
    ANY.load(Ordering::Relaxed) && asked().iter().any(|&(_, one)| one == address)
}

/// What a runtime knows of making way.
#[derive(Default)]
pub(crate) struct Anew {
    /// A thread has found that the run is in the way.
    is_due: Cell<bool>,
    /// The threads of such a run are brought to their end.
    makes_way: Cell<bool>,
    /// The locks that the run has come to.
    entered: RefCell<Vec<usize>>,
    /// What the execution waits for, and since when, however often it has begun again.
    waits: Cell<Option<(usize, Instant)>>,
    has_asked: Cell<bool>,
    /// A thread has waited for the statics.
    wants_statics: Cell<bool>,
    /// Locks that the run has come to whose data is not put back.
    lasting: RefCell<Vec<Lasting>>,
    /// Where the run has come to one that it has changed.
    changed: Cell<Option<Place>>,
    /// The same, where a thread that waits would make way.
    kept_by: Cell<Option<Place>>,
    /// An execution was another one when it began again.
    pub(crate) was_another: Cell<bool>,
}

/// A lock whose data is not put back.
struct Lasting {
    address: usize,
    /// Where the run has come to it.
    place: Place,
    /// The data as it was then.
    before: Kept,
    /// Are the bytes all there is of it?
    is_plain: bool,
    /// How many guards there are.
    guards: u32,
    /// Was it something else when a guard was dropped last?
    differed: bool,
}

impl Lasting {
    /// Is the data something else than it was? What holds a `Cell` or an atomic of `std` may be changed by who only reads it.
    /// (What it points to is not seen.)
    fn differs(&self) -> bool {
        // SAFETY: a guard borrows the lock, so the data is there, and the threads of the run are on this OS thread.
        if self.guards > 0 { !unsafe { self.before.is_same() } } else { self.differed }
    }
}

/// Who has what a run waits for.
#[derive(Clone, Copy)]
pub(super) enum Whom {
    Ordinary,
    /// The model of this number.
    Model(u64),
}

/// What comes of waiting.
pub(super) enum Waited<T> {
    Found(T),
    TooLong,
    /// The run is in the way: see [`Runtime::make_way`].
    InTheWay,
}

/// What has happened in an execution so far, and what its threads were about to do.
struct Past {
    log: Vec<Happened>,
    objects: Vec<Object>,
    bound: Vec<u32>,
    operations: Vec<Operation>,
    script: Script,
    /// The thread that had to wait, and where.
    waits: (u32, Place),
}

impl Runtime {
    /// The run comes to a lock.
    pub(super) fn note_entered(&self, address: usize) {
        self.anew.entered.borrow_mut().push(address);
    }

    /// The run comes to a lock whose data is not put back when it is over.
    pub(super) fn note_lasting(&self, address: usize, before: Kept, is_plain: bool, place: Place) {
        let lock = Lasting { address, place, before, is_plain, guards: 0, differed: false };
        self.unnoted(|| self.anew.lasting.borrow_mut().push(lock));
    }

    /// There is one guard more, or one less, of a lock.
    #[inline]
    pub(super) fn note_guard(&self, address: usize, is_there: bool) {
        let mut lasting = self.anew.lasting.borrow_mut();
        let Some(lock) = lasting.iter_mut().find(|lock| lock.address == address) else { return };
        if is_there {
            lock.guards += 1;
            drop(lasting);
            // It could come to wait before it has ended the change that it begins here. Destructors may have to undo one.
            if self.makes_way() && !std::thread::panicking() && self.may_make_way() {
                self.make_way(address);
            }
            return;
        }
        lock.differed = lock.differs();
        lock.guards = lock.guards.saturating_sub(1);
        if lock.differed && !lock.is_plain {
            self.note_lasting_change(lock.place);
        }
    }

    /// Where it has come to a lock that it has changed, if that is not put back. What the threads do while they are brought to
    /// their end is no reason to leave them waiting there.
    fn changed(&self) -> Option<Place> {
        let differs = || self.anew.lasting.borrow().iter().find(|lock| lock.differs()).map(|lock| lock.place);
        if self.makes_way() { None } else { self.anew.changed.get().or_else(differs) }
    }

    /// The run may change what a lock holds.
    pub(super) fn note_change_of(&self, address: usize) {
        self.note_change_unless(address, |lock| lock.is_plain);
    }

    /// The run poisons a lock, or takes that back.
    pub(super) fn note_poison_of(&self, address: usize) {
        self.note_change_unless(address, |_| false);
    }

    fn note_change_unless(&self, address: usize, is_seen: impl Fn(&Lasting) -> bool) {
        let lasting = self.anew.lasting.borrow();
        if let Some(lock) = lasting.iter().find(|lock| lock.address == address).filter(|lock| !is_seen(lock)) {
            self.note_lasting_change(lock.place);
        }
    }

    fn note_lasting_change(&self, place: Place) {
        if !self.makes_way() {
            self.anew.changed.set(Some(place));
        }
    }

    /// A run begins.
    pub(super) fn forget_entered(&self) {
        self.anew.entered.borrow_mut().clear();
        self.anew.lasting.borrow_mut().clear();
        self.anew.changed.set(None);
    }

    /// Why it does not make way, if it cannot because of what it has done: to be said of those who wait for each other.
    pub(super) fn why_in_the_way(&self) -> String {
        let changed = self.anew.kept_by.get();
        let why = |place| {
            format!(
                ". The execution would make way, but it has changed what the lock at {place} holds, and that is not put back"
            )
        };
        changed.map(why).unwrap_or_default()
    }

    /// Is the run to begin again?
    #[inline]
    pub(super) fn is_in_the_way(&self) -> bool {
        self.anew.is_due.get()
    }

    /// Do its threads end because somebody needs what they use? Then they do not panic, whatever it looks like.
    pub(super) fn makes_way(&self) -> bool {
        self.anew.makes_way.get()
    }

    /// The current thread waits for something at this address that another OS thread has.
    pub(super) fn wait_outside<T>(&self, address: usize, whom: Whom, something: impl Fn() -> Option<T>) -> Waited<T> {
        self.rests();
        let begin = Instant::now();
        let known = self.anew.waits.get().filter(|&(known, _)| known == address);
        let start = known.map_or(begin, |(_, start)| start);
        self.anew.waits.set(Some((address, start)));
        self.anew.kept_by.set(None);
        if let Whom::Model(other) = whom {
            turns::wait_for_model(self.number, Some(other));
        }
        let is_due = || match whom {
            Whom::Ordinary => turns::is_waited_for_by_holder(self.number, address),
            Whom::Model(other) => self.number > other && turns::waits_for_itself(self.number),
        };
        let mut pause = Pause::default();
        let waited = loop {
            if let Some(found) = something() {
                self.anew.waits.set(None);
                break Waited::Found(found);
            }
            if start.elapsed() > turns::patience() {
                break Waited::TooLong;
            }
            if is_due() || self.is_unlucky(begin) {
                if self.may_make_way() {
                    break Waited::InTheWay;
                }
                self.anew.kept_by.set(self.changed());
            }
            if begin.elapsed() > MOMENT {
                self.take_back();
            }
            pause.make();
        };
        turns::wait_for_model(self.number, None);
        waited
    }

    /// Has it waited for a while, since then, and somebody waits for it? Or does it make way already?
    fn is_unlucky(&self, begin: Instant) -> bool {
        self.makes_way() || turns::is_waited_for(self.number) && begin.elapsed() > turns::patience() / 10
    }

    /// Waits until the statics are those of the model, whose current thread comes to the one at this address.
    #[cold]
    pub(super) fn take_statics(&self, claim: u64, address: usize) {
        self.rests();
        while !statics::take(claim, MOMENT) {
            if (self.makes_way() || turns::is_waited_for(self.number)) && self.may_make_way() {
                self.anew.wants_statics.set(true);
                self.make_way(address);
            }
        }
        self.claim.set(None);
    }

    /// The same between two runs, if the one before has waited for them.
    fn take_statics_if_wanted(&self) {
        if self.anew.wants_statics.replace(false)
            && let Some(claim) = self.claim.get()
        {
            self.rests();
            while !statics::take(claim, MOMENT) {
                self.take_back();
            }
            self.claim.set(None);
        }
    }

    /// Can the run be given up here?
    fn may_make_way(&self) -> bool {
        let is_thread = || !self.state().lanes[self.thread.get() as usize].suspender.is_null();
        // A thread that unwinds cannot unwind because of something else, and would be left behind.
        let can_unwind = || self.makes_way() || !std::thread::panicking();
        self.changed().is_none() && is_thread() && can_unwind()
    }

    /// The current thread, which holds nothing, waits for what is at this address: the run is given up.
    pub(super) fn make_way(&self, address: usize) -> ! {
        if !self.is_free() {
            // Others wait for all workers of the model, or for one of them.
            if self.company.get() != Company::Alone {
                let place = self.state().lanes[self.thread.get() as usize].place;
                self.get_in_the_way(place);
            }
            self.note_entered(address);
            self.anew.is_due.set(true);
            self.give_way();
        }
        if cfg!(panic = "abort") || std::thread::panicking() {
            self.stop();
        }
        std::panic::resume_unwind(Box::new("the execution makes way for ordinary code".to_owned()))
    }

    /// Asks ordinary code for the locks that the run has come to.
    fn ask(&self) {
        let entered = self.anew.entered.borrow();
        let mut asked = asked();
        asked.retain(|&(model, _)| model != self.number);
        asked.extend(entered.iter().map(|&address| (self.number, address)));
        ANY.store(true, Ordering::Relaxed);
        self.anew.has_asked.set(true);
    }

    fn take_back(&self) {
        if self.anew.has_asked.replace(false) {
            let mut asked = asked();
            asked.retain(|&(model, _)| model != self.number);
            ANY.store(!asked.is_empty(), Ordering::Relaxed);
        }
    }

    /// The execution is over.
    #[inline]
    pub(super) fn forget_waiting(&self) {
        self.anew.waits.set(None);
        self.take_back();
    }

    /// Begins the execution again, if that is due.
    #[inline]
    pub(super) fn begin_again_if_due(&self) {
        if self.is_in_the_way() {
            self.begin_again();
        }
    }

    #[cold]
    fn begin_again(&self) {
        let past = self.past();
        while self.anew.is_due.replace(false) {
            self.ask();
            self.anew.makes_way.set(true);
            self.finish_run(true);
            self.anew.makes_way.set(false);
            turns::make_way(self.number);
            self.take_statics_if_wanted();
            self.begin_run();
            if !self.is_in_the_way() && !self.follow_past(&past) {
                return self.be_another(past);
            }
        }
        self.state().script = past.script;
    }

    /// What has happened so far. The script is taken away: the threads are not to follow it meanwhile.
    fn past(&self) -> Past {
        let thread = self.thread.get();
        let state = &mut *self.state();
        Past {
            log: state.log.clone(),
            objects: state.objects.clone(),
            bound: state.bound.clone(),
            operations: state.lanes.iter().map(|lane| lane.operation).collect(),
            script: std::mem::take(&mut state.script),
            waits: (thread, state.lanes[thread as usize].place),
        }
    }

    /// Lets everything happen again in a run that has begun: false if it differs. It may be in the way again.
    fn follow_past(&self, past: &Past) -> bool {
        for happened in &past.log {
            let thread = happened.thread as usize;
            if let Operation::Commit(object) = happened.operation {
                self.commit(thread, object);
                continue;
            }
            {
                let state = &mut *self.state();
                let Some(lane) = state.lanes.get(thread) else { return false };
                if !is_like(lane.operation, happened.operation) || !writes_alike(lane.operation, happened) {
                    return false;
                }
                lane.written.set(happened.written);
                Self::note_event(state, thread, happened.result);
            }
            enter(self, || self.run_on(thread, happened.result));
            if self.is_in_the_way() {
                return true;
            }
        }
        let state = &mut *self.state();
        let mut lanes = state.lanes.iter().zip(&past.operations).enumerate();
        // The one that had to wait has come to its next event.
        let is_same = lanes.all(|(at, (lane, then))| at == past.waits.0 as usize || is_like(lane.operation, *then));
        // Objects that have no number have not been looked at by anybody.
        let numbered = || past.objects.iter().enumerate().filter(|(_, then)| then.cell != Object::UNBOUND);
        let begins =
            |(at, then): (usize, &Object)| state.objects.get(at).is_some_and(|now| now.initial == then.initial);
        if !is_same || !numbered().all(begins) {
            return false;
        }
        for (at, then) in numbered() {
            (state.objects[at].cell, state.objects[at].value) = (then.cell, then.value);
        }
        state.bound.clone_from(&past.bound);
        true
    }

    /// The execution is not what it was: it fails.
    fn be_another(&self, past: Past) {
        self.finish_run(true);
        let (thread, place) = past.waits;
        let state = &mut *self.state();
        state.forget_run();
        (state.log, state.objects, state.bound, state.script) = (past.log, past.objects, past.bound, past.script);
        for (lane, operation) in state.lanes.iter_mut().zip(past.operations) {
            if Self::is_there(operation) {
                lane.operation = Operation::Failed;
            }
        }
        let message = format!(
            "thread {thread} waited for a lock that ordinary code, on another OS thread, held while it waited for the \
             execution. So the execution was begun again, and did something else: ordinary code has changed what the model \
             begins with"
        );
        self.anew.was_another.set(true);
        let failure = Failure::new(FailureKind::NotDeterministic, message).of_thread(thread).at(Some(place.into()));
        self.note_failure(failure);
    }
}

/// If a thread is about to do what has written something, will it write the same?
fn writes_alike(now: Operation, then: &Happened) -> bool {
    let (Operation::Rmw { probe, .. }, Some(written)) = (now, then.written) else { return true };
    // SAFETY: the thread is suspended in the call that owns the probe.
    let (_, effect) = unsafe { (*probe)(Some(then.result as u64)) };
    effect == Effect::Writes(written as u64)
}

/// Is a thread about to do the same?
fn is_like(now: Operation, then: Operation) -> bool {
    use Operation::{Choose, InterlockedStore, Notify, Rmw, Store, Wait};
    match (now, then) {
        (
            Rmw { object, drains_all, may_block, looks, .. },
            Rmw { object: o, drains_all: d, may_block: b, looks: l, .. },
        ) => (object, drains_all, may_block, looks) == (o, d, b, l),
        (Store(object, value), Store(o, v)) | (InterlockedStore(object, value), InterlockedStore(o, v)) => {
            (object, value) == (o, v)
        }
        (Wait { condvar, mutex }, Wait { condvar: c, mutex: m }) => (condvar, mutex) == (c, m),
        (Notify { condvar, all }, Notify { condvar: c, all: a }) => (condvar, all) == (c, a),
        (Choose(count), Choose(c)) => count == c,
        (Operation::Fence(kind), Operation::Fence(k)) => kind == k,
        _ => std::mem::discriminant(&now) == std::mem::discriminant(&then) && now.object() == then.object(),
    }
}
