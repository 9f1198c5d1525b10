//! Synchronisation.

pub use weakspot::sync::*;

/// Atomics.
pub mod atomic {
    pub use weakspot::sync::atomic::*;

    /// The old name of [`hint::spin_loop`](crate::hint::spin_loop).
    #[track_caller]
    pub fn spin_loop_hint() {
        weakspot::hint::spin_loop();
    }
}
