//! Whose turn it is: runs that are going on now, and those who wait for their end.
//!
//! Whoever finds that something belongs to a run of a model on another OS thread (an atomic holds its token, a lock its
//! stamp) waits until that run is over. A model makes way for those that wait when a run is over (see [`run_begins`]), and
//! even before that if the run has to wait itself: see [`anew`](super::anew).

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::runtime::{MOST_WORKERS, worker_of};
use super::statics::MOST_MODELS;

/// How long somebody waits at most, in milliseconds: a model and ordinary code may wait for each other by means that nobody
/// sees here.
static PATIENCE: AtomicU64 = AtomicU64::new(10_000);
/// How often a model lets others go first between two runs: one of them may wait for something else.
const TURNS: usize = 100;

/// The numbers of current runs, by model and worker; 0 if there is none.
static CURRENT: [[AtomicU64; MOST_WORKERS]; MOST_MODELS] =
    [const { [const { AtomicU64::new(0) }; MOST_WORKERS] }; MOST_MODELS];
/// No model has had this number or a higher one.
static MODELS: AtomicUsize = AtomicUsize::new(1);
/// How many wait for the end of a run, by model.
static WAITERS: [AtomicU32; MOST_MODELS] = [const { AtomicU32::new(0) }; MOST_MODELS];
/// The model that the run of a model waits for, and one more; 0 if it waits for none.
static WAITED_FOR: [AtomicU64; MOST_MODELS] = [const { AtomicU64::new(0) }; MOST_MODELS];
/// Locks that ordinary code holds while it waits: a number for who waits, the model, the address of the lock.
static HELD_MEANWHILE: Mutex<Vec<(u64, u64, usize)>> = Mutex::new(Vec::new());
/// Where ordinary code waits for the end of a run of a model that has only read, and nobody else has the lock of `std`: the
/// model, and the address.
static PENDING: Mutex<Vec<(u64, usize)>> = Mutex::new(Vec::new());
/// The next number for who waits.
static WAITS: AtomicU64 = AtomicU64::new(0);

fn held_meanwhile() -> MutexGuard<'static, Vec<(u64, u64, usize)>> {
    HELD_MEANWHILE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long somebody waits at most.
pub(super) fn patience() -> Duration {
    Duration::from_millis(PATIENCE.load(Ordering::Relaxed))
}

/// The same in words.
pub(super) fn patience_in_words() -> String {
    format!("{} seconds", patience().as_secs_f64())
}

/// Changes how long somebody waits at most, in the whole process. For tests of weakspot itself, which have no time to wait.
pub fn set_patience(patience: Duration) {
    PATIENCE.store(patience.as_millis() as u64, Ordering::Relaxed);
}

/// There is a model of this number.
pub(super) fn model_begins(model: u64) {
    MODELS.fetch_max(model as usize + 1, Ordering::Relaxed);
}

fn models() -> usize {
    MODELS.load(Ordering::Relaxed)
}

/// The model whose run of this number is going on.
pub(super) fn owner_of(run: u64) -> Option<u64> {
    let worker = worker_of(run) as usize;
    let is_its = |runs: &[AtomicU64; MOST_WORKERS]| runs[worker].load(Ordering::Acquire) == run;
    CURRENT[..models()].iter().position(is_its).map(|model| model as u64)
}

/// The model with a run that is going on of which this is so.
#[allow(dead_code, reason = "only atomics that hold a token are waited for so")]
pub(super) fn owner_where(is_so: impl Fn(u64) -> bool) -> Option<u64> {
    let is_its = |run: &AtomicU64| match run.load(Ordering::Acquire) {
        0 => false,
        run => is_so(run),
    };
    CURRENT[..models()].iter().position(|runs| runs.iter().any(is_its)).map(|model| model as u64)
}

/// A run of a model begins. The one before is over, and everything is as it was before that: those who wait for it may
/// have it now.
#[inline]
pub(super) fn run_begins(model: u64, worker: u64, run: u64) {
    CURRENT[model as usize][worker as usize].store(run, Ordering::Release);
    if WAITERS[model as usize].load(Ordering::Relaxed) != 0 {
        let_others_go_first(model);
    }
}

/// The last run of a worker is over.
pub(super) fn runs_end(model: u64, worker: u64) {
    CURRENT[model as usize][worker as usize].store(0, Ordering::Release);
}

#[cold]
fn let_others_go_first(model: u64) {
    for _ in 0..TURNS {
        if WAITERS[model as usize].load(Ordering::SeqCst) == 0 {
            return;
        }
        std::thread::yield_now();
    }
}

/// Does anybody wait for the end of a run of this model?
pub(super) fn is_waited_for(model: u64) -> bool {
    WAITERS[model as usize].load(Ordering::SeqCst) != 0
}

/// Does somebody who holds the lock at this address wait for the end of a run of this model?
pub(super) fn is_waited_for_by_holder(model: u64, address: usize) -> bool {
    is_waited_for(model) && held_meanwhile().iter().any(|&(_, waited_for, held)| (waited_for, held) == (model, address))
}

/// The run of this model waits for that of another one, until somebody says otherwise.
pub(super) fn wait_for_model(model: u64, other: Option<u64>) {
    WAITED_FOR[model as usize].store(other.map_or(0, |other| other + 1), Ordering::SeqCst);
}

/// Does this model wait for itself, in the end?
pub(super) fn waits_for_itself(model: u64) -> bool {
    let next = |model: u64| WAITED_FOR[model as usize].load(Ordering::SeqCst).checked_sub(1);
    let mut others = std::iter::successors(next(model), |&other| next(other)).take(MOST_MODELS);
    others.any(|other| other == model)
}

/// The run of a model that has one worker is over, before its end, and everything is as it was before: lets all go first who
/// wait for it.
pub(super) fn make_way(model: u64) {
    runs_end(model, 0);
    wait_for(|| (!is_waited_for(model)).then_some(()));
}

/// Somebody who waits for a model, until this is dropped.
pub(super) struct Waiter {
    waiters: &'static AtomicU32,
    start: Instant,
    number: u64,
    holds_locks: bool,
}

impl Waiter {
    /// Ordinary code, or a model, which holds these locks.
    pub(super) fn new(model: u64, holds: &[usize]) -> Self {
        let number = WAITS.fetch_add(1, Ordering::Relaxed);
        if !holds.is_empty() {
            held_meanwhile().extend(holds.iter().map(|&address| (number, model, address)));
        }
        let waiters = &WAITERS[model as usize];
        waiters.fetch_add(1, Ordering::SeqCst);
        Self { waiters, start: Instant::now(), number, holds_locks: !holds.is_empty() }
    }

    /// Waits while this is so; false if that takes too long. It may not be so for a moment only, between two runs.
    #[allow(dead_code, reason = "as above")]
    pub(super) fn waits(&self, is_so: impl Fn() -> bool) -> bool {
        while is_so() {
            if self.start.elapsed() > patience() {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.waiters.fetch_sub(1, Ordering::SeqCst);
        if self.holds_locks {
            held_meanwhile().retain(|&(number, ..)| number != self.number);
        }
    }
}

fn pending() -> MutexGuard<'static, Vec<(u64, usize)>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does ordinary code wait so at this address?
pub(super) fn is_pending(model: u64, address: usize) -> bool {
    pending().contains(&(model, address))
}

/// Ordinary code waits so, until this is dropped.
pub(super) struct Pending(u64, usize);

impl Pending {
    pub(super) fn new(model: u64, address: usize) -> Self {
        pending().push((model, address));
        Self(model, address)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut pending = pending();
        let at = pending.iter().position(|&one| one == (self.0, self.1));
        at.map(|at| pending.swap_remove(at));
    }
}

/// Waits until something is there that stays; nothing if that takes too long.
pub(super) fn wait_for<T>(something: impl Fn() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    let mut pause = Pause::default();
    loop {
        let found = something();
        if found.is_some() || start.elapsed() > patience() {
            return found;
        }
        pause.make();
    }
}

/// Pauses between looks at something.
#[derive(Default)]
pub(super) struct Pause(Option<Instant>);

impl Pause {
    pub(super) fn make(&mut self) {
        // Runs are short as a rule. Whoever has waited for long is in no hurry.
        if self.0.get_or_insert_with(Instant::now).elapsed() < Duration::from_millis(10) {
            std::thread::yield_now();
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
