//! Threads.

pub use weakspot::thread::*;

/// Spawns a thread of the model. Unlike std's, and as in loom, neither the closure nor its result need be `Send`: all
/// threads of a model run on one thread of the operating system. Outside a model, where loom panics, it is a thread as
/// std's.
///
/// # Panics
/// Outside a model, if the closure or its result is not `Send`.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    spawn_local(f)
}
