//! The operational monitors' question (Burnim, Sen, Stergiou, TACAS 2011, Fig. 4 and 5), answered from the graph.
//!
//! [`crate::monitor::operational::Operational`] runs the relaxed machine beside an execution and commits every store as
//! late as it can. To miss nothing it has to see, for each thread, a linearisation in which nothing comes before an
//! access of the thread that need not: then exactly the *past* of the access has gone, the events that happen before it.
//! Which stores are still pending then does not depend on their order:
//!
//! | a pending store X of a thread has been committed if | in the past there is |
//! |---|---|
//! | somebody else accessed its cell | another thread's access of the cell that comes after X |
//! | its thread waited | a later event of its thread that waits for the whole buffer, or an atomic on the cell |
//! | it had to go first | a later store of its thread that has been committed and cannot go before X: any under TSO, one behind a store fence under PSO |
//!
//! So the answer for an access is the last store of another thread to its cell that happens before what the access's
//! thread did last, if it has not been committed and no other thread wrote the cell since. The tests compare the
//! answers with those of the monitor, execution by execution.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;

use super::answers::Answer;
use super::rows::Rows;
use super::{Event, EventKind, Graph, NONE};

/// How many writes of a cell are looked at before it is taken to be written by everybody.
const MOST_WRITES: u32 = 16;

/// The bit of a thread in a set of up to 64.
#[inline]
fn thread_bit(thread: u32) -> u64 {
    1 << (thread % 64)
}

/// A load that has come into the past of accesses, and nothing else with it. All it can do to an answer is to notice the
/// store that would be pending, or a later one of the same thread: that store X is of the load's cell, of a thread other
/// than the load's and the access's, and not after what the load read.
pub(super) struct Notice {
    cell: u32,
    /// The threads that X could be of.
    writers: u64,
    /// The write that overwrites what the load read.
    from: (usize, u32),
}

impl Notice {
    /// The load, the threads of the writes up to what it read, and the write that overwrites that.
    #[inline]
    pub(super) fn of(load: &Event, writers: u64, from: &Event) -> Self {
        let writers = writers & !thread_bit(load.thread);
        Self { cell: load.cell, writers, from: (from.thread as usize, from.index) }
    }

    /// Can it change the answer for an access? Not if the access is to the same cell and what overwrites X happens
    /// before what its thread did last: then the store that would be pending comes after X.
    #[inline]
    pub(super) fn affects(&self, access: &Event, happens_before: &Rows) -> bool {
        let overwritten = access.cell == self.cell
            && !matches!(access.kind, EventKind::RmwWrite { .. })
            && happens_before.entry(access.po_prev, self.from.0) > self.from.1;
        self.writers & !thread_bit(access.thread) != 0 && !overwritten
    }
}

impl Graph {
    /// The threads of a write and of those before it in coherence, as bits; all of them, if there are many.
    pub(super) fn writers_up_to(&self, write: u32) -> u64 {
        if self.threads.len() > 64 {
            return u64::MAX;
        }
        let (mut write, mut writers) = (write, 0);
        for _ in 0..MOST_WRITES {
            if write == NONE {
                return writers;
            }
            let event = self.event(write);
            writers |= thread_bit(event.thread);
            write = event.co_prev;
        }
        u64::MAX
    }

    /// Lines 5 to 8 of Fig. 4 and 5 for an access: the foreign store it could overtake.
    #[inline]
    pub(super) fn buffered_store(&self, access: u32, model: MemoryModel) -> Answer {
        let event = self.event(access);
        let newest = if event.kind.is_read() { event.source } else { event.co_prev };
        if newest == NONE || self.event(newest).thread == event.thread {
            return Answer::Settled;
        }
        // The thread has read it before: it has been committed.
        if event.read_prev != NONE && self.event(event.read_prev).source == newest {
            return Answer::Settled;
        }
        self.foreign_store(access, newest, model)
    }

    /// The same, if the last write of the cell before the access is another thread's.
    fn foreign_store(&self, access: u32, newest: u32, model: MemoryModel) -> Answer {
        let Event { kind, po_prev, has_write, .. } = *self.event(access);
        let before = match kind {
            // The monitor sees an atomic that writes at its write.
            EventKind::RmwRead { .. } if has_write => return Answer::No,
            // What the thread did before the atomic began.
            EventKind::RmwWrite { .. } => self.event(po_prev).po_prev,
            _ => po_prev,
        };
        if before == NONE || self.event(newest).kind != EventKind::Store {
            return Answer::Settled;
        }
        let owner = self.event(newest).thread;
        let mut store = newest;
        while !self.happens_before(store, before) {
            store = self.event(store).co_prev;
            if store == NONE || self.event(store).thread != owner || self.event(store).kind != EventKind::Store {
                return Answer::No;
            }
        }
        if !self.is_committed(store, access, model) {
            return Answer::Pending(store);
        }
        // What has been committed stays so.
        if store == newest { Answer::Settled } else { Answer::No }
    }

    /// Must a store have been committed when the past of an access has gone?
    fn is_committed(&self, store: u32, access: u32, model: MemoryModel) -> bool {
        if self.is_noticed(store, access) {
            return true;
        }
        let Event { thread, index, cell, .. } = *self.event(store);
        let mut last = self.threads[thread as usize].last;
        while !self.happens_before(last, access) {
            last = self.event(last).po_prev;
        }
        // Stores after this one cannot be committed before the store: under PSO, after the first store fence.
        let mut held_back_after = if model == MemoryModel::Pso { u32::MAX } else { index };
        let mut id = last;
        while id != store {
            let event = self.event(id);
            match event.kind {
                EventKind::Load
                | EventKind::Store
                | EventKind::Choose
                | EventKind::LeaveCritical
                | EventKind::Misuse => {}
                EventKind::RmwRead { drains_all: false } | EventKind::RmwWrite { drains_all: false }
                    if model == MemoryModel::Pso && event.cell != cell => {}
                EventKind::Fence(FenceKind::StoreStore) => held_back_after = event.index,
                _ => return true,
            }
            id = event.po_prev;
        }
        self.drags_along(last, held_back_after, access)
    }

    /// Is there an access of another thread to the cell of a store, after it and in the past of an access?
    fn is_noticed(&self, store: u32, access: u32) -> bool {
        let Event { thread, cell, co_next, .. } = *self.event(store);
        let mut next = co_next;
        while next != NONE && next != access && self.happens_before(next, access) {
            if self.event(next).thread != thread {
                return true;
            }
            next = self.event(next).co_next;
        }
        (0..self.threads.len()).filter(|&other| other != thread as usize).any(|other| {
            let mut read = self.last_read(cell, other);
            while read != NONE && (read == access || !self.happens_before(read, access) || !self.counts(read)) {
                read = self.event(read).read_prev;
            }
            // Reads of a thread never go back in coherence, and those of an earlier write come before the store.
            read != NONE && self.happens_before(store, read) && self.reads_at_or_after(read, store)
        })
    }

    /// Is this a read that the monitor sees?
    fn counts(&self, read: u32) -> bool {
        let event = self.event(read);
        match event.kind {
            EventKind::Load => true,
            EventKind::RmwRead { .. } => !event.has_write,
            _ => false,
        }
    }

    /// Does a read take a store, or a later write of the cell?
    fn reads_at_or_after(&self, read: u32, store: u32) -> bool {
        let mut source = self.event(read).source;
        while source != NONE && source != store {
            source = self.event(source).co_prev;
        }
        source == store
    }

    /// Has one of a thread's stores after event `after` of it been committed, as seen from an access? `last` is the
    /// thread's last event in the past of the access.
    fn drags_along(&self, last: u32, after: u32, access: u32) -> bool {
        let mut id = last;
        while id != NONE && self.event(id).index > after {
            let event = self.event(id);
            let commits = match event.kind {
                EventKind::Store => self.is_noticed(id, access),
                EventKind::RmwRead { .. } | EventKind::RmwWrite { .. } => self.stores_before(id, event.cell, after),
                _ => false,
            };
            if commits {
                return true;
            }
            id = event.po_prev;
        }
        false
    }

    /// Is there a store to a cell between event `after` of a thread and one of its later events?
    fn stores_before(&self, later: u32, cell: u32, after: u32) -> bool {
        let mut id = self.event(later).po_prev;
        while id != NONE && self.event(id).index > after {
            if self.event(id).kind == EventKind::Store && self.event(id).cell == cell {
                return true;
            }
            id = self.event(id).po_prev;
        }
        false
    }
}
