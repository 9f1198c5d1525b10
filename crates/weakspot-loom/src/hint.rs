//! Hints to the processor.

pub use weakspot::hint::{spin_loop, unreachable_unchecked};
