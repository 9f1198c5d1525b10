//! Reads: which writes they can take, and how their threads go on from there.

use weakspot_model::ids::ThreadId;

use super::{Alternative, Doomed, Explorer, FREE, HELD, Item, bit};
use crate::graph::{Event, EventKind, Manner, NONE, Phase, Status};
use crate::system::{CellId, Misuse, Pending, System, Update};

impl<S: System> Explorer<'_, S> {
    /// Adds a read that takes the last write, and leaves the other sources for later.
    pub(super) fn read(&mut self, thread: usize, pending: Pending, cell: CellId) -> bool {
        let graph = self.graph();
        let len = graph.len();
        let last = graph.last_write(cell);
        let kind = self.read_kind(thread, pending);
        if kind == EventKind::WakeRead
            && let Some(notification) = self.only_notification(thread, cell)
        {
            return self.take_source(thread, pending, notification);
        }
        let mut source = last;
        let may_block = matches!(pending, Pending::Rmw { .. }) && self.system.may_block(ThreadId::new(thread));
        let looking = self.seen_in_round_before(thread, cell).map(|_| self.history(thread));
        while source != NONE && !self.graph().happens_before_next_of(source, thread) {
            let overwritten_by = source;
            source = self.graph().event(source).co_prev;
            if self.satisfies(thread, kind, cell, source)
                && !(may_block && self.blocks_at(thread, cell, source))
                && !looking.is_some_and(|history| self.would_wait(history, cell, source))
            {
                let doomed = if self.replays { self.doomed(thread, pending, source, overwritten_by) } else { None };
                let what = Alternative::Source { thread: thread as u32, kind, cell, source, doomed };
                let is_look = looking.is_some() && doomed.is_none();
                self.frame.items.push(Item { is_look, ..Item::new(len, what) });
            }
        }
        self.take_source(thread, pending, last)
    }

    pub(super) fn read_kind(&self, thread: usize, pending: Pending) -> EventKind {
        match (pending, self.graph().thread(thread).phase) {
            (Pending::Load(_), _) => EventKind::Load,
            (Pending::Rmw { drains_all, .. }, _) => {
                EventKind::RmwRead(Manner::new(drains_all, self.system.looks(ThreadId::new(thread))))
            }
            (Pending::TryLock(_), _) => EventKind::RmwRead(Manner::All),
            (Pending::Notify { .. }, _) => EventKind::NotifyRead,
            (Pending::Wait { .. }, Phase::Running) => EventKind::WaitRead,
            (Pending::Wait { .. }, Phase::Asleep) => EventKind::WakeRead,
            _ => EventKind::LockRead,
        }
    }

    /// Can the thread go on from reading this source?
    #[inline]
    pub(super) fn satisfies(&self, thread: usize, kind: EventKind, cell: CellId, source: u32) -> bool {
        match kind {
            EventKind::LockRead => self.graph().value_of(cell, source) == FREE,
            EventKind::WakeRead => self.is_woken_by(thread, source) || self.may_leave(thread, cell, source),
            _ => true,
        }
    }

    /// Would an atomic wait for ever if it read from this source, which is not the last one? Like a mutex that was held then: no
    /// revisit could change that, because the read is not maximally added (`unblock`).
    fn blocks_at(&self, thread: usize, cell: CellId, source: u32) -> bool {
        self.system.update(ThreadId::new(thread), self.graph().value_of(cell, source)) == Update::Blocks
    }

    /// What this atomic would write although another atomic has taken its source. Then the graph is inconsistent until a
    /// revisit gives the other one a new source, and there is nothing to run yet.
    fn doomed(&self, thread: usize, pending: Pending, source: u32, overwritten_by: u32) -> Option<Doomed> {
        if !self.graph().event(overwritten_by).kind.is_exclusive_write() {
            return None;
        }
        let write = |kind, value| Some(Doomed { kind, value, notifies_all: false });
        match pending {
            Pending::Lock(_) => write(EventKind::LockWrite, HELD),
            Pending::TryLock(mutex) if self.graph().value_of(mutex, source) == FREE => {
                write(EventKind::LockWrite, HELD)
            }
            Pending::Wait { condvar, .. } => match self.graph().thread(thread).phase {
                Phase::Running => write(EventKind::WaitWrite, self.graph().value_of(condvar, source) | bit(thread)),
                Phase::Woken => write(EventKind::LockWrite, HELD),
                Phase::Entered | Phase::Asleep => None,
            },
            Pending::Rmw { cell, drains_all } => {
                let value = self.graph().value_of(cell, source);
                match self.system.update(ThreadId::new(thread), value) {
                    // One that changes nothing may turn out to be a round of waiting, which does not write.
                    Update::Acts { written: Some(written), .. } if written != value => {
                        write(EventKind::RmwWrite { drains_all }, written)
                    }
                    _ => None,
                }
            }
            Pending::Notify { condvar, all } => {
                let waiters = self.graph().value_of(condvar, source);
                // If there are several, any of them may be woken; if there is nobody, nothing is written.
                (waiters != 0 && (all || waiters.count_ones() == 1)).then_some(Doomed {
                    kind: EventKind::NotifyWrite,
                    value: 0,
                    notifies_all: all,
                })
            }
            _ => None,
        }
    }

    /// Adds such an atomic, for the sake of the revisits. If its value is another one in a later run, it will be noted.
    pub(super) fn add_doomed(&mut self, thread: usize, kind: EventKind, cell: CellId, source: u32, doomed: Doomed) {
        let write = self.graph_mut().add_doomed(thread, (kind, doomed.kind), cell, source, doomed.value);
        self.graph_mut().event_mut(write).notifies_all = doomed.notifies_all;
        match doomed.kind {
            EventKind::LockWrite => self.graph_mut().thread_mut(thread).phase = Phase::Running,
            EventKind::WaitWrite => self.graph_mut().thread_mut(thread).phase = Phase::Entered,
            _ => {}
        }
        self.push_revisits(write);
    }

    /// The waiters that a write of a condition variable has woken.
    fn woken_by(&self, write: u32) -> i64 {
        let event = self.graph().event(write);
        if event.kind != EventKind::NotifyWrite {
            return 0;
        }
        self.graph().event(event.po_prev).value & !event.value
    }

    pub(super) fn is_woken_by(&self, thread: usize, write: u32) -> bool {
        write != NONE && self.woken_by(write) & bit(thread) != 0
    }

    /// The notification that wakes a thread, if there is one and the thread cannot wake up without it.
    fn only_notification(&self, thread: usize, condvar: CellId) -> Option<u32> {
        if self.spurious_wakeups { None } else { self.notification(thread, condvar) }
    }

    /// Would this read have to take that write, which is after its source in coherence, if it were added once more? Being
    /// woken takes the notification that names the thread; there is one at most, and the other writes do not matter.
    pub(super) fn would_take(&self, read: &Event, later: u32) -> bool {
        read.kind != EventKind::WakeRead
            || self.spurious_wakeups
            || read.stuck && self.is_woken_by(read.thread as usize, later)
    }

    pub(super) fn take_source(&mut self, thread: usize, pending: Pending, source: u32) -> bool {
        let kind = self.read_kind(thread, pending);
        let cell = match (kind, pending) {
            (_, Pending::Load(cell) | Pending::Rmw { cell, .. } | Pending::Lock(cell) | Pending::TryLock(cell)) => cell,
            (_, Pending::Notify { condvar, .. }) => condvar,
            (EventKind::LockRead, Pending::Wait { mutex, .. }) => mutex,
            (_, Pending::Wait { condvar, .. }) => condvar,
            _ => unreachable!("invariant: only reads have sources"),
        };
        let read = self.graph_mut().add_read(thread, kind, cell, source);
        self.after_read(thread, pending, read)
    }

    /// Goes on from a read that has its source; false if the graph is then inconsistent.
    pub(super) fn after_read(&mut self, thread: usize, pending: Pending, read: u32) -> bool {
        let Event { kind, cell, source, value, .. } = *self.graph().event(read);
        if !self.satisfies(thread, kind, cell, source) {
            return self.get_stuck(thread, read);
        }
        match kind {
            EventKind::Load => {
                self.resume(thread, value);
                true
            }
            EventKind::RmwRead(_) if matches!(pending, Pending::TryLock(_)) => {
                let free = value == FREE;
                let consistent = !free || self.write_part(thread, EventKind::LockWrite, read, HELD);
                self.resume(thread, i64::from(free));
                consistent
            }
            EventKind::RmwRead(manner) => self.update(thread, read, value, manner.drains_all()),
            EventKind::LockRead => {
                let consistent = self.write_part(thread, EventKind::LockWrite, read, HELD);
                self.graph_mut().thread_mut(thread).phase = Phase::Running;
                self.resume(thread, 0);
                consistent
            }
            EventKind::WaitRead => {
                let consistent = self.write_part(thread, EventKind::WaitWrite, read, value | bit(thread));
                self.graph_mut().thread_mut(thread).phase = Phase::Entered;
                consistent
            }
            EventKind::WakeRead => {
                let written = value & !bit(thread);
                let consistent = written == value || self.write_part(thread, EventKind::WakeWrite, read, written);
                self.graph_mut().thread_mut(thread).phase = Phase::Woken;
                consistent
            }
            EventKind::NotifyRead => self.notify(thread, pending, read, None),
            _ => unreachable!("invariant: only reads have sources"),
        }
    }

    /// The thread's last event is a read that it cannot go on from.
    fn get_stuck(&mut self, thread: usize, read: u32) -> bool {
        self.graph_mut().event_mut(read).stuck = true;
        self.graph_mut().thread_mut(thread).status = Status::Stuck;
        true
    }

    pub(super) fn update(&mut self, thread: usize, read: u32, value: i64, drains_all: bool) -> bool {
        match self.system.update(ThreadId::new(thread), value) {
            Update::Fails => {
                self.system.fail(ThreadId::new(thread), Misuse::Update(value));
                self.settle(thread);
                true
            }
            Update::Blocks => self.get_stuck(thread, read),
            Update::Acts { result, written: None } => {
                self.resume(thread, result);
                true
            }
            Update::Acts { result, written: Some(written) } => {
                let consistent = self.write_part(thread, EventKind::RmwWrite { drains_all }, read, written);
                self.resume(thread, result);
                consistent || !self.graph().event(read).has_write
            }
        }
    }

    /// What a notification does. If nobody waits, it only looks. Without a choice: wakes the first waiter, and leaves the
    /// others for later.
    pub(super) fn notify(&mut self, thread: usize, pending: Pending, read: u32, choice: Option<u32>) -> bool {
        let waiters = self.graph().event(read).value;
        if waiters == 0 {
            self.resume(thread, 0);
            return true;
        }
        let all = matches!(pending, Pending::Notify { all: true, .. });
        let written = match choice {
            _ if all => 0,
            Some(waiter) => waiters & !bit(waiter as usize),
            None => {
                for waiter in (0..self.graph().width()).rev().filter(|&waiter| waiters & bit(waiter) != 0) {
                    if waiters & (bit(waiter) - 1) != 0 {
                        let what = Alternative::Waiter { thread: thread as u32, read, waiter: waiter as u32 };
                        self.push_item(self.graph().len(), what);
                    }
                }
                waiters & waiters.wrapping_sub(1)
            }
        };
        let consistent = self.write_part(thread, EventKind::NotifyWrite, read, written);
        let write = self.graph().len() - 1;
        let event = self.graph_mut().event_mut(write);
        (event.first_choice, event.notifies_all) = (choice.is_none(), all);
        self.resume(thread, 0);
        consistent
    }
}
