//! Where every store-buffer violation is a failure, one that does no harm has its line for a replay, too.
#![allow(missing_docs, clippy::unwrap_used)]

mod programs;

use std::process::Command;
use std::sync::Arc as Shared;

use programs::run;
use weakspot::sync::Arc;
use weakspot::sync::atomic::{AtomicUsize, Ordering};
use weakspot::{Bound, Builder, FailOn, MemoryModel, Party, Report, Verdict, Violation, thread};
use weakspot_testkit::generate::Shape;

use Ordering::{Relaxed, SeqCst};

/// Set in a process of its own.
const INSIDE: &str = "WEAKSPOT_TEST_INSIDE";

fn strict(model: MemoryModel) -> Builder {
    Builder { model, fail_on: FailOn::Unsafe, ..Builder::default() }
}

/// Store buffering, and nobody minds.
fn store_buffering() {
    let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let other = shared.clone();
    let thread = thread::spawn(move || {
        other.0.store(1, Relaxed);
        other.1.load(Relaxed)
    });
    shared.1.store(1, Relaxed);
    shared.0.load(Relaxed);
    thread.join().unwrap();
}

/// The same with more executions than one worker explores alone.
fn much_store_buffering() {
    let count = Arc::new(AtomicUsize::new(0));
    let theirs = count.clone();
    let thread = thread::spawn(move || (0..7).for_each(|_| _ = theirs.fetch_add(1, SeqCst)));
    (0..7).for_each(|_| _ = count.fetch_add(1, SeqCst));
    thread.join().unwrap();
    store_buffering();
}

/// The schedule that is printed.
#[track_caller]
fn printed(text: &str) -> &str {
    let (_, line) = text.split_once("to run this execution again: WEAKSPOT_REPLAY=").expect(text);
    line.split(' ').next().unwrap()
}

/// A violation without its figures.
fn accesses(violation: &Violation) -> [Option<Party>; 3] {
    let Violation { store, access, overtaken_by, .. } = violation.clone();
    [Some(store), Some(access), overtaken_by]
}

/// Runs the schedule of a report again: it has the violation that the report begins with.
#[track_caller]
fn fails_again(report: &Report, builder: &Builder, body: impl Fn() + Send + Sync + 'static) {
    let schedule = report.replay().unwrap_or_else(|| panic!("no schedule: {report}")).to_owned();
    let again = Builder { replay: Some(schedule), ..builder.clone() }.check(body);
    assert!(again.is_failure() && again.failure.is_none(), "{report}\n{again}");
    let first = accesses(&report.violations[0]);
    assert!(again.violations.iter().any(|violation| accesses(violation) == first), "{report}\n{again}");
}

#[test]
fn a_violation_without_harm_is_shown_and_comes_again() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = strict(model).check(store_buffering);
        let text = report.to_string();
        assert!(report.verdict == Verdict::Benign && report.is_failure(), "{text}");
        assert!(text.contains("… reaches memory") && text.contains("which no SC execution is like"), "{text}");
        // The second model of a test is said to be that.
        assert!(printed(&text).starts_with(report.replay().unwrap()), "{text}");
        fails_again(&report, &strict(model), store_buffering);
        let again = Builder { replay: report.replay().map(str::to_owned), ..strict(model) }.check(store_buffering);
        let text = again.to_string();
        assert!(text.starts_with("weakspot: this execution, in which a store is delayed, is like no SC"), "{text}");
        assert!(text.contains("may still be in its buffer when"), "{text}");
    }
}

/// However much comes before.
#[test]
fn a_violation_at_the_end_of_a_long_execution_is_shown_and_comes_again() {
    fn body() {
        let count = AtomicUsize::new(0);
        (0..6_000).for_each(|_| _ = count.fetch_add(1, Relaxed));
        store_buffering();
    }
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = strict(model).check(body);
        assert!(report.verdict == Verdict::Benign && report.is_failure(), "{report}");
        fails_again(&report, &strict(model), body);
        assert_eq!(report.suggestions.len(), 2, "{report}");
    }
}

/// If harm alone is a failure, no line is printed, and the line of somebody else leads to no failure.
#[test]
fn it_is_no_failure_where_harm_alone_is_one() {
    let report = strict(MemoryModel::Tso).check(store_buffering);
    let replay = report.replay().map(str::to_owned);
    for fail_on in [FailOn::Harmful, FailOn::Nothing] {
        let lenient = Builder { fail_on, ..Builder::default() };
        assert_eq!(lenient.check(store_buffering).replay(), None);
        let again = Builder { replay: replay.clone(), ..lenient }.check(store_buffering);
        assert!(!again.is_failure() && again.violations.is_empty(), "{again}");
        assert_eq!(again.verdict, Verdict::Bounded(Bound::Schedule), "{again}");
    }
}

/// A store that is seen late is no violation if SC has an execution like that.
#[test]
fn a_late_store_alone_is_no_violation() {
    let body = || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || other.0.load(Relaxed));
        shared.0.store(1, Relaxed);
        shared.1.load(Relaxed);
        thread.join().unwrap();
    };
    let again = Builder { replay: Some("tso:0x3.1x3.0c0.0".to_owned()), ..strict(MemoryModel::Tso) }.check(body);
    let text = again.to_string();
    assert!(text.contains("load: 0") && text.contains("… reaches memory"), "{text}");
    assert!(!again.is_failure() && again.verdict == Verdict::Bounded(Bound::Schedule), "{text}");
}

/// Nor if it is only an order of two reads that would make it one: a `compare_exchange` that fails writes nothing.
#[test]
fn two_reads_have_no_order() {
    let body = || {
        let shared = Arc::new([0; 3].map(AtomicUsize::new));
        let (one, other) = (shared.clone(), shared.clone());
        let writer = thread::spawn(move || {
            one[1].store(1, Relaxed);
            one[2].compare_exchange(5, 6, SeqCst, SeqCst).unwrap_err();
        });
        let reader = thread::spawn(move || {
            other[2].compare_exchange(5, 6, SeqCst, SeqCst).unwrap_err();
            other[0].load(Relaxed)
        });
        shared[0].store(1, Relaxed);
        shared[1].load(Relaxed);
        writer.join().unwrap();
        reader.join().unwrap();
    };
    assert_eq!(strict(MemoryModel::Tso).check(body).verdict, Verdict::Safe);
    let schedule = "tso:0x4.1x2.1c0.1x2.2x4.0c0.0x2".to_owned();
    let again = Builder { replay: Some(schedule), ..strict(MemoryModel::Tso) }.check(body);
    assert_eq!(again.verdict, Verdict::Bounded(Bound::Schedule), "{again}");
}

#[test]
fn several_workers_print_the_same_line() {
    let with = |jobs| Builder { jobs, ..strict(MemoryModel::Tso) }.check(much_store_buffering);
    let (one, two) = (with(1), with(2));
    assert!(one.executions > 3_000, "{one}");
    assert!(one.replay().is_some() && one.replay() == two.replay(), "{one}\n{two}");
    assert_eq!(
        one.violations.iter().map(accesses).collect::<Vec<_>>(),
        two.violations.iter().map(accesses).collect::<Vec<_>>()
    );
    fails_again(&one, &strict(MemoryModel::Tso), much_store_buffering);
}

#[test]
fn inside() {
    if std::env::var_os(INSIDE).is_some() {
        Builder { fail_on: FailOn::Unsafe, ..Builder::new() }.model(store_buffering);
    }
}

#[test]
fn the_line_works_in_the_environment() {
    let run = |replay: Option<&str>| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "inside", "--nocapture"]).env(INSIDE, "1").env("RUST_BACKTRACE", "0");
        if let Some(schedule) = replay {
            command.env("WEAKSPOT_REPLAY", schedule);
        }
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (passes, text) = run(None);
    assert!(!passes, "{text}");
    let (passes, again) = run(Some(printed(&text)));
    assert!(!passes && again.contains("is like no SC execution"), "{again}");
    assert_eq!(printed(&text), printed(&again));
}

/// Whatever the monitor finds in random programs is shown by an execution that has it, and that has it again.
#[test]
fn violations_of_random_programs_come_again() {
    let mut shown = 0;
    for seed in 0..1_500 {
        let model = if seed % 2 == 0 { MemoryModel::Tso } else { MemoryModel::Pso };
        let ordered = seed % 3 == 0;
        let shape = Shape {
            threads: 2..=3,
            statements: 2..=4,
            cells: 1..=2,
            choose: seed % 5 == 0,
            atomics: ordered,
            full_fences: ordered,
            store_fences: ordered,
            ..Shape::straight_line()
        };
        let program = Shared::new(shape.generate(20_000 + seed).program());
        let body = program.clone();
        let builder = Builder { max_duration: Some(std::time::Duration::from_millis(300)), ..strict(model) };
        let report = builder.check(move || _ = run(&body));
        if report.verdict == Verdict::Failed || report.violations.is_empty() {
            continue;
        }
        fails_again(&report, &builder, move || _ = run(&program));
        shown += 1;
    }
    assert!(shown > 100, "{shown} shown");
}
