//! Runs exactly one schedule: what `--replay` does.
//!
//! The schedule runs on the reference machine under SC, and what happens goes to one monitor or to several. So the
//! schedule of every finding leads to that finding again, whichever engine it comes from: the borderline trace of an
//! attack is the kind that the operational monitors recognise, that of the exploration the kind its own monitor did.

use thiserror::Error;
use weakspot_model::ids::{Site, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::machine::{Action, Outcome, Rest};
use weakspot_model::problem::Problem;
use weakspot_model::replay::Witness;

use crate::exhaustive::{AnyMonitor, MonitorKind};
use crate::happening::{Happening, Run};
use crate::interpreter::Cells;
use crate::monitor::{Event, Finding};
use crate::outcome::{Access, Violation};
use crate::schedule::Schedule;

/// How far a schedule leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Every thread has ended and the specification holds.
    Complete,
    /// The specification is broken.
    Wrong,
    /// An `assume` was false: this is no execution.
    Pruned,
    /// Nobody can move, but somebody computes for ever.
    Spinning,
    /// Somebody can still move.
    Open,
}

/// What came of a schedule.
#[derive(Debug, Clone)]
pub struct Replayed {
    /// How the execution ended.
    pub end: End,
    /// The problem it leads to, with the steps up to it.
    pub error: Option<Witness>,
    /// What the monitors found: first what they found in the last step, which is what the schedule of a finding leads to,
    /// then the rest in the order in which they did; each pair of instructions once in the last step and once before.
    pub violations: Vec<Violation>,
}

/// A thread that could have moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Movable {
    /// The thread.
    pub thread: ThreadId,
    /// Where it rests.
    pub site: Site,
    /// The choices it has; `[0]` where there is nothing to choose. Empty: it may wake up unasked, and no more.
    pub choices: Vec<i64>,
}

/// A schedule that does not fit the program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("step {step} of the schedule is not possible in this program")]
pub struct NotPossible {
    /// Which step, counted from 1.
    pub step: usize,
    /// What it was to be.
    pub action: Action,
    /// What could have been done instead, by thread.
    pub possible: Vec<Movable>,
    /// The problem that had ended the execution before, if one had.
    pub over: Option<Problem>,
}

/// Runs a schedule under monitors.
pub fn replay(
    program: &Program,
    schedule: &Schedule,
    spurious_wakeups: bool,
    monitors: impl IntoIterator<Item = MonitorKind>,
) -> Result<Replayed, NotPossible> {
    let mut run = Run::new(program, spurious_wakeups);
    let mut watch = Watch::new(program, schedule.actions());
    let mut happened = Vec::new();
    for (index, &action) in schedule.actions().iter().enumerate() {
        let access = access(program, &run, action);
        if !run.step(action, &mut happened) {
            return Err(not_possible(&run, index + 1, action));
        }
        watch.note(access, &happened);
    }
    let (end, problem) = end_of(&run);
    let error = problem.map(|problem| Witness { actions: schedule.actions().to_vec(), problem });
    for kind in monitors {
        watch.watch(program, kind);
    }
    let mut violations = watch.violations;
    violations.sort_by_key(|violation| violation.actions.len() < schedule.len());
    Ok(Replayed { end, error, violations })
}

/// The instruction that an action performs; threads that do not exist perform none.
fn access(program: &Program, run: &Run<'_>, action: Action) -> Option<Access> {
    let thread = action.thread();
    let code = program.threads.get(thread.index())?;
    let pc = run.pc(thread);
    Some(Access { thread, pc, site: code.sites[pc.index()] })
}

fn not_possible(run: &Run<'_>, step: usize, action: Action) -> NotPossible {
    let mut possible: Vec<Movable> = Vec::new();
    for action in run.possible() {
        let thread = action.thread();
        if possible.last().is_none_or(|last| last.thread != thread) {
            let site = run.machine().site(run.state(), thread);
            possible.push(Movable { thread, site, choices: Vec::new() });
        }
        if let (Action::Step { choice, .. }, Some(last)) = (action, possible.last_mut()) {
            last.choices.push(choice);
        }
    }
    let over = match run.outcome() {
        Outcome::Failed(problem) => Some(problem.clone()),
        Outcome::Continues | Outcome::Pruned => None,
    };
    NotPossible { step, action, possible, over }
}

fn end_of(run: &Run<'_>) -> (End, Option<Problem>) {
    match run.outcome() {
        Outcome::Failed(problem) => (End::Wrong, Some(problem.clone())),
        Outcome::Pruned => (End::Pruned, None),
        Outcome::Continues if !run.possible().is_empty() => (End::Open, None),
        Outcome::Continues => match run.machine().rest(run.state()) {
            Rest::Finished => (End::Complete, None),
            Rest::Pruned => (End::Pruned, None),
            Rest::Failed(problem) => (End::Wrong, Some(problem)),
            Rest::Spinning => (End::Spinning, None),
        },
    }
}

/// The events of one execution, and what monitors make of them.
struct Watch<'a> {
    actions: &'a [Action],
    /// By action.
    accesses: Vec<Access>,
    /// Labelled with the number of their action.
    events: Vec<Event>,
    /// Events of each thread so far.
    indices: Vec<u32>,
    violations: Vec<Violation>,
}

impl<'a> Watch<'a> {
    fn new(program: &Program, actions: &'a [Action]) -> Self {
        let indices = vec![0; program.threads.len()];
        Self { actions, accesses: Vec::new(), events: Vec::new(), indices, violations: Vec::new() }
    }

    fn note(&mut self, access: Option<Access>, happened: &[(ThreadId, Happening)]) {
        let access = access.expect("invariant: only existing threads can move");
        let label = self.accesses.len() as u32;
        self.accesses.push(access);
        for &(thread, Happening { kind, cell, .. }) in happened {
            let index = &mut self.indices[thread.index()];
            let thread = u32::from(thread.0);
            self.events.push(Event { thread, index: *index, operation: kind.operation(), cell, label });
            *index += 1;
        }
    }

    fn watch(&mut self, program: &Program, kind: MonitorKind) {
        let mut monitor = AnyMonitor::new(kind, program.threads.len(), Cells::of(program).count());
        let mut found: Vec<Finding> = Vec::new();
        monitor.watch_events(self.events.iter().copied(), &mut found);
        for Finding { store, access } in found {
            let (actions, issued) = (self.actions[..=access as usize].to_vec(), Some(store as usize));
            let (store, access) = (self.accesses[store as usize], self.accesses[access as usize]);
            let is_last = |actions: &[Action]| actions.len() == self.actions.len();
            let is_known = |known: &Violation| {
                (known.store, known.access, is_last(&known.actions)) == (store, access, is_last(&actions))
            };
            if !self.violations.iter().any(is_known) {
                self.violations.push(Violation { store, access, actions, issued });
            }
        }
    }
}
