//! The shared suite of x86 litmus tests, where it lies beside the repository: every file is read, and what is observed
//! is what the reference results list.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use weakspot_front::litmus;
use weakspot_model::litmus::{LitmusTest, Observable, Quantifier};

/// The suite's folder, if it is there.
fn suite() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/litmus");
    if folder.join("golden.tsv").is_file() {
        return Some(folder);
    }
    println!("skipped: no shared litmus suite at {}", folder.display());
    None
}

fn read(folder: &Path, file: &str) -> LitmusTest {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    support::parse(file, &text)
}

fn rows(folder: &Path, table: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(folder.join(table)).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// The names in the first of a set of states.
fn names_in_states(states: &str) -> Vec<&str> {
    let first = states.split(';').next().unwrap();
    first.split(',').map(|binding| binding.split('=').next().unwrap()).collect()
}

fn names(test: &LitmusTest, observables: &[Observable]) -> Vec<String> {
    observables.iter().map(|&observable| litmus::observable_name(test, observable)).collect()
}

#[test]
fn every_shared_test_is_read_as_the_reference_results_say() {
    let Some(folder) = suite() else { return };
    let rows = rows(&folder, "golden.tsv");
    assert!(!rows.is_empty());
    for row in &rows {
        let test = read(&folder, &row[0]);
        assert_eq!(test.program.threads.len(), row[1].parse::<usize>().unwrap(), "{}", row[0]);
        let quantifier = match test.quantifier {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::Forall => "forall",
        };
        assert_eq!(quantifier, row[10], "{}", row[0]);
        assert_eq!(names(&test, &test.observed), names_in_states(&row[2]), "{}", row[0]);
    }
}

#[test]
fn full_states_show_the_registers_the_code_writes_and_the_locations_it_names() {
    let Some(folder) = suite() else { return };
    for row in rows(&folder, "golden_full.tsv") {
        let test = read(&folder, &row[0]);
        let all = litmus::all_observables(&test);
        assert_eq!(names(&test, &all), names_in_states(&row[1]), "{}", row[0]);
    }
}

/// Small enough for the brute-force oracle.
fn is_small(test: &LitmusTest) -> bool {
    let events = test.program.threads.iter().flat_map(|thread| &thread.code).filter(|instr| instr.is_event()).count();
    events <= 7
}

#[test]
fn small_shared_tests_have_the_reference_states_executions_and_robustness_on_the_reference_machine() {
    let Some(folder) = suite() else { return };
    let full = rows(&folder, "golden_full.tsv");
    let mut checked = 0;
    for (row, full_row) in rows(&folder, "golden.tsv").iter().zip(&full) {
        assert_eq!(row[0], full_row[0]);
        let test = read(&folder, &row[0]);
        if !is_small(&test) {
            continue;
        }
        checked += 1;
        let all = litmus::all_observables(&test);
        let shown: Vec<usize> =
            test.observed.iter().map(|o| all.iter().position(|known| known == o).unwrap()).collect();
        for (index, model) in support::MODELS.into_iter().enumerate() {
            let answer = support::explore(&test, model, &all);
            let observed = answer.states.iter().map(|state| shown.iter().map(|&at| state[at]).collect()).collect();
            let place = format!("{} under {}", row[0], model.name());
            assert_eq!(support::state_text(&test, &all, &answer.states), full_row[1 + index], "{place}");
            assert_eq!(support::state_text(&test, &test.observed, &observed), row[2 + index], "{place}");
            assert_eq!(support::verdict(&test, &observed), row[5 + index], "{place}");
            assert_eq!(answer.executions.to_string(), row[11 + index], "{place}");
            if index > 0 {
                assert_eq!(if answer.robust { "yes" } else { "no" }, row[7 + index], "{place}");
            }
        }
    }
    assert!(checked > 100, "only {checked} small tests");
}
