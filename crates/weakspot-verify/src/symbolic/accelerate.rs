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
//! # Stores that are overwritten at once
//! Let `v` be a buffer content `w` with some stores left out, each directly before another store to the same location;
//! write `v ≼ w`. Whatever can happen with `v` in the buffer can happen with `w`: a commit of a store of `v` is matched
//! by committing, without a break, the stores left out before it and then that store, after which memory is the same;
//! loads find the same youngest stores; `v` is empty exactly if `w` is; and a store appended to both keeps `v ≼ w`. So a
//! state may be given all contents that are `≼` one it has ([`thin`]): whatever can go wrong then could go wrong before,
//! and [`super::witness`] builds the execution with the commits put back in. The languages get simpler (every word over
//! two values in place of all the ways to alternate between them), and more states are included in others.
//!
//! # Cycles that make several buffers grow
//! Under PSO a loop that stores to two locations makes two buffers grow in step, and pairs of contents in step are not a
//! product of languages. But if the contents `≼`-rise, the product is what there is up to `≼`: let `Rₙ` be what `n` rounds
//! make of `L` in one of the buffers, let the cycle not commit from it, and let `L ⊆ thin(R₁)`. Then `Rₙ ⊆ thin(Rₘ)` for
//! all `n ≤ m`, by induction on `n`, since the cycle's stores and loads respect `≼`. So if each buffer's guess is made of
//! words of some `Rₙ` (the inclusion above, for each buffer by itself), any combination of words is `≼` the contents after
//! as many rounds as the most demanding of them needs ([`Accelerator::is_rising`]).
//!
//! | paper | here |
//! |---|---|
//! | cycle condition 1: identical but for one buffer | [`Accelerator::accelerate`]; several, if they rise |
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
    /// The buffers that grow, and what one round appends to each. More than one only if there is one cycle.
    pub(super) grows: Vec<(usize, Language)>,
    pub(super) cycles: Vec<Rc<Cycle>>,
}

/// No more cycles than this are kept for one cell and buffer.
const MOST_CYCLES: usize = 12;

/// Cycles that commit from the buffer they make grow are tried up to this length only: longer ones are dear to check and
/// hardly ever pass.
const LONGEST_COMMITTING: usize = 40;

/// Languages with larger automata are not accelerated: repeating a path on them takes longer than it is worth.
const LARGEST_ACCELERATED: usize = 200;

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
    /// Tries to accelerate the cycle of `edges` from `ancestor` to `buffers`, states of the same cell.
    pub(super) fn accelerate(
        &mut self,
        languages: &mut Languages,
        cell: CellId,
        ancestor: &[Language],
        buffers: &[Language],
        edges: impl FnOnce() -> Vec<Edge>,
    ) -> Option<(Rc<Star>, Buffers)> {
        let different = Self::promising(languages, ancestor, buffers)?;
        let edges = edges();
        if different.iter().any(|&buffer| growth(&edges, buffer) <= 0) {
            return None;
        }
        let may_commit = different.len() == 1 && edges.len() <= LONGEST_COMMITTING;
        if !may_commit && different.iter().any(|&buffer| commits(&edges, buffer)) {
            return None;
        }
        let mut exact: Buffers = ancestor.into();
        self.perform_path(languages, &edges, &mut exact);
        let grow = |languages: &mut Languages, buffer: usize| {
            let suffixes = languages.suffixes(ancestor[buffer], exact[buffer]);
            (!nothing(suffixes)).then_some((buffer, suffixes))
        };
        let grows: Vec<(usize, Language)> = different.iter().map(|&b| grow(languages, b)).collect::<Option<_>>()?;
        let cycle = Rc::new(Cycle { edges, suffixes: grows[0].1 });
        let mut guesses = vec![Star { grows, cycles: vec![Rc::clone(&cycle)] }];
        if let [buffer] = different[..] {
            guesses.insert(0, self.with_known(languages, cell, buffer, ancestor, &cycle));
        }
        for star in guesses {
            let mut after: Buffers = ancestor.into();
            if !self.perform_star(languages, &star, &mut after) {
                continue;
            }
            thin(languages, &mut after);
            if different.iter().all(|&buffer| languages.includes(after[buffer], buffers[buffer])) {
                self.accepted += 1;
                if let [buffer] = different[..] {
                    self.keep(cell, buffer, ancestor, &cycle);
                }
                return Some((Rc::new(star), after));
            }
        }
        None
    }

    /// The buffers in which two states differ, if something can have been appended to each, and, if they are several,
    /// nothing was lost.
    fn promising(languages: &mut Languages, ancestor: &[Language], buffers: &[Language]) -> Option<Vec<usize>> {
        let different: Vec<usize> = (0..buffers.len()).filter(|&buffer| ancestor[buffer] != buffers[buffer]).collect();
        let several = different.len() > 1;
        let grown = |&buffer: &usize| {
            languages.size(buffers[buffer]) <= LARGEST_ACCELERATED
                && !nothing(languages.suffixes(ancestor[buffer], buffers[buffer]))
                && (!several || languages.includes(buffers[buffer], ancestor[buffer]))
        };
        different.iter().all(grown).then_some(different)
    }

    /// The new cycle together with those known for the cell.
    fn with_known(
        &self,
        languages: &mut Languages,
        cell: CellId,
        buffer: usize,
        buffers: &[Language],
        cycle: &Rc<Cycle>,
    ) -> Star {
        let mut cycles = self.cycles.get(&surroundings(cell, buffer, buffers)).cloned().unwrap_or_default();
        cycles.push(Rc::clone(cycle));
        let suffixes = cycles.iter().fold(Language::EMPTY, |all, one| languages.union(all, one.suffixes));
        Star { grows: vec![(buffer, suffixes)], cycles }
    }

    fn keep(&mut self, cell: CellId, buffer: usize, buffers: &[Language], cycle: &Rc<Cycle>) {
        let known = self.cycles.entry(surroundings(cell, buffer, buffers)).or_default();
        if known.len() < MOST_CYCLES {
            known.push(Rc::clone(cycle));
        }
    }

    /// Repeats the cycles of a star any number of times; leaves the buffers alone and says so if that is not exact.
    pub(super) fn perform_star(&self, languages: &mut Languages, star: &Star, buffers: &mut [Language]) -> bool {
        let mut guess: Buffers = (&*buffers).into();
        for &(buffer, suffixes) in &star.grows {
            let Some(iterated) = languages.append_star(buffers[buffer], suffixes) else { return false };
            guess[buffer] = iterated;
        }
        if star.grows.len() > 1 && !self.is_rising(languages, star, buffers) {
            return false;
        }
        let closed = self.is_closed(languages, star, &guess, buffers);
        if closed {
            buffers.copy_from_slice(&guess);
        }
        closed
    }

    /// Is every content there was before simulated by one that is there after a round?
    fn is_rising(&self, languages: &mut Languages, star: &Star, before: &[Language]) -> bool {
        let mut after: Buffers = before.into();
        self.perform_path(languages, &star.cycles[0].edges, &mut after);
        thin(languages, &mut after);
        star.grows.iter().all(|&(buffer, _)| languages.includes(after[buffer], before[buffer]))
    }

    /// Is every word of the guess one that was there before, or a round away from another word of the guess?
    fn is_closed(&self, languages: &mut Languages, star: &Star, guess: &[Language], before: &[Language]) -> bool {
        let mut reached: Buffers = before.into();
        for cycle in &star.cycles {
            let mut buffers: Buffers = guess.into();
            self.perform_path(languages, &cycle.edges, &mut buffers);
            let grows = |buffer: usize| star.grows.iter().any(|grown| grown.0 == buffer);
            let mut others = (0..before.len()).filter(|&other| !grows(other));
            if others.all(|other| languages.includes(buffers[other], before[other])) {
                for &(buffer, _) in &star.grows {
                    reached[buffer] = languages.union(reached[buffer], buffers[buffer]);
                }
            }
        }
        star.grows.iter().all(|&(buffer, _)| languages.includes(reached[buffer], guess[buffer]))
    }

    /// Performs a path on other buffer contents than those it was found with. Nothing is thinned on the way.
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

/// Can nothing have been appended?
fn nothing(suffixes: Language) -> bool {
    matches!(suffixes, Language::EMPTY | Language::EMPTY_WORD)
}

/// Adds what is simulated by the contents that are there; see the module's head. Buffers with stores to several locations
/// are left alone: it would be sound there too, but gives more different languages than it saves.
pub(super) fn thin(languages: &mut Languages, buffers: &mut [Language]) {
    for buffer in buffers {
        if languages.has_one_location(*buffer) {
            *buffer = languages.thinned(*buffer);
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

/// Does a path commit from a buffer?
fn commits(edges: &[Edge], buffer: usize) -> bool {
    edges.iter().any(|edge| match edge {
        Edge::Move(taken) => {
            taken.effects.iter().any(|effect| matches!(*effect, BufferEffect::Commit { buffer: b, .. } if b == buffer))
        }
        Edge::Star(star) => star.cycles.iter().any(|cycle| commits(&cycle.edges, buffer)),
    })
}
