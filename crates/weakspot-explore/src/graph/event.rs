//! Events, and the ends of the threads.

use weakspot_model::ir::FenceKind;

use crate::system::{CellId, Token};

/// What an event is. The parts of one atomic are two events, a read and at once its write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A plain read.
    Load,
    /// A plain write.
    Store,
    /// A plain write that waits until it is in memory.
    InterlockedStore,
    /// The read of an atomic.
    RmwRead(Manner),
    /// The write of an atomic, if it writes.
    RmwWrite {
        /// Waits for the whole own buffer under PSO too.
        drains_all: bool,
    },
    /// The read of an acquisition.
    LockRead,
    /// The write of an acquisition; absent while the thread waits for the mutex.
    LockWrite,
    /// A release.
    Unlock,
    /// The read of the beginning of a `wait`.
    WaitRead,
    /// The write of the beginning of a `wait`.
    WaitWrite,
    /// The release at the beginning of a `wait`.
    WaitUnlock,
    /// Being woken: reads the notification.
    WakeRead,
    /// The write of a wake-up without a notification: the thread leaves the list of waiters.
    WakeWrite,
    /// The read of a notification: who waits?
    NotifyRead,
    /// The write of a notification, if anybody waits.
    NotifyWrite,
    /// The only write of its cell.
    Signal,
    /// Reads the only write of its cell.
    Await,
    /// A fence.
    Fence(FenceKind),
    /// A value was chosen.
    Choose,
    /// A critical block was left.
    LeaveCritical,
    /// A mutex was released that was not held: the thread has failed.
    Misuse,
}

/// What the read of an atomic waits for. (One byte: kinds of events are copied and compared all the time.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Manner {
    /// For the own stores to its cell; under TSO for the whole own buffer.
    Own,
    /// For the whole own buffer under PSO too.
    All,
    /// A plain load, which waits for nothing. If a write follows, that waits for the own stores to its cell.
    LookThenOwn,
    /// The same, and the write waits for the whole own buffer.
    LookThenAll,
}

impl Manner {
    /// Of an atomic that waits for the whole own buffer, or looks before it acts.
    pub fn new(drains_all: bool, looks: bool) -> Self {
        match (drains_all, looks) {
            (false, false) => Self::Own,
            (true, false) => Self::All,
            (false, true) => Self::LookThenOwn,
            (true, true) => Self::LookThenAll,
        }
    }

    /// Does the atomic wait for the whole own buffer under PSO too?
    #[inline]
    pub fn drains_all(self) -> bool {
        matches!(self, Self::All | Self::LookThenAll)
    }

    /// Is the read a plain load?
    #[inline]
    pub fn looks(self) -> bool {
        matches!(self, Self::LookThenOwn | Self::LookThenAll)
    }
}

impl EventKind {
    /// Does it read a cell?
    #[inline]
    pub fn is_read(self) -> bool {
        matches!(
            self,
            Self::Load
                | Self::RmwRead(_)
                | Self::LockRead
                | Self::WaitRead
                | Self::WakeRead
                | Self::NotifyRead
                | Self::Await
        )
    }

    /// Does it write a cell?
    #[inline]
    pub fn is_write(self) -> bool {
        matches!(self, Self::Store | Self::InterlockedStore | Self::Unlock | Self::WaitUnlock | Self::Signal)
            || self.is_exclusive_write()
    }

    /// Is it the write of an atomic?
    #[inline]
    pub fn is_exclusive_write(self) -> bool {
        matches!(self, Self::RmwWrite { .. } | Self::LockWrite | Self::WaitWrite | Self::WakeWrite | Self::NotifyWrite)
    }
}

/// How far a thread is inside a `wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Not inside.
    #[default]
    Running,
    /// Is on the list of waiters and is about to release the mutex.
    Entered,
    /// Has released the mutex and sleeps.
    Asleep,
    /// Was woken and wants the mutex back.
    Woken,
}

/// One event. The links are [`super::NONE`] where there is nothing to link to.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Event {
    /// What it is.
    pub kind: EventKind,
    /// Was it the first choice (of a `choose`, of a `notify_one`)?
    pub first_choice: bool,
    /// A read that its thread cannot go on from: a held mutex, no notification.
    pub stuck: bool,
    /// The read of an atomic: its write is there, too.
    pub has_write: bool,
    /// The write of a notification: of all waiters?
    pub notifies_all: bool,
    /// Some read that was added earlier reads this write.
    pub early_reader: bool,
    /// Repeats a read of the round before, in a loop that goes round many times: it is never revisited.
    pub repeated: bool,
    /// What was expected of the thread before the event.
    pub(super) status: Status,
    /// The thread's phase before the event.
    pub phase: Phase,
    /// Whose event.
    pub thread: u32,
    /// Its index in the thread, from 0.
    pub index: u32,
    /// The cell, for reads and writes.
    pub cell: CellId,
    /// The value read, written or chosen.
    pub value: i64,
    /// For reads: the write that is read, or [`super::NONE`].
    pub source: u32,
    /// For writes: the coherence predecessor, or [`super::NONE`] for the first.
    pub co_prev: u32,
    /// For writes: the coherence successor, or [`super::NONE`] for the last.
    pub co_next: u32,
    /// The event before it in program order.
    pub po_prev: u32,
    /// For reads, and for writes that are no part of an atomic: the read of the same cell by the same thread before it.
    pub read_prev: u32,
    /// The thread's state before the event.
    pub before: Token,
    /// The last event of the thread, this one included, that a load stays after under TSO: loads, interlocked
    /// operations, full fences.
    pub(super) last_load: u32,
    /// The last event of the thread, this one included, that writes or is interlocked or a full fence.
    pub(super) last_store: u32,
    /// Length of the trail before the event was added.
    pub(super) trail: u32,
    /// How often answers had been put aside before the event was added.
    pub(super) put_aside: u32,
}

impl Event {
    /// Is it a load to all who watch? The look of an atomic is one, whether that acts or not: had it come earlier, it might
    /// not have acted.
    #[inline]
    pub fn is_load(&self) -> bool {
        self.kind == EventKind::Load || matches!(self.kind, EventKind::RmwRead(manner) if manner.looks()) && !self.stuck
    }
}

/// How TSO orders an event among those of its own thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// May overtake earlier stores.
    Load,
    /// May be overtaken by later loads.
    Store,
    /// Stays where it is.
    Interlocked,
    /// Nothing that memory sees.
    Local,
}

impl EventKind {
    pub(super) fn order(self) -> Order {
        // Most events are loads and stores; asking for these first is better than a table of jumps.
        if self == Self::Load {
            return Order::Load;
        }
        if self == Self::Store {
            return Order::Store;
        }
        match self {
            Self::RmwRead(manner) if manner.looks() => Order::Load,
            Self::Fence(FenceKind::StoreStore) | Self::Choose | Self::LeaveCritical | Self::Misuse => Order::Local,
            _ => Order::Interlocked,
        }
    }
}

/// A thread, at the end of its events.
#[derive(Debug, Clone, Copy)]
pub struct ThreadEnd {
    /// Its last event.
    pub last: u32,
    /// How many events it has.
    pub len: u32,
    /// Its state.
    pub token: Token,
    /// Inside a `wait`?
    pub phase: Phase,
    /// What may be expected of it.
    pub status: Status,
}

impl ThreadEnd {
    /// A thread that has done nothing.
    pub(super) const START: Self =
        Self { last: super::NONE, len: 0, token: Token(0), phase: Phase::Running, status: Status::Live };
}

/// What may be expected of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Has something to do.
    Live,
    /// Its last event is a read it cannot go on from.
    Stuck,
    /// Will do nothing more.
    Done,
    /// Has failed while the `assume` of another thread was false. If what that one did came first, it was no execution;
    /// a revisit may put it last.
    FailedInVain,
}
