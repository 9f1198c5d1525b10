//! The search by memory against brute force: with next to no patience, and error state by error state.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeSet, HashSet};

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::Program;
use weakspot_model::machine::{Action, Machine, Outcome, Rest, State};
use weakspot_model::problem::ProblemKind;
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};

use super::{End, Search};
use crate::symbolic::SymbolicOptions;
use crate::threads::{Local, LocalId, ThreadAutomaton};

/// Widening nearly at once, and more than once. (Two searches that stop at their first error may find different ones; that
/// they share none proves nothing.)
const HURRIED: [(usize, usize); 5] = [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2)];

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Answer {
    Verified,
    Violated,
    Open,
}

fn hurried(program: &Program, model: MemoryModel, all_errors: bool) -> (Answer, u64) {
    let options = SymbolicOptions { all_errors, ..SymbolicOptions::new(model) };
    let mut search = Search::new(Machine::new(program, model), &options);
    search.turns = &HURRIED;
    let end = search.run(&Budget::unlimited(), &());
    let answer = match (search.take_failure(), end) {
        (Some(failure), _) => {
            search.witness(&failure).unwrap();
            Answer::Violated
        }
        (None, End::Done) => Answer::Verified,
        (None, _) => Answer::Open,
    };
    (answer, search.errors())
}

#[test]
fn an_answer_in_a_hurry_is_right() {
    let mut answers = [0; 3];
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        for seed in 0..1_000 {
            let sketch = Shape::looping().generate(seed);
            let program = sketch.program();
            if Machine::new(&program, model).start().1 != Outcome::Continues {
                continue;
            }
            let bounds = Bounds { visits: 4_000, buffer: Some(4) };
            let Some(reach) = oracle::reach(&Machine::new(&program, model), bounds) else { continue };
            for all_errors in [false, true] {
                let (answer, _) = hurried(&program, model, all_errors);
                answers[answer as usize] += 1;
                let wrong = match answer {
                    Answer::Verified => !reach.problems.is_empty(),
                    Answer::Violated => reach.problems.is_empty() && !reach.buffer_was_full,
                    Answer::Open => false,
                };
                assert!(!wrong, "seed {seed} is not {answer:?} under {}:\n{}", model.name(), sketch.text());
            }
        }
    }
    assert!(answers.iter().all(|&count| count > 20), "{answers:?}");
}

/// An error state: memory, owners of the mutexes, where all threads rest, and who fails if it is one thread.
type ErrorState = (Vec<i64>, Vec<Option<ThreadId>>, Vec<LocalId>, Option<ThreadId>);

/// Brute force over error states; broken mutual exclusion ends no execution. `None` if there are too many states.
struct Errors<'p> {
    machine: Machine<'p>,
    automata: Vec<ThreadAutomaton<'p>>,
    found: BTreeSet<ErrorState>,
}

impl<'p> Errors<'p> {
    fn count(program: &'p Program, model: MemoryModel) -> Option<u64> {
        let automata = program.thread_ids().map(|thread| ThreadAutomaton::new(program, thread)).collect();
        let mut errors = Self { machine: Machine::new(program, model), automata, found: BTreeSet::new() };
        let (start, outcome) = errors.machine.start();
        if outcome != Outcome::Continues {
            return None;
        }
        let mut seen = HashSet::from([start.clone()]);
        let mut waiting = vec![start];
        while let Some(state) = waiting.pop() {
            for next in errors.visit(&state) {
                if seen.insert(next.clone()) {
                    waiting.push(next);
                }
            }
            if seen.len() > 3_000 {
                return None;
            }
        }
        Some(errors.found.len() as u64)
    }

    fn visit(&mut self, state: &State) -> Vec<State> {
        let threads = || (0..state.threads.len()).map(ThreadId::new);
        if threads().filter(|&thread| self.machine.is_inside(state, thread)).count() > 1 {
            self.note(state, None);
        }
        let actions = self.machine.enabled(state);
        if actions.is_empty() && matches!(self.machine.rest(state), Rest::Failed(_)) {
            self.note(state, None);
        }
        actions.into_iter().filter_map(|action| self.follow(state, action)).collect()
    }

    fn follow(&mut self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match self.machine.apply(&mut next, action).1 {
            Outcome::Continues => Some(next),
            Outcome::Pruned => None,
            Outcome::Failed(problem) if problem.kind == ProblemKind::MutualExclusion => Some(next),
            Outcome::Failed(_) => {
                self.note(state, Some(action.thread()));
                None
            }
        }
    }

    fn note(&mut self, state: &State, thread: Option<ThreadId>) {
        let locals = state.threads.iter().zip(&mut self.automata).map(|(thread, automaton)| {
            automaton.intern(Local { state: thread.local.clone(), pause: thread.pause, phase: thread.phase })
        });
        self.found.insert((state.memory.clone(), state.owners.clone(), locals.collect(), thread));
    }
}

#[test]
fn error_states_are_counted_one_by_one() {
    let options = |model| SymbolicOptions { all_errors: true, ..SymbolicOptions::new(model) };
    let (mut compared, mut several) = (0, 0);
    for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
        for (shape, seeds) in [(Shape::looping(), 0..500), (Shape::terminating(), 0..500)] {
            for seed in seeds {
                let sketch = shape.generate(seed);
                let program = sketch.program();
                let Some(expected) = Errors::count(&program, model) else { continue };
                let report = crate::symbolic::verify(&program, &options(model), &Budget::unlimited(), &()).unwrap();
                let found = report.errors;
                assert_eq!(found, expected, "seed {seed} under {}:\n{}", model.name(), sketch.text());
                compared += 1;
                several += usize::from(expected > 1);
            }
        }
    }
    assert!(compared > 1_000 && several > 250, "{compared}, {several}");
}
