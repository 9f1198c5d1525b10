//! The search: depth-first, with sleep sets, state inclusion and acceleration (paper, Alg. 1 to 3).
//!
//! | paper | here |
//! |---|---|
//! | Alg. 1, initialisation | [`Explorer::new`] |
//! | Alg. 3 lines 4 to 9, cycle detection | [`Explorer::find_cycle`] |
//! | lines 11 to 23, inclusion in a stored state | [`Explorer::is_covered`], [`Explorer::store`] |
//! | line 25, `T` | `Frame::todo` |
//! | line 29, sleep set of a successor | [`Explorer::sleep_after`] |
//!
//! # Why nothing is missed (departs from the paper)
//! Write `Sleep(S)` for the sleep set of a stored state at the end of the search. What the search maintains, and all it
//! has to, is local:
//!
//! > (I) For every stored state `S` there is an order of the actions enabled in `S` and not in `Sleep(S)` such that,
//! > if `t` is one of them and `c` a concrete state of `S` in which `t` is enabled, then some stored `S'` contains
//! > `c·t`, and the enabled members of `Sleep(S')` are members of `Sleep(S)`, or before `t` in the order, and
//! > independent of `t` in `S`.
//!
//! Claim: if `c` is in `S`, and `v` is an execution from `c` such that no execution equivalent to `v` (by swapping
//! neighbours that are independent where they stand) begins with a member of `Sleep(S)`, then the end of `v` is in some
//! stored state. By induction on the length of `v`: among the actions some equivalent of `v` begins with, let `t` be the
//! first in the order; so `v ~ t·v'`. By (I), `c·t` is in some `S'`. Were some equivalent of `v'` to begin with a `u` in
//! `Sleep(S')`, then `u` would be independent of `t`, some equivalent of `v` would begin with `u`, and `u` would be in
//! `Sleep(S)` or before `t`: excluded both. So the claim holds for `S'` and the shorter `v'`. The initial sleep set is
//! empty: everything reachable is covered. The argument never asks how a state got its words, so acceleration needs no
//! argument of its own: it only has to add reachable words, and to contain the state it replaces.
//!
//! Three things keep (I) true:
//! * A successor included in a stored `S'` is dropped if the enabled part of `Sleep(S')` is in its own sleep set.
//!   Otherwise `S'` wakes the actions in between: they are taken from `S'` itself and leave `Sleep(S')`, and count as
//!   *before* all actions taken from `S'` earlier (whose successors have them in their sleep sets). The paper enters a
//!   second, smaller state instead, and intersects the sleep sets of all states that include it; an intersection over
//!   several states does not satisfy (I).
//! * A stored state `O` included in a new one whose sleep set is part of its own is retired: whoever relied on `O` can
//!   rely on the new state, and the actions of `O` not taken yet need not be. What is left is an antichain.
//! * Executions that fail end there, so a failing action need not be followed.
//!
//! # Small states first (departs from the paper)
//! Depth-first search follows a buffer that grows for ever and is not accelerated for ever. So states whose automata are
//! large are put off until everything smaller has been looked at; then the size is doubled. Every violation is found,
//! whether or not the search would ever end. (I) does not care about the order.
//!
//! The conditions of independence are those of [`super::moves`].

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::FxHashSet;
use weakspot_model::machine::{Action, Rest};
use weakspot_model::problem::ProblemKind;
use weakspot_model::task::{Budget, Limit, Progress};

use super::SymbolicOptions;
use super::accelerate::{Accelerator, Edge, thin};
use super::automaton::Language;
use super::moves::{ErrorState, Label, Move, Outcome, System, Unsupported};
use super::state::{Buffers, CellId};

/// A stored state: index into [`Explorer::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NodeId(u32);

impl NodeId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A stored state.
struct Node {
    cell: CellId,
    buffers: Buffers,
    /// Where it came from; none for the initial state.
    origin: Option<(NodeId, Edge)>,
    /// Sorted.
    sleep: Vec<Label>,
    depth: u32,
    /// A larger state has taken its place.
    retired: bool,
}

/// A state on the stack and what is still to be done there.
struct Frame {
    node: NodeId,
    todo: std::vec::IntoIter<Label>,
    /// Its sleep set and what was taken already.
    asleep: Vec<Label>,
}

/// A path to an error: the state, the buffer contents that fail there, and the action that fails, if it is one.
pub(super) struct Failure {
    pub(super) node: NodeId,
    pub(super) contents: Buffers,
    pub(super) last: Option<Action>,
}

/// A search under way.
pub(super) struct Explorer<'p, 'o> {
    pub(super) system: System<'p>,
    pub(super) accelerator: Accelerator,
    options: &'o SymbolicOptions,
    nodes: Vec<Node>,
    /// The states of each cell that are not retired.
    by_cell: Vec<Vec<NodeId>>,
    /// Cells that have states, retired or not.
    met: FxHashSet<CellId>,
    /// Cells whose state with empty buffers has been judged.
    judged: FxHashSet<CellId>,
    stack: Vec<Frame>,
    /// States whose automata are too large to be looked at yet, in the order they were found.
    deferred: VecDeque<Frame>,
    /// How large that is, in states of all automata together.
    largest: usize,
    /// Stores performed before the initial state, and the buffers they went to.
    pub(super) prelude: Vec<(usize, Action)>,
    /// The buffers after that.
    pub(super) start: Buffers,
    pub(super) failure: Option<Failure>,
    errors: FxHashSet<ErrorState>,
    /// The same, told apart by the buffer contents that fail as well.
    symbolic_errors: FxHashSet<(ErrorState, Buffers)>,
    pub(super) visited: u64,
    pub(super) transitions: u64,
    max_depth: u32,
}

/// The first size of a state, beyond one automaton state for each buffer, that is put off.
const FIRST_LARGEST: usize = 16;

/// How often the budget is asked, in transitions.
const ASK_BUDGET_EVERY: u64 = 16;

/// Ancestors of the same cell tried for one state.
const MOST_ANCESTORS: usize = 8;

impl<'p, 'o> Explorer<'p, 'o> {
    /// Alg. 1. Only for programs that start without a problem.
    pub(super) fn new(mut system: System<'p>, options: &'o SymbolicOptions) -> Self {
        let (cell, start, prelude) = system.start();
        let mut buffers = start.clone();
        thin(&mut system.languages, &mut buffers);
        let mut explorer = Self {
            system,
            accelerator: Accelerator::default(),
            options,
            nodes: Vec::new(),
            by_cell: Vec::new(),
            met: FxHashSet::default(),
            judged: FxHashSet::default(),
            stack: Vec::new(),
            deferred: VecDeque::new(),
            largest: FIRST_LARGEST,
            prelude,
            start,
            failure: None,
            errors: FxHashSet::default(),
            symbolic_errors: FxHashSet::default(),
            visited: 1,
            transitions: 0,
            max_depth: 0,
        };
        explorer.store(cell, buffers, None, Vec::new());
        explorer
    }

    pub(super) fn stored(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// States of the automata of all states that are not retired.
    pub(super) fn automaton_states(&self) -> u64 {
        let live = self.nodes.iter().filter(|node| !node.retired);
        let sizes = live.flat_map(|node| node.buffers.iter().map(|&buffer| self.system.languages.size(buffer) as u64));
        sizes.sum()
    }

    pub(super) fn max_depth(&self) -> u64 {
        u64::from(self.max_depth)
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors.len() as u64
    }

    pub(super) fn symbolic_errors(&self) -> u64 {
        self.symbolic_errors.len() as u64
    }

    /// Searches until everything is covered, the first error (unless all are wanted) or a limit.
    pub(super) fn run(&mut self, budget: &Budget, progress: &dyn Progress) -> Result<Option<Limit>, Unsupported> {
        self.system.languages.limit(budget);
        let end = self.run_on(budget, progress);
        self.system.languages.unlimit();
        end
    }

    fn run_on(&mut self, budget: &Budget, progress: &dyn Progress) -> Result<Option<Limit>, Unsupported> {
        while let Some((node, label)) = self.next_action() {
            if self.failure.is_some() && !self.options.all_errors {
                return Ok(None);
            }
            self.transitions += 1;
            if self.transitions.is_multiple_of(ASK_BUDGET_EVERY) {
                progress.update(self.stored(), self.transitions, self.stack.len() as u64);
                if let Some(limit) = budget.exhausted(self.bytes()) {
                    return Ok(Some(limit));
                }
            }
            if let Some(most) = self.options.max_states.filter(|&most| self.stored() > most) {
                return Ok(Some(Limit::States(most)));
            }
            self.take(node, label)?;
            if let Some(limit) = self.system.languages.interruption() {
                return Ok(Some(limit));
            }
        }
        Ok(None)
    }

    /// The next action to take, from the state on top of the stack. When the stack is empty, larger states are allowed.
    fn next_action(&mut self) -> Option<(NodeId, Label)> {
        loop {
            let Some(frame) = self.stack.last_mut() else {
                if self.deferred.is_empty() {
                    return None;
                }
                self.largest *= 2;
                for frame in std::mem::take(&mut self.deferred) {
                    self.schedule(frame);
                }
                self.stack.reverse();
                continue;
            };
            let node = frame.node;
            let retired = self.nodes[node.index()].retired;
            match frame.todo.next().filter(|_| !retired) {
                Some(label) => return Some((node, label)),
                None => self.stack.pop(),
            };
        }
    }

    /// Puts a stored state on the stack, or off if it is too large.
    fn schedule(&mut self, frame: Frame) {
        let buffers = &self.nodes[frame.node.index()].buffers;
        let size: usize = buffers.iter().map(|&buffer| self.system.languages.size(buffer)).sum();
        if size <= self.largest + buffers.len() {
            self.stack.push(frame);
        } else {
            self.deferred.push_back(frame);
        }
    }

    fn bytes(&self) -> u64 {
        let node = size_of::<Node>() + self.system.layout.len() * size_of::<Language>() + 2 * size_of::<Label>();
        (self.system.bytes() + self.nodes.len() * node) as u64
    }

    /// Takes one action from a stored state (Alg. 3, lines 28 to 31).
    fn take(&mut self, node: NodeId, label: Label) -> Result<(), Unsupported> {
        let sleep = self.sleep_after(node, label);
        let Node { cell, ref buffers, .. } = self.nodes[node.index()];
        let buffers = buffers.clone();
        match self.system.take(cell, &buffers, label)? {
            Outcome::Pruned => {}
            Outcome::Failed { before, error } => {
                let choice = if let Label::Step { choice, .. } = label { choice } else { 0 };
                let last = Some(Action::Step { thread: label.thread(), choice });
                self.fail(error, Failure { node, contents: before, last });
            }
            Outcome::Next { cell, buffers, taken } => self.arrive(node, cell, buffers, taken, sleep),
        }
        Ok(())
    }

    /// The sleep set of the successor by `label`; notes that `label` has been taken.
    fn sleep_after(&mut self, node: NodeId, label: Label) -> Vec<Label> {
        let frame = self.stack.last_mut().expect("invariant: actions are taken from the top of the stack");
        let asleep = frame.asleep.clone();
        frame.asleep.push(label);
        let Node { cell, ref buffers, .. } = self.nodes[node.index()];
        let taken = self.system.footprint(cell, buffers, label);
        let mut sleep = Vec::new();
        for other in asleep {
            if other.thread() != label.thread() && !self.system.footprint(cell, buffers, other).conflicts(&taken) {
                sleep.push(other);
            }
        }
        sleep.sort_unstable();
        sleep
    }

    /// A state was generated: cover it, accelerate it, store it.
    fn arrive(&mut self, parent: NodeId, cell: CellId, mut buffers: Buffers, taken: Move, sleep: Vec<Label>) {
        self.visited += 1;
        thin(&mut self.system.languages, &mut buffers);
        if self.is_covered(cell, &buffers, &sleep) {
            return;
        }
        let edge = Edge::Move(Rc::new(taken));
        match self.find_cycle(parent, &edge, cell, &buffers) {
            None => self.store(cell, buffers, Some((parent, edge)), sleep),
            Some((ancestor, star, buffers)) => {
                if !self.is_covered(cell, &buffers, &sleep) {
                    self.store(cell, buffers, Some((ancestor, star)), sleep);
                }
            }
        }
    }

    /// Is the state included in a stored one that takes (or is now made to take) all the actions it would?
    fn is_covered(&mut self, cell: CellId, buffers: &[Language], sleep: &[Label]) -> bool {
        let candidates = self.by_cell.get(cell.index()).cloned().unwrap_or_default();
        let mut enabled: Option<Vec<Label>> = None;
        let mut best: Option<(NodeId, Vec<Label>)> = None;
        for candidate in candidates {
            if !self.includes(candidate, buffers) {
                continue;
            }
            let enabled = enabled.get_or_insert_with(|| self.system.labels(cell, buffers));
            let asleep = &self.nodes[candidate.index()].sleep;
            let missing = asleep.iter().filter(|label| !sleep.contains(label) && enabled.contains(label));
            let missing: Vec<Label> = missing.copied().collect();
            if missing.is_empty() {
                return true;
            }
            if best.as_ref().is_none_or(|(_, fewest)| missing.len() < fewest.len()) {
                best = Some((candidate, missing));
            }
        }
        let Some((node, missing)) = best else { return false };
        self.wake(node, missing);
        true
    }

    /// Takes some sleeping actions of a stored state after all.
    fn wake(&mut self, node: NodeId, labels: Vec<Label>) {
        let sleep = &mut self.nodes[node.index()].sleep;
        sleep.retain(|label| !labels.contains(label));
        let asleep = sleep.clone();
        self.stack.push(Frame { node, todo: labels.into_iter(), asleep });
    }

    fn includes(&mut self, node: NodeId, buffers: &[Language]) -> bool {
        let large = &self.nodes[node.index()].buffers;
        large.iter().zip(buffers).all(|(&large, &small)| self.system.languages.includes(large, small))
    }

    fn is_included_in(&mut self, node: NodeId, buffers: &[Language]) -> bool {
        let small = &self.nodes[node.index()].buffers;
        small.iter().zip(buffers).all(|(&small, &large)| self.system.languages.includes(large, small))
    }

    /// Looks for an ancestor of the same cell from which the new state is a cycle that can be repeated.
    fn find_cycle(
        &mut self,
        parent: NodeId,
        edge: &Edge,
        cell: CellId,
        buffers: &[Language],
    ) -> Option<(NodeId, Edge, Buffers)> {
        if !self.met.contains(&cell) {
            return None;
        }
        let mut tried = 0;
        let mut next = Some(parent);
        while let Some(id) = next {
            let ancestor = &self.nodes[id.index()];
            if ancestor.cell == cell {
                let base = ancestor.buffers.clone();
                let path = || {
                    let mut edges = path_between(&self.nodes, id, parent);
                    edges.push(edge.clone());
                    edges
                };
                let found = self.accelerator.accelerate(&mut self.system.languages, cell, &base, buffers, path);
                if let Some((star, after)) = found {
                    return Some((id, Edge::Star(star), after));
                }
                tried += 1;
                if tried == MOST_ANCESTORS {
                    return None;
                }
            }
            next = self.nodes[id.index()].origin.as_ref().map(|origin| origin.0);
        }
        None
    }

    /// Enters a state, retires the stored states it makes superfluous, and puts it on the stack.
    fn store(&mut self, cell: CellId, buffers: Buffers, origin: Option<(NodeId, Edge)>, sleep: Vec<Label>) {
        if self.by_cell.len() <= cell.index() {
            self.by_cell.resize_with(cell.index() + 1, Vec::new);
        }
        for old in self.by_cell[cell.index()].clone() {
            let in_old = |label: &Label| self.nodes[old.index()].sleep.contains(label);
            if sleep.iter().all(in_old) && self.is_included_in(old, &buffers) {
                self.nodes[old.index()].retired = true;
                self.by_cell[cell.index()].retain(|&other| other != old);
            }
        }
        let depth = origin.as_ref().map_or(0, |(parent, _)| self.nodes[parent.index()].depth + 1);
        self.max_depth = self.max_depth.max(depth);
        let node = NodeId(u32::try_from(self.nodes.len()).expect("invariant: memory ends before states do"));
        let labels = self.system.labels(cell, &buffers);
        let todo: Vec<Label> = labels.into_iter().filter(|label| !sleep.contains(label)).collect();
        self.by_cell[cell.index()].push(node);
        self.met.insert(cell);
        let frame = Frame { node, todo: todo.into_iter(), asleep: sleep.clone() };
        self.nodes.push(Node { cell, buffers, origin, sleep, depth, retired: false });
        self.schedule(frame);
        self.judge(node);
    }

    /// Judges the concrete state of a node in which all buffers are empty: a deadlock, or the end.
    fn judge(&mut self, node: NodeId) {
        let Node { cell, ref buffers, .. } = self.nodes[node.index()];
        if !buffers.iter().all(|&buffer| self.system.languages.has_empty_word(buffer)) || !self.judged.insert(cell) {
            return;
        }
        let empty: Buffers = vec![Language::EMPTY_WORD; buffers.len()].into();
        if !self.system.labels(cell, &empty).is_empty() {
            return;
        }
        let Rest::Failed(problem) = self.system.machine.rest(&self.system.concrete(cell)) else { return };
        if problem.kind == ProblemKind::Deadlock && self.options.allow_deadlock {
            return;
        }
        self.fail((cell, None), Failure { node, contents: empty, last: None });
    }

    fn fail(&mut self, error: ErrorState, failure: Failure) {
        if self.system.languages.is_interrupted() {
            return;
        }
        self.symbolic_errors.insert((error, failure.contents.clone()));
        self.errors.insert(error);
        self.failure.get_or_insert(failure);
    }

    /// The path from the initial state to a stored one.
    pub(super) fn path_to(&self, node: NodeId) -> Vec<Edge> {
        path_between(&self.nodes, NodeId(0), node)
    }
}

/// The edges from an ancestor to a node.
fn path_between(nodes: &[Node], ancestor: NodeId, node: NodeId) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut here = node;
    while here != ancestor {
        let (parent, edge) = nodes[here.index()].origin.as_ref().expect("invariant: the root is everybody's ancestor");
        edges.push(edge.clone());
        here = *parent;
    }
    edges.reverse();
    edges
}
