//! Every kind of mistake, and what is said about it.
//!
//! `tests/ui/NAME.weak` is compiled and its diagnostics, warnings included, compared with `tests/ui/NAME.stderr`.
//! `UPDATE_EXPECT=1 cargo test -p weakspot-front --test ui` writes the `.stderr` files anew; read the difference before
//! committing it.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};

use weakspot_front::weak;
use weakspot_model::source::SourceFile;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ui");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.retain(|path| path.extension().is_some_and(|extension| extension == "weak"));
    cases.sort();
    cases
}

fn rendered(path: &Path) -> String {
    let name = path.file_name().unwrap().to_str().unwrap();
    let source = SourceFile::new(name, std::fs::read_to_string(path).unwrap());
    match weak::compile(&source) {
        Ok(compiled) => common::render(&source, &compiled.warnings),
        Err(errors) => common::render(&source, &errors),
    }
}

#[test]
fn messages_are_as_recorded() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for path in cases() {
        let (expected_path, actual) = (path.with_extension("stderr"), rendered(&path));
        assert!(!actual.is_empty(), "{} has no diagnostics", path.display());
        if update {
            std::fs::write(&expected_path, &actual).unwrap();
        }
        let expected = std::fs::read_to_string(&expected_path).unwrap_or_default();
        if expected != actual {
            wrong.push(format!("{}\n--- recorded\n{expected}--- now\n{actual}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}\nrun with UPDATE_EXPECT=1 to record these", wrong.join("\n"));
}

#[test]
fn every_error_says_what_to_do() {
    for path in cases() {
        let source = SourceFile::new("case.weak", std::fs::read_to_string(&path).unwrap());
        let Err(errors) = weak::compile(&source) else { continue };
        for error in errors {
            assert!(error.help.is_some(), "{}: {}", path.display(), error.message);
            assert!(!error.code.is_empty() && !error.message.ends_with('.'), "{}: {error:?}", path.display());
        }
    }
}
