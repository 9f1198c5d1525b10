//! A loop is tried out in runs of their own. What these have stored is not there in the next run.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;

use weakspot::sync::Arc;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use weakspot::{Builder, thread};

weakspot::thread_local! {
    static NUMBER: Cell<usize> = Cell::new(7);
}

fn number() -> usize {
    NUMBER.with(|number| {
        let drawn = number.get();
        number.set(drawn.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1));
        (drawn >> 33) % 2
    })
}

#[test]
fn a_loop_draws_numbers_from_a_thread_local_while_it_waits() {
    let report = Builder { fair: true, ..Builder::default() }.check(|| {
        let slots = Arc::new([const { AtomicUsize::new(1) }; 2]);
        number();
        let free = |slot: usize| {
            let slots = Arc::clone(&slots);
            thread::spawn(move || slots[slot].store(0, Release))
        };
        let threads = [free(0), free(1)];
        let is_taken = |slot: usize| slots[slot].compare_exchange(0, 2, AcqRel, Acquire).is_ok();
        loop {
            let slot = number();
            if is_taken(slot) || is_taken(1 - slot) {
                break;
            }
            thread::yield_now();
        }
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert!(report.failure.is_none(), "{report}");
}
