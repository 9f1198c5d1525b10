//! The file that loom calls a checkpoint holds the schedule of the execution that fails.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use weakspot_loom::model::Builder;
use weakspot_loom::sync::atomic;
use weakspot_loom::thread;

/// Fails in some executions, and counts how many there were before.
fn explore(file: &str, runs: &Arc<AtomicUsize>) -> bool {
    let mut builder = Builder::new();
    builder.checkpoint_file(file);
    let runs = Arc::clone(runs);
    let failed = catch_unwind(AssertUnwindSafe(|| {
        builder.check(move || {
            runs.fetch_add(1, SeqCst);
            let shared = weakspot_loom::sync::Arc::new(atomic::AtomicUsize::new(0));
            let other = weakspot_loom::sync::Arc::clone(&shared);
            let thread = thread::spawn(move || other.store(other.load(SeqCst) + 1, SeqCst));
            shared.store(shared.load(SeqCst) + 1, SeqCst);
            thread.join().unwrap();
            assert_eq!(shared.load(SeqCst), 2);
        });
    }));
    failed.is_err()
}

#[test]
fn the_execution_that_failed_runs_again() {
    let file = std::env::temp_dir().join(format!("weakspot-loom-checkpoint-{}", std::process::id()));
    let name = file.to_str().unwrap().to_owned();
    let (first, second) = (Arc::default(), Arc::default());
    let failed = explore(&name, &first);
    let schedule = fs::read_to_string(&file);
    let failed_again = explore(&name, &second);
    let _ = fs::remove_file(&file);
    assert!(failed && failed_again);
    assert!(!schedule.unwrap().is_empty());
    assert!(second.load(SeqCst) <= first.load(SeqCst), "one execution is run again, not all of them");
}

#[test]
fn all_executions_are_explored_if_that_of_the_file_does_not_fail() {
    let file = std::env::temp_dir().join(format!("weakspot-loom-checkpoint-past-{}", std::process::id()));
    let name = file.to_str().unwrap().to_owned();
    for schedule in ["sc:0x4.1x4.0x2", "sc:7", "nonsense"] {
        fs::write(&file, schedule).unwrap();
        let runs = Arc::default();
        let failed = explore(&name, &runs);
        let _ = fs::remove_file(&file);
        assert!(failed, "{schedule}: another execution fails");
        assert!(runs.load(SeqCst) > 1, "{schedule}");
    }
}
