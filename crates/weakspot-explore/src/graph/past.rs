//! An event and what happens before it, in an order that SC could have executed it in.
//!
//! The clocks of the graph say at once whether an event may go: when everything of the other threads that it comes after
//! has gone. So nothing has to be prepared for the rest of the graph, as it is where there are no clocks yet
//! ([`crate::linearise`]).

use super::rows::{Lanes, exceeds_besides};
use super::{Graph, NONE};

/// Reusable tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct PastOrder {
    order: Vec<u32>,
    /// The events of each thread that have not gone, the next one last.
    left: Vec<Vec<u32>>,
    /// How many events of each thread have gone.
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
        self.order.reserve(self.left.iter().map(Vec::len).sum());
        let thread = graph.event(last).thread as usize;
        loop {
            self.go_on(graph, thread, u32::MAX);
            let Some(&waits) = self.left[thread].last() else { return };
            let went = self.order.len();
            self.let_go_before(graph, waits);
            assert!(self.order.len() > went, "invariant: clocks have no cycles");
        }
    }

    fn prepare(&mut self, graph: &Graph, last: u32) {
        self.order.clear();
        self.left.resize_with(graph.width(), Vec::new);
        // Relaxed happens-before, if it is kept beside, does not matter.
        self.gone.clone_from(&graph.scratch);
        self.gone.as_flattened_mut().fill(u16::MAX);
        for (thread, left) in self.left.iter_mut().enumerate() {
            left.clear();
            self.gone.as_flattened_mut()[thread] = 0;
            let count = graph.happens_before.entry(last, thread);
            let mut id = graph.thread(thread).last;
            while id != NONE {
                let event = graph.event(id);
                if event.index < count {
                    left.push(id);
                }
                id = event.po_prev;
            }
        }
    }

    /// Lets a thread go as far as it can, up to so many events: an event is ready if all that it comes after has gone.
    /// Does anything go?
    #[inline]
    fn go_on(&mut self, graph: &Graph, thread: usize, count: u32) -> bool {
        let Self { order, left, gone } = self;
        let left = &mut left[thread];
        let before = left.len();
        while let Some(&id) = left.last()
            && graph.event(id).index < count
            && !exceeds_besides(graph.happens_before.row(id), gone, thread)
        {
            order.push(id);
            left.pop();
            gone.as_flattened_mut()[thread] += 1;
        }
        left.len() < before
    }

    /// Lets what happens before an event go, and the event: threads take turns.
    fn let_go_before(&mut self, graph: &Graph, event: u32) {
        let mut progress = true;
        while progress {
            progress = false;
            for thread in 0..self.left.len() {
                progress |= self.go_on(graph, thread, graph.happens_before.entry(event, thread));
            }
        }
    }
}
