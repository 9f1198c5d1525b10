//! An execution in columns, one for each thread.

mod layout;

use std::fmt;

use crate::failure::{Failure, FailureKind, PlainMoment, RacingAccess, SourcePlace};
use crate::rt::Place;
use crate::rt::lane::{CONTINUES, Happened, Operation, TIMES_OUT, WAKES_UP, call_of};
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
    /// Is it not the first event of its call?
    pub(crate) continues: bool,
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

    /// The same, of a run that has failed.
    pub(crate) fn of_failed_run(runtime: &Runtime, failure: &Failure) -> Self {
        let log = runtime.state().log.clone();
        Self::of_failure(log.into_iter(), runtime, failure)
    }

    /// What happened in the run that was made last, in another order, and how it failed: accesses to plain memory that race
    /// are no events, and stand where they happened.
    pub(crate) fn of_failure(happened: impl Iterator<Item = Happened>, runtime: &Runtime, failure: &Failure) -> Self {
        let mut happened: Vec<Happened> = happened.collect();
        if let FailureKind::Race { first, second } = &failure.kind {
            // The first one is put right behind the event that its thread had done before. The second one is the last thing
            // that happened.
            if let Some(moment) = first.moment {
                let by_then = &runtime.state().log[..moment.events as usize];
                let own = |happened: &&Happened| happened.thread == first.thread;
                let events = by_then.iter().filter(own).count();
                let own = happened.iter().enumerate().filter(|(_, happened)| own(happened));
                let at = own.take(events).last().map_or(0, |(before, _)| before + 1);
                happened.insert(at, plain_access(first, moment));
            }
            happened.extend(second.moment.map(|moment| plain_access(second, moment)));
        }
        Self::of(happened.into_iter(), runtime)
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
        let is_hidden = |thread: u32| state.is_hidden(thread as usize);
        let is_shown = |happened: &&Happened| match happened.operation {
            Operation::Spawn { child, .. } => !is_hidden(child),
            _ => !is_hidden(happened.thread),
        };
        let moments = happened.iter().filter(is_shown).filter_map(moment).collect();
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

pub(crate) use layout::width_of_terminal;

/// What a thread is called.
pub(crate) fn thread_name(number: usize, name: Option<&str>) -> String {
    match (number, name) {
        (_, Some(name)) => format!("thread {number} ({name})"),
        (0, None) => "thread 0 (main)".to_owned(),
        (_, None) => format!("thread {number}"),
    }
}

fn plain_access(access: &RacingAccess, moment: PlainMoment) -> Happened {
    let what = if access.writes { "plain write" } else { "plain read" };
    let PlainMoment { place, .. } = moment;
    let operation = Operation::Plain;
    Happened { thread: access.thread, operation, what, place, result: 0, written: None, after_change: false }
}

fn moment(happened: &Happened) -> Option<Moment> {
    let Happened { thread, operation, what, place, result, written, .. } = *happened;
    let text = match operation {
        Operation::Load(_) if what.ends_with("::is_poisoned") => format!("{what}: {}", result != 0),
        Operation::Load(_) if what.starts_with(CONTINUES) => {
            format!("{what}: {}", if result != 0 { "poisoned" } else { "not poisoned" })
        }
        Operation::Load(_) if what != "load" => what.to_owned(),
        Operation::Load(_) => format!("load: {result}"),
        Operation::Store(..) | Operation::InterlockedStore(..) if what != "store" => what.to_owned(),
        Operation::Store(_, value) => format!("store {}", value as i64),
        Operation::InterlockedStore(_, value) => format!("store {} (SeqCst)", value as i64),
        // The word of a lock or a channel means nothing to its users.
        Operation::Rmw { may_block: true, .. } if what.starts_with("RwLock::try_") => {
            format!("{what}: {}", if written.is_some() { "acquired" } else { "held" })
        }
        // All words of a lock are one to its users.
        Operation::Rmw { may_block: true, .. }
            if what.starts_with(CONTINUES) && call_of(what).starts_with("RwLock") =>
        {
            return None;
        }
        Operation::Rmw { may_block: true, .. } => what.to_owned(),
        Operation::Rmw { .. } => match written {
            Some(new) => format!("{what}: {result} -> {new}"),
            None => format!("{what}: {result}"),
        },
        Operation::Commit(_) => "… reaches memory".to_owned(),
        Operation::Choose(1) => what.to_owned(),
        Operation::Choose(_) => chosen(what, result),
        Operation::Spawn { child, .. } => format!("spawn thread {child}"),
        Operation::Join { child, .. } => format!("join thread {child}"),
        Operation::TryLock(_) => format!("{what}: {}", if result == 1 { "acquired" } else { "held" }),
        Operation::Open(_) | Operation::Pass(_) if what.starts_with(CONTINUES) => return None,
        Operation::Pass(_) => format!("{what}: all are there"),
        Operation::Begin(_) | Operation::End(_) => return None,
        _ => what.to_owned(),
    };
    // Whether it is poisoned is news.
    let continues = what.starts_with(CONTINUES) && !matches!(operation, Operation::Load(_));
    Some(Moment { thread, text, place: SourcePlace::from(place as Place), continues })
}

/// What a thread does that depends on nobody else.
fn chosen(what: &str, result: i64) -> String {
    match (what, result) {
        (TIMES_OUT, 0) => "does not time out".to_owned(),
        (WAKES_UP, 0) => "does not wake up for no reason".to_owned(),
        (TIMES_OUT | WAKES_UP, _) => what.to_owned(),
        _ => format!("{what} {result}"),
    }
}

/// Of a long execution the last moments are shown.
const MOST_MOMENTS: usize = 80;

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        layout::write(f, self, MOST_MOMENTS, width_of_terminal())
    }
}
