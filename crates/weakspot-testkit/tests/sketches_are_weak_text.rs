//! A sketch's text, read by the front end, means the same as the sketch lowered here.
//!
//! Two lowerings written apart: a mistake in one of them shows up as different final states, problems or traces.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use weakspot_front::weak::compile;
use weakspot_model::axioms::Axioms;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::problem::ProblemKind;
use weakspot_model::source::SourceFile;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::{Observed, Sketch};

fn from_text(sketch: &Sketch) -> Program {
    let text = sketch.text();
    match compile(&SourceFile::new("sketch.weak", text.as_str())) {
        Ok(compiled) => compiled.program,
        Err(errors) => panic!("{errors:?}\n{text}"),
    }
}

/// Registers that `final` looks at, by name, and memory. The front end may drop others.
type Final = (Vec<(String, i64)>, Vec<i64>);

/// Everything a program does that does not depend on how it was lowered.
#[derive(Debug, PartialEq, Eq)]
struct Meaning {
    finals: BTreeSet<Final>,
    problems: BTreeSet<ProblemKind>,
    spins: bool,
}

fn meaning(program: &Program, model: MemoryModel, buffer: Option<usize>) -> Option<Meaning> {
    let bounds = Bounds { visits: 30_000, buffer };
    let reach = oracle::reach(&Machine::new(program, model), bounds)?;
    let mut finals = BTreeSet::new();
    for state in &reach.finals {
        let mut registers = Vec::new();
        for (thread, values) in program.threads.iter().zip(&state.registers) {
            for (register, &value) in thread.registers.iter().zip(values) {
                let name = register.name.as_ref().filter(|_| register.observed);
                let name = name.map(|name| format!("{}.{name}", thread.name));
                registers.extend(name.map(|name| (name, value)));
            }
        }
        registers.sort();
        finals.insert((registers, state.memory.clone()));
    }
    Some(Meaning { finals, problems: reach.problems, spins: reach.spins })
}

/// A `final` block that looks at every register and never fails.
fn everything_observed(sketch: &Sketch) -> Vec<(Observed, i64)> {
    let registers = |thread| (0..sketch.registers).map(move |reg| (Observed::Register(thread, reg), 99));
    (0..sketch.threads.len()).flat_map(registers).collect()
}

fn check_shape(shape: &Shape, seeds: std::ops::Range<u64>, at_least: usize) {
    let mut checked = 0;
    for seed in seeds {
        let mut sketch = shape.generate(seed);
        if seed % 2 == 0 {
            sketch.forbidden = everything_observed(&sketch);
        }
        for model in MemoryModel::ALL {
            let buffer = shape.loops.then_some(2);
            let meanings = |sketch: &Sketch| {
                let lowered = meaning(&sketch.program(), model, buffer)?;
                Some((lowered, meaning(&from_text(sketch), model, buffer)?))
            };
            let Some((lowered, read)) = meanings(&sketch) else { continue };
            checked += 1;
            if lowered != read {
                let differs = |smaller: &Sketch| meanings(smaller).is_some_and(|(one, other)| one != other);
                let smallest = shrink(&sketch, differs);
                panic!("seed {seed}, {}: {:#?}\n{}", model.name(), meanings(&smallest), smallest.text());
            }
        }
    }
    assert!(checked >= at_least, "only {checked} checks");
}

#[test]
fn programs_that_end_mean_the_same() {
    check_shape(&Shape::terminating(), 0..1_200, 3_000);
}

#[test]
fn programs_with_loops_mean_the_same() {
    check_shape(&Shape::looping(), 10_000..11_000, 2_000);
}

#[test]
fn both_lowerings_have_the_same_number_of_traces() {
    let shape = Shape { branches: true, locks: true, condvars: true, ..Shape::straight_line() };
    for seed in 2_000..2_150 {
        let sketch = shape.generate(seed);
        for model in MemoryModel::ALL {
            let bounds = Bounds { visits: 20_000, ..Bounds::default() };
            let count = |program: &Program| {
                let traces = oracle::traces(&Machine::new(program, model), bounds)?;
                let consistent = traces.keys().filter(|trace| Axioms::Sc.allow(trace)).count();
                Some((traces.len(), consistent))
            };
            let (Some(lowered), Some(read)) = (count(&sketch.program()), count(&from_text(&sketch))) else { continue };
            assert_eq!(lowered, read, "seed {seed}, {}:\n{}", model.name(), sketch.text());
        }
    }
}
