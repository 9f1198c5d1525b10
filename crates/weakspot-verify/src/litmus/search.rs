//! Chooses coherence orders and sources one at a time and leaves a choice as soon as it closes a cycle.
//!
//! For each location, the writes are put in order one after the other (those of one thread in program order), then
//! each read gets its source between the thread's own neighbouring writes. That is (TSO2) by construction. (SC1) or
//! (TSO1), corrected, is kept by the transitive closure of program order kept by the model, coherence, from-read and
//! external reads-from: a new edge is refused if its end already reaches its start. A second closure, with all of
//! program order and all of reads-from, says whether the execution is sequentially consistent.
//!
//! An atomic that writes is placed as a write; it reads the value before its own, so it needs no edges but coherence.
//!
//! The closures of all levels of the search lie one behind the other in [`SearchBuffers`]; going one level deeper
//! copies the rows. Nothing is allocated once the buffers have grown to the size of the largest test.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::litmus::LitmusTest;
use weakspot_model::problem::Fault;
use weakspot_model::task::{Budget, Limit};

use super::evaluate::{Evaluation, Leaf, Tally};
use super::graph::{Graph, NONE};
use super::path::Node;

/// Memory that is used again from search to search.
#[derive(Debug, Default)]
pub(super) struct SearchBuffers {
    rows_1: Vec<[u64; 1]>,
    rows_4: Vec<[u64; 4]>,
    rows_8: Vec<[u64; 8]>,
    placed: Placed,
    evaluation: Evaluation,
    plan: Vec<Decision>,
}

/// What a search is about.
#[derive(Clone, Copy)]
pub(super) struct Task<'a> {
    pub test: &'a LitmusTest,
    pub graph: &'a Graph,
    pub nodes: &'a [Node],
    pub budget: &'a Budget,
}

/// The choices made so far.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// The coherence index of each event: written for writes, read for the others.
    pub index: Vec<u32>,
    /// The writes of all locations in coherence order, one location after the other.
    pub order: Vec<u32>,
    /// Where the writes of each location begin in `order`.
    pub first: Vec<u32>,
}

/// One choice of the search.
#[derive(Debug, Clone, Copy)]
enum Decision {
    /// Which write of the location comes next in coherence order?
    Write { loc: u32, position: u32 },
    /// What does the event read?
    Read { loc: u32, event: u32 },
}

/// Rows of a width that the buffers have memory for.
pub(super) trait Width<const W: usize> {
    fn rows(&mut self) -> &mut Vec<[u64; W]>;
}

macro_rules! width {
    ($words:literal, $field:ident) => {
        impl Width<$words> for SearchBuffers {
            fn rows(&mut self) -> &mut Vec<[u64; $words]> {
                &mut self.$field
            }
        }
    };
}

width!(1, rows_1);
width!(4, rows_4);
width!(8, rows_8);

/// A search among the executions of one graph, with rows of `W` words.
pub(super) struct Search<'a, const W: usize> {
    graph: &'a Graph,
    model: MemoryModel,
    plan: &'a [Decision],
    rows: &'a mut [[u64; W]],
    placed: &'a mut Placed,
    leaf: Leaf<'a>,
    /// Every execution so far is sequentially consistent.
    robust: &'a mut bool,
    budget: &'a Budget,
    /// Choices made, to ask the budget now and then.
    choices: u32,
    stopped: Option<Stop>,
}

/// Why a search was given up.
pub(super) enum Stop {
    /// An execution has a program error.
    Failed(ThreadId, Fault),
    /// The budget is spent.
    OutOf(Limit),
}

/// The budget is asked once in so many choices.
const CHOICES_BETWEEN_QUESTIONS: u32 = 1 << 14;

impl<'a, const W: usize> Search<'a, W>
where
    SearchBuffers: Width<W>,
{
    /// Counts the executions of the graph into `tally`. Stops at the first program error.
    pub fn run(
        task: Task<'a>,
        buffers: &'a mut SearchBuffers,
        tally: &'a mut Tally,
        robust: &'a mut bool,
    ) -> Option<Stop> {
        let Task { test, graph, nodes, budget } = task;
        let model = graph.model.expect("invariant: the graph is built before the search");
        plan(graph, &mut buffers.plan, &mut buffers.placed);
        let mut rows = std::mem::take(Width::<W>::rows(buffers));
        let events = graph.len();
        let needed = 2 * events * (buffers.plan.len() + 1);
        if rows.len() < needed {
            rows.resize(needed, [0; W]);
        }
        graph.program_order(model, &mut rows[..events]);
        graph.program_order(MemoryModel::Sc, &mut rows[events..2 * events]);
        let SearchBuffers { placed, evaluation, plan, .. } = &mut *buffers;
        evaluation.prepare(nodes.len());
        let leaf = Leaf { test, graph, nodes, evaluation, tally };
        let rows_of_search = &mut rows;
        let (choices, stopped) = (0, None);
        let mut search =
            Search { graph, model, plan, rows: rows_of_search, placed, leaf, robust, budget, choices, stopped };
        search.decide(0, false);
        let stopped = search.stopped;
        *Width::<W>::rows(buffers) = rows;
        stopped
    }
}

/// Lists the choices, and makes room for their results.
fn plan(graph: &Graph, plan: &mut Vec<Decision>, placed: &mut Placed) {
    plan.clear();
    placed.first.clear();
    placed.index.clear();
    placed.index.resize(graph.len(), 0);
    let mut writes = 0;
    for (loc, accesses) in (0..).zip(&graph.accesses) {
        placed.first.push(writes);
        writes += accesses.writes.len() as u32;
        plan.extend((0..accesses.writes.len() as u32).map(|position| Decision::Write { loc, position }));
        if !accesses.writes.is_empty() {
            plan.extend(accesses.reads.iter().map(|&event| Decision::Read { loc, event }));
        }
    }
    placed.order.clear();
    placed.order.resize(writes as usize, NONE);
}

/// An edge that a choice brings.
#[derive(Clone, Copy)]
struct Edge {
    from: u32,
    to: u32,
    /// Part of the model's relation; if not, of full happens-before only.
    in_model: bool,
}

impl<const W: usize> Search<'_, W> {
    /// Makes the choices from `depth` on. `is_broken`: the execution is known not to be sequentially consistent.
    fn decide(&mut self, depth: usize, is_broken: bool) {
        self.choices = self.choices.wrapping_add(1);
        if self.choices.is_multiple_of(CHOICES_BETWEEN_QUESTIONS)
            && let Some(limit) = self.budget.exhausted(size_of_val(self.rows) as u64)
        {
            self.stopped = Some(Stop::OutOf(limit));
            return;
        }
        match self.plan.get(depth) {
            Some(&Decision::Write { loc, position }) => self.place_write(depth, loc, position, is_broken),
            Some(&Decision::Read { loc, event }) => self.choose_source(depth, loc, event, is_broken),
            None => self.finish(is_broken),
        }
    }

    fn place_write(&mut self, depth: usize, loc: u32, position: u32, is_broken: bool) {
        let graph = self.graph;
        let slot = (self.placed.first[loc as usize] + position) as usize;
        for &write in &graph.accesses[loc as usize].writes {
            let before = graph.events[write as usize].write_before;
            let is_next =
                self.placed.index[write as usize] == 0 && (before == NONE || self.placed.index[before as usize] != 0);
            if !is_next {
                continue;
            }
            let edge = (position > 0).then(|| Edge { from: self.placed.order[slot - 1], to: write, in_model: true });
            if let Some(is_broken) = self.extend(depth, edge.as_slice(), is_broken) {
                self.placed.order[slot] = write;
                self.placed.index[write as usize] = position + 1;
                self.decide(depth + 1, is_broken);
                self.placed.index[write as usize] = 0;
            }
            if self.stopped.is_some() {
                return;
            }
        }
    }

    fn choose_source(&mut self, depth: usize, loc: u32, event: u32, is_broken: bool) {
        let graph = self.graph;
        let read = &graph.events[event as usize];
        let first = self.placed.first[loc as usize];
        let writes = graph.accesses[loc as usize].writes.len() as u32;
        let index_of = |other: u32| if other == NONE { 0 } else { self.placed.index[other as usize] };
        let oldest = index_of(read.write_before).max(index_of(read.read_before));
        let youngest = if read.write_after == NONE { writes } else { index_of(read.write_after) - 1 };
        for index in oldest..=youngest {
            let mut edges = [Edge { from: event, to: event, in_model: false }; 2];
            let mut count = 0;
            if index > 0 {
                let from = self.placed.order[(first + index - 1) as usize];
                let source = &graph.events[from as usize];
                let in_model = source.thread != read.thread || !source.is_plain_store();
                edges[count] = Edge { from, to: event, in_model };
                count += 1;
            }
            if index < writes {
                let to = self.placed.order[(first + index) as usize];
                edges[count] = Edge { from: event, to, in_model: true };
                count += 1;
            }
            if let Some(is_broken) = self.extend(depth, &edges[..count], is_broken) {
                self.placed.index[event as usize] = index;
                self.decide(depth + 1, is_broken);
            }
            if self.stopped.is_some() {
                return;
            }
        }
    }

    /// Makes the relations of the next level from those of this one and new edges. `None` if the model forbids it,
    /// else whether the execution is known not to be sequentially consistent.
    fn extend(&mut self, depth: usize, edges: &[Edge], is_broken: bool) -> Option<bool> {
        let events = self.graph.len();
        let (here, next) = self.rows[2 * events * depth..][..4 * events].split_at_mut(2 * events);
        let closes_cycle = |edge: &Edge| edge.in_model && contains(&here[edge.to as usize], edge.from);
        if edges.iter().any(closes_cycle) {
            return None;
        }
        let (model, happens_before) = next.split_at_mut(events);
        model.copy_from_slice(&here[..events]);
        for edge in edges.iter().filter(|edge| edge.in_model) {
            if !add(model, edge.from, edge.to) {
                return None;
            }
        }
        if is_broken || !*self.robust || self.model == MemoryModel::Sc {
            return Some(is_broken);
        }
        happens_before.copy_from_slice(&here[events..]);
        Some(!edges.iter().all(|edge| add(happens_before, edge.from, edge.to)))
    }

    /// All choices are made.
    fn finish(&mut self, is_broken: bool) {
        match self.leaf.visit(self.placed) {
            Ok(true) => *self.robust &= !is_broken,
            Ok(false) => {}
            Err((thread, fault)) => self.stopped = Some(Stop::Failed(thread, fault)),
        }
    }
}

fn contains<const W: usize>(row: &[u64; W], event: u32) -> bool {
    row[event as usize / 64] >> (event % 64) & 1 == 1
}

/// Adds an edge to a transitive closure; false if it closes a cycle.
fn add<const W: usize>(closure: &mut [[u64; W]], from: u32, to: u32) -> bool {
    if contains(&closure[to as usize], from) {
        return false;
    }
    if contains(&closure[from as usize], to) {
        return true;
    }
    let mut reached = closure[to as usize];
    reached[to as usize / 64] |= 1 << (to % 64);
    for (event, row) in (0..).zip(closure) {
        if event == from || contains(row, from) {
            for (word, more) in row.iter_mut().zip(reached) {
                *word |= more;
            }
        }
    }
    true
}
