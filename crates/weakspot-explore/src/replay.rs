//! Runs exactly one schedule: what `--replay` does.

use thiserror::Error;
use weakspot_model::ir::Program;
use weakspot_model::replay::Witness;

use crate::bounded::violations_of;
use crate::exhaustive::{AnyMonitor, MonitorKind};
use crate::interleave::{Interleaving, Rest};
use crate::interpreter::Interpreter;
use crate::monitor::Finding;
use crate::outcome::{Violation, first_problem};
use crate::schedule::Schedule;
use crate::system::System;

/// What came of a schedule.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// How the execution ended; `None` if somebody can still move.
    pub rest: Option<Rest>,
    /// The problem it leads to, with the steps up to it.
    pub error: Option<Witness>,
    /// What the monitor found, in the order in which it did.
    pub violations: Vec<Violation>,
}

/// A schedule that does not fit the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("step {step} of the schedule is not possible in this program")]
pub struct NotPossible {
    /// Which step, counted from 1.
    pub step: usize,
}

/// Runs a schedule and watches it.
pub fn replay(program: &Program, schedule: &Schedule, monitor: Option<MonitorKind>) -> Result<Replayed, NotPossible> {
    let mut system = Interpreter::new(program, None);
    let mut monitor = monitor.map(|kind| AnyMonitor::new(kind, system.threads(), system.cells()));
    let mut interleaving = Interleaving::new(&mut system);
    let actions = schedule.actions();
    if !interleaving.follow(&actions) {
        return Err(NotPossible { step: interleaving.actions().len() + 1 });
    }
    let mut found: Vec<Finding> = Vec::new();
    if let Some(monitor) = &mut monitor {
        monitor.watch_events(interleaving.events().iter().copied(), &mut found);
    }
    let rest = interleaving.rest();
    let violations = violations_of(&mut interleaving, &found);
    Ok(Replayed { rest, error: first_problem(program, &actions), violations })
}
