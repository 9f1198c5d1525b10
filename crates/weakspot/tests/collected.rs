//! `WEAKSPOT_SUGGESTIONS`: what is written of each model, and what that does to a test. Each test runs itself in a process
//! of its own, because variables belong to the process.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use weakspot::sync::Arc;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
use weakspot::{Builder, FailOn, MemoryModel, thread};

/// Set in the processes.
const INSIDE: &str = "WEAKSPOT_TEST_INSIDE";

/// The line of the store.
const STORE: u32 = line!() + 4;

/// Stores one flag and looks at the other.
fn knock(mine: &AtomicUsize, other: &AtomicUsize) -> bool {
    mine.store(1, Release);
    other.load(Relaxed) == 0
}

fn both_knock(fails: bool) {
    let flags = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let theirs = Arc::clone(&flags);
    let they = thread::spawn(move || knock(&theirs.1, &theirs.0));
    let we = knock(&flags.0, &flags.1);
    let both = we && they.join().unwrap();
    assert!(!(both && fails), "both are in");
}

/// Fails because of store buffers, does no harm, has nothing to do with them, has its own ideas.
#[test]
fn inside_four_models() {
    if std::env::var_os(INSIDE).is_some() {
        weakspot::model(|| both_knock(true));
        weakspot::model(|| both_knock(false));
        weakspot::model(|| AtomicUsize::new(0).store(1, SeqCst));
        let mut own =
            Builder { model: MemoryModel::Sc, fail_on: FailOn::Nothing, monitor: false, ..Builder::default() };
        own.replay = Some("sc:0x2".to_owned());
        own.model(|| both_knock(true));
    }
}

#[test]
fn inside_an_error() {
    if std::env::var_os(INSIDE).is_some() {
        weakspot::model(|| panic!("always"));
        weakspot::model(|| AtomicUsize::new(0).store(1, SeqCst));
    }
}

/// Does a test pass when suggestions are collected, and what is written?
fn collected(test: &str, variables: &[(&str, &str)]) -> (bool, String) {
    let file = std::env::temp_dir().join(format!("weakspot-{test}-{}-{}", variables.len(), std::process::id()));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(INSIDE, "1").env("WEAKSPOT_SUGGESTIONS", &file);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    (output.status.success(), text)
}

fn lines<'t>(text: &'t str, kind: &str) -> Vec<&'t str> {
    text.lines().filter_map(|line| line.strip_prefix(kind)?.strip_prefix('\t')).collect()
}

fn verdicts(text: &str) -> Vec<&str> {
    lines(text, "model").into_iter().map(|line| line.split('\t').nth(5).unwrap()).collect()
}

#[test]
fn every_model_has_its_block_and_store_buffers_do_not_end_a_test() {
    let (passes, text) = collected("inside_four_models", &[("WEAKSPOT_MODEL", "tso"), ("WEAKSPOT_FAIL_ON", "harmful")]);
    assert!(passes, "{text}");
    assert_eq!(verdicts(&text), ["harmful", "benign", "safe", "harmful"], "{text}");
    let helps = text.split("helps\tproved\n").nth(1).unwrap();
    let change = lines(helps, "change")[0];
    let (place, line) =
        (format!("SeqCst\t{}\t{STORE}\t10\tordering\t", file!()), format!("    mine.store(1, SeqCst);\t{STORE}"));
    assert!(change.starts_with(&place) && change.ends_with(&line), "{text}");
    assert!(text.contains("why\tpanic\tboth are in\t") && text.ends_with("\nend\n"), "{text}");
}

#[test]
fn the_goal_and_changes_that_are_asked_for_count_for_every_model() {
    let (passes, text) = collected("inside_four_models", &[("WEAKSPOT_FAIL_ON", "unsafe")]);
    assert!(passes, "{text}");
    assert_eq!(verdicts(&text), ["harmful", "benign", "safe", "safe"], "the last one has its own model: {text}");
    assert_eq!(text.matches("helps\tproved").count(), 2, "{text}");
    let changed = format!("SeqCst@{}:{STORE}:10", file!());
    let asked = [("WEAKSPOT_MODEL", "pso"), ("WEAKSPOT_FAIL_ON", "unsafe"), ("WEAKSPOT_STRENGTHENED", &changed)];
    let (passes, text) = collected("inside_four_models", &asked);
    assert!(passes && !text.contains("clause"), "{text}");
    assert_eq!(verdicts(&text), ["safe"; 4], "{text}");
}

#[test]
fn an_error_on_every_processor_ends_its_test() {
    let (passes, text) = collected("inside_an_error", &[]);
    assert!(!passes, "{text}");
    assert_eq!(verdicts(&text), ["failed"], "{text}");
    assert!(text.contains("why\tpanic\talways\t"), "{text}");
}
