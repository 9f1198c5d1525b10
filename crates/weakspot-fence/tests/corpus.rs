//! Every `//! expect fence` line of the corpus, and every result checked by an engine that took no part.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test reports by panicking, and prints its tally")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weakspot_fence::{FenceOptions, FenceReport, FenceVerdict, Goal, confirm, infer};
use weakspot_front::weak::{self, Expected};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Verdict};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};

fn weak_files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "weak"));
    files.sort();
    files
}

fn run_folder(folder: &str, required: usize) {
    let (mut wrong, mut agreed, mut open, mut alone) = (Vec::new(), 0, Vec::new(), Vec::new());
    for path in weak_files(folder) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let source = SourceFile::new(name.as_str(), fs::read_to_string(&path).unwrap());
        for expectation in weak::compile(&source).unwrap().expectations {
            let Expected::Fence { model, count } = expectation.expected else { continue };
            let report = infer(&source, &FenceOptions::new(model, Goal::Spec), &Budget::unlimited(), &()).unwrap();
            let line = format!("{name}: {}: {}", model.name(), described(&report));
            let found = report.placement.as_ref().map(|placement| placement.cost);
            match (found, report.minimal) {
                (Some(found), true) if found == u64::from(count) => agreed += 1,
                (Some(found), false) if found >= u64::from(count) => open.push(line),
                (None, false) => open.push(line),
                _ => wrong.push(format!("{line}, {count} expected")),
            }
            match check_independently(&source, model, &report) {
                Ok(Confirmation::Confirmed) => {}
                Ok(Confirmation::NobodyElse) => alone.push(format!("{name}: {}", model.name())),
                Err(doubt) => wrong.push(format!("{name}: {}: {doubt}", model.name())),
            }
        }
    }
    println!("{agreed} agree, {} open:\n{}", open.len(), open.join("\n"));
    println!("{} proved by the symbolic engine alone:\n{}", alone.len(), alone.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(agreed >= required, "only {agreed} expectations were decided");
    assert!(alone.len() * 8 <= agreed, "too many without a second opinion");
}

fn described(report: &FenceReport) -> String {
    let cost = report.placement.as_ref().map_or_else(|| "-".to_owned(), |placement| placement.cost.to_string());
    let verdict = match report.verdict {
        FenceVerdict::NoneNeeded => "none needed",
        FenceVerdict::Fenced => "fenced",
        FenceVerdict::Impossible(_) => "impossible",
        FenceVerdict::Inconclusive(_) => "inconclusive",
    };
    format!("{verdict}, cost {cost}, at least {}, minimal {}", report.at_least, report.minimal)
}

/// What an engine that took no part says of a fenced program.
enum Confirmation {
    Confirmed,
    /// Stores fill buffers without end, so only the symbolic engine has a proof; no bounded search found a violation.
    NobodyElse,
}

/// The inference used the reduced search; this looks at all interleavings, or proves store-buffer safety.
fn check_independently(
    source: &Arc<SourceFile>,
    model: MemoryModel,
    report: &FenceReport,
) -> Result<Confirmation, String> {
    let Some(placement) = &report.placement else { return Ok(Confirmation::Confirmed) };
    let program = weak::compile(&SourceFile::new(source.name.as_str(), placement.text.as_str())).unwrap().program;
    let options = ExplicitOptions { reduce: false, max_states: Some(300_000), ..ExplicitOptions::new(model) };
    match explicit::verify(&program, &options, &Budget::unlimited(), &()).verdict {
        Verdict::Verified => Ok(Confirmation::Confirmed),
        Verdict::Violated(witness) => Err(format!("the fenced program is wrong: {}", witness.problem.message)),
        Verdict::Inconclusive(_) => {
            let options = RobustOptions { model, all: false, spurious_wakeups: false };
            match robust::check(&program, options, &Budget::unlimited(), &()).unwrap().verdict {
                RobustVerdict::Robust => Ok(Confirmation::Confirmed),
                RobustVerdict::NotRobust | RobustVerdict::Inconclusive(_) => Ok(Confirmation::NobodyElse),
            }
        }
    }
}

/// Fences for store-buffer safety are found by the attack engine; what is safe is as correct as under SC, which the
/// explicit engine can see.
#[test]
fn programs_that_are_made_robust_are_correct() {
    let mut answers = 0;
    for folder in ["litmus-weak", "mutex", "sync", "structures", "papers", "fences"] {
        for path in weak_files(folder) {
            let source = SourceFile::new(path.display().to_string(), fs::read_to_string(&path).unwrap());
            for model in [MemoryModel::Tso, MemoryModel::Pso] {
                let report =
                    infer(&source, &FenceOptions::new(model, Goal::Robust), &Budget::unlimited(), &()).unwrap();
                let placement = report.placement.expect("the attack engine always has an answer");
                let spec = FenceOptions::new(model, Goal::Spec);
                let fenced = SourceFile::new(source.name.as_str(), placement.text.as_str());
                let relaxed = confirm(&fenced, &spec, &Budget::unlimited(), &()).unwrap();
                let sc = FenceOptions::new(MemoryModel::Sc, Goal::Spec);
                let calm = confirm(&source, &sc, &Budget::unlimited(), &()).unwrap();
                assert_eq!(relaxed, calm, "{} {}", source.name, model.name());
                assert!(report.minimal, "{} {}", source.name, model.name());
                answers += 1;
            }
        }
    }
    assert!(answers >= 500, "only {answers} answers");
}

#[test]
fn litmus_tests() {
    run_folder("litmus-weak", 144);
}

#[test]
fn mutual_exclusion() {
    run_folder("mutex", 130);
}

#[test]
fn synchronisation() {
    run_folder("sync", 62);
}

#[test]
fn data_structures() {
    run_folder("structures", 64);
}

#[test]
fn papers() {
    run_folder("papers", 94);
}

#[test]
fn processes_written_out() {
    run_folder("fences", 12);
}

#[test]
fn the_language() {
    run_folder("language", 110);
}
