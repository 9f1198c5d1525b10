//! Buffer automata (paper, Sec. 3): sets of store-buffer contents as regular languages.
//!
//! A word is the content of a store buffer, oldest store first; a [`Symbol`] is one store (location, value). A
//! language is held as its minimal deterministic automaton, and [`Languages`] keeps each automaton once: equal
//! languages are the same [`Language`]. So comparing costs nothing, and the results of the operations are remembered by
//! their arguments' ids.
//!
//! | paper | here |
//! |---|---|
//! | Definition 1, buffer automaton | [`Language`], an index into [`Languages`] |
//! | store: `L(A) · {(m, d)}` | [`Languages::append`] |
//! | load: `L₁ ∪ L₂` or `L₁` | [`Languages::after_load`]; which `d` can succeed: [`Languages::last_stores`] |
//! | commit: `first(L)`, `suffix¹(L ∩ (m, α)·Σ*)` | [`Languages::first`], [`Languages::quotient`] |
//! | state inclusion, condition 2 | [`Languages::includes`] |
//! | `L · (W ∪ {w})*` of the acceleration | [`Languages::append_star`], [`Languages::suffixes`] |
//! | – (stores overwritten at once) | [`Languages::thinned`], [`Languages::thickened`] |
//!
//! The formula the paper prints for `L₁` excludes the wrong set of symbols: after `(m, d)` there may be stores to every
//! location *except* `m`. That is what is meant and what is done here.
//!
//! Deliberately absent: complement, and every operation no engine asks for.

mod configurations;
mod dfa;
mod meter;
mod operations;
mod overtaking;
#[cfg(test)]
mod tests;
mod widening;

use std::collections::VecDeque;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::task::{Budget, Limit};

pub(super) use self::configurations::{Configuration, Resting, Solo, SoloStep};
use self::dfa::Dfa;
use self::meter::Meter;
use crate::threads::LocalId;

/// A letter: index into the alphabet of [`Languages`]. In a buffer automaton every letter is a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(pub u32);

/// What a symbol stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Letter {
    /// A pending store.
    Store(Loc, i64),
    /// A store-store fence between pending stores (PSO).
    Fence,
    /// Where a thread rests; ends its part of a configuration (see [`super::configurations`]).
    Rest(ThreadId, LocalId),
}

/// A set of buffer contents: index into [`Languages`]. Equal ids mean equal sets and the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Language(pub u32);

impl Language {
    /// No content at all.
    pub const EMPTY: Self = Self(0);
    /// The empty buffer alone.
    pub const EMPTY_WORD: Self = Self(1);
}

/// What the youngest store to one location can be, over all words of a language.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LastStores {
    /// Its possible values, ascending.
    pub values: Vec<i64>,
    /// Some word has no store to the location.
    pub absent: bool,
}

/// An operation and its arguments, for the table of known results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Append(Language, Symbol),
    AfterLoad(Language, Loc, i64, bool),
    Quotient(Language, Symbol),
    Union(Language, Language),
    Suffixes(Language, Language),
    Thinned(Language),
    Commit(Language, ThreadId, Symbol),
    Widened(Language, usize),
    Overtaking(Language, ThreadId, Symbol),
    ThinnedByLocation(Language),
    Controls(Language),
}

/// The arena of languages over one alphabet.
#[derive(Debug)]
pub struct Languages {
    letters: Vec<Letter>,
    symbols: FxHashMap<Letter, Symbol>,
    automata: Vec<Dfa>,
    index: HashTable<Language>,
    known: FxHashMap<Operation, Language>,
    /// Iterations; `None` for one that is too large.
    stars: FxHashMap<(Language, Language), Option<Language>>,
    inclusions: FxHashMap<(Language, Language), bool>,
    last_stores: FxHashMap<(Language, Loc), LastStores>,
    bytes: usize,
    /// Stops an operation that takes too long.
    meter: Meter,
}

impl Default for Languages {
    fn default() -> Self {
        Self::new()
    }
}

impl Languages {
    /// Holds [`Language::EMPTY`] and [`Language::EMPTY_WORD`].
    pub fn new() -> Self {
        let mut languages = Self {
            letters: Vec::new(),
            symbols: FxHashMap::default(),
            automata: Vec::new(),
            index: HashTable::new(),
            known: FxHashMap::default(),
            stars: FxHashMap::default(),
            inclusions: FxHashMap::default(),
            last_stores: FxHashMap::default(),
            bytes: 0,
            meter: Meter::default(),
        };
        languages.intern(Dfa::empty());
        let empty_word = languages.word(&[]);
        debug_assert_eq!(empty_word, Language::EMPTY_WORD);
        languages
    }

    /// From now on operations stop when the budget's time or memory is over. What they give then is worthless:
    /// [`Languages::is_interrupted`] says so.
    pub fn limit(&mut self, budget: &Budget) {
        self.meter = Meter::new(budget);
    }

    /// From now on operations take as long as they take.
    pub fn unlimit(&mut self) {
        self.meter = Meter::default();
    }

    /// Was an operation stopped because time or memory is over?
    pub fn is_interrupted(&self) -> bool {
        self.interruption().is_some()
    }

    /// Why an operation was stopped, if one was.
    pub fn interruption(&self) -> Option<Limit> {
        self.meter.stopped()
    }

    /// The symbol of a store.
    pub fn symbol(&mut self, loc: Loc, value: i64) -> Symbol {
        self.symbol_of(Letter::Store(loc, value))
    }

    /// The symbol of a letter.
    pub fn symbol_of(&mut self, letter: Letter) -> Symbol {
        let fresh = Symbol(self.letters.len() as u32);
        let symbol = *self.symbols.entry(letter).or_insert(fresh);
        if symbol == fresh {
            self.letters.push(letter);
        }
        symbol
    }

    /// The letter a symbol stands for.
    pub fn letter(&self, symbol: Symbol) -> Letter {
        self.letters[symbol.0 as usize]
    }

    /// The store a symbol stands for.
    pub fn store(&self, symbol: Symbol) -> (Loc, i64) {
        match self.letter(symbol) {
            Letter::Store(loc, value) => (loc, value),
            Letter::Rest(..) | Letter::Fence => unreachable!("invariant: buffers hold stores"),
        }
    }

    /// The store a symbol stands for, if it stands for one.
    pub fn stored(&self, symbol: Symbol) -> Option<(Loc, i64)> {
        if let Letter::Store(loc, value) = self.letter(symbol) { Some((loc, value)) } else { None }
    }

    /// Is the empty buffer one of the contents?
    pub fn has_empty_word(&self, language: Language) -> bool {
        self.automaton(language).accepts(0)
    }

    /// Is this word one of the contents?
    pub fn contains(&self, language: Language, word: &[Symbol]) -> bool {
        let automaton = self.automaton(language);
        automaton.run(word).is_some_and(|state| automaton.accepts(state))
    }

    /// The first symbols of the words, ascending: what can be committed.
    pub fn first(&self, language: Language) -> impl Iterator<Item = Symbol> + '_ {
        self.automaton(language).edges(0).iter().map(|edge| edge.0)
    }

    /// Are all stores of all words to the same location?
    pub fn has_one_location(&self, language: Language) -> bool {
        let automaton = self.automaton(language);
        let mut locations = automaton.symbols().map(|symbol| self.store(symbol).0);
        let first = locations.next();
        locations.all(|other| Some(other) == first)
    }

    /// A word of least length (the first of them in the order of symbols); `None` if there is none.
    pub fn shortest(&self, language: Language) -> Option<Vec<Symbol>> {
        if language == Language::EMPTY {
            return None;
        }
        let automaton = self.automaton(language);
        let mut came_from: Vec<Option<(u32, Symbol)>> = vec![None; automaton.len()];
        let mut waiting = VecDeque::from([0]);
        while let Some(state) = waiting.pop_front() {
            if automaton.accepts(state) {
                return Some(spell(&came_from, state));
            }
            for &(symbol, target) in automaton.edges(state) {
                if target != 0 && came_from[target as usize].is_none() {
                    came_from[target as usize] = Some((state, symbol));
                    waiting.push_back(target);
                }
            }
        }
        unreachable!("invariant: automata are trimmed, so a nonempty language accepts somewhere")
    }

    /// How many languages there are.
    pub fn len(&self) -> usize {
        self.automata.len()
    }

    /// Never: the two constants are always there.
    pub fn is_empty(&self) -> bool {
        self.automata.is_empty()
    }

    /// States of the minimal automaton of a language.
    pub fn size(&self, language: Language) -> usize {
        self.automaton(language).len()
    }

    /// Bytes held by the tables.
    pub fn bytes(&self) -> usize {
        self.bytes
            + self.automata.capacity() * size_of::<Dfa>()
            + self.known.capacity() * (size_of::<(Operation, Language)>() + 1)
            + self.stars.capacity() * (size_of::<((Language, Language), Option<Language>)>() + 1)
            + self.inclusions.capacity() * (size_of::<((Language, Language), bool)>() + 1)
            + self.last_stores.capacity() * (size_of::<((Language, Loc), LastStores)>() + 1)
    }

    fn automaton(&self, language: Language) -> &Dfa {
        &self.automata[language.0 as usize]
    }

    /// Finds or adds an automaton.
    fn intern(&mut self, automaton: Dfa) -> Language {
        self.meter.settle(self.bytes);
        let hash = FxBuildHasher.hash_one(&automaton);
        let automata = &self.automata;
        if let Some(&known) = self.index.find(hash, |id| automata[id.0 as usize] == automaton) {
            return known;
        }
        let language =
            Language(u32::try_from(self.automata.len()).expect("invariant: memory ends before languages do"));
        self.bytes += automaton.bytes();
        self.automata.push(automaton);
        let automata = &self.automata;
        self.index.insert_unique(hash, language, |id| FxBuildHasher.hash_one(&automata[id.0 as usize]));
        language
    }
}

/// The word along the tree of first visits that ends in `state`.
fn spell(came_from: &[Option<(u32, Symbol)>], mut state: u32) -> Vec<Symbol> {
    let mut word = Vec::new();
    while let Some((previous, symbol)) = came_from[state as usize] {
        word.push(symbol);
        state = previous;
    }
    word.reverse();
    word
}
