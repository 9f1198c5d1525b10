//! Does it matter how long a thread has waited?
//!
//! A round of waiting is not explored again and again, because it changes nothing; and nobody can look into the local
//! state of live code. `probe` tries out whether the thread ever leaves its loop by itself. But a thread may also count
//! its rounds and look at the count later: `while !ready() { rounds += 1; spin_loop() } assert!(rounds < 3)`. Or it
//! is in another loop meanwhile, whose rounds look the same.
//!
//! So executions in which a thread has waited are rehearsed: run again, with more rounds of waiting put in where there is one.
//! Each is an execution that SC allows: the rounds are those that the thread makes alone at that moment, and they leave
//! memory as it was. If everything goes on as it did without them, the count does not matter here. If not, the
//! system is told that what comes of long waiting is left out ([`LeftOut::Counts`]); and if a thread fails then, that is an
//! execution that fails like any other, and the visitor is told ([`Visitor::failed_after_waiting`]), unless a thread that
//! waits so long is taken not to be scheduled fairly.
//!
//! That is done the first [`FULL_REHEARSALS`] times that a thread has waited somewhere, and after that whenever the number
//! of times is a power of two.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use weakspot_model::ids::ThreadId;
use weakspot_model::machine::Action;

use super::probe::{MOST_ROUNDS, Solo, is_small};
use super::steps::Step;
use super::{Explorer, Visitor};
use crate::graph::{EventKind, NONE, Status};
use crate::outcome::actions_of;
use crate::system::{LeftOut, Pending, System, Token};

/// Times that waiting at one point of a thread is rehearsed each time that it comes up.
const FULL_REHEARSALS: u32 = 4;
/// Rounds that are put in, first many and then one: some count up to a limit, and some in pairs.
const MANY_ROUNDS: u32 = 100;

/// What is known of waiting that was rehearsed.
#[derive(Debug, Clone, Default)]
pub(super) struct Rehearsals {
    /// A thread has passed a marker, in any execution.
    pub(super) has_waited: bool,
    /// How often, by marker, thread and number of events before, and what the thread has read last.
    times: FxHashMap<(Token, usize, u32, i64), u32>,
    /// Markers of loops whose rounds count.
    counting: Vec<Token>,
}

/// Where a thread has waited.
#[derive(Debug, Clone, Copy)]
struct Wait {
    thread: usize,
    marker: Token,
    /// The last event of the round.
    last: u32,
}

impl<S: System> Explorer<'_, S> {
    /// An execution has come to its end: would it be the same if threads that have waited had waited longer?
    pub(super) fn rehearse(&mut self, visitor: &mut impl Visitor<S>) -> ControlFlow<()> {
        if !self.loops.rehearsals.has_waited {
            return ControlFlow::Continue(());
        }
        let has_ended = |thread| self.system.pending(ThreadId::new(thread)) == Pending::Ended;
        let is_over =
            |thread| matches!(self.graph().thread(thread).status, Status::Live | Status::Done) && has_ended(thread);
        if !(0..self.graph().width()).all(is_over) {
            return ControlFlow::Continue(());
        }
        let waits = self.waits_to_rehearse();
        if waits.is_empty() {
            return ControlFlow::Continue(());
        }
        // Runs leave their own values in the graph.
        let values: Vec<i64> = self.graph().events().iter().map(|event| event.value).collect();
        for wait in waits {
            if self.goes_another_way(wait, &values) {
                if let Some((thread, steps)) = self.failing_wait(wait) {
                    visitor.failed_after_waiting(self.system, thread, &steps)?;
                }
                self.loops.rehearsals.counting.push(wait.marker);
                self.run_until(wait.last);
                self.system.leave_rounds_out(ThreadId::new(wait.thread), LeftOut::Counts);
            }
        }
        self.run_to_the_end();
        ControlFlow::Continue(())
    }

    /// Where threads of this execution have waited, if it is time to look at that.
    fn waits_to_rehearse(&mut self) -> Vec<Wait> {
        let mut waits = Vec::new();
        let Rehearsals { times, counting, .. } = &mut self.loops.rehearsals;
        for event in self.frame.graph.events() {
            let (marker, last) = (event.before, event.po_prev);
            if marker == Token(0) || last == NONE || event.kind.is_exclusive_write() || counting.contains(&marker) {
                continue;
            }
            let thread = event.thread as usize;
            // A thread may go on although it has seen what it looks for: whether it waits there is another question then.
            let seen = self.frame.graph.event(last).value;
            let times = times.entry((marker, thread, event.index, if is_small(seen) { seen } else { 0 })).or_default();
            *times += 1;
            if *times <= FULL_REHEARSALS || times.is_power_of_two() {
                waits.push(Wait { thread, marker, last });
            }
        }
        waits
    }

    /// Does it go another way with more rounds? It may also do that because the rehearsal has another order of things that
    /// nobody sees, a reference count of `std` for example: then it does without more rounds, too.
    fn goes_another_way(&mut self, wait: Wait, values: &[i64]) -> bool {
        // A loop that ends after more rounds than are tried out counts as one without end.
        let many = MANY_ROUNDS.max(self.loops.exact_rounds.min(MOST_ROUNDS) + 1);
        let goes_on = self.rehearse_with(wait, many, values);
        let differs =
            goes_on == Some(false) || goes_on == Some(true) && self.rehearse_with(wait, 1, values) == Some(false);
        differs && self.rehearse_with(wait, 0, values) == Some(true)
    }

    /// Runs the execution with more rounds: does it go on as it did, with these values? Nothing if the thread does not go round without a trace,
    /// or does not even come that far.
    fn rehearse_with(&mut self, wait: Wait, rounds: u32, values: &[i64]) -> Option<bool> {
        let (_, after) = self.run_until(wait.last);
        if self.diverged.take().is_some() || self.waits_longer(wait, rounds).is_none() {
            return None;
        }
        for id in after {
            self.repeat(id, NONE, None);
            if self.diverged.take().is_some() {
                return Some(false);
            }
            let (was, is) = (values[id as usize], self.graph().event(id).value);
            if was != is && (is_small(was) || is_small(is)) {
                return Some(false);
            }
        }
        let has_ended = |thread| self.system.pending(ThreadId::new(thread)) == Pending::Ended;
        Some((0..self.graph().width()).all(has_ended))
    }

    /// Runs the execution with so many more rounds that a thread fails, with few if that is enough: who, and all steps. The
    /// system is left where it fails.
    fn failing_wait(&mut self, wait: Wait) -> Option<(ThreadId, Vec<Action>)> {
        if self.loops.is_fair {
            return None;
        }
        let many = MANY_ROUNDS.max(self.loops.exact_rounds + 1);
        let few = (0..).map(|doublings| 1 << doublings).take_while(|&rounds| rounds < many);
        few.chain([many]).find_map(|rounds| self.fail_after(wait, rounds))
    }

    fn fail_after(&mut self, wait: Wait, rounds: u32) -> Option<(ThreadId, Vec<Action>)> {
        let (before, after) = self.run_until(wait.last);
        let mut steps = actions_of(self.graph(), &before);
        if self.diverged.take().is_some() {
            return None;
        }
        let thread = ThreadId::new(wait.thread);
        let choices = self.waits_longer(wait, rounds)?;
        steps.extend(choices.into_iter().map(|choice| Action::Step { thread, choice }));
        for id in after {
            self.repeat(id, NONE, None);
            if self.diverged.take().is_some() {
                return None;
            }
            steps.extend(actions_of(self.graph(), &[id]));
            let thread = ThreadId(self.graph().event(id).thread as u16);
            if self.system.pending(thread) == Pending::Failed {
                return Some((thread, steps));
            }
        }
        None
    }

    /// Lets a thread go round its loop alone: what it chose in each step, if each round comes to nothing. (A first round that is
    /// like neither what the thread did before nor the rounds after it has seen something new, or changed something that is
    /// not seen: what comes of it is another execution, and explored as such. A later one that is different is so because
    /// of the number of rounds: the thread has given up looking in one loop and looks in the next.)
    fn waits_longer(&mut self, Wait { thread, marker, last }: Wait, rounds: u32) -> Option<Vec<i64>> {
        if self.system.marker(ThreadId::new(thread)) != marker {
            return None;
        }
        let cells = self.graph().cell_count();
        let mut solo = Solo::new(ThreadId::new(thread), cells);
        (solo.choice, solo.choices) = (self.last_choice(last), Some(Vec::new()));
        // The first round, if it was another one than the thread has made before.
        let mut strange = None;
        let is_without_trace = (0..rounds).all(|number| {
            let (round, comes_round) = self.solo_round(&mut solo, last, marker);
            let is_alike = strange.as_ref().is_none_or(|first| *first == round);
            if number == 0 && !self.ends_with(last, &round) {
                strange = Some(round);
            }
            comes_round
                && is_alike
                && solo.has_cells(cells)
                && solo.written().all(|(cell, value)| self.value_at(cell, last) == value)
        });
        solo.choices.filter(|_| is_without_trace)
    }

    /// Are these steps what the thread of an event did last, up to the event?
    fn ends_with(&self, last: u32, steps: &[Step]) -> bool {
        let mut id = last;
        for step in steps.iter().rev() {
            let mut own = None;
            while id != NONE && own.is_none() {
                own = self.step_of(id);
                id = self.graph().event(id).po_prev;
            }
            if own != Some(*step) {
                return false;
            }
        }
        true
    }

    /// What the thread of an event has chosen last, up to the event: that a wait with a timeout was over, if that was the round.
    fn last_choice(&self, last: u32) -> Option<i64> {
        let mut id = last;
        while id != NONE && self.graph().event(id).kind != EventKind::Choose {
            id = self.graph().event(id).po_prev;
        }
        (id != NONE).then(|| self.graph().event(id).value)
    }

    /// Runs what happens before an event, and the event: what that is, and what is left, in an order.
    fn run_until(&mut self, last: u32) -> (Vec<u32>, Vec<u32>) {
        let ordered = self.lineariser.linearise(&self.frame.graph);
        debug_assert!(ordered, "a graph that is judged is consistent");
        let order = self.lineariser.take_order();
        let graph = &self.frame.graph;
        let (before, after): (Vec<u32>, Vec<u32>) =
            order.iter().partition(|&&id| id == last || graph.happens_before(id, last));
        self.lineariser.give_back(order);
        self.run_along(&before, NONE, None);
        (before, after)
    }
}
