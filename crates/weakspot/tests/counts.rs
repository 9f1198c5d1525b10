//! Exact numbers of executions.
#![allow(missing_docs, clippy::unwrap_used)]

use weakspot::sync::Arc;
use weakspot::sync::atomic::{AtomicUsize, Ordering};
use weakspot::{Builder, Report, thread};

fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(body)
}

#[test]
fn store_buffering() {
    let report = check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let y = Arc::new(AtomicUsize::new(0));
        let (x2, y2) = (x.clone(), y.clone());
        let a = thread::spawn(move || {
            x2.store(1, Ordering::SeqCst);
            y2.load(Ordering::SeqCst)
        });
        let b = thread::spawn(move || {
            y.store(1, Ordering::SeqCst);
            x.load(Ordering::SeqCst)
        });
        let (a, b) = (a.join().unwrap(), b.join().unwrap());
        assert!(a + b > 0);
    });
    println!("{report}");
    assert_eq!(report.executions, 3);
}

#[test]
fn eight_increments_each() {
    let report = check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let x = x.clone();
                thread::spawn(move || {
                    for _ in 0..8 {
                        x.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(x.load(Ordering::Relaxed), 16);
    });
    println!("{report}");
    assert_eq!(report.executions, 12_870);
}

#[test]
fn four_threads_that_are_only_joined() {
    let report = check(|| {
        let threads: Vec<_> =
            (0..4).map(|_| thread::spawn(|| AtomicUsize::new(0).store(1, Ordering::SeqCst))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
    println!("{report}");
    assert_eq!(report.executions, 1);
}
