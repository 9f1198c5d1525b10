//! Threads that are started and joined.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

use super::carried::{Carried, is_send};
use super::{Scope, ScopedJoinHandle, Thread};
use crate::rt::{self, Place, counts};

/// What a thread has left behind: its value or its panic.
pub type Result<T> = std::result::Result<T, Box<dyn Any + Send + 'static>>;

/// Where a thread of a model leaves its value.
pub(super) type Packet<T> = Arc<Mutex<Option<T>>>;

/// A thread that can be waited for. Dropping this lets the thread go on by itself.
pub struct JoinHandle<T>(Handle<T>);

enum Handle<T> {
    Outside { handle: std::thread::JoinHandle<Carried<T>>, thread: Thread },
    Model { number: u32, thread: Thread, packet: Packet<T> },
}

impl<T> Handle<T> {
    /// A real thread.
    fn outside(builder: std::thread::Builder, body: impl FnOnce() -> Carried<T> + Send + 'static) -> io::Result<Self>
    where
        T: 'static,
    {
        let handle = builder.spawn(body)?;
        let thread = Thread::of_outside(handle.thread().clone());
        Ok(Self::Outside { handle, thread })
    }
}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended: its value.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.0 {
            Handle::Outside { handle, .. } => handle.join().map(Carried::into_inner),
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

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

/// Waits until a thread of the model has ended: its value.
#[track_caller]
pub(super) fn join<T>(number: u32, packet: &Packet<T>) -> Result<T> {
    let runtime = rt::current().expect("a thread of a model is joined by a thread of the model");
    runtime.join(number, Location::caller());
    take(packet)
}

/// Has a thread of the model ended? An event inside a model.
#[track_caller]
pub(super) fn is_finished<T>(number: u32, packet: &Packet<T>) -> bool {
    counts::is_finished(number, Location::caller())
        .unwrap_or_else(|| packet.lock().unwrap_or_else(PoisonError::into_inner).is_some())
}

/// The value of a thread that has ended.
fn take<T>(packet: &Packet<T>) -> Result<T> {
    let value = packet.lock().unwrap_or_else(PoisonError::into_inner).take();
    value.ok_or_else(|| Box::new("the thread has left no value") as Box<dyn Any + Send>)
}

/// Starts a thread.
#[track_caller]
pub fn spawn<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match Builder::new().spawn(body) {
        Ok(handle) => handle,
        Err(error) => panic!("failed to spawn thread: {error}"),
    }
}

/// Starts a thread as loom does it. In a model neither the closure nor its value need be `Send`: all threads of a model
/// run on one OS thread. Outside it is a real thread, and they must be.
///
/// # Panics
/// Outside a model, if they are not.
#[track_caller]
pub fn spawn_local<F, T>(body: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    if rt::in_model() {
        return JoinHandle(spawn_in_model(Builder::new(), body, Location::caller()));
    }
    let carried = is_send::<T>().then(|| Carried::new(body)).flatten();
    let body = carried.expect("outside of `model` a thread's closure and its value must be `Send`, and these are not");
    let run = move || Carried::new(body.into_inner()()).expect("invariant: its type is `Send`");
    match Handle::outside(std::thread::Builder::new(), run) {
        Ok(handle) => JoinHandle(handle),
        Err(error) => panic!("failed to spawn thread: {error}"),
    }
}

fn spawn_in_model<F, T>(builder: Builder, body: F, place: Place) -> Handle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    // SAFETY: nothing is borrowed.
    let Started { number, thread, packet } = unsafe { start(builder, body, place) };
    Handle::Model { number, thread, packet }
}

/// A thread of a model, and where it leaves its value.
pub(super) struct Started<T> {
    pub(super) number: u32,
    pub(super) thread: Thread,
    pub(super) packet: Packet<T>,
}

/// Starts a thread of the current model.
///
/// # Safety
/// What the closure borrows has to be there until the thread has ended or the execution is given up.
pub(super) unsafe fn start<'a, F, T>(builder: Builder, body: F, place: Place) -> Started<T>
where
    F: FnOnce() -> T + 'a,
    T: 'a,
{
    let runtime = rt::current().expect("threads of a model are started by threads of the model");
    let packet: Packet<T> = Arc::new(Mutex::new(None));
    let to = packet.clone();
    let run = move || {
        let value = body();
        *to.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    };
    let run: Box<dyn FnOnce() + 'a> = Box::new(run);
    // SAFETY: the caller has promised it.
    let run = unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'a>, Box<dyn FnOnce() + 'static>>(run) };
    let name = builder.name.clone();
    let number = runtime.start(builder, run, place);
    Started { number, thread: Thread::of_model(number, name), packet }
}

/// How a thread is to be started.
#[derive(Debug, Default)]
pub struct Builder {
    pub(super) name: Option<String>,
    pub(super) stack_size: Option<usize>,
}

impl Builder {
    /// Nothing special.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this name.
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// With a stack of this many bytes. In a model stacks have at least 2 MiB.
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Starts the thread.
    #[track_caller]
    pub fn spawn<F, T>(self, body: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if rt::in_model() {
            return Ok(JoinHandle(spawn_in_model(self, body, Location::caller())));
        }
        Ok(JoinHandle(Handle::outside(self.outside(), move || Carried::of_send(body()))?))
    }

    /// Starts a thread that may borrow from anywhere.
    ///
    /// # Safety
    /// As for [`std::thread::Builder::spawn_unchecked`]: the thread must have ended before what it borrows goes away.
    #[track_caller]
    pub unsafe fn spawn_unchecked<F, T>(self, body: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        if rt::in_model() {
            // SAFETY: the caller has promised it.
            let Started { number, thread, packet } = unsafe { start(self, body, Location::caller()) };
            return Ok(JoinHandle(Handle::Model { number, thread, packet }));
        }
        // SAFETY: the caller has promised it.
        let handle = unsafe { self.outside().spawn_unchecked(move || Carried::of_send(body()))? };
        let thread = Thread::of_outside(handle.thread().clone());
        Ok(JoinHandle(Handle::Outside { handle, thread }))
    }

    /// Starts a thread that may borrow from the one that made the scope.
    #[track_caller]
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        body: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        scope.start(self, body, Location::caller())
    }

    pub(super) fn outside(self) -> std::thread::Builder {
        let mut builder = std::thread::Builder::new();
        if let Some(name) = self.name {
            builder = builder.name(name);
        }
        if let Some(bytes) = self.stack_size {
            builder = builder.stack_size(bytes);
        }
        builder
    }
}
