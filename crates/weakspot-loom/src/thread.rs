//! Threads.

pub use weakspot::thread::*;

/// Spawns a thread of the model. Unlike std's, and as in loom, neither the closure nor its result need be `Send`: all
/// threads of a model run on one thread of the operating system.
///
/// # Panics
/// Outside a model.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    spawn_local(f)
}
