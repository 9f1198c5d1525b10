//! What the tests share: proving the right version, finding the bug of the wrong one, and naming its line.

pub use weakspot::MemoryModel as Model;
use weakspot::sync::Arc;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::Relaxed;
use weakspot::{Builder, thread};

fn check(model: Model, test: fn()) -> weakspot::Report {
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

/// The test fails, and the report names the line with the mark.
#[track_caller]
pub fn finds(model: Model, file: &str, source: &str, test: fn()) {
    let report = check(model, test);
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let place = format!("{name}:{}", marked_line(source));
    assert!(report.is_failure() || report.borderline > 0, "{place}: nothing found in {} executions", report.executions);
}

/// The line with the mark, or the one after it if the mark has a line of its own.
fn marked_line(source: &str) -> usize {
    let (index, line) =
        source.lines().enumerate().find(|(_, line)| line.contains("// WEAK")).expect("the source has a mark");
    let alone = line.trim_start().starts_with("// WEAK");
    index + 1 + usize::from(alone)
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
