//! The formula against brute force: it holds for exactly the placements that an engine proves.
#![allow(clippy::unwrap_used)]

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds, FinalState};
use weakspot_testkit::sketch::Observed;
use weakspot_verify::abstraction::Domain;

use super::*;
use crate::oracle::{Answer, Effort, Oracle};
use crate::{FenceEngine, Goal, Strategy, infer};

/// Programs with more candidates are left out.
const MOST_CANDIDATES: usize = 14;

fn is_correct(points: &Points, options: &FenceOptions, set: &[usize]) -> bool {
    let text = points.fenced(&points.kinds(set)).text;
    let program = points.compile(text).unwrap();
    let budget = Budget::unlimited();
    let mut oracle = Oracle { options, budget: &budget, progress: &(), states: 0 };
    matches!(oracle.ask(&program, Effort::Full).unwrap(), Answer::Correct)
}

/// How many placements were compared, and how many of them in programs that some fences repair.
#[derive(Debug, Default)]
struct Counts {
    placements: usize,
    telling: usize,
}

/// Compares all placements of up to two fences.
fn compare(text: &str, model: MemoryModel, counts: &mut Counts) {
    let source = SourceFile::new("t", text);
    let points = Points::new(&source, &weak::outline(&source).unwrap());
    let options = FenceOptions::new(model, Goal::Spec);
    let mut labels = Labels::new(&points, &options).unwrap();
    let size = points.candidates.len();
    if size > MOST_CANDIDATES || points.compile(text.to_owned()).unwrap().assumes() {
        return;
    }
    while labels.climb(&Budget::unlimited(), &()).unwrap() == Climbed::Learned {}
    if labels.is_bounded {
        return;
    }
    let pairs = (0..size).flat_map(|first| (first + 1..size).map(move |second| vec![first, second]));
    let sets = std::iter::once(Vec::new()).chain((0..size).map(|only| vec![only])).chain(pairs);
    let mut answers = [0; 2];
    for set in sets {
        let expected = is_correct(&points, &options, &set);
        assert_eq!(labels.formulas.holds(labels.formula, &set), expected, "{set:?} {}\n{text}", model.name());
        answers[usize::from(expected)] += 1;
    }
    let [wrong, correct] = answers;
    counts.placements += wrong + correct;
    counts.telling += if wrong > 0 && correct > 0 { wrong + correct } else { 0 };
}

/// A random program that asserts away an outcome which only store buffers bring about, if it has one.
fn with_relaxed_outcome_forbidden(shape: &Shape, seed: u64, model: MemoryModel) -> Option<String> {
    let mut sketch = shape.generate(seed);
    let finals = |model| {
        let program = sketch.program();
        let bounds = Bounds { visits: 20_000, buffer: None };
        oracle::reach(&Machine::new(&program, model), bounds).map(|reach| reach.finals)
    };
    let (calm, relaxed) = (finals(MemoryModel::Sc)?, finals(model)?);
    let registers = (0..sketch.threads.len()).flat_map(|thread| (0..sketch.registers).map(move |r| (thread, r)));
    let seen = |end: &FinalState| -> Vec<(Observed, i64)> {
        let register = |(thread, r): (usize, usize)| (Observed::Register(thread, r), end.registers[thread][r]);
        let cells = end.memory.iter().enumerate().map(|(cell, &value)| (Observed::Cell(cell), value));
        registers.clone().map(register).chain(cells).collect()
    };
    let known: Vec<Vec<(Observed, i64)>> = calm.iter().map(seen).collect();
    sketch.forbidden = relaxed.iter().map(seen).find(|end| !known.contains(end))?;
    Some(sketch.text())
}

fn random(shape: &Shape, seeds: std::ops::Range<u64>, required: usize) {
    let mut counts = Counts::default();
    for seed in seeds {
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let Some(text) = with_relaxed_outcome_forbidden(shape, seed, model) else { continue };
            compare(&text, model, &mut counts);
            compare_strategies(&text, model);
        }
    }
    assert!(counts.telling >= required, "{counts:?}");
}

/// Both strategies find all minimum placements.
fn compare_strategies(text: &str, model: MemoryModel) {
    let source = SourceFile::new("t", text);
    let answer = |strategy| {
        let options = FenceOptions { strategy, alternatives: true, ..FenceOptions::new(model, Goal::Spec) };
        let report = infer(&source, &options, &Budget::unlimited(), &()).unwrap();
        let mut texts: Vec<String> = report.alternatives.iter().map(|other| other.text.clone()).collect();
        texts.extend(report.placement.map(|placement| placement.text));
        texts.sort();
        (std::mem::discriminant(&report.verdict), report.minimal, texts)
    };
    assert_eq!(answer(Strategy::Guided), answer(Strategy::Avoid), "{}\n{text}", model.name());
}

#[test]
fn the_formula_is_exact_for_straight_line_programs() {
    random(&Shape { threads: 2..=2, statements: 2..=4, ..Shape::straight_line() }, 0..1500, 9_000);
}

#[test]
fn the_formula_is_exact_for_branching_programs() {
    let shape = Shape { assume: false, threads: 2..=2, statements: 2..=4, cells: 2..=2, ..Shape::terminating() };
    random(&shape, 0..3000, 1_700);
}

#[test]
fn the_formula_is_exact_for_known_shapes() {
    let mut counts = Counts::default();
    for text in [
        "shared x, y; thread a { x = 1; skip; let r = y; } thread b { y = 1; let r = x; }
            final { assert(a.r == 1 || b.r == 1); }",
        "shared d, f; thread a { d = 1; f = 1; } thread b { let r = f; let s = d; } final { assert(b.r == 0 || b.s == 1); }",
        "shared x[2]; thread p[2] { x[me] = 1; if x[1 - me] == 0 { critical { } } }",
        "shared x[2]; thread p[2] { let i = 0; while i < 2 { x[me] = 1; i = i + 1; } if x[1 - me] == 0 { critical { } } }",
        "shared x, y; mutex m; thread a { x = 1; let r = y; lock(m); assert(r == 1 || y == 0 || x == 1); unlock(m); }
            thread b { y = 1; let r = x; if r == 0 { lock(m); lock(m); } }",
        "shared x, y, z; thread a { x = 1; swap(z, 1); let r = y; } thread b { y = 1; fetch_add(z, 1); let r = x; }
            final { assert(a.r == 1 || b.r == 1); }",
    ] {
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            compare(text, model, &mut counts);
        }
    }
    assert!(counts.telling >= 270, "{counts:?}");
}

/// How many placements satisfy the formula of an abstraction; all of them must be correct.
fn sufficient_placements(text: &str, model: MemoryModel, domain: Domain, k: u32) -> usize {
    let source = SourceFile::new("t", text);
    let points = Points::new(&source, &weak::outline(&source).unwrap());
    let engine = FenceEngine::Abstract { domain, k: Some(k) };
    let options = FenceOptions { strategy: Strategy::Avoid, engine, ..FenceOptions::new(model, Goal::Spec) };
    let costs = points.costs(false);
    let mut labels = Labels::new(&points, &options).unwrap();
    labels.start(&costs, &Budget::unlimited(), &()).unwrap().unwrap();
    let formula = labels.sufficient.unwrap();
    let exact = FenceOptions::new(model, Goal::Spec);
    let size = costs.len();
    let pairs = (0..size).flat_map(|first| (first + 1..size).map(move |second| vec![first, second]));
    let sets = std::iter::once(Vec::new()).chain((0..size).map(|only| vec![only])).chain(pairs);
    let satisfying: Vec<Vec<usize>> = sets.filter(|set| labels.formulas.holds(formula, set)).collect();
    for set in &satisfying {
        assert!(is_correct(&points, &exact, set), "{set:?} {} {} {k}\n{text}", model.name(), domain.name());
    }
    satisfying.len()
}

#[test]
fn what_satisfies_the_formula_of_an_abstraction_is_correct() {
    let shape = Shape { threads: 2..=2, statements: 2..=4, ..Shape::straight_line() };
    let domains = [(Domain::Set, 0), (Domain::Fd, 0), (Domain::Fd, 1), (Domain::Pd, 0), (Domain::Pd, 1)];
    let mut counts = [0; 5];
    for seed in 0..400 {
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let Some(text) = with_relaxed_outcome_forbidden(&shape, seed, model) else { continue };
            for ((domain, k), count) in domains.into_iter().zip(&mut counts) {
                *count += sufficient_placements(&text, model, domain, k);
            }
        }
    }
    assert!(counts.iter().all(|&count| count >= 100), "{counts:?}");
}

/// A store-store fence of the text is passed with the store still pending, and so is an atomic elsewhere under PSO.
#[test]
fn what_does_not_drain_the_buffer_enforces_nothing() {
    let fences = "shared x, y; thread a { x = 1; fence(store_store); let r = y; }
        thread b { y = 1; fence(store_store); let r = x; } final { assert(a.r == 1 || b.r == 1); }";
    let atomics =
        "shared x, y, z; thread a { x = 1; swap(z, 1); let r = y; } thread b { y = 1; swap(z, 2); let r = x; }
        final { assert(a.r == 1 || b.r == 1); }";
    for (text, model) in [(fences, MemoryModel::Tso), (fences, MemoryModel::Pso), (atomics, MemoryModel::Pso)] {
        for (domain, k) in [(Domain::Set, 0), (Domain::Fd, 1), (Domain::Pd, 1)] {
            let count = sufficient_placements(text, model, domain, k);
            assert!(count >= 4, "{count} {} {}", model.name(), domain.name());
        }
    }
}
