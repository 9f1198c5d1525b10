//! From a configuration with a problem back to the start: an execution of the reference machine.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::machine::{Action, Outcome};
use weakspot_model::replay::Witness;

use super::super::SymbolicError;
use super::super::automaton::{Configuration, Language, Letter, Solo, SoloStep, Symbol};
use super::super::state::Layout;
use super::super::witness::{Event, forwards, judge};
use super::steps::{Shared, action};
use super::{Arrival, Change, Failure, Growth, Noted, Search};
use crate::threads::LocalId;

impl Search<'_, '_> {
    /// An execution that ends in the failure.
    pub(in crate::symbolic) fn witness(&mut self, failure: &Failure) -> Result<Witness, SymbolicError> {
        let mut backwards: Vec<Event> = failure.last.into_iter().map(Event::Other).collect();
        let mut configuration = failure.configuration.clone();
        let mut here = Some(failure.growth);
        while let Some(at) = here {
            let first = self.first_with(at, &configuration).ok_or(SymbolicError::Gap)?;
            let Growth { shared, arrived, exact, .. } = self.now.log[first];
            self.undo_thinning(exact, &mut configuration, &mut backwards)?;
            let stages = self.run_all(shared, arrived, &mut Noted::default()).ok_or(SymbolicError::Gap)?;
            self.undo_runs(shared, &stages, &mut configuration, &mut backwards)?;
            here = self.undo_arrival(first, &mut configuration, &mut backwards)?;
        }
        backwards.reverse();
        let mut actions = forwards(backwards, self.layout().len());
        self.truncate(&mut actions);
        judge(&self.threads.machine, actions)
    }

    /// The first growth of a memory, up to this one, that has the configuration.
    fn first_with(&mut self, at: usize, configuration: &Configuration) -> Option<usize> {
        let shared = self.now.log[at].shared;
        (0..=at).find(|&earlier| {
            let growth = &self.now.log[earlier];
            growth.shared == shared && self.languages.has_configuration(growth.closed, configuration)
        })
    }

    /// Replaces a configuration by a thicker one of the language.
    fn undo_thinning(
        &mut self,
        language: Language,
        configuration: &mut Configuration,
        backwards: &mut Vec<Event>,
    ) -> Result<(), SymbolicError> {
        let by_location = self.threads.machine.model == MemoryModel::Pso;
        let kept = self.languages.thicken(language, by_location, configuration).ok_or(SymbolicError::Gap)?;
        let layout = self.layout();
        let mut thin: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        for (thread, kept) in kept.into_iter().enumerate() {
            for (&symbol, kept) in configuration.0[thread].0.iter().zip(kept) {
                if let Some((loc, _)) = self.languages.stored(symbol) {
                    let buffer = layout.buffer(ThreadId::new(thread), loc).expect("invariant: there are buffers");
                    thin.entry(buffer).or_default().push(kept);
                }
            }
        }
        thin.retain(|_, kept| kept.contains(&false));
        backwards.extend(thin.into_iter().map(|(buffer, kept)| Event::Thin { buffer, kept }));
        Ok(())
    }

    fn layout(&self) -> Layout {
        Layout::new(self.threads.program(), self.threads.machine.model)
    }

    /// Takes back what threads did alone; `stages` are the languages before each of them ran.
    fn undo_runs(
        &mut self,
        shared: u32,
        stages: &[Language],
        configuration: &mut Configuration,
        backwards: &mut Vec<Event>,
    ) -> Result<(), SymbolicError> {
        let shared = self.shared.get(shared).clone();
        for index in (0..configuration.0.len()).rev() {
            let thread = ThreadId::new(index);
            let run = self.run_of(stages[index], thread, &shared, configuration).ok_or(SymbolicError::Gap)?;
            backwards.extend(run.into_iter().rev());
        }
        Ok(())
    }

    /// A run of one thread from a configuration of `before` to this one, which becomes the former; a shortest one.
    fn run_of(
        &mut self,
        before: Language,
        thread: ThreadId,
        shared: &Shared,
        configuration: &mut Configuration,
    ) -> Option<Vec<Event>> {
        type Position = (usize, u32, LocalId);
        let (stores, end) = configuration.0[thread.index()].clone();
        let stores: Vec<Letter> = stores.into_iter().map(|symbol| self.languages.letter(symbol)).collect();
        let layout = self.layout();
        let mut came_from: FxHashMap<Position, Option<(Position, SoloStep)>> = FxHashMap::default();
        let mut waiting = VecDeque::new();
        let mut view = self.threads.empty_view(thread);
        let mut views = vec![view];
        for &store in &stores {
            view = self.threads.alone(thread, shared).read(view, store);
            views.push(view);
        }
        for length in (0..=stores.len()).rev() {
            for local in self.languages.rests_after(before, configuration, thread, length) {
                came_from.insert((length, views[length], local), None);
                waiting.push_back((length, views[length], local));
            }
        }
        while let Some(position @ (length, view, local)) = waiting.pop_front() {
            if length == stores.len() && local == end {
                let mut actions = Vec::new();
                let mut here = position;
                while let Some((earlier, step)) = came_from[&here] {
                    let action = action(thread, step);
                    let buffer = match step.append {
                        Some(Letter::Store(loc, _)) => layout.buffer(thread, loc),
                        _ => None,
                    };
                    actions.push(buffer.map_or(Event::Other(action), |buffer| Event::Store { buffer, action }));
                    here = earlier;
                }
                actions.reverse();
                configuration.0[thread.index()].0.truncate(here.0);
                configuration.0[thread.index()].1 = here.2;
                return Some(actions);
            }
            for step in self.threads.alone(thread, shared).steps(view, local) {
                let next = match step.append {
                    None => (length, view, step.to),
                    Some(store) if stores.get(length) == Some(&store) => (length + 1, views[length + 1], step.to),
                    Some(_) => continue,
                };
                came_from.entry(next).or_insert_with(|| {
                    waiting.push_back(next);
                    Some((position, step))
                });
            }
        }
        None
    }

    /// Takes back how the configuration arrived; gives where it was before, unless that is the start.
    fn undo_arrival(
        &mut self,
        growth: usize,
        configuration: &mut Configuration,
        backwards: &mut Vec<Event>,
    ) -> Result<Option<usize>, SymbolicError> {
        for arrival in self.now.log[growth].arrivals.clone() {
            match arrival {
                Arrival::Start if *configuration == self.start() => return Ok(None),
                Arrival::Start => {}
                Arrival::From(from, change) => {
                    if self.undo_change(self.now.log[from].closed, &change, configuration, backwards) {
                        return Ok(Some(from));
                    }
                }
            }
        }
        Err(SymbolicError::Gap)
    }

    /// Takes back a change, if the configuration before it is in the language.
    fn undo_change(
        &mut self,
        language: Language,
        change: &Change,
        configuration: &mut Configuration,
        backwards: &mut Vec<Event>,
    ) -> bool {
        let (before, event) = match change {
            &Change::Commit { thread, store } => {
                let loc = self.languages.store(store).0;
                let buffer = self.layout().buffer(thread, loc).expect("invariant: there are buffers");
                let action = Action::Commit { thread, loc };
                (self.before_commit(language, thread, store, configuration), Event::Commit { buffer, action })
            }
            Change::Act(act) => {
                let action = Action::Step { thread: act.thread, choice: act.choice };
                (self.before_act(language, act, configuration), Event::Other(action))
            }
        };
        let Some(before) = before else { return false };
        *configuration = before;
        backwards.push(event);
        true
    }

    /// A configuration of the language that a commit turns into this one.
    fn before_commit(
        &mut self,
        language: Language,
        thread: ThreadId,
        store: Symbol,
        configuration: &Configuration,
    ) -> Option<Configuration> {
        let with = |at: usize, letters: &[Symbol]| {
            let mut before = configuration.clone();
            for &letter in letters.iter().rev() {
                before.0[thread.index()].0.insert(at, letter);
            }
            before
        };
        let mut candidates = vec![with(0, &[store])];
        if self.threads.machine.model == MemoryModel::Pso {
            let fence = self.languages.symbol_of(Letter::Fence);
            let (loc, _) = self.languages.store(store);
            let stores = &configuration.0[thread.index()].0;
            let passed = |symbol: &&Symbol| self.languages.stored(**symbol).is_some_and(|(other, _)| other != loc);
            let overtaken = stores.iter().take_while(passed).count();
            candidates.extend((1..=overtaken).map(|at| with(at, &[store])));
            candidates.push(with(0, &[store, fence]));
        }
        candidates.into_iter().find(|before| self.languages.has_configuration(language, before))
    }

    /// A configuration of the language that an act turns into this one.
    fn before_act(
        &mut self,
        language: Language,
        act: &super::steps::Act,
        configuration: &Configuration,
    ) -> Option<Configuration> {
        let waits = |&symbol: &Symbol| match (self.languages.letter(symbol), act.waits_for) {
            (Letter::Store(loc, _), Some(wanted)) => loc == wanted,
            (_, Some(_)) => false,
            (_, None) => true,
        };
        if configuration.0[act.thread.index()].0.iter().any(waits) {
            return None;
        }
        let mut candidates = vec![configuration.clone()];
        for index in 0..configuration.0.len() {
            let froms = self.threads.moved_from(act, ThreadId::new(index), configuration.0[index].1);
            candidates = candidates
                .into_iter()
                .flat_map(|candidate| {
                    froms.iter().map(move |&from| {
                        let mut before = candidate.clone();
                        before.0[index].1 = from;
                        before
                    })
                })
                .collect();
        }
        candidates.into_iter().find(|candidate| self.languages.has_configuration(language, candidate))
    }

    /// Cuts an execution where something goes wrong earlier.
    fn truncate(&self, actions: &mut Vec<Action>) {
        let (mut state, mut outcome) = self.threads.machine.start();
        for index in 0..actions.len() {
            if outcome != Outcome::Continues {
                actions.truncate(index);
                return;
            }
            if !self.threads.machine.enabled(&state).contains(&actions[index]) {
                return;
            }
            outcome = self.threads.machine.apply(&mut state, actions[index]).1;
        }
    }
}
