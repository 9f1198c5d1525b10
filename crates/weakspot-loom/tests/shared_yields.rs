//! In loom's tests two loops of one function that yield in the same helper are not told apart. What comes of the first one's
//! giving up is not explored then, and the report says so.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use weakspot_loom as loom;

use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::sync::atomic::Ordering::SeqCst;
use loom::thread;

/// Set in the process that explores.
const INSIDE: &str = "WEAKSPOT_TEST_INSIDE";

fn backoff() {
    thread::yield_now();
}

/// The line of the call that says that a loop waits.
const LINE: u32 = 18;

/// Looks three times, then for as long as it takes; says that it has given up the first time.
fn wait_twice(flag: &AtomicUsize, gave_up: &AtomicUsize) {
    let mut rounds = 0;
    while flag.load(SeqCst) == 0 && rounds < 3 {
        rounds += 1;
        backoff();
    }
    while flag.load(SeqCst) == 0 {
        backoff();
    }
    if rounds == 3 {
        gave_up.store(1, SeqCst);
    }
}

/// Looks for as long as it takes.
fn wait_once(flag: &AtomicUsize, _: &AtomicUsize) {
    while flag.load(SeqCst) == 0 {
        backoff();
    }
}

fn model(wait: fn(&AtomicUsize, &AtomicUsize)) {
    loom::model(move || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || other.0.store(1, SeqCst));
        wait(&shared.0, &shared.1);
        thread.join().unwrap();
    });
}

#[test]
fn inside() {
    match std::env::var(INSIDE).as_deref() {
        Ok("twice") => model(wait_twice),
        Ok("once") => model(wait_once),
        _ => {}
    }
}

/// What is said of a model.
fn said(which: &str) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "inside", "--nocapture"]).env(INSIDE, which).env("WEAKSPOT_LOG", "1");
    let output = command.output().unwrap();
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn loops_that_are_not_told_apart_are_named() {
    let text = said("twice");
    let place = format!("shared_yields.rs:{LINE}:5");
    assert!(text.contains("nothing found except in rounds of loops that were left out"), "{text}");
    let note = text.lines().find(|line| line.starts_with("note: the loop at ")).unwrap_or_else(|| panic!("{text}"));
    assert!(note.contains(&place) && note.contains("in a function that another loop calls, too"), "{note}");
}

#[test]
fn one_loop_with_such_a_helper_is_not() {
    let text = said("once");
    assert!(text.contains("correct on TSO") && !text.contains("note:"), "{text}");
}
