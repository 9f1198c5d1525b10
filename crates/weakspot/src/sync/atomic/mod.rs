//! Mirrors of `std::sync::atomic`.
//!
//! Outside a model these are the standard library's atomics. Inside, every access is an event: what store buffers may do
//! with it is decided by its ordering.
//!
//! | operation | TSO | PSO |
//! |---|---|---|
//! | any load | load | load |
//! | store, relaxed | store | store |
//! | store, release | store | store-store fence, store |
//! | store, `SeqCst` | interlocked | interlocked |
//! | read-modify-write, relaxed | interlocked | interlocked on its own location; waits for all stores before if none came after the last fence |
//! | read-modify-write, otherwise | interlocked | interlocked, waits for all stores before |
//! | `fence(SeqCst)` | full fence | full fence |
//! | `fence(Release)`, `fence(AcqRel)` | – | store-store fence |
//! | `fence(Acquire)`, `compiler_fence` | – | – |
//!
//! What compilers may reorder is outside the model. `compare_exchange_weak` does not fail spuriously.

mod boolean;
mod core;
mod integers;
mod pointer;

use std::panic::Location;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;

pub use std::sync::atomic::{Ordering, compiler_fence};

pub use boolean::AtomicBool;
pub use integers::{
    AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
};
pub use pointer::AtomicPtr;

use crate::rt;
use crate::rt::strength::Part;

pub use std::hint::spin_loop as spin_loop_hint;

/// A fence.
#[track_caller]
pub fn fence(order: Ordering) {
    let Some(runtime) = rt::current() else { return std::sync::atomic::fence(order) };
    assert!(order != Ordering::Relaxed, "there is no such thing as a relaxed fence");
    let (order, handed_on) = runtime.strong(order, Part::Fence, "fence", Location::caller());
    let kind = match (order, runtime.model) {
        (Ordering::SeqCst, MemoryModel::Tso | MemoryModel::Pso) => Some(FenceKind::Full),
        (Ordering::Release | Ordering::AcqRel, MemoryModel::Pso) => Some(FenceKind::StoreStore),
        _ => None,
    };
    if let Some(kind) = kind {
        runtime.fence(kind, Location::caller());
    }
    runtime.synchronise_fence(core::sync_of(handed_on));
}
