//! The runtime: threads of a model as coroutines, and their events.
//!
//! An execution of a model (a *run*) is a set of coroutines on one OS thread. A coroutine runs until its next *event*
//! (an access to an atomic, a lock, a spawn, …), where it says what it is about to do and suspends. The explorer decides
//! who goes on; when a coroutine is resumed, its event happens, and the code after it runs at once.
//!
//! | module | what lives there |
//! |---|---|
//! | `runtime` | how a thread posts an event |
//! | `state` | what changes during a run: threads, objects, what has happened |
//! | `system` | the runtime as a [`weakspot_explore::system::System`] |
//! | `script` | the known beginning of a run, made again without the explorer |
//! | `lane` | one thread: its coroutine and what it is about to do |
//! | `objects` | atomics and locks of a run, and the stamps that tie them to their Rust objects |
//! | `slot` | the memory of atomics, and how it is tied to the objects of a run |
//! | `gates` | what is opened once and passed by all who wait: barriers |
//! | `glance` | looking without a fence at what others change with one |
//! | `interlocked` | read-modify-writes |
//! | `counts` | reference counts, which are events only where the program can see them |
//! | `causality` | happens-before of the C11 orderings; data races |
//! | `finish` | what becomes of a run that is given up |
//! | `numbers` | which thread is which |
//! | `channels` | who sees that the senders of a channel are gone |
//! | `meetings` | threads that come to a `Barrier`, whose order nobody sees |
//! | `shares` | readers of an `RwLock`, whose order nobody sees |
//! | `word` | state words with blocking updates: what locks and channels are made of |
//! | `synchronise` | what events mean for happens-before; mutexes and threads |
//! | `local` | storage of one run and of one thread |
//! | `panics` | panics inside a model, kept instead of printed |
//! | `overflow` | stack overflow, with the name of the thread |
//! | `turns` | runs that are going on, and who waits for their end |
//! | `anew` | runs that are in somebody's way, and begin again |
//! | `foreign` | OS threads that a model has started |
//! | `ordinary` | locks that ordinary code uses as well |
//! | `statics` | statics, which one model at a time may use |
//! | `kept` | what static locks hold, put back after a run |
//! | `poison` | whether locks are poisoned |
//! | `observed` | which counts the program looks at: a part of every schedule |
//! | `calls` | which call of which loop it is |
//! | `memory` | what a model allocates and frees |
//! | `suspects` | what is freed while others may still use it |
//! | `tracked` | plain memory under the eyes of the race detector |
//! | `strength` | operations that are made stronger, to try out what helps |
//! | `stacks` | stacks of coroutines, used again and again |
//! | `watchdog` | a run that does not come back |
//! | `waiting` | who waits for what |
//! | `worker` | the runtimes of workers |
//! | `spare` | the memory of checks that are over, used by the next |
//!
//! # Between two events
//! `yield_now` and `spin_loop` are no events. They leave a marker, which the next event carries, and the code behind them runs
//! at once. Whoever looks at a value of `std` after a yield therefore looks before anybody else has moved. For a later look
//! the yield would have to be an event of its own, which needs all of this:
//!
//! - It is local: it has no cell and is ordered with nothing, so that there are as many executions as without it.
//! - next(G) puts it off while anybody else can go on, and so does every order in which a graph is run again (`linearise`,
//!   `Lineariser::drain`). Otherwise a run meets other values than the one before, and the model does not repeat itself.
//! - Only the first yield of a thread at a place is one. Otherwise each round of a loop has an event more.
//! - What recognises rounds skips it: it stands between the last look of the first round and the marker, where the explorer
//!   (`seen_at_end_of_round`, `trust/rounds`, `trust/futile`), the loops that count (`probe`) and the machine with store buffers
//!   (`Buffered::end_round`) expect the look.
//! - A search of schedules leaves a thread that rests there without a preemption.
//!
//! The first three are a few lines, and were tried. Without the fourth, two threads that spin have half as many executions again,
//! loops that wait are taken to count their rounds, guards against waiting too long fail, and an execution in which store
//! buffers do harm in a loop was missed. And it only exchanges the early look for a late one: since the look is no event, one of
//! the two is met, and not both. So it is left as it is; a type of weakspot's is the remedy.
//!
//! # The one ambient thing
//! User code calls `AtomicUsize::load` without any handle, so a thread-local points to the runtime while a coroutine
//! runs. Nothing else is ambient.

mod anew;
mod calls;
pub(crate) mod causality;
pub(crate) mod channels;
pub(crate) mod counts;
mod debts;
pub(crate) mod finish;
mod foreign;
mod gates;
mod glance;
mod interlocked;
pub(crate) mod kept;
pub(crate) mod lane;
mod local;
mod meetings;
mod memory;
pub(crate) mod numbers;
pub(crate) mod objects;
pub(crate) mod observed;
pub(crate) mod ordinary;
pub(crate) mod overflow;
mod owners;
pub(crate) mod panics;
pub(crate) mod poison;
pub(crate) mod runtime;
pub(crate) mod script;
pub(crate) mod shares;
pub(crate) mod slot;
pub(crate) mod spare;
pub(crate) mod stacks;
pub(crate) mod state;
pub(crate) mod statics;
pub(crate) mod strength;
pub(crate) mod suspects;
mod synchronise;
pub(crate) mod system;
mod tracked;
mod turns;
pub(crate) mod waiting;
mod watchdog;
mod word;
mod worker;

use std::cell::Cell;
use std::io::Write;
use std::panic::Location;
use std::ptr;

pub use causality::Sync;
pub use local::{at_end, run_local, thread_local};
pub(crate) use runtime::Runtime;
pub use tracked::{Clock, Tracked};
pub(crate) use tracked::{Open, access_atomic};
pub use turns::set_patience;
pub use word::{Step, Word};

/// The standard library, for macros in crates that do without it.
#[doc(hidden)]
pub use ::std as standard;

/// A place in the user's source.
pub(crate) type Place = &'static Location<'static>;

thread_local! {
    static CURRENT: Cell<*const Runtime> = const { Cell::new(ptr::null()) };
}

/// Is the caller a thread of a model?
pub fn in_model() -> bool {
    !CURRENT.get().is_null()
}

/// The current thread of a model may have changed memory that no event tells of.
pub(crate) fn note_change() {
    if let Some(runtime) = current() {
        runtime.state().lanes[runtime.thread.get() as usize].has_changed.set(true);
    }
}

/// The same for what a lock with this stamp holds.
pub(crate) fn note_change_of(stamp: &objects::Stamp) {
    note_change();
    if let Some(runtime) = current() {
        runtime.note_change_of(ordinary::address_of(stamp));
    }
}

/// The last owner of an `Arc` whose target is at this address has gone.
pub(crate) fn note_freed_by_owner(target: usize) {
    if let Some(runtime) = current() {
        runtime.acquit(target);
    }
}

/// There is one guard more, or one less, of the lock with this stamp.
pub(crate) fn note_guard(stamp: &objects::Stamp, is_there: bool) {
    if let Some(runtime) = current() {
        runtime.note_guard(ordinary::address_of(stamp), is_there);
    }
}

/// The number of the current thread of a model.
#[inline]
pub(crate) fn current_thread() -> Option<u32> {
    current().map(|runtime| runtime.thread.get())
}

/// The runtime of the model that the caller is a thread of.
#[inline]
pub(crate) fn current<'a>() -> Option<&'a Runtime> {
    let runtime = CURRENT.get();
    // SAFETY: the pointer is set by `enter` only, for a runtime that outlives the call it guards, and is reset when
    // that call is over. What runs meanwhile on this thread are coroutines of the runtime, which end or are given up
    // before it does. All its state is behind cells.
    unsafe { runtime.as_ref() }
}

/// The same for generic code. That is built as the user's crate is, which may be without optimisation; this is not.
#[inline(never)]
pub(crate) fn current_here<'a>() -> Option<&'a Runtime> {
    current()
}

/// Runs something with a runtime as the current one.
pub(crate) fn enter<R>(runtime: &Runtime, run: impl FnOnce() -> R) -> R {
    /// Also where something unwinds: nobody may find a runtime that is gone.
    struct Before(*const Runtime);
    impl Drop for Before {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _before = Before(CURRENT.replace(ptr::from_ref(runtime)));
    run()
}

/// Says something on standard error, at once, even in a test whose output is kept until it ends: for what may never end.
pub(crate) fn tell(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// One of `count` values, all of which are explored.
#[track_caller]
pub fn choose(count: u32) -> u32 {
    let runtime = current().expect("choose is for threads of a model");
    runtime.choose(count, "chooses", Location::caller())
}

/// Does the thread wake up although nobody wakes it? Both are explored.
#[track_caller]
pub(crate) fn wakes_up() -> bool {
    let runtime = current().expect("invariant: only threads of a model wait like this");
    runtime.choose(2, lane::WAKES_UP, Location::caller()) == 1
}

/// Ends a round of a loop that waits.
#[track_caller]
pub fn spin() {
    match current() {
        Some(runtime) => runtime.pass_call(Location::caller()),
        None => std::thread::yield_now(),
    }
}

/// Fails the execution.
#[track_caller]
pub fn fail(message: String) -> ! {
    match current() {
        Some(runtime) => runtime.fail(message, Location::caller()),
        None => panic!("{message}"),
    }
}
