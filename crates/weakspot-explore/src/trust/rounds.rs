//! Rounds of loops that wait.
//!
//! A thread that comes back to a local state it was in before, having only read since, has gone round a loop without
//! any effect: it could go on so for ever. One such round is kept, because what it read is part of the trace and of
//! happens-before, and the monitors watch it; a second round in a row adds nothing they could see (a later failed read
//! of a cell has its from-read edges implied by the earlier one). So a thread that has completed two rounds from the
//! same state is stuck: it goes on only if a write revisits one of the reads of its second round.

use weakspot_model::ids::ThreadId;

use super::Explorer;
use crate::graph::{EventKind, NONE, Status};
use crate::system::{System, Token};

impl<S: System> Explorer<'_, S> {
    /// The thread has just jumped backwards. If that completes a round without effect, it is put back to the very
    /// state it came from (so that bounds on rounds do not count it); after the second such round it is stuck.
    pub(super) fn end_round(&mut self, thread: usize) {
        let Some(token) = self.system.save(ThreadId::new(thread)) else { return };
        let last = self.graph().thread(thread).last;
        let Some(first_round) = self.round_before(thread, last, token) else { return };
        let token = self.graph().event(first_round).before;
        self.system.restore(ThreadId::new(thread), token);
        self.graph_mut().thread_mut(thread).token = token;
        let before = self.graph().event(first_round).po_prev;
        if self.round_before(thread, before, token).is_some() {
            self.graph_mut().thread_mut(thread).status = Status::Stuck;
        }
    }

    /// The latest event, at `last` or before it, that was added in this state, with nothing but reads from there on.
    fn round_before(&self, thread: usize, last: u32, token: Token) -> Option<u32> {
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
                return Some(id);
            }
            id = event.po_prev;
        }
        None
    }
}
