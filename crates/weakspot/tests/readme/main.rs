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

#[test]
fn the_session_is_real() {
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
    let file = file!().replace("main.rs", "session.rs");
    assert_eq!(without_time(&message.replace(&file, "src/lib.rs")), without_time(shown));
}
