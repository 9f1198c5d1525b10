//! Who waits for what, for the messages of deadlocks and livelocks.
//!
//! A mutex knows who holds it. What is made of state words (readers-writer locks, `Once`) does not, and need not while it
//! is explored: who holds it follows from the log of the run, which is looked at when nobody can go on.

use std::fmt::Write;

use super::Place;
use super::lane::{Happened, Lane, Operation, call_of};
use super::runtime::{MOST_SILENT_ROUNDS, Runtime};
use super::state::State;
use crate::failure::{Failure, FailureKind};
use crate::timeline::thread_name;

/// What a future is run by.
pub(crate) const BLOCK_ON: &str = "block_on";

/// How something is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hold {
    Read,
    Write,
    /// The closure of a `Once` runs.
    Run,
}

/// Somebody holds something.
#[derive(Debug, Clone, Copy)]
struct Holder {
    thread: u32,
    how: Hold,
    since: Place,
}

impl Runtime {
    /// Nobody else can run while a thread waits without an event, so it would wait for ever.
    #[cold]
    pub(super) fn fail_silent_loop(&self, place: Place) -> ! {
        let thread = self.thread.get();
        let message = format!(
            "thread {thread} goes round a waiting loop without looking at anything that weakspot can see: it has been \
             round {MOST_SILENT_ROUNDS} times. If it waits for an atomic, a lock or a channel of `std`, use weakspot's"
        );
        let failure = Failure::new(FailureKind::TooLong, message).of_thread(thread).at(Some(place.into()));
        self.fail_with(failure)
    }

    /// Nobody can go on.
    pub(crate) fn deadlock(&self) -> Failure {
        self.state().note_endless_waits();
        let message = format!("deadlock: nobody can go on{}", self.describe_waiting());
        Failure::new(FailureKind::Deadlock, message)
    }

    /// Whoever is left goes round a loop.
    pub(crate) fn livelock(&self) -> Failure {
        let message = format!("livelock: nobody can end the waiting{}", self.describe_waiting());
        Failure::new(FailureKind::Livelock, message)
    }

    /// Who waits for what.
    fn describe_waiting(&self) -> String {
        let state = self.state();
        let mut text = String::new();
        for (number, lane) in state.lanes.iter().enumerate().filter(|&(number, _)| !state.is_hidden(number)) {
            let waits_for = match lane.operation {
                Operation::Absent | Operation::Ended | Operation::Failed => continue,
                Operation::Lock(mutex) => {
                    let (holder, place) = state.objects[mutex as usize].holder;
                    format!("waits for a mutex that {} holds since {place}", holder_name(&state, holder, number))
                }
                _ if lane.may_time_out() => "waits with a timeout, again and again".to_owned(),
                Operation::Wait { .. } => "waits for a notification".to_owned(),
                Operation::Join { child, .. } => format!("waits for {} to end", name_of(&state, child)),
                Operation::Rmw { .. } if lane.what == BLOCK_ON => {
                    "waits in `block_on` for a call of its waker".to_owned()
                }
                Operation::Rmw { .. } | Operation::Pass(_) => format!("waits in {}", call_of(lane.what)),
                _ if lane.marker != 0 => "waits in a loop for a value that nobody will write".to_owned(),
                _ => format!("is about to {}", call_of(lane.what)),
            };
            let _ = write!(text, "\n  {} {waits_for}, at {}", name_of(&state, number as u32), lane.place);
            if let Operation::Rmw { object, .. } = lane.operation {
                let lock = state.whole(object);
                let holders = holders(&state.log, |object| state.whole(object) == lock);
                text.push_str(&describe_holders(&state, number, &holders));
            }
            if let Operation::Pass(gate) = lane.operation {
                text.extend(self.describe_arrivals(state.whole(gate)));
            }
        }
        text
    }
}

impl State {
    /// Notes the waits for a notification that will never return.
    fn note_endless_waits(&mut self) {
        let waits = self.lanes.iter().enumerate().filter(|(_, lane)| matches!(lane.operation, Operation::Wait { .. }));
        let what = "Condvar::wait: does not return";
        let as_if_over = |(thread, &Lane { operation, place, .. }): (usize, &Lane)| Happened {
            thread: thread as u32,
            operation,
            what,
            place,
            result: 0,
            written: None,
            after_change: false,
        };
        self.endless = waits.map(as_if_over).collect();
    }
}

/// Puts a wait that does not return to where it began. That was before somebody else got its mutex, and as far as anybody
/// can tell right before that: what others have notified until then has not woken it.
pub(crate) fn put_endless(wait: Happened, among: &mut Vec<Happened>) {
    let Operation::Wait { mutex, .. } = wait.operation else { return };
    let is_own = |one: &Happened| one.thread == wait.thread && !matches!(one.operation, Operation::Commit(_));
    let start = among.iter().rposition(is_own).map_or(0, |last| last + 1);
    let before = among[start..].iter().position(|one| one.acquires(mutex));
    among.insert(before.map_or(among.len(), |before| start + before), wait);
}

impl Happened {
    fn acquires(&self, mutex: u32) -> bool {
        match self.operation {
            Operation::Lock(acquired) | Operation::Wait { mutex: acquired, .. } => acquired == mutex,
            Operation::TryLock(acquired) => acquired == mutex && self.result == 1,
            _ => false,
        }
    }
}

fn name_of(state: &State, thread: u32) -> String {
    thread_name(thread as usize, state.lanes[thread as usize].name.as_deref())
}

/// Somebody as whoever waits for it says it.
fn holder_name(state: &State, holder: u32, waiting: usize) -> String {
    let has_ended = matches!(state.lanes[holder as usize].operation, Operation::Ended);
    match holder as usize == waiting {
        true => "it itself".to_owned(),
        false if has_ended => format!("{}, which has ended,", name_of(state, holder)),
        false => name_of(state, holder),
    }
}

/// A thread waits for a state word: those who hold what the word stands for.
fn describe_holders(state: &State, thread: usize, holders: &[Holder]) -> String {
    let mut text = String::new();
    for (index, holder) in holders.iter().enumerate() {
        let Holder { thread: by, how, since } = *holder;
        let lead = if index == 0 { ": " } else { "; " };
        let who = holder_name(state, by, thread);
        let _ = match how {
            Hold::Read => write!(text, "{lead}{who} reads since {since}"),
            Hold::Write => write!(text, "{lead}{who} writes since {since}"),
            Hold::Run => write!(text, "{lead}{who} runs the closure since {since}"),
        };
    }
    text
}

/// Who holds what state words stand for, at the end of a run. Only one of the events of a call has the name of the call: who has
/// come half the way to write has nothing yet.
fn holders(log: &[Happened], is_of: impl Fn(u32) -> bool) -> Vec<Holder> {
    let mut holders: Vec<Holder> = Vec::new();
    for happened in log {
        let Happened { thread, place, .. } = *happened;
        let is_of_object = matches!(happened.operation, Operation::Rmw { object, .. } if is_of(object));
        if !is_of_object || happened.written.is_none() {
            continue;
        }
        let own = holders.iter().rposition(|holder| holder.thread == thread);
        let begin = |how| Holder { thread, how, since: place };
        match happened.what {
            "RwLock::read" | "RwLock::try_read" => holders.push(begin(Hold::Read)),
            "RwLock::write" | "RwLock::try_write" => holders.push(begin(Hold::Write)),
            "RwLockWriteGuard::downgrade" => {
                if let Some(own) = own {
                    holders[own] = begin(Hold::Read);
                }
            }
            "RwLock: end of read" | "RwLock: end of write" => {
                // The place of the end is where the guard was made.
                let is_same = |holder: &Holder| holder.thread == thread && std::ptr::eq(holder.since, place);
                let at = holders.iter().rposition(is_same).or(own);
                at.map(|at| holders.remove(at));
            }
            // The closure begins and ends with an event of the same name.
            "Once::call_once" | "Once::call_once_force" | "OnceLock::get_or_init" | "LazyLock::force" => match own {
                Some(own) => _ = holders.remove(own),
                None => holders.push(begin(Hold::Run)),
            },
            _ => {}
        }
    }
    // Of readers nobody knows who came first.
    holders.sort_by_key(|holder| holder.thread);
    holders
}
