//! Every column of the reference verdicts, when the directory with them stands beside the repository.
//!
//! `FORMAT.txt` there describes the columns. A second test compares the final states with brute force over the
//! operational machine.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use weakspot_front::litmus::{all_observables, observable_name, parse};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::litmus::{LitmusTest, Observable, Quantifier};
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_verify::litmus::{LitmusOutcome, Scratch, run};

fn shared_directory() -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/litmus");
    if directory.join("golden.tsv").exists() {
        return Some(directory);
    }
    eprintln!("note: {} is absent; nothing was compared", directory.display());
    None
}

/// A table with one header line: its rows, each as column name to field.
fn table(path: &Path) -> Vec<HashMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let header: Vec<String> = lines.next().unwrap().collect();
    lines.map(|fields| header.iter().cloned().zip(fields).collect()).collect()
}

fn read(directory: &Path, file: &str) -> LitmusTest {
    let text = fs::read_to_string(directory.join(file)).unwrap();
    parse(&SourceFile::new(file, text)).unwrap_or_else(|errors| panic!("{file}: {errors:?}"))
}

/// States as the tables write them.
fn states_text(test: &LitmusTest, outcome: &LitmusOutcome) -> String {
    let names: Vec<String> = test.observed.iter().map(|&observable| observable_name(test, observable)).collect();
    let state = |(values, _): &(Vec<i64>, u64)| {
        let bindings = names.iter().zip(values).map(|(name, value)| format!("{name}={value}"));
        bindings.collect::<Vec<_>>().join(",")
    };
    let states: BTreeSet<String> = outcome.states.iter().map(state).collect();
    states.into_iter().collect::<Vec<_>>().join(";")
}

#[test]
fn all_columns_agree_with_the_reference() {
    let Some(directory) = shared_directory() else { return };
    let full: HashMap<String, HashMap<String, String>> =
        table(&directory.join("golden_full.tsv")).into_iter().map(|row| (row["file"].clone(), row)).collect();
    let mut scratch = Scratch::default();
    let mut disagreements = Vec::new();
    let rows = table(&directory.join("golden.tsv"));
    for row in &rows {
        let file = &row["file"];
        let mut test = read(&directory, file);
        let mut compare = |column: &str, expected: &str, found: &str| {
            if expected != found {
                disagreements.push(format!("{file}, {column}:\n  expected {expected}\n  found    {found}"));
            }
        };
        compare("threads", &row["threads"], &test.program.threads.len().to_string());
        let quantifier = match test.quantifier {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::Forall => "forall",
        };
        compare("quantifier", &row["quantifier"], quantifier);
        for model in MemoryModel::ALL {
            let name = model.name();
            let outcome = run(&test, model, &mut scratch).unwrap();
            assert!(!outcome.unrolled);
            let verdict = if outcome.condition_holds { "Ok" } else { "No" };
            compare(&format!("cond_{name}"), &row[&format!("cond_{name}")], verdict);
            let column = format!("{name}_execs");
            compare(&column, &row[&column], &outcome.executions.to_string());
            let column = format!("{name}_states");
            compare(&column, &row[&column], &states_text(&test, &outcome));
            if model != MemoryModel::Sc {
                let column = format!("robust_{name}");
                compare(&column, &row[&column], if outcome.robust { "yes" } else { "no" });
            }
        }
        test.observed = all_observables(&test);
        for model in MemoryModel::ALL {
            let outcome = run(&test, model, &mut scratch).unwrap();
            let column = format!("{}_full_states", model.name());
            compare(&column, &full[file][&column], &states_text(&test, &outcome));
        }
    }
    assert!(disagreements.is_empty(), "{} disagreements\n{}", disagreements.len(), disagreements.join("\n"));
    assert!(rows.len() >= 1_729, "only {} tests", rows.len());
}

fn brute_force_states(test: &LitmusTest, model: MemoryModel) -> BTreeSet<Vec<i64>> {
    let machine = Machine::new(&test.program, model);
    let bounds = Bounds { visits: 3_000_000, ..Bounds::default() };
    let reach = oracle::reach(&machine, bounds).expect("litmus tests are small");
    let value = |state: &oracle::FinalState, observable: &Observable| match *observable {
        Observable::Register(thread, reg) => state.registers[thread.index()][reg.index()],
        Observable::Memory(loc) => state.memory[loc.index()],
    };
    let observed = |state| test.observed.iter().map(|observable| value(state, observable)).collect();
    reach.finals.iter().map(observed).collect()
}

#[test]
fn final_states_are_those_of_the_machine() {
    let Some(directory) = shared_directory() else { return };
    let mut scratch = Scratch::default();
    for row in table(&directory.join("golden.tsv")) {
        let file = &row["file"];
        let mut test = read(&directory, file);
        test.observed = all_observables(&test);
        for model in MemoryModel::ALL {
            let outcome = run(&test, model, &mut scratch).unwrap();
            let states: BTreeSet<Vec<i64>> = outcome.states.into_iter().map(|(state, _)| state).collect();
            assert_eq!(states, brute_force_states(&test, model), "{file}, {}", model.name());
        }
    }
}
