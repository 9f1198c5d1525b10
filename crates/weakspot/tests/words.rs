//! What is printed of a model: limits are named although the test passes, and a report says what happened, no more.
#![allow(clippy::unwrap_used)]

use std::process::Command;
use std::time::Duration;

use weakspot::cell::Cell;
use weakspot::sync::atomic::Ordering::{Relaxed, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicUsize};
use weakspot::sync::{Arc, Condvar, Mutex, Notify, mpsc};
use weakspot::{Bound, Builder, Change, Report, SourcePlace, Verdict, thread};

/// Set in the processes.
const INSIDE: &str = "WEAKSPOT_TEST_INSIDE";

/// Executions are many more than a test has time for, and none fails.
fn long() {
    let shared = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || (0..4).for_each(|_| shared.store(shared.load(SeqCst) + 1, SeqCst)))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn inside_long() {
    if std::env::var_os(INSIDE).is_some() {
        weakspot::model(long);
    }
}

#[test]
fn inside_three_threads() {
    if std::env::var_os(INSIDE).is_some() {
        weakspot::model(|| (0..2).for_each(|_| _ = thread::spawn(|| ())));
    }
}

/// Does a test pass with a variable, and what does weakspot say?
fn run(test: &str, name: &str, value: &str) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").env("RUST_BACKTRACE", "0").env(name, value);
    let output = command.output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_search_that_a_limit_has_ended_says_so_in_one_line() {
    for (name, value, bound) in [
        ("WEAKSPOT_MAX_DURATION", "0.2", "nothing found until the time was over"),
        ("WEAKSPOT_MAX_PREEMPTIONS", "0", "nothing found with up to 0 preemptions"),
        ("WEAKSPOT_MAX_EXECUTIONS", "5", "nothing found up to the limit on executions"),
    ] {
        let (passes, text) = run("inside_long", name, value);
        assert!(passes, "{name}: {text}");
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let [line] = lines[..] else { panic!("{name}: {text}") };
        let says = ["weakspot: inside_long: ", bound, " executions", "not all"];
        assert!(says.iter().all(|part| line.contains(part)), "{name}: {line}");
    }
    let (passes, text) = run("inside_long", "WEAKSPOT_MAX_EXECUTIONS", "5");
    assert!(passes && text.contains(": 5 executions"), "{text}");
}

#[test]
fn the_environment_may_limit_threads() {
    for (most, fits) in [("3", true), ("2", false)] {
        let (passes, text) = run("inside_three_threads", "WEAKSPOT_MAX_THREADS", most);
        assert_eq!(passes, fits, "{text}");
        assert!(fits || text.contains("this would be the thread number 3 of the model"), "{text}");
    }
}

#[test]
fn a_model_has_at_least_one_thread() {
    let (passes, text) = run("inside_three_threads", "WEAKSPOT_MAX_THREADS", "0");
    assert!(!passes && text.contains("`max_threads` must be at least 1"), "{text}");
    let asked = std::panic::catch_unwind(|| Builder { max_threads: 0, ..Builder::default() }.check(|| ()));
    let message = asked.unwrap_err();
    assert!(message.downcast_ref::<&str>().unwrap().contains("`max_threads` must be at least 1"));
}

#[test]
fn a_guess_of_the_total_says_that_it_may_be_far_off() {
    let report = Builder { max_executions: Some(50), ..Builder::default() }.check(long);
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Executions));
    let text = report.to_string();
    assert!(text.contains("not all: a guess") && text.contains("or many more"), "{text}");
    let report = Builder { max_duration: Some(Duration::ZERO), ..Builder::default() }.check(long);
    assert!(report.to_string().contains("not all"), "{report}");
}

#[test]
fn a_strengthened_place_that_has_no_such_operation_is_named() {
    let line = line!() + 6;
    let model = move || {
        let shared = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let other = shared.clone();
        #[rustfmt::skip]
        let thread = thread::spawn(move || {
other.0.store(true, Relaxed);
            other.1.load(Relaxed)
        });
        shared.1.store(true, Relaxed);
        let _ = shared.0.load(Relaxed);
        thread.join().unwrap();
    };
    let place = |line| SourcePlace { file: file!().to_owned(), line, column: 9 };
    let report = |changes: Vec<(SourcePlace, Change)>| {
        Builder { strengthened: changes, ..Builder::default() }.check(model).to_string()
    };
    let said = |line| format!("`Builder::strengthened` names {}, but no", place(line));
    let text = report(vec![(place(line), Change::SeqCst), (place(line + 100), Change::Release)]);
    assert!(!text.contains(&said(line)) && text.contains(&said(line + 100)), "{text}");
}

/// The rows of the timeline.
fn timeline(report: &Report) -> String {
    report.timeline.as_ref().unwrap().to_string()
}

struct Shared(Cell<u32>, AtomicUsize);
// SAFETY: it is not, and that is to be found.
unsafe impl Sync for Shared {}

#[test]
fn a_race_is_shown_where_it_happened() {
    let report = Builder::default().check(|| {
        let shared = Arc::new(Shared(Cell::new(0), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.1.fetch_add(1, Relaxed);
            other.0.set(1); // the write
            other.1.fetch_add(2, Relaxed);
        });
        if shared.1.load(Relaxed) == 3 {
            let _ = shared.0.get(); // the read
        }
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    let text = timeline(&report);
    let order =
        ["spawn thread 1", "fetch_add: 0 -> 1", "other.0.set(1)", "fetch_add: 1 -> 3", "load: 3", "shared.0.get()"];
    let places: Vec<usize> =
        order.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"))).collect();
    assert!(places.is_sorted(), "{text}");
    let row = |part: &str| text.lines().find(|line| line.contains(part)).unwrap().to_owned();
    assert!(row("other.0.set(1)").contains("plain write") && row("shared.0.get()").contains("plain read"), "{text}");
    assert_eq!(text.lines().count(), 1 + order.len(), "{text}");
}

#[test]
fn two_accesses_that_overlap_are_both_shown() {
    let report = Builder::default().check(|| {
        let cell = weakspot::cell::UnsafeCell::new(0);
        let _first = cell.get_mut();
        let _second = cell.get();
    });
    let text = timeline(&report);
    assert!(text.contains("plain write") && text.contains("plain read"), "{report}");
}

#[test]
fn a_message_that_is_sent_once_is_shown_once() {
    let report = Builder::default().check(|| {
        let (sender, receiver) = mpsc::channel();
        sender.send(1).unwrap();
        (0..2).for_each(|_| sender.send(2).unwrap());
        (0..3).for_each(|_| _ = receiver.recv());
        assert_eq!(receiver.try_recv(), Ok(7));
    });
    let text = timeline(&report);
    let row = |part: &str| text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{text}")).to_owned();
    assert!(!row("sender.send(1)").contains("times") && row("sender.send(2)").contains("(2 times)"), "{text}");
    assert!(!row("receiver.try_recv()").contains("times") && row("receiver.recv()").contains("(3 times)"), "{text}");
}

#[test]
fn a_message_that_is_handed_over_is_sent_once() {
    let report = Builder::default().check(|| {
        let (sender, receiver) = mpsc::sync_channel(0);
        let thread = thread::spawn(move || sender.send(1).unwrap());
        assert_eq!(receiver.recv(), Ok(1));
        thread.join().unwrap();
        panic!("after it");
    });
    let text = timeline(&report);
    assert!(!text.contains("times"), "{text}");
}

#[test]
fn a_model_that_does_not_repeat_itself_is_not_explored_completely() {
    let report = Builder::default().check(|| {
        static ROUNDS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let atomic = AtomicUsize::new(0);
        let round = ROUNDS.fetch_add(1, SeqCst);
        (0..round).for_each(|_| _ = atomic.load(Relaxed));
    });
    let text = report.to_string();
    assert!(text.contains("not deterministic") && !report.exhaustive && !text.contains("all of them"), "{text}");
}

#[test]
fn a_long_line_of_the_source_is_cut() {
    #[rustfmt::skip]
    let report = Builder::default().check(|| { let (_one, _two, _three, _four, _five, _six, _seven, _eight, _nine, _ten, _eleven, _twelve, _thirteen) = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13); panic!("far to the right of the line that it is in"); });
    let text = report.to_string();
    let (_, rest) = text.split_once("words.rs:").unwrap();
    let mut lines = rest.lines().filter(|line| line.contains(" | "));
    let line = lines.find(|line| line.contains("panic!")).unwrap_or_else(|| panic!("{text}"));
    let mark = lines.next().unwrap();
    let mut excerpt = text.lines().filter(|line| line.contains(" | "));
    assert!(line.contains('…') && excerpt.all(|line| line.chars().count() <= 120), "{text}");
    let at = mark.chars().position(|character| character == '^').unwrap();
    assert!(line.chars().skip(at).collect::<String>().starts_with("panic!"), "{line}\n{mark}");
}

#[test]
fn what_a_channel_does_is_where_it_is_called() {
    let full = |is_sent: fn(&mpsc::SyncSender<u32>) -> bool| {
        let report = Builder::default().check(move || {
            let (sender, receiver) = mpsc::sync_channel(1);
            sender.send(1).unwrap();
            let is_sent = is_sent(&sender);
            assert!(receiver.recv().is_ok() && receiver.try_recv().is_err() && is_sent, "not sent");
        });
        let places = report.timeline.as_ref().unwrap().moments.iter().filter(|moment| !moment.text.contains("drop"));
        assert!(
            places.clone().count() > 1 && places.clone().all(|moment| moment.place.file.ends_with("words.rs")),
            "{report}"
        );
        report.to_string()
    };
    let text = full(|sender| sender.try_send(2).is_ok());
    assert!(text.contains("not sent"), "{text}");
    let text = full(|sender| sender.send(2).is_ok());
    assert!(text.contains("waits in SyncSender::send, at crates/weakspot/tests/words.rs:"), "{text}");
}

/// What happens by itself is told in words.
#[test]
fn a_wake_up_for_no_reason_and_a_timeout_are_called_that() {
    let report = Builder::default().check(|| weakspot::future::block_on(std::future::pending::<()>()));
    assert!(timeline(&report).contains("does not wake up for no reason"), "{report}");
    let report = Builder::default().check(|| {
        let shared = Arc::new((AtomicBool::new(false), Notify::new()));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.0.store(true, SeqCst);
            other.1.notify();
        });
        shared.1.wait();
        assert!(shared.0.load(SeqCst), "nobody has notified it");
        thread.join().unwrap();
    });
    assert!(timeline(&report).contains("wakes up for no reason"), "{report}");
    let report = Builder::default().check(|| {
        let (is_set, set) = (Mutex::new(false), Condvar::new());
        let (is_set, _) = set.wait_timeout(is_set.lock().unwrap(), Duration::from_secs(1)).unwrap();
        assert!(*is_set);
    });
    assert!(timeline(&report).contains("times out"), "{report}");
}

/// The end of a thread is an event if somebody asks for it, and has no place in weakspot.
#[test]
fn a_thread_ends_after_its_last_event() {
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| ());
        assert!(!thread.is_finished());
        thread.join().unwrap();
    });
    let line = line!() - 4;
    let end = timeline(&report);
    let end = end.lines().find(|line| line.contains(" ends ")).unwrap_or_else(|| panic!("it ends:\n{report}"));
    assert!(end.trim().starts_with(&line.to_string()) && end.contains("spawn"), "{end}");
}
