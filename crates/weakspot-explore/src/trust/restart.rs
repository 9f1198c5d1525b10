//! Systems without tokens: going back means running everything again.
//!
//! What live code does between its events happens for real, so each run has to be one that SC allows. An alternative is
//! put into the graph first; then the system runs again along a linearisation of po ∪ rf ∪ co ∪ fr. The event that is
//! new (a read with a new source) is *held*: it comes as late as it can. If it is the read of an atomic, whether that
//! writes is known only when it is reached, and its write follows at once: all other readers of the source have gone,
//! and the next write of the cell has not. This never makes a cycle: one through the new write would lead from the next
//! write of the cell to another reader of the source, which comes before that write.
//!
//! Values are taken from the new run (addresses may differ from run to run): a read gets what its source has written
//! *now*. Kinds and cells of events must be what they were; if they are not, the system is not deterministic.

use thiserror::Error;
use weakspot_model::ids::ThreadId;

use super::{Alternative, Explorer};
use crate::graph::{Event, EventKind, NONE, Status};
use crate::system::{Misuse, Pending, System, UNBOUND, Update};

/// A system that did not do the same again although it was given the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("thread {} is not deterministic: its event {event} was {was:?}; run again with the same results, it is {pending:?}", thread.0)]
pub struct Divergence {
    /// The thread.
    pub thread: ThreadId,
    /// The first event that differs: its index in the thread.
    pub event: u32,
    /// What the event was.
    pub was: EventKind,
    /// What the thread was about to do instead.
    pub pending: Pending,
}

/// Is this what the thread did when the event was added?
pub(super) fn fits(event: &Event, pending: Pending) -> bool {
    match (event.kind, pending) {
        (EventKind::Load, Pending::Load(cell))
        | (EventKind::Store, Pending::Store { cell, .. })
        | (EventKind::InterlockedStore, Pending::InterlockedStore { cell, .. })
        | (EventKind::Signal, Pending::Signal(cell))
        | (EventKind::Await, Pending::Await(cell))
        | (EventKind::RmwRead(_) | EventKind::LockWrite, Pending::TryLock(cell)) => cell == event.cell,
        (EventKind::RmwRead(manner), Pending::Rmw { cell, drains_all: now }) => {
            (cell, now) == (event.cell, manner.drains_all())
        }
        (EventKind::RmwWrite { drains_all }, Pending::Rmw { cell, drains_all: now }) => {
            (cell, now) == (event.cell, drains_all)
        }
        (EventKind::LockRead | EventKind::LockWrite, Pending::Lock(mutex) | Pending::Wait { mutex, .. })
        | (EventKind::Unlock, Pending::Unlock(mutex))
        | (EventKind::WaitUnlock, Pending::Wait { mutex, .. }) => mutex == event.cell,
        (
            EventKind::WaitRead | EventKind::WaitWrite | EventKind::WakeRead | EventKind::WakeWrite,
            Pending::Wait { condvar, .. },
        )
        | (EventKind::NotifyRead | EventKind::NotifyWrite, Pending::Notify { condvar, .. }) => condvar == event.cell,
        (EventKind::Fence(kind), Pending::Fence(now)) => kind == now,
        (EventKind::Choose, Pending::Choose { lo, hi }) => (lo..=hi).contains(&event.value),
        (EventKind::LeaveCritical, Pending::LeaveCritical)
        | (EventKind::Misuse, Pending::Unlock(_) | Pending::Wait { .. }) => true,
        _ => false,
    }
}

impl<S: System> Explorer<'_, S> {
    /// Puts an alternative into the graph and runs the system again; false if the graph turns out inconsistent.
    pub(super) fn run_alternative(&mut self, what: Alternative) -> bool {
        let held = match what {
            Alternative::Source { thread, kind, cell, source, doomed: Some(doomed) } => {
                self.add_doomed(thread as usize, kind, cell, source, doomed);
                return false;
            }
            Alternative::Source { thread, kind, cell, source, .. } => {
                self.graph_mut().add_read(thread as usize, kind, cell, source)
            }
            Alternative::Place { thread, kind, cell, after } => {
                self.graph_mut().add_write(thread as usize, kind, cell, 0, after);
                NONE
            }
            Alternative::Choice { thread, value } => {
                self.graph_mut().add_local(thread as usize, EventKind::Choose, value, false);
                NONE
            }
            Alternative::Waiter { read, .. } => read,
            Alternative::Revisit { read, after } => return self.revisit(read, after),
        };
        let possible = self.lineariser.linearise_holding(&self.frame.graph, held);
        debug_assert!(possible, "an alternative keeps the graph consistent");
        let consistent = self.run_linearised(held, Some(what));
        if let Alternative::Choice { thread, .. } | Alternative::Place { thread, .. } = what
            && self.replays
        {
            // A choice or a store may be the end of a round, and nobody has looked at that yet.
            self.end_marked_round(thread as usize);
        }
        consistent
    }

    /// Runs the system along the order of a new frame. `held` is the read that the revisit is about.
    pub(super) fn run_revisit(&mut self, held: u32, what: Alternative) -> bool {
        let order = std::mem::take(&mut self.frame.order);
        let consistent = self.run_along(&order, held, Some(what));
        self.frame.order = order;
        consistent
    }

    /// Runs the system along the order that the lineariser found last, which may be one of a part of the graph.
    pub(super) fn run_linearised(&mut self, held: u32, what: Option<Alternative>) -> bool {
        let order = self.lineariser.take_order();
        let consistent = self.run_along(&order, held, what);
        self.lineariser.give_back(order);
        consistent
    }

    /// Runs the system along an order. Without an alternative nothing is held.
    pub(super) fn run_along(&mut self, order: &[u32], held: u32, what: Option<Alternative>) -> bool {
        self.system.restart();
        self.bound = 0;
        self.counters.runs += 1;
        let quickly = order.iter().rposition(|&id| id == held).unwrap_or(order.len());
        let done = self.repeat_quickly(&order[..quickly]);
        if !order[done..].iter().all(|&id| self.repeat(id, held, what)) {
            return false;
        }
        for thread in 0..self.graph().width() {
            if self.graph().thread(thread).status == Status::Live {
                self.settle(thread);
            }
        }
        true
    }

    /// Runs one event again, or the held one anew; false if the graph turns out inconsistent.
    pub(super) fn repeat(&mut self, id: u32, held: u32, what: Option<Alternative>) -> bool {
        if self.diverged.is_some() {
            return true;
        }
        let event = *self.graph().event(id);
        let thread = event.thread as usize;
        let mut pending = self.system.pending(ThreadId::new(thread));
        if pending.is_unbound() && event.cell != UNBOUND && !self.system.is_bound(event.cell) {
            pending = self.bind(thread, event.cell);
        }
        if !fits(&event, pending) {
            self.note_divergence(&event, pending);
            return true;
        }
        if event.kind.is_read() {
            let value = self.graph().value_of(event.cell, event.source);
            self.graph_mut().event_mut(id).value = value;
        }
        if id != held {
            self.feed_again(id, pending);
            return true;
        }
        match what {
            Some(Alternative::Waiter { waiter, .. }) => self.notify(thread, pending, held, Some(waiter)),
            _ => self.after_read(thread, pending, held),
        }
    }

    /// What a thread is about to do does not fit what it was about to do before.
    pub(super) fn note_divergence(&mut self, event: &Event, pending: Pending) {
        let Event { thread, index, kind, .. } = *event;
        let divergence = Divergence { thread: ThreadId(thread as u16), event: index, was: kind, pending };
        self.diverged = self.diverged.or(Some(divergence));
    }

    /// Lets an event of the graph happen again, with the values of this run.
    fn feed_again(&mut self, id: u32, pending: Pending) {
        let event = *self.graph().event(id);
        match (event.kind, pending) {
            (EventKind::Store | EventKind::InterlockedStore, _) => {
                if let Pending::Store { value, .. } | Pending::InterlockedStore { value, .. } = pending {
                    self.graph_mut().event_mut(id).value = value;
                }
            }
            (EventKind::RmwRead(_) | EventKind::RmwWrite { .. }, Pending::Rmw { .. }) if !event.stuck => {
                return self.update_again(id, &event, pending);
            }
            _ => {}
        }
        self.feed(&event);
    }

    /// The value that an event reads in this run. Where its cell has had no number until now, that may be another one than
    /// before: an initial value that is an address.
    fn read_again(&mut self, id: u32) -> i64 {
        let Event { cell, source, .. } = *self.graph().event(id);
        let value = self.graph().value_of(cell, source);
        self.graph_mut().event_mut(id).value = value;
        value
    }

    /// An atomic happens again: where it writes, if it does.
    fn update_again(&mut self, id: u32, event: &Event, pending: Pending) {
        let writes = matches!(event.kind, EventKind::RmwWrite { .. });
        if event.has_write {
            return;
        }
        let thread = ThreadId(event.thread as u16);
        let current = if writes { self.read_again(event.po_prev) } else { event.value };
        match self.system.update(thread, current) {
            Update::Acts { result, written: Some(written) } if writes || written == current => {
                if writes {
                    self.graph_mut().event_mut(id).value = written;
                }
                self.system.resume(thread, result);
            }
            Update::Acts { result, written: None } if !writes => self.system.resume(thread, result),
            Update::Fails if !writes => self.system.fail(thread, Misuse::Update(current)),
            _ => self.note_divergence(event, pending),
        }
    }

    /// Gives a thread the result of an event of the graph.
    pub(super) fn feed(&mut self, event: &Event) {
        let thread = ThreadId(event.thread as u16);
        match event.kind {
            EventKind::Load | EventKind::Choose => self.system.resume(thread, event.value),
            EventKind::LockWrite => {
                let tried = matches!(self.graph().event(event.po_prev).kind, EventKind::RmwRead(_));
                self.system.resume(thread, i64::from(tried));
            }
            EventKind::Store
            | EventKind::InterlockedStore
            | EventKind::Signal
            | EventKind::Await
            | EventKind::Unlock
            | EventKind::NotifyWrite
            | EventKind::Fence(_)
            | EventKind::LeaveCritical => self.system.resume(thread, 0),
            EventKind::RmwRead(_) | EventKind::NotifyRead if event.has_write || event.stuck => {}
            EventKind::NotifyRead => self.system.resume(thread, 0),
            EventKind::RmwRead(_) => self.feed_update(thread, event.value),
            EventKind::RmwWrite { .. } => self.feed_update(thread, self.graph().event(event.po_prev).value),
            EventKind::Misuse => self.system.fail(thread, Misuse::NotHolding),
            EventKind::LockRead
            | EventKind::WaitRead
            | EventKind::WaitWrite
            | EventKind::WaitUnlock
            | EventKind::WakeRead
            | EventKind::WakeWrite => {}
        }
    }

    fn feed_update(&mut self, thread: ThreadId, current: i64) {
        if matches!(self.system.pending(thread), Pending::TryLock(_)) {
            return self.system.resume(thread, 0);
        }
        match self.system.update(thread, current) {
            Update::Acts { result, .. } => self.system.resume(thread, result),
            Update::Fails => self.system.fail(thread, Misuse::Update(current)),
            Update::Blocks => {}
        }
    }
}
