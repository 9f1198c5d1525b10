//! What the tests share: proving the right version, finding the bug of the wrong one, and naming its line.

pub use weakspot::MemoryModel as Model;
use weakspot::sync::Arc;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::Relaxed;
use weakspot::{Builder, Report, Verdict, thread};

fn check(model: Model, test: fn()) -> Report {
    let mut builder = Builder::new();
    builder.model = model;
    builder.check(test)
}

/// The test holds in every execution.
#[track_caller]
pub fn proves(model: Model, test: fn()) {
    let report = check(model, test);
    assert!(!report.is_failure(), "{report}");
    assert!(report.exhaustive, "{report}");
}

/// The test fails because of store buffers, and the report names the store that comes too late.
#[track_caller]
pub fn finds(model: Model, file: &str, source: &str, test: fn()) {
    let report = check(model, test);
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    let (text, place) = (report.to_string(), delayed(file, source));
    assert!(text.contains(&place), "{place} is not in the report:\n{text}");
    suggests_what_helps(model, &report, test);
}

/// With all that the report suggests the test does not fail, and with one change less it does.
#[track_caller]
fn suggests_what_helps(model: Model, report: &Report, test: fn()) {
    let mut builder = Builder::new();
    builder.model = model;
    let all: Vec<_> = report.suggestions.iter().map(|one| (one.place.clone(), one.change)).collect();
    assert!(!all.is_empty(), "nothing is suggested:\n{report}");
    assert!(report.suggestions.iter().all(|one| one.tried && one.fewest), "{report}");
    builder.strengthened.clone_from(&all);
    let changed = builder.check(test);
    assert!(!changed.is_failure(), "{changed}");
    for left_out in 0..all.len() {
        builder.strengthened.clone_from(&all);
        builder.strengthened.remove(left_out);
        assert!(builder.check(test).is_failure(), "suggestion {left_out} is not needed:\n{report}");
    }
}

/// The place of the mark: in the file itself, or where it fills its nodes.
fn delayed(file: &str, source: &str) -> String {
    let line = |source: &str| source.lines().position(|line| line.ends_with("// DELAYED")).map(|index| index + 1);
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    match line(source) {
        Some(line) => format!("{name}:{line}"),
        None => format!("pool.rs:{}", line(include_str!("pool.rs")).expect("the pool has a mark")),
    }
}

/// Two threads increment a counter, each inside the lock.
pub fn lost_update<L: Send + Sync + 'static>(lock: L, enter: fn(&L, usize), leave: fn(&L, usize)) {
    let shared = Arc::new((lock, AtomicUsize::new(0)));
    let threads = [0, 1].map(|me| {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            let (lock, counter) = &*shared;
            enter(lock, me);
            counter.store(counter.load(Relaxed) + 1, Relaxed);
            leave(lock, me);
        })
    });
    for thread in threads {
        thread.join().expect("invariant: the threads do not panic");
    }
    assert_eq!(shared.1.load(Relaxed), 2, "an increment is lost");
}
