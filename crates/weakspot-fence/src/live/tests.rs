//! Tests that are made up: each model has executions that must go, as clauses, and says what the library would say.

use std::convert::Infallible;

use super::*;

fn place(line: u32) -> CodePlace {
    CodePlace { file: "a.rs".to_owned(), line, column: 1 }
}

fn change(line: u32) -> Change {
    Change { place: place(line), how: Strengthening::SeqCst, says_ordering: true, path: None, line: None, row: line }
}

fn model(number: u32, verdict: ModelVerdict) -> Model {
    let (late, clauses) = (Vec::new(), Vec::new());
    Model { number, start: place(100), verdict, exhaustive: true, executions: 1, why: None, late, clauses, helps: None }
}

/// What the library says of a model with changes made: one clause at a time, or, if it `tries`, what helps as well.
fn found(number: u32, clauses: &[&[u32]], changes: &[Change], tries: bool) -> Model {
    let is_hit = |clause: &[u32]| clause.iter().any(|&line| changes.contains(&change(line)));
    let mut left = clauses.iter().filter(|clause| !is_hit(clause)).map(|clause| clause.iter().copied().map(change));
    let Some(first) = left.next() else { return model(number, ModelVerdict::Safe) };
    let mut found = model(number, ModelVerdict::Harmful);
    found.clauses.push(first.collect());
    if tries {
        found.clauses.extend(left.map(Iterator::collect));
        found.helps = Some((found.clauses.iter().map(|clause| clause[0].clone()).collect(), true));
    }
    found
}

/// Looks for the changes of a test whose models have these clauses.
fn answer(models: &[&[&[u32]]], tries: bool) -> LiveReport {
    let run = |changes: &[Change]| {
        let models = models.iter().enumerate();
        let models = models.map(|(index, clauses)| found(index as u32 + 1, clauses, changes, tries)).collect();
        Ok::<_, Infallible>(TestRun::Ended { models, passed: true })
    };
    strengthen(Goal::Spec, run).unwrap_or_else(|never| match never {})
}

fn lines(report: &LiveReport) -> Vec<u32> {
    report.changes.iter().map(|change| change.place.line).collect()
}

#[test]
fn what_the_library_has_tried_needs_no_other_run() {
    let report = answer(&[&[&[1, 2], &[3]]], true);
    assert!(matches!(report.verdict, LiveVerdict::Fenced) && report.minimal, "{report:?}");
    assert_eq!((report.runs, lines(&report)), (1, vec![1, 3]));
}

#[test]
fn one_change_for_two_models_is_preferred_and_tried() {
    let report = answer(&[&[&[1, 2]], &[&[2, 3]]], true);
    assert!(matches!(report.verdict, LiveVerdict::Fenced) && report.minimal, "{report:?}");
    assert_eq!((report.runs, lines(&report)), (2, vec![2]));
}

#[test]
fn clauses_come_one_after_the_other() {
    let report = answer(&[&[&[1], &[2, 3], &[3, 4]]], false);
    assert!(matches!(report.verdict, LiveVerdict::Fenced) && report.minimal, "{report:?}");
    assert_eq!(lines(&report), [1, 3]);
}

#[test]
fn nothing_is_needed_where_nothing_is_wrong() {
    let report = answer(&[&[], &[]], true);
    assert!(matches!(report.verdict, LiveVerdict::NoneNeeded) && report.changes.is_empty(), "{report:?}");
}

fn of_runs(goal: Goal, run: impl Fn(&[Change]) -> (Vec<Model>, bool)) -> LiveReport {
    let run = |changes: &[Change]| {
        let (models, passed) = run(changes);
        Ok::<_, Infallible>(TestRun::Ended { models, passed })
    };
    strengthen(goal, run).unwrap_or_else(|never| match never {})
}

#[test]
fn a_model_behind_one_that_ends_the_test_is_found_in_the_next_run() {
    let report = of_runs(Goal::Spec, |changes| {
        let first = found(1, &[&[1]], changes, true);
        match first.verdict {
            ModelVerdict::Safe => {
                let second = found(2, &[&[2]], changes, true);
                let passed = second.verdict == ModelVerdict::Safe;
                (vec![first, second], passed)
            }
            _ => (vec![first], false),
        }
    });
    assert!(matches!(report.verdict, LiveVerdict::Fenced), "{report:?}");
    assert_eq!((report.runs, lines(&report)), (3, vec![1, 2]));
}

#[test]
fn a_test_that_fails_outside_of_its_models_has_no_answer() {
    let report = of_runs(Goal::Spec, |changes| (vec![found(1, &[&[1]], changes, true)], false));
    let doubt = matches!(report.verdict, LiveVerdict::Inconclusive(LiveDoubt::FailsOutside));
    assert!(doubt && !report.minimal && lines(&report) == [1], "{report:?}");
}

#[test]
fn what_happens_in_spite_of_all_changes_has_no_answer() {
    let report = of_runs(Goal::Spec, |_| (vec![found(1, &[&[1]], &[], false)], true));
    assert!(matches!(report.verdict, LiveVerdict::Inconclusive(LiveDoubt::Helpless(_))), "{report:?}");
}

#[test]
fn an_error_on_every_processor_is_impossible_to_fence() {
    let mut failed = model(2, ModelVerdict::Failed);
    let report = of_runs(Goal::Spec, |_| (vec![model(1, ModelVerdict::Safe), failed.clone()], false));
    assert!(matches!(report.verdict, LiveVerdict::Impossible(model) if model.number == 2));
    let (kind, message) = ("not-deterministic".to_owned(), String::new());
    failed.why = Some(Why { kind, message, place: None });
    let report = of_runs(Goal::Spec, |_| (vec![failed.clone()], false));
    assert!(matches!(report.verdict, LiveVerdict::Inconclusive(LiveDoubt::Open(_))), "{report:?}");
}

#[test]
fn what_was_not_all_explored_is_no_proof() {
    let bounded = Model { exhaustive: false, ..model(1, ModelVerdict::Bounded) };
    let report = of_runs(Goal::Spec, |_| (vec![bounded.clone()], true));
    assert!(matches!(report.verdict, LiveVerdict::Inconclusive(LiveDoubt::Open(_))), "{report:?}");
}

#[test]
fn what_does_no_harm_is_enough_for_the_specification_alone() {
    let benign = model(1, ModelVerdict::Benign);
    let report = of_runs(Goal::Spec, |_| (vec![benign.clone()], true));
    assert!(matches!(report.verdict, LiveVerdict::NoneNeeded), "{report:?}");
    let report = of_runs(Goal::Robust, |_| (vec![benign.clone()], true));
    assert!(matches!(report.verdict, LiveVerdict::Inconclusive(LiveDoubt::Helpless(_))), "{report:?}");
}

#[test]
fn a_limit_ends_the_search() {
    let stopped = |_: &[Change]| Ok::<_, Infallible>(TestRun::Stopped(Limit::Time));
    let report = strengthen(Goal::Spec, stopped).unwrap_or_else(|never| match never {});
    assert!(matches!(report.verdict, LiveVerdict::Inconclusive(LiveDoubt::Limit(Limit::Time))), "{report:?}");
}
