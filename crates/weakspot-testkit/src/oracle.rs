//! Brute force over the reference machine: no reduction, no cleverness, so that there is nothing to doubt.
//!
//! [`reach`] visits every reachable state; [`traces`] visits every reachable pair of state and trace so far, and so
//! gives every trace of a complete execution. Both give up (and say so) past a number of visits. [`shortest`] goes
//! through the same pairs by length, and so has something to say of programs that never end, too.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use rustc_hash::FxHashSet;
use weakspot_model::machine::{Action, Machine, Outcome, Rest, State};
use weakspot_model::problem::ProblemKind;
use weakspot_model::trace::{Trace, TraceBuilder};

/// Values at the end of an execution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FinalState {
    /// The registers of each thread.
    pub registers: Vec<Vec<i64>>,
    /// Shared memory.
    pub memory: Vec<i64>,
}

impl FinalState {
    /// Those of a state.
    pub fn of(state: &State) -> Self {
        let registers = state.threads.iter().map(|thread| thread.local.registers.clone()).collect();
        Self { registers, memory: state.memory.clone() }
    }
}

/// How far brute force may go.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Give up after visiting this many states.
    pub visits: usize,
    /// Do not buffer more stores than this in one thread.
    pub buffer: Option<usize>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { visits: 1_000_000, buffer: None }
    }
}

/// What there is to reach.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Every state, the initial one included. A state reached together with a problem is not among them.
    pub states: HashSet<State>,
    /// How many enabled actions all those states have together.
    pub transitions: usize,
    /// Every kind of problem that can happen.
    pub problems: BTreeSet<ProblemKind>,
    /// The states in which everything has ended, `final` or no `final`.
    pub finals: BTreeSet<FinalState>,
    /// Some maximal execution ends with a thread that spins without events.
    pub spins: bool,
    /// Some store found the buffer full, so there is more than this.
    pub buffer_was_full: bool,
}

/// Visits every reachable state; `None` past `bounds.visits`.
pub fn reach(machine: &Machine<'_>, bounds: Bounds) -> Option<Reach> {
    let mut reach = Reach::default();
    let (start, outcome) = machine.start();
    match outcome {
        Outcome::Continues => {}
        Outcome::Pruned => return Some(reach),
        Outcome::Failed(problem) => {
            reach.problems.insert(problem.kind);
            return Some(reach);
        }
    }
    let mut waiting = vec![start.clone()];
    reach.states.insert(start);
    while let Some(state) = waiting.pop() {
        let actions = machine.enabled(&state);
        reach.transitions += actions.len();
        if actions.is_empty() {
            reach.note_rest(machine, &state);
        }
        for action in actions {
            let mut next = state.clone();
            match machine.apply(&mut next, action).1 {
                Outcome::Continues if overfull(&next, bounds) => reach.buffer_was_full = true,
                Outcome::Continues => {
                    if !reach.states.contains(&next) {
                        reach.states.insert(next.clone());
                        waiting.push(next);
                    }
                }
                Outcome::Pruned => {}
                Outcome::Failed(problem) => {
                    reach.problems.insert(problem.kind);
                }
            }
        }
        if reach.states.len() > bounds.visits {
            return None;
        }
    }
    Some(reach)
}

fn overfull(state: &State, bounds: Bounds) -> bool {
    bounds.buffer.is_some_and(|most| state.threads.iter().any(|thread| thread.buffer.len() > most))
}

impl Reach {
    fn note_rest(&mut self, machine: &Machine<'_>, state: &State) {
        let rest = machine.rest(state);
        match rest {
            Rest::Spinning => self.spins = true,
            Rest::Failed(ref problem) => {
                self.problems.insert(problem.kind);
            }
            Rest::Finished | Rest::Pruned => {}
        }
        if !matches!(rest, Rest::Spinning) && !is_deadlock(&rest) {
            self.finals.insert(FinalState::of(state));
        }
    }
}

fn is_deadlock(rest: &Rest) -> bool {
    matches!(rest, Rest::Failed(problem) if problem.kind == ProblemKind::Deadlock)
}

/// Every trace of a maximal execution, with the final states it leads to (one, unless threads choose; none for
/// executions that end with a problem, a deadlock or a spinning thread). Pruned executions are none.
pub fn traces(machine: &Machine<'_>, bounds: Bounds) -> Option<BTreeMap<Trace, BTreeSet<FinalState>>> {
    let mut found: BTreeMap<Trace, BTreeSet<FinalState>> = BTreeMap::new();
    let (start, outcome) = machine.start();
    let builder = TraceBuilder::new(machine.program.threads.len());
    match outcome {
        Outcome::Continues => {}
        Outcome::Pruned => return Some(found),
        Outcome::Failed(_) => {
            found.entry(builder.finish()).or_default();
            return Some(found);
        }
    }
    let mut seen = FxHashSet::default();
    let mut waiting = vec![(start, builder)];
    while let Some((state, builder)) = waiting.pop() {
        let actions = machine.enabled(&state);
        if actions.is_empty() {
            match machine.rest(&state) {
                Rest::Finished => {
                    found.entry(builder.finish()).or_default().insert(FinalState::of(&state));
                }
                Rest::Failed(_) | Rest::Spinning => {
                    found.entry(builder.finish()).or_default();
                }
                Rest::Pruned => {}
            }
            continue;
        }
        for action in actions {
            let (next, outcome) = advance(machine, &state, &builder, action);
            match outcome {
                Outcome::Continues => {
                    if !seen.contains(&next) {
                        seen.insert(next.clone());
                        waiting.push(next);
                    }
                }
                Outcome::Pruned => {}
                Outcome::Failed(_) => {
                    found.entry(next.1.finish()).or_default();
                }
            }
        }
        if seen.len() > bounds.visits {
            return None;
        }
    }
    Some(found)
}

/// What [`shortest`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortest {
    /// A beginning of an execution that is wanted, and no shorter one is; the stores that were pending commit at its end.
    Found(Trace),
    /// None is that has at most so many actions, commits included.
    NoneUpTo(usize),
    /// None is.
    None,
}

/// Looks for a beginning of an execution with a wanted trace, the short ones first, until `bounds.visits` of them have been
/// looked at. Problems end an execution; `assume` does not take back what has happened.
pub fn shortest(machine: &Machine<'_>, bounds: Bounds, wanted: impl Fn(&Trace) -> bool) -> Shortest {
    let (start, outcome) = machine.start();
    if !matches!(outcome, Outcome::Continues) {
        return Shortest::None;
    }
    let mut seen = FxHashSet::default();
    let mut waiting = VecDeque::from([(0, (start, TraceBuilder::new(machine.program.threads.len())))]);
    while let Some((length, (state, builder))) = waiting.pop_front() {
        for action in machine.enabled(&state) {
            let (next, outcome) = advance(machine, &state, &builder, action);
            if seen.contains(&next) {
                continue;
            }
            let trace = next.1.clone().finish();
            if wanted(&trace) {
                return Shortest::Found(trace);
            }
            seen.insert(next.clone());
            if matches!(outcome, Outcome::Continues) && !overfull(&next.0, bounds) {
                waiting.push_back((length + 1, next));
            }
        }
        if seen.len() > bounds.visits {
            return Shortest::NoneUpTo(length);
        }
    }
    Shortest::None
}

fn advance(
    machine: &Machine<'_>,
    state: &State,
    builder: &TraceBuilder,
    action: Action,
) -> ((State, TraceBuilder), Outcome) {
    let (mut state, mut builder) = (state.clone(), builder.clone());
    let thread = action.thread();
    let pc = state.threads[thread.index()].local.pc;
    let (effect, outcome) = machine.apply(&mut state, action);
    if let Some(effect) = effect {
        builder.record(machine.program, thread, pc, effect);
    }
    ((state, builder), outcome)
}
