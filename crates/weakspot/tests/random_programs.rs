//! Random programs, once as text for the interpreter and once as live code: the same number of executions, the same
//! answer to whether store buffers matter, and the same impact.
#![allow(missing_docs, clippy::unwrap_used)]

mod programs;

use std::sync::Arc as Shared;

use programs::{as_in_c11, run};
use weakspot::{Builder, FailOn, MemoryModel, Verdict};
use weakspot_check::{CheckOptions, Engine};
use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;

fn kind(model: MemoryModel) -> MonitorKind {
    if model == MemoryModel::Pso { MonitorKind::Operational(model) } else { MonitorKind::Sober }
}

/// Atomics and fences order stores: two of three programs have none, so that store buffers matter often enough.
fn shape(seed: u64) -> Shape {
    let ordered = seed.is_multiple_of(3);
    Shape {
        threads: 2..=3,
        statements: 1..=4,
        cells: 1..=2,
        choose: true,
        atomics: ordered,
        full_fences: ordered,
        store_fences: ordered,
        ..Shape::straight_line()
    }
}

#[test]
fn live_code_has_the_executions_and_the_violations_of_its_text() {
    let (mut compared, mut borderline) = (0, 0);
    for seed in 0..400 {
        let model = if seed % 2 == 0 { MemoryModel::Tso } else { MemoryModel::Pso };
        let sketch = shape(seed).generate(seed);
        let options = ExploreOptions { all: true, monitor: Some(kind(model)), ..ExploreOptions::default() };
        let expected = explore(&as_in_c11(sketch.program()), &options, &Budget::unlimited(), &());
        if expected.executions > 3_000 {
            continue;
        }
        let body = Shared::new(sketch.program());
        let builder = Builder { model, fail_on: FailOn::Nothing, ..Builder::default() };
        let report = builder.check(move || _ = run(&body));
        assert!(report.exhaustive, "{report}\n{}", sketch.text());
        assert_eq!(report.executions, expected.executions, "seed {seed}: {report}\n{}", sketch.text());
        let found = report.verdict == Verdict::Unknown;
        assert_eq!(found, !expected.violations.is_empty(), "seed {seed}: {report}\n{}", sketch.text());
        compared += 1;
        borderline += u32::from(found);
    }
    assert!(compared > 300 && borderline > 15, "{compared} compared, {borderline} borderline");
}

#[test]
fn live_code_comes_to_the_harm_of_its_text() {
    let (mut harmful, mut benign, mut unknown) = (0, 0, 0);
    // In the last one a fence and a relaxed atomic publish.
    for seed in (0..5_000).chain([78_519]) {
        let model = if seed % 2 == 0 { MemoryModel::Tso } else { MemoryModel::Pso };
        let shape = Shape { assert: true, choose: false, threads: 2..=2, statements: 2..=4, ..shape(seed) };
        let sketch = shape.generate(10_000 + seed);
        let options = CheckOptions { engine: Some(Engine::Attack), ..CheckOptions::new(model) };
        let text = as_in_c11(sketch.program());
        let expected = weakspot_check::check(&text, &options, &Budget::unlimited(), &()).unwrap().verdict;
        let body = Shared::new(sketch.program());
        let report = Builder { model, ..Builder::default() }.check(move || _ = run(&body));
        let agrees = match (&expected, report.verdict) {
            (weakspot_check::Verdict::Safe, Verdict::Safe) | (weakspot_check::Verdict::Error(_), Verdict::Failed) => {
                true
            }
            (weakspot_check::Verdict::Unsafe(weakspot_check::Impact::Harmful(_)), Verdict::Harmful) => {
                harmful += 1;
                true
            }
            // Live code is not looked at for ever.
            (weakspot_check::Verdict::Unsafe(weakspot_check::Impact::Benign), Verdict::Benign | Verdict::Unknown) => {
                benign += u32::from(report.verdict == Verdict::Benign);
                unknown += u32::from(report.verdict == Verdict::Unknown);
                true
            }
            _ => false,
        };
        assert!(agrees, "seed {seed} on {model:?}: {expected:?}\n{report}\n{}", sketch.text());
    }
    assert!(
        harmful > 0 && benign > 100 && unknown * 50 < benign,
        "{harmful} harmful, {benign} benign, {unknown} unknown (more harm in random_loops.rs)"
    );
}
