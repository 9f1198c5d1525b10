//! Memory of checks that are over, for the next check.
//!
//! A small model has a handful of executions, and setting up the tables for them would take longer than running them. What
//! is kept here is empty: only its memory is used again. One of each is kept for each OS thread, and nothing that has grown
//! large. An OS thread that ends leaves it to others: each test of `cargo test` has one of its own.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use weakspot_explore::linearise::Lineariser;
use weakspot_explore::trust::Workspace;

use super::counts::Counts;
use super::memory::Freed;
use super::state::State;

/// What a run needs.
pub(super) struct Run {
    pub(super) state: State,
    pub(super) counts: Counts,
    /// Nothing, but room.
    pub(super) freed: Freed,
}

/// What checks of an OS thread have left.
#[derive(Default)]
struct Spare {
    run: Option<Run>,
    workspace: Option<Workspace>,
    lineariser: Option<Lineariser>,
}

// SAFETY: a run that is kept has been restarted. Nothing has happened in it: it has no coroutines, no pointers into them
// and no reference counts, and its memory is that of the global allocator.
unsafe impl Send for Spare {}

/// The same, left to others when the OS thread ends.
struct Own(Spare);

thread_local! {
    static SPARE: RefCell<Own> = RefCell::new(Own(take_left()));
}

/// What OS threads that have ended have left.
static LEFT: Mutex<Vec<Spare>> = Mutex::new(Vec::new());
/// Of how many of them it is kept.
const MOST_LEFT: usize = 8;

fn take_left() -> Spare {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
}

impl Drop for Own {
    fn drop(&mut self) {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() < MOST_LEFT {
            left.push(std::mem::take(&mut self.0));
        }
    }
}

/// Uses what is kept for this OS thread. It may be ending: then there is nothing, and nothing is kept.
fn with_spare<R>(work: impl FnOnce(&mut Spare) -> R) -> Option<R> {
    SPARE.try_with(|spare| work(&mut spare.borrow_mut().0)).ok()
}

/// Events that the log of a run may have room for, if its memory is to be kept.
const MOST_EVENTS: usize = 4096;

/// The state of a run in which nothing has happened.
pub(super) fn take_run() -> Run {
    let kept = with_spare(|spare| spare.run.take()).flatten();
    kept.unwrap_or_else(|| Run { state: State::new(), counts: Counts::default(), freed: Freed::default() })
}

/// Keeps the memory of a run, if no thread of it is left behind.
pub(super) fn keep_run(mut run: Run) {
    if run.state.log.capacity() <= MOST_EVENTS && run.state.restart() {
        run.counts.restart();
        with_spare(|spare| spare.run = Some(run));
    }
}

/// Memory for an explorer.
pub(crate) fn take_workspace() -> Workspace {
    with_spare(|spare| spare.workspace.take()).flatten().unwrap_or_default()
}

/// Keeps the memory of an explorer.
pub(crate) fn keep_workspace(workspace: Workspace) {
    with_spare(|spare| spare.workspace = Some(workspace));
}

/// A lineariser whose tables are those of the last one, and left for the next.
pub(crate) struct SpareLineariser(Lineariser);

impl SpareLineariser {
    pub(crate) fn take() -> Self {
        Self(with_spare(|spare| spare.lineariser.take()).flatten().unwrap_or_default())
    }
}

impl Drop for SpareLineariser {
    fn drop(&mut self) {
        let lineariser = std::mem::take(&mut self.0);
        with_spare(|spare| spare.lineariser = Some(lineariser));
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
