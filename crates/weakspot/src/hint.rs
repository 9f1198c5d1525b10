//! Mirrors of `std::hint`.

pub use std::hint::{assert_unchecked, black_box, select_unpredictable};

use crate::rt;

/// Ends a round of a loop that waits.
///
/// In a model, a round that only reads and finds nothing new is explored once; then the thread waits until somebody
/// writes what it reads. A loop that waits without this runs until the limit on events.
#[track_caller]
pub fn spin_loop() {
    if rt::in_model() { rt::spin() } else { std::hint::spin_loop() }
}

/// Fails an execution that comes here.
///
/// # Safety
/// Outside a model, coming here is undefined behaviour.
#[track_caller]
pub unsafe fn unreachable_unchecked() -> ! {
    if rt::in_model() {
        rt::fail("unreachable_unchecked was reached".to_owned())
    }
    // SAFETY: the caller promises that this is not reached.
    unsafe { std::hint::unreachable_unchecked() }
}

/// Says that the way to here is taken rarely.
#[cold]
pub const fn cold_path() {}
