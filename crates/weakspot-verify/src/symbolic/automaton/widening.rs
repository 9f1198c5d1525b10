//! Widening: a larger language out of finitely many.
//!
//! States of the minimal automaton are merged when they look alike: their words end in the same ways (where the threads
//! can rest from there on) and begin in the same ways, as far as a *depth* of letters. Merging states only adds words.
//! There are finitely many ways to look alike for a given depth, so a rising sequence of widened languages is finite: this
//! is the abstraction of abstract regular model checking (Bouajjani, Habermehl, Vojnar, CAV 2004) with finite-length
//! languages, refined by control.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::dfa::{Dfa, Nfa};
use super::{Language, Languages, Letter, Operation, Symbol};
use crate::threads::LocalId;

impl Languages {
    /// A language that includes this one, with states merged that look alike to a depth.
    pub(in crate::symbolic) fn widened(&mut self, language: Language, depth: usize) -> Language {
        self.remember(Operation::Widened(language, depth), |this| {
            let automaton = this.automaton(language);
            let mut classes = this.endings(automaton);
            for _ in 0..depth {
                let signature = |state: u32| {
                    let edges = automaton.edges(state).iter().map(|edge| (edge.0, classes[edge.1 as usize]));
                    (classes[state as usize], edges.collect::<Vec<(Symbol, u32)>>())
                };
                classes = number((0..automaton.len() as u32).map(signature));
            }
            let mut nfa = Nfa::default();
            for _ in 0..=classes.iter().copied().max().unwrap_or(0) {
                nfa.state(false);
            }
            for state in 0..automaton.len() as u32 {
                let class = classes[state as usize];
                if automaton.accepts(state) {
                    nfa.accept(class, true);
                }
                for &(symbol, target) in automaton.edges(state) {
                    nfa.edge(class, symbol, classes[target as usize]);
                }
            }
            nfa.determinise(&this.meter, &[classes[0]])
        })
    }

    /// States in classes: where the threads whose parts are not over yet can rest, all together.
    fn endings(&self, automaton: &Dfa) -> Vec<u32> {
        type Rests = BTreeSet<Vec<LocalId>>;
        let mut endings: Vec<Rests> = vec![Rests::new(); automaton.len()];
        let mut changed = true;
        while changed && self.meter.goes_on() {
            changed = false;
            for state in (0..automaton.len() as u32).rev() {
                let mut here = std::mem::take(&mut endings[state as usize]);
                let before = here.len();
                if automaton.accepts(state) {
                    here.insert(Vec::new());
                }
                for &(symbol, target) in automaton.edges(state) {
                    match self.letter(symbol) {
                        // A loop adds nothing.
                        Letter::Store(..) | Letter::Fence if target == state => {}
                        Letter::Store(..) | Letter::Fence => here.extend(endings[target as usize].iter().cloned()),
                        Letter::Rest(_, local) => here.extend(endings[target as usize].iter().map(|rests| {
                            let mut longer = vec![local];
                            longer.extend(rests);
                            longer
                        })),
                    }
                }
                changed |= here.len() != before;
                endings[state as usize] = here;
            }
        }
        number(endings.into_iter())
    }
}

/// Numbers things in the order they come, equal ones alike.
fn number<T: std::hash::Hash + Eq>(things: impl Iterator<Item = T>) -> Vec<u32> {
    let mut index: FxHashMap<T, u32> = FxHashMap::default();
    things
        .map(|thing| {
            let fresh = index.len() as u32;
            *index.entry(thing).or_insert(fresh)
        })
        .collect()
}
