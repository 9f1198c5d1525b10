//! Languages of configurations: what all threads together can look like while memory is what it is.
//!
//! A [`Configuration`] is written as one word: the first thread's pending stores, oldest first, then a letter for where
//! it rests, then the second thread's stores, and so on. A regular language of such words relates the buffers and control
//! points of all threads to one another; it need not be a product. Every operation of [`super::super::relation`] is a
//! rational transduction of the part of one thread, so regular languages stay regular and nothing is lost or added.
//!
//! The parts need no separators: the letter a thread rests at ends its part, and names the thread.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_model::ids::{Loc, ThreadId};

use super::dfa::{Dfa, Nfa, RawDfa};
use super::{Language, Languages, Letter, Operation, Symbol};
use crate::threads::LocalId;

/// One word: the pending stores of each thread, oldest first, and where it rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::symbolic) struct Configuration(pub(in crate::symbolic) Vec<(VecDeque<Symbol>, LocalId)>);

/// What one thread can do alone while nothing changes memory. A *view* is all that matters of its buffer.
pub(in crate::symbolic) trait Solo {
    /// The view of an empty buffer.
    fn start(&mut self) -> u32;
    /// The view after one more letter.
    fn read(&mut self, view: u32, letter: Letter) -> u32;
    /// The steps of the thread when it rests at `local`.
    fn steps(&mut self, view: u32, local: LocalId) -> Vec<SoloStep>;
}

/// A step a thread takes alone.
#[derive(Debug, Clone, Copy)]
pub(in crate::symbolic) struct SoloStep {
    /// What it appends to its buffer.
    pub(in crate::symbolic) append: Option<Letter>,
    /// Where it rests then.
    pub(in crate::symbolic) to: LocalId,
    /// The choice it makes.
    pub(in crate::symbolic) choice: i64,
    /// It wakes without having been notified.
    pub(in crate::symbolic) wakes: bool,
}

/// How a thread rests that can do nothing while its buffer is empty and nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::symbolic) enum Resting {
    /// It has ended.
    Ended,
    /// It runs for ever without an event.
    Spinning,
    /// It waits for another thread.
    Stuck,
}

/// A state of the construction behind [`Languages::after_solo`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// In the part of an earlier thread.
    Before(u32),
    /// In the thread's buffer.
    Reading(u32, u32),
    /// The thread has run: the rest of the word, the view, where it rests.
    Running(u32, u32, LocalId),
    /// In the part of a later thread.
    After(u32),
}

/// Numbers the places of a construction as states of an automaton.
#[derive(Default)]
struct Places {
    nfa: Nfa,
    index: FxHashMap<Place, u32>,
    waiting: Vec<(u32, Place)>,
}

impl Places {
    fn number(&mut self, place: Place, accepting: bool) -> u32 {
        if let Some(&known) = self.index.get(&place) {
            return known;
        }
        let number = self.nfa.state(accepting);
        self.index.insert(place, number);
        self.waiting.push((number, place));
        number
    }
}

impl Languages {
    /// The language of one configuration.
    pub(in crate::symbolic) fn configuration(&mut self, configuration: &Configuration) -> Language {
        let word = self.spelling(configuration);
        self.word(&word)
    }

    fn spelling(&mut self, configuration: &Configuration) -> Vec<Symbol> {
        let mut word = Vec::new();
        for (thread, (stores, local)) in configuration.0.iter().enumerate() {
            word.extend(stores);
            word.push(self.symbol_of(Letter::Rest(ThreadId::new(thread), *local)));
        }
        word
    }

    /// Is this one of the configurations?
    pub(in crate::symbolic) fn has_configuration(&mut self, language: Language, configuration: &Configuration) -> bool {
        let word = self.spelling(configuration);
        self.contains(language, &word)
    }

    /// Replaces a configuration that is not in the language by a thicker one that is, and says for each thread which
    /// stores are kept (see [`Languages::thickened`]).
    pub(in crate::symbolic) fn thicken(
        &mut self,
        language: Language,
        by_location: bool,
        configuration: &mut Configuration,
    ) -> Option<Vec<Vec<bool>>> {
        let word = self.spelling(configuration);
        let (thick, kept) =
            if by_location { self.thickened_by_location(language, &word)? } else { self.thickened(language, &word)? };
        let mut all = Vec::new();
        let mut flags = Vec::new();
        let mut stores = VecDeque::new();
        for (symbol, kept) in thick.into_iter().zip(kept) {
            match self.letter(symbol) {
                Letter::Store(..) | Letter::Fence => {
                    stores.push_back(symbol);
                    flags.push(kept);
                }
                Letter::Rest(thread, _) => {
                    configuration.0[thread.index()].0 = std::mem::take(&mut stores);
                    all.push(std::mem::take(&mut flags));
                }
            }
        }
        Some(all)
    }

    /// A shortest configuration; `None` if there is none.
    pub(in crate::symbolic) fn shortest_configuration(&self, language: Language) -> Option<Configuration> {
        let mut parts = Vec::new();
        let mut stores = VecDeque::new();
        for symbol in self.shortest(language)? {
            match self.letter(symbol) {
                Letter::Store(..) | Letter::Fence => stores.push_back(symbol),
                Letter::Rest(_, local) => parts.push((std::mem::take(&mut stores), local)),
            }
        }
        Some(Configuration(parts))
    }

    pub(super) fn ends_part_before(&self, symbol: Symbol, thread: ThreadId) -> bool {
        matches!(self.letter(symbol), Letter::Rest(other, _) if other.index() + 1 == thread.index())
    }

    /// Every configuration, and every one the thread can reach from it alone. `None` if that is too large.
    pub(in crate::symbolic) fn after_solo(
        &mut self,
        language: Language,
        thread: ThreadId,
        (most_places, most_states): (usize, usize),
        solo: &mut impl Solo,
    ) -> Option<Language> {
        let automaton = self.automaton(language).clone();
        let mut places = Places::default();
        let view = solo.start();
        let first = if thread.index() == 0 { Place::Reading(0, view) } else { Place::Before(0) };
        places.number(first, false);
        while let Some((from, place)) = places.waiting.pop() {
            if places.index.len() > most_places || !self.meter.goes_on() {
                return None;
            }
            match place {
                Place::Before(state) | Place::After(state) => {
                    for &(symbol, target) in automaton.edges(state) {
                        let there = match place {
                            Place::After(_) => Place::After(target),
                            _ if self.ends_part_before(symbol, thread) => Place::Reading(target, view),
                            _ => Place::Before(target),
                        };
                        let to = places.number(there, automaton.accepts(target));
                        places.nfa.edge(from, symbol, to);
                    }
                }
                Place::Reading(state, view) => {
                    for &(symbol, target) in automaton.edges(state) {
                        match self.letter(symbol) {
                            letter @ (Letter::Store(..) | Letter::Fence) => {
                                let view = solo.read(view, letter);
                                let to = places.number(Place::Reading(target, view), false);
                                places.nfa.edge(from, symbol, to);
                            }
                            Letter::Rest(_, local) => {
                                let to = places.number(Place::Running(target, view, local), false);
                                places.nfa.empty_move(from, to);
                            }
                        }
                    }
                }
                Place::Running(state, view, local) => {
                    let rests = self.symbol_of(Letter::Rest(thread, local));
                    let to = places.number(Place::After(state), automaton.accepts(state));
                    places.nfa.edge(from, rests, to);
                    for step in solo.steps(view, local) {
                        match step.append {
                            None => {
                                let to = places.number(Place::Running(state, view, step.to), false);
                                places.nfa.empty_move(from, to);
                            }
                            Some(letter) => {
                                let view = solo.read(view, letter);
                                let to = places.number(Place::Running(state, view, step.to), false);
                                let symbol = self.symbol_of(letter);
                                places.nfa.edge(from, symbol, to);
                            }
                        }
                    }
                }
            }
        }
        let raw = places.nfa.determinise_up_to(&self.meter, most_states, &[0])?;
        Some(self.intern_raw(raw))
    }

    /// Can the buffer of a thread be longer than any number?
    pub(in crate::symbolic) fn is_unbounded(&self, language: Language, thread: ThreadId) -> bool {
        let automaton = self.automaton(language);
        // Depth-first along stores: 1 is on the path, 2 is done.
        let mut colours = vec![0_u8; automaton.len()];
        for start in self.part_starts(automaton, thread) {
            let mut path = vec![(start, 0)];
            while let Some((state, edge)) = path.pop() {
                colours[state as usize] = 1;
                let Some(&(symbol, target)) = automaton.edges(state).get(edge) else {
                    colours[state as usize] = 2;
                    continue;
                };
                path.push((state, edge + 1));
                match colours[target as usize] {
                    _ if matches!(self.letter(symbol), Letter::Rest(..)) => {}
                    0 => path.push((target, 0)),
                    1 => return true,
                    _ => {}
                }
            }
        }
        false
    }

    /// The states in which the part of a thread begins.
    pub(super) fn part_starts(&self, automaton: &Dfa, thread: ThreadId) -> Vec<u32> {
        if thread.index() == 0 {
            return vec![0];
        }
        let mut starts = Vec::new();
        let mut seen = vec![0];
        let mut index: FxHashSet<u32> = seen.iter().copied().collect();
        let mut next = 0;
        while next < seen.len() {
            for &(symbol, target) in automaton.edges(seen[next]) {
                if index.insert(target) {
                    let begins = self.ends_part_before(symbol, thread);
                    if begins { starts.push(target) } else { seen.push(target) }
                }
            }
            next += 1;
        }
        starts
    }

    /// The stores of a thread that can be committed, ascending.
    pub(in crate::symbolic) fn committable(&self, language: Language, thread: ThreadId) -> Vec<Symbol> {
        let is_store = |symbol: &Symbol| matches!(self.letter(*symbol), Letter::Store(..));
        self.part_letters(language, thread).into_iter().filter(is_store).collect()
    }

    /// What the part of a thread can begin with.
    fn part_letters(&self, language: Language, thread: ThreadId) -> Vec<Symbol> {
        let automaton = self.automaton(language);
        let starts = self.part_starts(automaton, thread);
        let mut letters: Vec<Symbol> =
            starts.iter().flat_map(|&start| automaton.edges(start).iter().map(|edge| edge.0)).collect();
        letters.sort_unstable();
        letters.dedup();
        letters
    }

    /// The configurations in which `store` is the oldest store of a thread, without it.
    pub(in crate::symbolic) fn after_commit(
        &mut self,
        language: Language,
        thread: ThreadId,
        store: Symbol,
    ) -> Language {
        if thread.index() == 0 {
            return self.quotient(language, store);
        }
        self.remember(Operation::Commit(language, thread, store), |this| {
            let automaton = this.automaton(language);
            RawDfa::explore(&this.meter, (0, false), |&(state, past)| {
                let step = |&(symbol, target): &(Symbol, u32)| {
                    if past || !this.ends_part_before(symbol, thread) {
                        return Some((symbol, (target, past)));
                    }
                    Some((symbol, (automaton.next(target, store)?, true)))
                };
                (past && automaton.accepts(state), automaton.edges(state).iter().filter_map(step).collect())
            })
        })
    }

    /// The configurations in which `thread` has no pending stores (to `waits_for`, if that is a location), every thread
    /// resting where `moves` leads it; those for which it leads nowhere are left out.
    pub(in crate::symbolic) fn after_act(
        &mut self,
        language: Language,
        (thread, waits_for): (ThreadId, Option<Loc>),
        moves: &mut dyn FnMut(ThreadId, LocalId) -> Option<LocalId>,
    ) -> Language {
        let automaton = self.automaton(language).clone();
        let mut nfa = Nfa::default();
        for state in 0..automaton.len() as u32 {
            nfa.state(automaton.accepts(state));
        }
        let own = self.part_states(&automaton, thread);
        for state in 0..automaton.len() as u32 {
            for &(symbol, target) in automaton.edges(state) {
                let pending = self.stored(symbol).is_none_or(|(loc, _)| waits_for.is_none_or(|wanted| wanted == loc));
                match self.letter(symbol) {
                    Letter::Fence if waits_for.is_some() => nfa.edge(state, symbol, target),
                    Letter::Store(..) | Letter::Fence if own.contains(&state) && pending => {}
                    Letter::Store(..) | Letter::Fence => nfa.edge(state, symbol, target),
                    Letter::Rest(other, local) => {
                        if let Some(to) = moves(other, local) {
                            let symbol = self.symbol_of(Letter::Rest(other, to));
                            nfa.edge(state, symbol, target);
                        }
                    }
                }
            }
        }
        let raw = nfa.determinise(&self.meter, &[0]);
        self.intern_raw(raw)
    }

    /// The states inside the part of a thread.
    fn part_states(&self, automaton: &Dfa, thread: ThreadId) -> FxHashSet<u32> {
        let mut states = self.part_starts(automaton, thread);
        let mut index: FxHashSet<u32> = states.iter().copied().collect();
        while let Some(state) = states.pop() {
            for &(symbol, target) in automaton.edges(state) {
                if !matches!(self.letter(symbol), Letter::Rest(..)) && index.insert(target) {
                    states.push(target);
                }
            }
        }
        index
    }

    /// The configurations with at least two threads for which `inside` holds.
    pub(in crate::symbolic) fn crowded(
        &mut self,
        language: Language,
        inside: impl Fn(ThreadId, LocalId) -> bool,
    ) -> Language {
        let automaton = self.automaton(language);
        let raw = RawDfa::explore(&self.meter, (0, 0_u8), |&(state, count)| {
            let step = |&(symbol, target): &(Symbol, u32)| {
                let count = match self.letter(symbol) {
                    Letter::Rest(thread, local) if inside(thread, local) => (count + 1).min(2),
                    _ => count,
                };
                (symbol, (target, count))
            };
            (count == 2 && automaton.accepts(state), automaton.edges(state).iter().map(step).collect())
        });
        self.intern_raw(raw)
    }

    /// The configurations in which a thread rests at `local` and sees `view`.
    pub(in crate::symbolic) fn seeing(
        &mut self,
        language: Language,
        thread: ThreadId,
        (view, local): (u32, LocalId),
        solo: &mut impl Solo,
    ) -> Language {
        let automaton = self.automaton(language);
        let start = solo.start();
        let first = if thread.index() == 0 { Place::Reading(0, start) } else { Place::Before(0) };
        let raw = RawDfa::explore(&self.meter, first, |&place| {
            let mut successors = Vec::new();
            let (Place::Before(state) | Place::Reading(state, _) | Place::After(state)) = place else {
                unreachable!("invariant: nobody runs here");
            };
            for &(symbol, target) in automaton.edges(state) {
                let there = match (place, self.letter(symbol)) {
                    (Place::After(_), _) => Place::After(target),
                    (Place::Reading(_, seen), letter @ (Letter::Store(..) | Letter::Fence)) => {
                        Place::Reading(target, solo.read(seen, letter))
                    }
                    (Place::Reading(_, seen), Letter::Rest(_, at)) if seen == view && at == local => {
                        Place::After(target)
                    }
                    (Place::Reading(..), Letter::Rest(..)) => continue,
                    _ if self.ends_part_before(symbol, thread) => Place::Reading(target, start),
                    _ => Place::Before(target),
                };
                successors.push((symbol, there));
            }
            (matches!(place, Place::After(_)) && automaton.accepts(state), successors)
        });
        self.intern_raw(raw)
    }

    /// Where all threads can rest together, buffers aside: every word without its stores.
    pub(in crate::symbolic) fn controls(&mut self, language: Language) -> Language {
        self.remember(Operation::Controls(language), |this| {
            let automaton = this.automaton(language);
            let mut nfa = Nfa::default();
            for state in 0..automaton.len() as u32 {
                nfa.state(automaton.accepts(state));
            }
            for state in 0..automaton.len() as u32 {
                for &(symbol, target) in automaton.edges(state) {
                    match this.letter(symbol) {
                        Letter::Rest(..) => nfa.edge(state, symbol, target),
                        Letter::Store(..) | Letter::Fence => nfa.empty_move(state, target),
                    }
                }
            }
            nfa.determinise(&this.meter, &[0])
        })
    }

    /// The language of these places where all threads rest.
    pub(in crate::symbolic) fn these_controls(&mut self, controls: &[Box<[LocalId]>]) -> Language {
        let mut nfa = Nfa::default();
        let start = nfa.state(false);
        let mut index: FxHashMap<(u32, Symbol), u32> = FxHashMap::default();
        for control in controls {
            let mut state = start;
            for (thread, &local) in control.iter().enumerate() {
                let symbol = self.symbol_of(Letter::Rest(ThreadId::new(thread), local));
                state = *index.entry((state, symbol)).or_insert_with(|| {
                    let next = nfa.state(false);
                    nfa.edge(state, symbol, next);
                    next
                });
            }
            nfa.accept(state, true);
        }
        let raw = nfa.determinise(&self.meter, &[start]);
        self.intern_raw(raw)
    }

    /// The configurations with all buffers empty in which all threads have ended.
    pub(in crate::symbolic) fn ended(
        &mut self,
        language: Language,
        resting: impl Fn(ThreadId, LocalId) -> Option<Resting>,
    ) -> Language {
        self.at_rest(language, resting, |seen| seen.iter().all(|&how| how == Resting::Ended))
    }

    /// The configurations with all buffers empty in which nobody can move, not all have ended and nobody spins.
    pub(in crate::symbolic) fn deadlocked(
        &mut self,
        language: Language,
        resting: impl Fn(ThreadId, LocalId) -> Option<Resting>,
    ) -> Language {
        self.at_rest(language, resting, |seen| seen.contains(&Resting::Stuck) && !seen.contains(&Resting::Spinning))
    }

    /// The configurations with all buffers empty in which all threads rest, in ways that are `wanted` together.
    fn at_rest(
        &mut self,
        language: Language,
        resting: impl Fn(ThreadId, LocalId) -> Option<Resting>,
        wanted: impl Fn(&[Resting]) -> bool,
    ) -> Language {
        let automaton = self.automaton(language);
        // The ways to rest so far, each once.
        let raw = RawDfa::explore(&self.meter, (0, Vec::new()), |(state, seen): &(u32, Vec<Resting>)| {
            let step = |&(symbol, target): &(Symbol, u32)| {
                let Letter::Rest(thread, local) = self.letter(symbol) else { return None };
                let how = resting(thread, local)?;
                let mut seen = seen.clone();
                if let Err(at) = seen.binary_search(&how) {
                    seen.insert(at, how);
                }
                Some((symbol, (target, seen)))
            };
            (automaton.accepts(*state) && wanted(seen), automaton.edges(*state).iter().filter_map(step).collect())
        });
        self.intern_raw(raw)
    }

    /// The places where all threads rest that are in `language`, not in `known`, and `wanted`, in order: all of them or
    /// the first only.
    pub(in crate::symbolic) fn words_beyond(
        &self,
        known: Language,
        language: Language,
        all: bool,
        wanted: impl Fn(&[LocalId]) -> bool,
    ) -> Vec<Box<[LocalId]>> {
        let (known, automaton) = (self.automaton(known), self.automaton(language));
        let mut found = Vec::new();
        let mut waiting = vec![(0_u32, Some(0_u32), Vec::new())];
        while let Some((state, before, locals)) = waiting.pop() {
            if !self.meter.goes_on() {
                break;
            }
            let is_known = before.is_some_and(|before| known.accepts(before));
            if automaton.accepts(state) && !is_known && wanted(&locals) {
                self.meter.spend(size_of::<Box<[LocalId]>>() + locals.len() * size_of::<LocalId>());
                found.push(locals.clone().into());
                if !all {
                    break;
                }
            }
            for &(symbol, target) in automaton.edges(state).iter().rev() {
                if let Letter::Rest(_, local) = self.letter(symbol) {
                    let mut locals: Vec<LocalId> = locals.clone();
                    locals.push(local);
                    waiting.push((target, before.and_then(|before| known.next(before, symbol)), locals));
                }
            }
        }
        found
    }

    /// How many words there are in a language of finitely many.
    pub(in crate::symbolic) fn count(&self, language: Language) -> u64 {
        let automaton = self.automaton(language);
        let mut counts: Vec<Option<u64>> = vec![None; automaton.len()];
        let mut path = vec![0_u32];
        while let Some(&state) = path.last() {
            let missing = automaton.edges(state).iter().find(|edge| counts[edge.1 as usize].is_none());
            if let (Some(edge), None) = (missing, counts[state as usize]) {
                path.push(edge.1);
                continue;
            }
            let below = automaton.edges(state).iter().filter_map(|edge| counts[edge.1 as usize]);
            counts[state as usize] = Some(below.fold(u64::from(automaton.accepts(state)), u64::saturating_add));
            path.pop();
        }
        counts[0].unwrap_or(0)
    }

    /// Where a thread can rest after `stores`, the other threads as in `configuration`.
    pub(in crate::symbolic) fn rests_after(
        &mut self,
        language: Language,
        configuration: &Configuration,
        thread: ThreadId,
        stores: usize,
    ) -> Vec<LocalId> {
        let word = self.spelling(configuration);
        let before: usize = configuration.0[..thread.index()].iter().map(|part| part.0.len() + 1).sum();
        let after = &word[before + configuration.0[thread.index()].0.len() + 1..];
        let automaton = self.automaton(language);
        let Some(state) = automaton.run(&word[..before + stores]) else { return Vec::new() };
        let mut rests = Vec::new();
        for &(symbol, target) in automaton.edges(state) {
            if let Letter::Rest(_, local) = self.letter(symbol) {
                let end = after.iter().try_fold(target, |state, &symbol| automaton.next(state, symbol));
                if end.is_some_and(|end| automaton.accepts(end)) {
                    rests.push(local);
                }
            }
        }
        rests
    }
}
