//! The fixed point of the avoid formulae: `infer(L) = L[σ ↦ L(σ) ∧ avoid(L, σ)]` of the paper's Sec. 5.2.
//!
//! A node is avoided by avoiding all edges into it; an edge by avoiding its source or by preventing the edge itself:
//! `avoid(σ) = ⋀ { L(μ) ∨ prevent(t) | t = μ → σ }`. The initial node cannot be avoided. Starting from "every other node
//! is avoided by any set of fences", labels only become stronger, so following the edges until nothing changes gives the
//! greatest fixed point.

use super::bdd::{Formula, Formulas};

/// A graph whose edges know what prevents them, the edges of one node after the other.
#[derive(Debug, Default)]
pub(crate) struct Edges {
    /// Where the edges of each node begin; the node after the last one is where they end.
    starts: Vec<usize>,
    edges: Vec<(u32, Formula)>,
}

impl Edges {
    /// Adds the next node with its edges: where each leads, and what prevents it.
    pub(crate) fn push_node(&mut self, edges: impl IntoIterator<Item = (u32, Formula)>) {
        self.starts.push(self.edges.len());
        self.edges.extend(edges);
    }

    /// Nodes added so far.
    pub(crate) fn nodes(&self) -> usize {
        self.starts.len()
    }

    fn of(&self, node: usize) -> &[(u32, Formula)] {
        let end = self.starts.get(node + 1).copied().unwrap_or(self.edges.len());
        &self.edges[self.starts[node]..end]
    }

    /// The nodes that are reached when an edge is taken exactly if `may_pass` says so of what prevents it.
    pub(crate) fn reached(&self, initial: usize, may_pass: impl Fn(Formula) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.nodes()];
        let mut waiting = vec![initial];
        while let Some(node) = waiting.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                let next = self.of(node).iter().filter(|(_, prevent)| may_pass(*prevent));
                waiting.extend(next.map(|(target, _)| *target as usize));
            }
        }
        reached
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.starts.capacity() * size_of::<usize>() + self.edges.capacity() * size_of::<(u32, Formula)>()
    }
}

/// Only sets of fences up to a weight count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Within<'a> {
    pub(crate) most: u64,
    /// What each candidate weighs.
    pub(crate) weights: &'a [u64],
}

impl Within<'_> {
    pub(crate) fn trim(self, formulas: &mut Formulas, formula: Formula) -> Formula {
        formulas.within(formula, self.most, self.weights)
    }
}

/// What avoids each node. `goes_on` is asked now and then; once it says no, the labels so far are given up.
///
/// Whether a set of fences avoids a node does not depend on other sets, so the labels can be had for light sets alone, where
/// the diagrams are small.
pub(crate) fn avoid(
    formulas: &mut Formulas,
    edges: &Edges,
    initial: usize,
    within: Option<Within>,
    mut goes_on: impl FnMut(&Formulas) -> bool,
) -> Option<Vec<Formula>> {
    let mut labels = vec![Formula::TRUE; edges.nodes()];
    let mut is_due = vec![false; edges.nodes()];
    (labels[initial], is_due[initial]) = (Formula::FALSE, true);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for node in 0..edges.nodes() {
            if node % 1024 == 0 && !goes_on(formulas) {
                return None;
            }
            if !std::mem::take(&mut is_due[node]) {
                continue;
            }
            for &(target, prevent) in edges.of(node) {
                let target = target as usize;
                let avoided = formulas.or(labels[node], prevent);
                let label = formulas.and(labels[target], avoided);
                let label = within.map_or(label, |within| within.trim(formulas, label));
                if label != labels[target] {
                    (labels[target], is_due[target], changed) = (label, true, true);
                }
            }
        }
    }
    Some(labels)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_avoided_on_every_path_into_it() {
        let mut formulas = Formulas::new();
        let (a, b) = (formulas.any(&[0]), formulas.any(&[1, 2]));
        let mut edges = Edges::default();
        edges.push_node([(1, a), (2, Formula::FALSE)]);
        edges.push_node([(3, Formula::FALSE), (0, Formula::FALSE)]);
        edges.push_node([(3, b)]);
        edges.push_node([(1, Formula::FALSE)]);
        edges.push_node([(3, Formula::FALSE)]);
        let labels = avoid(&mut formulas, &edges, 0, None, |_| true).unwrap();
        let both = formulas.and(a, b);
        assert_eq!(
            labels,
            [Formula::FALSE, both, Formula::FALSE, both, Formula::TRUE],
            "the last one is never entered"
        );
    }
}
