//! Do threads that wait in loops help each other on?
//!
//! Each of them, alone, would go round its loop for ever. But one of them writes in its rounds what another one reads: if
//! they go round at the same time, one may see what the other one writes for a moment, and leave its loop. In which of all
//! the interleavings that happens nobody knows, so some are tried out: walks of all these threads, from the end of the
//! execution on, whose turns come by chance (with a fixed seed). If no walk leads out of any loop, nothing ends the
//! waiting.

use weakspot_model::ids::ThreadId;

use super::probe::{Solo, mix};
use super::{Explorer, FREE};
use crate::graph::{NONE, Status};
use crate::system::{Pending, System, Token, UNBOUND};

/// Walks that are tried.
const WALKS: u64 = 16;
/// Turns of a walk, for each thread.
const TURNS: u64 = 200;
/// Events that a thread may have between two passes of its marker, for each event of its last round.
const LONGER: u32 = 4;

/// A thread in its loop.
#[derive(Debug, Clone, Copy)]
struct Walker {
    thread: ThreadId,
    marker: Token,
    /// Events that are more than a round has.
    most: u32,
    /// Events since it passed the marker.
    events: u32,
}

impl<S: System> Explorer<'_, S> {
    /// Does one of the threads that wait get out of its loop, or do something that is not understood here?
    pub(super) fn get_on_together(&mut self) -> bool {
        let Some(walkers) = self.walkers() else { return true };
        let get_on = (0..WALKS).any(|number| {
            self.run_to_the_end();
            self.diverged.is_some() || self.walk_out(walkers.clone(), number)
        });
        self.run_to_the_end();
        get_on
    }

    pub(super) fn run_to_the_end(&mut self) {
        let ordered = self.lineariser.linearise(&self.frame.graph);
        debug_assert!(ordered, "a graph that is judged is consistent");
        self.run_linearised(NONE, None);
    }

    /// The threads that wait, if all of them do in loops.
    fn walkers(&self) -> Option<Vec<Walker>> {
        let stuck = (0..self.graph().width()).filter(|&thread| self.graph().thread(thread).status == Status::Stuck);
        stuck
            .map(|thread| {
                let (first, last) = self.last_round(thread)?;
                let events = self.graph().event(last).index - self.graph().event(first).index + 1;
                let marker = self.graph().thread(thread).token;
                Some(Walker { thread: ThreadId::new(thread), marker, most: events * LONGER, events: 0 })
            })
            .collect()
    }

    fn walk_out(&mut self, mut walkers: Vec<Walker>, number: u64) -> bool {
        let count = walkers.len() as u64;
        let mut solo = Solo::new(walkers[0].thread, self.graph().cell_count());
        let mut whose = 0;
        for turn in 0..TURNS * count {
            let chance = mix(number, turn);
            // Some walks change threads often, some seldom.
            if chance.is_multiple_of(1 + number % 5) {
                whose = ((chance >> 8) % count) as usize;
            }
            let walker = &mut walkers[whose];
            solo.thread = walker.thread;
            // One that nobody has used yet is free.
            if let Pending::Lock(mutex) = self.system.pending(walker.thread)
                && mutex != UNBOUND
                && self.solo_memory(&solo, mutex, NONE) != FREE
            {
                continue;
            }
            if self.solo_step(&mut solo, NONE).is_none() {
                return true;
            }
            walker.events = if self.system.marker(walker.thread) == walker.marker { 0 } else { walker.events + 1 };
            if walker.events > walker.most {
                return true;
            }
        }
        false
    }
}
