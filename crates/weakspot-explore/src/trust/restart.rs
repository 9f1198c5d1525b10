//! Systems without tokens: going back means running everything again.

use thiserror::Error;
use weakspot_model::ids::ThreadId;

use super::Explorer;
use crate::graph::{Event, EventKind};
use crate::system::{Misuse, Pending, System, Update};

/// A system that did not do the same again although it was given the same results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("thread {} is not deterministic: run again, its event {event} is {pending:?}", thread.0)]
pub struct Divergence {
    /// The thread.
    pub thread: ThreadId,
    /// The first event that differs: its index in the thread.
    pub event: u32,
    /// What the thread was about to do instead.
    pub pending: Pending,
}

/// Is this what the thread did when the event was added?
pub(super) fn fits(event: &Event, pending: Pending) -> bool {
    match (event.kind, pending) {
        (EventKind::Load, Pending::Load(cell)) => cell == event.cell,
        (EventKind::Store, Pending::Store { cell, value }) => (cell, value) == (event.cell, event.value),
        (EventKind::RmwRead { drains_all }, Pending::Rmw { cell, drains_all: now }) => {
            (cell, now) == (event.cell, drains_all)
        }
        (EventKind::LockRead | EventKind::LockWrite, Pending::Lock(mutex) | Pending::Wait { mutex, .. })
        | (EventKind::Unlock, Pending::Unlock(mutex))
        | (EventKind::WaitUnlock, Pending::Wait { mutex, .. }) => mutex == event.cell,
        (EventKind::WaitRead | EventKind::WaitWrite | EventKind::WakeRead, Pending::Wait { condvar, .. })
        | (EventKind::NotifyRead | EventKind::NotifyWrite, Pending::Notify { condvar, .. }) => condvar == event.cell,
        (EventKind::Fence(kind), Pending::Fence(now)) => kind == now,
        (EventKind::Choose, Pending::Choose { lo, hi }) => (lo..=hi).contains(&event.value),
        (EventKind::LeaveCritical, Pending::LeaveCritical)
        | (EventKind::Misuse, Pending::Unlock(_) | Pending::Wait { .. }) => true,
        // The write of an atomic comes after its thread has gone on.
        (EventKind::RmwWrite { .. }, _) => true,
        _ => false,
    }
}

impl<S: System> Explorer<'_, S> {
    /// The thread rests at an event of the graph that is being given a new source.
    pub(super) fn pending_again_at(&mut self, thread: u32, read: u32) -> Pending {
        self.stale = true;
        if self.replays {
            self.replay(Some(read));
        } else {
            let token = self.graph().event(read).before;
            self.system.restore(ThreadId(thread as u16), token);
        }
        self.system.pending(ThreadId(thread as u16))
    }

    /// Without tokens: runs the system again to where the graph is.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        if self.replays && self.stale {
            self.replay(None);
        }
    }

    /// What a thread is about to do does not fit what it was about to do before.
    pub(super) fn note_divergence(&mut self, thread: usize, pending: Pending) {
        let event = self.graph().thread(thread).len;
        self.diverged = self.diverged.or(Some(Divergence { thread: ThreadId::new(thread), event, pending }));
    }

    /// Feeds the recorded results again. The thread of `until` stops in front of that event, its last.
    pub(super) fn replay(&mut self, until: Option<u32>) {
        self.stale = false;
        self.system.restart();
        for id in 0..self.graph().len() {
            if until == Some(id) {
                continue;
            }
            let event = *self.graph().event(id);
            let pending = self.system.pending(ThreadId(event.thread as u16));
            if !fits(&event, pending) {
                self.diverged = Some(Divergence { thread: ThreadId(event.thread as u16), event: event.index, pending });
                return;
            }
            self.feed(&event);
        }
    }

    pub(super) fn feed(&mut self, event: &Event) {
        let thread = ThreadId(event.thread as u16);
        match event.kind {
            EventKind::Load | EventKind::Choose => self.system.resume(thread, event.value),
            EventKind::Store
            | EventKind::Unlock
            | EventKind::LockWrite
            | EventKind::NotifyWrite
            | EventKind::Fence(_)
            | EventKind::LeaveCritical => self.system.resume(thread, 0),
            EventKind::RmwRead { .. } => match self.system.update(thread, event.value) {
                Update::Acts { result, .. } => self.system.resume(thread, result),
                Update::Fails => self.system.fail(thread, Misuse::Update(event.value)),
            },
            EventKind::Misuse => self.system.fail(thread, Misuse::NotHolding),
            EventKind::RmwWrite { .. }
            | EventKind::LockRead
            | EventKind::WaitRead
            | EventKind::WaitWrite
            | EventKind::WaitUnlock
            | EventKind::WakeRead
            | EventKind::NotifyRead => {}
        }
    }
}
