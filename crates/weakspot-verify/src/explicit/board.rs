//! Where workers write how far they are, and read whether to go on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use weakspot_model::task::{Budget, Limit, Progress};

/// Tell the progress sink no more often than this.
const BETWEEN_UPDATES: Duration = Duration::from_millis(50);

/// What one worker has done.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    pub states: u64,
    pub expanded: u64,
    pub transitions: u64,
    pub bytes: u64,
}

#[derive(Default)]
struct Published {
    states: AtomicU64,
    expanded: AtomicU64,
    transitions: AtomicU64,
    bytes: AtomicU64,
}

/// Shared by all workers of a search.
pub(crate) struct Board<'s> {
    budget: &'s Budget,
    max_states: Option<u64>,
    progress: &'s dyn Progress,
    workers: Vec<Published>,
    stopped: AtomicBool,
    last_layer: AtomicBool,
    abandoned: AtomicBool,
    /// Bytes in messages that have not arrived.
    on_the_way: AtomicU64,
    limit: Mutex<Option<Limit>>,
    updated: Mutex<Instant>,
}

impl<'s> Board<'s> {
    pub fn new(jobs: usize, max_states: Option<u64>, budget: &'s Budget, progress: &'s dyn Progress) -> Self {
        Self {
            budget,
            max_states,
            progress,
            workers: (0..jobs).map(|_| Published::default()).collect(),
            stopped: AtomicBool::new(false),
            last_layer: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            on_the_way: AtomicU64::new(0),
            limit: Mutex::new(None),
            updated: Mutex::new(Instant::now()),
        }
    }

    /// Should workers drop everything?
    pub fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Should no further layer begin?
    pub fn is_last_layer(&self) -> bool {
        self.stopped() || self.last_layer.load(Ordering::Relaxed)
    }

    /// A problem was found and any will do.
    pub fn stop_searching(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// A problem was found, and a shorter way to one may be in the same layer.
    pub fn finish_with_this_layer(&self) {
        self.last_layer.store(true, Ordering::Relaxed);
    }

    /// A worker is gone for ever (it panicked): nobody should wait for it.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
        self.stop_searching();
    }

    /// Is a worker gone?
    pub fn abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// A message with this many bytes is sent.
    pub fn on_the_way(&self, bytes: u64) {
        self.on_the_way.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A message with this many bytes has been taken in.
    pub fn arrived(&self, bytes: u64) {
        self.on_the_way.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// A limit was reached; the first one counts.
    pub fn stop(&self, limit: Limit) {
        self.limit.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(limit);
        self.stop_searching();
    }

    /// The limit that was reached.
    pub fn limit(&self) -> Option<Limit> {
        *self.limit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a worker has done, and looks at the limits.
    pub fn publish(&self, worker: usize, counters: Counters) {
        let mine = &self.workers[worker];
        mine.states.store(counters.states, Ordering::Relaxed);
        mine.expanded.store(counters.expanded, Ordering::Relaxed);
        mine.transitions.store(counters.transitions, Ordering::Relaxed);
        mine.bytes.store(counters.bytes, Ordering::Relaxed);
        let total = self.total();
        if let Some(limit) = self.budget.exhausted(total.bytes) {
            self.stop(limit);
        }
        if let Some(most) = self.max_states.filter(|&most| total.states > most) {
            self.stop(Limit::States(most));
        }
        self.report(total);
    }

    fn report(&self, total: Counters) {
        let Ok(mut updated) = self.updated.try_lock() else { return };
        if updated.elapsed() >= BETWEEN_UPDATES {
            *updated = Instant::now();
            self.progress.update(total.states, total.transitions, total.states - total.expanded.min(total.states));
        }
    }

    /// What all workers have done.
    pub fn total(&self) -> Counters {
        let sum = |field: fn(&Published) -> &AtomicU64| -> u64 {
            self.workers.iter().map(|worker| field(worker).load(Ordering::Relaxed)).sum()
        };
        Counters {
            states: sum(|worker| &worker.states),
            expanded: sum(|worker| &worker.expanded),
            transitions: sum(|worker| &worker.transitions),
            bytes: sum(|worker| &worker.bytes) + self.on_the_way.load(Ordering::Relaxed),
        }
    }
}
