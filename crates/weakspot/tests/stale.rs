//! A thread reads the pointer it has stored itself, whatever addresses the allocator has given to earlier executions.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use weakspot::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use weakspot::sync::atomic::{AtomicPtr, AtomicUsize};
use weakspot::sync::{Arc, Mutex};
use weakspot::{Builder, thread};

static STALE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

struct Slot(AtomicPtr<i32>, std::sync::atomic::AtomicPtr<i32>);

impl Slot {
    fn store(&self, value: i32, retired: &mut VecDeque<Box<i32>>) {
        let new = Box::into_raw(Box::new(value));
        let before = self.1.swap(new, Relaxed);
        let old = self.0.swap(new, Release);
        if old != before {
            eprintln!("an address of another execution: {old:?}, and not {before:?}");
            STALE.store(true, Relaxed);
        }
        // SAFETY: it was in the slot, and nobody else takes it out.
        retired.push_back(unsafe { Box::from_raw(old) });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let last = self.0.load(Relaxed);
        if last != self.1.load(Relaxed) {
            STALE.store(true, Relaxed);
        }
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(last) });
    }
}

#[test]
fn a_pointer_is_that_of_this_execution() {
    let report = Builder::default().check(|| {
        let epoch = Arc::new((AtomicUsize::new(0), Mutex::new(Vec::<Arc<AtomicUsize>>::new()), AtomicUsize::new(0)));
        let mut retired = VecDeque::new();
        let first = Box::into_raw(Box::new(1));
        let slot = Arc::new(Slot(AtomicPtr::new(first), std::sync::atomic::AtomicPtr::new(first)));
        let (theirs, epochs) = (slot.clone(), epoch.clone());
        let reader = thread::spawn(move || {
            let mine = Arc::new(AtomicUsize::new(9));
            epochs.1.lock().unwrap().push(mine.clone());
            mine.store(epochs.0.load(Acquire), Release);
            let _ = epochs.2.load(Acquire);
            // SAFETY: nothing is freed before the end.
            assert!(unsafe { *theirs.0.load(Acquire) } > 0);
            mine.store(9, Release);
        });
        for value in [2, 3] {
            slot.store(value, &mut retired);
            let new = epoch.0.fetch_add(1, AcqRel) + 1;
            let least = epoch.1.lock().unwrap().iter().map(|slot| slot.load(Acquire)).min().unwrap_or(new).min(new);
            epoch.2.store(least, Release);
        }
        reader.join().unwrap();
    });
    assert!(!report.is_failure() && !STALE.load(Relaxed), "{report}");
}
