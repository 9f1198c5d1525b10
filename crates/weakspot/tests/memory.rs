//! Memory stays flat however many executions there are.
#![allow(clippy::unwrap_used, missing_docs)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize as Outside, Ordering::Relaxed};

use weakspot::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use weakspot::sync::{Arc, Condvar, Mutex};
use weakspot::{Builder, FailOn, hint, thread};

/// Counts the bytes that are in use.
struct Counting;

static IN_USE: Outside = Outside::new(0);

// SAFETY: everything is handed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes in use at the beginning of some runs of a model.
fn bytes_in_use(at: &'static [usize], body: fn()) -> Vec<usize> {
    let runs = Outside::new(0);
    let bytes = std::sync::Arc::new(std::sync::Mutex::new(Vec::with_capacity(at.len())));
    let seen = bytes.clone();
    let report = Builder { fail_on: FailOn::Nothing, ..Builder::default() }.check(move || {
        if at.contains(&runs.fetch_add(1, Relaxed)) {
            seen.lock().unwrap().push(IN_USE.load(Relaxed));
        }
        body();
    });
    assert!(report.failure.is_none(), "{report}");
    assert!(report.runs > *at.last().unwrap() as u64, "{} runs", report.runs);
    let bytes = bytes.lock().unwrap();
    bytes.clone()
}

fn check(name: &str, at: &'static [usize], body: fn()) {
    let bytes = bytes_in_use(at, body);
    let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
    assert!(most - least < 16 * 1024, "{name}: {bytes:?}");
}

fn atomics() {
    let x = Arc::new(AtomicUsize::new(0));
    let other = x.clone();
    let thread = thread::spawn(move || (0..8).for_each(|_| _ = other.fetch_add(1, Ordering::AcqRel)));
    (0..8).for_each(|_| _ = x.fetch_add(1, Ordering::AcqRel));
    thread.join().unwrap();
}

fn locks() {
    let sum = Arc::new(Mutex::new(Vec::new()));
    let threads = [1, 2, 3].map(|number| {
        let sum = sum.clone();
        thread::spawn(move || (0..2).for_each(|_| sum.lock().unwrap().push(number)))
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

fn waits() {
    let pair = Arc::new((Mutex::new(vec![0; 100]), Condvar::new()));
    let threads = [1, 2].map(|number| {
        let pair = pair.clone();
        thread::spawn(move || {
            (0..3).for_each(|_| pair.0.lock().unwrap()[0] += number);
            pair.1.notify_all();
        })
    });
    let mut sum = pair.0.lock().unwrap();
    while sum[0] < 8 {
        sum = pair.1.wait(sum).unwrap();
    }
    drop(sum);
    for thread in threads {
        thread.join().unwrap();
    }
}

fn spins() {
    let (lock, sum) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let threads = [1, 2, 3].map(|number| {
        let (lock, sum) = (lock.clone(), sum.clone());
        thread::spawn(move || {
            let kept = vec![number; 100];
            for _ in 0..2 {
                while lock.swap(true, Ordering::Acquire) {
                    hint::spin_loop();
                }
                sum.store(sum.load(Relaxed) + kept[0], Relaxed);
                lock.store(false, Ordering::Release);
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
}

/// One test, so that nobody else allocates meanwhile.
#[test]
fn every_run_begins_with_as_much_memory_in_use() {
    check("atomics", &[1_000, 3_000, 6_000, 9_000, 12_000], atomics);
    check("locks", &[50, 100, 150], locks);
    check("waits", &[80, 120, 160, 200], waits);
    check("spins", &[2_000, 4_000, 6_000, 8_000], spins);
}
