//! The numbers of threads: they are given out as threads are found, and a thread has the same one in every run.
//!
//! In which order they are found depends on the order in which the explorer makes executions. So a schedule in which not only the first
//! thread starts others says who starts whom: `~t0.0.1` behind it, the thread that starts thread 1, the one that starts thread 2, and so
//! on. Of those that one thread starts, the first has the smallest number.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use super::observed::OBSERVED;
use super::{Place, Runtime};
use crate::builder::MAX_THREADS;

/// The number of a thread by its parent and how many that had started before.
pub(crate) type ThreadNumbers = FxHashMap<(u32, u32), u32>;

/// What stands before the parents, behind a schedule.
pub(crate) const PARENTS: char = 't';

impl Runtime {
    /// The number of a thread that the current one starts.
    pub(crate) fn number_child(&self, place: Place) -> Result<u32, usize> {
        let parent = self.thread.get();
        let mut state = self.state();
        let nth = state.lanes[parent as usize].started;
        state.lanes[parent as usize].started += 1;
        if let Some(&known) = state.numbers.get(&(parent, nth)) {
            return Ok(known);
        }
        if state.lanes.len() >= self.max_threads {
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
        let mut parents = vec![0; state.numbers.len()];
        for (&(parent, _), &number) in &state.numbers {
            parents[number as usize - 1] = parent;
        }
        if parents.iter().all(|&parent| parent == 0) {
            return String::new();
        }
        let mut text = format!("{OBSERVED}{PARENTS}");
        for (index, parent) in parents.iter().enumerate() {
            let _ = write!(text, "{}{parent}", if index == 0 { "" } else { "." });
        }
        text
    }

    /// Gives threads the numbers that a schedule says, if nobody has any yet.
    pub(crate) fn number_threads(&self, parents: &[u32]) {
        let mut state = self.state();
        if !state.numbers.is_empty() {
            return;
        }
        for (index, &parent) in parents.iter().enumerate() {
            let before = parents[..index].iter().filter(|&&other| other == parent).count();
            state.numbers.insert((parent, before as u32), index as u32 + 1);
        }
        state.widen(parents.len() + 1);
    }
}

/// What [`Runtime::parents_text`] has written behind its first two letters, if it is that.
pub(crate) fn parse_parents(text: &str) -> Option<Vec<u32>> {
    let parents: Option<Vec<u32>> = text.split('.').map(|parent| parent.parse().ok()).collect();
    // Who starts a thread was started before.
    let is_older = |(index, parent): (usize, &u32)| *parent as usize <= index;
    parents.filter(|parents| parents.len() < MAX_THREADS && parents.iter().enumerate().all(is_older))
}
