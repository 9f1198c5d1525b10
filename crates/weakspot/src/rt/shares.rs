//! Readers of an `RwLock`, of whom nobody can tell which came first.
//!
//! If a lock was one word that counts its readers, each of them would overwrite what the one before has written, and three that only
//! read would have 90 executions, all alike. So every thread that reads has a word of its own for the lock, its *share*. A reader
//! changes its own share only, and a writer takes all of them, one after the other, behind the word of the lock, which keeps other
//! writers out. What a trace then tells of a reader and a writer is which of them came first, and of two readers it tells nothing.
//!
//! # Who reads
//! A writer has to know whose shares there are, and that is found out: a thread that comes to read for the first time is noted, and the
//! exploration begins anew. What is known is a part of every schedule ([`observed`](super::observed)).
//!
//! # Writers that have not come far enough
//! A writer that has some of the shares and waits for another one is an invention: in truth it has nothing, and who comes to read
//! gets in. In every execution that comes to an end the two are the same: whoever came to read meanwhile has waited, and had it come
//! later, nothing would be different. But a reader may wait for such a writer, who waits for another reader, who waits for the first
//! one. That is no deadlock ([`Runtime::is_kept_out_in_vain`]): such an execution is none, and there is another one in which the reader
//! came before the writer had begun. In a run that is given up (see [`finish`](super::finish)) such a writer lets readers in, and waits
//! until they have gone.
//!
//! # Where it matters
//! Whoever is refused (`try_read`, `try_write`) has seen how things are at one moment. A model that asks for that, and one that is run
//! schedule by schedule, where a writer that has come half the way would be met as it is, has locks of one word again.

use super::causality::Sync;
use super::interlocked::Manner;
use super::lane::{Effect, Lane, Operation};
use super::runtime::Runtime;
use super::{Place, Step};

/// What coming to read is called.
pub(crate) const READS: &str = "RwLock::read";

/// A share that is a writer's.
const TAKEN: u64 = 1;
/// A reader has it, once. It may read several times at once.
const READ_ONCE: u64 = 2;

/// What a thread has of a lock.
#[derive(Debug)]
struct Share {
    /// The word of the lock.
    lock: u32,
    thread: u32,
    value: u64,
}

/// The shares of a run.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// Locks have one word, and no shares.
    are_none: bool,
    all: Vec<Share>,
    /// Locks that writers have begun to take.
    half: Vec<u32>,
}

impl Shares {
    /// A new run.
    pub(super) fn reset(&mut self, are_none: bool) {
        self.are_none = are_none;
        self.all.clear();
        self.half.clear();
    }
}

/// Threads, by one bit for each.
pub(super) fn threads_of(bits: u64) -> impl Iterator<Item = u32> {
    (0..u64::BITS).filter(move |thread| bits & 1 << thread != 0)
}

impl Runtime {
    /// Do readers of the run have shares?
    pub(crate) fn has_shares(&self) -> bool {
        !self.shares.borrow().are_none
    }

    /// From now on it matters in which order readers come and go.
    pub(crate) fn order_readers(&self) {
        self.counts.borrow_mut().observed.readers.is_ordered = true;
    }

    /// The same because a thread asks for it: everything begins anew.
    pub(crate) fn observe_readers(&self, place: Place) {
        if self.is_free() || !self.has_shares() {
            return;
        }
        self.order_readers();
        self.counts.borrow_mut().found = true;
        self.fail("readers are observed".to_owned(), place)
    }

    /// The current thread is one of those that read. If that is new, everything begins anew.
    fn note_reader(&self, place: Place) {
        let bit = 1 << self.thread.get();
        if self.is_free() || self.counts.borrow().observed.readers.threads & bit != 0 {
            return;
        }
        {
            let mut counts = self.counts.borrow_mut();
            counts.observed.readers.threads |= bit;
            counts.found = true;
        }
        self.fail("a thread reads what a lock holds".to_owned(), place)
    }

    /// Which share that is.
    fn share_of(&self, lock: u32, thread: u32) -> usize {
        let all = &mut self.shares.borrow_mut().all;
        let known = all.iter().position(|share| (share.lock, share.thread) == (lock, thread));
        known.unwrap_or_else(|| {
            all.push(Share { lock, thread, value: 0 });
            all.len() - 1
        })
    }

    /// One event on the share of a thread.
    fn change_share(
        &self,
        (lock, thread): (u32, u32),
        (what, place): (&'static str, Place),
        sync: Sync,
        step: impl Fn(u64) -> Step,
    ) {
        let share = self.share_of(lock, thread);
        let object = self.part(lock, u64::from(thread), place);
        let probe = |value: Option<u64>| {
            let value = value.unwrap_or_else(|| self.shares.borrow().all[share].value);
            let effect = match step(value) {
                Step::Write(new) => Effect::Writes(new),
                Step::Keep => Effect::Reads,
                Step::Block => Effect::Blocks,
            };
            (value, effect)
        };
        let old = self.blocking_rmw(object, Manner { drains_all: true, looks: false }, &probe, what, place);
        let written = match probe(Some(old)).1 {
            Effect::Writes(new) => {
                self.shares.borrow_mut().all[share].value = new;
                true
            }
            _ => false,
        };
        self.synchronise_rmw(object, sync, written);
    }

    /// The current thread begins to read what a lock holds.
    pub(crate) fn begin_to_read(&self, lock: u32, place: Place) {
        self.note_reader(place);
        // Nobody explores what becomes of a run that is given up: nobody has to wait for a writer that has not come far enough.
        let may_come_in = || self.is_free() && self.shares.borrow().half.contains(&lock);
        self.change_share((lock, self.thread.get()), (READS, place), Sync::Acquire, |share| {
            if share & TAKEN == 0 || may_come_in() { Step::Write(share + READ_ONCE) } else { Step::Block }
        });
    }

    /// It ends, for the thread that has begun.
    pub(crate) fn end_to_read(&self, lock: u32, reader: u32, what: &'static str, place: Place) {
        // In a model that is not deterministic nobody may have begun to read, by what the explorer knows until it finds out.
        let one_less = |share: u64| Step::Write(if share < READ_ONCE { share } else { share - READ_ONCE });
        self.change_share((lock, reader), (what, place), Sync::Release, one_less);
    }

    /// Threads that have shares of a lock, or may get some.
    fn readers_of(&self, lock: u32) -> impl Iterator<Item = u32> + use<> {
        let shares = self.shares.borrow();
        let own = shares.all.iter().filter(|share| share.lock == lock).fold(0, |all, share| all | 1 << share.thread);
        let readers: u64 = self.counts.borrow().observed.readers.threads | own;
        threads_of(readers)
    }

    /// Takes a lock whose word the current thread is about to take, and all shares. `begin` takes the word, and is given what that
    /// is called. What is done last counts: see [`holders`](super::waiting).
    pub(crate) fn begin_to_write(
        &self,
        lock: u32,
        (what, again): (&'static str, &'static str),
        place: Place,
        begin: impl FnOnce(&'static str),
    ) {
        let readers: Vec<u32> = self.readers_of(lock).collect();
        let Some((&last, others)) = readers.split_last() else { return begin(what) };
        begin(again);
        self.shares.borrow_mut().half.push(lock);
        let take = |thread, what| {
            self.change_share((lock, thread), (what, place), Sync::Acquire, |share| {
                if share == 0 { Step::Write(TAKEN) } else { Step::Block }
            });
        };
        for &thread in others {
            take(thread, again);
        }
        take(last, what);
        // Of a run that is given up, readers have come in meanwhile.
        while self.is_free() && self.is_read(lock) && self.give_way() {}
        self.shares.borrow_mut().half.retain(|&half| half != lock);
    }

    /// Does somebody read what a lock holds?
    fn is_read(&self, lock: u32) -> bool {
        self.shares.borrow().all.iter().any(|share| share.lock == lock && share.value >= READ_ONCE)
    }

    /// Gives the shares of a lock back. If the current thread goes on reading, it keeps its own.
    pub(crate) fn end_to_write(
        &self,
        lock: u32,
        (what, again): (&'static str, &'static str),
        place: Place,
        goes_on: bool,
        end: impl FnOnce(&'static str),
    ) {
        if goes_on {
            self.note_reader(place);
        }
        let own = self.thread.get();
        let mut what = what;
        // Its own first: then whoever looks sees that it reads.
        let readers: Vec<u32> = self.readers_of(lock).collect();
        let own_first =
            readers.iter().filter(|&&thread| thread == own).chain(readers.iter().filter(|&&thread| thread != own));
        for &thread in own_first {
            let kept = if goes_on && thread == own { READ_ONCE } else { 0 };
            self.change_share((lock, thread), (what, place), Sync::Release, |share| {
                Step::Write((share & !TAKEN) + kept)
            });
            what = again;
        }
        end(what);
    }

    /// Does a reader wait for a writer that has not come far enough? Then this is no execution.
    pub(crate) fn is_kept_out_in_vain(&self) -> bool {
        let (shares, state) = (self.shares.borrow(), self.state());
        let waits = |lane: &Lane| match lane.operation {
            Operation::Rmw { object, .. } => lane.what == READS && shares.half.contains(&state.whole(object)),
            _ => false,
        };
        !shares.half.is_empty() && state.lanes.iter().any(waits)
    }
}
