//! The `LOOM_*` variables, with values that are right and with values that are not. Each test runs itself in a process of
//! its own, because variables belong to the process.
#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::process::Command;

use weakspot_loom::sync::Arc;
use weakspot_loom::sync::atomic::AtomicUsize;
use weakspot_loom::sync::atomic::Ordering::SeqCst;
use weakspot_loom::thread;

/// Set in the processes.
const INSIDE: &str = "WEAKSPOT_TEST_INSIDE";

#[test]
fn inside() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    weakspot_loom::model(|| {
        let shared = Arc::new(AtomicUsize::new(0));
        let other = shared.clone();
        let add = |shared: &AtomicUsize| (0..3).for_each(|_| _ = shared.fetch_add(1, SeqCst));
        let thread = thread::spawn(move || add(&other));
        add(&shared);
        thread.join().unwrap();
    });
}

/// Does the test pass with a variable, and what does it say?
fn run(name: &str, value: impl AsRef<OsStr>) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "inside", "--nocapture"]).env(INSIDE, "1").env("RUST_BACKTRACE", "0");
    let output = command.env("WEAKSPOT_LOG", "1").env(name, value).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn good_values_do_what_they_say() {
    for (name, value, says) in [
        ("LOOM_MAX_PREEMPTIONS", "2", "20 executions, all of them"),
        ("LOOM_MAX_BRANCHES", "2", "20 executions, all of them"),
        ("LOOM_MAX_PERMUTATIONS", "7", "\n7 executions, not all: a guess at their number is "),
        ("LOOM_MAX_DURATION", " 60 ", "20 executions, all of them"),
        ("LOOM_MAX_DURATION", "0", "nothing found until the time was over"),
        ("LOOM_CHECKPOINT_INTERVAL", "1", "20 executions, all of them"),
        ("LOOM_LOCATION", "1", "20 executions, all of them"),
        ("LOOM_LOG", "trace", "20 executions, all of them"),
    ] {
        let (passes, text) = run(name, value);
        assert!(passes && text.contains(says), "{name}={value}: {text}");
    }
    for name in ["MAX_PREEMPTIONS", "MAX_BRANCHES", "MAX_PERMUTATIONS", "MAX_DURATION", "CHECKPOINT_FILE", "LOG"] {
        let (passes, text) = run(&format!("LOOM_{name}"), "");
        assert!(passes && text.contains("20 executions, all of them"), "{name} is empty: {text}");
    }
}

#[test]
fn bad_values_are_named_where_the_model_is_started() {
    for name in ["MAX_PREEMPTIONS", "MAX_BRANCHES", "MAX_PERMUTATIONS", "MAX_DURATION", "CHECKPOINT_INTERVAL"] {
        for value in ["many", "-1", "1.5", "99999999999999999999999"] {
            let (passes, text) = run(&format!("LOOM_{name}"), value);
            assert!(!passes && text.contains(&format!("LOOM_{name}={value} should be a whole number")), "{text}");
            assert!(text.contains("environment.rs:") && !text.contains("model.rs:"), "{text}");
        }
    }
}

#[test]
fn a_file_that_is_no_checkpoint_is_said_to_be_none() {
    let file = std::env::temp_dir().join(format!("weakspot-loom-no-checkpoint-{}", std::process::id()));
    for (content, says) in [
        (&b"{\"loom\": 1}"[..], "cannot be run"),
        (b"\xff\xfe", "cannot be run"),
        (b"sc:0x9", "cannot be run"),
        (b"sc:0x4.1x5.0", "does not fail any more"),
    ] {
        std::fs::write(&file, content).unwrap();
        let (passes, text) = run("LOOM_CHECKPOINT_FILE", &file);
        assert!(passes && text.contains(says) && text.contains("all are explored"), "{content:?}: {text}");
        assert!(text.contains("20 executions, all of them"), "{content:?}: {text}");
    }
    let _ = std::fs::remove_file(&file);
}
