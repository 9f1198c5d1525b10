//! An execution in columns, one for each thread.

use std::fmt::{self, Write as _};

use crate::failure::SourcePlace;
use crate::rt::Place;
use crate::rt::lane::{Happened, Operation};
use crate::rt::runtime::Runtime;
use crate::source;

/// One thing that happened.
#[derive(Debug, Clone)]
pub struct Moment {
    /// Whose.
    pub thread: u32,
    /// In words.
    pub text: String,
    /// Where in the source.
    pub place: SourcePlace,
}

/// An execution, in order.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// What happened.
    pub moments: Vec<Moment>,
    /// Names of the threads.
    pub threads: Vec<String>,
}

impl Timeline {
    /// The run that was made last.
    pub(crate) fn of_run(runtime: &Runtime) -> Self {
        let state = runtime.state();
        let threads = state.lanes.iter().enumerate().map(|(number, lane)| thread_name(number, lane.name.as_deref()));
        let threads = threads.collect();
        let moments = state.log.iter().filter_map(moment).collect();
        Self { moments, threads }
    }

    /// Threads that do something in it.
    /// Did nothing happen that can be shown?
    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }

    fn columns(&self) -> Vec<u32> {
        let mut columns: Vec<u32> = self.moments.iter().map(|moment| moment.thread).collect();
        columns.sort_unstable();
        columns.dedup();
        columns
    }
}

/// What a thread is called.
pub(crate) fn thread_name(number: usize, name: Option<&str>) -> String {
    match (number, name) {
        (_, Some(name)) => format!("thread {number} ({name})"),
        (0, None) => "thread 0 (main)".to_owned(),
        (_, None) => format!("thread {number}"),
    }
}

fn moment(happened: &Happened) -> Option<Moment> {
    let Happened { thread, operation, what, place, result, written, .. } = *happened;
    let text = match operation {
        Operation::Load(_) => format!("load: {result}"),
        Operation::Store(_, value) => format!("store {}", value as i64),
        Operation::InterlockedStore(_, value) => format!("store {} (SeqCst)", value as i64),
        // The word of a lock or a channel means nothing to its users.
        Operation::Rmw { may_block: true, .. } if what.starts_with("RwLock::try_") => {
            format!("{what}: {}", if written.is_some() { "acquired" } else { "held" })
        }
        Operation::Rmw { may_block: true, .. } => what.to_owned(),
        Operation::Rmw { .. } => match written {
            Some(new) => format!("{what}: {result} -> {new}"),
            None => format!("{what}: {result}"),
        },
        Operation::Commit(_) => "… reaches memory".to_owned(),
        Operation::Choose(_) => format!("chooses {result}"),
        Operation::Spawn { child, .. } => format!("spawn thread {child}"),
        Operation::Join { child, .. } => format!("join thread {child}"),
        Operation::TryLock(_) => format!("{what}: {}", if result == 1 { "acquired" } else { "held" }),
        Operation::Begin(_) | Operation::End(_) => return None,
        _ => what.to_owned(),
    };
    Some(Moment { thread, text, place: SourcePlace::from(place as Place) })
}

/// Columns are this wide at most.
const WIDEST: usize = 44;
/// Of a long execution the last moments are shown.
const MOST_MOMENTS: usize = 80;

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns();
        let skipped = self.moments.len().saturating_sub(MOST_MOMENTS);
        let shown = &self.moments[skipped..];
        let cell = |moment: &Moment| {
            let line = source::line(&moment.place).map(|line| line.trim().to_owned());
            match line {
                Some(line) => {
                    format!("{}  {}", moment.text, cut(&line, WIDEST - moment.text.chars().count().min(30) - 2))
                }
                None => format!("{}  {}", moment.text, moment.place),
            }
        };
        let texts: Vec<String> = shown.iter().map(|moment| cut(&cell(moment), WIDEST)).collect();
        let width = |column: u32| {
            let cells = shown.iter().zip(&texts).filter(|(moment, _)| moment.thread == column);
            let widest = cells.map(|(_, text)| text.chars().count()).max().unwrap_or(0);
            widest.max(self.threads.get(column as usize).map_or(0, |name| name.chars().count()))
        };
        let widths: Vec<usize> = columns.iter().map(|&column| width(column)).collect();
        let mut head = format!("  {:>5}", "line");
        for (&column, &width) in columns.iter().zip(&widths) {
            let name = self.threads.get(column as usize).map_or("", String::as_str);
            write!(head, "  {name:<width$}")?;
        }
        f.write_str(head.trim_end())?;
        if skipped > 0 {
            write!(f, "\n  {:>5}  ({skipped} earlier events)", "…")?;
        }
        let mut rows = shown.iter().zip(&texts).peekable();
        while let Some((moment, text)) = rows.next() {
            let is_the_same = |next: &(&Moment, &String)| {
                next.0.thread == moment.thread && next.0.place == moment.place && next.1 == text
            };
            let mut times = 1;
            while rows.next_if(is_the_same).is_some() {
                times += 1;
            }
            let text = if times > 1 { format!("{text}  ({times} times)") } else { text.clone() };
            write!(f, "\n  {:>5}", moment.place.line)?;
            for (&column, &width) in columns.iter().zip(&widths) {
                if column == moment.thread {
                    write!(f, "  {text}")?;
                    break;
                }
                write!(f, "  {:<width$}", "")?;
            }
        }
        Ok(())
    }
}
