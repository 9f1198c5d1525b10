//! Mutual exclusion on the level of traces: can two threads be inside critical blocks at the same time in *some*
//! linearisation of a graph?
//!
//! A thread is inside from the event that leads into the block (or from the start) until the step of its own that
//! leaves it. That step touches no cell, so it can be put off until just before the thread's next event. Two stays
//! overlap in some linearisation unless one is over before the other begins: the step that leaves the one happens
//! before the event that leads into the other.

use weakspot_model::ids::ThreadId;

use crate::graph::{Graph, NONE};
use crate::system::System;

/// One stay of a thread inside critical blocks.
#[derive(Debug, Clone, Copy)]
struct Stay {
    thread: u32,
    /// The event that led into it; [`NONE`]: the thread starts inside.
    enter: u32,
    /// The event that left it; [`NONE`]: it was not left.
    leave: u32,
}

/// Finds stays that can overlap.
#[derive(Debug, Default)]
pub struct Critical {
    stays: Vec<Stay>,
    /// The stay each thread is in.
    open: Vec<u32>,
}

impl Critical {
    /// Two events whose pasts together lead two threads inside. Needs tokens.
    pub fn overlap<S: System>(&mut self, graph: &Graph, system: &mut S) -> Option<(u32, u32)> {
        self.collect(graph, system);
        for (index, first) in self.stays.iter().enumerate() {
            for second in &self.stays[..index] {
                if first.thread != second.thread && !is_over(graph, first, second) && !is_over(graph, second, first) {
                    return Some((second.enter, first.enter));
                }
            }
        }
        None
    }

    fn collect<S: System>(&mut self, graph: &Graph, system: &mut S) {
        self.stays.clear();
        self.open.clear();
        self.open.resize(graph.width(), NONE);
        for event in graph.events() {
            // Where the thread was before the event: inside, or not.
            system.restore(ThreadId(event.thread as u16), event.before);
            self.note(event.thread, event.po_prev, system.is_inside(ThreadId(event.thread as u16)));
        }
        for thread in 0..graph.width() {
            let end = graph.thread(thread);
            system.restore(ThreadId::new(thread), end.token);
            self.note(thread as u32, end.last, system.is_inside(ThreadId::new(thread)));
        }
    }

    /// After `before`, the thread is inside, or not.
    fn note(&mut self, thread: u32, before: u32, inside: bool) {
        let open = &mut self.open[thread as usize];
        if inside && *open == NONE {
            *open = self.stays.len() as u32;
            self.stays.push(Stay { thread, enter: before, leave: NONE });
        } else if !inside && *open != NONE {
            self.stays[*open as usize].leave = before;
            *open = NONE;
        }
    }
}

/// Is `first` over before `second` begins?
fn is_over(graph: &Graph, first: &Stay, second: &Stay) -> bool {
    first.leave != NONE && second.enter != NONE && graph.happens_before(first.leave, second.enter)
}
