//! From a symbolic path to an execution of the reference machine.
//!
//! The path is walked backwards with one word for each buffer. Every action determines the words before it from the
//! words after it: a store takes its symbol off the end, a commit puts its symbol in front, loads and fences change
//! nothing; and because the languages along the path are exact, the words before are in the languages before. At an
//! acceleration, rounds are taken off until the words are some the acceleration started from (see
//! [`super::accelerate`]). So cycles are unrolled exactly as often as this execution needs.
//!
//! Where a state was thinned, a word may stand for a thicker one that is really there. Walking backwards, it is replaced
//! by the thicker word, and the symbols that were left out are noted ([`Event::Thin`]). Walking forwards again, a store
//! that was left out is committed together with the one it stands before.

use std::collections::VecDeque;

use weakspot_model::machine::{Action, Machine};
use weakspot_model::replay::{self, Ending, Witness};

use super::SymbolicError;
use super::accelerate::{Edge, Star, thin};
use super::automaton::{Language, Symbol};
use super::explore::{Explorer, Failure};
use super::moves::{BufferEffect, Label, Move};
use super::state::Buffers;

/// One content for each buffer, oldest store first.
type Words = Vec<VecDeque<Symbol>>;

/// Something of the execution, as far as buffers are concerned.
pub(super) enum Event {
    /// An action that leaves the buffers alone.
    Other(Action),
    /// A store.
    Store { buffer: usize, action: Action },
    /// A commit.
    Commit { buffer: usize, action: Action },
    /// From here on, stores that are not kept are committed together with the next one that is.
    Thin { buffer: usize, kept: Vec<bool> },
}

/// More rounds of a cycle than this are a mistake of the engine.
const MOST_ROUNDS: usize = 100_000;

impl Explorer<'_, '_> {
    /// An execution of the machine that ends in the failure.
    pub(super) fn witness(&mut self, failure: &Failure) -> Result<Witness, SymbolicError> {
        let shortest = |&language: &Language| self.system.languages.shortest(language).map(VecDeque::from);
        let words: Words = failure.contents.iter().map(shortest).collect::<Option<_>>().ok_or(SymbolicError::Gap)?;
        let edges = self.path_to(failure.node);
        let mut backwards = Backwards { words, events: failure.last.into_iter().map(Event::Other).collect() };
        let start = self.start.clone();
        self.walk(&start, &edges, true, &mut backwards)?;
        self.thicken(&start, &mut backwards)?;
        let store = |&(buffer, action): &(usize, Action)| Event::Store { buffer, action };
        let mut events: Vec<Event> = self.prelude.iter().map(store).collect();
        events.extend(backwards.events.into_iter().rev());
        judge(&self.system.machine, forwards(events, start.len()))
    }

    /// Walks a path backwards that starts with the contents `start`; `thinned`: every state on it was thinned.
    fn walk(
        &mut self,
        start: &[Language],
        edges: &[Edge],
        thinned: bool,
        backwards: &mut Backwards,
    ) -> Result<(), SymbolicError> {
        let mut here: Buffers = start.into();
        if thinned {
            thin(&mut self.system.languages, &mut here);
        }
        let mut along = Vec::with_capacity(edges.len());
        for edge in edges {
            let before = here.clone();
            self.accelerator.perform_edge(&mut self.system.languages, edge, &mut here);
            along.push((before, here.clone()));
            if thinned {
                thin(&mut self.system.languages, &mut here);
            }
        }
        for (edge, (before, after)) in edges.iter().zip(along).rev() {
            match edge {
                Edge::Move(taken) => {
                    self.thicken(&after, backwards)?;
                    backwards.undo(taken, &self.system.languages)?;
                }
                Edge::Star(star) if star.grows.len() == 1 => {
                    self.thicken(&after, backwards)?;
                    self.unroll(star, &before, &after, backwards)?;
                }
                Edge::Star(star) => self.unroll_together(star, &before, backwards)?,
            }
        }
        Ok(())
    }

    /// Replaces words that are not in the languages by thicker ones that are.
    fn thicken(&mut self, buffers: &[Language], backwards: &mut Backwards) -> Result<(), SymbolicError> {
        for (buffer, &language) in buffers.iter().enumerate() {
            let word = backwards.words[buffer].make_contiguous();
            if self.system.languages.contains(language, word) {
                continue;
            }
            let thicker = self.system.languages.thickened(language, word);
            let (thick, kept) = thicker.ok_or(SymbolicError::Gap)?;
            backwards.words[buffer] = thick.into();
            backwards.events.push(Event::Thin { buffer, kept });
        }
        Ok(())
    }

    /// Takes rounds off until the word is one the acceleration started from.
    fn unroll(
        &mut self,
        star: &Star,
        before: &Buffers,
        after: &Buffers,
        backwards: &mut Backwards,
    ) -> Result<(), SymbolicError> {
        let buffer = star.grows[0].0;
        let rounds: Vec<Buffers> = star.cycles.iter().map(|cycle| self.round(&cycle.edges, after)).collect();
        while !self.has_word(before[buffer], &backwards.words[buffer]) {
            let length = backwards.words[buffer].len();
            let ends_here = |reached: &Buffers| {
                reached.iter().zip(&backwards.words).all(|(&language, word)| self.has_word(language, word))
            };
            let round = rounds.iter().position(ends_here).ok_or(SymbolicError::Gap)?;
            self.walk(after, &star.cycles[round].edges, false, backwards)?;
            if backwards.words[buffer].len() >= length {
                return Err(SymbolicError::Gap);
            }
        }
        Ok(())
    }

    /// Takes as many rounds off as the buffer that needs most of them needs.
    fn unroll_together(
        &mut self,
        star: &Star,
        before: &Buffers,
        backwards: &mut Backwards,
    ) -> Result<(), SymbolicError> {
        let edges = &star.cycles[0].edges;
        let mut rounds = vec![before.clone()];
        loop {
            let reached = &rounds[rounds.len() - 1];
            let languages = &self.system.languages;
            let mut pairs = reached.iter().zip(&mut backwards.words);
            if pairs.all(|(&language, word)| languages.thickened(language, word.make_contiguous()).is_some()) {
                break;
            }
            if rounds.len() > MOST_ROUNDS {
                return Err(SymbolicError::Gap);
            }
            let next = self.round(edges, &rounds[rounds.len() - 1]);
            rounds.push(next);
        }
        self.thicken(&rounds[rounds.len() - 1].clone(), backwards)?;
        for start in rounds.iter().rev().skip(1) {
            self.walk(start, edges, false, backwards)?;
        }
        Ok(())
    }

    fn round(&mut self, edges: &[Edge], buffers: &Buffers) -> Buffers {
        let mut reached = buffers.clone();
        self.accelerator.perform_path(&mut self.system.languages, edges, &mut reached);
        reached
    }

    fn has_word(&self, language: Language, word: &VecDeque<Symbol>) -> bool {
        self.system.languages.contains(language, &word.iter().copied().collect::<Vec<_>>())
    }
}

/// The walk so far.
struct Backwards {
    words: Words,
    /// Last event first.
    events: Vec<Event>,
}

impl Backwards {
    fn undo(&mut self, taken: &Move, languages: &super::automaton::Languages) -> Result<(), SymbolicError> {
        let actions: Vec<Action> = taken.actions(languages).collect();
        let mut effects = taken.effects.iter().rev();
        for (index, &action) in actions.iter().enumerate().rev() {
            // The stores performed right after a step are its last effects, one for each.
            let own: Vec<&BufferEffect> =
                if index > 0 { effects.by_ref().take(1).collect() } else { effects.by_ref().collect() };
            let mut event = Event::Other(action);
            for effect in own {
                match *effect {
                    BufferEffect::Append { buffer, symbol } => {
                        if self.words[buffer].pop_back() != Some(symbol) {
                            return Err(SymbolicError::Gap);
                        }
                        event = Event::Store { buffer, action };
                    }
                    BufferEffect::Commit { buffer, symbol } => {
                        self.words[buffer].push_front(symbol);
                        event = Event::Commit { buffer, action };
                    }
                    BufferEffect::Load { .. } | BufferEffect::Drained { .. } => {}
                }
            }
            self.events.push(event);
        }
        debug_assert!(!matches!(taken.label, Label::Commit { .. }) || actions.len() == 1);
        Ok(())
    }
}

/// The actions of an execution. For each buffer, the number of stores each store that is left stands for.
pub(super) fn forwards(events: Vec<Event>, buffers: usize) -> Vec<Action> {
    let mut stands_for: Vec<VecDeque<usize>> = vec![VecDeque::new(); buffers];
    let mut actions = Vec::new();
    for event in events {
        match event {
            Event::Other(action) => actions.push(action),
            Event::Store { buffer, action } => {
                stands_for[buffer].push_back(1);
                actions.push(action);
            }
            Event::Commit { buffer, action } => {
                let together = stands_for[buffer].pop_front().unwrap_or(1);
                actions.extend(std::iter::repeat_n(action, together));
            }
            Event::Thin { buffer, kept } => {
                let (mut thinner, mut waiting) = (VecDeque::new(), 0);
                for (count, kept) in std::mem::take(&mut stands_for[buffer]).into_iter().zip(kept) {
                    waiting += count;
                    if kept {
                        thinner.push_back(std::mem::take(&mut waiting));
                    }
                }
                stands_for[buffer] = thinner;
            }
        }
    }
    actions
}

/// Replays an execution that should break the specification.
pub(super) fn judge(machine: &Machine<'_>, actions: Vec<Action>) -> Result<Witness, SymbolicError> {
    match replay::replay(machine, &actions)?.ending {
        Ending::Failed(problem) => Ok(Witness { actions, problem }),
        ending => Err(SymbolicError::NoProblem { ending: Box::new(ending) }),
    }
}
