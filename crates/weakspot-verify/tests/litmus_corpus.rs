//! The litmus tests of `corpus/litmus`: each says in its first line what is true of it.
#![allow(clippy::unwrap_used)]

use std::fs;

use weakspot_front::litmus::parse;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::litmus::LitmusTest;
use weakspot_model::source::SourceFile;
use weakspot_testkit::corpus;
use weakspot_verify::litmus::{Scratch, run};

/// The corpus may grow, not shrink.
const AT_LEAST: usize = 84;

/// What the engine says of a test, in the form in which the files say it.
fn answer(test: &LitmusTest, scratch: &mut Scratch) -> String {
    let outcomes = MemoryModel::ALL.map(|model| run(test, model, scratch).unwrap());
    let verdict = |index: usize| if outcomes[index].condition_holds { "Ok" } else { "No" };
    let robust = |index: usize| if outcomes[index].robust { "yes" } else { "no" };
    assert!(outcomes[0].robust, "every SC execution is SC");
    format!(
        "(* expect sc: {}, tso: {}, pso: {}; robust tso: {}, pso: {} *)",
        verdict(0),
        verdict(1),
        verdict(2),
        robust(1),
        robust(2)
    )
}

#[test]
fn every_file_has_the_outcome_it_promises() {
    let mut scratch = Scratch::default();
    let mut wrong = Vec::new();
    let files = corpus::files("corpus/litmus", &["litmus"]);
    for file in &files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let text = fs::read_to_string(file).unwrap();
        let promised = text.lines().next().unwrap().to_owned();
        let test = parse(&SourceFile::new(name, text)).unwrap_or_else(|errors| panic!("{name}: {errors:?}"));
        let found = answer(&test, &mut scratch);
        if found != promised {
            wrong.push(format!("{name}\n  promises {promised}\n  has      {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() >= AT_LEAST, "only {} files", files.len());
}
