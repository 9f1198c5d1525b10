//! What `docs/rust.md` says of loom, tried out with loom from the registry.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// The same test with loom and with weakspot.
macro_rules! beside {
    ($name:ident, $library:ident) => {
        mod $name {
            use super::{Arc, AssertUnwindSafe, BTreeSet, Mutex, catch_unwind};
            use $library::sync::atomic::AtomicUsize;
            use $library::sync::atomic::Ordering::SeqCst;
            use $library::{model, thread};

            /// Two threads each load and then store an atomic: what they have read, in all executions.
            pub fn load_then_store() -> Vec<(usize, usize)> {
                let seen = Arc::new(Mutex::new(BTreeSet::new()));
                let all = Arc::clone(&seen);
                model(move || {
                    let shared = Arc::new(AtomicUsize::new(0));
                    let other = Arc::clone(&shared);
                    let adds_one = |shared: &AtomicUsize| {
                        let read = shared.load(SeqCst);
                        shared.store(read + 1, SeqCst);
                        read
                    };
                    let thread = thread::spawn(move || adds_one(&other));
                    let read = adds_one(&shared);
                    all.lock().unwrap().insert((read, thread.join().unwrap()));
                });
                let seen = seen.lock().unwrap();
                seen.iter().copied().collect()
            }

            /// Store buffering with `SeqCst`: does it pass?
            pub fn store_buffering() -> bool {
                let explore = || {
                    model(|| {
                        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
                        let other = Arc::clone(&shared);
                        let thread = thread::spawn(move || {
                            other.0.store(1, SeqCst);
                            other.1.load(SeqCst)
                        });
                        shared.1.store(1, SeqCst);
                        let read = shared.0.load(SeqCst);
                        assert!(read + thread.join().unwrap() > 0, "both have read 0");
                    });
                };
                catch_unwind(AssertUnwindSafe(explore)).is_ok()
            }

            /// Bytes of atomics: there is code that asserts at compile time what they are.
            pub fn sizes() -> [usize; 6] {
                use $library::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64};
                [
                    size_of::<AtomicUsize>(),
                    size_of::<AtomicU64>(),
                    size_of::<AtomicPtr<u8>>(),
                    size_of::<AtomicI32>(),
                    size_of::<AtomicU8>(),
                    size_of::<AtomicBool>(),
                ]
            }
        }
    };
}

beside!(theirs, loom);
beside!(ours, weakspot_loom);

#[test]
fn loom_leaves_an_execution_out_that_can_be_told_from_the_others() {
    assert_eq!(theirs::load_then_store(), [(0, 0), (0, 1)]);
    assert_eq!(ours::load_then_store(), [(0, 0), (0, 1), (1, 0)]);
}

#[test]
fn loom_calls_correct_store_buffering_wrong() {
    assert!(!theirs::store_buffering());
    assert!(ours::store_buffering());
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn atomics_are_as_large_as_those_of_loom() {
    assert_eq!(ours::sizes(), theirs::sizes());
}
