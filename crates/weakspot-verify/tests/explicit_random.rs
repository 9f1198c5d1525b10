//! The explicit engine against brute force over the reference machine, on programs nobody wrote.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeSet, HashSet};

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::liveness::Liveness;
use weakspot_model::machine::{Machine, State};
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
fn canonical(program: &Program, states: &HashSet<State>) -> HashSet<State> {
    let liveness: Vec<Liveness> = program.threads.iter().map(Liveness::of).collect();
    let forget = |state: &State| {
        let mut state = state.clone();
        for (thread, liveness) in state.threads.iter_mut().zip(&liveness) {
            liveness.forget_dead(&mut thread.local);
        }
        state
    };
    states.iter().map(forget).collect()
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
    if !reach.buffer_was_full {
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
    if found.limit.is_some() != reach.buffer_was_full {
        return Some(format!("limit {:?}, brute force {}", found.limit, reach.buffer_was_full));
    }
    if reach.buffer_was_full {
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
