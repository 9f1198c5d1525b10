//! What PSO needs: stores of one thread that overtake one another.
//!
//! The part of a thread is its pending stores in the order it made them, with a letter for each store-store fence that
//! holds some back ([`Letter::Fence`]). No part begins with a fence, and no fence follows another. A store can be committed
//! if no fence and no other store to its location stand before it. Words that differ in the order of stores to different
//! locations between two fences mean the same; they are not told to be equal, which costs nothing but size.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_model::ids::{Loc, ThreadId};

use super::dfa::{Dfa, Nfa};
use super::{Language, Languages, Letter, Operation, Symbol};

/// More locations than this in one language: nothing is left out.
const MOST_LOCATIONS: usize = 16;

/// A state of the construction behind [`Languages::after_overtaking`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// In the part of an earlier thread.
    Before(u32),
    /// In the part of the thread; whether stores stand before.
    Searching(u32, bool),
    /// The store was the first of its part and is gone: a fence that comes now goes with it.
    Gone(u32),
    /// The store is gone.
    After(u32),
}

impl Languages {
    /// The stores of a thread that can be committed, ascending; some of them perhaps in no word at all.
    pub(in crate::symbolic) fn overtaking(&self, language: Language, thread: ThreadId) -> Vec<Symbol> {
        let automaton = self.automaton(language);
        let mut seen = self.part_starts(automaton, thread);
        let mut index: FxHashSet<u32> = seen.iter().copied().collect();
        let mut stores = Vec::new();
        let mut next = 0;
        while next < seen.len() {
            for &(symbol, target) in automaton.edges(seen[next]) {
                if self.stored(symbol).is_some() {
                    stores.push(symbol);
                    if index.insert(target) {
                        seen.push(target);
                    }
                }
            }
            next += 1;
        }
        stores.sort_unstable();
        stores.dedup();
        stores
    }

    /// The configurations in which `store` is the oldest store to its location of a thread and no fence is before it,
    /// without it.
    pub(in crate::symbolic) fn after_overtaking(
        &mut self,
        language: Language,
        thread: ThreadId,
        store: Symbol,
    ) -> Language {
        self.remember(Operation::Overtaking(language, thread, store), |this| {
            let automaton = this.automaton(language);
            let (loc, _) = this.store(store);
            let mut nfa = Nfa::default();
            let mut index: FxHashMap<Place, u32> = FxHashMap::default();
            let mut waiting: Vec<(Place, u32)> = Vec::new();
            let mut number = |nfa: &mut Nfa, waiting: &mut Vec<(Place, u32)>, place: Place| {
                *index.entry(place).or_insert_with(|| {
                    let accepting = matches!(place, Place::After(state) if automaton.accepts(state));
                    let fresh = nfa.state(accepting);
                    waiting.push((place, fresh));
                    fresh
                })
            };
            let first = if thread.index() == 0 { Place::Searching(0, false) } else { Place::Before(0) };
            number(&mut nfa, &mut waiting, first);
            while let Some((place, from)) = waiting.pop() {
                let (Place::Before(state) | Place::Searching(state, _) | Place::Gone(state) | Place::After(state)) =
                    place;
                for &(symbol, target) in automaton.edges(state) {
                    let (silent, there) = match (place, this.letter(symbol)) {
                        (Place::Before(_), _) if this.ends_part_before(symbol, thread) => {
                            (false, Place::Searching(target, false))
                        }
                        (Place::Before(_), _) => (false, Place::Before(target)),
                        (Place::Searching(_, passed), Letter::Store(..)) if symbol == store => {
                            (true, if passed { Place::After(target) } else { Place::Gone(target) })
                        }
                        (Place::Searching(..), Letter::Store(other, _)) if other != loc => {
                            (false, Place::Searching(target, true))
                        }
                        (Place::Searching(..), _) => continue,
                        (Place::Gone(_), Letter::Fence) => (true, Place::After(target)),
                        (Place::Gone(_) | Place::After(_), _) => (false, Place::After(target)),
                    };
                    let to = number(&mut nfa, &mut waiting, there);
                    if silent {
                        nfa.empty_move(from, to);
                    } else {
                        nfa.edge(from, symbol, to);
                    }
                }
            }
            nfa.determinise(&this.meter, &[0])
        })
    }

    /// Every word, and every word with some stores left out, each before another store to the same location with no
    /// fence between them: what [`Languages::thinned`] is where stores overtake one another.
    pub(in crate::symbolic) fn thinned_by_location(&mut self, language: Language) -> Language {
        let locations = self.locations(self.automaton(language));
        if locations.len() > MOST_LOCATIONS {
            return language;
        }
        self.remember(Operation::ThinnedByLocation(language), |this| {
            let automaton = this.automaton(language);
            let mut nfa = Nfa::default();
            // Where in the word, and the locations a store was left out to: another store to them has to come.
            let mut index: FxHashMap<(u32, u32), u32> = FxHashMap::default();
            let mut waiting = vec![((0, 0), nfa.state(automaton.accepts(0)))];
            index.insert((0, 0), 0);
            while let Some(((state, owed), from)) = waiting.pop() {
                if !this.meter.goes_on() {
                    break;
                }
                for &(symbol, target) in automaton.edges(state) {
                    let bit = this.stored(symbol).map(|(loc, _)| bit(&locations, loc));
                    let keep = match bit {
                        Some(bit) => Some((target, owed & !bit)),
                        None => (owed == 0).then_some((target, 0)),
                    };
                    let leave_out = bit.map(|bit| (target, owed | bit));
                    for (place, kept) in keep.map(|to| (to, true)).into_iter().chain(leave_out.map(|to| (to, false))) {
                        let to = *index.entry(place).or_insert_with(|| {
                            let fresh = nfa.state(place.1 == 0 && automaton.accepts(place.0));
                            waiting.push((place, fresh));
                            fresh
                        });
                        if kept {
                            nfa.edge(from, symbol, to);
                        } else {
                            nfa.empty_move(from, to);
                        }
                    }
                }
            }
            nfa.determinise(&this.meter, &[0])
        })
    }

    /// A shortest word of the language that [`Languages::thinned_by_location`] can thin to `word`, and which of its
    /// letters are kept.
    pub(in crate::symbolic) fn thickened_by_location(
        &self,
        language: Language,
        word: &[Symbol],
    ) -> Option<(Vec<Symbol>, Vec<bool>)> {
        type Place = (u32, usize, u32);
        let automaton = self.automaton(language);
        let locations = self.locations(automaton);
        let many = locations.len() > MOST_LOCATIONS;
        let mut came_from: FxHashMap<Place, Option<(Place, Symbol, bool)>> = FxHashMap::default();
        let mut waiting: VecDeque<Place> = VecDeque::from([(0, 0, 0)]);
        came_from.insert((0, 0, 0), None);
        while let Some(place @ (state, at, owed)) = waiting.pop_front() {
            if at == word.len() && owed == 0 && automaton.accepts(state) {
                return Some(super::operations::spell_kept(&came_from, place));
            }
            for &(symbol, target) in automaton.edges(state) {
                let bit = self.stored(symbol).filter(|_| !many).map(|(loc, _)| bit(&locations, loc));
                let fits = word.get(at) == Some(&symbol) && (bit.is_some() || owed == 0);
                let keep = fits.then_some(((target, at + 1, owed & !bit.unwrap_or(0)), true));
                let leave_out = bit.map(|bit| ((target, at, owed | bit), false));
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

    /// The locations stored to, ascending.
    fn locations(&self, automaton: &Dfa) -> Vec<Loc> {
        let mut all: Vec<Loc> = automaton.symbols().filter_map(|symbol| self.stored(symbol)).map(|s| s.0).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

fn bit(locations: &[Loc], loc: Loc) -> u32 {
    1 << locations.binary_search(&loc).expect("invariant: all locations are listed")
}
