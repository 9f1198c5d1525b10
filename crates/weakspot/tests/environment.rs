//! The `WEAKSPOT_*` variables, with values that are right and with values that are not. Each test runs itself in a
//! process of its own, because variables belong to the process.
#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::process::Command;

use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::sync::{Arc, mpsc};
use weakspot::{Builder, thread};

/// Set in the processes.
const INSIDE: &str = "WEAKSPOT_TEST_INSIDE";

/// Fails if it is asked for: an update is lost.
fn increments(fails: bool) {
    let shared = Arc::new(AtomicUsize::new(0));
    let other = shared.clone();
    let thread = thread::spawn(move || other.store(other.load(SeqCst) + 1, SeqCst));
    shared.store(shared.load(SeqCst) + 1, SeqCst);
    thread.join().unwrap();
    assert!(!fails || shared.load(SeqCst) == 2, "an update is lost");
}

#[test]
fn inside_passes() {
    if std::env::var_os(INSIDE).is_some() {
        weakspot::model(|| increments(false));
    }
}

#[test]
fn inside_passes_aloud() {
    if std::env::var_os(INSIDE).is_some() {
        Builder { log: true, ..Builder::new() }.model(|| increments(false));
    }
}

#[test]
fn inside_fails() {
    if std::env::var_os(INSIDE).is_some() {
        weakspot::model(|| increments(true));
    }
}

/// Threads take turns, so that the schedule is long.
#[test]
fn inside_fails_late() {
    if std::env::var_os(INSIDE).is_some() {
        weakspot::model(|| {
            let ((ask, questions), (answer, answers)) = (mpsc::channel(), mpsc::channel());
            let thread =
                thread::spawn(move || questions.iter().for_each(|question: u32| answer.send(question).unwrap()));
            for question in 0..600 {
                ask.send(question).unwrap();
                assert_eq!(answers.recv().unwrap(), question);
            }
            drop(ask);
            thread.join().unwrap();
            panic!("after all");
        });
    }
}

/// Does a test pass with a variable, and what does it say?
fn run(test: &str, name: &str, value: impl AsRef<OsStr>) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").env("RUST_BACKTRACE", "0").env(name, value);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), text)
}

#[test]
fn good_values_are_taken() {
    for (name, values) in [
        ("WEAKSPOT_MODEL", vec!["sc", "TSO", " pso ", ""]),
        ("WEAKSPOT_JOBS", vec!["0", "1", " 3 ", "1000000", ""]),
        ("WEAKSPOT_MAX_PREEMPTIONS", vec!["0", "1", "4294967295", ""]),
        ("WEAKSPOT_MAX_DURATION", vec!["60", " 0.5 ", "1e3", ""]),
        ("WEAKSPOT_MAX_EXECUTIONS", vec!["60", "18446744073709551615", ""]),
        ("WEAKSPOT_MAX_THREADS", vec!["2", " 60 ", "1000000", ""]),
        ("WEAKSPOT_LOG", vec!["0", "off", "1", "anything", ""]),
        ("WEAKSPOT_REPLAY", vec![""]),
        ("WEAKSPOT_STATS", vec![""]),
        ("WEAKSPOT_FAIL_ON", vec!["harmful", " Unsafe ", "nothing", ""]),
        (
            "WEAKSPOT_STRENGTHENED",
            vec!["SeqCst@src/lib.rs:7:10", "Release@a b.rs:1:2; FenceBefore@c.rs:3:4; AcquireOnFailure@d.rs:5:6", ""],
        ),
        ("WEAKSPOT_SUGGESTIONS", vec![""]),
    ] {
        for value in values {
            let (passes, text) = run("inside_passes", name, value);
            assert!(passes, "{name}={value}: {text}");
            // A place that no operation has is worth a note.
            let noted = name == "WEAKSPOT_STRENGTHENED" && !value.is_empty();
            let talks = noted || name == "WEAKSPOT_LOG" && ["1", "anything"].contains(&value);
            assert_eq!(text.contains("weakspot: correct on TSO"), talks, "{name}={value}: {text}");
        }
    }
}

#[test]
fn bad_values_are_named_where_the_model_is_started() {
    let line = line!();
    for (name, values) in [
        ("WEAKSPOT_MODEL", vec!["arm", "0", "tso,pso"]),
        ("WEAKSPOT_JOBS", vec!["many", "-1", "1.5", "99999999999999999999999"]),
        ("WEAKSPOT_MAX_DURATION", vec!["soon", "-1", "NaN", "inf", "1e99"]),
        ("WEAKSPOT_MAX_EXECUTIONS", vec!["few", "-1", "1.5", "18446744073709551616"]),
        ("WEAKSPOT_MAX_THREADS", vec!["few", "-1", "1.5"]),
        ("WEAKSPOT_MAX_PREEMPTIONS", vec!["few", "-1", "2x", "4294967296"]),
        ("WEAKSPOT_FAIL_ON", vec!["all", "0"]),
        ("WEAKSPOT_STRENGTHENED", vec!["src/lib.rs:7:10", "SeqCst@src/lib.rs", "Relaxed@src/lib.rs:7:10"]),
        ("WEAKSPOT_SUGGESTIONS", vec!["/"]),
    ] {
        for value in values {
            let (passes, text) = run("inside_passes", name, value);
            assert!(!passes && text.contains(&format!("{name}={value} should be ")), "{name}={value}: {text}");
            let place = text.split_once("environment.rs:").and_then(|(_, rest)| rest.split(':').next());
            assert!(place.is_some_and(|place| place.parse::<u32>().unwrap() < line), "{name}={value}: {text}");
        }
    }
    let (passes, text) = run("inside_passes", "WEAKSPOT_STATS", "/");
    assert!(passes && text.contains("WEAKSPOT_STATS: /: "), "{text}");
}

#[test]
fn misspelt_names_are_refused() {
    for (name, meant) in [("WEAKSPOT_MODLE", "WEAKSPOT_MODEL"), ("WEAKSPOT_MAX_PREEMPTION", "WEAKSPOT_MAX_PREEMPTIONS")]
    {
        let (passes, text) = run("inside_passes", name, "1");
        let said = format!("{name} is no variable of weakspot: is {meant} meant?");
        assert!(!passes && text.contains(&said) && text.contains("environment.rs:"), "{text}");
        assert!(run("inside_passes", name, "").0);
    }
    assert!(run("inside_passes", "WEAKSPOT_HOME", "/").0);
}

#[test]
fn time_may_be_limited() {
    let (passes, text) = run("inside_passes", "WEAKSPOT_MAX_DURATION", "0");
    assert!(passes, "{text}");
    let (passes, text) = run("inside_passes_aloud", "WEAKSPOT_MAX_DURATION", "0");
    assert!(passes && text.contains("nothing found until the time was over"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_value_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    for name in ["WEAKSPOT_MODEL", "WEAKSPOT_JOBS", "WEAKSPOT_REPLAY"] {
        let (passes, text) = run("inside_passes", name, OsStr::from_bytes(b"\xff\xfe"));
        assert!(!passes && text.contains(&format!("{name}=")) && text.contains("is no text"), "{text}");
    }
}

#[test]
fn the_line_of_a_report_replays_it() {
    let (passes, text) = run("inside_fails", "WEAKSPOT_LOG", "1");
    assert!(!passes && text.contains("an update is lost"), "{text}");
    let (_, line) = text.split_once("to run this execution again: WEAKSPOT_REPLAY=").unwrap();
    let (schedule, command) = line.lines().next().unwrap().split_once(' ').unwrap();
    assert!(command.contains("inside_fails") && command.contains("--exact"), "{command}");
    for schedule in [schedule.to_owned(), format!(" {schedule} ")] {
        let (passes, text) = run("inside_fails", "WEAKSPOT_REPLAY", schedule);
        assert!(!passes && text.contains("an update is lost"), "{text}");
    }
    // It is no schedule of the other test, which goes on after the last step.
    let (passes, text) = run("inside_passes", "WEAKSPOT_REPLAY", "sc:0.0");
    assert!(!passes && text.contains("the schedule is another test's"), "{text}");
}

#[test]
fn a_schedule_that_is_too_long_for_a_line_is_in_a_file() {
    let (passes, text) = run("inside_fails_late", "WEAKSPOT_LOG", "1");
    assert!(!passes && text.contains("after all"), "{text}");
    let (_, line) = text.split_once("to run this execution again: WEAKSPOT_REPLAY=").unwrap();
    let (file, command) = line.lines().next().unwrap().split_once(' ').unwrap();
    assert!(command.contains("inside_fails_late") && command.contains("--exact"), "{command}");
    let path = file.strip_prefix('@').expect(file);
    assert!(std::fs::read_to_string(path).unwrap().starts_with("sc:0"));
    let (passes, text) = run("inside_fails_late", "WEAKSPOT_REPLAY", file);
    assert!(!passes && text.contains("after all") && text.contains("1 execution,"), "{text}");
    std::fs::remove_file(path).unwrap();
    let (passes, text) = run("inside_fails_late", "WEAKSPOT_REPLAY", file);
    assert!(!passes && text.contains("cannot be read") && text.contains(path), "{text}");
}

#[test]
fn bad_schedules_are_explained() {
    for (schedule, why) in [
        ("nonsense", "does not begin with"),
        ("arm:0", "is none of sc, tso, pso"),
        ("sc:", "the schedule is over after step 0"),
        ("sc:7", "step 1 of the schedule is not possible"),
        ("tso:0c0", "step 1 of the schedule is not possible"),
        ("sc:99999999999999999999", "is no step"),
        ("sc:0x-1", "is no step"),
        ("sc:0x99999999999", "is not possible"),
        ("☃", "does not begin with"),
    ] {
        let (passes, text) = run("inside_passes", "WEAKSPOT_REPLAY", schedule);
        assert!(!passes && text.contains("this schedule cannot be run") && text.contains(why), "{schedule}: {text}");
    }
}

#[test]
fn a_timeline_is_as_wide_as_it_may_be() {
    for (columns, widest) in [("40", 40), ("60", 60)] {
        let (_, text) = run("inside_fails", "COLUMNS", columns);
        let (_, timeline) = text.split_once("\n   line").unwrap();
        let (timeline, _) = timeline.split_once("\n\n").unwrap();
        assert!(timeline.lines().all(|line| line.chars().count() <= widest), "{text}");
        assert!(timeline.contains("load: 1"), "{text}");
    }
    let wide = ["", "200", "nonsense"].map(|columns| {
        let (_, text) = run("inside_fails", "COLUMNS", columns);
        text.split_once("\n   line").unwrap().1.split_once("\n\n").unwrap().0.to_owned()
    });
    assert!(wide.iter().all(|text| text.contains("thread 0 (main)    ") && *text == wide[0]), "{wide:?}");
}
