//! Tests that go wrong, each in its own way: what `weakspot fence --test NAME` says of them is tested with the command line,
//! and they are there to be tried. Ordinary runs leave them out.
#![allow(clippy::unwrap_used)]

use weakspot::sync::Arc;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use weakspot::{Builder, thread};
use weakspot_examples::dekker::Dekker;

/// Announces oneself and looks at the other.
fn knock(mine: &AtomicUsize, other: &AtomicUsize) -> bool {
    mine.store(1, Release);
    other.load(Acquire) == 0
}

/// Two threads knock; at most one may get in, if that matters.
fn both_knock(matters: bool) {
    let flags = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let theirs = Arc::clone(&flags);
    let they = thread::spawn(move || knock(&theirs.1, &theirs.0));
    let we = knock(&flags.0, &flags.1);
    let both = we && they.join().unwrap();
    assert!(!(both && matters), "both are in");
}

/// One thread writes data and says so, the other one reads it.
fn publish() {
    let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let theirs = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        theirs.0.store(42, Relaxed);
        theirs.1.store(1, Relaxed);
    });
    if shared.1.load(Acquire) == 1 {
        assert_eq!(shared.0.load(Relaxed), 42, "no data");
    }
    writer.join().unwrap();
}

/// Two threads increment a counter, each inside Dekker's lock.
fn increments<const FENCED: bool>() {
    let shared = Arc::new((Dekker::<FENCED>::default(), AtomicUsize::new(0)));
    let increment = |(lock, counter): &(Dekker<FENCED>, AtomicUsize), me| {
        lock.lock(me);
        counter.store(counter.load(Relaxed) + 1, Relaxed);
        lock.unlock(me);
    };
    let theirs = Arc::clone(&shared);
    let they = thread::spawn(move || increment(&theirs, 1));
    increment(&shared, 0);
    they.join().unwrap();
    assert_eq!(shared.1.load(Relaxed), 2, "an increment is lost");
}

mod dekker {
    #[test]
    #[ignore = "wrong on purpose"]
    fn excludes() {
        weakspot::model(super::increments::<false>);
    }

    #[test]
    #[ignore = "for comparison"]
    fn fenced_excludes() {
        weakspot::model(super::increments::<true>);
    }
}

mod peterson {
    #[test]
    #[ignore = "has the name of another one"]
    fn excludes() {}
}

#[test]
#[ignore = "wrong on purpose"]
fn several_models() {
    weakspot::model(|| both_knock(true));
    weakspot::model(publish);
    weakspot::model(|| both_knock(false));
}

/// The report is looked at by hand, so that the first model that fails ends the test.
#[test]
#[ignore = "wrong on purpose"]
fn reports_by_hand() {
    for model in [|| both_knock(true), publish] {
        let report = Builder::new().check(model);
        assert!(!report.is_failure(), "{report}");
    }
}

#[test]
#[ignore = "wrong on purpose"]
fn harmless() {
    weakspot::model(|| both_knock(false));
}

#[test]
#[ignore = "wrong on purpose"]
fn loses_an_update() {
    weakspot::model(|| {
        let shared = Arc::new(AtomicUsize::new(0));
        let theirs = Arc::clone(&shared);
        let add = |shared: &AtomicUsize| shared.store(shared.load(SeqCst) + 1, SeqCst);
        let they = thread::spawn(move || add(&theirs));
        add(&shared);
        they.join().unwrap();
        assert_eq!(shared.load(SeqCst), 2, "an update is lost");
    });
}

#[test]
#[ignore = "wrong on purpose"]
fn panics_after_its_model() {
    weakspot::model(|| both_knock(true));
    panic!("for another reason");
}

#[test]
#[ignore = "wrong on purpose"]
fn panics_before_its_model() {
    let before = std::env::args().count() > 0;
    assert!(!before, "not that far");
    weakspot::model(|| both_knock(true));
}

#[test]
#[ignore = "wrong on purpose"]
#[should_panic(expected = "both are in")]
fn is_meant_to_fail() {
    weakspot::model(|| both_knock(true));
}

#[test]
#[ignore = "wrong on purpose"]
fn is_cut_short() {
    Builder { max_executions: Some(1), ..Builder::new() }.model(|| both_knock(false));
}

#[test]
#[ignore = "wrong on purpose"]
fn with_loom() {
    use weakspot_loom::sync::Arc;
    use weakspot_loom::sync::atomic::AtomicBool;
    weakspot_loom::model(|| {
        let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let theirs = flags.clone();
        let they = weakspot_loom::thread::spawn(move || {
            theirs[1].store(true, Relaxed);
            theirs[0].load(Relaxed)
        });
        flags[0].store(true, Relaxed);
        let seen = flags[1].load(Relaxed);
        assert!(they.join().unwrap() || seen, "nobody has seen the other");
    });
}

/// Announces oneself in one of two ways, and looks at the other in both.
fn announce(mine: &[AtomicUsize; 2], other: &[AtomicUsize; 2], first: bool) -> bool {
    if first {
        mine[0].store(1, Relaxed);
    } else {
        mine[1].store(1, Relaxed);
    }
    let free = other[0].load(Relaxed) == 0;
    other[1].load(Relaxed) == 0 && free
}

/// Each model could be helped by another store, and both by one fence.
#[test]
#[ignore = "wrong on purpose"]
fn one_fence_for_two_models() {
    for first in [false, true] {
        weakspot::model(move || {
            let new = || [AtomicUsize::new(0), AtomicUsize::new(0)];
            let flags = Arc::new([new(), new()]);
            let theirs = Arc::clone(&flags);
            let they = thread::spawn(move || announce(&theirs[1], &theirs[0], first));
            let we = announce(&flags[0], &flags[1], first);
            let both = they.join().unwrap() && we;
            assert!(!both, "both are in");
        });
    }
}

/// Announces oneself in one of two ways, and looks at the other in both, in lines that are not long.
#[rustfmt::skip]
fn announce_slowly(mine: &[AtomicUsize; 2], other: &[AtomicUsize; 2], first: bool) -> bool {
    if first { mine[0].store(1, Relaxed) } else { mine[1].store(1, Relaxed) }
    let is_free = other[0]
        .load(Relaxed)
        == 0;
    is_free && other[1].load(Relaxed) == 0
}

/// One thread writes data and claims them, the other one reads them.
#[rustfmt::skip]
fn claim() {
    let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let theirs = Arc::clone(&shared);
    let writer = thread::spawn(move || {
        theirs.0.store(42, Relaxed);
        theirs
            .1
            .compare_exchange(
                0,
                1, // Relaxed, (
                Relaxed,
                Relaxed,
            )
            .unwrap();
    });
    if shared.1.load(Acquire) == 1 {
        assert_eq!(shared.0.load(Relaxed), 42, "no data");
    }
    writer.join().unwrap();
}

#[test]
#[ignore = "wrong on purpose"]
fn over_several_lines() {
    weakspot::model(claim);
    for first in [false, true] {
        weakspot::model(move || {
            let new = || [AtomicUsize::new(0), AtomicUsize::new(0)];
            let flags = Arc::new([new(), new()]);
            let theirs = Arc::clone(&flags);
            let they = thread::spawn(move || announce_slowly(&theirs[1], &theirs[0], first));
            let we = announce_slowly(&flags[0], &flags[1], first);
            let both = they.join().unwrap() && we;
            assert!(!both, "both are in");
        });
    }
}
