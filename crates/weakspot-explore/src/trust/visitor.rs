//! Who is told of what the search finds, and how a graph can end. [`super::ending`] decides which it is.

use std::ops::ControlFlow;

use weakspot_model::ids::ThreadId;
use weakspot_model::machine::Action;

use super::Subtree;
use crate::graph::Graph;
use crate::system::System;

/// How an explored graph ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every thread has ended and the specification holds.
    Complete,
    /// Every thread has ended and the specification does not hold.
    Wrong,
    /// Nobody can move and somebody has not ended.
    Deadlock,
    /// A thread has failed; the others went as far as they could.
    Failed,
    /// No execution: a false `assume`, or a thread that waits for something that is there; or one that never ends: a
    /// loop that waits for something that does not come.
    Blocked,
    /// A thread reached the bound on loop rounds.
    Bounded,
    /// A thread spins without events.
    Spinning,
    /// Nobody can move, and somebody goes round a loop that waits for what nobody will write (only without tokens).
    Livelock,
    /// There are more events than one execution may have, or more revisits that lead from one to the next; the search has
    /// to stop.
    TooLong,
}

/// Told about every explored graph.
pub trait Visitor<S: System> {
    /// A thread has just failed: its last event is the newest of the graph that belongs to it.
    fn failed(&mut self, graph: &Graph, system: &mut S, thread: ThreadId) -> ControlFlow<()>;

    /// An execution in which a thread has waited fails if it waits longer. These are its steps; there is no graph of it.
    fn failed_after_waiting(&mut self, _system: &mut S, _thread: ThreadId, _steps: &[Action]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A graph that cannot be extended.
    fn ended(&mut self, graph: &Graph, system: &mut S, ending: Ending) -> ControlFlow<()>;

    /// An exploration was given up before its graph ended: it would have been no execution. There may be many between two
    /// that end.
    fn led_nowhere(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// This part of the search is done; all parts together are 1.
    fn covered(&mut self, _share: f64) {}

    /// Is there somebody who would take a part of the search?
    fn wants_work(&self) -> bool {
        false
    }

    /// A part of the search that will not be done here.
    fn take(&mut self, _subtree: Subtree) {}
}
