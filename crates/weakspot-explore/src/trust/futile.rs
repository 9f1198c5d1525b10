//! Rounds that write and come to nothing, in loops of live code.
//!
//! `while !ready() { try_lock(); look(); unlock(); spin_loop() }` writes in each round, and two such threads hand the lock
//! to each other for ever: each round reads a write that nobody has read before, so no two executions are the same, and
//! there are infinitely many. But a round that does, by value, what the one before it did has taught its thread nothing.
//!
//! A round is *futile* if
//!
//! 1. it repeats the round before it: the same kinds of events, cells and values (whoever has written them). If it reads
//!    what another thread has written since, nobody must have changed, since, memory that no event tells of: what a
//!    mutex protects, or a tracked cell ([`System::unseen_changes`](crate::system::System::unseen_changes));
//! 2. it leaves memory as it has found it: each cell that it writes has in the end the value that it had before, and no
//!    write of another thread stands between;
//! 3. nobody has seen what it wrote for a moment: no other thread reads a write of it that it overwrites itself. One
//!    look of another thread which is the whole last round of a loop that that thread rests in does not count;
//! 4. it would read the same once more: nothing that happens before its end says otherwise (else its thread will know
//!    in the next round, and there is nothing to be decided yet).
//!
//! A thread is stuck after so many futile rounds in a row ([`Explorer::futile_rounds_needed`]), if it would stay in its
//! loop (`probe`). It goes on if that is no longer so: another thread has come to see or to overwrite what it wrote. It
//! does so a bounded number of times in a row; after that the verdict is bounded.
//!
//! # Nothing is lost
//! *A futile round can be taken out of an execution.* Its thread is then where it was, by 1 (what `probe` says of local
//! state is assumed here as there). Who reads a last write of it reads what was there before, which is the same value by 2;
//! an atomic that follows it in coherence follows that. Nobody reads any other write of it by 3; the look that does not
//! count goes, too: it is the last event of its thread. So a failing execution, with its futile rounds taken out one
//! after the other, fails still. Reads-from, coherence and from-reads of what is left go between events that happened
//! before each other already, so nothing that was unordered becomes ordered. That is what a borderline
//! execution needs: a store `s` that does *not* happen before an access `a` on the machine with buffers.
//!
//! *A path of happens-before can be kept.* A borderline execution also needs a path from something that `s` is delayed
//! past to `a`. It passes through a thread once (or twice with no event in between that drains the buffer, which is the same
//! here), from an event `u` where it enters to one `w` where it leaves. Only what the events of the path and `s` depend on
//! (program order and reads-from) matters; the rest is taken away.
//!
//! - If something of the thread that comes after its futile rounds is left, then because somebody later on the path
//!   depends on it; so the path can leave the thread there, and from all its futile rounds needs the one with `u`. (If
//!   somebody earlier on the path, or `s`, depended on it, it would happen before `u`, which comes before it.)
//! - Otherwise the path needs the round with `u` and the one with `w`. The thread does nothing after that.
//!
//! So two futile rounds in a row are enough. That takes for granted that `u` is ordered before whatever its thread does in
//! later rounds, which is so if it is a load or is waited for, or if each round begins with an atomic that drains the
//! buffer. A store that is not waited for is ordered before `w` on PSO by nothing, so the path may need both rounds and
//! what follows them: three; and if there are fences in a round, the one that orders `u` and `w` may be in a round
//! between: four.
//!
//! One is enough if the round begins with an atomic that drains, writes no other cell, and reads what the round before has
//! read or the thread has written itself. Then a path that enters where the round begins enters where the next round
//! begins, and one that enters at another read enters at the same read of the round before.
//!
//! Data races are found, too: by C11 somebody who reads what a futile round has left does not synchronise with whoever was
//! there before, if the round acquires nothing. With the round taken out he does, so at least one is kept if it took over
//! from somebody else; and the first round, which repeats none, is always there.
//!
//! *All this is explored.* What a thread does is cut off after a row of futile rounds, wherever that row stands in its
//! loop, and a row is futile or not in a graph. If in the execution that we want one of these rounds is seen or
//! disturbed, then by an event that does not depend on what comes after the row: what is read or overwritten there is
//! overwritten by the row itself. So that event is added while the thread is stuck, and then the thread goes on.
//!
//! # Together
//! Two threads may also undo, again and again, what the other one did: no round is futile, and yet all come to nothing. After
//! [`MOST_TAKEN_OVER`] rounds of that kind the thread is stuck, whatever it would do alone, and the verdict is bounded.
//!
//! # What ends the waiting
//! Threads that are stuck so at the end would go on for ever, each alone, if all of them would read the same once more.
//! Whether they would do so together is tried out (`together`).

use weakspot_model::ids::ThreadId;

use super::Explorer;
use super::rounds::{Idle, Round, may_repeat};
use crate::graph::{Event, EventKind, NONE, Status};
use crate::linearise::is_step;
use crate::system::{CellId, LeftOut, System, Token};

/// Rounds in a row that a thread may repeat because others see them.
const MOST_REPEATED: u32 = 8;

/// Rounds in a row in which a thread does the same and reads new writes of others.
const MOST_TAKEN_OVER: u32 = 16;

impl<S: System> Explorer<'_, S> {
    /// A round that does what the one before did: the one after which there is no need to go on, if there is one.
    pub(super) fn futile_round(&self, first: u32, last: u32, marker: Token) -> Option<Round> {
        if self.rounds_taken_over(first, last, marker) >= MOST_TAKEN_OVER {
            return Some(Round { first, last, idle: Idle::Together });
        }
        self.last_of_futile_row(first, last, marker).or_else(|| {
            let is_enough = self.repeated_rounds(first, last, marker) >= MOST_REPEATED;
            is_enough.then_some(Round { first, last, idle: Idle::Writes })
        })
    }

    /// Is this thread, which is stuck after a round that writes, to go on, because others have come between?
    pub(super) fn is_roused(&mut self, thread: usize) -> bool {
        if !self.replays {
            return false;
        }
        let marker = self.graph().thread(thread).token;
        let Some((first, last)) = self.last_round(thread) else { return false };
        if !self.writes(first, last)
            || !self.repeats_round_before(first, last, marker)
            || self.last_of_futile_row(first, last, marker).is_some()
            || self.rounds_taken_over(first, last, marker) >= MOST_TAKEN_OVER
        {
            return false;
        }
        let may_go_on = self.repeated_rounds(first, last, marker) < MOST_REPEATED;
        if !may_go_on {
            self.system.leave_rounds_out(ThreadId::new(thread), LeftOut::Writes);
        }
        may_go_on
    }

    /// If the round came once more, after all that happens before `moment`, or after everything: would it read what it has
    /// read?
    pub(super) fn would_read_the_same(&self, first: u32, last: u32, moment: u32) -> bool {
        // Of each cell, what the round does with it first.
        let mut accesses: Vec<(CellId, Option<i64>)> = Vec::new();
        self.all_of_round(first, last, |id| {
            let Event { kind, cell, value, .. } = *self.graph().event(id);
            if kind.is_read() || kind.is_write() {
                let read = kind.is_read().then_some(value);
                match accesses.iter_mut().find(|(known, _)| *known == cell) {
                    Some((_, access)) => *access = read,
                    None => accesses.push((cell, read)),
                }
            }
            true
        });
        accesses.iter().all(|&(cell, read)| read.is_none_or(|value| value == self.value_at(cell, moment)))
    }

    /// What a cell holds after all that happens before `moment`, or after everything.
    pub(super) fn value_at(&self, cell: CellId, moment: u32) -> i64 {
        let mut write = self.graph().last_write(cell);
        while write != NONE && moment != NONE && !self.graph().happens_before(write, moment) {
            write = self.graph().event(write).co_prev;
        }
        self.graph().value_of(cell, write)
    }

    pub(super) fn writes(&self, first: u32, last: u32) -> bool {
        !self.all_of_round(first, last, |id| !self.graph().event(id).kind.is_write())
    }

    /// Of the repetitions of which this round is the last: have enough in a row been futile? The last of those.
    fn last_of_futile_row(&self, first: u32, last: u32, marker: Token) -> Option<Round> {
        let (mut first, mut last) = (first, last);
        let (mut in_a_row, mut newest) = (0, None);
        while self.repeats_round_before(first, last, marker) {
            if self.is_futile(first, last) {
                in_a_row += 1;
                newest = newest.or(Some(Round { first, last, idle: Idle::Repeats }));
                if in_a_row >= self.futile_rounds_needed(first, last) {
                    return newest;
                }
            } else {
                (in_a_row, newest) = (0, None);
            }
            last = self.graph().event(first).po_prev;
            first = self.marked_round(last, marker)?;
        }
        None
    }

    /// How many futile rounds like this one are explored: see the module.
    fn futile_rounds_needed(&self, first: u32, last: u32) -> u32 {
        let begins_in_order = self.begins_in_order(first);
        if begins_in_order && self.is_without_trace(first, last) {
            return 1;
        }
        let (mut stores, mut fences) = (false, false);
        self.all_of_round(first, last, |id| {
            match self.graph().event(id).kind {
                EventKind::Store => stores = true,
                EventKind::RmwRead(manner) if manner.looks() => {}
                EventKind::Load | EventKind::Choose | EventKind::LeaveCritical => {}
                _ => fences = true,
            }
            true
        });
        match (stores && !begins_in_order, fences) {
            (false, _) => 2,
            (true, false) => 3,
            (true, true) => 4,
        }
    }

    /// Does a round begin with an atomic that writes, and that the thread waits for?
    fn begins_in_order(&self, first: u32) -> bool {
        let event = self.graph().event(first);
        match event.kind {
            EventKind::RmwRead(manner) => manner.drains_all() && event.has_write,
            EventKind::LockRead => true,
            _ => false,
        }
    }

    /// Does a round, which does what the one before did, read what that one read, and write nothing but the cell that it
    /// begins with?
    fn is_without_trace(&self, first: u32, last: u32) -> bool {
        let cell = self.graph().event(first).cell;
        let mut earlier = self.graph().event(first).po_prev;
        self.all_of_round(first, last, |id| {
            let event = self.graph().event(id);
            let source = self.graph().event(earlier).source;
            earlier = self.graph().event(earlier).po_prev;
            if event.kind.is_read() {
                event.source == source || self.is_own(id)
            } else {
                !event.kind.is_write() || event.cell == cell
            }
        })
    }

    /// How many rounds in a row, this one included, do what the one before did.
    fn repeated_rounds(&self, first: u32, last: u32, marker: Token) -> u32 {
        let (mut first, mut last) = (first, last);
        let mut rounds = 0;
        while self.repeats_round_before(first, last, marker) {
            rounds += 1;
            last = self.graph().event(first).po_prev;
            let Some(before) = self.marked_round(last, marker) else { break };
            first = before;
        }
        rounds
    }

    /// How many rounds in a row, up to this one, do what the one before did and read new writes of others. (Those that read
    /// none do not count.)
    fn rounds_taken_over(&self, first: u32, last: u32, marker: Token) -> u32 {
        let (mut first, mut last) = (first, last);
        let mut rounds = 0;
        while self.repeats_round_before(first, last, marker) {
            let mut earlier = self.graph().event(first).po_prev;
            let takes_none = self.all_of_round(first, last, |id| {
                let takes = self.takes_over(id, earlier);
                earlier = self.graph().event(earlier).po_prev;
                !takes
            });
            rounds += u32::from(!takes_none);
            last = self.graph().event(first).po_prev;
            let Some(before) = self.marked_round(last, marker) else { break };
            first = before;
        }
        rounds
    }

    /// Does the round leave memory as it found it, would it read the same again, and has nobody seen what it wrote for a
    /// moment?
    fn is_futile(&self, first: u32, last: u32) -> bool {
        // Of each cell: the last write of the round, and the earliest of those that have been looked at.
        let mut written: Vec<(u32, u32)> = Vec::new();
        let thread = self.graph().event(first).thread as usize;
        let unseen = self.all_of_round(first, last, |id| {
            let event = self.graph().event(id);
            if !event.kind.is_write() {
                return true;
            }
            match written.iter_mut().find(|(last, _)| self.graph().event(*last).cell == event.cell) {
                None => written.push((id, id)),
                // Nobody writes between, and nobody reads.
                Some((_, next)) => {
                    if event.co_next != *next || self.is_seen_by_others(id, thread) {
                        return false;
                    }
                    *next = id;
                }
            }
            true
        });
        unseen
            && written.iter().all(|&(last, first)| {
                let Event { cell, co_prev, .. } = *self.graph().event(first);
                self.graph().value_of(cell, co_prev) == self.graph().event(last).value
            })
            && self.would_read_the_same(first, last, last)
    }

    /// Does another thread read a write, and is that more than the one look of a round of waiting that it rests after?
    fn is_seen_by_others(&self, write: u32, thread: usize) -> bool {
        let events = self.graph().events().iter().zip(0..);
        events
            .filter(|(event, _)| event.kind.is_read() && event.source == write && event.thread as usize != thread)
            .any(|(event, id)| !event.stuck && !self.is_last_look(id))
    }

    fn is_last_look(&self, read: u32) -> bool {
        let event = self.graph().event(read);
        let end = self.graph().thread(event.thread as usize);
        end.status == Status::Stuck && end.last == read && event.before == end.token && end.token != Token(0)
    }

    /// Does the round do what the one before it did?
    pub(super) fn repeats_round_before(&self, first: u32, last: u32, marker: Token) -> bool {
        let earlier_last = self.graph().event(first).po_prev;
        if earlier_last == NONE {
            return false;
        }
        let earlier_first = self.marked_round(earlier_last, marker);
        let (mut one, mut other) = (last, earlier_last);
        let mut takes_over = false;
        loop {
            if other == NONE || !self.repeats(one, other) {
                return false;
            }
            takes_over |= self.takes_over(one, other);
            if one == first || Some(other) == earlier_first {
                // Where the first round of all began nobody knows. That the same was done before is enough.
                return one == first
                    && earlier_first.is_none_or(|first| other == first)
                    && !(takes_over && self.has_unseen_news(earlier_last, last));
            }
            (one, other) = (self.graph().event(one).po_prev, self.graph().event(other).po_prev);
        }
    }

    /// Does an event that repeats an earlier one read a write of another thread that that one did not read?
    fn takes_over(&self, id: u32, earlier: u32) -> bool {
        let event = self.graph().event(id);
        event.kind.is_read() && event.source != self.graph().event(earlier).source && !self.is_own(id)
    }

    /// Has memory that no event tells of been changed, as far as what happens before `last` but not before `earlier`, an
    /// event of the same thread, can tell?
    fn has_unseen_news(&self, earlier: u32, last: u32) -> bool {
        let thread = self.graph().event(last).thread as usize;
        self.any_unseen_change(|of, event| match event {
            Some(event) => self.graph().happens_before(event, last) && !self.graph().happens_before(event, earlier),
            None => of == thread,
        })
    }

    /// Has another thread changed memory that no event tells of, and would the round, if it came once more, come after that
    /// for the first time? Otherwise its thread may not look there: that would be a race.
    pub(super) fn would_see_unseen_change(&self, first: u32, last: u32) -> bool {
        let thread = self.graph().event(last).thread as usize;
        let mut latest = Vec::new();
        self.all_of_round(first, last, |id| {
            let event = self.graph().event(id);
            if event.kind.is_read() {
                latest.push(self.graph().last_write(event.cell));
            }
            true
        });
        self.any_unseen_change(|of, event| {
            let Some(event) = event.filter(|_| of != thread) else { return false };
            let is_before = |&write: &u32| write != NONE && self.graph().happens_before(event, write);
            !self.graph().happens_before(event, last) && latest.iter().any(is_before)
        })
    }

    /// Is there such a change of memory that no event tells of: by this thread, before this event of it, if one came?
    fn any_unseen_change(&self, is_such: impl Fn(usize, Option<u32>) -> bool) -> bool {
        (0..self.graph().width()).any(|thread| {
            let changes = self.system.unseen_changes(ThreadId::new(thread));
            if changes.is_empty() {
                return false;
            }
            let steps = self.steps_of(thread);
            changes.iter().any(|&change| is_such(thread, steps.get(change as usize).copied()))
        })
    }

    /// The events of a thread that are steps of the system, in order.
    fn steps_of(&self, thread: usize) -> Vec<u32> {
        let mut steps = Vec::new();
        let mut id = self.graph().thread(thread).last;
        while id != NONE {
            let event = self.graph().event(id);
            if is_step(event) && event.kind != EventKind::WaitWrite {
                steps.push(id);
            }
            id = event.po_prev;
        }
        steps.reverse();
        steps
    }

    /// Is this event a repetition of an earlier one of its thread?
    fn repeats(&self, id: u32, earlier: u32) -> bool {
        let (event, earlier) = (self.graph().event(id), self.graph().event(earlier));
        may_repeat(event) && (event.kind, event.cell, event.value) == (earlier.kind, earlier.cell, earlier.value)
    }
}
