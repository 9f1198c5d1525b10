//! A violation as it is reported: the accesses, the happens-before cycle, and the two executions.

use weakspot_explore::outcome;
use weakspot_model::axioms::{Axioms, Order};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::replay::{Replay, replay};
use weakspot_verify::robust::{self, Access};

use crate::{CheckOptions, InternalError};

/// One way in which the program is not store-buffer safe.
#[derive(Debug, Clone)]
pub struct Violation {
    /// The store that is delayed.
    pub store: Access,
    /// The event of the same thread that it is delayed past; `None` where only a monitor saw the violation.
    pub passed: Option<Access>,
    /// The access of another thread to the store's location that happens after `passed` and yet before the store.
    pub access: Access,
    /// A happens-before cycle of the relaxed execution, in order; the last step leads back to the first. Empty where
    /// there is no relaxed execution.
    pub cycle: Vec<CycleStep>,
    /// The relaxed execution, replayed; `None` where only a monitor saw the violation.
    pub relaxed: Option<Replay>,
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
    pub(crate) fn of_attack(
        program: &Program,
        options: &CheckOptions,
        attack: &robust::Violation,
    ) -> Result<Self, InternalError> {
        let machine = |model| Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, model) };
        let relaxed = replay(&machine(options.model), &attack.relaxed)?;
        let borderline = replay(&machine(MemoryModel::Sc), &attack.borderline)?;
        let cycle = cycle(program, &relaxed).ok_or(InternalError::NoCycle)?;
        let robust::Violation { store, passed, access, .. } = *attack;
        Ok(Self { store, passed: Some(passed), access, cycle, relaxed: Some(relaxed), borderline })
    }

    /// A pair of accesses that a monitor names, with the SC execution it saw.
    pub(crate) fn of_monitor(program: &Program, found: &outcome::Violation) -> Result<Self, InternalError> {
        let access = |outcome::Access { thread, pc, site }| Access { thread, pc, site };
        Ok(Self {
            store: access(found.store),
            passed: None,
            access: access(found.access),
            cycle: Vec::new(),
            relaxed: None,
            borderline: replay(&Machine::new(program, MemoryModel::Sc), &found.actions)?,
        })
    }
}

fn cycle(program: &Program, relaxed: &Replay) -> Option<Vec<CycleStep>> {
    let trace = relaxed.trace(program);
    let violation = Axioms::Sc.check(&trace).err()?;
    let steps = violation.cycle.iter().map(|edge| {
        let event = trace.event(edge.from);
        let site = program.threads[event.thread.index()].sites[event.pc.index()];
        CycleStep { access: Access { thread: event.thread, pc: event.pc, site }, order: edge.order }
    });
    Some(steps.collect())
}
