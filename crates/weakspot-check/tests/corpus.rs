//! Every `//! expect check` line of the corpus.

use std::path::{Path, PathBuf};

use weakspot_check::{CheckOptions, Verdict, check};
use weakspot_front::weak::{self, Expected};
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;

fn weak_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the corpus is there") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            weak_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "weak") {
            files.push(path);
        }
    }
}

#[test]
fn check_expectations_of_the_corpus_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    weak_files(&root.join("corpus"), &mut files);
    weak_files(&root.join("examples"), &mut files);
    files.sort();
    let (mut wrong, mut agreed) = (Vec::new(), 0);
    for path in &files {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let source = SourceFile::new(path.display().to_string(), text);
        let compiled = weak::compile(&source).unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()));
        for expectation in &compiled.expectations {
            let Expected::Check { model, verdict: expected } = &expectation.expected else { continue };
            let options =
                CheckOptions { model: *model, all: false, jobs: 1, allow_deadlock: false, spurious_wakeups: false };
            let report = check(&compiled.program, &options, &Budget::unlimited(), &()).expect("no internal error");
            let found = match report.verdict {
                Verdict::Safe => "safe",
                Verdict::Unsafe(_) => "unsafe",
                Verdict::Error(_) => "error",
                Verdict::Bounded(_) => "bounded",
            };
            if found == expected.name() {
                agreed += 1;
            } else {
                wrong.push(format!("{}: {} is {found}", path.display(), model.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(agreed > 700, "only {agreed} expectations");
}
