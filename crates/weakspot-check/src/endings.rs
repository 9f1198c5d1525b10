//! Does a program have any execution at all? One with an `assume` need not: if every way to run it meets a false one,
//! nothing was executed, and nothing can be said to be safe.
//!
//! An execution ends (its threads have ended, or rest for good), or it goes on for ever: in a finite state space it then
//! comes back to a state it was in. So this is a depth-first search of the SC machine for a state that rests or a state
//! on its own path. It stops at the first one, which nearly every program has on the first path; only where all is
//! pruned it sees every state.

use rustc_hash::FxHashMap;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::{Action, Machine, Outcome, Rest, State};
use weakspot_model::task::{Budget, Limit};

use crate::CheckOptions;

/// States between two looks at the clock.
const STATES_BETWEEN_LOOKS: usize = 4096;

/// A state on the path, and what is still to be tried there.
struct Visit {
    state: State,
    open: Vec<Action>,
}

/// Is there an SC execution in which no `assume` is false?
pub fn some_execution(program: &Program, options: &CheckOptions, budget: &Budget) -> Result<bool, Limit> {
    if !assumes(program) {
        return Ok(true);
    }
    let spurious_wakeups = options.spurious_wakeups;
    let machine = Machine { spurious_wakeups, ..Machine::new(program, MemoryModel::Sc) };
    let (state, outcome) = machine.start();
    if outcome == Outcome::Pruned {
        return Ok(false);
    }
    // Each state with: is it on the path?
    let mut seen: FxHashMap<State, bool> = FxHashMap::default();
    let open = machine.enabled(&state);
    if open.is_empty() {
        return Ok(machine.rest(&state) != Rest::Pruned);
    }
    seen.insert(state.clone(), true);
    let mut path = vec![Visit { state, open }];
    while let Some(visit) = path.last_mut() {
        let Some(action) = visit.open.pop() else {
            seen.insert(visit.state.clone(), false);
            path.pop();
            continue;
        };
        let mut state = visit.state.clone();
        match machine.apply(&mut state, action).1 {
            Outcome::Pruned => continue,
            Outcome::Failed(_) => return Ok(true),
            Outcome::Continues => {}
        }
        match seen.get(&state) {
            Some(true) => return Ok(true),
            Some(false) => continue,
            None => {}
        }
        let open = machine.enabled(&state);
        if open.is_empty() && machine.rest(&state) != Rest::Pruned {
            return Ok(true);
        }
        seen.insert(state.clone(), true);
        if seen.len().is_multiple_of(STATES_BETWEEN_LOOKS)
            && let Some(limit) = budget.exhausted(0)
        {
            return Err(limit);
        }
        path.push(Visit { state, open });
    }
    Ok(false)
}

fn assumes(program: &Program) -> bool {
    let in_final = program.final_block.iter().flat_map(|block| &block.code);
    program.assumes() || in_final.into_iter().any(|instr| matches!(instr, weakspot_model::ir::Instr::Assume { .. }))
}
