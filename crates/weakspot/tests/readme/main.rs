//! What the README shows of a failing test is what the test says.
#![allow(clippy::unwrap_used)]

#[allow(clippy::enum_glob_use, clippy::unwrap_used)]
mod session;

use std::path::Path;

/// Without how long it took.
fn without_time(text: &str) -> String {
    let lines = text.trim().lines().map(|line| match line.split_once(", all of them, in ") {
        Some((executions, _)) => executions,
        None => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Wider than any terminal need be.
const COLUMNS: &str = "200";

#[test]
fn the_session_is_real() {
    // In a process of its own, because a timeline is as wide as the terminal lets it.
    if std::env::var("COLUMNS").is_ok_and(|columns| columns == COLUMNS) {
        return compare();
    }
    let mut test = std::process::Command::new(std::env::current_exe().unwrap());
    let test = test.args(["--exact", "the_session_is_real"]).env("COLUMNS", COLUMNS).output().unwrap();
    assert!(test.status.success(), "{}", String::from_utf8_lossy(&test.stdout));
}

fn compare() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let code = std::fs::read_to_string(root.join("crates/weakspot/tests/readme/session.rs")).unwrap();
    let (_, knock) = code.split_once("/// Two threads").unwrap();
    for part in knock.split("\n\n") {
        // What differs is how a test begins.
        let (_, part) = part.split_once("fn ").unwrap();
        assert!(readme.contains(part.trim_end()), "not in the README: {part}");
    }
    // The replay line names the test, which is the name of its thread.
    let test = std::thread::Builder::new().name("at_most_one_enters".to_owned());
    let message = test.spawn(session::at_most_one_enters).unwrap().join().unwrap_err();
    let message = message.downcast_ref::<String>().unwrap();
    let (_, shown) = readme.split_once("$ cargo test\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    // The README is about a crate of its own, tested by `cargo test`.
    let message = message.lines().map(|line| match line.split_once("at_most_one_enters") {
        Some((command, _)) if line.contains("WEAKSPOT_REPLAY") => {
            let replay = command.split(' ').find(|word| word.starts_with("WEAKSPOT_REPLAY")).unwrap();
            format!("to run this execution again: {replay} cargo test at_most_one_enters -- --exact")
        }
        _ => line.to_owned(),
    });
    let message = message.collect::<Vec<_>>().join("\n");
    let file = file!().replace("main.rs", "session.rs");
    assert_eq!(without_time(&message.replace(&file, "src/lib.rs")), without_time(shown));
}
