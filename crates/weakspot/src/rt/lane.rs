//! One thread of a model: its coroutine and what it is about to do.

use std::cell::{Cell, UnsafeCell};
use std::sync::Arc;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, Yielder};
use weakspot_model::ir::FenceKind;

use super::counts::LastOwner;
use super::debts::Debt;
use super::panics::Seen;
use super::{Place, Word};

/// The coroutine of a thread. It is resumed with the result of its event and yields when it has posted the next.
pub(crate) type Routine = Coroutine<i64, (), (), DefaultStack>;
/// What a coroutine suspends with.
pub(crate) type Suspender = Yielder<i64, ()>;

/// Where the coroutine of a thread is. It stays there when lanes are moved, even while it runs.
pub(crate) struct Berth(Box<UnsafeCell<Option<Routine>>>);

impl Berth {
    fn new() -> Self {
        Self(Box::new(UnsafeCell::new(None)))
    }

    pub(crate) fn put(&mut self, routine: Routine) {
        *self.0.get_mut() = Some(routine);
    }

    pub(crate) fn take(&mut self) -> Option<Routine> {
        self.0.get_mut().take()
    }

    pub(crate) fn is_taken(&mut self) -> bool {
        self.0.get_mut().is_some()
    }

    #[inline]
    pub(crate) fn pointer(&self) -> *mut Option<Routine> {
        self.0.get()
    }
}

/// What an atomic makes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It writes this.
    Writes(u64),
    /// It only reads.
    Reads,
    /// It waits until the value is another one.
    Blocks,
}

/// Looks at the value (`None`: that in memory) an atomic would find, and says what it would do.
pub(crate) type Probe<'a> = &'a dyn Fn(Option<u64>) -> (u64, Effect);

/// What a thread is about to do. Objects are numbers of this run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    /// Not started in this run.
    Absent,
    Load(u32),
    Store(u32, u64),
    InterlockedStore(u32, u64),
    Rmw {
        object: u32,
        drains_all: bool,
        /// May it wait?
        may_block: bool,
        /// Is it a plain load if it does not write?
        looks: bool,
        probe: *const (dyn Fn(Option<u64>) -> (u64, Effect) + 'static),
    },
    Fence(FenceKind),
    Lock(u32),
    TryLock(u32),
    Unlock(u32),
    Wait {
        condvar: u32,
        mutex: u32,
    },
    Notify {
        condvar: u32,
        all: bool,
    },
    Choose(u32),
    /// Starts this thread, which waits for the object.
    Spawn {
        birth: u32,
        child: u32,
    },
    Begin(u32),
    End(u32),
    Join {
        end: u32,
        child: u32,
    },
    /// Opens a gate.
    Open(u32),
    /// Waits until a gate is open.
    Pass(u32),
    /// A store to this object reaches memory (in reports of relaxed executions).
    Commit(u32),
    /// Plain memory is accessed (in reports of data races).
    Plain,
    /// Over.
    Ended,
    /// Panicked, raced, …: see the failure of the run.
    Failed,
}

impl Operation {
    /// Its object; that of a wait is the condition variable.
    #[inline]
    pub(crate) fn object(self) -> Option<u32> {
        Some(match self {
            Self::Load(object)
            | Self::Store(object, _)
            | Self::InterlockedStore(object, _)
            | Self::Rmw { object, .. }
            | Self::Lock(object)
            | Self::TryLock(object)
            | Self::Unlock(object)
            | Self::Wait { condvar: object, .. }
            | Self::Notify { condvar: object, .. }
            | Self::Spawn { birth: object, .. }
            | Self::Begin(object)
            | Self::End(object)
            | Self::Open(object)
            | Self::Pass(object)
            | Self::Join { end: object, .. } => object,
            _ => return None,
        })
    }
}

/// What an event is called begins with this if it is not the first one of its call.
pub(crate) const CONTINUES: &str = "… ";

/// What a thread may do although nothing happens: see [`Operation::Choose`].
pub(crate) const TIMES_OUT: &str = "times out";
pub(crate) const WAKES_UP: &str = "wakes up for no reason";

/// What the call is called that an event belongs to.
pub(crate) fn call_of(what: &'static str) -> &'static str {
    what.strip_prefix(CONTINUES).unwrap_or(what)
}

/// One event of a run, for reports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Happened {
    pub(crate) thread: u32,
    pub(crate) operation: Operation,
    pub(crate) what: &'static str,
    pub(crate) place: Place,
    /// What was read, or the choice.
    pub(crate) result: i64,
    /// What an atomic has written.
    pub(crate) written: Option<i64>,
    /// Since its event before, the thread may have changed memory that no event tells of.
    pub(crate) after_change: bool,
}

impl Happened {
    /// Is it an event that a thread has done itself? Its stores may reach memory later.
    pub(crate) fn is_step_of(&self, thread: u32) -> bool {
        self.thread == thread && !matches!(self.operation, Operation::Commit(_))
    }
}

/// A store that is in the buffer of its thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Issued {
    pub(crate) object: u32,
    /// The row of what it releases.
    pub(crate) row: u32,
    pub(crate) place: Place,
}

/// One thread. Lanes survive runs: a thread is who started it and how many it had started before.
pub(crate) struct Lane {
    pub(crate) berth: Berth,
    pub(crate) suspender: *const Suspender,
    /// The lowest address of its stack.
    pub(crate) guard: usize,
    /// The address that its stack begins at, which is the highest.
    pub(crate) top: usize,
    pub(crate) operation: Operation,
    /// Is it an access that takes the steps of a script itself?
    pub(crate) takes_steps: bool,
    /// What the operation is called in reports.
    pub(crate) what: &'static str,
    pub(crate) place: Place,
    /// The loop marker passed since the last event, or 0.
    pub(crate) marker: u32,
    /// Where the last marker it has passed stands.
    pub(crate) marker_place: Option<Place>,
    /// Who has started it, and how much had been allocated then.
    pub(crate) parent: u32,
    pub(crate) births_of_parent: usize,
    /// Threads that it has joined, or that those have that have started it or were joined: one bit for each.
    pub(crate) joined: u64,
    /// Accesses to plain memory that it has come to.
    pub(crate) plains: u32,
    /// Threads it has started in this run.
    pub(crate) started: u32,
    /// The same, of hidden ones.
    pub(crate) started_hidden: u32,
    pub(crate) name: Option<String>,
    /// The object that is written when the thread ends.
    pub(crate) end: u32,
    /// Its parking token, once somebody uses it.
    pub(crate) parking: Option<Arc<Word>>,
    /// It is in the destructor of this `Arc`'s value, and another thread may have been the last owner as well.
    pub(crate) last_owner_of: Option<LastOwner>,
    /// Values for statics that it is making.
    pub(crate) keeping: i32,
    /// It has panicked, and maybe still unwinds.
    pub(crate) unwinding: bool,
    /// Its panics, the last one last: some may have been caught.
    pub(crate) seen: Vec<Seen>,
    /// Rounds of waiting loops in a row without an event.
    pub(crate) silent_rounds: u32,
    /// What the atomic it is about to do would write.
    pub(crate) written: Cell<Option<i64>>,
    /// It has stored since its last fence (PSO): see [`Runtime::is_behind_fence`](super::Runtime::is_behind_fence).
    pub(crate) has_stored: bool,
    /// What its last interlocked operation that is no event owes.
    pub(crate) owed: Option<Debt>,
    /// Stores that are in its buffer (on simulated store buffers).
    pub(crate) issued: Vec<Issued>,
    /// Where waits with a timeout have timed out or not in this run, and how often they have.
    pub(crate) timed: Vec<(Place, u32)>,
    /// Since its last event it may have changed memory that no event tells of.
    pub(crate) has_changed: Cell<bool>,
}

impl Lane {
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self {
            berth: Berth::new(),
            suspender: std::ptr::null(),
            guard: 0,
            top: 0,
            operation: Operation::Absent,
            takes_steps: false,
            what: "",
            place: std::panic::Location::caller(),
            marker: 0,
            marker_place: None,
            parent: 0,
            births_of_parent: 0,
            joined: 0,
            plains: 0,
            started: 0,
            started_hidden: 0,
            name: None,
            end: 0,
            parking: None,
            last_owner_of: None,
            keeping: 0,
            unwinding: false,
            seen: Vec::new(),
            silent_rounds: 0,
            written: Cell::new(None),
            has_stored: false,
            owed: None,
            issued: Vec::new(),
            timed: Vec::new(),
            has_changed: Cell::new(false),
        }
    }

    /// Forgets the last run.
    pub(crate) fn reset(&mut self) {
        self.suspender = std::ptr::null();
        self.operation = Operation::Absent;
        self.takes_steps = false;
        self.marker = 0;
        self.marker_place = None;
        self.joined = 0;
        self.plains = 0;
        self.started = 0;
        self.started_hidden = 0;
        self.name = None;
        self.parking = None;
        self.last_owner_of = None;
        self.keeping = 0;
        self.unwinding = false;
        self.seen.clear();
        self.silent_rounds = 0;
        self.written.set(None);
        self.has_stored = false;
        self.owed = None;
        self.issued.clear();
        self.timed.clear();
        self.has_changed.set(false);
    }
}

impl Lane {
    /// How often the wait at the place of the thread has timed out, if it is one with a timeout.
    pub(crate) fn timeouts_here(&self) -> Option<u32> {
        self.timed.iter().find(|(place, _)| std::ptr::eq(*place, self.place)).map(|&(_, times)| times)
    }

    /// Does it wait with a timeout?
    pub(crate) fn may_time_out(&self) -> bool {
        matches!(self.operation, Operation::Wait { .. } | Operation::Rmw { .. }) && self.timeouts_here().is_some()
    }

    /// Has it passed the last marker because a wait with a timeout was over?
    pub(crate) fn has_timed_out(&self) -> bool {
        self.marker_place.is_some_and(|marker| self.timed.iter().any(|(place, _)| std::ptr::eq(*place, marker)))
    }

    /// Is it in a wait with a timeout, and about to get its mutex back?
    pub(crate) fn returns_from_wait(&self) -> bool {
        matches!(self.operation, Operation::Lock(_)) && self.timeouts_here().is_some()
    }

    /// Is it about to choose whether a wait times out that has done so before?
    pub(crate) fn may_time_out_again(&self) -> bool {
        matches!(self.operation, Operation::Choose(_)) && self.timeouts_here() > Some(0)
    }
}
