//! Futures inside a model.

mod atomic_waker;
mod block_on;

pub use atomic_waker::AtomicWaker;
pub use block_on::block_on;
