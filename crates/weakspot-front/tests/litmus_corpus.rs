//! The classics of `corpus/litmus`: every file says at its top what is true of it, and the brute-force oracle agrees.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::PathBuf;

/// What the first line of a file promises.
struct Expectation {
    verdicts: [String; 3],
    robust: [String; 2],
}

/// Reads `(* expect sc: No, tso: Ok, pso: Ok; robust tso: no, pso: no *)`.
fn expectation(text: &str) -> Option<Expectation> {
    let line = text.lines().next()?.strip_prefix("(* expect ")?.strip_suffix(" *)")?;
    let (verdicts, robust) = line.split_once("; robust ")?;
    let values = |list: &str, names: &[&str]| -> Option<Vec<String>> {
        let parts: Vec<&str> = list.split(", ").collect();
        let value = |(part, name): (&&str, &&str)| Some(part.strip_prefix(name)?.strip_prefix(": ")?.to_owned());
        (parts.len() == names.len()).then(|| parts.iter().zip(names).map(value).collect())?
    };
    Some(Expectation {
        verdicts: values(verdicts, &["sc", "tso", "pso"])?.try_into().ok()?,
        robust: values(robust, &["tso", "pso"])?.try_into().ok()?,
    })
}

#[test]
fn classics_have_the_verdicts_and_the_robustness_they_promise() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/litmus");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "litmus"));
    assert!(files.len() >= 60, "only {} classics", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap();
        let expected = expectation(&text).unwrap_or_else(|| panic!("{name}: no expectation in the first line"));
        let test = support::parse(name, &text);
        assert_eq!(test.name, name);
        for (index, model) in support::MODELS.into_iter().enumerate() {
            let answer = support::explore(&test, model, &test.observed);
            let verdict = support::verdict(&test, &answer.states);
            if verdict != expected.verdicts[index] {
                wrong.push(format!("{name}: {} gives {verdict}", model.name()));
            }
            let robust = if answer.robust { "yes" } else { "no" };
            if index == 0 {
                assert_eq!(robust, "yes", "{name} under sc");
            } else if robust != expected.robust[index - 1] {
                wrong.push(format!("{name}: robust {}: {robust}", model.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
