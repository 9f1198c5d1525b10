//! Threads that may borrow from the one that starts them.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use super::handle::{Packet, Result, take};
use crate::rt;

/// Where scoped threads are started.
pub struct Scope<'scope, 'env: 'scope> {
    outside: Option<&'scope std::thread::Scope<'scope, 'env>>,
    started: RefCell<Vec<u32>>,
    lifetime: PhantomData<&'scope mut &'scope ()>,
}

/// A scoped thread that can be waited for.
pub struct ScopedJoinHandle<'scope, T>(Handle<'scope, T>);

enum Handle<'scope, T> {
    Outside(std::thread::ScopedJoinHandle<'scope, T>),
    Model { number: u32, packet: Packet<T> },
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits until the thread has ended: its value.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.0 {
            Handle::Outside(handle) => handle.join(),
            Handle::Model { number, packet } => {
                let runtime = rt::current().expect("a thread of a model is joined by a thread of the model");
                runtime.join(number, Location::caller());
                take(&packet)
            }
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
    let Some(runtime) = rt::current() else {
        return std::thread::scope(|outside| {
            let scope = Scope { outside: Some(outside), started: RefCell::default(), lifetime: PhantomData };
            // SAFETY: the scope of ours is used by `run` only, which ends before it and before the scope of the standard
            // library; only the lifetime of the borrow changes.
            run(unsafe { &*std::ptr::from_ref(&scope) })
        });
    };
    let scope = Scope { outside: None, started: RefCell::default(), lifetime: PhantomData };
    // SAFETY: as above.
    let value = run(unsafe { &*std::ptr::from_ref(&scope) });
    for thread in scope.started.take() {
        runtime.join(thread, place);
    }
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
        if let Some(outside) = self.outside {
            return ScopedJoinHandle(Handle::Outside(outside.spawn(body)));
        }
        let runtime = rt::current().expect("a scope of a model is used by threads of the model");
        let packet: Packet<T> = Arc::new(Mutex::new(None));
        let to = packet.clone();
        let run = move || {
            let value = body();
            *to.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        };
        let run: Box<dyn FnOnce() + 'scope> = Box::new(run);
        // SAFETY: `scope` joins the thread before what it borrows goes away. If the thread that called `scope` fails,
        // the execution is given up and no thread of it runs again.
        let run = unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'scope>, Box<dyn FnOnce() + 'static>>(run) };
        let number = runtime.start(None, run, Location::caller());
        self.started.borrow_mut().push(number);
        ScopedJoinHandle(Handle::Model { number, packet })
    }
}
