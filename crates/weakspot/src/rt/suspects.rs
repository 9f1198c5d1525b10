//! What a thread frees while it is not known to be the last that uses it.
//!
//! Freeing is no event, and of each trace one execution is run. So a use that could as well come after the free may come before it
//! in all of them. What is looked for is an execution in which it comes after, and there is one of the same trace if
//!
//! - the use (or, of a cell, whose use is no event, what its thread does next) is not before the last event of the freeing thread in the
//!   order of the trace;
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

use super::causality::{Access, Marked};
use super::lane::Operation;
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
    pub(crate) places: (Place, Place),
    access: Using,
    knew: Marked,
}

#[derive(Debug, Clone, Copy)]
enum Using {
    Object(u32),
    Plain(Access),
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
        // Executions with store buffers are made in all orders, but for what is no event.
        let what = match (slot::object_of(bits, self.token.get()), tracked::number_of(bits)) {
            (Some(object), _) => What::Object(object),
            (None, Ok(plain)) => What::Plain(plain),
            (None, Err(object)) => What::Object(object),
        };
        if self.buffered.get() && matches!(what, What::Object(_)) {
            return;
        }
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

    /// The last use of each thread of what is suspect in the run, one for each pair of places.
    pub(crate) fn late_uses(&self) -> Vec<LateUse> {
        self.state().late_uses()
    }

    /// Does the use happen before the free, by the orderings of the program or by what the runtime knows besides?
    pub(crate) fn is_ordered(&self, late: &LateUse) -> bool {
        let causality = &mut self.state().causality;
        match late.access {
            Using::Object(object) => causality.knew_use(late.knew, late.user, object),
            Using::Plain(access) => causality.knew_access(late.knew, &access),
        }
    }
}

impl State {
    /// Has the thread joined all others that there are, or those that have?
    fn has_joined_all(&self, thread: u32) -> bool {
        let joined = self.lanes[thread as usize].joined | 1 << thread;
        let is_known = |(number, lane): (usize, &super::lane::Lane)| {
            joined & 1 << number != 0 || matches!(lane.operation, Operation::Absent)
        };
        self.lanes.iter().enumerate().all(is_known)
    }

    fn late_uses(&self) -> Vec<LateUse> {
        let mut found: Vec<LateUse> = Vec::new();
        let mut add = |late: LateUse| {
            let same = |one: Place, other: Place| std::ptr::eq(one, other);
            let is_same = |other: &LateUse| same(other.places.0, late.places.0) && same(other.places.1, late.places.1);
            if !found.iter().any(is_same) {
                found.push(late);
            }
        };
        // The last one that each object is in.
        let mut suspects = vec![None; self.objects.len()];
        for suspect in &self.suspects {
            match suspect.what {
                What::Object(object) => {
                    if let Some(known) = suspects.get_mut(object as usize) {
                        *known = Some(suspect);
                    }
                }
                What::Plain(plain) => self
                    .causality
                    .accesses_of(plain)
                    .filter(|access| access.thread != suspect.thread)
                    .filter_map(|access| self.late_access(suspect, access))
                    .for_each(&mut add),
            }
        }
        // Its last use by each other thread.
        let mut last: Vec<(u32, usize)> = Vec::new();
        for (at, happened) in self.log.iter().enumerate() {
            let Some(object) = happened.operation.object() else { continue };
            let Some(&Some(suspect)) = suspects.get(object as usize) else { continue };
            if happened.thread == suspect.thread || at >= suspect.events as usize {
                continue;
            }
            let is_same =
                |&&mut (other, then): &&mut (u32, usize)| other == object && self.log[then].thread == happened.thread;
            match last.iter_mut().find(is_same) {
                Some((_, then)) => *then = at,
                None => last.push((object, at)),
            }
        }
        last.sort_unstable_by_key(|&(object, at)| (object, self.log[at].thread));
        for (object, at) in last {
            let (happened, Some(suspect)) = (&self.log[at], suspects[object as usize]) else { continue };
            let user = happened.thread;
            let before = self.log[..at].iter().filter(|happened| happened.is_step_of(user)).count() as u32;
            let late = self.late_use(suspect, (user, before, None), happened.place, Using::Object(object));
            if let Some(late) = late {
                add(late);
            }
        }
        found
    }

    fn late_access(&self, suspect: &Suspect, access: Access) -> Option<LateUse> {
        let by_then = &self.log[..access.events as usize];
        let before = by_then.iter().filter(|happened| happened.is_step_of(access.thread)).count() as u32;
        self.late_use(suspect, (access.thread, before, Some(access.ordinal)), access.place, Using::Plain(access))
    }

    fn late_use(
        &self,
        suspect: &Suspect,
        (user, before, plain): (u32, u32, Option<u32>),
        place: Place,
        access: Using,
    ) -> Option<LateUse> {
        let &Suspect { thread: freer, events, knew, .. } = suspect;
        let mut own = self.log[..events as usize].iter().rev().filter(|happened| happened.is_step_of(freer));
        let last = own.next()?;
        let freed_after = 1 + own.count() as u32;
        Some(LateUse { user, before, plain, freer, freed_after, places: (place, last.place), access, knew })
    }
}
