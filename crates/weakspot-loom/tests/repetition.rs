//! Tests of loom that keep something from one execution to the next.

use std::sync::atomic::AtomicUsize as Outside;
use weakspot_loom as loom;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::thread;

/// Two threads that count; how often depends on how many executions there were.
fn count(executions: &Outside, right: bool) {
    let rounds = 1 + executions.fetch_add(1, SeqCst) % 3;
    let count = Arc::new(AtomicUsize::new(0));
    let theirs = Arc::clone(&count);
    let work = move |count: &AtomicUsize| {
        for _ in 0..rounds {
            if right {
                count.fetch_add(1, SeqCst);
            } else {
                count.store(count.load(SeqCst) + 1, SeqCst);
            }
        }
    };
    let thread = thread::spawn(move || work(&theirs));
    work(&count);
    thread.join().expect("the other thread does not panic");
    assert_eq!(count.load(SeqCst), 2 * rounds, "lost update");
}

#[test]
fn a_model_that_does_not_repeat_itself_is_run_in_random_schedules() {
    static EXECUTIONS: Outside = Outside::new(0);
    loom::model(|| count(&EXECUTIONS, true));
    assert!(EXECUTIONS.load(SeqCst) > 1_000);
}

#[test]
#[should_panic(expected = "lost update")]
fn its_mistakes_are_found_there() {
    static EXECUTIONS: Outside = Outside::new(0);
    loom::model(|| count(&EXECUTIONS, false));
}

/// Who has nobody to take turns with does the same whatever the schedule: more of them tell nothing.
#[test]
fn a_model_of_one_thread_that_does_not_repeat_itself_is_not_run_for_long() {
    static EXECUTIONS: Outside = Outside::new(0);
    loom::model(|| {
        let count = AtomicUsize::new(0);
        for _ in 0..=EXECUTIONS.fetch_add(1, SeqCst) % 3 {
            count.fetch_add(1, SeqCst);
        }
        assert_ne!(count.load(SeqCst), 0);
    });
    let executions = EXECUTIONS.load(SeqCst);
    assert!(executions < 1_000, "{executions} executions");
}

/// It is run more than once, though: what does not repeat itself may fail another time.
#[test]
#[should_panic(expected = "the twentieth")]
fn its_mistakes_are_found_all_the_same() {
    static EXECUTIONS: Outside = Outside::new(0);
    loom::model(|| {
        let count = AtomicUsize::new(0);
        let executions = EXECUTIONS.fetch_add(1, SeqCst);
        for _ in 0..=executions % 3 {
            count.fetch_add(1, SeqCst);
        }
        assert!(executions < 20, "the twentieth");
    });
}
