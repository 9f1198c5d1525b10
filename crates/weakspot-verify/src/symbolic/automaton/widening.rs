//! Widening: a larger language out of finitely many.
//!
//! States of the minimal automaton are merged when they look alike: their words end in the same ways (where the threads
//! can rest from there on) and begin in the same ways, as far as a *depth* of letters. Merging states only adds words.
//! There are finitely many ways to look alike for a given depth, so a rising sequence of widened languages is finite: this
//! is the abstraction of abstract regular model checking (Bouajjani, Habermehl, Vojnar, CAV 2004) with finite-length
//! languages, refined by control.

use rustc_hash::{FxHashMap, FxHashSet};

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
        let mut endings =
            Endings { languages: self, automaton, known: FxHashMap::default(), index: FxHashMap::default() };
        (0..automaton.len() as u32).map(|state| endings.class(vec![state])).collect()
    }
}

/// Numbers sets of endings: a minimal automaton of them, from the end to the start.
struct Endings<'a> {
    languages: &'a Languages,
    automaton: &'a Dfa,
    /// The class of a set of states, sorted.
    known: FxHashMap<Vec<u32>, u32>,
    /// Whether nobody is left, and the class after each place where the next thread can rest, ascending.
    index: FxHashMap<(bool, Vec<(LocalId, u32)>), u32>,
}

impl Endings<'_> {
    /// The class of what the words from any of these states end with.
    fn class(&mut self, states: Vec<u32>) -> u32 {
        if let Some(&known) = self.known.get(&states) {
            return known;
        }
        if !self.languages.meter.goes_on() {
            return 0;
        }
        let accepts = states.iter().any(|&state| self.automaton.accepts(state));
        let mut rests: Vec<(LocalId, u32)> = Vec::new();
        let mut seen = states.clone();
        let mut index: FxHashSet<u32> = seen.iter().copied().collect();
        let mut next = 0;
        while next < seen.len() {
            for &(symbol, target) in self.automaton.edges(seen[next]) {
                match self.languages.letter(symbol) {
                    Letter::Rest(_, local) => rests.push((local, target)),
                    Letter::Store(..) | Letter::Fence if index.insert(target) => seen.push(target),
                    Letter::Store(..) | Letter::Fence => {}
                }
            }
            next += 1;
        }
        rests.sort_unstable();
        rests.dedup();
        let groups = rests.chunk_by(|a, b| a.0 == b.0);
        let after = groups.map(|group| (group[0].0, self.class(group.iter().map(|rest| rest.1).collect()))).collect();
        let fresh = self.index.len() as u32;
        let class = *self.index.entry((accepts, after)).or_insert(fresh);
        self.known.insert(states, class);
        class
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
