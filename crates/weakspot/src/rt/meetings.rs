//! Threads that meet at a `Barrier`, of whom nobody asks which came last.
//!
//! If a barrier was one word that counts who has come, each thread would overwrite what the one before has written, and `n` threads
//! that meet once would have `n!` executions, all alike. So each of them opens a gate of its own, and passes those of all others:
//! then nothing tells in which order they came.
//!
//! # Who meets
//! Whoever comes has to know whose gates to pass, and that is found out, as it is for [`shares`](super::shares): a thread that comes
//! to a barrier for the first time is noted, and the exploration begins anew. Only a barrier for as many threads as all that come to
//! barriers has gates for each of them. They are the same every time: nobody can take the place of another one. What other barriers
//! do depends on who comes first, and they are words.
//!
//! # Where it matters
//! Whoever asks whether he is the leader has seen who came last. In a model that asks, all barriers are words.

use super::Place;
use super::observed::Group;
use super::runtime::Runtime;
use super::shares::threads_of;

/// What is going on at a barrier.
#[derive(Debug)]
struct Meeting {
    /// Its object.
    barrier: u32,
    /// How many it is for.
    threads: usize,
    /// How many have come since the run began.
    come: usize,
}

/// The barriers of a run.
#[derive(Debug, Default)]
pub(crate) struct Meetings {
    /// Who comes to barriers.
    members: Group,
    meetings: Vec<Meeting>,
}

impl Meetings {
    /// A new run.
    pub(super) fn reset(&mut self, members: Group) {
        self.members = members;
        self.meetings.clear();
    }

    fn meeting(&mut self, barrier: u32, threads: usize) -> &mut Meeting {
        let known = self.meetings.iter().position(|meeting| meeting.barrier == barrier);
        let at = known.unwrap_or_else(|| {
            self.meetings.push(Meeting { barrier, threads, come: 0 });
            self.meetings.len() - 1
        });
        &mut self.meetings[at]
    }
}

impl Runtime {
    /// The current thread has asked who came last: everything begins anew.
    pub(crate) fn observe_arrivals(&self, place: Place) {
        if self.is_free() || self.meetings.borrow().members.is_ordered {
            return;
        }
        {
            let mut counts = self.counts.borrow_mut();
            counts.observed.members.is_ordered = true;
            counts.found = true;
        }
        self.fail("whoever comes to a barrier last is observed".to_owned(), place)
    }

    /// The current thread is one of those that come to barriers. If that is new, everything begins anew.
    fn note_member(&self, place: Place) {
        let bit = 1 << self.thread.get();
        if self.is_free()
            || self.meetings.borrow().members.is_ordered
            || self.counts.borrow().observed.members.threads & bit != 0
        {
            return;
        }
        {
            let mut counts = self.counts.borrow_mut();
            counts.observed.members.threads |= bit;
            counts.found = true;
        }
        self.fail("a thread comes to a barrier".to_owned(), place)
    }

    /// The current thread comes to a barrier for so many. Is it one that all come to?
    pub(crate) fn is_for_all(&self, threads: usize, place: Place) -> bool {
        if threads <= 1 {
            return false;
        }
        self.note_member(place);
        let members = self.meetings.borrow().members;
        !members.is_ordered && members.threads.count_ones() as usize == threads
    }

    /// Somebody has come to a barrier.
    pub(crate) fn note_arrival(&self, barrier: u32, threads: usize) {
        self.meetings.borrow_mut().meeting(barrier, threads).come += 1;
    }

    /// The current thread meets all others at a barrier. What its first event and the last one are called, and the others. Is it the
    /// first of them by its number?
    pub(crate) fn meet_all(
        &self,
        barrier: u32,
        threads: usize,
        (what, again): (&'static str, &'static str),
        place: Place,
    ) -> bool {
        let own = self.thread.get();
        let (members, round) = {
            let mut meetings = self.meetings.borrow_mut();
            // Nobody can be a whole round ahead of it.
            (meetings.members.threads, (meetings.meeting(barrier, threads).come / threads) as u64)
        };
        let gate = |thread: u32| self.part(barrier, round * u64::from(u64::BITS) + u64::from(thread), place);
        self.open_gate(gate(own), what, place);
        self.note_arrival(barrier, threads);
        let mut others = threads_of(members & !(1 << own)).peekable();
        while let Some(other) = others.next() {
            self.pass_gate(gate(other), if others.peek().is_some() { again } else { what }, place);
        }
        members.trailing_zeros() == own
    }

    /// Of a barrier: how many have come for which round, as text.
    pub(super) fn describe_arrivals(&self, barrier: u32) -> Option<String> {
        let meetings = self.meetings.borrow();
        let meeting = meetings.meetings.iter().find(|meeting| meeting.barrier == barrier)?;
        let (come, threads) = (meeting.come % meeting.threads.max(1), meeting.threads);
        Some(format!(": {come} of {threads} threads {} come", if come == 1 { "has" } else { "have" }))
    }
}
