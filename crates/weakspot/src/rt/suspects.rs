//! What a thread frees while it is not known to be the last that uses it.
//!
//! Freeing is no event, and of each trace one execution is run. So a use that could as well come after the free may come before it
//! in all of them. What is looked for is an execution in which it comes after, and there is one of the same trace if
//!
//! - the use (or what its thread does next: the use of a cell is no event, nor is a look at what is known to be complete) is not
//!   before the last event of the freeing thread in the order of the trace;
//! - nothing that weakspot does not see keeps the one from freeing before the other has used it: the reference count of a
//!   `std` `Arc`, an atomic of `std`.
//!
//! The first is known from the trace. The second is found out by running that execution: the thread stands before its use, the
//! other one runs on and frees, then the first one goes on. If it comes to use what was freed, it is a failure, and that execution
//! is shown. So no order that weakspot cannot see makes a false alarm.
//!
//! Happens-before of the C11 orderings alone does not do. It knows less than there is (those `std` counts), so that correct programs
//! would be told of. It only saves trials: what happens before the free does so in every order.
//!
//! What an `Arc` of weakspot holds is not suspect when its last owner frees it: who uses it is an owner, and what that did before it
//! went happens before the free. (Who keeps a pointer without being an owner is found only if he comes later in an execution that
//! is run.)
//!
//! Here it is noted what is suspect when memory is freed, in passing. Who has used it, and when, is found out at the end of the run.

use super::causality::{Access, Began, Marked, Question};
use super::lane::{Happened, Operation};
use super::runtime::Runtime;
use super::state::State;
use super::{Place, slot, tracked};

/// What is in memory that is freed.
#[derive(Debug, Clone, Copy)]
enum What {
    Object(u32),
    Plain(u32),
}

/// Memory is freed, and threads that have not ended by then, as far as who frees it knows, may have used what is in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Suspect {
    what: What,
    /// The address and the size of the memory.
    block: (usize, usize),
    /// Who frees it.
    thread: u32,
    /// Events of the run before.
    events: u32,
    /// What the thread knew.
    knew: Marked,
}

/// Those of a use and of the last event before the free.
pub(crate) type Places = (Place, Place);

/// A use that may also come after the free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LateUse {
    /// Whose use it is.
    pub(crate) user: u32,
    /// Events of that thread before it.
    pub(crate) before: u32,
    /// Which of its accesses to plain memory it is, if it is one, from 1 on.
    pub(crate) plain: Option<u32>,
    /// Who frees.
    pub(crate) freer: u32,
    /// Events of that thread before it does.
    pub(crate) freed_after: u32,
    /// The places of the use and of the last event before the free.
    pub(crate) places: Places,
    access: Using,
    knew: Marked,
}

#[derive(Debug, Clone, Copy)]
enum Using {
    Object(u32),
    Plain(Access),
    /// What its thread knew then.
    Unseen(Question),
}

/// A use of an object that is no event: a thread looks at what it knows to be complete.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unseen {
    object: u32,
    thread: u32,
    began: Began,
    place: Place,
    /// What the thread knew.
    knew: Question,
}

impl Runtime {
    /// What these bits name is in memory that the current thread frees.
    #[cfg_attr(not(feature = "allocator"), allow(dead_code, reason = "nobody knows"))]
    pub(super) fn suspect(&self, bits: u64, block: (usize, usize)) {
        let Ok(mut state) = self.state.try_borrow_mut() else { return };
        let state = &mut *state;
        let thread = self.thread.get();
        if state.has_joined_all(thread) {
            return;
        }
        let what = match (slot::object_of(bits, self.token.get()), tracked::number_of(bits)) {
            (Some(object), _) => What::Object(object),
            (None, Ok(plain)) => What::Plain(plain),
            (None, Err(object)) => What::Object(object),
        };
        let events = state.log.len() as u32;
        let knew = match state.suspects.last() {
            Some(last) if last.thread == thread && last.events == events => last.knew,
            _ => state.causality.mark_here(thread),
        };
        state.suspects.push(Suspect { what, block, thread, events, knew });
    }

    /// The last owner of an `Arc` whose target is at this address has gone: what was freed with it nobody else could use.
    pub(super) fn acquit(&self, target: usize) {
        let Ok(mut state) = self.state.try_borrow_mut() else { return };
        let holds_target = |suspect: &mut Suspect| target.wrapping_sub(suspect.block.0) < suspect.block.1;
        while state.suspects.pop_if(holds_target).is_some() {}
    }

    /// Is there anything suspect in the run?
    #[inline]
    pub(crate) fn has_suspects(&self) -> bool {
        !self.state.borrow().suspects.is_empty()
    }

    /// The last use of each thread of what is suspect in the run, if its place and that of the last event before the free are wanted.
    pub(crate) fn late_uses(&self, found: &mut Vec<LateUse>, wanted: impl FnMut(Places) -> bool) {
        // With store buffers, executions are made in all orders, but for what is no event, and for stores: those go into the
        // buffer as soon as they can.
        self.state().late_uses(self.buffered.get(), found, wanted);
    }

    /// Does the use happen before the free, by the orderings of the program or by what the runtime knows besides?
    pub(crate) fn is_ordered(&self, late: &LateUse) -> bool {
        let causality = &mut self.state().causality;
        match late.access {
            // The clocks do not tell when a store went into the buffer.
            Using::Object(_) if self.buffered.get() => false,
            Using::Object(object) => causality.knew_use(late.knew, late.user, object),
            Using::Plain(access) => causality.knew_access(late.knew, &access),
            Using::Unseen(knew) => causality.was_known(knew, late.knew),
        }
    }
}

/// What is worked out of a run, in memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Of each entry of the log: how many events its thread has done before. Nothing as long as nobody needs it.
    done: Vec<u32>,
    /// The same for each thread, in the end.
    counts: Vec<u32>,
    /// Who frees, how many events the run had by then, and which was the last of its own.
    last_step: ((u32, u32), usize),
    /// Of each object: the number of the last suspect that it is in, from 1 on, and the threads whose last use is known.
    objects: Vec<(u32, u64)>,
}

impl State {
    /// A thread uses an object, and no event tells of it.
    pub(super) fn note_unseen(&mut self, object: u32, thread: u32, began: Began, place: Place) {
        let knew = self.causality.mark(thread);
        let new = Unseen { object, thread, began, place, knew };
        let is_same = |known: &&mut Unseen| (known.object, known.thread) == (object, thread);
        match self.unseen.iter_mut().rev().find(is_same) {
            Some(known) => *known = new,
            None => self.unseen.push(new),
        }
    }

    /// Has the thread joined all others that there are, or those that have?
    fn has_joined_all(&self, thread: u32) -> bool {
        let joined = self.lanes[thread as usize].joined | 1 << thread;
        let is_known = |(number, lane): (usize, &super::lane::Lane)| {
            joined & 1 << number != 0 || self.is_hidden(number) || matches!(lane.operation, Operation::Absent)
        };
        self.lanes.iter().enumerate().all(is_known)
    }

    fn late_uses(&mut self, only_stores: bool, found: &mut Vec<LateUse>, mut wanted: impl FnMut(Places) -> bool) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear(self.objects.len());
        for (suspect, number) in self.suspects.iter().zip(1..) {
            match suspect.what {
                What::Object(object) => {
                    if let Some(known) = scratch.objects.get_mut(object as usize) {
                        *known = (number, 0);
                    }
                    let is_use = |seen: &&Unseen| seen.object == object && seen.thread != suspect.thread;
                    for &Unseen { thread, began, place, knew, .. } in self.unseen.iter().filter(is_use) {
                        let use_of = (thread, began.since, Some(began.ordinal));
                        let using = (place, Using::Unseen(knew));
                        found.extend(self.late_use(&mut scratch, suspect, use_of, using, &mut wanted));
                    }
                }
                What::Plain(plain) => {
                    for access in self.causality.accesses_of(plain).filter(|access| access.thread != suspect.thread) {
                        let use_of = (access.thread, access.began.since, Some(access.began.ordinal));
                        let using = (access.place, Using::Plain(access));
                        found.extend(self.late_use(&mut scratch, suspect, use_of, using, &mut wanted));
                    }
                }
            }
        }
        self.add_parts(&mut scratch);
        let last_free = self.suspects.last().map_or(0, |suspect| suspect.events as usize);
        for (at, happened) in self.log[..last_free].iter().enumerate().rev() {
            let Some(object) = happened.operation.object() else { continue };
            let Some((number @ 1.., threads)) = scratch.objects.get_mut(object as usize) else { continue };
            let suspect = &self.suspects[*number as usize - 1];
            let bit = 1 << happened.thread;
            if happened.thread == suspect.thread || at >= suspect.events as usize || *threads & bit != 0 {
                continue;
            }
            if !only_stores || matches!(happened.operation, Operation::Store(..)) {
                *threads |= bit;
                let use_of = (happened.thread, at as u32, None);
                let using = (happened.place, Using::Object(object));
                found.extend(self.late_use(&mut scratch, suspect, use_of, using, &mut wanted));
            }
        }
        self.scratch = scratch;
    }

    /// What is no memory of its own goes with what it belongs to.
    fn add_parts(&self, scratch: &mut Scratch) {
        let flags = self.seen_flags.iter().map(super::poison::Seen::parts);
        let parts = self.parts.iter().map(|(&(of, _), &part)| (of, part));
        for (of, part) in flags.chain(parts) {
            let whole = scratch.objects.get(of as usize).copied();
            if let (Some((number @ 1.., _)), Some(part)) = (whole, scratch.objects.get_mut(part as usize)) {
                *part = (number, 0);
            }
        }
    }

    /// A use by a thread when the run had so many events.
    fn late_use(
        &self,
        scratch: &mut Scratch,
        suspect: &Suspect,
        (user, events, plain): (u32, u32, Option<u32>),
        (place, access): (Place, Using),
        wanted: &mut impl FnMut(Places) -> bool,
    ) -> Option<LateUse> {
        let &Suspect { thread: freer, knew, .. } = suspect;
        let last = self.last_step(scratch, suspect)?;
        let places = (place, self.log[last].place);
        if !wanted(places) {
            return None;
        }
        scratch.count(&self.log, self.lanes.len());
        let freed_after = scratch.done[last] + 1;
        let before = self.log[..events as usize].iter().rposition(|happened| happened.is_step_of(user));
        let before = before.map_or(0, |at| scratch.done[at] + 1);
        Some(LateUse { user, before, plain, freer, freed_after, places, access, knew })
    }

    /// The last event of who frees before.
    fn last_step(&self, scratch: &mut Scratch, &Suspect { thread, events, .. }: &Suspect) -> Option<usize> {
        if scratch.last_step.0 != (thread, events) {
            let by_then = &self.log[..events as usize];
            let last = by_then.iter().rposition(|happened| happened.is_step_of(thread))?;
            scratch.last_step = ((thread, events), last);
        }
        Some(scratch.last_step.1)
    }
}

impl Scratch {
    /// For a run with so many objects.
    fn clear(&mut self, objects: usize) {
        self.done.clear();
        self.objects.clear();
        self.objects.resize(objects, (0, 0));
        self.last_step = ((u32::MAX, 0), 0);
    }

    /// Counts the events of each thread, once.
    fn count(&mut self, log: &[Happened], threads: usize) {
        if !self.done.is_empty() {
            return;
        }
        self.counts.clear();
        self.counts.resize(threads, 0);
        self.done.extend(log.iter().map(|happened| {
            let count = &mut self.counts[happened.thread as usize];
            let before = *count;
            *count += u32::from(happened.is_step_of(happened.thread));
            before
        }));
    }
}
