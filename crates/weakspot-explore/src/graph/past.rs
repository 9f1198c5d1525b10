//! An event and what happens before it, in an order that SC could have executed it in.
//!
//! The clocks of the graph say at once whether an event may go: when everything of the other threads that it comes after
//! has gone. So nothing has to be prepared for the rest of the graph, as it is where there are no clocks yet
//! ([`crate::linearise`]).

use super::Graph;
use super::rows::{Lanes, exceeds};

/// Reusable tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct PastOrder {
    order: Vec<u32>,
    /// The events of each thread that are part of it.
    threads: Vec<Vec<u32>>,
    /// How many of each thread have gone.
    gone: Vec<Lanes>,
}

impl PastOrder {
    /// The order found last.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// Orders an event and what happens before it, so that before each event of its thread nothing has gone that need not.
    pub(crate) fn linearise(&mut self, graph: &Graph, last: u32) {
        self.prepare(graph, last);
        self.order.reserve(self.threads.iter().map(Vec::len).sum());
        let thread = graph.event(last).thread as usize;
        loop {
            self.go_on(graph, thread, usize::MAX);
            let Some(&waits) = self.threads[thread].get(self.gone(thread)) else { return };
            let went = self.order.len();
            self.let_go_before(graph, waits);
            assert!(self.order.len() > went, "invariant: clocks have no cycles");
        }
    }

    fn prepare(&mut self, graph: &Graph, last: u32) {
        self.order.clear();
        self.threads.resize_with(graph.width(), Vec::new);
        // Relaxed happens-before, if it is kept beside, does not matter.
        self.gone.clone_from(&graph.scratch);
        self.gone.as_flattened_mut().fill(u16::MAX);
        self.gone.as_flattened_mut()[..graph.width()].fill(0);
        for events in &mut self.threads {
            events.clear();
        }
        let counts = graph.happens_before.row(last).as_flattened();
        for (id, event) in (0..).zip(&graph.events) {
            let thread = event.thread as usize;
            if event.index < u32::from(counts[thread]) {
                self.threads[thread].push(id);
            }
        }
    }

    #[inline]
    fn gone(&self, thread: usize) -> usize {
        usize::from(self.gone.as_flattened()[thread])
    }

    /// Lets a thread go as far as it can, up to so many events: an event is ready if all that it comes after has gone.
    /// Does anything go?
    #[inline]
    fn go_on(&mut self, graph: &Graph, thread: usize, count: usize) -> bool {
        let before = self.gone(thread);
        let mut gone = before;
        // For itself a thread does not wait.
        self.gone.as_flattened_mut()[thread] = u16::MAX;
        while let Some(&id) = self.threads[thread].get(gone)
            && gone < count
            && !exceeds(graph.happens_before.row(id), &self.gone)
        {
            self.order.push(id);
            gone += 1;
        }
        self.gone.as_flattened_mut()[thread] = gone as u16;
        gone > before
    }

    /// Lets what happens before an event go, and the event: threads take turns.
    fn let_go_before(&mut self, graph: &Graph, event: u32) {
        let mut progress = true;
        while progress {
            progress = false;
            for thread in 0..self.threads.len() {
                progress |= self.go_on(graph, thread, graph.happens_before.entry(event, thread) as usize);
            }
        }
    }
}
