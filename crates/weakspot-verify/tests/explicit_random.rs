//! The explicit engine against brute force over the reference machine, on programs nobody wrote.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeSet, HashSet};

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::liveness::Liveness;
use weakspot_model::machine::{Machine, Outcome, Rest, State};
use weakspot_model::problem::ProblemKind;
use weakspot_model::task::{Budget, Limit, Verdict};
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds, Reach};
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::Sketch;
use weakspot_verify::explicit::{self, ExplicitOptions, FinalState, Outcomes};

const VISITS: usize = 20_000;

/// What a comparison is about.
#[derive(Clone, Copy)]
struct Setting {
    model: MemoryModel,
    buffer: usize,
    spurious_wakeups: bool,
}

impl Setting {
    fn options(self) -> ExplicitOptions {
        ExplicitOptions {
            buffer: self.buffer,
            spurious_wakeups: self.spurious_wakeups,
            ..ExplicitOptions::new(self.model)
        }
    }

    fn reach(self, program: &Program) -> Option<Reach> {
        let machine = Machine { spurious_wakeups: self.spurious_wakeups, ..Machine::new(program, self.model) };
        oracle::reach(&machine, Bounds { visits: VISITS, buffer: Some(self.buffer) })
    }
}

/// The states with dead registers at 0, as the engine matches them.
fn canonical<'s>(program: &Program, states: impl IntoIterator<Item = &'s State>) -> HashSet<State> {
    let liveness: Vec<Liveness> = program.threads.iter().map(Liveness::of).collect();
    let forget = |state: &State| {
        let mut state = state.clone();
        for (thread, liveness) in state.threads.iter_mut().zip(&liveness) {
            liveness.forget_dead(&mut thread.local);
        }
        state
    };
    states.into_iter().map(forget).collect()
}

/// Final states as far as they are observed.
fn observed_finals(program: &Program, reach: &Reach) -> BTreeSet<FinalState> {
    let observe = |state: &oracle::FinalState| {
        let registers = program.threads.iter().zip(&state.registers).map(|(thread, values)| {
            thread.registers.iter().zip(values).map(|(reg, &value)| if reg.observed { value } else { 0 }).collect()
        });
        FinalState { memory: state.memory.clone(), registers: registers.collect() }
    };
    reach.finals.iter().map(observe).collect()
}

fn outcomes(program: &Program, options: &ExplicitOptions) -> Outcomes {
    explicit::outcomes(program, options, &Budget::unlimited(), &()).unwrap()
}

/// Says what is wrong, if anything.
fn disagreement(sketch: &Sketch, setting: Setting) -> Option<String> {
    let program = sketch.program();
    let reach = setting.reach(&program)?;
    let reduced = outcomes(&program, &setting.options());
    let unreduced = outcomes(&program, &ExplicitOptions { reduce: false, ..setting.options() });
    if let Some(wrong) = same_space(&program, &reach, &unreduced) {
        return Some(format!("unreduced: {wrong}"));
    }
    if unreduced.limit.is_none() {
        if reduced.problems != unreduced.problems {
            return Some(format!("reduced finds {:?}, unreduced {:?}", reduced.problems, unreduced.problems));
        }
        if reduced.finals != unreduced.finals {
            return Some(format!("reduced ends in {:?}, unreduced in {:?}", reduced.finals, unreduced.finals));
        }
    }
    if reduced.states > unreduced.states {
        return Some("the reduction adds states".to_owned());
    }
    let verdict = explicit::verify(&program, &setting.options(), &Budget::unlimited(), &()).verdict;
    wrong_verdict(&verdict, &reduced.problems, reduced.limit)
}

fn same_space(program: &Program, reach: &Reach, found: &Outcomes) -> Option<String> {
    let states = canonical(program, &reach.states).len() as u64;
    if found.states != states {
        return Some(format!("{} states, brute force {states}", found.states));
    }
    if found.limit.is_none() && reach.buffer_was_full {
        return Some("brute force has a full buffer".to_owned());
    }
    // Brute force does not see that a buffer is full if what the store leads to is a problem anyway.
    if found.limit.is_some() {
        return (!found.problems.is_subset(&reach.problems)).then(|| "a problem that does not exist".to_owned());
    }
    if found.problems != reach.problems {
        return Some(format!("problems {:?}, brute force {:?}", found.problems, reach.problems));
    }
    let finals = observed_finals(program, reach);
    (found.finals != finals).then(|| format!("final states {:?}, brute force {finals:?}", found.finals))
}

fn wrong_verdict(verdict: &Verdict, problems: &BTreeSet<ProblemKind>, limit: Option<Limit>) -> Option<String> {
    let right = match verdict {
        Verdict::Verified => problems.is_empty() && limit.is_none(),
        Verdict::Violated(witness) => problems.contains(&witness.problem.kind),
        Verdict::Inconclusive(reached) => problems.is_empty() && limit == Some(*reached),
    };
    (!right).then(|| format!("verdict {verdict:?}, problems {problems:?}, limit {limit:?}"))
}

fn compare(shape: &Shape, seeds: std::ops::Range<u64>, buffer: usize, spurious_wakeups: bool) {
    for seed in seeds {
        let sketch = shape.generate(seed);
        for model in MemoryModel::ALL {
            let setting = Setting { model, buffer, spurious_wakeups };
            if disagreement(&sketch, setting).is_some() {
                let small = shrink(&sketch, |candidate| disagreement(candidate, setting).is_some());
                let wrong = disagreement(&small, setting).unwrap();
                panic!("seed {seed}, {}: {wrong}\n{}\n{}", model.name(), small.text(), small.program());
            }
        }
    }
}

#[test]
fn straight_lines_agree_with_brute_force() {
    compare(&Shape::straight_line(), 0..700, 8, false);
}

#[test]
fn programs_that_end_agree_with_brute_force() {
    compare(&Shape::terminating(), 0..1500, 8, false);
}

#[test]
fn programs_that_end_agree_with_brute_force_when_waiters_wake_by_themselves() {
    let shape = Shape { condvars: true, atomics: false, branches: false, ..Shape::terminating() };
    compare(&shape, 0..500, 8, true);
}

#[test]
fn loops_agree_with_brute_force() {
    compare(&Shape::looping(), 0..1500, 2, false);
}

#[test]
fn several_workers_find_what_one_finds() {
    for seed in 0..250 {
        for shape in [Shape::terminating(), Shape::looping()] {
            let program = shape.generate(seed).program();
            for (model, reduce) in MemoryModel::ALL.into_iter().flat_map(|model| [(model, true), (model, false)]) {
                let options = ExplicitOptions { buffer: 3, reduce, ..ExplicitOptions::new(model) };
                let one = outcomes(&program, &options);
                let three = outcomes(&program, &ExplicitOptions { jobs: 3, ..options.clone() });
                assert_eq!((one.states, one.transitions), (three.states, three.transitions), "seed {seed}");
                assert_eq!((&one.problems, one.limit), (&three.problems, three.limit), "seed {seed}");
                assert_eq!(one.finals, three.finals, "seed {seed}");
                let two = ExplicitOptions { jobs: 2, ..options };
                let verdict = explicit::verify(&program, &two, &Budget::unlimited(), &()).verdict;
                assert_eq!(wrong_verdict(&verdict, &one.problems, one.limit), None, "seed {seed}");
            }
        }
    }
}

/// The fewest actions that lead to a problem, by breadth-first search on the reference machine.
fn fewest_actions(machine: &Machine<'_>) -> Option<usize> {
    let (start, outcome) = machine.start();
    let mut seen = HashSet::from([start.clone()]);
    let mut layer = if outcome == Outcome::Continues { vec![start] } else { Vec::new() };
    for length in 0.. {
        let rests = |state: &State| machine.enabled(state).is_empty() && matches!(machine.rest(state), Rest::Failed(_));
        if layer.is_empty() {
            return None;
        }
        if layer.iter().any(rests) {
            return Some(length);
        }
        let mut next_layer = Vec::new();
        for state in &layer {
            for action in machine.enabled(state) {
                let mut next = state.clone();
                match machine.apply(&mut next, action).1 {
                    // No state of this layer is a problem by itself, so this is the shortest.
                    Outcome::Failed(_) => return Some(length + 1),
                    Outcome::Continues if seen.insert(next.clone()) => next_layer.push(next),
                    Outcome::Continues | Outcome::Pruned => {}
                }
            }
        }
        layer = next_layer;
    }
    None
}

#[test]
fn the_shortest_counterexample_is_as_short_as_brute_force_finds() {
    let mut found = 0;
    for seed in 0..400 {
        let sketch = Shape::terminating().generate(seed);
        let program = sketch.program();
        for model in MemoryModel::ALL {
            let machine = Machine::new(&program, model);
            if machine.start().1 != Outcome::Continues {
                continue;
            }
            let fewest = fewest_actions(&machine);
            found += usize::from(fewest.is_some());
            for jobs in [1, 2] {
                let options = ExplicitOptions { shortest: true, jobs, ..ExplicitOptions::new(model) };
                let length = match explicit::verify(&program, &options, &Budget::unlimited(), &()).verdict {
                    Verdict::Violated(witness) => Some(witness.actions.len()),
                    Verdict::Verified => None,
                    Verdict::Inconclusive(limit) => panic!("{limit:?}"),
                };
                assert_eq!(length, fewest, "seed {seed}, {}, {jobs} jobs\n{}", model.name(), sketch.text());
            }
        }
    }
    assert!(found > 300, "only {found} violations: the test has become too easy");
}
