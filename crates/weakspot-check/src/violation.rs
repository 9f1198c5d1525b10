//! A violation as it is reported: the accesses, the happens-before cycle, and the two executions.

use weakspot_explore::outcome;
use weakspot_explore::schedule::Schedule;
use weakspot_model::axioms::{Axioms, Order};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::{Action, Effect, Machine};
use weakspot_model::replay::{Replay, replay};
use weakspot_verify::robust::{self, Access};

use crate::{CheckOptions, InternalError, relaxed};

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
    /// The SC execution it departs from, up to and including the access, replayed: the borderline trace.
    pub borderline: Replay,
    /// The steps of `borderline`; replaying them leads to this violation again.
    pub schedule: Schedule,
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
        let relaxed = replay(&machine(program, options, options.model), &attack.relaxed)?;
        let cycle = cycle(program, &relaxed).ok_or(InternalError::NoCycle)?;
        let robust::Violation { store, passed, access, .. } = *attack;
        // the attack's own execution ends just before the access
        let mut steps = attack.borderline.clone();
        steps.push(Action::Step { thread: access.thread, choice: 0 });
        let borderline = replay(&machine(program, options, MemoryModel::Sc), &steps)?;
        let schedule = Schedule::of(&steps);
        Ok(Self { store, passed: Some(passed), access, cycle, relaxed: Some(relaxed), borderline, schedule })
    }

    /// A pair of accesses that a monitor names, with the SC execution it saw and the relaxed execution that this
    /// borders on, if it can be built. Where it is not the store that is late but the access that is early, the store
    /// that is named is the one of the accessing thread that lets it be early.
    pub(crate) fn of_monitor(
        program: &Program,
        options: &CheckOptions,
        found: &outcome::Violation,
    ) -> Result<Self, InternalError> {
        let access = |outcome::Access { thread, pc, site }| Access { thread, pc, site };
        let relaxed = relaxed::build(program, options, found);
        let cycle = relaxed.as_ref().and_then(|relaxed| placed_cycle(program, &relaxed.replay)).unwrap_or_default();
        let mut violation = Self {
            store: access(found.store),
            passed: None,
            access: access(found.access),
            borderline: replay(&machine(program, options, MemoryModel::Sc), &found.actions)?,
            schedule: Schedule::of(&found.actions),
            relaxed: None,
            cycle: cycle.iter().map(|placed| placed.step).collect(),
        };
        if let Some(relaxed) = relaxed {
            if relaxed.store_is_late {
                violation.passed = passed_by(&relaxed.replay, &cycle, violation.store, violation.access);
            } else if let Some(delay) = delays(&relaxed.replay, &cycle) {
                (violation.store, violation.passed, violation.access) = delay;
            }
            violation.relaxed = Some(relaxed.replay);
        }
        Ok(violation)
    }
}

/// An event of a cycle, and the step of the execution that it is of.
#[derive(Debug, Clone, Copy)]
struct Placed {
    step: CycleStep,
    at: usize,
}

/// A store on the cycle that is still pending when its own thread performs the event after it, and when another thread
/// performs the one before it: these three.
fn delays(relaxed: &Replay, cycle: &[Placed]) -> Option<(Access, Option<Access>, Access)> {
    let at = |index: usize| cycle[index % cycle.len()];
    (0..cycle.len()).find_map(|index| {
        let (before, store, after) = (at(index), at(index + 1), at(index + 2));
        let (whose, access) = (store.step.access.thread, before.step.access);
        let visible = relaxed.visible_at(store.at);
        let is_delayed = access.thread != whose
            && after.step.access.thread == whose
            && (store.at..visible).contains(&after.at)
            && before.at < visible;
        is_delayed.then_some((store.step.access, Some(after.step.access), access))
    })
}

/// What a late store is delayed past: the event after it on the cycle, if it is on the cycle, else the last event of its
/// thread that others can see before the access.
fn passed_by(relaxed: &Replay, cycle: &[Placed], store: Access, access: Access) -> Option<Access> {
    let performs = |at: usize, access: Access| {
        let step = &relaxed.steps[at];
        matches!(step.action, Action::Step { .. }) && (step.action.thread(), step.pc) == (access.thread, access.pc)
    };
    let is_seen = |at: usize| match relaxed.steps[at].effect {
        Some(Effect::Load { forwarded, .. }) => !forwarded,
        Some(Effect::Store { .. } | Effect::Rmw { .. }) => true,
        _ => false,
    };
    let issued = (0..relaxed.steps.len()).filter(|&at| performs(at, store)).find(|&at| {
        let visible = relaxed.visible_at(at);
        (at..visible).any(|at| performs(at, access)) || visible == relaxed.steps.len()
    })?;
    let visible = relaxed.visible_at(issued);
    let is_own = |placed: &&Placed| placed.step.access.thread == store.thread;
    let on_cycle = cycle.iter().filter(is_own).find(|placed| (issued + 1..visible).contains(&placed.at));
    if let Some(placed) = on_cycle {
        return Some(placed.step.access);
    }
    let end = (issued..visible).find(|&at| performs(at, access)).unwrap_or(visible);
    let is_passed = |at: &usize| relaxed.steps[*at].action.thread() == store.thread && is_seen(*at);
    let step = &relaxed.steps[(issued + 1..end).rev().find(is_passed)?];
    Some(Access { thread: store.thread, pc: step.pc, site: step.site })
}

fn machine<'p>(program: &'p Program, options: &CheckOptions, model: MemoryModel) -> Machine<'p> {
    Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, model) }
}

fn cycle(program: &Program, replayed: &Replay) -> Option<Vec<CycleStep>> {
    Some(placed_cycle(program, replayed)?.iter().map(|placed| placed.step).collect())
}

fn placed_cycle(program: &Program, replayed: &Replay) -> Option<Vec<Placed>> {
    let (trace, steps) = replayed.trace_with_steps(program);
    let edges = if trace.events().len() <= relaxed::SHORT {
        Axioms::Sc.check(&trace).err()?.cycle
    } else {
        Axioms::sc_cycle_of_long(&trace)?
    };
    let placed = edges.iter().map(|edge| {
        let event = trace.event(edge.from);
        let site = program.threads[event.thread.index()].sites[event.pc.index()];
        let access = Access { thread: event.thread, pc: event.pc, site };
        Placed { step: CycleStep { access, order: edge.order }, at: steps[edge.from.index()] }
    });
    Some(placed.collect())
}
