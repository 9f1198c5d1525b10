//! Mirrors of `std::thread`.
//!
//! Threads of a model are coroutines. Starting, beginning, ending and joining are events that cost no executions, and
//! full fences for store buffers. An execution is over when every thread has ended, joined or not.

mod carried;
mod handle;
mod local;
mod scoped;

use std::panic::Location;
use std::time::Duration;

use corosensei::stack::DefaultStack;

#[doc(hidden)]
pub use handle::spawn_local;
pub use handle::{Builder, JoinHandle, Result, spawn};
pub use local::{AccessError, LocalKey};
pub use scoped::{Scope, ScopedJoinHandle, scope};
pub use std::thread::available_parallelism;

use crate::rt::lane::{Operation, TIMES_OUT};
use crate::rt::{self, Place, Runtime, Step, Sync, stacks};

/// A thread's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadId(Identity);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Identity {
    Outside(std::thread::ThreadId),
    Model(u32),
}

/// A handle to a thread.
#[derive(Debug, Clone)]
pub struct Thread(Inner);

#[derive(Debug, Clone)]
enum Inner {
    Outside(std::thread::Thread),
    Model { number: u32, name: Option<String> },
}

impl Thread {
    fn of_outside(thread: std::thread::Thread) -> Self {
        Self(Inner::Outside(thread))
    }

    fn of_model(number: u32, name: Option<String>) -> Self {
        Self(Inner::Model { number, name })
    }

    /// Gives the thread its token: its next or present `park` returns.
    #[track_caller]
    pub fn unpark(&self) {
        match &self.0 {
            Inner::Outside(thread) => thread.unpark(),
            Inner::Model { number, .. } => {
                if let Some(runtime) = rt::current() {
                    runtime.parking(*number).update("Thread::unpark", Sync::Release, |_| Step::Write(1));
                }
            }
        }
    }

    /// Who it is.
    pub fn id(&self) -> ThreadId {
        ThreadId(match &self.0 {
            Inner::Outside(thread) => Identity::Outside(thread.id()),
            Inner::Model { number, .. } => Identity::Model(*number),
        })
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Inner::Outside(thread) => thread.name(),
            Inner::Model { name, .. } => name.as_deref(),
        }
    }
}

/// The current thread.
pub fn current() -> Thread {
    match rt::current() {
        None => Thread(Inner::Outside(std::thread::current())),
        Some(runtime) => {
            rt::counts::check_who(runtime);
            let number = runtime.thread.get();
            Thread::of_model(number, runtime.state().lanes[number as usize].name.clone())
        }
    }
}

/// Waits for the current thread's token and takes it.
#[track_caller]
pub fn park() {
    let Some(runtime) = rt::current() else { return std::thread::park() };
    let token = runtime.parking(runtime.thread.get());
    token.update("thread::park", Sync::Acquire, |token| if token == 0 { Step::Block } else { Step::Write(0) });
}

/// The same as [`park`], but returns after some time at the latest. In a model any time may be over at once.
#[track_caller]
pub fn park_timeout(duration: Duration) {
    let place = Location::caller();
    let Some(runtime) = rt::current() else { return std::thread::park_timeout(duration) };
    let token = runtime.parking(runtime.thread.get());
    if runtime.times_out(place) {
        // A token that is there is gone, whether the time is over or not.
        token.update(
            "thread::park_timeout",
            Sync::Acquire,
            |token| if token == 0 { Step::Keep } else { Step::Write(0) },
        );
        return;
    }
    let take = |token| if token == 0 { Step::Block } else { Step::Write(0) };
    if token.update("thread::park_timeout", Sync::Acquire, take) == 0 && !runtime.is_free() {
        runtime.note_timeout(place);
    }
}

/// The predecessor of [`park_timeout`].
#[deprecated(note = "replaced by `thread::park_timeout`")]
#[track_caller]
pub fn park_timeout_ms(milliseconds: u32) {
    park_timeout(Duration::from_millis(milliseconds.into()));
}

/// Lets other threads go first. In a model: the end of a round of a loop that waits.
#[track_caller]
pub fn yield_now() {
    if rt::in_model() { rt::spin() } else { std::thread::yield_now() }
}

/// Waits for some time. In a model time does not pass: this is [`yield_now`].
#[track_caller]
pub fn sleep(duration: Duration) {
    if rt::in_model() { rt::spin() } else { std::thread::sleep(duration) }
}

/// The predecessor of [`sleep`].
#[deprecated(note = "replaced by `thread::sleep`")]
#[track_caller]
pub fn sleep_ms(milliseconds: u32) {
    sleep(Duration::from_millis(milliseconds.into()));
}

/// Is the current thread unwinding?
pub fn panicking() -> bool {
    match rt::current() {
        Some(runtime) => runtime.is_panicking(),
        None => std::thread::panicking(),
    }
}

impl Runtime {
    /// The parking token of a thread.
    fn parking(&self, thread: u32) -> std::sync::Arc<rt::Word> {
        let mut state = self.state();
        let token = &mut state.lanes[thread as usize].parking;
        token.get_or_insert_with(|| std::sync::Arc::new(rt::Word::new(0))).clone()
    }

    /// Does a wait with a timeout time out? Both ways are explored. One that does ends a round of a loop that waits.
    pub(crate) fn times_out(&self, place: Place) -> bool {
        if self.is_free() {
            self.give_way();
            return true;
        }
        let thread = self.thread.get() as usize;
        {
            let timed = &mut self.state().lanes[thread].timed;
            if !timed.iter().any(|&(known, _)| std::ptr::eq(known, place)) {
                timed.push((place, 0));
            }
        }
        let times_out = self.choose(2, TIMES_OUT, place) == 1;
        if times_out {
            self.note_timeout(place);
        }
        times_out
    }

    /// A wait with a timeout is over, and what the current thread has waited for has not come.
    pub(crate) fn note_timeout(&self, place: Place) {
        let thread = self.thread.get() as usize;
        if let Some((_, times)) =
            self.state().lanes[thread].timed.iter_mut().find(|(known, _)| std::ptr::eq(*known, place))
        {
            *times += 1;
        }
        self.pass_marker(place);
    }

    /// The last event of a thread.
    pub(crate) fn end_thread(&self, thread: u32) {
        let (end, place) = {
            let state = self.state();
            let lane = &state.lanes[thread as usize];
            (lane.end, lane.place)
        };
        if !self.is_free() {
            self.post(Operation::End(end), "end", place);
        }
    }

    /// Starts a thread.
    fn start(&self, builder: Builder, body: Box<dyn FnOnce()>, place: Place) -> u32 {
        let stack = builder.stack_size.map_or_else(stacks::take, stacks::take_of);
        match self.number_child(false, place) {
            Ok(child) => self.begin_thread(child, builder.name, stack, body, place),
            Err(limit) => self.fail(
                format!(
                    "this would be the thread number {} of the model, and it may have {limit}: see `max_threads`",
                    limit + 1
                ),
                place,
            ),
        }
    }

    /// Starts a thread that is none of the program's and may wait for ever; false if there is no room for one more.
    pub(crate) fn start_hidden(&self, body: Box<dyn FnOnce()>, place: Place) -> bool {
        let child = self.number_child(true, place);
        if let Ok(child) = child {
            self.begin_thread(child, None, stacks::take(), body, place);
            self.state().hidden |= 1 << child;
        }
        child.is_ok()
    }

    fn begin_thread(
        &self,
        child: u32,
        name: Option<String>,
        stack: DefaultStack,
        body: Box<dyn FnOnce()>,
        place: Place,
    ) -> u32 {
        let birth = self.add_object(rt::objects::Object::new(0, place));
        let end = self.add_object(rt::objects::Object::new(0, place));
        if !self.is_free() {
            self.post(Operation::Spawn { birth, child }, "spawn", place);
        }
        {
            let state = &mut *self.state();
            let births = state.births.len();
            let joined = state.lanes[self.thread.get() as usize].joined;
            state.causality.start(self.thread.get(), child);
            let lane = &mut state.lanes[child as usize];
            (lane.end, lane.name, lane.place, lane.what) = (end, name, place, "begin");
            lane.operation = Operation::Begin(birth);
            (lane.parent, lane.births_of_parent, lane.joined) = (self.thread.get(), births, joined);
        }
        self.add_routine(child, stack, body);
        child
    }

    /// Waits until a thread has ended.
    fn join(&self, child: u32, place: Place) {
        let end = self.state().lanes[child as usize].end;
        if !self.is_free() {
            self.post(Operation::Join { end, child }, "join", place);
        }
        if self.is_free() {
            while !self.has_ended(child) && self.give_way() {}
        } else {
            let state = &mut *self.state();
            state.causality.join(self.thread.get(), child);
            let joined = state.lanes[child as usize].joined | 1 << child;
            state.lanes[self.thread.get() as usize].joined |= joined;
        }
    }

    fn has_ended(&self, thread: u32) -> bool {
        matches!(self.state().lanes[thread as usize].operation, Operation::Ended | Operation::Absent)
    }
}
