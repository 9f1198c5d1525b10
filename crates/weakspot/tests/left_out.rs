//! What an SC execution does that was left out is no matter of store buffers, also if they have led to it.
#![allow(clippy::unwrap_used)]

use weakspot::sync::Arc;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Relaxed, SeqCst};
use weakspot::{Builder, Verdict, thread};

/// Store buffering, which does no harm, and a number that comes too early in one of two orders.
fn body(expected: usize) {
    let shared = Arc::new([const { AtomicUsize::new(0) }; 3]);
    let other = Arc::clone(&shared);
    let thread = thread::spawn(move || {
        other[0].store(1, Relaxed);
        other[1].load(Relaxed);
        other[2].store(1, SeqCst);
    });
    shared[1].store(1, Relaxed);
    shared[0].load(Relaxed);
    let seen = shared[2].load(Relaxed);
    thread.join().unwrap();
    assert_eq!(seen, expected);
}

#[test]
fn an_execution_that_was_left_out_fails_on_every_processor() {
    let few = Builder { max_executions: Some(1), ..Builder::default() };
    let failed: Vec<_> = (0..2)
        .map(|expected| few.clone().check(move || body(expected)))
        .filter(|report| report.executions == 1 && !report.violations.is_empty() || report.schedule.is_some())
        .collect();
    for report in &failed {
        assert_eq!(report.verdict, Verdict::Failed, "{report}");
        assert!(report.to_string().contains("on every processor"), "{report}");
        assert!(report.schedule.as_ref().unwrap().starts_with("sc:"), "{report}");
        assert!(report.notes.is_empty(), "{report}");
    }
    assert_eq!(failed.len(), 2);
}
