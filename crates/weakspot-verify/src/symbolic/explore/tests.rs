//! Sleep sets, waking and retiring leave no state out.

use std::collections::BTreeSet;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::Program;
use weakspot_model::machine::{Machine, Outcome, State};
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};

use super::Explorer;
use crate::symbolic::SymbolicOptions;
use crate::symbolic::moves::System;
use crate::threads::{Local, LocalId, ThreadAutomaton};

/// Memory, owners of the mutexes, and where all threads rest.
type Concrete = (Vec<i64>, Vec<Option<ThreadId>>, Vec<LocalId>);

/// Every state of the reference machine, dead registers aside.
fn reachable(program: &Program) -> Option<usize> {
    let machine = Machine::new(program, MemoryModel::Sc);
    let reach = oracle::reach(&machine, Bounds { visits: 3_000, buffer: None })?;
    let mut automata: Vec<ThreadAutomaton<'_>> =
        program.thread_ids().map(|thread| ThreadAutomaton::new(program, thread)).collect();
    let mut concrete = |state: &State| -> Concrete {
        let locals = state.threads.iter().zip(&mut automata).map(|(thread, automaton)| {
            automaton.intern(Local { state: thread.local.clone(), pause: thread.pause, phase: thread.phase })
        });
        (state.memory.clone(), state.owners.clone(), locals.collect())
    };
    Some(reach.states.iter().map(&mut concrete).collect::<BTreeSet<_>>().len())
}

/// Under SC a cell is a state of the machine, so that what the search stores can be counted.
#[test]
fn every_state_of_the_machine_is_stored_under_sc() {
    let three = Shape { threads: 3..=3, statements: 1..=3, ..Shape::looping() };
    let mut compared = 0;
    for shape in [Shape::looping(), Shape::terminating(), three] {
        for seed in 0..700 {
            let sketch = shape.generate(seed);
            let program = sketch.program();
            let machine = Machine::new(&program, MemoryModel::Sc);
            if machine.start().1 != Outcome::Continues {
                continue;
            }
            let Some(expected) = reachable(&program) else { continue };
            let options = SymbolicOptions { all_errors: true, ..SymbolicOptions::new(MemoryModel::Sc) };
            let mut explorer = Explorer::new(System::new(machine), &options);
            assert_eq!(explorer.run(&Budget::unlimited(), &()), Ok(None));
            assert_eq!(explorer.met.len(), expected, "seed {seed}:\n{}", sketch.text());
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared}");
}
