//! A budget that also ends when a search has explored too many executions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weakspot_model::task::{Budget, Limit, Progress};

/// Stands between a search and those who watch it.
pub struct Capped<'a> {
    inner: &'a dyn Progress,
    asked: &'a Budget,
    most: u64,
    stop: Arc<AtomicBool>,
}

impl<'a> Capped<'a> {
    /// Ends when more executions than this were explored, of all kinds.
    pub fn new(inner: &'a dyn Progress, asked: &'a Budget, most: u64) -> Self {
        Self { inner, asked, most, stop: Arc::default() }
    }

    /// The budget for the search that reports here.
    pub fn budget(&self) -> Budget {
        Budget { cancelled: Arc::clone(&self.stop), ..self.asked.clone() }
    }

    /// Did the search end because it had counted too far?
    pub fn ran_out(&self) -> bool {
        self.stop.load(Ordering::Relaxed) && self.asked.exhausted(0) != Some(Limit::Cancelled)
    }
}

impl Capped<'_> {
    fn look_at(&self, counted: u64) {
        if counted > self.most || self.asked.cancelled.load(Ordering::Relaxed) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Progress for Capped<'_> {
    fn update(&self, states: u64, explored: u64, waiting: u64) {
        self.inner.update(states, explored, waiting);
        self.look_at(explored);
    }

    fn explored(&self, executions: u64, graphs: u64, covered: f64) {
        self.inner.explored(executions, graphs, covered);
        self.look_at(graphs);
    }
}
