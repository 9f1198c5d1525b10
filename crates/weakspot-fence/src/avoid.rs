//! Fence inference by avoid formulae: the strategy of the PLDI 2011 paper on partial-coherence abstractions, Sec. 5.
//!
//! | the paper | here |
//! |---|---|
//! | buffers of labelled stores, Sec. 5.2 | [`explore`]: each thread knows the gaps since its last step |
//! | `prevent(t)`, disjunctive | `Explorer::prevent` |
//! | `avoid(L, σ)`, `infer(L)` and its greatest fixed point | [`label::avoid`] |
//! | the constraint formula `ψ` | [`Labels::climb`] |
//! | a satisfying assignment, implemented by fences | [`Labels::minimum`]: the cheapest one; its variables *are* fences |
//!
//! # What is proved
//! The concrete transition system is explored with bounded buffers, bound after bound. Each of its paths is a real
//! execution, so every correct placement satisfies the formula, and its minimum is a lower bound of what any correct
//! placement costs. The cheapest placement is then shown to an engine ([`crate::oracle`]): if it is proved with unbounded
//! buffers, it is a minimum. If it is not correct, the bound climbs; when that teaches nothing any more, the
//! counterexample makes a clause, as in the strategy `guided`, which is conjoined.
//!
//! # Deliberately absent
//! Store-buffer safety: it is a property of traces, not of states, so there is nothing to label. The command line refuses
//! it.

pub(crate) mod bdd;
pub(crate) mod explore;
pub(crate) mod label;

use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit, Progress};

use crate::clause;
use crate::hitting::Cost;
use crate::points::{Kinds, Points, Rendered};
use crate::{FenceError, FenceOptions};

use bdd::{Formula, Formulas};
use explore::{Explored, Task};

/// Bounds on store buffers, tried in this order.
const BOUNDS: [usize; 6] = [1, 2, 3, 4, 6, 8];

/// States after which a bound is given up.
const MAX_STATES: usize = 4_000_000;

/// The formula that every correct placement satisfies, as far as it is known.
pub(crate) struct Labels<'a> {
    options: &'a FenceOptions,
    rendered: Rendered,
    program: Program,
    formulas: Formulas,
    formula: Formula,
    /// How many of [`BOUNDS`] were tried.
    tried: usize,
    /// Are there executions that no exploration has seen?
    is_bounded: bool,
    /// States of all explorations.
    pub(crate) states: u64,
}

/// What came of exploring with the next bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Climbed {
    /// The formula became stronger.
    Learned,
    /// Nothing more can be learned this way.
    Exhausted,
}

impl<'a> Labels<'a> {
    /// Nothing is known yet.
    pub(crate) fn new(points: &Points, options: &'a FenceOptions) -> Result<Self, FenceError> {
        let rendered = points.marked(&Kinds::new());
        let source = SourceFile::new(points.source().name.clone(), rendered.text.clone());
        let program = clause::compile(&source)?;
        let (formulas, formula) = (Formulas::new(), Formula::TRUE);
        Ok(Self { options, rendered, program, formulas, formula, tried: 0, is_bounded: true, states: 0 })
    }

    /// Explores with larger buffers until the formula is stronger than before.
    pub(crate) fn climb(&mut self, budget: &Budget, progress: &dyn Progress) -> Result<Climbed, Limit> {
        while let Some(&bound) = BOUNDS.get(self.tried) {
            self.tried += 1;
            let task = Task {
                program: &self.program,
                rendered: &self.rendered,
                options: self.options,
                bound,
                max_states: MAX_STATES,
                budget,
                progress,
            };
            let explored = match explore::explore(&task, &mut self.formulas) {
                Ok(Some(explored)) => explored,
                Err(Limit::States(_)) => break,
                Err(limit) => return Err(limit),
                Ok(None) => break,
            };
            self.states += explored.edges.nodes() as u64;
            let known = self.formula;
            let found = constraint(&mut self.formulas, &explored, budget)?;
            self.formula = self.formulas.and(known, found);
            if !explored.is_bounded {
                (self.tried, self.is_bounded) = (BOUNDS.len(), false);
            }
            if self.formula != known {
                return Ok(Climbed::Learned);
            }
        }
        self.tried = BOUNDS.len();
        Ok(Climbed::Exhausted)
    }

    /// A cheapest set that satisfies the formula and holds a candidate of every clause.
    pub(crate) fn minimum(&mut self, clauses: &[Vec<usize>], costs: &[Cost]) -> Option<Vec<usize>> {
        let formula = self.with_clauses(clauses);
        self.formulas.minimum(formula, costs)
    }

    /// All of them up to a cost; see [`Formulas::all_within`].
    pub(crate) fn all_within(
        &mut self,
        clauses: &[Vec<usize>],
        costs: &[Cost],
        limit: (u64, u32),
        most: usize,
    ) -> (Vec<Vec<usize>>, bool) {
        let formula = self.with_clauses(clauses);
        self.formulas.all_within(formula, costs, limit, most)
    }

    fn with_clauses(&mut self, clauses: &[Vec<usize>]) -> Formula {
        clauses.iter().fold(self.formula, |formula, clause| {
            let clause = self.formulas.any(clause);
            self.formulas.and(formula, clause)
        })
    }
}

/// `ψ`: what avoids all errors.
fn constraint(formulas: &mut Formulas, explored: &Explored, budget: &Budget) -> Result<Formula, Limit> {
    if explored.errors.is_empty() && explored.failing.is_empty() {
        return Ok(Formula::TRUE);
    }
    let mut stopped = None;
    let labels = label::avoid(formulas, &explored.edges, 0, |formulas| {
        stopped = budget.exhausted((formulas.bytes() + explored.edges.bytes()) as u64);
        stopped.is_none()
    });
    let Some(labels) = labels else { return Err(stopped.unwrap_or(Limit::Cancelled)) };
    let mut errors: Vec<(Formula, Formula)> =
        explored.errors.iter().map(|&(state, prevent)| (labels[state as usize], prevent)).collect();
    errors.extend(explored.failing.iter().map(|&state| (labels[state as usize], Formula::FALSE)));
    errors.sort_unstable();
    errors.dedup();
    Ok(errors.into_iter().fold(Formula::TRUE, |all, (label, prevent)| {
        let avoided = formulas.or(label, prevent);
        formulas.and(all, avoided)
    }))
}

#[cfg(test)]
mod tests;
