//! Breadth-first search, layer by layer, by one worker or by several that share the states out among them.
//!
//! A layer is all states first met after the same number of actions. Each state belongs to one worker, by its hash;
//! a worker expands its own part of a layer and hands the next states to their owners ([`super::parallel`]). When all
//! parts are done the next layer begins. So the search is breadth-first exactly, with any number of workers, and a
//! counterexample is a shortest one unless states were left out by the reduction.

use std::collections::BTreeSet;

use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::machine::{Action, Machine, Outcome, Rest};
use weakspot_model::problem::{Problem, ProblemKind};
use weakspot_model::task::Limit;

use super::board::{Board, Counters};
use super::outcomes::FinalState;
use super::parallel::Exchange;
use super::store::{NO_PARENT, StateStore, hash_row};
use super::stubborn::{Failure, Successors};
use super::successors::{self, Role};
use super::tables::Tables;
use super::{ExplicitOptions, config::Step};
use crate::growth;

/// Look at clock, memory and cancellation once in this many states …
const STATES_BETWEEN_CHECKS: u32 = 2048;

/// … or actions, whichever comes first: a `choose` may have thousands.
const ACTIONS_BETWEEN_CHECKS: u64 = 16_384;

/// A state that leads to a problem, and how.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Finding {
    /// Number of actions.
    pub length: u32,
    /// The state, as [`Exchange::global`] numbers it.
    pub state: u32,
    /// The action that is the problem; `None` if the state itself is.
    pub action: Option<Action>,
}

/// What a search is after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Goal {
    /// The first problem.
    FirstProblem,
    /// All kinds of problems and all final states.
    Everything,
}

/// What everything amounts to ([`Goal::Everything`]).
#[derive(Clone, Default, Debug)]
pub(crate) struct Collected {
    pub problems: BTreeSet<ProblemKind>,
    pub finals: BTreeSet<FinalState>,
}

/// One worker with the states it owns.
pub(crate) struct Worker<'s, 'p, const W: usize> {
    machine: Machine<'p>,
    options: &'s ExplicitOptions,
    goal: Goal,
    board: &'s Board<'s>,
    exchange: Exchange<W>,
    pub tables: Tables<'s, 'p>,
    pub store: StateStore<W>,
    successors: Successors<W>,
    counters: Counters,
    /// States and actions since the last check.
    unchecked: (u32, u64),
    pub finding: Option<Finding>,
    pub collected: Collected,
}

impl<'s, 'p, const W: usize> Worker<'s, 'p, W> {
    pub fn new(
        machine: Machine<'p>,
        options: &'s ExplicitOptions,
        goal: Goal,
        board: &'s Board<'s>,
        exchange: Exchange<W>,
        tables: Tables<'s, 'p>,
    ) -> Self {
        Self {
            machine,
            options,
            goal,
            board,
            exchange,
            tables,
            store: StateStore::new(),
            successors: Successors::new(options.reduce && !options.shortest),
            counters: Counters::default(),
            unchecked: (0, 0),
            finding: None,
            collected: Collected::default(),
        }
    }

    /// Searches everything that can be reached from the initial state.
    pub fn run(&mut self, initial: &[u32; W]) {
        let _guard = AbandonOnPanic(self.board);
        if self.exchange.owner(hash_row(initial)) == self.exchange.me() {
            self.store.insert(hash_row(initial), initial, NO_PARENT);
        }
        let mut layer = 0..self.store.len();
        let mut length = 0;
        loop {
            for index in layer.clone() {
                if self.board.stopped() {
                    break;
                }
                self.expand(index, length);
            }
            self.finish_layer();
            layer = layer.end..self.store.len();
            length += 1;
            if !self.exchange.agree_to_go_on(!layer.is_empty(), &mut self.store, self.board) {
                break;
            }
        }
        self.check();
    }

    fn expand(&mut self, index: usize, length: u32) {
        let state = *self.store.row(index);
        self.successors.clear();
        successors::expand(&mut self.tables, &state, self.options.spurious_wakeups, &mut self.successors);
        if self.successors.actions() == 0 {
            self.judge_rest(&state, index, length);
        }
        self.successors.reduce(&self.tables, &state);
        self.judge_failures(&state, index, length);
        let Self { exchange, successors, store, board, .. } = self;
        let parent = exchange.global(index);
        exchange.send(successors.states(), parent, store, board);
        self.counters.transitions += self.successors.actions();
        self.counters.expanded += 1;
        self.unchecked = (self.unchecked.0 + 1, self.unchecked.1 + self.successors.actions());
        let (states, actions) = self.unchecked;
        if states >= STATES_BETWEEN_CHECKS || actions >= ACTIONS_BETWEEN_CHECKS || self.at_state_limit() {
            self.exchange.receive(&mut self.store, self.board);
            self.check();
        }
    }

    fn at_state_limit(&self) -> bool {
        self.options.max_states.is_some_and(|most| self.store.len() as u64 > most)
    }

    /// Sends what is left of this layer and takes in what the others send.
    fn finish_layer(&mut self) {
        self.exchange.finish_layer(&mut self.store, self.board);
        self.check();
    }

    /// Publishes the counters and looks at the limits.
    fn check(&mut self) {
        self.unchecked = (0, 0);
        self.counters.states = self.store.len() as u64;
        self.counters.bytes = (self.store.bytes() + self.tables.bytes()) as u64;
        if self.exchange.me() == 0 {
            self.counters.bytes += self.tables.components().bytes() as u64;
        }
        if self.store.len() >= self.exchange.most_states() {
            self.board.stop(Limit::Memory);
        }
        self.board.publish(self.exchange.me(), self.counters);
        if self.store.len() >= growth::MANY_STATES && self.options.max_value.is_some_and(|most| self.has_grown(most)) {
            self.board.stop(Limit::States(self.board.total().states));
        }
    }

    /// Has the newest state a value greater than this?
    fn has_grown(&self, most: u64) -> bool {
        let newest = self.tables.components().materialize(self.store.row(self.store.len() - 1));
        let registers = newest.threads.iter().map(|thread| thread.local.registers.as_slice());
        growth::is_past(most, registers.chain([newest.memory.as_slice()]))
    }

    /// A state in which nothing can happen.
    fn judge_rest(&mut self, state: &[u32; W], index: usize, length: u32) {
        let configs = || (0..self.tables.thread_count()).map(|t| self.tables.config(t, state[t + 1]));
        if configs().any(|config| config.step == Step::Full) {
            return;
        }
        let ended = configs().all(|config| config.ended);
        let nothing_to_check = self.goal == Goal::FirstProblem && self.machine.program.final_block.is_none();
        if ended && nothing_to_check || !ended && self.options.allow_deadlock {
            return;
        }
        let full = self.tables.components().materialize(&state[..]);
        if ended && self.goal == Goal::Everything {
            self.collected.finals.insert(FinalState::of(&full));
        }
        if let Rest::Failed(problem) = self.machine.rest(&full) {
            self.found(index, length, None, || problem);
        }
    }

    fn judge_failures(&mut self, state: &[u32; W], index: usize, length: u32) {
        for at in 0..self.successors.failures().len() {
            let action = action_of(self.successors.failures()[at]);
            let (machine, mut full) = (self.machine, None);
            if self.goal == Goal::Everything {
                full = Some(self.tables.components().materialize(&state[..]));
            }
            self.found(index, length + 1, Some(action), || {
                let mut full = full.expect("invariant: kept when everything is wanted");
                match machine.apply(&mut full, action) {
                    (_, Outcome::Failed(problem)) => problem,
                    _ => unreachable!("invariant: the reference machine fails where this one does"),
                }
            });
        }
    }

    fn found(&mut self, index: usize, length: u32, action: Option<Action>, problem: impl FnOnce() -> Problem) {
        if self.goal == Goal::Everything {
            self.collected.problems.insert(problem().kind);
            return;
        }
        let finding = Finding { length, state: self.exchange.global(index), action };
        self.finding = Some(self.finding.map_or(finding, |before| before.min(finding)));
        if self.options.shortest {
            self.board.finish_with_this_layer();
        } else {
            self.board.stop_searching();
        }
    }
}

/// Keeps the other workers from waiting for one that has panicked.
struct AbandonOnPanic<'s>(&'s Board<'s>);

impl Drop for AbandonOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abandon();
        }
    }
}

/// The machine's action for a process and a choice.
pub(crate) fn action(thread: usize, role: Role, choice: i64) -> Action {
    let thread = ThreadId::new(thread);
    match role {
        Role::Step => Action::Step { thread, choice },
        Role::Wake => Action::Wake { thread },
        Role::Commit { cell } => Action::Commit { thread, loc: Loc(cell) },
    }
}

fn action_of(failure: Failure) -> Action {
    action(failure.thread, failure.role, failure.choice)
}
