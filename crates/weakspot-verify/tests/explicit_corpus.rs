//! The explicit engine against what the files of the corpus say about themselves (`//! expect verify M: …`).
//!
//! A file whose buffers grow without end gives no answer within a bound; then the engine must say so, and nothing else.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use weakspot_front::weak::{self, Compiled, Expected, VerifyVerdict};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit, Verdict};
use weakspot_testkit::corpus;
use weakspot_verify::explicit::{self, ExplicitOptions};

/// States a test may look at for one answer.
const MAX_STATES: u64 = 200_000;

/// A state space is large from here on: what is allocated once no longer counts.
const LARGE: u64 = 10_000;

/// What went wrong, or how the answer came out.
fn judge(
    compiled: &Compiled,
    model: MemoryModel,
    expected: VerifyVerdict,
    options: &ExplicitOptions,
) -> Result<&'static str, String> {
    let options = ExplicitOptions { model, max_states: Some(MAX_STATES), ..options.clone() };
    let report = explicit::try_verify(&compiled.program, &options, &Budget::unlimited(), &()).unwrap();
    match (report.verdict, expected) {
        (Verdict::Verified, VerifyVerdict::Verified) => Ok("verified"),
        (Verdict::Violated(_), VerifyVerdict::Violated) => Ok("violated"),
        (Verdict::Inconclusive(Limit::Buffer(_)), VerifyVerdict::Verified) => Ok("bounded"),
        (Verdict::Inconclusive(Limit::States(_)), _) => Ok("large"),
        (verdict, expected) => Err(format!("{}: {verdict:?}, expected {expected:?}", model.name())),
    }
}

#[test]
fn the_corpus_is_right_about_itself() {
    let mut wrong = Vec::new();
    let mut answers = BTreeMap::new();
    for path in corpus::programs() {
        let source = SourceFile::new(path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        let Ok(compiled) = weak::compile(&source) else { continue };
        for expectation in &compiled.expectations {
            let Expected::Verify { model, verdict: expected } = expectation.expected else { continue };
            for reduce in [true, false] {
                let options = ExplicitOptions { reduce, buffer: 4, ..ExplicitOptions::new(model) };
                match judge(&compiled, model, expected, &options) {
                    Ok(answer) => *answers.entry(answer).or_insert(0) += 1,
                    Err(error) => wrong.push(format!("{}: {error}", path.display())),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let answered = answers["verified"] + answers["violated"];
    let open: usize = answers.values().sum::<usize>() - answered;
    assert!(answered > 1000 && open * 20 < answered, "too few answers: {answers:?}");
}

#[test]
fn large_state_spaces_of_the_corpus_take_at_most_64_bytes_a_state() {
    let mut measured = 0;
    for path in corpus::programs() {
        let source = SourceFile::new(path.display().to_string(), std::fs::read_to_string(&path).unwrap());
        let Ok(compiled) = weak::compile(&source) else { continue };
        if compiled.program.threads.len() > 4 || compiled.program.locations.len() > 8 {
            continue;
        }
        // Where counters have no end, local states do not repeat: there are as many of them as states.
        if path.parent().is_some_and(|folder| folder.ends_with("abstract")) {
            continue;
        }
        for model in MemoryModel::ALL {
            let options =
                ExplicitOptions { reduce: false, max_states: Some(MAX_STATES), ..ExplicitOptions::new(model) };
            let outcomes = explicit::outcomes(&compiled.program, &options, &Budget::unlimited(), &()).unwrap();
            if outcomes.states >= LARGE {
                measured += 1;
                let each = outcomes.stored_bytes / outcomes.states;
                assert!(each <= 64, "{} {}: {each} bytes", path.display(), model.name());
            }
        }
    }
    assert!(measured > 10, "only {measured} large models");
}
