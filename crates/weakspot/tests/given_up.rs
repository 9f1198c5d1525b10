//! Whoever has given up waiting for a model does not wait for it any more. It has a file of its own because it changes how long
//! somebody waits, twice.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::AtomicUsize as Number;
use std::sync::mpsc::channel;
use std::time::Duration;

use weakspot::sync::Mutex;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::{Builder, rt};

#[test]
fn a_model_makes_way_for_nobody_who_has_given_up() {
    // Where atomics are wide, nobody waits for them.
    if size_of::<AtomicUsize>() > size_of::<usize>() {
        return;
    }
    let shared = Arc::new((AtomicUsize::new(0), Mutex::new(0)));
    let (begun, needed) = (Arc::new(Number::new(0)), Arc::new(Number::new(0)));
    let ((came, has_come), (go_on, goes_on)) = (channel(), channel());
    let meeting = std::sync::Mutex::new(Some((came, goes_on)));
    let (theirs, counts) = (Arc::clone(&shared), (Arc::clone(&begun), Arc::clone(&needed)));
    let model = std::thread::spawn(move || {
        Builder::default().check(move || {
            let (begun, needed) = &counts;
            begun.fetch_add(1, SeqCst);
            theirs.0.store(1, SeqCst);
            if let Some((came, goes_on)) = meeting.lock().unwrap().take() {
                came.send(()).unwrap();
                goes_on.recv().unwrap();
            }
            drop(theirs.1.lock().unwrap());
            let _ = needed.compare_exchange(0, begun.load(SeqCst), SeqCst, SeqCst);
        })
    });
    has_come.recv().unwrap();
    rt::set_patience(Duration::from_millis(100));
    let ours = Arc::clone(&shared);
    let report = Builder::default().check(move || ours.0.store(1, SeqCst));
    assert!(report.failure.unwrap().message.contains("another OS thread, uses this atomic"));
    // Nobody waits for the model now. It has to wait itself, long enough to make way if somebody did.
    rt::set_patience(Duration::from_secs(4));
    let guard = shared.1.lock().unwrap();
    go_on.send(()).unwrap();
    std::thread::sleep(Duration::from_millis(800));
    drop(guard);
    let report = model.join().unwrap();
    assert!(report.failure.is_none(), "{report}");
    assert_eq!(needed.load(SeqCst), 1, "the first execution has begun again");
}
