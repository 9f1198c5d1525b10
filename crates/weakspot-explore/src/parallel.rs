//! Exhaustive exploration by several workers.
//!
//! Branches of the search share nothing, so a worker that has nothing to do takes a subtree from one that has: no
//! shared table, no locks but that of the list of waiting subtrees.
//!
//! # The same answer whatever the number of workers
//! A worker gives away the alternative it would take up last, so everything it goes on to do itself comes earlier in
//! the order of a single worker than what it gave away, and what it gives away later comes before what it gave away
//! first. A [`Key`] writes this order down. Results are merged along it; a search that stops at the first finding keeps
//! the results up to the first finding *in this order* and drops the rest.
//!
//! # Small searches
//! Most programs are explored in less time than it takes to start a thread. So one worker begins where it is called from,
//! and has the others started when it has been at it for longer than that.
//!
//! What the workers explore is nothing to the [`Crew`]: programs here, live code in the crate `weakspot`.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use weakspot_model::ir::Program;
use weakspot_model::task::{Budget, Limit, Progress};

use crate::exhaustive::{Checker, ExploreOptions, explorer_for};
use crate::interpreter::Interpreter;
use crate::outcome::Outcome;
use crate::trust::Subtree;

/// Where a subtree stands in the order of a single worker: that of its giver, then how often the giver had given before,
/// counted down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Key(Vec<u32>);

/// A part of the search; without a subtree it is all of it.
#[derive(Debug)]
pub struct Job {
    /// Where it stands.
    pub key: Key,
    /// The part.
    pub subtree: Option<Subtree>,
}

/// The subtrees nobody works on, and how many are worked on.
#[derive(Debug, Default)]
struct Board {
    waiting: Vec<Job>,
    working: usize,
    /// The first subtree in order in which a search that stops at the first finding stopped.
    stopped: Option<Key>,
}

/// What the workers share.
#[derive(Debug)]
pub struct Crew {
    board: Mutex<Board>,
    changed: Condvar,
    /// Workers without work.
    hungry: AtomicUsize,
    /// Subtrees that wait.
    offered: AtomicUsize,
    /// Nobody needs the results any more.
    given_up: AtomicBool,
    graphs: AtomicU64,
    /// How much of the search is done, in parts of [`WHOLE`].
    covered: AtomicU64,
}

/// The whole search, in parts that workers can add up.
const WHOLE: f64 = (1_u64 << 52) as f64;

impl Default for Crew {
    fn default() -> Self {
        let all = Job { key: Key::default(), subtree: None };
        Self {
            board: Mutex::new(Board { waiting: vec![all], ..Board::default() }),
            changed: Condvar::new(),
            hungry: AtomicUsize::new(0),
            offered: AtomicUsize::new(1),
            given_up: AtomicBool::new(false),
            graphs: AtomicU64::new(0),
            covered: AtomicU64::new(0),
        }
    }
}

impl Crew {
    /// Lets so many workers work, and waits until there is nothing to do. Each is given its number.
    pub fn work(&self, workers: usize, work: impl Fn(usize) + Sync) {
        let work = &work;
        std::thread::scope(|scope| {
            for number in 0..workers {
                scope.spawn(move || work(number));
            }
        });
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next subtree; waits while others may still give some away.
    pub fn next_job(&self) -> Option<Job> {
        let mut board = self.board();
        self.hungry.fetch_add(1, Ordering::Relaxed);
        loop {
            if self.is_given_up() {
                return None;
            }
            if let Some(job) = board.waiting.pop() {
                board.working += 1;
                self.hungry.fetch_sub(1, Ordering::Relaxed);
                self.offered.fetch_sub(1, Ordering::Relaxed);
                return Some(job);
            }
            if board.working == 0 {
                self.changed.notify_all();
                return None;
            }
            board = self.changed.wait(board).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A job is done; `stopped`: the search found what it looked for there.
    pub fn finish(&self, key: &Key, stopped: bool) {
        let mut board = self.board();
        board.working -= 1;
        if stopped && board.stopped.as_ref().is_none_or(|first| *key < *first) {
            board.stopped = Some(key.clone());
        }
        self.changed.notify_all();
    }

    /// Nobody needs the results any more: all workers stop as soon as they look.
    pub fn give_up(&self) {
        let board = self.board();
        self.given_up.store(true, Ordering::Relaxed);
        drop(board);
        self.changed.notify_all();
    }

    /// Has somebody given up?
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Who works on a job.
    pub fn worker(&self, key: Key) -> Worker<'_> {
        Worker { crew: self, key, given: 0, reserve: None }
    }

    /// The results in the order of a single worker, up to where it would have stopped; and whether these are all.
    pub fn in_order<R>(self, mut done: Vec<(Key, R)>) -> (Vec<R>, bool) {
        let board = self.board.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by(|(one, _), (other, _)| one.cmp(other));
        let count = done.len();
        let needed = |key: &Key| board.stopped.as_ref().is_none_or(|first| *key <= *first);
        let results: Vec<R> = done.into_iter().take_while(|(key, _)| needed(key)).map(|(_, result)| result).collect();
        let all = results.len() == count && board.waiting.is_empty();
        (results, all)
    }
}

/// Workers that have not been started.
struct Reserve<'a> {
    start: &'a dyn Fn(),
    /// When the work began.
    since: Instant,
    /// How long it takes before they are needed.
    alone: Duration,
    /// How often it was asked whether they are needed.
    asked: Cell<u32>,
    is_started: Cell<bool>,
}

/// A search that takes longer is worth starting threads for.
pub(crate) const LONG: Duration = Duration::from_micros(300);

/// How often it is asked whether other workers are needed between two looks at the clock.
const ASKED_BETWEEN_LOOKS: u32 = 32;

impl Reserve<'_> {
    /// Somebody asks whether they are needed.
    #[inline]
    fn start_if_needed(&self) {
        if self.is_started.get() {
            return;
        }
        self.asked.set(self.asked.get() + 1);
        if self.asked.get().is_multiple_of(ASKED_BETWEEN_LOOKS) && self.since.elapsed() > self.alone {
            self.start();
        }
    }

    fn start(&self) {
        self.is_started.set(true);
        (self.start)();
    }
}

impl fmt::Debug for Reserve<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserve").field("since", &self.since).finish_non_exhaustive()
    }
}

/// One worker's place among the others.
#[derive(Debug)]
pub struct Worker<'a> {
    crew: &'a Crew,
    key: Key,
    given: u32,
    /// The other workers, if they have not been started.
    reserve: Option<&'a Reserve<'a>>,
}

impl Worker<'_> {
    /// Is somebody without work and nothing on offer?
    #[inline]
    pub fn wants_work(&self) -> bool {
        if let Some(reserve) = self.reserve {
            reserve.start_if_needed();
        }
        self.crew.hungry.load(Ordering::Relaxed) > self.crew.offered.load(Ordering::Relaxed)
    }

    /// Offers a subtree.
    pub fn hand_out(&mut self, subtree: Subtree) {
        let mut key = self.key.clone();
        key.0.push(u32::MAX - self.given);
        self.given += 1;
        self.crew.offered.fetch_add(1, Ordering::Relaxed);
        self.crew.board().waiting.push(Job { key, subtree: Some(subtree) });
        self.crew.changed.notify_one();
    }

    /// Has the search stopped in a subtree that comes before this one, or been given up?
    pub fn is_overtaken(&self) -> bool {
        self.crew.is_given_up() || self.crew.board().stopped.as_ref().is_some_and(|first| *first < self.key)
    }

    /// Has the search been given up?
    #[inline]
    pub fn is_given_up(&self) -> bool {
        self.crew.is_given_up()
    }

    /// Tells how far the search is.
    pub(crate) fn report(&self, progress: &dyn Progress, graphs: u64, covered: f64) {
        let all = self.crew.graphs.fetch_add(graphs, Ordering::Relaxed) + graphs;
        let parts = (covered * WHOLE) as u64;
        let covered = self.crew.covered.fetch_add(parts, Ordering::Relaxed) + parts;
        progress.explored(all, all, covered as f64 / WHOLE);
    }
}

/// Explores every trace of a program with `options.jobs` workers.
pub(crate) fn explore(
    program: &Program,
    options: &ExploreOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Outcome {
    let crew = Crew::default();
    let done = Mutex::new(Vec::new());
    let work = |reserve: Option<&Reserve<'_>>| work(program, options, budget, progress, &crew, reserve, &done);
    let work = &work;
    std::thread::scope(|scope| {
        let start = || {
            for _ in 1..options.jobs {
                scope.spawn(move || work(None));
            }
        };
        let (asked, is_started) = (Cell::new(0), Cell::new(false));
        let reserve = Reserve { start: &start, since: Instant::now(), alone: options.alone, asked, is_started };
        if options.alone.is_zero() {
            reserve.start();
        }
        work(Some(&reserve));
    });
    let (outcomes, all) = crew.in_order(done.into_inner().unwrap_or_else(PoisonError::into_inner));
    let mut merged = Outcome { exhaustive: all, ..Outcome::default() };
    for outcome in outcomes {
        merged.exhaustive &= outcome.exhaustive && outcome.limit.is_none();
        merged.merge(outcome);
    }
    merged
}

fn work(
    program: &Program,
    options: &ExploreOptions,
    budget: &Budget,
    progress: &dyn Progress,
    crew: &Crew,
    reserve: Option<&Reserve<'_>>,
    done: &Mutex<Vec<(Key, Outcome)>>,
) {
    let mut system = Interpreter::new(program, options.unroll);
    while let Some(Job { key, subtree }) = crew.next_job() {
        if subtree.is_some()
            && let Some(limit) = budget.exhausted(system.bytes())
        {
            stop_at(limit, crew, &key, done);
            return;
        }
        let worker = Worker { reserve, ..crew.worker(key.clone()) };
        let mut checker = Checker::new(&system, options, budget, progress, Some(worker));
        let mut explorer = explorer_for(&mut system, options);
        let ended = match subtree {
            None => explorer.run(&mut checker),
            Some(subtree) => explorer.run_subtree(subtree, &mut checker),
        };
        let overtaken = checker.is_overtaken();
        let mut outcome = checker.finish();
        outcome.events = explorer.counters().events;
        outcome.exhaustive = ended.is_continue();
        let found = ended.is_break() && outcome.limit.is_none() && !overtaken;
        if outcome.limit.is_some() {
            crew.give_up();
        }
        done.lock().unwrap_or_else(PoisonError::into_inner).push((key.clone(), outcome));
        crew.finish(&key, found);
    }
}

/// A limit is reached before a subtree has been begun. A worker that looked at the clock only within its subtrees would
/// never do so as long as all of them are small.
fn stop_at(limit: Limit, crew: &Crew, key: &Key, done: &Mutex<Vec<(Key, Outcome)>>) {
    crew.give_up();
    let outcome = Outcome { limit: Some(limit), ..Outcome::default() };
    done.lock().unwrap_or_else(PoisonError::into_inner).push((key.clone(), outcome));
    crew.finish(key, false);
}
