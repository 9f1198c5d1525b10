//! What the search comes back to: graphs, each with its open alternatives.

use crate::graph::{EventKind, Graph};
use crate::system::CellId;

/// Something to come back to: truncate the graph, then do it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// Events to keep.
    pub(super) len: u32,
    pub(super) what: Alternative,
    /// Which part of the search this is: where it goes on in several ways, all are taken to be equally large.
    pub(super) share: f64,
    /// Of how many of the events that are kept a monitor's findings have been told when this is taken up, or [`UNTOLD`]
    /// until the run that has left it open is over. What was told in the meantime is told again: it depends on who has
    /// explored what, and what is told must not.
    pub(super) told: u32,
    /// It is a look of a thread that has looked there before. If the thread only goes on waiting then, there is nothing
    /// to explore (`next`).
    pub(super) is_look: bool,
}

/// It is not known yet what will have been told.
pub(super) const UNTOLD: u32 = u32::MAX;

impl Item {
    pub(super) fn new(len: u32, what: Alternative) -> Self {
        Self { len, what, share: 0.0, told: UNTOLD, is_look: false }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Alternative {
    /// The thread's read takes this source. If it is doomed, it is that of an atomic that would write this.
    Source { thread: u32, kind: EventKind, cell: CellId, source: u32, doomed: Option<Doomed> },
    /// The thread's store goes after this write.
    Place { thread: u32, kind: EventKind, cell: CellId, after: u32 },
    /// The thread's `choose` takes this value.
    Choice { thread: u32, value: i64 },
    /// The thread's notification, whose read is its last event, wakes this waiter.
    Waiter { thread: u32, read: u32, waiter: u32 },
    /// The newest event, a write, goes after `after` and is read by `read`.
    Revisit { read: u32, after: u32 },
}

/// What an atomic would write whose source another one has taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Doomed {
    pub(super) kind: EventKind,
    pub(super) value: i64,
    /// It is a notification of all.
    pub(super) notifies_all: bool,
}

/// A graph with its open alternatives.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) graph: Graph,
    pub(super) items: Vec<Item>,
    /// An order in which SC could have executed the events that the graph began with; those that were added since came
    /// later. An alternative may have made that wrong: it is only where to look first.
    pub(super) order: Vec<u32>,
}

impl Default for Frame {
    fn default() -> Self {
        Self { graph: Graph::new(0, std::iter::empty()), items: Vec::new(), order: Vec::new() }
    }
}

/// In boxes: a frame becomes the one that is worked on, and waits again, without being moved.
pub(super) type Frames = Vec<Box<Frame>>;
