//! From a configuration with a problem back to the start: an execution of the reference machine.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::machine::{Action, Outcome};
use weakspot_model::replay::Witness;

use super::super::SymbolicError;
use super::super::automaton::{Configuration, Language, Solo, SoloStep};
use super::super::witness::{Event, forwards, judge};
use super::steps::{Shared, action};
use super::{Arrival, Change, Failure, Growth, Search};
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
            let stages = self.run_all(shared, arrived, &mut Vec::new()).ok_or(SymbolicError::Gap)?;
            self.undo_runs(shared, &stages, &mut configuration, &mut backwards)?;
            here = self.undo_arrival(first, &mut configuration, &mut backwards)?;
        }
        backwards.reverse();
        let mut actions = forwards(backwards, configuration.0.len());
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
        let kept = self.languages.thicken(language, configuration).ok_or(SymbolicError::Gap)?;
        let thin = kept.into_iter().enumerate().filter(|(_, kept)| kept.contains(&false));
        backwards.extend(thin.map(|(buffer, kept)| Event::Thin { buffer, kept }));
        Ok(())
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
        let stores: Vec<(Loc, i64)> = stores.into_iter().map(|symbol| self.languages.store(symbol)).collect();
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
                    actions.push(match step.store {
                        Some(_) => Event::Store { buffer: thread.index(), action },
                        None => Event::Other(action),
                    });
                    here = earlier;
                }
                actions.reverse();
                configuration.0[thread.index()].0.truncate(here.0);
                configuration.0[thread.index()].1 = here.2;
                return Some(actions);
            }
            for step in self.threads.alone(thread, shared).steps(view, local) {
                let next = match step.store {
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
                let mut before = configuration.clone();
                before.0[thread.index()].0.push_front(store);
                let loc = self.languages.store(store).0;
                let found = self.languages.has_configuration(language, &before).then_some(before);
                (found, Event::Commit { buffer: thread.index(), action: Action::Commit { thread, loc } })
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

    /// A configuration of the language that an act turns into this one.
    fn before_act(
        &mut self,
        language: Language,
        act: &super::steps::Act,
        configuration: &Configuration,
    ) -> Option<Configuration> {
        if !configuration.0[act.thread.index()].0.is_empty() {
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
