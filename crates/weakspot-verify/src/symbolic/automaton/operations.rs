//! The operations on languages. Each result is computed once for its arguments.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use weakspot_model::ids::Loc;

use super::dfa::{Nfa, RawDfa};
use super::{Language, Languages, LastStores, Operation, Symbol};

/// The most states of a determinised iteration. Nothing useful has ever come of one that needs more.
const MOST_SUBSETS: usize = 400;

/// What a word has said about one location so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Last {
    /// No store to it.
    Absent,
    /// The last store to it has the value asked for.
    Right,
    /// The last store to it has another value.
    Wrong,
}

impl Languages {
    /// The language of one word.
    pub fn word(&mut self, word: &[Symbol]) -> Language {
        let raw = RawDfa::explore(&self.meter, 0, |&at: &usize| {
            (at == word.len(), word.get(at).map(|&s| (s, at + 1)).into_iter().collect())
        });
        self.intern_raw(raw)
    }

    /// `store`: every word gets one more symbol at its end.
    pub fn append(&mut self, language: Language, symbol: Symbol) -> Language {
        self.remember(Operation::Append(language, symbol), |this| {
            let mut nfa = Nfa::default();
            let automaton = this.automaton(language);
            let start = nfa.embed(automaton);
            let end = nfa.state(true);
            for state in 0..automaton.len() as u32 {
                if automaton.accepts(state) {
                    nfa.accept(start + state, false);
                    nfa.edge(start + state, symbol, end);
                }
            }
            nfa.determinise(&this.meter, &[start])
        })
    }

    /// `load`: the words in which a load of `loc` gives `value`, either because the youngest store to it says so or,
    /// if `in_memory` (memory holds that value), because there is no store to it.
    pub fn after_load(&mut self, language: Language, loc: Loc, value: i64, in_memory: bool) -> Language {
        self.remember(Operation::AfterLoad(language, loc, value, in_memory), |this| {
            let automaton = this.automaton(language);
            RawDfa::explore(&this.meter, (0, Last::Absent), |&(state, last)| {
                let accepting = automaton.accepts(state)
                    && match last {
                        Last::Absent => in_memory,
                        Last::Right => true,
                        Last::Wrong => false,
                    };
                let step = |&(symbol, target): &(Symbol, u32)| {
                    let last = match this.store(symbol) {
                        (other, _) if other != loc => last,
                        (_, stored) if stored == value => Last::Right,
                        _ => Last::Wrong,
                    };
                    (symbol, (target, last))
                };
                (accepting, automaton.edges(state).iter().map(step).collect())
            })
        })
    }

    /// What a load of `loc` can find in the buffer.
    pub fn last_stores(&mut self, language: Language, loc: Loc) -> &LastStores {
        if !self.last_stores.contains_key(&(language, loc)) {
            let found = self.find_last_stores(language, loc);
            self.last_stores.insert((language, loc), found);
        }
        &self.last_stores[&(language, loc)]
    }

    fn find_last_stores(&self, language: Language, loc: Loc) -> LastStores {
        let automaton = self.automaton(language);
        let mut found = LastStores::default();
        let mut seen: Vec<(u32, Option<i64>)> = vec![(0, None)];
        let mut index: rustc_hash::FxHashSet<(u32, Option<i64>)> = seen.iter().copied().collect();
        let mut next = 0;
        while next < seen.len() {
            let (state, last) = seen[next];
            if automaton.accepts(state) {
                match last {
                    None => found.absent = true,
                    Some(value) => found.values.push(value),
                }
            }
            for &(symbol, target) in automaton.edges(state) {
                let (other, value) = self.store(symbol);
                let key = (target, if other == loc { Some(value) } else { last });
                if index.insert(key) {
                    seen.push(key);
                }
            }
            next += 1;
        }
        found.values.sort_unstable();
        found.values.dedup();
        found
    }

    /// `commit`: the words that begin with `symbol`, without it.
    pub fn quotient(&mut self, language: Language, symbol: Symbol) -> Language {
        let Some(start) = self.automaton(language).next(0, symbol) else { return Language::EMPTY };
        self.remember(Operation::Quotient(language, symbol), |this| {
            let automaton = this.automaton(language);
            RawDfa::explore(&this.meter, start, |&state| (automaton.accepts(state), automaton.edges(state).to_vec()))
        })
    }

    /// The empty buffer alone if it is possible, else nothing: what a fence leaves.
    pub fn drained(&self, language: Language) -> Language {
        if self.has_empty_word(language) { Language::EMPTY_WORD } else { Language::EMPTY }
    }

    /// The words of either.
    pub fn union(&mut self, left: Language, right: Language) -> Language {
        if left == right || right == Language::EMPTY {
            return left;
        }
        if left == Language::EMPTY {
            return right;
        }
        let (left, right) = (left.min(right), left.max(right));
        self.remember(Operation::Union(left, right), |this| {
            let mut nfa = Nfa::default();
            let starts = [nfa.embed(this.automaton(left)), nfa.embed(this.automaton(right))];
            nfa.determinise(&this.meter, &starts)
        })
    }

    /// `prefix · repeated*`; `None` if making it deterministic takes too many states.
    pub fn append_star(&mut self, prefix: Language, repeated: Language) -> Option<Language> {
        if matches!(repeated, Language::EMPTY | Language::EMPTY_WORD) || prefix == Language::EMPTY {
            return Some(prefix);
        }
        if let Some(&known) = self.stars.get(&(prefix, repeated)) {
            return known;
        }
        let mut nfa = Nfa::default();
        let (before, round) = (self.automaton(prefix), self.automaton(repeated));
        let start = nfa.embed(before);
        let again = nfa.embed(round);
        for state in (0..before.len() as u32).filter(|&state| before.accepts(state)) {
            nfa.empty_move(start + state, again);
        }
        for state in (0..round.len() as u32).filter(|&state| round.accepts(state)) {
            nfa.empty_move(again + state, again);
        }
        let raw = nfa.determinise_up_to(&self.meter, MOST_SUBSETS, &[start]);
        let language = raw.map(|raw| self.intern_raw(raw));
        if !self.is_interrupted() {
            self.stars.insert((prefix, repeated), language);
        }
        language
    }

    /// Every word, and every word with some stores left out, each directly before another store to the same location
    /// (which may be left out in turn): of a row of stores to one location the youngest is always kept.
    pub fn thinned(&mut self, language: Language) -> Language {
        self.remember(Operation::Thinned(language), |this| {
            let automaton = this.automaton(language);
            let mut nfa = Nfa::default();
            let start = nfa.embed(automaton);
            // Inside a row: a store was left out, and the next one has to be to the same location.
            let mut inside: FxHashMap<(u32, Loc), u32> = FxHashMap::default();
            let thinnable = |state: u32| {
                automaton
                    .edges(state)
                    .iter()
                    .filter_map(|&(symbol, target)| Some((symbol, this.stored(symbol)?.0, target)))
            };
            for state in 0..automaton.len() as u32 {
                for (_, loc, _) in thinnable(state) {
                    inside.entry((state, loc)).or_insert_with(|| nfa.state(false));
                }
            }
            for state in 0..automaton.len() as u32 {
                for (symbol, loc, target) in thinnable(state) {
                    let here = inside[&(state, loc)];
                    nfa.edge(here, symbol, start + target);
                    if let Some(&there) = inside.get(&(target, loc)) {
                        nfa.empty_move(start + state, there);
                        nfa.empty_move(here, there);
                    }
                }
            }
            nfa.determinise(&this.meter, &[start])
        })
    }

    /// A shortest word of the language that [`Languages::thinned`] can thin to `word`, and which of its symbols are
    /// kept.
    pub fn thickened(&self, language: Language, word: &[Symbol]) -> Option<(Vec<Symbol>, Vec<bool>)> {
        type Place = (u32, usize, Option<Loc>);
        let automaton = self.automaton(language);
        let mut came_from: FxHashMap<Place, Option<(Place, Symbol, bool)>> = FxHashMap::default();
        let mut waiting: VecDeque<Place> = VecDeque::from([(0, 0, None)]);
        came_from.insert((0, 0, None), None);
        while let Some(place @ (state, at, row)) = waiting.pop_front() {
            if at == word.len() && row.is_none() && automaton.accepts(state) {
                return Some(spell_kept(&came_from, place));
            }
            for &(symbol, target) in automaton.edges(state) {
                let loc = self.stored(symbol).map(|store| store.0);
                if row.is_some() && row != loc {
                    continue;
                }
                let keep = (word.get(at) == Some(&symbol)).then_some(((target, at + 1, None), true));
                let leave_out = loc.map(|loc| ((target, at, Some(loc)), false));
                for (next, keeps) in keep.into_iter().chain(leave_out) {
                    if let Entry::Vacant(entry) = came_from.entry(next) {
                        entry.insert(Some((place, symbol, keeps)));
                        waiting.push_back(next);
                    }
                }
            }
        }
        None
    }

    /// The words `z` with `prefix · z ⊆ whole`: what can have been appended to all of `prefix` on the way to `whole`.
    /// Nothing if `prefix` is nothing.
    pub fn suffixes(&mut self, prefix: Language, whole: Language) -> Language {
        if prefix == Language::EMPTY {
            return Language::EMPTY;
        }
        let Some(ends) = self.states_after(prefix, whole) else { return Language::EMPTY };
        self.remember(Operation::Suffixes(prefix, whole), |this| {
            let automaton = this.automaton(whole);
            RawDfa::explore(&this.meter, ends.clone(), |states| {
                let accepting = states.iter().all(|&state| automaton.accepts(state));
                let step = |&(symbol, _): &(Symbol, u32)| {
                    let mut targets: Vec<u32> =
                        states.iter().map(|&state| automaton.next(state, symbol)).collect::<Option<_>>()?;
                    targets.sort_unstable();
                    targets.dedup();
                    Some((symbol, targets))
                };
                (accepting, automaton.edges(states[0]).iter().filter_map(step).collect())
            })
        })
    }

    /// The states of `whole`'s automaton after the words of `prefix`, sorted; `None` if one of them leads nowhere.
    fn states_after(&self, prefix: Language, whole: Language) -> Option<Vec<u32>> {
        let (prefix, whole) = (self.automaton(prefix), self.automaton(whole));
        let mut seen = vec![(0, 0)];
        let mut index: rustc_hash::FxHashSet<(u32, u32)> = seen.iter().copied().collect();
        let mut ends = Vec::new();
        let mut next = 0;
        while next < seen.len() {
            let (before, here) = seen[next];
            if prefix.accepts(before) {
                ends.push(here);
            }
            for &(symbol, target) in prefix.edges(before) {
                let key = (target, whole.next(here, symbol)?);
                if index.insert(key) {
                    seen.push(key);
                }
            }
            next += 1;
        }
        ends.sort_unstable();
        ends.dedup();
        Some(ends)
    }

    /// Is every word of `small` one of `large`?
    pub fn includes(&mut self, large: Language, small: Language) -> bool {
        if large == small || small == Language::EMPTY {
            return true;
        }
        if large == Language::EMPTY {
            return false;
        }
        if let Some(&known) = self.inclusions.get(&(large, small)) {
            return known;
        }
        let answer = self.check_inclusion(large, small);
        if !self.is_interrupted() {
            self.inclusions.insert((large, small), answer);
        }
        answer
    }

    fn check_inclusion(&self, large: Language, small: Language) -> bool {
        let (large, small) = (self.automaton(large), self.automaton(small));
        let mut seen = vec![(0, 0)];
        let mut index: rustc_hash::FxHashSet<(u32, u32)> = seen.iter().copied().collect();
        let mut next = 0;
        while next < seen.len() {
            let (in_large, in_small) = seen[next];
            if small.accepts(in_small) && !large.accepts(in_large) || !self.meter.goes_on() {
                return false;
            }
            for &(symbol, target) in small.edges(in_small) {
                let Some(other) = large.next(in_large, symbol) else { return false };
                if index.insert((other, target)) {
                    seen.push((other, target));
                }
            }
            next += 1;
        }
        true
    }

    pub(super) fn remember(&mut self, operation: Operation, compute: impl FnOnce(&Self) -> RawDfa) -> Language {
        if let Some(&known) = self.known.get(&operation) {
            return known;
        }
        let raw = compute(self);
        let language = self.intern_raw(raw);
        if !self.is_interrupted() {
            self.known.insert(operation, language);
        }
        language
    }

    pub(super) fn intern_raw(&mut self, raw: RawDfa) -> Language {
        let automaton = raw.minimal(&self.meter);
        self.intern(automaton)
    }
}

/// The word along the tree of first visits that ends in `place`, and which of its letters are kept.
pub(super) fn spell_kept<P: Copy + Eq + std::hash::Hash>(
    came_from: &FxHashMap<P, Option<(P, Symbol, bool)>>,
    place: P,
) -> (Vec<Symbol>, Vec<bool>) {
    let (mut symbols, mut kept) = (Vec::new(), Vec::new());
    let mut here = place;
    while let Some((before, symbol, keeps)) = came_from[&here] {
        symbols.push(symbol);
        kept.push(keeps);
        here = before;
    }
    symbols.reverse();
    kept.reverse();
    (symbols, kept)
}
