//! What an exploration found, and its executions as steps of the reference machine.

use std::collections::BTreeMap;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Pc, Site, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::machine::{Action, Machine, Outcome as StepOutcome, Rest};
use weakspot_model::replay::Witness;
use weakspot_model::task::Limit;

use crate::graph::{Event, EventKind, Graph};
use crate::linearise::is_step;

/// The waiters of a condition variable are the bits of a number, so a program that has any may have this many threads.
pub const MOST_WAITING_THREADS: usize = 62;

/// An instruction of a thread, as a party to a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    /// Whose.
    pub thread: ThreadId,
    /// The instruction.
    pub pc: Pc,
    /// Its place in the source.
    pub site: Site,
}

/// Violations of one pair of accesses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The store that can still be pending.
    pub store: Access,
    /// The access of another thread to the same cell that happens after it and yet can come first.
    pub access: Access,
    /// A borderline execution, up to and including the access, as steps of the SC machine.
    pub actions: Vec<Action>,
    /// Which of these steps is the store that the monitor means, if that is known: it may happen many times.
    pub issued: Option<usize>,
}

/// What an exploration found.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Executions that ran to their end: one for each trace when exhaustive.
    pub executions: u64,
    /// Explorations that ended without being an execution: a false `assume`, a wait that should have ended.
    pub blocked: u64,
    /// Executions that ended in a deadlock.
    pub deadlocks: u64,
    /// Executions cut off by the bound on loop rounds, or resting in a loop without events.
    pub unfinished: u64,
    /// Executions that broke the specification.
    pub failures: u64,
    /// How many of all these tripped the monitor.
    pub borderline: u64,
    /// By pair of instructions, in order.
    pub violations: BTreeMap<(Access, Access), Violation>,
    /// An execution that breaks the specification; the first in the order of the search.
    pub error: Option<Witness>,
    /// Every trace was explored.
    pub exhaustive: bool,
    /// What ended the search early, if anything did.
    pub limit: Option<Limit>,
    /// An execution grew longer than any may: the program needs a bound on its loops.
    pub too_long: bool,
    /// Nothing was explored: the program has condition variables and more than [`MOST_WAITING_THREADS`] threads.
    pub too_many_threads: bool,
    /// Events added in all: what executions have in common is added once.
    pub events: u64,
    /// The lengths of all these executions together.
    pub lengths: u64,
    /// Which part of an exhaustive search was done, between 0 and 1: an estimate that takes alternatives to be equally
    /// large, but at the end 1.
    pub covered: f64,
}

impl Outcome {
    /// May the answer be "safe": everything was explored, nothing was found, and something ran to its end?
    pub fn is_safe(&self) -> bool {
        self.exhaustive && self.unfinished == 0 && self.executions > 0 && self.error.is_none() && self.borderline == 0
    }

    /// Is the answer known, however much was explored: an error or a violation?
    pub fn found_something(&self) -> bool {
        self.error.is_some() || !self.violations.is_empty()
    }

    /// The answer to a program that cannot be explored, if it is one.
    pub(crate) fn refusal(program: &Program) -> Option<Self> {
        let too_many = !program.condvars.is_empty() && program.threads.len() > MOST_WAITING_THREADS;
        too_many.then(|| Self { too_many_threads: true, ..Self::default() })
    }

    /// Adds what another part of the same search found; parts are merged in the order of the search.
    pub fn merge(&mut self, other: Self) {
        self.executions += other.executions;
        self.blocked += other.blocked;
        self.deadlocks += other.deadlocks;
        self.unfinished += other.unfinished;
        self.failures += other.failures;
        self.borderline += other.borderline;
        self.events += other.events;
        self.lengths += other.lengths;
        self.covered += other.covered;
        for (pair, violation) in other.violations {
            self.violations.entry(pair).or_insert(violation);
        }
        if self.error.as_ref().is_none_or(|error| other.error.as_ref().is_some_and(|new| precedes(new, error))) {
            self.error = other.error.or(self.error.take());
        }
        self.limit = self.limit.or(other.limit);
        self.too_long |= other.too_long;
    }
}

/// The same error whatever the number of workers: the shortest, and of those the first in order.
fn precedes(new: &Witness, known: &Witness) -> bool {
    shorter(&new.actions, &known.actions)
}

pub(crate) fn shorter(new: &[Action], known: &[Action]) -> bool {
    (new.len(), new) < (known.len(), known)
}

/// The steps of the reference machine that a linearisation stands for.
pub fn actions_of(graph: &Graph, order: &[u32]) -> Vec<Action> {
    let events = order.iter().map(|&id| graph.event(id));
    events.filter(|event| is_step(event)).map(|event| action_of(graph, event)).collect()
}

/// The step that an event stands for.
#[inline]
pub(crate) fn action_of(graph: &Graph, event: &Event) -> Action {
    let thread = ThreadId(event.thread as u16);
    match event.kind {
        EventKind::WakeWrite => Action::Wake { thread },
        _ => Action::Step { thread, choice: choice_of(graph, event) },
    }
}

fn choice_of(graph: &Graph, event: &Event) -> i64 {
    match event.kind {
        EventKind::Choose => event.value,
        EventKind::NotifyWrite => {
            let woken = graph.event(event.po_prev).value & !event.value;
            if event.notifies_all || woken == 0 { 0 } else { i64::from(woken.trailing_zeros()) }
        }
        _ => 0,
    }
}

/// Runs steps on the SC machine until something breaks the specification. `None` if nothing does, or if an `assume` is
/// false before: then it is no execution.
pub fn first_problem(program: &Program, spurious_wakeups: bool, actions: &[Action]) -> Option<Witness> {
    let machine = Machine { spurious_wakeups, ..Machine::new(program, MemoryModel::Sc) };
    let (mut state, mut outcome) = machine.start();
    let mut done = 0;
    loop {
        match outcome {
            StepOutcome::Failed(problem) => return Some(Witness { actions: actions[..done].to_vec(), problem }),
            StepOutcome::Pruned => return None,
            StepOutcome::Continues => {}
        }
        let Some(&action) = actions.get(done) else { break };
        if !machine.allows(&state, action) {
            return None;
        }
        outcome = machine.apply(&mut state, action).1;
        done += 1;
    }
    if !machine.enabled(&state).is_empty() {
        return None;
    }
    match machine.rest(&state) {
        Rest::Failed(problem) => Some(Witness { actions: actions.to_vec(), problem }),
        Rest::Finished | Rest::Pruned | Rest::Spinning => None,
    }
}
