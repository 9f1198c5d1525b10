//! The failing places: as rows of the table, and with their source below it.

use weakspot_model::ids::{Site, ThreadId};
use weakspot_model::local::Pause;
use weakspot_model::problem::{Problem, ProblemKind};
use weakspot_model::replay::Ending;
use weakspot_model::source::{Severity, Span};

use super::Execution;
use super::rows::{Cell, Row};
use crate::diagnostic::{Message, render_message};
use crate::style::{Line, Role, Style};

/// What a failing cell says.
pub(super) fn in_brief(problem: &Problem) -> &'static str {
    match problem.kind {
        ProblemKind::Assertion => "assertion fails",
        ProblemKind::Deadlock => "stuck",
        ProblemKind::MutualExclusion => "inside a critical block",
        ProblemKind::Range => "value out of range",
        ProblemKind::Overflow => "overflow",
        ProblemKind::DivisionByZero => "division by zero",
        ProblemKind::Index => "index out of range",
        ProblemKind::Unlock => "mutex not held",
        ProblemKind::Choice => "nothing to choose",
        ProblemKind::LocalLoop => "never reaches an event",
    }
}

/// The row that shows where it fails, unless the last step is that row already.
pub(super) fn rows(execution: &Execution<'_>) -> Vec<Row> {
    let Ending::Failed(problem) = &execution.replay.ending else { return Vec::new() };
    if execution.replay.steps.last().is_some_and(|step| step.effect.is_none()) {
        return Vec::new();
    }
    let places = places(execution, problem);
    let mut row = Row { number: None, cells: Vec::new(), across: None, failing: true };
    for (thread, site) in places {
        let cell = Cell {
            thread: thread.unwrap_or(ThreadId(0)),
            line_number: Some(execution.site(site).position.line),
            what: Line::of(Role::Failure, execution.row_text(site)),
            effect: Line::of(Role::Failure, in_brief(problem)),
            buffer: String::new(),
            buffer_matters: false,
        };
        match thread {
            Some(_) => row.cells.push(cell),
            None => row.across = Some(cell),
        }
    }
    if row.cells.is_empty() && row.across.is_none() { Vec::new() } else { vec![row] }
}

/// Who fails where: both threads of a broken mutual exclusion, all that are stuck in a deadlock, else the one at fault
/// (`None`: the `final` block).
pub(super) fn places(execution: &Execution<'_>, problem: &Problem) -> Vec<(Option<ThreadId>, Site)> {
    let program = execution.program;
    let state = &execution.replay.state;
    let rests_at = |id: ThreadId| {
        let pc = state.threads[id.index()].local.pc;
        (Some(id), program.threads[id.index()].sites[pc.index()])
    };
    match problem.kind {
        ProblemKind::MutualExclusion => {
            let inside = |id: &ThreadId| {
                let pc = state.threads[id.index()].local.pc;
                program.threads[id.index()].critical[pc.index()]
            };
            program.thread_ids().filter(inside).map(rests_at).collect()
        }
        ProblemKind::Deadlock => {
            let stuck = |id: &ThreadId| state.threads[id.index()].pause != Pause::End;
            program.thread_ids().filter(stuck).map(rests_at).collect()
        }
        _ => problem.site.map(|site| (problem.thread, site)).into_iter().collect(),
    }
}

/// The problem as a message with the source of its places.
pub(super) fn explain(execution: &Execution<'_>, style: &Style) -> String {
    let Ending::Failed(problem) = &execution.replay.ending else { return String::new() };
    let mut marks: Vec<(Span, Vec<&str>)> = Vec::new();
    for (thread, site) in places(execution, problem) {
        let span = head(execution, execution.site(site).span);
        let name = thread.map_or("the `final` block", |id| execution.thread_name(id));
        match marks.iter_mut().find(|(other, _)| *other == span) {
            Some((_, names)) => names.push(name),
            None => marks.push((span, vec![name])),
        }
    }
    let label = |names: &[&str]| match (problem.kind, names) {
        (ProblemKind::MutualExclusion, [one]) => format!("{one} is here"),
        (ProblemKind::MutualExclusion, all) => format!("{} are here", list(all)),
        (ProblemKind::Deadlock, [one]) => format!("{one} is stuck here"),
        (ProblemKind::Deadlock, all) => format!("{} are stuck here", list(all)),
        (_, all) => format!("fails here, in {}", list(all)),
    };
    let message = Message {
        severity: Some(Severity::Error),
        code: Some(problem.kind.name()),
        title: &problem.message,
        primary: marks.iter().map(|(span, names)| (*span, label(names))).collect(),
        related: Vec::new(),
        help: None,
    };
    render_message(&execution.program.source, &message, style)
}

/// The first line of a span: a mark under a whole block says less than one under its first line.
fn head(execution: &Execution<'_>, span: Span) -> Span {
    let text = execution.program.source.text.get(span.range()).unwrap_or_default();
    let first = text.split('\n').next().unwrap_or_default().trim_end();
    Span { start: span.start, end: span.start + first.len() as u32 }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
