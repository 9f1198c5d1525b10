//! Who goes next.
//!
//! The paper's next(G) may be any function of the graph. Ours is the first thread that can go on, where a thread that
//! would get stuck (it is about to acquire a mutex that is held, say) is *put off* while anybody else can go on.
//!
//! # Why putting off loses nothing and saves much
//! If such a thread went on at once, its read would be added reading the last write, which it cannot go on from. The
//! release of the mutex, when it comes, revisits that read: one graph in which the thread has the mutex next, and one in
//! which it is stuck although the mutex is free, which is no execution and yet has to be run to its end. If the release
//! comes first, the read finds it there, and the other graph never exists. Whatever else the read could have taken
//! (earlier writes, taken by other atomics, whose reads it then revisits) it still can when it comes. And it comes: when
//! nobody else can go on, those that were put off do, and are stuck then. Whether a thread is put off depends on
//! the graph alone, so every graph is still built in one way.
//!
//! # Threads that look again and again
//! A thread of live code that is about to go round a loop once more is put off while the cell that it has looked at last has
//! the same value: somebody else has to change it. If it went on at once, and its rounds write something (they take a
//! lock, or look with an atomic), whatever the others do after that would be explored with a thread that is stuck, and
//! their writes, which come after its own, could not revisit what it has read.
//!
//! If a round is one look, it could also take an earlier write. If it is known to go on waiting from that value (`probe`), this
//! is left out. Its thread would be stuck, and no revisit could change that, because the read is not maximally added
//! (`unblock`). Nor is there anything to be seen: the look before, at the same cell, came before the write that this one
//! comes before, or before an earlier one; and what this one comes after, the look before or the one that ends the waiting
//! comes after, too. That is so only if the round is this one look: of a round that looks at two cells, the second look may
//! be what tells that something came before something else.

use weakspot_model::ids::ThreadId;

use super::{Explorer, FREE};
use crate::graph::{EventKind, NONE, Phase, Status};
use crate::system::{CellId, Pending, System, UNBOUND, Update};

/// Can a thread go on?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readiness {
    Ready,
    /// It would get stuck.
    PutOff,
    /// There is nothing for it to do.
    Waits,
}

impl<S: System> Explorer<'_, S> {
    /// The paper's next(G), up to the thread: the first one that can go on, or that has just failed.
    pub(super) fn next_thread(&mut self) -> Option<(usize, Pending)> {
        if self.system.threads() > self.graph().width() {
            let threads = self.system.threads();
            self.graph_mut().widen(threads);
        }
        let mut put_off = None;
        for thread in 0..self.graph().width() {
            let end = *self.graph().thread(thread);
            if end.status != Status::Live && !(end.status == Status::Stuck && self.is_roused(thread)) {
                continue;
            }
            let id = ThreadId::new(thread);
            if !self.replays {
                self.system.restore(id, end.token);
            }
            let pending = self.system.pending(id);
            if pending.is_last() && pending != Pending::Failed {
                self.graph_mut().thread_mut(thread).status = Status::Done;
                continue;
            }
            match self.readiness(thread, pending) {
                Readiness::Ready => return Some((thread, pending)),
                Readiness::PutOff if put_off.is_none() => put_off = Some((thread, pending)),
                Readiness::PutOff | Readiness::Waits => {}
            }
        }
        put_off
    }

    #[inline]
    fn readiness(&self, thread: usize, pending: Pending) -> Readiness {
        let waits = match pending {
            Pending::Absent | Pending::Await(UNBOUND) => return Readiness::Waits,
            Pending::Await(cell) if self.graph().last_write(cell) == NONE => return Readiness::Waits,
            Pending::Lock(mutex) => self.is_held(mutex),
            Pending::Wait { condvar, mutex } => match self.graph().thread(thread).phase {
                Phase::Asleep => self.notification(thread, condvar).is_none(),
                Phase::Woken => self.is_held(mutex),
                Phase::Running | Phase::Entered => false,
            },
            Pending::Rmw { cell, .. } => self.system.may_block(ThreadId::new(thread)) && self.blocks(thread, cell),
            _ => false,
        };
        if waits || self.repeats_in_vain(thread) { Readiness::PutOff } else { Readiness::Ready }
    }

    /// Is a thread at the beginning of another round of a loop, and is still there what it has seen last?
    #[inline]
    fn repeats_in_vain(&self, thread: usize) -> bool {
        let seen = self.seen_at_end_of_round(thread);
        seen.is_some_and(|(cell, seen)| seen == self.graph().final_value(cell))
    }

    /// Is a mutex held after all that has happened?
    fn is_held(&self, mutex: CellId) -> bool {
        mutex != UNBOUND && self.graph().final_value(mutex) != FREE
    }

    /// The last write that a thread can wake up from, if there is one.
    pub(super) fn notification(&self, thread: usize, condvar: CellId) -> Option<u32> {
        let mut source = if condvar == UNBOUND { NONE } else { self.graph().last_write(condvar) };
        while source != NONE {
            if self.satisfies(thread, EventKind::WakeRead, condvar, source) {
                return Some(source);
            }
            if self.graph().happens_before_next_of(source, thread) {
                return None;
            }
            source = self.graph().event(source).co_prev;
        }
        None
    }

    /// Does an atomic wait for another value than that after all that has happened?
    fn blocks(&self, thread: usize, cell: CellId) -> bool {
        let id = ThreadId::new(thread);
        if cell == UNBOUND {
            return self.system.blocks_at_first(id);
        }
        self.system.update(id, self.graph().final_value(cell)) == Update::Blocks
    }
}
