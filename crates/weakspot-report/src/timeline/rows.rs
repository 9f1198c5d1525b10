//! The words of each row: what a step is in the source, and what it did.

use weakspot_model::buffer::{Entry, StoreBuffer};
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::FenceKind;
use weakspot_model::machine::{Action, Effect};
use weakspot_model::replay::{Ending, Step};

use super::lanes::Lanes;
use super::{Execution, failure};
use crate::style::{Line, Role};

/// One row of the table.
pub(super) struct Row {
    /// The number of the step; rows of the ending have none.
    pub number: Option<usize>,
    /// What stands in the columns of which threads.
    pub cells: Vec<Cell>,
    /// What stands across all columns (the `final` block).
    pub across: Option<Cell>,
    /// Is this where it fails?
    pub failing: bool,
}

/// What stands in one column of one row.
pub(super) struct Cell {
    /// Whose column; of no meaning for a row across.
    pub thread: ThreadId,
    /// The line of the source, if the row is about one.
    pub line_number: Option<u32>,
    /// The source text, or the commit.
    pub what: Line,
    /// What it did; may be empty.
    pub effect: Line,
    /// The thread's pending stores afterwards, `[x=1, y=2]`; empty if there are none.
    pub buffer: String,
    /// Show that even where lanes show that stores wait: several do, and it has just changed.
    pub buffer_matters: bool,
}

/// The steps, then the failing places, then the stores that still wait.
pub(super) fn rows(execution: &Execution<'_>, lanes: &Lanes) -> Vec<Row> {
    let steps = &execution.replay.steps;
    let mut buffers = execution.replay.buffers();
    let mut rows: Vec<Row> = steps
        .iter()
        .enumerate()
        .map(|(index, step)| step_row(execution, lanes, index, step, buffers.after(step)))
        .collect();
    rows.extend(failure::rows(execution));
    rows.extend(waiting_rows(execution, lanes));
    rows
}

fn step_row(execution: &Execution<'_>, lanes: &Lanes, index: usize, step: &Step, buffer: &StoreBuffer) -> Row {
    let thread = step.action.thread();
    let failing = step.effect.is_none();
    let commit = matches!(step.effect, Some(Effect::Commit { .. }));
    let effect = match (step.effect, &execution.replay.ending) {
        (Some(effect), _) => describe(execution, lanes, index, step, effect),
        (None, Ending::Failed(problem)) => Line::of(Role::Failure, failure::in_brief(problem)),
        (None, _) => Line::new(),
    };
    let cell = if commit {
        Cell { what: effect, effect: Line::new(), line_number: None, ..source_cell(execution, thread, step, buffer) }
    } else {
        Cell { effect, ..source_cell(execution, thread, step, buffer) }
    };
    Row { number: Some(index + 1), cells: vec![cell], across: None, failing }
}

fn source_cell(execution: &Execution<'_>, thread: ThreadId, step: &Step, buffer: &StoreBuffer) -> Cell {
    Cell {
        thread,
        line_number: Some(execution.site(step.site).position.line),
        what: Line::of(Role::Plain, execution.row_text(step.site)),
        effect: Line::new(),
        buffer: buffer_text(execution, buffer),
        buffer_matters: buffer.len() >= 2 && matches!(step.effect, Some(Effect::Store { .. } | Effect::Commit { .. })),
    }
}

fn describe(execution: &Execution<'_>, lanes: &Lanes, index: usize, step: &Step, effect: Effect) -> Line {
    let binding = |loc, value: i64| format!("{}={value}", execution.location_name(loc));
    let numbered = |text: String, marker: &str| if marker.is_empty() { text } else { format!("{text} {marker}") };
    let source_marker = step.store.map_or("", |store| lanes.marker(store));
    let mutex = |id: weakspot_model::ids::MutexId| &execution.program.mutexes[id.index()];
    let condvar = |id: weakspot_model::ids::CondvarId| &execution.program.condvars[id.index()];
    match effect {
        Effect::Load { loc, value, forwarded: false } => {
            Line::of(Role::Plain, format!("{} from memory", binding(loc, value)))
        }
        Effect::Load { loc, value, forwarded: true } => {
            let text = format!("{} from own buffer", binding(loc, value));
            Line::of(Role::Delayed, numbered(text, source_marker))
        }
        Effect::Store { loc, value, buffered: true } => {
            let text = format!("{} buffered", binding(loc, value));
            Line::of(Role::Delayed, numbered(text, lanes.marker(index)))
        }
        Effect::Store { loc, value, buffered: false } => {
            Line::of(Role::Plain, format!("{} stored", binding(loc, value)))
        }
        Effect::Rmw { loc, read, written: Some(written) } => {
            Line::of(Role::Plain, format!("{} → {written} at once", binding(loc, read)))
        }
        Effect::Rmw { loc, read, written: None } => {
            Line::of(Role::Plain, format!("{} left as it is", binding(loc, read)))
        }
        Effect::Fence(FenceKind::StoreStore) => Line::of(Role::Plain, "keeps later stores behind"),
        Effect::Fence(_) => Line::of(Role::Plain, "buffer is empty"),
        Effect::Lock(id) => Line::of(Role::Plain, format!("{} acquired", mutex(id))),
        Effect::Unlock(id) => Line::of(Role::Plain, format!("{} released", mutex(id))),
        Effect::Wait { condvar: id, mutex: lock } => {
            Line::of(Role::Plain, format!("{} released, waits for {}", mutex(lock), condvar(id)))
        }
        Effect::Reacquire { mutex: id } => Line::of(Role::Plain, format!("awake, {} acquired again", mutex(id))),
        Effect::Notify { condvar: id, woken, .. } => {
            Line::of(Role::Plain, notified(execution, step, condvar(id), woken))
        }
        Effect::Choose { value } => Line::of(Role::Plain, format!("chooses {value}")),
        Effect::LeaveCritical => Line::of(Role::Plain, "leaves the critical block"),
        Effect::Commit { loc, value } => {
            let text = format!("⇢ {} visible", binding(loc, value));
            Line::of(Role::Visible, numbered(text, source_marker))
        }
        Effect::SpuriousWake { condvar: id } => {
            Line::of(Role::Plain, format!("wakes, though {} was not notified", condvar(id)))
        }
    }
}

fn notified(execution: &Execution<'_>, step: &Step, condvar: &str, woken: u32) -> String {
    match (woken, step.action) {
        (0, _) => format!("nobody waits for {condvar}"),
        (1, Action::Step { choice, .. }) if single(execution, step) => {
            let name = usize::try_from(choice).ok().and_then(|index| execution.program.threads.get(index));
            name.map_or_else(|| "wakes one".to_owned(), |thread| format!("wakes {}", thread.name))
        }
        _ => format!("wakes {woken}"),
    }
}

/// Is the step a `notify_one`, whose choice names the thread it wakes?
fn single(execution: &Execution<'_>, step: &Step) -> bool {
    let code = &execution.program.threads[step.action.thread().index()].code;
    matches!(code[step.pc.index()], weakspot_model::ir::Instr::Notify { all: false, .. })
}

/// So many pending stores are shown, half of them the oldest and half the youngest.
const MOST_SHOWN: usize = 16;

/// `[x=1, y=2]`, with `|` for a store-store fence between; empty for an empty buffer. Of very many some are left out.
fn buffer_text(execution: &Execution<'_>, buffer: &StoreBuffer) -> String {
    if buffer.is_empty() {
        return String::new();
    }
    let entry = |entry: &Entry| match entry {
        Entry::Store { loc, value } => format!("{}={value}", execution.location_name(*loc)),
        Entry::StoreFence => "|".to_owned(),
    };
    let shown = |entries: &[Entry]| entries.iter().map(entry).collect::<Vec<_>>().join(", ");
    let entries = buffer.entries();
    if entries.len() <= MOST_SHOWN {
        return format!("[{}]", shown(entries));
    }
    let (oldest, rest) = entries.split_at(MOST_SHOWN / 2);
    let (left_out, youngest) = rest.split_at(rest.len() - MOST_SHOWN / 2);
    format!("[{}, … {} more …, {}]", shown(oldest), left_out.len(), shown(youngest))
}

/// Stores that nobody ever saw, one of each thread to a row.
fn waiting_rows(execution: &Execution<'_>, lanes: &Lanes) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut filled = vec![0; execution.program.threads.len()];
    for delay in lanes.delays.iter().filter(|delay| delay.commit.is_none()) {
        let row = &mut filled[delay.thread.index()];
        if *row == rows.len() {
            rows.push(Row { number: None, cells: Vec::new(), across: None, failing: false });
        }
        let marker = delay.marker.as_deref().unwrap_or_default();
        let text = format!("{}={} still buffered {marker}", execution.location_name(delay.loc), delay.value);
        rows[*row].cells.push(Cell {
            thread: delay.thread,
            line_number: None,
            what: Line::of(Role::Delayed, text.trim_end()),
            effect: Line::new(),
            buffer: String::new(),
            buffer_matters: false,
        });
        *row += 1;
    }
    rows
}

/// For each delay: the row in which it ends if it was never committed.
pub(super) fn last_rows(lanes: &Lanes, rows: &[Row], threads: usize) -> Vec<usize> {
    let waiting = lanes.delays.iter().filter(|delay| delay.commit.is_none());
    let mut counts = vec![0; threads];
    for delay in waiting.clone() {
        counts[delay.thread.index()] += 1;
    }
    let first = rows.len() - counts.iter().max().copied().unwrap_or(0);
    let mut seen = vec![0; threads];
    let end = |delay: &super::lanes::Delay| {
        delay.commit.unwrap_or_else(|| {
            let at = &mut seen[delay.thread.index()];
            *at += 1;
            first + *at - 1
        })
    };
    lanes.delays.iter().map(end).collect()
}
