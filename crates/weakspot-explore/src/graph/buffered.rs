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

use super::answers::Place;
use super::{Event, EventKind, Graph, NONE};

/// What happens before an access, which is not a part of it; or before and including an event, if that is [`NONE`].
#[derive(Clone, Copy)]
struct Past<'a> {
    /// How many events of each thread, the access included.
    row: &'a [u16],
    access: u32,
}

impl Past<'_> {
    /// How many events of a thread are in it.
    #[inline]
    fn count(self, thread: usize) -> u32 {
        u32::from(self.row[thread])
    }

    /// Is an event in it?
    #[inline]
    fn has(self, id: u32, event: &Event) -> bool {
        self.count(event.thread as usize) > event.index && id != self.access
    }
}

impl Event {
    /// The last write of the cell before an access.
    #[inline]
    fn follows(&self) -> u32 {
        // One of them is [`NONE`]: all bits set.
        self.source & self.co_prev
    }
}

/// Is this a read that the monitor sees?
#[inline]
fn counts(read: &Event) -> bool {
    match read.kind {
        EventKind::Load => true,
        EventKind::RmwRead(manner) => manner.looks() || !read.has_write,
        _ => false,
    }
}

impl Graph {
    /// Is the last write of its cell before an access another thread's, and not what its thread has read there before?
    #[inline]
    pub(super) fn follows_foreign(&self, event: &Event) -> bool {
        let newest = event.follows();
        newest != NONE
            && self.event(newest).thread != event.thread
            && (event.read_prev == NONE || self.event(event.read_prev).source != newest)
    }

    /// Lines 5 to 8 of Fig. 4 and 5 for an access that follows a foreign write: the store it could overtake.
    #[inline]
    pub(super) fn buffered_store(&self, access: u32, model: MemoryModel) -> Option<u32> {
        self.foreign_candidate(access).filter(|&store| self.is_pending(store, access, model))
    }

    /// Can the candidate of an access still be pending?
    #[inline(never)]
    fn is_pending(&self, store: u32, access: u32, model: MemoryModel) -> bool {
        let past = Past { row: self.happens_before.row(access).as_flattened(), access };
        let (overtaken, event) = (self.event(store), self.event(access));
        // No other thread wrote the cell after the store and before the access, and what the access's thread read is known
        // (the write of an atomic does not tell).
        let is_atomic = matches!(event.kind, EventKind::RmwWrite { .. });
        let knower = if is_atomic { overtaken.thread } else { event.thread };
        !self.is_read(overtaken, knower, past) && !self.is_forced(store, past, model)
    }

    /// The store that an access could overtake, which follows a foreign one, unless that has been committed.
    #[inline]
    fn foreign_candidate(&self, access: u32) -> Option<u32> {
        let event = self.event(access);
        let newest = event.follows();
        let Event { kind, po_prev, read_prev, has_write, .. } = *event;
        let before = match kind {
            // The monitor sees an atomic that writes at its write, and one that has looked before: after that nothing is pending.
            EventKind::RmwRead(manner) if has_write && !manner.looks() => return None,
            EventKind::RmwWrite { .. } if self.event(po_prev).is_load() => return None,
            // What the thread did before the atomic began.
            EventKind::RmwWrite { .. } => self.event(po_prev).po_prev,
            EventKind::Load | EventKind::RmwRead(_) | EventKind::Store | EventKind::InterlockedStore => po_prev,
            _ => return None,
        };
        if before == NONE {
            return None;
        }
        // How many events of its thread come before. What the access's thread has read before has been committed, and so
        // has all before it.
        let owner = self.event(newest).thread;
        let known = self.happens_before.entry(before, owner as usize);
        let committed = if read_prev == NONE { NONE } else { self.event(read_prev).source };
        if committed != NONE && self.event(committed).thread == owner && self.event(committed).index + 1 >= known {
            return None;
        }
        let mut store = newest;
        loop {
            let event = self.event(store);
            if store == committed || event.thread != owner || event.kind != EventKind::Store {
                return None;
            }
            if event.index < known {
                // If it is the last one of its thread that is known, it is known because somebody noticed it.
                return (event.index + 1 < known).then_some(store);
            }
            store = event.co_prev;
            if store == NONE {
                return None;
            }
        }
    }

    /// Does one of the newest events of a thread, up to its event `first`, which are loads, notice a pending store, or a
    /// later one of its thread? The newest of all is one of them.
    pub(super) fn is_noticed_now(&self, store: Place, first: u32) -> bool {
        let mut id = self.len() - 1;
        if self.event(id).thread == store.0 || self.happens_before.entry(id, store.0 as usize) <= store.1 {
            return false;
        }
        while id != NONE && self.event(id).index >= first {
            let event = self.event(id);
            if event.is_load() && self.is_at_or_after(event.source, store) {
                return true;
            }
            id = event.po_prev;
        }
        false
    }

    /// Does a load, the newest event, come after a store that may still be pending and that `from`, which the load comes
    /// before, does not come after?
    pub(super) fn brings_pending(&self, from: u32, model: MemoryModel) -> bool {
        // The load itself is a part of it for whatever comes after it.
        let past = Past { row: self.happens_before.row(self.len() - 1).as_flattened(), access: NONE };
        (0..self.threads.len()).any(|thread| {
            let known = self.happens_before.entry(from, thread);
            past.count(thread) > known && self.has_pending(past, thread, known, model)
        })
    }

    /// May one of a thread's stores in a past, from event `first` of the thread on, still be pending?
    fn has_pending(&self, past: Past<'_>, thread: usize, first: u32, model: MemoryModel) -> bool {
        let mut id = self.last_in(past, thread);
        while id != NONE && self.event(id).index >= first {
            let event = self.event(id);
            if event.kind == EventKind::Store {
                let is_committed = self.is_committed(id, past, model);
                // Under TSO those before it have been, too.
                if !is_committed || model == MemoryModel::Tso {
                    return !is_committed;
                }
            }
            id = event.po_prev;
        }
        false
    }

    /// The last event of a thread in a past that has some.
    fn last_in(&self, past: Past<'_>, thread: usize) -> u32 {
        let mut last = self.threads[thread].last;
        while self.event(last).index >= past.count(thread) {
            last = self.event(last).po_prev;
        }
        last
    }

    /// Must a store have been committed when a past has gone that it is a part of?
    fn is_committed(&self, store: u32, past: Past<'_>, model: MemoryModel) -> bool {
        self.is_noticed(store, past) || self.is_forced(store, past, model)
    }

    /// The same for a store that nobody noticed.
    #[inline]
    fn is_forced(&self, store: u32, past: Past<'_>, model: MemoryModel) -> bool {
        if model == MemoryModel::Pso { self.is_forced_alone(store, past) } else { self.is_forced_in_order(store, past) }
    }

    /// Under TSO: the thread waited, or somebody noticed a later store of the thread. Noticing one before the next write of
    /// its cell is enough: if that is the thread's own, it is looked at as well.
    fn is_forced_in_order(&self, store: u32, past: Past<'_>) -> bool {
        let thread = self.event(store).thread as usize;
        let count = past.count(thread);
        let last_store = |event: u32| self.last_in_order(event).1;
        let mut id = last_store(self.threads[thread].last);
        while id != store {
            let event = self.event(id);
            if event.index < count && (event.kind != EventKind::Store || self.is_noticed_at_once(event, past)) {
                return true;
            }
            id = last_store(event.po_prev);
        }
        false
    }

    /// Does another thread read a store before the next write of its cell, or write the cell next, in a past?
    #[inline]
    fn is_noticed_at_once(&self, store: &Event, past: Past<'_>) -> bool {
        let next = store.co_next;
        let is_overwritten =
            next != NONE && self.event(next).thread != store.thread && past.has(next, self.event(next));
        is_overwritten || self.is_read(store, store.thread, past)
    }

    /// Under PSO, where a later store drags this one along only from behind a store fence.
    fn is_forced_alone(&self, store: u32, past: Past<'_>) -> bool {
        let Event { thread, cell, .. } = *self.event(store);
        let last = self.last_in(past, thread as usize);
        // Stores after this one cannot be committed before the store.
        let mut held_back_after = u32::MAX;
        let mut id = last;
        while id != store {
            let event = self.event(id);
            match event.kind {
                EventKind::Load
                | EventKind::Store
                | EventKind::Choose
                | EventKind::LeaveCritical
                | EventKind::Misuse => {}
                EventKind::RmwRead(manner) if manner.looks() || !manner.drains_all() && event.cell != cell => {}
                EventKind::RmwWrite { drains_all: false } if event.cell != cell => {}
                EventKind::Fence(FenceKind::StoreStore) => held_back_after = event.index,
                _ => return true,
            }
            id = event.po_prev;
        }
        held_back_after != u32::MAX && self.drags_along(last, held_back_after, past)
    }

    /// Is there an access of another thread to the cell of a store, after it and in a past?
    fn is_noticed(&self, store: u32, past: Past<'_>) -> bool {
        let event = self.event(store);
        self.is_read(event, event.thread, past) || self.is_overwritten(event.thread, event.co_next, past)
    }

    /// Does a thread read a store, or a later write of its cell, in a past? Its own thread is not asked, nor is one that is
    /// known not to.
    #[inline]
    fn is_read(&self, store: &Event, knower: u32, past: Past<'_>) -> bool {
        let width = self.threads.len();
        let last_reads = &self.last_read[store.cell as usize * width..][..width];
        for (other, &last) in (0..).zip(last_reads) {
            if last == NONE || other == store.thread || other == knower {
                continue;
            }
            let known = past.row[other as usize];
            let mut read = if known == 0 { NONE } else { last };
            while read != NONE {
                let event = self.event(read);
                if event.index < u32::from(known) && read != past.access && counts(event) {
                    // It reads the store or a later write exactly if it happens after the store, and reads of a thread
                    // never go back in coherence.
                    if self.happens_before.entry(read, store.thread as usize) > store.index {
                        return true;
                    }
                    break;
                }
                read = event.read_prev;
            }
        }
        false
    }

    /// Is a write of another thread, in a past, among these and the later ones of the cell?
    fn is_overwritten(&self, thread: u32, mut write: u32, past: Past<'_>) -> bool {
        while write != NONE {
            let event = self.event(write);
            if !past.has(write, event) {
                return false;
            }
            if event.thread != thread {
                return true;
            }
            write = event.co_next;
        }
        false
    }

    /// Is there, among a write, or [`NONE`], and those of its cell before it, one of a thread from its event `index` on?
    /// (Writes of one thread are in its order.)
    #[inline]
    fn is_at_or_after(&self, mut write: u32, (thread, index): Place) -> bool {
        while write != NONE {
            let event = self.event(write);
            if event.thread == thread {
                return event.index >= index;
            }
            write = event.co_prev;
        }
        false
    }

    /// Has one of a thread's stores after event `after` of it been committed, when a past has gone? `last` is
    /// the thread's last event in it.
    fn drags_along(&self, last: u32, after: u32, past: Past<'_>) -> bool {
        let mut id = last;
        while id != NONE && self.event(id).index > after {
            let event = self.event(id);
            let commits = match event.kind {
                EventKind::Store => self.is_noticed(id, past),
                EventKind::RmwRead(manner) if manner.looks() => false,
                EventKind::RmwRead(_) | EventKind::RmwWrite { .. } => self.stores_before(id, event.cell, after),
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
