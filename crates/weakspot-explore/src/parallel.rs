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

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use weakspot_model::ir::Program;
use weakspot_model::task::{Budget, Progress};

use crate::exhaustive::{Checker, ExploreOptions, explorer_for};
use crate::interpreter::Interpreter;
use crate::outcome::Outcome;
use crate::trust::Subtree;

/// Where a subtree stands in the order of a single worker: that of its giver, then how often the giver had given before,
/// counted down.
type Key = Vec<u32>;

/// The subtrees nobody works on, and what came of the others.
#[derive(Default)]
struct Board {
    waiting: Vec<(Key, Option<Subtree>)>,
    working: usize,
    done: Vec<(Key, Outcome)>,
    /// The first subtree in order in which a search that stops at the first finding stopped.
    stopped: Option<Key>,
}

/// What the workers share.
struct Shared {
    board: Mutex<Board>,
    changed: Condvar,
    /// Workers without work.
    hungry: AtomicUsize,
    /// Subtrees that wait.
    offered: AtomicUsize,
    graphs: AtomicU64,
    /// How much of the search is done, in parts of [`WHOLE`].
    covered: AtomicU64,
}

/// The whole search, in parts that workers can add up.
const WHOLE: f64 = (1_u64 << 52) as f64;

impl Shared {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next subtree; waits while others may still give some away.
    fn next(&self) -> Option<(Key, Option<Subtree>)> {
        let mut board = self.board();
        self.hungry.fetch_add(1, Ordering::Relaxed);
        loop {
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

    fn finish(&self, key: Key, outcome: Outcome, stopped: bool) {
        let mut board = self.board();
        board.working -= 1;
        if stopped && board.stopped.as_ref().is_none_or(|first| key < *first) {
            board.stopped = Some(key.clone());
        }
        board.done.push((key, outcome));
        self.changed.notify_all();
    }
}

/// One worker's place among the others.
pub(crate) struct Worker<'a> {
    shared: &'a Shared,
    key: Key,
    given: u32,
}

impl Worker<'_> {
    /// Is somebody without work and nothing on offer?
    pub(crate) fn wants_work(&self) -> bool {
        self.shared.hungry.load(Ordering::Relaxed) > self.shared.offered.load(Ordering::Relaxed)
    }

    /// Offers a subtree.
    pub(crate) fn hand_out(&mut self, subtree: Subtree) {
        let mut key = self.key.clone();
        key.push(u32::MAX - self.given);
        self.given += 1;
        self.shared.offered.fetch_add(1, Ordering::Relaxed);
        self.shared.board().waiting.push((key, Some(subtree)));
        self.shared.changed.notify_one();
    }

    /// Has the search stopped in a subtree that comes before this one?
    pub(crate) fn is_overtaken(&self) -> bool {
        self.shared.board().stopped.as_ref().is_some_and(|first| *first < self.key)
    }

    /// Tells how far the search is.
    pub(crate) fn report(&self, progress: &dyn Progress, graphs: u64, covered: f64) {
        let all = self.shared.graphs.fetch_add(graphs, Ordering::Relaxed) + graphs;
        let parts = (covered * WHOLE) as u64;
        let covered = self.shared.covered.fetch_add(parts, Ordering::Relaxed) + parts;
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
    let shared = Shared {
        board: Mutex::new(Board { waiting: vec![(Key::new(), None)], ..Board::default() }),
        changed: Condvar::new(),
        hungry: AtomicUsize::new(0),
        offered: AtomicUsize::new(1),
        graphs: AtomicU64::new(0),
        covered: AtomicU64::new(0),
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| work(program, options, budget, progress, &shared));
        }
    });
    let board = shared.board.into_inner().unwrap_or_else(PoisonError::into_inner);
    merge(board)
}

fn work(program: &Program, options: &ExploreOptions, budget: &Budget, progress: &dyn Progress, shared: &Shared) {
    let mut system = Interpreter::new(program, options.unroll);
    while let Some((key, subtree)) = shared.next() {
        let worker = Worker { shared, key: key.clone(), given: 0 };
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
        shared.finish(key, outcome, found);
    }
}

/// Along the order of a single worker, up to where it would have stopped.
fn merge(mut board: Board) -> Outcome {
    board.done.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut merged = Outcome { exhaustive: true, ..Outcome::default() };
    for (key, outcome) in board.done {
        if board.stopped.as_ref().is_some_and(|first| *first < key) {
            merged.exhaustive = false;
            break;
        }
        merged.exhaustive &= outcome.exhaustive && outcome.limit.is_none();
        merged.merge(outcome);
    }
    merged.exhaustive &= board.waiting.is_empty();
    merged
}
