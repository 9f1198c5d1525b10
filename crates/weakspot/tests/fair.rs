//! Fair scheduling (`Builder::fair`): a loop that waits with a guard against waiting for ever waits.
#![allow(missing_docs, clippy::unwrap_used)]

use weakspot::sync::Arc;
use weakspot::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weakspot::{Bound, Builder, Report, Verdict, thread};

use Ordering::{Acquire, Relaxed, SeqCst};

fn check_fairly(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder { fair: true, ..Builder::default() }.check(body)
}

/// Looks up to so many times; false if it has never seen the flag.
fn wait_for(flag: &AtomicBool, rounds: usize) -> bool {
    (0..rounds).any(|_| {
        let seen = flag.load(Acquire);
        if !seen {
            thread::yield_now();
        }
        seen
    })
}

/// A writer, and a reader that panics if it has looked so many times in vain.
fn impatient(rounds: usize) -> impl Fn() + Send + Sync + 'static {
    move || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = flag.clone();
        let writer = thread::spawn(move || other.store(true, SeqCst));
        assert!(wait_for(&flag, rounds), "out of patience");
        writer.join().unwrap();
    }
}

#[test]
fn a_guard_against_waiting_for_ever_is_no_failure() {
    for rounds in [3, 4, 10, 30, 100, 900] {
        let report = check_fairly(impatient(rounds));
        assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{rounds} rounds: {report}");
        assert!(report.left_out[0].why.contains("taken to wait"), "{report}");
        let report = Builder::default().check(impatient(rounds));
        assert_eq!(report.verdict, Verdict::Failed, "{rounds} rounds: {report}");
    }
}

#[test]
fn where_nobody_can_end_the_waiting_the_livelock_is_told_with_the_panic_that_comes_of_it() {
    for rounds in [3, 4, 10, 100] {
        let report = check_fairly(move || {
            let flag = AtomicBool::new(false);
            assert!(wait_for(&flag, rounds), "out of patience");
        });
        assert_eq!(report.verdict, Verdict::Failed, "{rounds} rounds: {report}");
        let text = report.to_string();
        assert!(text.contains("livelock"), "{text}");
        assert!(text.contains("if they go on waiting, thread 0 panics: out of patience"), "{text}");
    }
}

/// One who looks again before it fails is still waiting; one who does something else has given up.
#[test]
fn what_comes_after_giving_up_is_no_guard_against_waiting() {
    let body = |writes: bool| {
        move || {
            let (flag, given_up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
            let other = flag.clone();
            let writer = thread::spawn(move || other.store(true, SeqCst));
            if !wait_for(&flag, 5) {
                if writes {
                    given_up.store(1, Relaxed);
                }
                assert!(flag.load(Acquire) && given_up.load(Relaxed) == 0, "gives up");
            }
            writer.join().unwrap();
        }
    };
    let report = check_fairly(body(false));
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{report}");
    let report = check_fairly(body(true));
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(report.to_string().contains("gives up"), "{report}");
}
