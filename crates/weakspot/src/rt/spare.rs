//! Memory of checks that are over, for the next check on the same OS thread.
//!
//! A small model has a handful of executions, and setting up the tables for them would take longer than running them. What
//! is kept here is empty: only its memory is used again. One of each is kept, and nothing that has grown large.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use weakspot_explore::linearise::Lineariser;
use weakspot_explore::trust::Workspace;

use super::counts::Counts;
use super::memory::Freed;
use super::runtime::State;

/// What a run needs.
pub(super) struct Run {
    pub(super) state: State,
    pub(super) counts: Counts,
    /// Nothing, but room.
    pub(super) freed: Freed,
}

thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
    static LINEARISER: RefCell<Option<Lineariser>> = const { RefCell::new(None) };
    static WORKSPACE: RefCell<Option<Workspace>> = const { RefCell::new(None) };
}

/// Events that the log of a run may have room for, if its memory is to be kept.
const MOST_EVENTS: usize = 4096;

/// The state of a run in which nothing has happened.
pub(super) fn take_run() -> Run {
    let kept = RUN.try_with(RefCell::take).unwrap_or_default();
    kept.unwrap_or_else(|| Run { state: State::new(), counts: Counts::default(), freed: Freed::default() })
}

/// Keeps the memory of a run, if no thread of it is left behind.
pub(super) fn keep_run(mut run: Run) {
    if run.state.log.capacity() <= MOST_EVENTS && run.state.restart() {
        run.counts.restart();
        // The thread may be ending: then there is no next check.
        let _ = RUN.try_with(|kept| kept.replace(Some(run)));
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

/// A lineariser whose tables are those of the last one, and left for the next.
pub(crate) struct SpareLineariser(Lineariser);

impl SpareLineariser {
    pub(crate) fn take() -> Self {
        Self(LINEARISER.try_with(RefCell::take).unwrap_or_default().unwrap_or_default())
    }
}

impl Drop for SpareLineariser {
    fn drop(&mut self) {
        let lineariser = std::mem::take(&mut self.0);
        let _ = LINEARISER.try_with(|kept| kept.replace(Some(lineariser)));
    }
}

impl Deref for SpareLineariser {
    type Target = Lineariser;

    fn deref(&self) -> &Lineariser {
        &self.0
    }
}

impl DerefMut for SpareLineariser {
    fn deref_mut(&mut self) -> &mut Lineariser {
        &mut self.0
    }
}
