use weakspot::sync::Arc;
use weakspot::sync::atomic::{AtomicBool, Ordering::*};
use weakspot::thread;

/// Two threads knock before they enter: at most one gets in.
fn knock(mine: &AtomicBool, other: &AtomicBool) -> bool {
    mine.store(true, Release);
    !other.load(Acquire)
}

/// Without `#[test]`, because it fails; as long as the line that stands there in the README.
pub fn at_most_one_enters() {
    weakspot::model(|| {
        let flags = Arc::new((AtomicBool::new(false), AtomicBool::new(false)));
        let theirs = Arc::clone(&flags);
        let they = thread::spawn(move || knock(&theirs.1, &theirs.0));
        let we = knock(&flags.0, &flags.1);
        assert!(!(we && they.join().unwrap()), "both are in");
    });
}
