//! Cycle acceleration (paper, Sec. 4): what repeating a cycle any number of times does to one store buffer.
//!
//! A cycle is a path of the search from a state `ss` to a state `s` of the same cell that differs from `ss` in one
//! buffer only. From `L`, the contents of that buffer in `ss`, and `M`, those in `s`, comes a guess
//! `K = L · Z*`, where `Z` is what was appended; the state with `K` in place of `M` is explored instead of `s`.
//!
//! # Why it is exact (departs from the paper)
//! The paper accepts the guess if `M = L · {w}` and `s` is load equivalent to `ss`. Here the guess may be anything and
//! is *checked*: the cycles `σ` known for the cell are performed on `K` itself, and the guess is accepted if
//! ```text
//! M ⊆ K    and    K ⊆ L ∪ ⋃σ σ(K)
//! ```
//! where every `σ` stores to the buffer more often than it commits from it, and gives the other buffers back as they
//! were. Then every word of `K` is reachable: a word outside `L` is `σ` of another word of `K`, which is shorter by what
//! `σ` adds; that word is in `L` or again `σ` of a shorter one; and so on, ending in `L` after finitely many rounds. The
//! argument asks nothing of the loads and commits inside `σ`, because performing `σ` on `K` performs them: cycles that
//! commit are accelerated where the inclusion holds, and so are cycles whose loads see something else in their first
//! round. Nothing is lost either, since `M ⊆ K`. (The same argument with words in place of sets is how
//! [`super::witness`] unrolls a cycle as often as an execution needs.)
//!
//! A path may itself contain accelerations. Performing it performs them ([`Accelerator::perform_star`]), and they never
//! shorten a word, so the argument stands.
//!
//! | paper | here |
//! |---|---|
//! | cycle condition 1: identical but for one buffer | [`Accelerator::sole_difference`] |
//! | condition 2: `L(s) = L(ss) · {w}` | [`Languages::suffixes`], for a set of `w` |
//! | condition 3: load equivalence | the inclusion above, [`Accelerator::is_closed`] |
//! | `⋃ L · (Wᵢ ∪ {w})*` | the guess over all cycles known for the cell, then over the new one alone |

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::automaton::{Language, Languages};
use super::moves::{BufferEffect, Move};
use super::state::{Buffers, CellId};

/// How a state follows from its parent.
#[derive(Debug, Clone)]
pub(super) enum Edge {
    /// By an action.
    Move(Rc<Move>),
    /// By repeating cycles.
    Star(Rc<Star>),
}

/// A path from a state back to its cell.
#[derive(Debug)]
pub(super) struct Cycle {
    pub(super) edges: Vec<Edge>,
    /// What it can append.
    suffixes: Language,
}

/// An acceleration: any number of rounds of some cycles, all starting and ending in the same cell.
#[derive(Debug)]
pub(super) struct Star {
    /// The buffer that grows.
    pub(super) buffer: usize,
    pub(super) cycles: Vec<Rc<Cycle>>,
    /// What one round appends, whichever cycle is taken.
    suffixes: Language,
}

/// No more cycles than this are kept for one cell and buffer.
const MOST_CYCLES: usize = 12;

/// Everything about a state but one of its buffers.
type Surroundings = (CellId, usize, Buffers);

/// Finds and performs accelerations.
#[derive(Debug, Default)]
pub(super) struct Accelerator {
    cycles: FxHashMap<Surroundings, Vec<Rc<Cycle>>>,
    /// How many accelerations were accepted.
    pub(super) accepted: u64,
}

impl Accelerator {
    /// The buffer in which two states of a cell differ, if it is the only one.
    pub(super) fn sole_difference(ancestor: &[Language], buffers: &[Language]) -> Option<usize> {
        let mut different = (0..buffers.len()).filter(|&buffer| ancestor[buffer] != buffers[buffer]);
        let buffer = different.next()?;
        different.next().is_none().then_some(buffer)
    }

    /// Tries to accelerate the cycle of `edges` from `ancestor` to `buffers`, states of the same cell that differ in
    /// `buffer` only.
    pub(super) fn accelerate(
        &mut self,
        languages: &mut Languages,
        cell: CellId,
        buffer: usize,
        ancestor: &[Language],
        buffers: &[Language],
        edges: impl FnOnce() -> Vec<Edge>,
    ) -> Option<(Rc<Star>, Buffers)> {
        let suffixes = languages.suffixes(ancestor[buffer], buffers[buffer]);
        if matches!(suffixes, Language::EMPTY | Language::EMPTY_WORD) {
            return None;
        }
        let edges = edges();
        if growth(&edges, buffer) <= 0 {
            return None;
        }
        let cycle = Rc::new(Cycle { edges, suffixes });
        let known = self.known(cell, buffer, ancestor);
        let mut together = known.clone();
        together.push(Rc::clone(&cycle));
        for cycles in [together, vec![cycle]] {
            let suffixes = cycles.iter().fold(Language::EMPTY, |all, one| languages.union(all, one.suffixes));
            let star = Star { buffer, cycles, suffixes };
            let mut after: Buffers = ancestor.into();
            if self.perform_star(languages, &star, &mut after) && languages.includes(after[buffer], buffers[buffer]) {
                self.accepted += 1;
                let newest = star.cycles.last().expect("invariant: a star has a cycle");
                self.keep(cell, buffer, ancestor, newest);
                return Some((Rc::new(star), after));
            }
        }
        None
    }

    fn known(&self, cell: CellId, buffer: usize, buffers: &[Language]) -> Vec<Rc<Cycle>> {
        self.cycles.get(&surroundings(cell, buffer, buffers)).cloned().unwrap_or_default()
    }

    fn keep(&mut self, cell: CellId, buffer: usize, buffers: &[Language], cycle: &Rc<Cycle>) {
        let known = self.cycles.entry(surroundings(cell, buffer, buffers)).or_default();
        if known.len() < MOST_CYCLES {
            known.push(Rc::clone(cycle));
        }
    }

    /// Repeats the cycles of a star any number of times; leaves the buffers alone and says so if that is not exact.
    pub(super) fn perform_star(&self, languages: &mut Languages, star: &Star, buffers: &mut [Language]) -> bool {
        let before = buffers[star.buffer];
        let Some(guess) = languages.append_star(before, star.suffixes) else { return false };
        let closed = self.is_closed(languages, star, guess, buffers);
        if closed {
            buffers[star.buffer] = guess;
        }
        closed
    }

    /// Is every word of the guess one that was there before, or a round away from another word of the guess?
    fn is_closed(&self, languages: &mut Languages, star: &Star, guess: Language, before: &[Language]) -> bool {
        let mut reached = before[star.buffer];
        for cycle in &star.cycles {
            let mut buffers: Buffers = before.into();
            buffers[star.buffer] = guess;
            self.perform_path(languages, &cycle.edges, &mut buffers);
            let mut others = (0..before.len()).filter(|&other| other != star.buffer);
            if others.all(|other| languages.includes(buffers[other], before[other])) {
                reached = languages.union(reached, buffers[star.buffer]);
            }
        }
        languages.includes(reached, guess)
    }

    /// Performs a path on other buffer contents than those it was found with.
    pub(super) fn perform_path(&self, languages: &mut Languages, edges: &[Edge], buffers: &mut [Language]) {
        for edge in edges {
            self.perform_edge(languages, edge, buffers);
        }
    }

    pub(super) fn perform_edge(&self, languages: &mut Languages, edge: &Edge, buffers: &mut [Language]) {
        match edge {
            Edge::Move(taken) => taken.effects.iter().for_each(|effect| effect.perform(languages, buffers)),
            Edge::Star(star) => {
                self.perform_star(languages, star, buffers);
            }
        }
    }
}

fn surroundings(cell: CellId, buffer: usize, buffers: &[Language]) -> Surroundings {
    let mut others: Buffers = buffers.into();
    others[buffer] = Language::EMPTY;
    (cell, buffer, others)
}

/// How much longer a path makes the words of a buffer, at least.
fn growth(edges: &[Edge], buffer: usize) -> i64 {
    let of_effect = |effect: &BufferEffect| match *effect {
        BufferEffect::Append { buffer: b, .. } if b == buffer => 1,
        BufferEffect::Commit { buffer: b, .. } if b == buffer => -1,
        _ => 0,
    };
    let of_edge = |edge: &Edge| match edge {
        Edge::Move(taken) => taken.effects.iter().map(of_effect).sum(),
        Edge::Star(_) => 0,
    };
    edges.iter().map(of_edge).sum()
}
