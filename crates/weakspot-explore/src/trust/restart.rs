//! Systems without tokens: going back means running everything again.

use weakspot_model::ids::ThreadId;

use super::Explorer;
use crate::graph::{Event, EventKind};
use crate::system::{Misuse, Pending, System, Update};

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

    /// Feeds the recorded results again. The thread of `until` stops in front of that event, its last.
    pub(super) fn replay(&mut self, until: Option<u32>) {
        self.stale = false;
        self.system.restart();
        for id in 0..self.graph().len() {
            if until == Some(id) {
                continue;
            }
            let event = *self.graph().event(id);
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
