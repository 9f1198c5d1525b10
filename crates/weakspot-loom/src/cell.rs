//! Cells whose accesses are checked for races.

pub use weakspot::cell::{Cell, ConstPtr, MutPtr, UnsafeCell};
