//! Every kind of bad litmus input and what is said about it: `litmus_ui/NAME.litmus` and `litmus_ui/NAME.expected`.
//!
//! `UPDATE_EXPECT=1 cargo test -p weakspot-front --test litmus_ui` writes the expectations anew.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use weakspot_front::litmus;
use weakspot_model::source::{Diagnostic, SourceFile, Span};

/// A place with its source line and a marker under it.
fn render_place(text: &mut String, source: &SourceFile, span: Span, label: &str) {
    let position = source.position(span.start as usize);
    let line = source.line(position.line).replace(|c: char| c.is_control() && c != '\t', "?");
    let shown: String = line.chars().take(100).collect();
    let length = source.text[span.range()].chars().take_while(|&c| c != '\n').count().clamp(1, 100);
    let indent: String =
        line.chars().take(position.column as usize - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    writeln!(text, " --> {}:{}:{}", source.name, position.line, position.column).unwrap();
    writeln!(text, "  | {shown}").unwrap();
    writeln!(text, "{}", format!("  | {indent}{} {label}", "^".repeat(length)).trim_end()).unwrap();
}

fn render(source: &SourceFile, diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        writeln!(text, "error[{}]: {}", diagnostic.code, diagnostic.message).unwrap();
        render_place(&mut text, source, diagnostic.span, &diagnostic.label);
        for (span, label) in &diagnostic.related {
            render_place(&mut text, source, *span, label);
        }
        if let Some(help) = &diagnostic.help {
            writeln!(text, "  = help: {help}").unwrap();
        }
        writeln!(text).unwrap();
    }
    text
}

#[test]
fn bad_input_gets_the_expected_messages() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/litmus_ui");
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "litmus"));
    assert!(files.len() >= 30, "only {} files", files.len());
    let mut wrong = Vec::new();
    for file in &files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let source: Arc<SourceFile> = SourceFile::new(name, fs::read_to_string(file).unwrap());
        let diagnostics = litmus::parse(&source).expect_err(name);
        assert!(!diagnostics.is_empty(), "{name}: refused without a word");
        let found = render(&source, &diagnostics);
        let expected_file = file.with_extension("expected");
        if update {
            fs::write(&expected_file, &found).unwrap();
        } else if fs::read_to_string(&expected_file).unwrap_or_default() != found {
            wrong.push(format!("---- {name}, found:\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}\nrun with UPDATE_EXPECT=1 if that is what should be said", wrong.join("\n"));
}
