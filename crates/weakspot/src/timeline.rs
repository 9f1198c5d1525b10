//! An execution in columns, one for each thread.

mod layout;

use std::fmt;

use crate::failure::SourcePlace;
use crate::rt::Place;
use crate::rt::lane::{Happened, Operation};
use crate::rt::runtime::Runtime;
use crate::rt::waiting::put_endless;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        let log = runtime.state().log.clone();
        Self::of(log.into_iter(), runtime)
    }

    /// What happened in the run that was made last, in another order.
    pub(crate) fn of(happened: impl Iterator<Item = Happened>, runtime: &Runtime) -> Self {
        let state = runtime.state();
        let threads = state.lanes.iter().enumerate().map(|(number, lane)| thread_name(number, lane.name.as_deref()));
        let threads = threads.collect();
        let mut happened: Vec<Happened> = happened.collect();
        for &wait in &state.endless {
            put_endless(wait, &mut happened);
        }
        let moments = happened.iter().filter_map(moment).collect();
        Self { moments, threads }
    }

    /// What a thread is called, if it was given a name.
    pub(crate) fn given_name(&self, thread: u32) -> Option<&str> {
        let name = self.threads.get(thread as usize).filter(|_| thread != 0)?;
        name.ends_with(')').then_some(name)
    }

    /// Did nothing happen that can be shown?
    pub fn is_empty(&self) -> bool {
        self.moments.is_empty()
    }

    /// Threads that do something in it.
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
        Operation::Load(_) if what != "load" => what.to_owned(),
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
        Operation::Pass(_) => format!("{what}: all are there"),
        Operation::Begin(_) | Operation::End(_) | Operation::Open(_) => return None,
        _ => what.to_owned(),
    };
    Some(Moment { thread, text, place: SourcePlace::from(place as Place) })
}

/// Of a long execution the last moments are shown.
const MOST_MOMENTS: usize = 80;

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        layout::write(f, self, MOST_MOMENTS, layout::width_of_terminal())
    }
}
