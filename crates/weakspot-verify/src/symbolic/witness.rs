//! From a symbolic path to an execution of the reference machine.
//!
//! The path is walked backwards with one word for each buffer. Every action determines the words before it from the
//! words after it: a store takes its symbol off the end, a commit puts its symbol in front, loads and fences change
//! nothing; and because the languages along the path are exact, the words before are in the languages before. At an
//! acceleration, rounds are taken off as long as the word is not one the acceleration started from: one of the cycles
//! ends with the word when performed on the accelerated language, and the word before that round is shorter (see
//! [`super::accelerate`]). So cycles are unrolled exactly as often as this execution needs.

use std::collections::VecDeque;
use std::rc::Rc;

use weakspot_model::machine::{Action, Machine};
use weakspot_model::replay::{self, Ending, Witness};

use super::SymbolicError;
use super::accelerate::{Edge, Star};
use super::automaton::{Language, Symbol};
use super::explore::{Explorer, Failure};
use super::moves::{BufferEffect, Move};
use super::state::Buffers;

/// One content for each buffer, oldest store first.
type Words = Vec<VecDeque<Symbol>>;

impl Explorer<'_, '_> {
    /// An execution of the machine that ends in the failure.
    pub(super) fn witness(&mut self, failure: &Failure) -> Result<Witness, SymbolicError> {
        let shortest = |&language: &Language| self.system.languages.shortest(language).map(VecDeque::from);
        let words: Words = failure.contents.iter().map(shortest).collect::<Option<_>>().ok_or(SymbolicError::Gap)?;
        let (start, edges) = self.path_to(failure.node);
        let mut backwards = Backwards { words, actions: failure.last.into_iter().collect() };
        self.walk(&start, &edges, &mut backwards)?;
        let mut actions = self.prelude.clone();
        actions.extend(backwards.actions.into_iter().rev());
        judge(&self.system.machine, actions)
    }

    /// Walks a path backwards that starts with the contents `start`.
    fn walk(&mut self, start: &[Language], edges: &[Edge], backwards: &mut Backwards) -> Result<(), SymbolicError> {
        let mut along: Vec<Buffers> = vec![start.into()];
        for edge in edges {
            let mut next = along[along.len() - 1].clone();
            self.accelerator.perform_edge(&mut self.system.languages, edge, &mut next);
            along.push(next);
        }
        for (index, edge) in edges.iter().enumerate().rev() {
            match edge {
                Edge::Move(taken) => backwards.undo(taken, taken.actions(&self.system.languages))?,
                Edge::Star(star) => self.unroll(star, &along[index], &along[index + 1], backwards)?,
            }
        }
        let mut contained = start.iter().zip(&backwards.words);
        if contained.all(|(&language, word)| self.has_word(language, word)) { Ok(()) } else { Err(SymbolicError::Gap) }
    }

    /// Takes rounds off until the word is one the acceleration started from.
    fn unroll(
        &mut self,
        star: &Rc<Star>,
        before: &Buffers,
        after: &Buffers,
        backwards: &mut Backwards,
    ) -> Result<(), SymbolicError> {
        while !self.has_word(before[star.buffer], &backwards.words[star.buffer]) {
            let length = backwards.words[star.buffer].len();
            let mut round = None;
            for cycle in &star.cycles {
                let mut reached = after.clone();
                self.accelerator.perform_path(&mut self.system.languages, &cycle.edges, &mut reached);
                if reached.iter().zip(&backwards.words).all(|(&language, word)| self.has_word(language, word)) {
                    round = Some(Rc::clone(cycle));
                    break;
                }
            }
            let round = round.ok_or(SymbolicError::Gap)?;
            self.walk(after, &round.edges, backwards)?;
            if backwards.words[star.buffer].len() >= length {
                return Err(SymbolicError::Gap);
            }
        }
        Ok(())
    }

    fn has_word(&self, language: Language, word: &VecDeque<Symbol>) -> bool {
        self.system.languages.contains(language, &word.iter().copied().collect::<Vec<_>>())
    }
}

/// The walk so far.
struct Backwards {
    words: Words,
    /// Last action first.
    actions: Vec<Action>,
}

impl Backwards {
    fn undo(&mut self, taken: &Move, actions: impl DoubleEndedIterator<Item = Action>) -> Result<(), SymbolicError> {
        for effect in taken.effects.iter().rev() {
            match *effect {
                BufferEffect::Append { buffer, symbol } => {
                    if self.words[buffer].pop_back() != Some(symbol) {
                        return Err(SymbolicError::Gap);
                    }
                }
                BufferEffect::Commit { buffer, symbol } => self.words[buffer].push_front(symbol),
                BufferEffect::Load { .. } | BufferEffect::Drained { .. } => {}
            }
        }
        self.actions.extend(actions.rev());
        Ok(())
    }
}

/// Replays an execution that should break the specification.
pub(super) fn judge(machine: &Machine<'_>, actions: Vec<Action>) -> Result<Witness, SymbolicError> {
    match replay::replay(machine, &actions)?.ending {
        Ending::Failed(problem) => Ok(Witness { actions, problem }),
        ending => Err(SymbolicError::NoProblem { ending: Box::new(ending) }),
    }
}
