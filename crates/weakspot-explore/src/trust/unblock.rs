//! Reads that wait for something that is there: searches that come to nothing are cut off, and the thread goes on at once.
//!
//! A thread that wants a mutex somebody holds is stuck in a read of the write that took the mutex. The release, when it
//! comes, revisits that read, in another graph. In this one the thread stays stuck, although the mutex is free: that is no
//! execution, and most often it cannot become one any more (cf. Kokologiannakis, Marmanis, Vafeiadis: Unblocking
//! Dynamic Partial Order Reduction, CAV 2023, whose in-place revisits are meant for the same).
//!
//! # When it cannot
//! The read is gone or has another source in a later graph only if a write revisits it or an earlier read. Then the stuck
//! read must have been maximally added, seen from that write: the write *after* its source in coherence must not cause it.
//! So if that write after the source causes whatever any thread will do from now on, nothing can be revisited but what
//! was added after the stuck read, and the read stays as it is to the end of every graph. It is *hopeless*, and so is
//! the graph. A thread that is stuck itself in such a read moves only if a write revisits that read, and
//! learns of all that causes the write then. So it is enough to look at the threads that can move.
//!
//! What a monitor or a race detector would see in such a graph, it sees in another one: without the stuck read it is the
//! beginning of an execution.
//!
//! # In place
//! Of a system without tokens each graph is a run. If the revisit that the newest write makes possible removes
//! nothing, then the run of the hopeless graph has got exactly as far as the graph of the revisit has: the
//! thread goes on, and nothing is run again.

use super::{Alternative, Explorer, Item, Visitor};
use crate::graph::{NONE, Status};
use crate::system::{Pending, System};
use weakspot_model::ids::ThreadId;

impl<S: System> Explorer<'_, S> {
    /// Is there a stuck read that stays so in every graph that this one leads to? What only the system knows of threads
    /// that have not begun or have ended is not asked for.
    pub(super) fn is_hopeless(&self) -> bool {
        self.graph().has_stuck_thread() && self.stuck_reads().any(|read| self.stays_stuck(read, |_| false))
    }

    /// The same for a graph that the system has just been brought to.
    fn hopeless_read(&self) -> Option<u32> {
        let is_out = |thread: usize| {
            let pending = self.system.pending(ThreadId::new(thread));
            pending == Pending::Absent || pending.is_last()
        };
        self.stuck_reads().find(|&read| self.stays_stuck(read, is_out))
    }

    /// The reads that threads are stuck in, loops apart.
    fn stuck_reads(&self) -> impl Iterator<Item = u32> + '_ {
        let ends = (0..self.graph().width()).map(|thread| self.graph().thread(thread));
        let stuck = ends.filter(|end| end.status == Status::Stuck && end.last != NONE).map(|end| end.last);
        stuck.filter(|&read| self.graph().event(read).stuck)
    }

    fn stays_stuck(&self, read: u32, is_out: impl Fn(usize) -> bool) -> bool {
        let event = self.graph().event(read);
        let mut later = self.graph().write_after(event.cell, event.source);
        while later != NONE && !self.would_take(event, later) {
            later = self.graph().event(later).co_next;
        }
        later != NONE && (0..self.graph().width()).all(|thread| self.will_know(thread, later) || is_out(thread))
    }

    /// Does a write cause whatever a thread will do?
    fn will_know(&self, thread: usize, write: u32) -> bool {
        let end = self.graph().thread(thread);
        match end.status {
            Status::Done | Status::FailedInVain => true,
            _ if end.last == NONE => false,
            Status::Stuck if self.graph().event(end.last).stuck => true,
            Status::Stuck | Status::Live => self.graph().causes(write, end.last),
        }
    }

    /// If the graph is hopeless since its newest event: goes on in place if that is possible. False if there is nothing to
    /// go on from. The items from `open` on are those that came with the newest event.
    pub(super) fn go_on_from_hopeless(&mut self, open: usize, visitor: &mut impl Visitor<S>) -> bool {
        if !self.replays || !self.graph().has_stuck_thread() {
            return true;
        }
        let Some(read) = self.hopeless_read() else { return true };
        let Some(Item { what, share, .. }) = self.revisit_in_place(read, open) else { return false };
        let Alternative::Revisit { read, after } = what else { return false };
        visitor.covered(self.share);
        self.share = share;
        self.note_told();
        if !self.open_revisit(read, after) {
            return false;
        }
        let consistent = self.read_anew(read);
        self.split_share(0);
        consistent
    }

    /// Takes the item in which a stuck read is revisited by the newest event and nothing is removed.
    fn revisit_in_place(&mut self, stuck: u32, open: usize) -> Option<Item> {
        let newest = self.graph().len() - 1;
        if !(stuck + 1..newest).all(|id| self.graph().causes(id, newest)) {
            return None;
        }
        let is_it = |item: &Item| matches!(item.what, Alternative::Revisit { read, .. } if read == stuck);
        let items = &mut self.frame.items;
        let at = open + items[open..].iter().position(is_it)?;
        Some(items.remove(at))
    }
}
