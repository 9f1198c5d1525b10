//! The numbers of threads: they are given out as threads are found, and a thread has the same one in every run.
//!
//! In which order they are found depends on the order in which the explorer makes executions. So a schedule in which not only the first
//! thread starts others says who starts whom: `~t0.0.1` behind it, the thread that starts thread 1, the one that starts thread 2, and so
//! on. Of those that one thread starts, the first has the smallest number.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use super::observed::OBSERVED;
use super::{Place, Runtime};

/// The number of a thread by its parent and how many that had started before, with [`HIDDEN`] added for hidden threads, which are
/// counted for themselves: they are there or not, depending on what is observed.
pub(crate) type ThreadNumbers = FxHashMap<(u32, u32), u32>;

/// What stands before the parents, behind a schedule.
pub(crate) const PARENTS: char = 't';
/// And behind the parent of a hidden thread.
const HIDDEN_MARK: &str = "h";

const HIDDEN: u32 = 1 << 31;

/// Threads of both kinds together: each is a bit, and what the explorer does with bits leaves two of them free.
const MOST_LANES: usize = 62;

impl Runtime {
    /// The number of a thread that the current one starts.
    pub(crate) fn number_child(&self, is_hidden: bool, place: Place) -> Result<u32, usize> {
        let parent = self.thread.get();
        let mut state = self.state();
        let lane = &mut state.lanes[parent as usize];
        let started = if is_hidden { &mut lane.started_hidden } else { &mut lane.started };
        let nth = *started + if is_hidden { HIDDEN } else { 0 };
        *started += 1;
        if let Some(&known) = state.numbers.get(&(parent, nth)) {
            return Ok(known);
        }
        let hidden = state.numbers.keys().filter(|&&(_, nth)| nth >= HIDDEN).count();
        let limit = if is_hidden { MOST_LANES } else { self.max_threads + hidden };
        if state.lanes.len() >= limit.min(MOST_LANES) {
            drop(state);
            if limit > MOST_LANES {
                // It is hidden threads that leave no room.
                self.ask_whether_closed(place);
            }
            return Err(self.max_threads);
        }
        if self.threads_are_known.get() {
            drop(state);
            self.get_in_the_way(place);
            state = self.state();
        }
        let number = state.lanes.len() as u32;
        state.numbers.insert((parent, nth), number);
        state.widen(number as usize + 1);
        Ok(number)
    }

    /// There are no hidden threads any more: what the numbers of threads are is found out anew.
    pub(super) fn forget_hidden(&self) {
        let mut state = self.state();
        if state.numbers.keys().any(|&(_, nth)| nth >= HIDDEN) {
            state.restart();
        }
    }

    /// The numbers of all threads that any run has started.
    pub(crate) fn thread_numbers(&self) -> ThreadNumbers {
        self.state().numbers.clone()
    }

    /// The same, as another worker knows them.
    pub(crate) fn know_threads(&self, numbers: &ThreadNumbers) {
        if self.threads_are_known.replace(true) {
            return;
        }
        let mut state = self.state();
        state.numbers.clone_from(numbers);
        state.widen(numbers.len() + 1);
    }

    /// Who starts the threads that are known, as it is written behind a schedule. Nothing if the first thread starts all of them.
    pub(crate) fn parents_text(&self) -> String {
        let state = self.state();
        let mut parents = vec![(0, false); state.numbers.len()];
        for (&(parent, nth), &number) in &state.numbers {
            parents[number as usize - 1] = (parent, nth >= HIDDEN);
        }
        if parents.iter().all(|&parent| parent == (0, false)) {
            return String::new();
        }
        let mut text = format!("{OBSERVED}{PARENTS}");
        for (index, (parent, is_hidden)) in parents.into_iter().enumerate() {
            let (lead, mark) = (if index == 0 { "" } else { "." }, if is_hidden { HIDDEN_MARK } else { "" });
            let _ = write!(text, "{lead}{parent}{mark}");
        }
        text
    }

    /// Gives threads the numbers that a schedule says, if nobody has any yet.
    pub(crate) fn number_threads(&self, parents: &[Parent]) {
        let mut state = self.state();
        if !state.numbers.is_empty() {
            return;
        }
        for (index, &parent) in parents.iter().enumerate() {
            let before = parents[..index].iter().filter(|&&other| other == parent).count() as u32;
            let nth = before + if parent.hides { HIDDEN } else { 0 };
            state.numbers.insert((parent.thread, nth), index as u32 + 1);
        }
        state.widen(parents.len() + 1);
    }
}

/// Who starts a thread, and whether that is a hidden one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parent {
    thread: u32,
    hides: bool,
}

/// What [`Runtime::parents_text`] has written behind its first two letters, if it is that.
pub(crate) fn parse_parents(text: &str) -> Option<Vec<Parent>> {
    let parent = |part: &str| {
        let number = part.strip_suffix(HIDDEN_MARK);
        Some(Parent { thread: number.unwrap_or(part).parse().ok()?, hides: number.is_some() })
    };
    let parents: Option<Vec<Parent>> = text.split('.').map(parent).collect();
    // Who starts a thread was started before.
    let is_older = |(index, parent): (usize, &Parent)| parent.thread as usize <= index;
    parents.filter(|parents| parents.len() < MOST_LANES && parents.iter().enumerate().all(is_older))
}
