//! Total orders of the events of a graph that SC could have executed them in.
//!
//! A read may go when its source has gone; a write may go when its coherence predecessor and all reads of that have
//! gone. Threads take turns, each going as far as it can, so the order is deterministic and switches threads seldom. If
//! some event can never go, po ∪ rf ∪ co ∪ fr has a cycle and the graph is not sequentially consistent.

use weakspot_model::ir::FenceKind;

use crate::graph::{Event, EventKind, Graph, NONE};
use crate::monitor::{self, Operation};

/// Reusable tables.
#[derive(Debug, Clone, Default)]
pub struct Lineariser {
    order: Vec<u32>,
    events: Vec<Links>,
    /// The next event of each thread.
    cursor: Vec<u32>,
}

/// What an event has to do with others.
#[derive(Debug, Clone, Copy)]
struct Links {
    /// For writes: how many events have to go first, program order apart.
    waits_for: u32,
    /// For reads: the write that has to go first.
    source: u32,
    /// The write that waits for it.
    releases: u32,
    po_next: u32,
    gone: bool,
}

impl Links {
    const NONE: Self = Self { waits_for: 0, source: NONE, releases: NONE, po_next: NONE, gone: false };
}

impl Lineariser {
    /// The order found last.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Orders all events; false if that is not possible.
    pub fn linearise(&mut self, graph: &Graph) -> bool {
        self.linearise_some(graph, |_| true);
        self.order.len() == graph.events().len()
    }

    /// Orders all events, one of them as late as possible: after everything that need not come after it. So if it is the
    /// read of an atomic, all other reads of its source have gone, and its write may follow at once. False if that is
    /// not possible.
    pub fn linearise_holding(&mut self, graph: &Graph, held: u32) -> bool {
        self.prepare(graph);
        self.drain(graph, |id| id != held);
        self.drain(graph, |_| true);
        self.order.len() == graph.events().len()
    }

    /// Takes the order away; [`Lineariser::give_back`] returns the memory.
    pub(crate) fn take_order(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.order)
    }

    /// Takes back the memory of an order.
    pub(crate) fn give_back(&mut self, order: Vec<u32>) {
        self.order = order;
    }

    /// Orders the events that `wanted` allows, which have to be closed under happens-before.
    pub fn linearise_some(&mut self, graph: &Graph, wanted: impl Fn(u32) -> bool) {
        self.prepare(graph);
        self.drain(graph, wanted);
    }

    /// Orders an event and what happens before it, and then another one and what happens before that.
    pub fn linearise_both(&mut self, graph: &Graph, first: u32, second: u32) {
        self.prepare(graph);
        self.drain(graph, |id| graph.happens_before(id, first));
        self.drain(graph, |id| graph.happens_before(id, first) || graph.happens_before(id, second));
    }

    /// Adds an event to the order that was found last, whether it may go or not.
    pub fn add(&mut self, id: u32) {
        self.order.push(id);
    }

    /// Orders all events so that before each event of `thread` nothing has gone that need not: what happens before it
    /// goes, and no more. The graph has to be consistent.
    pub fn linearise_lazily(&mut self, graph: &Graph, thread: usize) {
        self.prepare(graph);
        while self.cursor[thread] != NONE {
            self.go_lazily(graph, thread);
        }
        self.drain(graph, |_| true);
    }

    /// Lets the next event of a thread go, after what happens before it. Mostly all of that has gone already: then the event
    /// is ready.
    fn go_lazily(&mut self, graph: &Graph, thread: usize) {
        if let Some(id) = self.ready(thread) {
            return self.go(thread, id);
        }
        let target = self.cursor[thread];
        self.drain(graph, |id| graph.happens_before(id, target));
    }

    /// Lets the wanted events go, as long as any can.
    fn drain(&mut self, graph: &Graph, wanted: impl Fn(u32) -> bool) {
        let mut progress = true;
        while progress {
            progress = false;
            for thread in 0..graph.width() {
                while let Some(id) = self.ready(thread)
                    && wanted(id)
                {
                    self.go(thread, id);
                    progress = true;
                }
            }
        }
    }

    fn prepare(&mut self, graph: &Graph) {
        let Self { order, events, cursor } = self;
        order.clear();
        events.clear();
        events.resize(graph.events().len(), Links::NONE);
        cursor.clear();
        cursor.resize(graph.width(), NONE);
        for (id, event) in graph.events().iter().enumerate() {
            if event.po_prev == NONE {
                cursor[event.thread as usize] = id as u32;
            } else {
                events[event.po_prev as usize].po_next = id as u32;
            }
            if event.kind.is_read() {
                let overwritten_by = graph.write_after(event.cell, event.source);
                (events[id].source, events[id].releases) = (event.source, overwritten_by);
                if overwritten_by != NONE {
                    events[overwritten_by as usize].waits_for += 1;
                }
            } else if event.kind.is_write() {
                events[id].releases = event.co_next;
                events[id].waits_for += u32::from(event.co_prev != NONE);
            }
        }
    }

    #[inline]
    fn ready(&self, thread: usize) -> Option<u32> {
        let id = self.cursor[thread];
        if id == NONE {
            return None;
        }
        let Links { waits_for, source, .. } = self.events[id as usize];
        let ready = waits_for == 0 && (source == NONE || self.events[source as usize].gone);
        ready.then_some(id)
    }

    #[inline]
    fn go(&mut self, thread: usize, id: u32) {
        self.order.push(id);
        let event = &mut self.events[id as usize];
        event.gone = true;
        self.cursor[thread] = event.po_next;
        let released = event.releases;
        if released != NONE {
            self.events[released as usize].waits_for -= 1;
        }
    }
}

/// Is this event the one that stands for a step of its thread? An atomic that writes acts where its write stands (other
/// reads of its source may come between its two events), a `wait` begins where it enters the list of waiters, and a
/// read that waits for a mutex or a notification has not happened yet.
pub fn is_step(event: &Event) -> bool {
    match event.kind {
        EventKind::RmwRead(_) | EventKind::NotifyRead => !event.has_write && !event.stuck,
        EventKind::LockRead | EventKind::WaitRead | EventKind::WaitUnlock | EventKind::WakeRead => false,
        _ => true,
    }
}

/// What a monitor sees of an event; nothing for events that are no access to a cell and no fence, and for reads that
/// wait for a mutex or a notification.
#[inline]
pub fn observed(graph: &Graph, id: u32) -> Option<monitor::Event> {
    let event = graph.event(id);
    let interlocked = |writes| Operation::Atomic { writes, drains_all: true };
    let operation = match event.kind {
        EventKind::Load => Operation::Load,
        EventKind::Store => Operation::Store,
        EventKind::RmwRead(_) if event.stuck => return None,
        EventKind::RmwRead(manner) if manner.looks() => Operation::Load,
        EventKind::RmwRead(manner) if !event.has_write => {
            Operation::Atomic { writes: false, drains_all: manner.drains_all() }
        }
        EventKind::RmwWrite { drains_all } => Operation::Atomic { writes: true, drains_all },
        EventKind::LockWrite
        | EventKind::Unlock
        | EventKind::WaitWrite
        | EventKind::WaitUnlock
        | EventKind::NotifyWrite
        | EventKind::WakeWrite
        | EventKind::InterlockedStore
        | EventKind::Signal => interlocked(true),
        EventKind::Await => interlocked(false),
        EventKind::WakeRead if !event.stuck && !event.has_write => interlocked(false),
        EventKind::NotifyRead if !event.has_write => interlocked(false),
        EventKind::Fence(FenceKind::StoreStore) => Operation::StoreFence,
        EventKind::Fence(FenceKind::Full | FenceKind::StoreLoad) => Operation::FullFence,
        _ => return None,
    };
    Some(monitor::Event { thread: event.thread, index: event.index, operation, cell: event.cell, label: id })
}
