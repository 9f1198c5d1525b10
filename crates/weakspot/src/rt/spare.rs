//! Memory of checks that are over, for the next check on the same OS thread.
//!
//! A small model has a handful of executions, and setting up the tables for them would take longer than running them. What
//! is kept here is empty: only its memory is used again. One of each is kept, and nothing that has grown large.

use std::cell::RefCell;

use weakspot_explore::trust::Workspace;

use super::counts::Counts;
use super::runtime::State;

thread_local! {
    static RUN: RefCell<Option<(State, Counts)>> = const { RefCell::new(None) };
    static WORKSPACE: RefCell<Option<Workspace>> = const { RefCell::new(None) };
}

/// Events that the log of a run may have room for, if its memory is to be kept.
const MOST_EVENTS: usize = 4096;

/// The state of a run in which nothing has happened.
pub(super) fn take_run() -> (State, Counts) {
    let kept = RUN.try_with(RefCell::take).unwrap_or_default();
    kept.unwrap_or_else(|| (State::new(), Counts::default()))
}

/// Keeps the memory of a run, if no thread of it is left behind.
pub(super) fn keep_run(mut state: State, mut counts: Counts) {
    if state.log.capacity() <= MOST_EVENTS && state.restart() {
        counts.restart();
        // The thread may be ending: then there is no next check.
        let _ = RUN.try_with(|kept| kept.replace(Some((state, counts))));
    }
}

/// Memory for an explorer.
pub(crate) fn take_workspace() -> Workspace {
    WORKSPACE.try_with(RefCell::take).unwrap_or_default().unwrap_or_default()
}

/// Keeps the memory of an explorer.
pub(crate) fn keep_workspace(workspace: Workspace) {
    let _ = WORKSPACE.try_with(|kept| kept.replace(Some(workspace)));
}
