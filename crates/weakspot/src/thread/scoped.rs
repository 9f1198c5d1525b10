//! Threads that may borrow from the one that starts them.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use super::Thread;
use super::handle::{self, Builder, Packet, Result, Started, is_finished, join};
use crate::rt::{self, Place};

/// Where scoped threads are started.
pub struct Scope<'scope, 'env: 'scope> {
    outside: Option<&'scope std::thread::Scope<'scope, 'env>>,
    /// Threads of the model that nobody has waited for. Never contended.
    started: Mutex<Vec<u32>>,
    lifetime: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

/// A scoped thread that can be waited for.
pub struct ScopedJoinHandle<'scope, T>(Handle<'scope, T>);

enum Handle<'scope, T> {
    Outside { handle: std::thread::ScopedJoinHandle<'scope, T>, thread: Thread },
    Model { number: u32, thread: Thread, packet: Packet<T> },
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits until the thread has ended: its value.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.0 {
            Handle::Outside { handle, .. } => handle.join(),
            Handle::Model { number, packet, .. } => join(number, &packet),
        }
    }

    /// The thread.
    pub fn thread(&self) -> &Thread {
        match &self.0 {
            Handle::Outside { thread, .. } | Handle::Model { thread, .. } => thread,
        }
    }

    /// Has it ended? This orders nothing: what the thread has done need not be visible.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Handle::Outside { handle, .. } => handle.is_finished(),
            Handle::Model { number, packet, .. } => is_finished(*number, packet),
        }
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

/// Runs something that may start threads which borrow; waits for all of them.
#[track_caller]
pub fn scope<'env, F, T>(run: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let place = Location::caller();
    let Some(runtime) = rt::current() else { return outside_scope(run) };
    let scope = Scope { outside: None, started: Mutex::default(), lifetime: PhantomData };
    // SAFETY: threads of the scope are joined below, before the scope ends; only the lifetime of the borrow changes.
    let value = catch_unwind(AssertUnwindSafe(|| run(unsafe { &*std::ptr::from_ref(&scope) })));
    while let Some(thread) = scope.next_started() {
        runtime.join(thread, place);
    }
    value.unwrap_or_else(|payload| resume_unwind(payload))
}

/// The same outside a model. The scope lives until all its threads have ended: they may start more.
fn outside_scope<'env, F, T>(run: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let mut made: *mut Scope<'_, '_> = std::ptr::null_mut();
    let value = std::thread::scope(|outside| {
        let scope =
            Box::into_raw(Box::new(Scope { outside: Some(outside), started: Mutex::default(), lifetime: PhantomData }));
        made = scope.cast();
        // SAFETY: the box is freed after the scope of the standard library has joined all its threads.
        run(unsafe { &*scope })
    });
    // SAFETY: made above, and nobody uses it any more. (After a panic it is leaked.)
    drop(unsafe { Box::from_raw(made) });
    value
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, body: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        match self.start(Builder::new(), body, Location::caller()) {
            Ok(handle) => handle,
            Err(error) => panic!("failed to spawn thread: {error}"),
        }
    }

    pub(super) fn start<F, T>(
        &'scope self,
        builder: Builder,
        body: F,
        place: Place,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        if let Some(outside) = self.outside {
            let handle = builder.outside().spawn_scoped(outside, body)?;
            let thread = Thread::of_outside(handle.thread().clone());
            return Ok(ScopedJoinHandle(Handle::Outside { handle, thread }));
        }
        // SAFETY: `scope` joins the thread before what it borrows goes away. If the thread that called `scope` fails,
        // the execution is given up and no thread of it runs again.
        let Started { number, thread, packet } = unsafe { handle::start(builder, body, place) };
        self.started.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        Ok(ScopedJoinHandle(Handle::Model { number, thread, packet }))
    }

    /// The thread to be waited for next, in the order in which they were started.
    fn next_started(&self) -> Option<u32> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.is_empty() { None } else { Some(started.remove(0)) }
    }
}
