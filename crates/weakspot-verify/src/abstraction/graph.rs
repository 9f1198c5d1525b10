//! The whole abstract transition system, with labelled stores: what fence inference reads (Sec. 5.2 and 5.3).
//!
//! | paper | here |
//! |---|---|
//! | ⟨σ₀, Σ, T⟩ | [`Graph::initial`], [`Graph::nodes`], [`Graph::edges`] |
//! | `l_t`, the label of a transition | [`Edge::step`] |
//! | ⟨l, v⟩ in a buffer | a store is labelled by its instruction |
//! | `Q_{σ,p}` | [`Graph::pending`] |
//! | E, the error states | [`Target::Error`], [`Graph::failing`] |
//! | ∨ or ∧ in `prevent(t)` | [`Graph::is_certain`] |
//!
//! States that another one covers (Sec. 4.1) are not in the graph: edges lead to the state that covers them.

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_model::ids::{Loc, Pc, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::problem::Problem;
use weakspot_model::task::{Budget, Limit, Progress};

pub use super::system::Step;

use super::buffers::BufferId;
use super::failure::Failure;
use super::search::{Found, Search, Visitor};
use super::system::buffer_at;
use super::{AbstractOptions, Domain};

/// An abstract state: index into [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The table entry this id names.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A problem: index into [`Graph::errors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorId(pub u32);

/// Where a transition leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// To a state.
    Node(NodeId),
    /// It breaks the specification.
    Error(ErrorId),
}

/// A transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Whose.
    pub thread: ThreadId,
    /// What is done.
    pub step: Step,
    /// What comes of it.
    pub target: Target,
}

/// A buffered store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PendingStore {
    /// The instruction that stored.
    pub pc: Pc,
    /// What it stored to.
    pub loc: Loc,
}

/// The abstract transition system of a program.
#[derive(Debug)]
pub struct Graph {
    threads: usize,
    certain: bool,
    initial: Vec<Target>,
    /// Edges of all nodes; those of a node lie together.
    edges: Vec<Edge>,
    first_edge: Vec<u32>,
    /// For each node and thread, which list of `pending` is its own.
    buffers: Vec<u32>,
    pending: Vec<Vec<PendingStore>>,
    errors: Vec<Problem>,
    failing: Vec<(NodeId, ErrorId)>,
}

impl Graph {
    /// Number of states.
    pub fn len(&self) -> usize {
        self.first_edge.len().saturating_sub(1)
    }

    /// No state: the start itself is not an execution, or an error.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where executions start: one state, unless values split; an error if the start itself breaks the specification.
    pub fn initial(&self) -> &[Target] {
        &self.initial
    }

    /// All states.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.len() as u32).map(NodeId)
    }

    /// The transitions of a state.
    pub fn edges(&self, node: NodeId) -> &[Edge] {
        let (from, to) = (self.first_edge[node.index()], self.first_edge[node.index() + 1]);
        &self.edges[from as usize..to as usize]
    }

    /// Number of transitions.
    pub fn transitions(&self) -> usize {
        self.edges.len()
    }

    /// The stores of a thread that are pending in a state (`fd`, `set`) or may be (`pd`), sorted, each once.
    pub fn pending(&self, node: NodeId, thread: ThreadId) -> &[PendingStore] {
        &self.pending[self.buffers[node.index() * self.threads + thread.index()] as usize]
    }

    /// Is every pending store of a state pending in all concrete states it stands for? Then keeping one of them from
    /// being late prevents a transition; otherwise all of them have to be kept from it.
    pub fn is_certain(&self) -> bool {
        self.certain
    }

    /// The distinct problems.
    pub fn errors(&self) -> &[Problem] {
        &self.errors
    }

    /// States that are errors themselves: a deadlock, or `final` fails.
    pub fn failing(&self) -> &[(NodeId, ErrorId)] {
        &self.failing
    }
}

/// Explores everything, errors or not. Buffers hold labelled stores, so there are more states than without labels.
pub fn build(
    program: &Program,
    options: &AbstractOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Graph, Limit> {
    let mut search = Search::new(program, options, true);
    let mut builder = Builder::default();
    search.run(&mut builder, budget, progress)?;
    let certain = options.domain != Domain::Pd;
    Ok(builder.finish(&search, certain))
}

/// Collects what the search meets, in its numbering.
#[derive(Default)]
struct Builder {
    edges: Vec<(u32, ThreadId, Step, Raw)>,
    initial: Vec<Raw>,
    failures: Vec<Failure>,
    known: FxHashMap<Failure, u32>,
    failing: Vec<(u32, ErrorId)>,
}

/// A target in the numbering of the search.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Raw {
    State(u32),
    Error(ErrorId),
}

impl Visitor for Builder {
    fn failure(&mut self, found: Found) -> bool {
        let next = self.failures.len() as u32;
        let id = *self.known.entry(found.failure).or_insert(next);
        if id == next {
            self.failures.push(found.failure);
        }
        let error = ErrorId(id);
        match (found.state, found.step) {
            (Some(state), Some((thread, step))) => self.edges.push((state, thread, step, Raw::Error(error))),
            (Some(state), None) => self.failing.push((state, error)),
            (None, _) => self.initial.push(Raw::Error(error)),
        }
        false
    }

    fn transition(&mut self, from: u32, thread: ThreadId, step: Step, to: u32) {
        self.edges.push((from, thread, step, Raw::State(to)));
    }
}

impl Builder {
    /// Renumbers: states that were retired before they were expanded go, and so do those that only they lead to.
    fn finish(self, search: &Search<'_>, certain: bool) -> Graph {
        let store = &search.store;
        let threads = search.system.program.threads.len();
        let roots = (0..store.len() as u32).filter(|&state| store.origin(state).parent.is_none());
        let mut by_state: Vec<Vec<(ThreadId, Step, Raw)>> = vec![Vec::new(); store.len()];
        for (from, thread, step, to) in self.edges {
            by_state[from as usize].push((thread, step, to));
        }
        let mut numbers: FxHashMap<u32, NodeId> = FxHashMap::default();
        let mut order: Vec<u32> = Vec::new();
        let mut number = |state: u32, order: &mut Vec<u32>| {
            let state = store.resolve(state);
            *numbers.entry(state).or_insert_with(|| {
                order.push(state);
                NodeId(order.len() as u32 - 1)
            })
        };
        let mut initial: Vec<Target> = Vec::new();
        for state in roots {
            initial.push(Target::Node(number(state, &mut order)));
        }
        for raw in self.initial {
            if let Raw::Error(error) = raw {
                initial.push(Target::Error(error));
            }
        }
        let mut graph = Graph {
            threads,
            certain,
            initial,
            edges: Vec::new(),
            first_edge: vec![0],
            buffers: Vec::new(),
            pending: Vec::new(),
            errors: self.failures.iter().map(|failure| failure.describe(search.system.program)).collect(),
            failing: Vec::new(),
        };
        let mut next = 0;
        while let Some(&state) = order.get(next) {
            let first = graph.edges.len();
            for &(thread, step, raw) in &by_state[state as usize] {
                let target = match raw {
                    Raw::State(to) => Target::Node(number(to, &mut order)),
                    Raw::Error(error) => Target::Error(error),
                };
                graph.edges.push(Edge { thread, step, target });
            }
            graph.edges[first..].sort_unstable();
            let mut kept: FxHashSet<Edge> = FxHashSet::default();
            let tail: Vec<Edge> = graph.edges.drain(first..).filter(|&edge| kept.insert(edge)).collect();
            graph.edges.extend(tail);
            graph.first_edge.push(graph.edges.len() as u32);
            next += 1;
        }
        let node = |state: u32| numbers.get(&state).copied();
        graph.failing = self.failing.iter().filter_map(|&(state, error)| Some((node(state)?, error))).collect();
        graph.fill_pending(search, &order);
        graph
    }
}

impl Graph {
    fn fill_pending(&mut self, search: &Search<'_>, order: &[u32]) {
        let mut lists: FxHashMap<BufferId, u32> = FxHashMap::default();
        for &state in order {
            let row = search.store.row(state);
            for thread in search.system.program.thread_ids() {
                let buffer = BufferId(row[buffer_at(thread)]);
                let next = self.pending.len() as u32;
                let list = *lists.entry(buffer).or_insert(next);
                if list == next {
                    self.pending.push(pending(search, buffer));
                }
                self.buffers.push(list);
            }
        }
    }
}

fn pending(search: &Search<'_>, buffer: BufferId) -> Vec<PendingStore> {
    let entries = search.system.buffers.get(buffer).entries();
    let label = |entry| search.system.entries.label(entry);
    let mut stores: Vec<PendingStore> =
        entries.filter_map(|(loc, entry)| label(entry).map(|pc| PendingStore { pc, loc })).collect();
    stores.sort_unstable();
    stores.dedup();
    stores
}
