//! Executions in which a thread has waited are run again with more rounds. What comes of that says something about the
//! number of rounds, and about nothing else.
#![allow(clippy::unwrap_used)]

use std::ops::ControlFlow;

use weakspot_explore::graph::Graph;
use weakspot_explore::system::{CellId, LeftOut, Misuse, Pending, System, Token, Update};
use weakspot_explore::trust::{Ending, Explorer, Visitor};
use weakspot_model::ids::ThreadId;

const FLAG: CellId = 0;
const OWN: CellId = 1;
const ONE: CellId = 2;
const OTHER: CellId = 3;
const CELLS: usize = 4;

/// The marker of the only loop.
const ROUND: Token = Token(7);
const NO_ROUND: Token = Token(0);

/// What a thread is about to do, and the marker that it has passed since its last event: by the results it was given,
/// and by something that nobody sees.
type Thread = fn(&[i64], usize) -> (Pending, Token);

/// What it is that nobody sees.
#[derive(Clone, Copy)]
enum Unseen {
    Nothing,
    /// How many threads have begun before this one: a counter of `std`.
    Order,
    /// It is 1 from this restart on: a static that was changed for good.
    FromRestart(usize),
}

struct Several {
    threads: Vec<Thread>,
    unseen: Unseen,
    results: Vec<Vec<i64>>,
    begun: Vec<usize>,
    restarts: usize,
    left_out: Vec<LeftOut>,
}

impl Several {
    fn new(threads: &[Thread], unseen: Unseen) -> Self {
        let results = vec![Vec::new(); threads.len()];
        Self { threads: threads.to_vec(), unseen, results, begun: Vec::new(), restarts: 0, left_out: Vec::new() }
    }

    fn at(&self, thread: ThreadId) -> (Pending, Token) {
        let unseen = match self.unseen {
            Unseen::Nothing => 0,
            Unseen::Order => self.begun.iter().position(|&begun| begun == thread.index()).unwrap_or(0),
            Unseen::FromRestart(first) => usize::from(self.restarts >= first),
        };
        self.threads[thread.index()](&self.results[thread.index()], unseen)
    }
}

impl System for Several {
    fn restart(&mut self) {
        self.restarts += 1;
        self.begun.clear();
        self.results.iter_mut().for_each(Vec::clear);
    }
    fn threads(&self) -> usize {
        self.threads.len()
    }
    fn cells(&self) -> usize {
        CELLS
    }
    fn initial(&self, _: CellId) -> i64 {
        0
    }
    fn pending(&self, thread: ThreadId) -> Pending {
        self.at(thread).0
    }
    fn marker(&self, thread: ThreadId) -> Token {
        self.at(thread).1
    }
    fn update(&self, _: ThreadId, current: i64) -> Update {
        Update::Acts { result: current, written: None }
    }
    fn resume(&mut self, thread: ThreadId, result: i64) {
        if !self.begun.contains(&thread.index()) {
            self.begun.push(thread.index());
        }
        self.results[thread.index()].push(result);
    }
    fn fail(&mut self, _: ThreadId, _: Misuse) {}
    fn leave_rounds_out(&mut self, _: ThreadId, why: LeftOut) {
        self.left_out.push(why);
    }
}

/// Counts executions. When one is complete, all threads have come to their end.
#[derive(Default)]
struct Counting {
    complete: u64,
}

impl Visitor<Several> for Counting {
    fn failed(&mut self, _: &Graph, _: &mut Several, _: ThreadId) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn ended(&mut self, _: &Graph, system: &mut Several, ending: Ending) -> ControlFlow<()> {
        if ending == Ending::Complete {
            self.complete += 1;
            for thread in 0..system.threads() {
                assert_eq!(system.pending(ThreadId::new(thread)), Pending::Ended, "of thread {thread}");
            }
        }
        ControlFlow::Continue(())
    }
}

/// What came of exploring everything: executions, whether the system was found not to repeat itself, and which rounds
/// were left out.
fn explore(threads: &[Thread], unseen: Unseen) -> (u64, bool, Vec<LeftOut>) {
    let mut system = Several::new(threads, unseen);
    let mut counting = Counting::default();
    let mut explorer = Explorer::new(&mut system);
    let ended = explorer.run(&mut counting);
    let diverged = explorer.divergence().is_some();
    assert_eq!(ended.is_break(), diverged);
    (counting.complete, diverged, system.left_out)
}

/// Looks until the flag is set, then at one of two cells: the second one if what is unseen says so, or if it has looked
/// `patience` times.
fn waits(results: &[i64], unseen: usize, patience: usize) -> (Pending, Token) {
    match results.iter().position(|&seen| seen != 0) {
        None => (Pending::Load(FLAG), if results.is_empty() { NO_ROUND } else { ROUND }),
        Some(rounds) if rounds + 1 == results.len() => {
            (Pending::Load(if unseen == 1 || rounds >= patience { ONE } else { OTHER }), NO_ROUND)
        }
        Some(_) => (Pending::Ended, NO_ROUND),
    }
}

fn waiting(results: &[i64], unseen: usize) -> (Pending, Token) {
    waits(results, unseen, usize::MAX)
}

fn counting(results: &[i64], unseen: usize) -> (Pending, Token) {
    waits(results, unseen, 50)
}

fn sets_flag(results: &[i64], _: usize) -> (Pending, Token) {
    (if results.is_empty() { Pending::Store { cell: FLAG, value: 1 } } else { Pending::Ended }, NO_ROUND)
}

/// Minds its own business.
fn apart(results: &[i64], _: usize) -> (Pending, Token) {
    (if results.is_empty() { Pending::Load(OWN) } else { Pending::Ended }, NO_ROUND)
}

#[test]
fn a_count_is_found() {
    let (executions, diverged, left_out) = explore(&[apart, counting, sets_flag], Unseen::Nothing);
    assert_eq!((executions, diverged, left_out), (2, false, vec![LeftOut::Counts]));
}

/// Looks up to three times in one loop, then in another one for as long as it takes; then at one cell if it has given up in
/// the first one, and at another one if not.
fn gives_up(results: &[i64], _: usize) -> (Pending, Token) {
    let marker = if results.is_empty() || results.len() == 3 { NO_ROUND } else { ROUND };
    match results.iter().position(|&seen| seen != 0) {
        None => (Pending::Load(FLAG), marker),
        Some(rounds) if rounds + 1 == results.len() => (Pending::Load(if rounds < 3 { ONE } else { OTHER }), NO_ROUND),
        Some(_) => (Pending::Ended, NO_ROUND),
    }
}

/// The third look does not end a round: the first loop is over after it, and the second one looks before it waits.
#[test]
fn a_second_loop_with_the_same_marker_is_found() {
    let (executions, diverged, left_out) = explore(&[apart, gives_up, sets_flag], Unseen::Nothing);
    assert_eq!((executions, diverged, left_out), (2, false, vec![LeftOut::Counts]));
}

/// The waiting thread comes after the one that minds its own business, except in rehearsals: there only what has to comes
/// before its rounds.
#[test]
fn what_an_unseen_order_does_is_no_count() {
    let (executions, diverged, left_out) = explore(&[apart, waiting, sets_flag], Unseen::Order);
    assert_eq!((executions, diverged, left_out), (2, false, Vec::new()));
}

/// Looks at a cell, at a second one when the first is set for the first time, and at the flag; until that is 2.
fn caching(results: &[i64], _: usize) -> (Pending, Token) {
    let (mut cached, mut at) = (false, 0);
    loop {
        let marker = if at > 0 && at == results.len() { ROUND } else { NO_ROUND };
        let Some(&first) = results.get(at) else { return (Pending::Load(ONE), marker) };
        at += 1;
        if first == 1 && !cached {
            let Some(_) = results.get(at) else { return (Pending::Load(OTHER), NO_ROUND) };
            cached = true;
            at += 1;
        }
        let Some(&flag) = results.get(at) else { return (Pending::Load(FLAG), NO_ROUND) };
        at += 1;
        if flag == 2 {
            return (Pending::Ended, NO_ROUND);
        }
    }
}

/// Sets the first cell, and the flag to 1 and to 2.
fn publishes(results: &[i64], _: usize) -> (Pending, Token) {
    let what = match results.len() {
        0 => Pending::Store { cell: ONE, value: 1 },
        1 => Pending::Store { cell: FLAG, value: 1 },
        2 => Pending::Store { cell: FLAG, value: 2 },
        _ => Pending::Ended,
    };
    (what, NO_ROUND)
}

/// In a round that sees the flag but not yet the cell, which was set before, a thread has learned that the cell is set. The
/// next round is not like those after it: that is another execution, and not a longer wait.
#[test]
fn a_round_that_sees_something_new_is_no_count() {
    let (executions, diverged, left_out) = explore(&[caching, publishes], Unseen::Nothing);
    assert!(executions > 5 && !diverged, "{executions} executions");
    assert_eq!(left_out, Vec::new());
}

/// Wherever the system changes, in a rehearsal or elsewhere, nothing is judged that did not happen. (The visitor looks.)
#[test]
fn an_execution_that_cannot_be_run_again_is_not_judged() {
    let restarts = {
        let mut system = Several::new(&[apart, waiting, sets_flag], Unseen::Nothing);
        let _ = Explorer::new(&mut system).run(&mut Counting::default());
        system.restarts
    };
    let diverged = (2..=restarts).filter(|&restart| {
        let (_, diverged, _) = explore(&[apart, waiting, sets_flag], Unseen::FromRestart(restart));
        diverged
    });
    assert!(diverged.count() > 2, "of {restarts} restarts");
}
