//! Memory that a model frees is not used again in the same execution, so that addresses are no source of chance.
#![cfg(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static")))]
#![allow(clippy::unwrap_used)]

use std::ptr;

use weakspot::sync::Arc;
use weakspot::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use weakspot::{Builder, Verdict, thread};

#[test]
fn freed_memory_is_not_used_again() {
    weakspot::model(|| {
        let mut addresses: Vec<usize> = (0..100).map(|value| ptr::from_ref(&*Box::new([value; 8])).addr()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), 100);
    });
}

#[test]
fn vectors_keep_what_they_hold_when_they_grow() {
    weakspot::model(|| {
        let mut numbers = Vec::new();
        for number in 0..10_000_u32 {
            numbers.push(number);
        }
        numbers.shrink_to(2);
        assert!(numbers.iter().copied().eq(0..10_000));
    });
}

/// Nodes are freed while another thread may allocate one and compare its pointer.
#[test]
fn a_stack_whose_nodes_are_freed_is_explored_completely() {
    struct Node {
        value: u32,
        next: *mut Node,
    }

    #[derive(Default)]
    struct Stack(AtomicPtr<Node>);

    impl Stack {
        fn push(&self, value: u32) {
            let node = Box::into_raw(Box::new(Node { value, next: ptr::null_mut() }));
            self.0
                .fetch_update(SeqCst, SeqCst, |head| {
                    // SAFETY: the node is not shared yet.
                    unsafe { (*node).next = head };
                    Some(node)
                })
                .unwrap();
        }

        /// One thread only: nodes are freed at once.
        fn pop(&self) -> Option<u32> {
            // SAFETY: nobody else frees nodes.
            let popped =
                self.0.fetch_update(SeqCst, SeqCst, |head| unsafe { head.as_ref() }.map(|node| node.next)).ok()?;
            // SAFETY: it comes from `push` and is in no stack any more.
            Some(unsafe { Box::from_raw(popped) }.value)
        }
    }

    let report = Builder::default().check(|| {
        let stack = Arc::new(Stack::default());
        let other = Arc::clone(&stack);
        let thread = thread::spawn(move || {
            other.push(1);
            other.push(2);
        });
        let mut sum: u32 = (0..2).filter_map(|_| stack.pop()).sum();
        thread.join().unwrap();
        sum += std::iter::from_fn(|| stack.pop()).sum::<u32>();
        assert_eq!(sum, 3);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(report.exhaustive && report.notes.is_empty(), "{report}");
}
