//! One deterministic automaton: built from keys, trimmed, minimised, numbered canonically.
//!
//! A [`Dfa`] is partial (a missing edge rejects), trimmed (every state is reachable and leads to acceptance) and
//! minimal, and its states are numbered breadth-first along ascending symbols. So two languages are equal exactly if
//! their automata are equal as data, which is what the arena's hash table compares.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hash, Hasher};

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::Symbol;
use super::meter::Meter;

/// A canonical minimal deterministic automaton. State 0 is the start.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Dfa {
    accepting: Box<[bool]>,
    /// Where the edges of each state begin; one more entry than states.
    offsets: Box<[u32]>,
    /// Edges, ascending by symbol within each state.
    edges: Box<[(Symbol, u32)]>,
}

impl Dfa {
    /// The automaton of the empty language: one state that accepts nothing.
    pub(super) fn empty() -> Self {
        Self { accepting: Box::new([false]), offsets: Box::new([0, 0]), edges: Box::new([]) }
    }

    pub(super) fn len(&self) -> usize {
        self.accepting.len()
    }

    pub(super) fn accepts(&self, state: u32) -> bool {
        self.accepting[state as usize]
    }

    /// The edges of a state, ascending by symbol.
    pub(super) fn edges(&self, state: u32) -> &[(Symbol, u32)] {
        &self.edges[self.offsets[state as usize] as usize..self.offsets[state as usize + 1] as usize]
    }

    /// The symbols on all edges.
    pub(super) fn symbols(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.edges.iter().map(|edge| edge.0)
    }

    pub(super) fn next(&self, state: u32, symbol: Symbol) -> Option<u32> {
        let edges = self.edges(state);
        edges.binary_search_by_key(&symbol, |edge| edge.0).ok().map(|at| edges[at].1)
    }

    pub(super) fn run(&self, word: &[Symbol]) -> Option<u32> {
        word.iter().try_fold(0, |state, &symbol| self.next(state, symbol))
    }

    pub(super) fn bytes(&self) -> usize {
        self.accepting.len() + self.offsets.len() * 4 + self.edges.len() * size_of::<(Symbol, u32)>()
    }
}

/// A deterministic automaton as it comes out of a construction: possibly with useless or equivalent states.
#[derive(Debug, Default)]
pub(super) struct RawDfa {
    accepting: Vec<bool>,
    edges: Vec<Vec<(Symbol, u32)>>,
}

impl RawDfa {
    /// Visits every key reachable from `start`. `visit` says whether a key accepts and where its symbols lead (each
    /// symbol once).
    pub(super) fn explore<K: Clone + Eq + Hash>(
        meter: &Meter,
        start: K,
        visit: impl FnMut(&K) -> (bool, Vec<(Symbol, K)>),
    ) -> Self {
        Self::explore_up_to(meter, usize::MAX, start, visit).expect("invariant: memory ends before that many keys")
    }

    /// The same, but gives up when there are more than `most` keys.
    fn explore_up_to<K: Clone + Eq + Hash>(
        meter: &Meter,
        most: usize,
        start: K,
        mut visit: impl FnMut(&K) -> (bool, Vec<(Symbol, K)>),
    ) -> Option<Self> {
        let mut raw = Self::default();
        let mut index: HashTable<u32> = HashTable::new();
        let mut keys = vec![start];
        index.insert_unique(FxBuildHasher.hash_one(&keys[0]), 0, |_| 0);
        let mut next = 0;
        while next < keys.len() {
            let (accepting, successors) = if meter.goes_on() { visit(&keys[next]) } else { Default::default() };
            let mut edges: Vec<(Symbol, u32)> = Vec::with_capacity(successors.len());
            for (symbol, key) in successors {
                let hash = FxBuildHasher.hash_one(&key);
                let target = index.find(hash, |&known| keys[known as usize] == key).copied().unwrap_or_else(|| {
                    keys.push(key);
                    let fresh = (keys.len() - 1) as u32;
                    index.insert_unique(hash, fresh, |&known| FxBuildHasher.hash_one(&keys[known as usize]));
                    fresh
                });
                edges.push((symbol, target));
            }
            edges.sort_unstable();
            meter
                .spend(2 * size_of::<K>() + size_of::<Vec<(Symbol, u32)>>() + edges.len() * size_of::<(Symbol, u32)>());
            raw.accepting.push(accepting);
            raw.edges.push(edges);
            next += 1;
            if keys.len() > most {
                return None;
            }
        }
        Some(raw)
    }

    /// The canonical minimal automaton of the same language.
    pub(super) fn minimal(mut self, meter: &Meter) -> Dfa {
        let useful = self.useful();
        if !useful[0] {
            return Dfa::empty();
        }
        for edges in &mut self.edges {
            edges.retain(|&(_, target)| useful[target as usize]);
        }
        let classes = self.equivalent(meter, &useful);
        self.number(&classes)
    }

    /// The states from which an accepting state can be reached.
    fn useful(&self) -> Vec<bool> {
        let mut sources: Vec<Vec<u32>> = vec![Vec::new(); self.accepting.len()];
        for (source, edges) in self.edges.iter().enumerate() {
            for &(_, target) in edges {
                sources[target as usize].push(source as u32);
            }
        }
        let mut useful = self.accepting.clone();
        let mut waiting: Vec<u32> = (0..useful.len()).filter(|&s| useful[s]).map(|s| s as u32).collect();
        while let Some(state) = waiting.pop() {
            for &source in &sources[state as usize] {
                if !useful[source as usize] {
                    useful[source as usize] = true;
                    waiting.push(source);
                }
            }
        }
        useful
    }

    /// Moore's partition refinement: the class of each useful state; useless states are class 0 and never looked at.
    fn equivalent(&self, meter: &Meter, useful: &[bool]) -> Vec<u32> {
        let mut classes: Vec<u32> = self.accepting.iter().map(|&accepting| u32::from(accepting)).collect();
        let mut refined = classes.clone();
        let mut index: HashTable<u32> = HashTable::new();
        let mut count = 0;
        loop {
            index.clear();
            let hash = |state: u32| {
                let mut hasher = FxBuildHasher.build_hasher();
                classes[state as usize].hash(&mut hasher);
                for &(symbol, target) in &self.edges[state as usize] {
                    (symbol, classes[target as usize]).hash(&mut hasher);
                }
                hasher.finish()
            };
            let alike = |one: u32, other: u32| {
                let (left, right) = (&self.edges[one as usize], &self.edges[other as usize]);
                classes[one as usize] == classes[other as usize]
                    && left.len() == right.len()
                    && left.iter().zip(right).all(|(l, r)| l.0 == r.0 && classes[l.1 as usize] == classes[r.1 as usize])
            };
            let mut fresh = 0;
            for state in (0..classes.len() as u32).filter(|&state| useful[state as usize]) {
                if !meter.goes_on() {
                    return classes;
                }
                let hash_here = hash(state);
                let known = index.find(hash_here, |&other| alike(state, other)).copied();
                if known.is_none() {
                    index.insert_unique(hash_here, state, |&other| hash(other));
                    fresh += 1;
                }
                refined[state as usize] = known.map_or(fresh - 1, |other| refined[other as usize]);
            }
            let stable = fresh == count;
            count = fresh;
            std::mem::swap(&mut classes, &mut refined);
            if stable {
                return classes;
            }
        }
    }

    /// One state for each class, numbered breadth-first from the start.
    fn number(&self, classes: &[u32]) -> Dfa {
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut order = vec![0_usize];
        numbers.insert(classes[0], 0);
        let (mut accepting, mut offsets, mut edges) = (Vec::new(), vec![0_u32], Vec::new());
        let mut next = 0;
        while next < order.len() {
            let state = order[next];
            accepting.push(self.accepting[state]);
            for &(symbol, target) in &self.edges[state] {
                let number = *numbers.entry(classes[target as usize]).or_insert_with(|| {
                    order.push(target as usize);
                    (order.len() - 1) as u32
                });
                edges.push((symbol, number));
            }
            offsets.push(edges.len() as u32);
            next += 1;
        }
        Dfa { accepting: accepting.into(), offsets: offsets.into(), edges: edges.into() }
    }
}

/// A nondeterministic automaton with empty moves, for the constructions that need one.
#[derive(Debug, Default)]
pub(super) struct Nfa {
    accepting: Vec<bool>,
    edges: Vec<Vec<(Symbol, u32)>>,
    empty_moves: Vec<Vec<u32>>,
    /// Scratch space of the closure: all false between calls.
    seen: RefCell<Vec<bool>>,
}

impl Nfa {
    pub(super) fn state(&mut self, accepting: bool) -> u32 {
        self.accepting.push(accepting);
        self.edges.push(Vec::new());
        self.empty_moves.push(Vec::new());
        (self.accepting.len() - 1) as u32
    }

    pub(super) fn edge(&mut self, from: u32, symbol: Symbol, to: u32) {
        self.edges[from as usize].push((symbol, to));
    }

    pub(super) fn empty_move(&mut self, from: u32, to: u32) {
        self.empty_moves[from as usize].push(to);
    }

    pub(super) fn accept(&mut self, state: u32, accepting: bool) {
        self.accepting[state as usize] = accepting;
    }

    /// Copies an automaton in; gives the number its start got. Accepting states stay accepting.
    pub(super) fn embed(&mut self, dfa: &Dfa) -> u32 {
        let base = self.accepting.len() as u32;
        for state in 0..dfa.len() as u32 {
            self.state(dfa.accepts(state));
        }
        for state in 0..dfa.len() as u32 {
            for &(symbol, target) in dfa.edges(state) {
                self.edge(base + state, symbol, base + target);
            }
        }
        base
    }

    /// The subset construction.
    pub(super) fn determinise(&self, meter: &Meter, start: &[u32]) -> RawDfa {
        self.determinise_up_to(meter, usize::MAX, start).expect("invariant: memory ends before that many subsets")
    }

    /// The same, but gives up when there are more than `most` subsets.
    pub(super) fn determinise_up_to(&self, meter: &Meter, most: usize, start: &[u32]) -> Option<RawDfa> {
        RawDfa::explore_up_to(meter, most, self.closure(start.to_vec()), |subset| {
            meter.spend(size_of_val(&subset[..]));
            let accepting = subset.iter().any(|&state| self.accepting[state as usize]);
            let mut targets: Vec<(Symbol, u32)> =
                subset.iter().flat_map(|&state| self.edges[state as usize].iter().copied()).collect();
            targets.sort_unstable();
            let groups = targets.chunk_by(|a, b| a.0 == b.0);
            let successors = groups.map(|group| (group[0].0, self.closure(group.iter().map(|edge| edge.1).collect())));
            (accepting, successors.collect())
        })
    }

    /// Everything reachable by empty moves, sorted.
    fn closure(&self, mut subset: Vec<u32>) -> Vec<u32> {
        subset.sort_unstable();
        subset.dedup();
        if subset.iter().all(|&state| self.empty_moves[state as usize].is_empty()) {
            return subset;
        }
        let mut seen = self.seen.borrow_mut();
        seen.resize(self.accepting.len(), false);
        for &state in &subset {
            seen[state as usize] = true;
        }
        let mut next = 0;
        while next < subset.len() {
            for &target in &self.empty_moves[subset[next] as usize] {
                if !std::mem::replace(&mut seen[target as usize], true) {
                    subset.push(target);
                }
            }
            next += 1;
        }
        for &state in &subset {
            seen[state as usize] = false;
        }
        subset.sort_unstable();
        subset
    }
}
