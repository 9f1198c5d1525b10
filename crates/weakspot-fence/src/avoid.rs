//! Fence inference by avoid formulae: the strategy of the PLDI 2011 paper on partial-coherence abstractions, Sec. 5.
//!
//! | the paper | here |
//! |---|---|
//! | buffers of labelled stores, Sec. 5.2 | [`explore`]: each thread knows the gaps since its last step |
//! | `prevent(t)` | `Explorer::prevent`; of an abstraction, disjunctive and conjunctive, in [`abstracted`] |
//! | ordering constraints `[l ≺ l_t]` and fences on all paths | [`constraint`] |
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
//! With `--engine abstract` the labels are those of the abstract transition system ([`abstracted`]). Then every placement
//! that satisfies the formula is correct, and the cheapest one is taken. That it is a minimum is claimed only if the
//! concrete labels say so.
//!
//! # Deliberately absent
//! Store-buffer safety: it is a property of traces, not of states, so there is nothing to label. The command line refuses
//! it.

pub(crate) mod abstracted;
pub(crate) mod bdd;
pub(crate) mod constraint;
pub(crate) mod explore;
pub(crate) mod label;

use weakspot_model::ir::Program;
use weakspot_model::task::{Budget, Limit, Progress};

use crate::hitting::{self, Cost};
use crate::points::{Kinds, Points, Rendered};
use crate::{FenceError, FenceOptions};

use bdd::{Formula, Formulas};
use explore::Task;
use label::{Edges, Within};

/// Bounds on store buffers, tried in this order.
const BOUNDS: [usize; 6] = [1, 2, 3, 4, 6, 8];

/// States after which a bound is given up.
const MAX_STATES: usize = 4_000_000;

/// The same for programs with abstract values, which may have no end of states.
const MAX_ENDLESS_STATES: usize = 50_000;

/// The formula that every correct placement satisfies, as far as it is known.
pub(crate) struct Labels<'a> {
    options: &'a FenceOptions,
    /// The program without the fences that are candidates, and with markers as well.
    plain: Program,
    rendered: Rendered,
    marked: Program,
    formulas: Formulas,
    /// Every correct placement satisfies it.
    formula: Formula,
    /// Engine `abstract`: every placement that satisfies it is correct.
    sufficient: Option<Formula>,
    /// How many of `BOUNDS` were tried.
    tried: usize,
    /// Are there executions that no exploration has seen?
    is_bounded: bool,
    /// States of all explorations.
    pub(crate) states: u64,
    /// States of the transition system behind the labels: of the abstraction, or of the largest bound.
    pub(crate) largest: u64,
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
        let none = Kinds::new();
        let rendered = points.marked(&none);
        Ok(Self {
            options,
            plain: points.compile(points.fenced(&none).text)?,
            marked: points.compile_marked(rendered.text.clone())?,
            rendered,
            formulas: Formulas::new(),
            formula: Formula::TRUE,
            sufficient: None,
            tried: 0,
            is_bounded: true,
            states: 0,
            largest: 0,
        })
    }

    /// The first labels: of the smallest bound that says something, and of the abstraction if there is one.
    pub(crate) fn start(
        &mut self,
        costs: &[Cost],
        budget: &Budget,
        progress: &dyn Progress,
    ) -> Result<Result<(), Limit>, FenceError> {
        if let Err(limit) = self.climb(budget, progress) {
            return Ok(Err(limit));
        }
        let Some((abstraction, _)) = self.options.abstraction() else { return Ok(Ok(())) };
        let least = self.formulas.minimum(self.formula, costs).map_or(0, |set| hitting::cost_of(&set, costs).weight);
        let task = abstracted::Task {
            weights: costs.iter().map(|cost| cost.weight).collect(),
            least,
            plain: &self.plain,
            marked: &self.marked,
            rendered: &self.rendered,
            abstraction,
            budget,
            progress,
        };
        Ok(abstracted::sufficient(&task, &mut self.formulas)?.map(|found| {
            self.sufficient = Some(found.formula);
            self.states += found.states;
            self.largest = found.states;
        }))
    }

    /// Are the labels those of an abstraction?
    pub(crate) fn is_abstract(&self) -> bool {
        self.sufficient.is_some()
    }

    /// Explores with larger buffers until the formula is stronger than before.
    pub(crate) fn climb(&mut self, budget: &Budget, progress: &dyn Progress) -> Result<Climbed, Limit> {
        while let Some(&bound) = BOUNDS.get(self.tried) {
            self.tried += 1;
            let task = Task {
                program: &self.marked,
                rendered: &self.rendered,
                options: self.options,
                bound,
                max_states: if self.options.has_values() { MAX_ENDLESS_STATES } else { MAX_STATES },
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
            self.largest = self.largest.max(explored.edges.nodes() as u64);
            let known = self.formula;
            let found = conjoin(&mut self.formulas, &explored.edges, 0, &explored.errors, None, budget)?;
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

    /// A cheapest set worth asking about: it satisfies the formula of the abstraction if there is one, otherwise the one
    /// that is necessary.
    pub(crate) fn proposal(&mut self, clauses: &[Vec<usize>], costs: &[Cost]) -> Option<Vec<usize>> {
        let base = self.sufficient.unwrap_or(self.formula);
        let formula = self.with_clauses(base, clauses);
        self.formulas.minimum(formula, costs)
    }

    /// A cheapest set that satisfies the formula and holds a candidate of every clause.
    pub(crate) fn minimum(&mut self, clauses: &[Vec<usize>], costs: &[Cost]) -> Option<Vec<usize>> {
        let formula = self.with_clauses(self.formula, clauses);
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
        let formula = self.with_clauses(self.formula, clauses);
        self.formulas.all_within(formula, costs, limit, most)
    }

    fn with_clauses(&mut self, base: Formula, clauses: &[Vec<usize>]) -> Formula {
        clauses.iter().fold(base, |formula, clause| {
            let clause = self.formulas.any(clause);
            self.formulas.and(formula, clause)
        })
    }
}

/// `ψ`: what avoids all errors, each given by its source and what prevents the last step.
fn conjoin(
    formulas: &mut Formulas,
    edges: &Edges,
    initial: usize,
    errors: &[(usize, Formula)],
    within: Option<Within>,
    budget: &Budget,
) -> Result<Formula, Limit> {
    if errors.is_empty() {
        return Ok(Formula::TRUE);
    }
    let mut stopped = None;
    let labels = label::avoid(formulas, edges, initial, within, |formulas| {
        stopped = budget.exhausted((formulas.bytes() + edges.bytes()) as u64);
        stopped.is_none()
    });
    let Some(labels) = labels else { return Err(stopped.unwrap_or(Limit::Cancelled)) };
    let mut distinct: Vec<(Formula, Formula)> =
        errors.iter().map(|&(source, prevent)| (labels[source], prevent)).collect();
    distinct.sort_unstable();
    distinct.dedup();
    Ok(distinct.into_iter().fold(Formula::TRUE, |all, (label, prevent)| {
        let avoided = formulas.or(label, prevent);
        let all = formulas.and(all, avoided);
        within.map_or(all, |within| within.trim(formulas, all))
    }))
}

#[cfg(test)]
mod tests;
