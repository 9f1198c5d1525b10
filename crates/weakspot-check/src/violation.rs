//! A violation as it is reported: the accesses, the happens-before cycle, and the two executions.

use weakspot_model::axioms::{Axioms, Order};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::replay::{Replay, replay};
use weakspot_model::trace::{Trace, TraceBuilder};
use weakspot_verify::robust::{self, Access};

use crate::{CheckOptions, InternalError};

/// One way in which the program is not store-buffer safe.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The store that is delayed.
    pub store: Access,
    /// The event of the same thread that it is delayed past.
    pub passed: Access,
    /// The access of another thread to the store's location that happens after `passed` and yet before the store.
    pub access: Access,
    /// A happens-before cycle of the relaxed execution, in order; the last step leads back to the first.
    pub cycle: Vec<CycleStep>,
    /// The relaxed execution, replayed.
    pub relaxed: Replay,
    /// The SC execution it departs from, replayed: the borderline trace.
    pub borderline: Replay,
}

/// One event of a cycle, and why it stands before the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CycleStep {
    /// The event.
    pub access: Access,
    /// The order to the next event.
    pub order: Order,
}

impl Violation {
    /// Replays both executions of an attack and finds the cycle.
    pub(crate) fn new(
        program: &Program,
        options: &CheckOptions,
        attack: &robust::Violation,
    ) -> Result<Self, InternalError> {
        let machine = |model| Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, model) };
        let relaxed = replay(&machine(options.model), &attack.relaxed)?;
        let borderline = replay(&machine(MemoryModel::Sc), &attack.borderline)?;
        let cycle = cycle(program, &relaxed).ok_or(InternalError::NoCycle)?;
        let robust::Violation { store, passed, access, .. } = *attack;
        Ok(Self { store, passed, access, cycle, relaxed, borderline })
    }
}

fn cycle(program: &Program, relaxed: &Replay) -> Option<Vec<CycleStep>> {
    let trace = trace_of(program, relaxed);
    let violation = Axioms::Sc.check(&trace).err()?;
    let steps = violation.cycle.iter().map(|edge| {
        let event = trace.event(edge.from);
        let site = program.threads[event.thread.index()].sites[event.pc.index()];
        CycleStep { access: Access { thread: event.thread, pc: event.pc, site }, order: edge.order }
    });
    Some(steps.collect())
}

fn trace_of(program: &Program, replay: &Replay) -> Trace {
    let mut builder = TraceBuilder::new(program.threads.len());
    for step in &replay.steps {
        if let Some(effect) = step.effect {
            builder.record(program, step.action.thread(), step.pc, effect);
        }
    }
    builder.finish()
}
