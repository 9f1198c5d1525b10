//! Rounds of loops that wait.
//!
//! A thread that comes back to a local state it was in before, having only read since, has gone round a loop without
//! any effect. If it read only one write of each cell on the way, memory need not have changed meanwhile, and it could
//! go on so for ever: it *waits*. One such round is kept, because what it read is part of the trace and of
//! happens-before, and the monitors watch it; a second one in a row adds nothing they could see (a later failed read of
//! a cell has its from-read edges implied by the earlier one). So a thread that has completed two such rounds from the
//! same state is stuck: it goes on only if a write revisits one of the reads of its second round.
//!
//! # Without tokens
//! Nobody can look into the local state of live code. There the end of a round is where the thread says so (a marker:
//! `spin_loop`, `yield_now`), and what lies between two passes of the same marker is a round. The first pass ends a
//! failed round whose beginning is not known, so one round between two passes is enough to be stuck. An atomic that
//! wrote the value it had read, right before a marker, is a failed attempt (to take a test-and-set lock): it is turned
//! into one that does not write.
//!
//! A round that writes is followed once more; if it then does exactly the same, having read nothing new of others, the
//! thread is stuck, too.
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

    /// The same where there are no tokens.
    pub(super) fn end_marked_round(&mut self, thread: usize) {
        if self.graph().thread(thread).token == Token(0) {
            return;
        }
        self.undo_silent_write(thread);
        let end = *self.graph().thread(thread);
        if end.last != NONE
            && (self.waiting_round(thread, end.last, end.token).is_some() || self.repeated_round(end.last, end.token))
        {
            self.graph_mut().thread_mut(thread).status = Status::Stuck;
        }
    }

    /// The first event of the round that ends with `last`: the latest after a pass of the marker.
    fn marked_round(&self, last: u32, marker: Token) -> Option<u32> {
        let mut id = last;
        while id != NONE {
            let event = self.graph().event(id);
            // The two events of an atomic are after the same pass.
            if event.before == marker && !event.kind.is_exclusive_write() {
                return Some(id);
            }
            id = event.po_prev;
        }
        None
    }

    /// Does the round that ends with `last` do what the one before it did, and read nothing that another thread has
    /// written since? Then whatever another thread could see in it could be seen in the one before, too, and the thread
    /// goes on only if a write of another thread revisits a read of it.
    fn repeated_round(&self, last: u32, marker: Token) -> bool {
        let Some(first) = self.marked_round(last, marker) else { return false };
        let earlier_last = self.graph().event(first).po_prev;
        if earlier_last == NONE {
            return false;
        }
        let Some(earlier_first) = self.marked_round(earlier_last, marker) else { return false };
        let (mut one, mut other) = (last, earlier_last);
        loop {
            if !self.repeats(one, other) {
                return false;
            }
            if one == first || other == earlier_first {
                return one == first && other == earlier_first;
            }
            (one, other) = (self.graph().event(one).po_prev, self.graph().event(other).po_prev);
        }
    }

    /// Is this event a repetition of an earlier one of its thread?
    fn repeats(&self, id: u32, earlier: u32) -> bool {
        let (event, earlier) = (self.graph().event(id), self.graph().event(earlier));
        let may_repeat = !matches!(
            event.kind,
            EventKind::Choose
                | EventKind::Signal
                | EventKind::Await
                | EventKind::WaitRead
                | EventKind::WaitWrite
                | EventKind::WakeRead
                | EventKind::NotifyRead
                | EventKind::NotifyWrite
        );
        let is_own = |source: u32| source != NONE && self.graph().event(source).thread == event.thread;
        may_repeat
            && (event.kind, event.cell, event.value) == (earlier.kind, earlier.cell, earlier.value)
            && (!event.kind.is_read() || event.source == earlier.source || is_own(event.source))
    }

    /// If the newest event is the write of an atomic that changed nothing, it goes, with the revisits it made possible.
    fn undo_silent_write(&mut self, thread: usize) {
        let newest = self.graph().len() - 1;
        let event = *self.graph().event(newest);
        if event.thread as usize != thread
            || !matches!(event.kind, EventKind::RmwWrite { .. })
            || self.graph().event(event.po_prev).value != event.value
        {
            return;
        }
        let token = self.graph().thread(thread).token;
        self.graph_mut().truncate(newest);
        self.graph_mut().event_mut(event.po_prev).has_write = false;
        self.graph_mut().thread_mut(thread).token = token;
        let items = &mut self.frames[self.depth].items;
        while items.last().is_some_and(|item| item.len > newest) {
            items.pop();
        }
    }

    /// Does the round of waiting that ends with this event read nothing that another thread overwrites?
    pub(super) fn waits_for_ever(&self, last: u32) -> bool {
        let thread = self.graph().event(last).thread;
        let marker = self.graph().thread(thread as usize).token;
        let Some(first) = self.marked_round(last, marker) else { return false };
        let mut id = last;
        loop {
            let event = self.graph().event(id);
            let mut later =
                if event.kind.is_read() { self.graph().write_after(event.cell, event.source) } else { NONE };
            while later != NONE {
                if self.graph().event(later).thread != thread {
                    return false;
                }
                later = self.graph().event(later).co_next;
            }
            if id == first {
                return true;
            }
            id = event.po_prev;
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
