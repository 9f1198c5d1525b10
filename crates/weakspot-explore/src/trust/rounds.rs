//! Rounds of loops that wait.
//!
//! A thread that comes back to a local state it was in before, having only read since, has gone round a loop without
//! any effect. If it read only one write of each cell on the way, memory need not have changed meanwhile, and it could
//! go on so for ever: it *waits*. One such round is kept, because what it read is part of the trace and of
//! happens-before, and the monitors watch it; a second one in a row adds nothing they could see (a later failed read of
//! a cell has its from-read edges implied by the earlier one). So a thread that has completed two such rounds from the
//! same state is stuck: it goes on only if a write revisits one of the reads of its second round.
//!
//! A round may end with an atomic that writes the value it has read: a `swap` of a lock that is taken. Others can read that
//! write, so the first such round keeps it. In the second one it goes, and the atomic is one that does not write: what
//! others see of that write they can see of the first one, if that comes later, and the thread can be revisited even if
//! they do.
//!
//! # Without tokens
//! Nobody can look into the local state of live code. There the end of a round is where the thread says so (a marker:
//! `spin_loop`, `yield_now`), and what lies between two passes of the same marker is a round. The first pass ends a
//! failed round whose beginning is not known, so one round between two passes is enough to be stuck, if the thread did
//! the same looks before the first pass (a loop may begin with its marker). An atomic that
//! wrote the value it had read, right before a marker, is a failed attempt (to take a test-and-set lock): it is turned
//! into one that does not write.
//!
//! | a round | then the thread |
//! |---|---|
//! | only reads, of one moment's memory ([`Idle::Waits`]) | is stuck until a write revisits one of these reads |
//! | does what the one before did, and leaves memory as it was ([`Idle::Repeats`]) | is stuck after enough of them (`futile`), and goes on if others come between |
//! | writes, and has read nothing new of others ([`Idle::Writes`]) | is stuck; what later rounds would write is left out |
//! | any other | goes on |
//!
//! All this only if the thread would stay in the loop: see `probe`.
//!
//! Where the first round of all began nobody knows. It need not be known: if a thread did the same right before its first
//! pass of the marker as in the round after, that round repeats it.
//!
//! A choice in a round (does a wait with a timeout time out?) is one of both: the other one is explored as well, in each round
//! that is, so a round that chooses what the one before chose adds nothing more than if it had nothing to choose.
//!
//! A round in which a cell changed between two reads is the retry of a lock-free loop, not a wait: somebody else got
//! on, so there are only so many of them, and all are explored.

use weakspot_model::ids::ThreadId;

use super::Explorer;
use super::restart::fits;
use crate::graph::{Event, EventKind, NONE, Status, ThreadEnd};
use crate::system::{CellId, System, Token};

/// How a round can be without consequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idle {
    /// It only looks: where the round before looked, or once, after a round that has written.
    Waits,
    /// It only looks, once, where the round before, which only looked, did not.
    Looks,
    /// It does what the round before did, and comes to nothing.
    Repeats,
    /// It writes, but has read nothing new.
    Writes,
    /// It does, many times in a row, what the round before did, because others write what it reads again and again.
    Together,
}

impl Idle {
    /// Does the round only look?
    pub(super) fn is_look(self) -> bool {
        matches!(self, Self::Waits | Self::Looks)
    }
}

/// A round of a thread without consequence: its first and its last event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) idle: Idle,
}

/// Rounds with news that end with a choice, until all that is left is the first one of what can be chosen.
const MOST_CHOICES: u32 = 2;

impl<S: System> Explorer<'_, S> {
    /// The thread has just jumped backwards. If that completes a round of waiting, it is put back to the very state it
    /// came from (so that bounds on rounds do not count it); after the second such round it is stuck.
    pub(super) fn end_round(&mut self, thread: usize) {
        let Some(token) = self.system.save(ThreadId::new(thread)) else { return };
        let last = self.graph().thread(thread).last;
        let Some(first) = self.waiting_round(thread, last, token) else { return };
        let Event { before: token, po_prev: before, .. } = *self.graph().event(first);
        let is_second = self.waiting_round(thread, before, token).is_some();
        if is_second {
            self.undo_silent_write(thread);
        }
        self.system.restore(ThreadId::new(thread), token);
        self.graph_mut().thread_mut(thread).token = token;
        if is_second {
            self.graph_mut().thread_mut(thread).status = Status::Stuck;
        }
    }

    /// The same where there are no tokens.
    pub(super) fn end_marked_round(&mut self, thread: usize) {
        if self.graph().thread(thread).token == Token(0) {
            return;
        }
        self.loops.rehearsals.has_waited = true;
        self.undo_silent_write(thread);
        let end = *self.graph().thread(thread);
        if end.last == NONE {
            return;
        }
        if let Some(round) = self.idle_round(thread, end.last, end.token) {
            self.judge_end_of_round(thread, round, end.token);
        }
    }

    fn judge_end_of_round(&mut self, thread: usize, round: Round, marker: Token) {
        let id = ThreadId::new(thread);
        if !fits(self.graph().event(round.first), self.system.pending(id)) {
            // It is about to do something else, and so has left the loop.
            self.system.note_end(id);
        } else if let Some(round) = self.as_last_round(round, marker) {
            self.judge_round(thread, round);
        }
    }

    /// The write that revisits a read may have been the end of a round, and nobody has looked at that yet: two threads that
    /// wait with rounds of atomics could come between each other's once more for each round, for ever.
    pub(super) fn judge_rounds_after_revisit(&mut self) {
        for thread in 0..self.graph().width() {
            let ThreadEnd { status, token, last, .. } = *self.graph().thread(thread);
            let is_at_end = self.replays && status == Status::Live && token != Token(0) && last != NONE;
            if is_at_end
                && self.graph().event(last).kind.is_write()
                && let Some(round) = self.idle_round(thread, last, token)
                && round.idle == Idle::Repeats
            {
                self.judge_end_of_round(thread, round, token);
            }
        }
    }

    /// The round that ends with `last`, if it is without consequence.
    pub(super) fn idle_round(&self, thread: usize, last: u32, marker: Token) -> Option<Round> {
        if let Some(first) = self.waiting_round(thread, last, marker) {
            return self.is_of_one_moment(first, last).then_some(Round { first, last, idle: Idle::Waits });
        }
        let first = self.marked_round(last, marker)?;
        if self.repeats_round_before(first, last, marker) {
            return Some(Round { first, last, idle: Idle::Repeats });
        }
        // The round before had no news either, and yet this one does not repeat it.
        let before = self.graph().event(first).po_prev;
        let earlier = if before == NONE { None } else { self.marked_round(before, marker) };
        (earlier.is_some_and(|earlier| self.is_without_news(earlier, before)) && self.is_without_news(first, last))
            .then_some(Round { first, last, idle: Idle::Writes })
    }

    /// The round as one that the thread need not go on from, if there have been enough of them.
    pub(super) fn as_last_round(&self, round: Round, marker: Token) -> Option<Round> {
        let Round { first, last, idle } = round;
        match idle {
            Idle::Waits | Idle::Looks => {
                let idle = self.looks_again(first, last, marker)?;
                Some(Round { idle, ..round })
            }
            Idle::Repeats => self.futile_round(first, last, marker),
            Idle::Writes | Idle::Together => Some(round),
        }
    }

    /// Is what these reads have read still there after the last of them, as far as happens-before tells?
    pub(super) fn is_of_one_moment(&self, first: u32, last: u32) -> bool {
        self.all_of_round(first, last, |id| {
            let event = self.graph().event(id);
            let overwritten_by =
                if event.kind.is_read() { self.graph().write_after(event.cell, event.source) } else { NONE };
            overwritten_by == NONE || !self.graph().happens_before(overwritten_by, last)
        })
    }

    /// Has the thread looked at the same cells in the round before? What a round has changed nobody knows, so the first
    /// round of a loop is none that the thread could go on with for ever. One look after a round of other looks may be one of a
    /// loop that looks here and there in turn, whose rounds are never like the ones before. One look after a round that has
    /// written is taken to be its own round before: an attempt that failed at once, where those before came to nothing later.
    fn looks_again(&self, first: u32, last: u32, marker: Token) -> Option<Idle> {
        let before = self.graph().event(first).po_prev;
        if before == NONE {
            return None;
        }
        let (mut one, mut other) = (last, before);
        loop {
            let (event, earlier) = (self.graph().event(one), self.graph().event(other));
            if (event.kind, event.cell) != (earlier.kind, earlier.cell) {
                let earlier = if first == last { self.marked_round(before, marker)? } else { return None };
                return Some(if self.writes(earlier, before) { Idle::Waits } else { Idle::Looks });
            }
            if one == first {
                return Some(Idle::Waits);
            }
            if earlier.po_prev == NONE {
                return None;
            }
            (one, other) = (event.po_prev, earlier.po_prev);
        }
    }

    /// Are all these reads of own writes, or of writes that the thread has read before?
    fn is_without_news(&self, first: u32, last: u32) -> bool {
        self.all_of_round(first, last, |id| {
            let event = self.graph().event(id);
            may_repeat(event) && (!event.kind.is_read() || self.is_own(id) || self.is_read_again(id))
        })
    }

    /// Has the thread, which is about to choose at the end of a round (whether a wait with a timeout times out), gone round
    /// often enough, with news from others each time?
    ///
    /// Threads that wait with timeouts and for the same lock could do that for ever: each of them makes news for the others.
    pub(super) fn has_chosen_enough(&self, thread: usize) -> bool {
        let marker = self.system.place_of_choice(ThreadId::new(thread));
        let mut last = self.graph().thread(thread).last;
        let mut rounds = 0;
        while marker != Token(0)
            && last != NONE
            && let Some(first) = self.marked_round(last, marker)
        {
            rounds += u32::from(!self.is_without_news(first, last));
            last = self.graph().event(first).po_prev;
        }
        rounds >= MOST_CHOICES
    }

    pub(super) fn is_own(&self, read: u32) -> bool {
        let event = self.graph().event(read);
        event.source != NONE && self.graph().event(event.source).thread == event.thread
    }

    fn is_read_again(&self, read: u32) -> bool {
        let event = self.graph().event(read);
        event.read_prev != NONE && self.graph().event(event.read_prev).source == event.source
    }

    pub(super) fn all_of_round(&self, first: u32, last: u32, mut holds: impl FnMut(u32) -> bool) -> bool {
        let mut id = last;
        loop {
            if !holds(id) {
                return false;
            }
            if id == first {
                return true;
            }
            id = self.graph().event(id).po_prev;
        }
    }

    /// The round that a thread is stuck after, if it goes round a loop.
    pub(super) fn last_round(&self, thread: usize) -> Option<(u32, u32)> {
        let ThreadEnd { last, token, .. } = *self.graph().thread(thread);
        if last == NONE || self.graph().event(last).stuck {
            return None;
        }
        self.marked_round(last, token).map(|first| (first, last))
    }

    /// The cells in which a thread that is stuck after a round of a loop writes, in each round, something that is not
    /// there at its end or was not there at its beginning.
    pub(super) fn passing_writes(&self, thread: usize) -> Vec<CellId> {
        let Some((first, last)) = self.last_round(thread) else { return Vec::new() };
        let marker = self.graph().thread(thread).token;
        let repeats = self.repeats_round_before(first, last, marker);
        let (mut written, mut passing) = (Vec::new(), Vec::new());
        self.all_of_round(first, last, |id| {
            let event = self.graph().event(id);
            if event.kind.is_write() {
                if !repeats || written.contains(&event.cell) {
                    passing.push(event.cell);
                }
                written.push(event.cell);
            }
            true
        });
        passing
    }

    /// The cells that a thread that is stuck looks at again and again.
    pub(super) fn awaited_cells(&self, thread: usize) -> Vec<CellId> {
        let last = self.graph().thread(thread).last;
        let Some((first, last)) = self.last_round(thread) else { return vec![self.graph().event(last).cell] };
        let mut cells = Vec::new();
        self.all_of_round(first, last, |id| {
            let event = self.graph().event(id);
            if event.kind.is_read() {
                cells.push(event.cell);
            }
            true
        });
        cells
    }

    /// If all that a thread did in the round of a loop that it has just come out of, as far as is known, was to look at a
    /// cell, and it is about to look at it once more: what it has seen.
    pub(super) fn seen_in_round_before(&self, thread: usize, cell: CellId) -> Option<i64> {
        if !self.has_ended_round(thread) {
            return None;
        }
        let event = self.graph().event(self.graph().thread(thread).last);
        (is_look(event.kind) && event.cell == cell).then_some(event.value)
    }

    /// If a thread has just come to the end of a round of a loop: the cell it has looked at last, and what it has seen. (What it
    /// did with mutexes after that does not count.)
    pub(super) fn seen_at_end_of_round(&self, thread: usize) -> Option<(CellId, i64)> {
        if !self.has_ended_round(thread) {
            return None;
        }
        let mut event = self.graph().event(self.graph().thread(thread).last);
        let is_aside = |kind| {
            matches!(kind, EventKind::LockRead | EventKind::LockWrite | EventKind::Unlock | EventKind::RmwWrite { .. })
        };
        while is_aside(event.kind) {
            if event.po_prev == NONE {
                return None;
            }
            event = self.graph().event(event.po_prev);
        }
        is_look(event.kind).then_some((event.cell, event.value))
    }

    /// Has a thread of live code done nothing since it has passed a marker?
    fn has_ended_round(&self, thread: usize) -> bool {
        let end = self.graph().thread(thread);
        self.replays && end.token != Token(0) && end.last != NONE
    }

    /// The first event of the round that ends with `last`: the latest after a pass of the marker.
    pub(super) fn marked_round(&self, last: u32, marker: Token) -> Option<u32> {
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

    /// If the newest event is the write of an atomic that changed nothing, it goes, with the revisits it made possible.
    fn undo_silent_write(&mut self, thread: usize) {
        let newest = self.graph().len() - 1;
        let event = *self.graph().event(newest);
        if event.thread as usize != thread || !self.is_silent_write(newest) {
            return;
        }
        let token = self.graph().thread(thread).token;
        self.graph_mut().truncate(newest);
        self.graph_mut().event_mut(event.po_prev).has_write = false;
        self.graph_mut().thread_mut(thread).token = token;
        let items = &mut self.frame.items;
        while items.last().is_some_and(|item| item.len > newest) {
            items.pop();
        }
    }

    /// Is this the write of an atomic that changed nothing?
    fn is_silent_write(&self, id: u32) -> bool {
        let event = self.graph().event(id);
        matches!(event.kind, EventKind::RmwWrite { .. }) && self.graph().event(event.po_prev).value == event.value
    }

    /// Does the round of waiting that ends with this event read nothing that another thread overwrites? If the round
    /// writes: would it read the same in the end?
    pub(super) fn waits_for_ever(&self, last: u32) -> bool {
        let thread = self.graph().event(last).thread;
        let marker = self.graph().thread(thread as usize).token;
        let Some(first) = self.marked_round(last, marker) else { return false };
        if self.writes(first, last) {
            return self.would_read_the_same(first, last, NONE) && !self.would_see_unseen_change(first, last);
        }
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
    /// in this state, with nothing but reads from there on, and of each cell only one write read. With tokens, the last
    /// event may also be the write of an atomic that changed nothing.
    fn waiting_round(&self, thread: usize, last: u32, token: Token) -> Option<u32> {
        let mut id = last;
        let ends_silently = last != NONE && !self.replays && self.is_silent_write(last);
        while id != NONE {
            let event = self.graph().event(id);
            let is_last = id == last || ends_silently && id == self.graph().event(last).po_prev;
            let without_effect = match event.kind {
                EventKind::Load | EventKind::Fence(_) => true,
                EventKind::Choose => self.replays,
                EventKind::RmwRead(_) => !event.has_write || ends_silently && is_last,
                EventKind::RmwWrite { .. } => ends_silently && is_last,
                _ => false,
            };
            if !without_effect {
                return None;
            }
            // The two events of an atomic belong together.
            let may_begin = !event.kind.is_exclusive_write();
            if may_begin && self.system.same_state(ThreadId::new(thread), event.before, token) {
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

fn is_look(kind: EventKind) -> bool {
    matches!(kind, EventKind::Load | EventKind::RmwRead(_))
}

/// May a round with such an event be without consequence? A notification may if nobody waits for it.
pub(super) fn may_repeat(event: &Event) -> bool {
    match event.kind {
        EventKind::NotifyRead => !event.has_write,
        EventKind::NotifyWrite
        | EventKind::Signal
        | EventKind::Await
        | EventKind::WaitRead
        | EventKind::WaitWrite
        | EventKind::WaitUnlock
        | EventKind::WakeRead
        | EventKind::WakeWrite => false,
        _ => true,
    }
}
