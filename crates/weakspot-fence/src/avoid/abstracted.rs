//! Avoid formulae over an abstract transition system (Sec. 5.3).
//!
//! The abstraction covers everything the program can do, so a placement that satisfies its formula is correct. What
//! prevents a step is what the paper says: of the stores that are pending (or may be) in an abstract state, each gives an
//! ordering [constraint]. If all of them are pending in every concrete state it stands for (`set`, `fd`), enforcing one is
//! enough; if not (`pd`), all must be enforced.
//!
//! Unlike in [`super::explore`] these formulae are not exact. A constraint asks for fences on all paths of the control
//! flow, also on those that no execution takes, and an abstract state may be reached only because another one, which
//! fences would avoid, covers it.

use weakspot_model::ir::Program;
use weakspot_model::task::{Budget, Limit, Progress};
use weakspot_verify::abstraction::AbstractOptions;
use weakspot_verify::abstraction::graph::{self, Edge, Graph, NodeId, Step, Target};

use super::bdd::{Formula, Formulas};
use super::constraint::Constraints;
use super::label::{Edges, Within};
use crate::FenceError;
use crate::points::Rendered;

/// States after which an abstraction is given up.
const MAX_STATES: u64 = 8_000_000;

/// The program as it is, and with markers.
pub(crate) struct Task<'a> {
    pub(crate) plain: &'a Program,
    pub(crate) marked: &'a Program,
    pub(crate) rendered: &'a Rendered,
    pub(crate) abstraction: AbstractOptions,
    /// What each candidate weighs.
    pub(crate) weights: Vec<u64>,
    /// No correct placement weighs less.
    pub(crate) least: u64,
    pub(crate) budget: &'a Budget,
    pub(crate) progress: &'a dyn Progress,
}

/// The formula whose satisfying placements are all correct, and the number of states behind it. It knows placements up to
/// a weight only, but the lightest of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sufficient {
    pub(crate) formula: Formula,
    pub(crate) states: u64,
}

/// Builds the abstract transition system and labels it.
pub(crate) fn sufficient(task: &Task, formulas: &mut Formulas) -> Result<Result<Sufficient, Limit>, FenceError> {
    let search = AbstractOptions { max_states: Some(MAX_STATES), ..task.abstraction.clone() };
    let graph = match graph::build(task.plain, &search, task.budget, task.progress) {
        Ok(graph) => graph,
        Err(limit) => return Ok(Err(limit)),
    };
    let constraints: Result<Vec<Constraints>, FenceError> = task
        .plain
        .thread_ids()
        .map(|thread| Constraints::new(search.model, task.plain, task.marked, task.rendered, thread))
        .collect();
    let mut labelling = Labelling { graph: &graph, constraints: constraints?, formulas };
    Ok(labelling.formula(task).map(|formula| Sufficient { formula, states: graph.len() as u64 }))
}

struct Labelling<'a> {
    graph: &'a Graph,
    constraints: Vec<Constraints>,
    formulas: &'a mut Formulas,
}

impl Labelling<'_> {
    fn formula(&mut self, task: &Task) -> Result<Formula, Limit> {
        let mut edges = Edges::default();
        let mut errors: Vec<(usize, Formula)> = Vec::new();
        for node in self.graph.nodes() {
            let mut found = Vec::new();
            for edge in self.graph.edges(node) {
                let prevent = self.prevent(node, edge);
                match edge.target {
                    Target::Node(target) => found.push((target.0, prevent)),
                    Target::Error(_) => errors.push((node.index(), prevent)),
                }
            }
            edges.push_node(found);
        }
        errors.extend(self.graph.failing().iter().map(|(node, _)| (node.index(), Formula::FALSE)));
        let root = edges.nodes();
        edges.push_node(self.graph.initial().iter().filter_map(|target| match target {
            Target::Node(node) => Some((node.0, Formula::FALSE)),
            Target::Error(_) => None,
        }));
        let starts_wrong = self.graph.initial().iter().any(|target| matches!(target, Target::Error(_)));
        errors.extend(starts_wrong.then_some((root, Formula::FALSE)));
        self.lightest(&edges, root, &errors, task)
    }

    /// Labels for light placements first, then for heavier ones, until one of them satisfies the formula.
    fn lightest(
        &mut self,
        edges: &Edges,
        root: usize,
        errors: &[(usize, Formula)],
        task: &Task,
    ) -> Result<Formula, Limit> {
        // a fence in every gap prevents whatever can be prevented
        let reached = edges.reached(root, |prevent| prevent == Formula::FALSE);
        if errors.iter().any(|&(source, prevent)| reached[source] && prevent == Formula::FALSE) {
            return Ok(Formula::FALSE);
        }
        let all = task.weights.iter().fold(0_u64, |sum, &weight| sum.saturating_add(weight));
        let mut most = task.least.max(1);
        loop {
            let within = Within { most, weights: &task.weights };
            let within = (most < all).then_some(within);
            let formula = super::conjoin(self.formulas, edges, root, errors, within, task.budget)?;
            if formula != Formula::FALSE || within.is_none() {
                return Ok(formula);
            }
            most = most.saturating_mul(2);
        }
    }

    /// `prevent(t)`, disjunctive or conjunctive.
    fn prevent(&mut self, node: NodeId, edge: &Edge) -> Formula {
        let Step::Event { pc, .. } = edge.step else { return Formula::FALSE };
        let pending = self.graph.pending(node, edge.thread);
        if pending.is_empty() {
            return Formula::FALSE;
        }
        let constraints = &mut self.constraints[edge.thread.index()];
        let formulas = &mut *self.formulas;
        let mut enforced = pending.iter().map(|store| store.pc).collect::<Vec<_>>();
        enforced.dedup();
        let disjunctive = self.graph.is_certain();
        let neutral = if disjunctive { Formula::FALSE } else { Formula::TRUE };
        enforced.into_iter().fold(neutral, |all, store| {
            let one = constraints.enforced(formulas, store, pc);
            if disjunctive { formulas.or(all, one) } else { formulas.and(all, one) }
        })
    }
}
