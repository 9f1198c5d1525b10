//! Rounds of loops that wait.
//!
//! A thread that comes back to a local state it was in before, having only read since, has gone round a loop without
//! any effect. If it read only one write of each cell on the way, memory need not have changed meanwhile, and it could
//! go on so for ever: it *waits*. One such round is kept, because what it read is part of the trace and of
//! happens-before, and the monitors watch it; a second one in a row adds nothing they could see (a later failed read of
//! a cell has its from-read edges implied by the earlier one). So a thread that has completed two such rounds from the
//! same state is stuck: it goes on only if a write revisits one of the reads of its second round.
//!
//! A round in which a cell changed between two reads is the retry of a lock-free loop, not a wait: somebody else got
//! on, so there are only so many of them, and all are explored.

use weakspot_model::ids::ThreadId;

use super::Explorer;
use crate::graph::{EventKind, NONE, Status};
use crate::system::{System, Token};

impl<S: System> Explorer<'_, S> {
    /// The thread has just jumped backwards. If that completes a round of waiting, it is put back to the very state it
    /// came from (so that bounds on rounds do not count it); after the second such round it is stuck.
    pub(super) fn end_round(&mut self, thread: usize) {
        let Some(token) = self.system.save(ThreadId::new(thread)) else { return };
        let last = self.graph().thread(thread).last;
        let Some(first) = self.waiting_round(thread, last, token) else { return };
        let token = self.graph().event(first).before;
        self.system.restore(ThreadId::new(thread), token);
        self.graph_mut().thread_mut(thread).token = token;
        let before = self.graph().event(first).po_prev;
        if self.waiting_round(thread, before, token).is_some() {
            self.graph_mut().thread_mut(thread).status = Status::Stuck;
        }
    }

    /// The first event of the round of waiting that ends with `last`, if there is one: the latest event that was added
    /// in this state, with nothing but reads from there on, and of each cell only one write read.
    fn waiting_round(&self, thread: usize, last: u32, token: Token) -> Option<u32> {
        let mut id = last;
        while id != NONE {
            let event = self.graph().event(id);
            let without_effect = match event.kind {
                EventKind::Load | EventKind::Fence(_) => true,
                EventKind::RmwRead { .. } => !event.has_write,
                _ => false,
            };
            if !without_effect {
                return None;
            }
            if self.system.same_state(ThreadId::new(thread), event.before, token) {
                return self.reads_one_write_of_each_cell(id, last).then_some(id);
            }
            id = event.po_prev;
        }
        None
    }

    fn reads_one_write_of_each_cell(&self, first: u32, last: u32) -> bool {
        let mut id = last;
        while id != first {
            let event = self.graph().event(id);
            let mut other = event.po_prev;
            // Reads of a cell never go back in coherence: the read before decides.
            while event.kind.is_read() {
                let earlier = self.graph().event(other);
                if earlier.kind.is_read() && earlier.cell == event.cell {
                    if earlier.source != event.source {
                        return false;
                    }
                    break;
                }
                if other == first {
                    break;
                }
                other = earlier.po_prev;
            }
            id = event.po_prev;
        }
        true
    }
}
