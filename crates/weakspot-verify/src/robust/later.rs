//! Attacks that can be completed only if stores wait longer than the attack needs.
//!
//! In an attack every store but the delayed ones is visible at once. For its happens-before cycle that makes no difference,
//! but an `assume` may come true only because such a store, too, becomes visible later: behind a store that is not part of
//! the attack, say. So where an attack cannot be completed as it is, its moves are made again with commits in between as
//! the machine allows them. What belongs to the attack keeps its trace:
//!
//! - stores of the attack to one location become visible in the order of its moves, the delayed ones after its last move
//!   and after all others;
//! - whoever reads, reads the same store as before: none of another thread that would have been visible is pending.
//!
//! When all its stores are visible, the rest is as before. Meanwhile other stores may queue up behind them: few at first,
//! then more ([`BEHIND`]), for as long as nothing is found and one was refused. In the end the answer is open.

use rustc_hash::FxHashSet;
use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::local::Pause;
use weakspot_model::machine::{Action, Effect, Machine, Outcome, State};

use super::attack::{Move, Role};
use super::witness::{leave_critical, way_on};

/// Stores that may wait behind those of the attack, in one buffer.
const BEHIND: [usize; 3] = [2, 8, 64];

/// After this many states the search ends.
const LONG_ENOUGH: usize = 1 << 16;

/// A store that is not visible yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Waiting {
    thread: ThreadId,
    loc: Loc,
    /// Its place among the stores of the attack; those that do not belong to it have none.
    place: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Node {
    state: State,
    /// In each thread's order.
    waiting: Vec<Waiting>,
    /// Moves made.
    made: usize,
}

/// A node, the node it was made from, and how.
type Known = (Node, usize, Vec<Action>);

/// An execution that makes the moves and is never pruned. `Err`: there may be one, but the search took too long.
pub(super) fn completed(machine: &Machine<'_>, moves: &[Move]) -> Result<Option<Vec<Action>>, ()> {
    for behind in BEHIND {
        let mut search = Search { machine, moves, behind, refused: false };
        let found = search.run()?;
        if found.is_some() || !search.refused {
            return Ok(found);
        }
    }
    Err(())
}

/// The actions that lead to a node, and some more.
fn path(known: &[Known], mut at: usize, last: Vec<Action>) -> Vec<Action> {
    let mut parts = vec![last];
    while at != 0 {
        parts.push(known[at].2.clone());
        at = known[at].1;
    }
    parts.push(known[0].2.clone());
    parts.into_iter().rev().flatten().collect()
}

struct Search<'a, 'p> {
    machine: &'a Machine<'p>,
    moves: &'a [Move],
    /// Stores that may wait behind those of the attack, in one buffer.
    behind: usize,
    /// Was there one that might not?
    refused: bool,
}

impl Search<'_, '_> {
    fn run(&mut self) -> Result<Option<Vec<Action>>, ()> {
        let mut known: Vec<Known> = vec![self.start()];
        let mut seen: FxHashSet<Node> = FxHashSet::default();
        seen.insert(known[0].0.clone());
        let mut open = vec![0];
        while let Some(at) = open.pop() {
            if known.len() > LONG_ENOUGH {
                return Err(());
            }
            let node = known[at].0.clone();
            if node.made == self.moves.len() && node.waiting.iter().all(|store| store.place.is_none()) {
                if let Some(rest) = way_on(self.machine, &node.state) {
                    return Ok(Some(path(&known, at, rest)));
                }
                continue;
            }
            for action in self.actions(&node) {
                let mut next = node.clone();
                let mut taken = Vec::new();
                match self.take(&mut next, action, &mut taken) {
                    Outcome::Pruned => {}
                    Outcome::Failed(_) => return Ok(Some(path(&known, at, taken))),
                    Outcome::Continues if seen.contains(&next) => {}
                    Outcome::Continues => {
                        seen.insert(next.clone());
                        open.push(known.len());
                        known.push((next, at, taken));
                    }
                }
            }
        }
        Ok(None)
    }

    fn start(&self) -> Known {
        let (mut state, _) = self.machine.start();
        let mut actions = Vec::new();
        for thread in self.machine.program.thread_ids() {
            leave_critical(self.machine, &mut state, thread, &mut actions);
        }
        (Node { state, waiting: Vec::new(), made: 0 }, 0, actions)
    }

    /// The next move, if it can be made, and commits; or, after the last move, whatever the machine allows.
    fn actions(&mut self, node: &Node) -> Vec<Action> {
        let is_full = |thread: ThreadId| {
            let waits = |store: &&Waiting| store.thread == thread && store.place.is_none();
            let stores = matches!(node.state.threads[thread.index()].pause, Pause::Store { .. });
            stores && node.waiting.iter().filter(waits).count() >= self.behind
        };
        let mut refused = false;
        let is_allowed = |action: &Action| match *action {
            Action::Commit { thread, loc } => self.may_commit(node, thread, loc),
            _ if node.made < self.moves.len() => false,
            Action::Step { thread, .. } => {
                let is_full = is_full(thread);
                refused |= is_full;
                !is_full
            }
            Action::Wake { .. } => true,
        };
        let mut actions: Vec<Action> = self.machine.enabled(&node.state).into_iter().filter(is_allowed).collect();
        self.refused |= refused;
        if let Some(mv) = self.moves.get(node.made) {
            let thread = mv.thread;
            let action = match mv.role {
                Role::Wake => Action::Wake { thread },
                _ => Action::Step { thread, choice: mv.choice },
            };
            if self.machine.allows(&node.state, action) && self.reads_the_same(node, thread) {
                actions.push(action);
            }
        }
        actions
    }

    fn may_commit(&self, node: &Node, thread: ThreadId, loc: Loc) -> bool {
        let Some(store) = node.waiting.iter().find(|store| store.thread == thread && store.loc == loc) else {
            return true;
        };
        let Some(place) = store.place else { return true };
        let is_too_early = place >= self.moves.len() && node.made < self.moves.len();
        let before = |other: &Waiting| other.loc == loc && other.place.is_some_and(|earlier| earlier < place);
        !is_too_early && !node.waiting.iter().any(before)
    }

    fn take(&self, node: &mut Node, action: Action, taken: &mut Vec<Action>) -> Outcome {
        let (effect, outcome) = self.machine.apply(&mut node.state, action);
        taken.push(action);
        let mv = self.moves.get(node.made);
        match action {
            Action::Commit { thread, loc } => {
                let at = node.waiting.iter().position(|store| store.thread == thread && store.loc == loc);
                node.waiting.remove(at.expect("invariant: what is in a buffer waits"));
                return outcome;
            }
            Action::Step { .. } | Action::Wake { .. } => node.made += usize::from(mv.is_some()),
        }
        let thread = action.thread();
        if let Some(Effect::Store { loc, buffered: true, .. }) = effect {
            let late = |mv: &Move| if matches!(mv.role, Role::Delayed | Role::Hidden) { self.moves.len() } else { 0 };
            let place = mv.map(|mv| node.made + late(mv));
            node.waiting.push(Waiting { thread, loc, place });
        }
        if outcome == Outcome::Continues && mv.is_some() {
            leave_critical(self.machine, &mut node.state, thread, taken);
        }
        outcome
    }

    /// Does the next step of a thread, which belongs to the attack, read what it reads if only the delayed stores wait?
    fn reads_the_same(&self, node: &Node, thread: ThreadId) -> bool {
        let pause = node.state.threads[thread.index()].pause;
        let (Pause::Load { loc } | Pause::Rmw { loc, .. }) = pause else { return true };
        let stores = || node.waiting.iter().filter(|store| store.loc == loc);
        let own = stores().rev().find(|store| store.thread == thread).and_then(|store| store.place);
        let is_hidden = |store: &Waiting| store.place.is_some_and(|place| place > self.moves.len());
        stores().all(|store| store.thread == thread || is_hidden(store) || store.place < own)
    }
}
