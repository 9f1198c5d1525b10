//! Does any execution of a program run? If all of them are pruned by a false `assume`, or wait for something that never
//! comes, nothing can be said to be safe.
//!
//! An execution runs to its end, or for ever. What runs for ever comes back to a state it was in, since there are finitely
//! many: so some strongly connected component of the SC machine's states has a cycle. The cycle is one of
//!
//! - **work**, if memory, a mutex or a waiting thread changes on the way: the component has states that differ in them;
//! - **an endless loop by intention**, if some thread goes round in a loop that has no exit (`loop { let r = x; }`);
//! - **waiting for ever**: threads go round in loops that they could leave, and nothing they look at changes
//!   (`await(x == 2)` where nobody writes 2). Such an execution is blocked, and is none.
//!
//! This is Tarjan's search. It stops at the first execution that runs, which nearly every program has on the first path;
//! only where none does it sees every state.

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Pc, ThreadId};
use weakspot_model::ir::{Instr, Program};
use weakspot_model::liveness::successors;
use weakspot_model::local::Pause;
use weakspot_model::machine::{Action, Machine, Outcome, Rest, State};
use weakspot_model::task::{Budget, Limit};

use crate::{CheckOptions, has_loops};

/// States between two looks at the clock.
const STATES_BETWEEN_LOOKS: usize = 4096;

/// Is there an SC execution that ends or works for ever, and in which no `assume` is false?
pub fn some_execution(program: &Program, options: &CheckOptions, budget: &Budget) -> Result<bool, Limit> {
    if !assumes(program) && !has_loops(program) {
        return Ok(true);
    }
    let spurious_wakeups = options.spurious_wakeups;
    let machine = Machine { spurious_wakeups, ..Machine::new(program, MemoryModel::Sc) };
    let (state, outcome) = machine.start();
    if outcome == Outcome::Pruned {
        return Ok(false);
    }
    Search { machine, numbers: FxHashMap::default(), found: Vec::new(), open: Vec::new() }.run(state, budget)
}

fn assumes(program: &Program) -> bool {
    let in_final = program.final_block.iter().flat_map(|block| &block.code);
    program.assumes() || in_final.into_iter().any(|instr| matches!(instr, Instr::Assume { .. }))
}

/// A state that was found; its number is its place in the order of finding.
struct Found {
    state: State,
    /// The lowest number of a state of an open component that is known to be reachable.
    low: usize,
    /// Its component is not complete.
    is_open: bool,
}

/// A state on the path, and what is still to be tried there.
struct Visit {
    number: usize,
    left: Vec<Action>,
}

struct Search<'p> {
    machine: Machine<'p>,
    numbers: FxHashMap<State, usize>,
    found: Vec<Found>,
    /// States of open components, in the order of finding.
    open: Vec<usize>,
}

impl Search<'_> {
    fn run(mut self, start: State, budget: &Budget) -> Result<bool, Limit> {
        if self.rests_well(&start) {
            return Ok(true);
        }
        let mut path = vec![self.enter(start)];
        while let Some(visit) = path.last_mut() {
            let number = visit.number;
            let Some(action) = visit.left.pop() else {
                path.pop();
                if self.leave(number, path.last().map(|visit| visit.number)) {
                    return Ok(true);
                }
                continue;
            };
            let mut state = self.found[number].state.clone();
            match self.machine.apply(&mut state, action).1 {
                Outcome::Pruned => continue,
                Outcome::Failed(_) => return Ok(true),
                Outcome::Continues => {}
            }
            if let Some(&next) = self.numbers.get(&state) {
                if self.found[next].is_open && self.closes_cycle(number, next, action, &path) {
                    return Ok(true);
                }
                continue;
            }
            if self.rests_well(&state) {
                return Ok(true);
            }
            path.push(self.enter(state));
            if self.found.len().is_multiple_of(STATES_BETWEEN_LOOKS)
                && let Some(limit) = budget.exhausted(0)
            {
                return Err(limit);
            }
        }
        Ok(false)
    }

    fn enter(&mut self, state: State) -> Visit {
        let number = self.found.len();
        let left = self.machine.enabled(&state);
        self.numbers.insert(state.clone(), number);
        self.found.push(Found { state, low: number, is_open: true });
        self.open.push(number);
        Visit { number, left }
    }

    /// Nothing can happen, and that is an end: no false `assume`, and no thread that could leave the loop it is in.
    fn rests_well(&self, state: &State) -> bool {
        if !self.machine.enabled(state).is_empty() {
            return false;
        }
        match self.machine.rest(state) {
            Rest::Finished | Rest::Failed(_) => true,
            Rest::Pruned => false,
            Rest::Spinning => self.machine.program.thread_ids().all(|thread| {
                let at = &state.threads[thread.index()];
                at.pause != Pause::Spin || self.pauses_from(thread, [at.local.pc]).is_empty()
            }),
        }
    }

    /// A step to a state of an open component: both are in one component, and so is the path between them. Is there work on
    /// it, or an endless loop by intention?
    fn closes_cycle(&mut self, number: usize, next: usize, action: Action, path: &[Visit]) -> bool {
        self.found[number].low = self.found[number].low.min(next);
        let target = &self.found[next].state;
        if number == next {
            return self.has_no_exit(action.thread(), &[number]);
        }
        let between = path.iter().rev().map(|visit| visit.number).take_while(|&number| number >= next);
        between.into_iter().any(|number| !same_but_for_control(&self.found[number].state, target))
    }

    /// All that can be reached from a state was seen. True if its component is complete and has a cycle of work or an endless
    /// loop by intention.
    fn leave(&mut self, number: usize, before: Option<usize>) -> bool {
        let low = self.found[number].low;
        if low < number {
            let before = before.expect("invariant: the first state has the lowest number");
            self.found[before].low = self.found[before].low.min(low);
            return false;
        }
        let first = self.open.iter().rposition(|&open| open == number).expect("invariant: an open state is listed");
        let component = self.open.split_off(first);
        for &member in &component {
            self.found[member].is_open = false;
        }
        let state = &self.found[number].state;
        component.iter().any(|&member| !same_but_for_control(&self.found[member].state, state))
            || self.machine.program.thread_ids().any(|thread| {
                let local = |member: usize| &self.found[member].state.threads[thread.index()].local;
                component.iter().any(|&member| local(member) != local(number)) && self.has_no_exit(thread, &component)
            })
    }

    /// Is there no way out of the places at which a thread pauses in these states?
    fn has_no_exit(&self, thread: ThreadId, component: &[usize]) -> bool {
        let places: FxHashSet<Pc> =
            component.iter().map(|&member| self.found[member].state.threads[thread.index()].local.pc).collect();
        let code = &self.machine.program.threads[thread.index()].code;
        let after = places.iter().flat_map(|&pc| successors(&code[pc.index()], pc));
        self.pauses_from(thread, after).is_subset(&places)
    }

    /// Where a thread can pause next, by the control flow alone, when it runs on from some places.
    fn pauses_from(&self, thread: ThreadId, from: impl IntoIterator<Item = Pc>) -> FxHashSet<Pc> {
        let code = &self.machine.program.threads[thread.index()].code;
        let mut seen = FxHashSet::default();
        let mut left: Vec<Pc> = from.into_iter().collect();
        while let Some(pc) = left.pop() {
            if seen.insert(pc) && !pauses(&code[pc.index()]) {
                left.extend(successors(&code[pc.index()], pc));
            }
        }
        seen.retain(|&pc| pauses(&code[pc.index()]));
        seen
    }
}

/// Does a thread rest at this instruction?
pub fn pauses(instr: &Instr) -> bool {
    instr.is_event() || matches!(instr, Instr::Choose { .. } | Instr::LeaveCritical | Instr::End)
}

/// Do two states differ only in where their threads are and in what these know?
fn same_but_for_control(one: &State, other: &State) -> bool {
    let phases = |state: &State| state.threads.iter().map(|thread| thread.phase).collect::<Vec<_>>();
    one.memory == other.memory && one.owners == other.owners && phases(one) == phases(other)
}
