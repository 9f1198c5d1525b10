//! What an execution of the reference machine did, as monitors and recordings see it.
//!
//! Beginning to `wait` is two [`Happening`]s: it enters the list of waiters and releases the mutex. A notification is
//! followed at once by one of each thread that it wakes: whatever comes later has nothing to do with that. Choices and
//! leaving a critical block touch nothing shared, and the instruction that fails does not happen.
//!
//! The same events come out as from an [`crate::interleave::Interleaving`] and from a linearised graph; replay and
//! recording go through the machine because it has the last word, and because its effects carry the values.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Pc, ThreadId};
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::local::Pause;
use weakspot_model::machine::{Action, Effect, Machine, Outcome, Phase, State};

use crate::graph::NONE;
use crate::interpreter::Cells;
use crate::monitor::Operation;
use crate::system::CellId;

/// What kind of event it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A plain read.
    Load,
    /// A plain write.
    Store,
    /// An atomic.
    Rmw {
        /// Did it write? A failed compare-and-swap did not.
        writes: bool,
        /// Waits for the whole own buffer under PSO too.
        drains_all: bool,
    },
    /// A fence.
    Fence(FenceKind),
    /// Acquired a mutex.
    Lock,
    /// Released a mutex.
    Unlock,
    /// Entered the list of those who wait for a condition variable.
    Wait,
    /// Found itself taken from that list.
    Wake,
    /// Took waiters from that list, or found that there are none.
    Notify {
        /// Were there any? Then it wrote.
        wakes: bool,
    },
    /// Left that list without having been notified.
    Leave,
}

impl Kind {
    /// As the monitors see it.
    #[inline]
    pub fn operation(self) -> Operation {
        match self {
            Self::Load => Operation::Load,
            Self::Store => Operation::Store,
            Self::Rmw { writes, drains_all } => Operation::Atomic { writes, drains_all },
            Self::Fence(FenceKind::StoreStore) => Operation::StoreFence,
            Self::Fence(FenceKind::Full | FenceKind::StoreLoad) => Operation::FullFence,
            Self::Lock | Self::Unlock | Self::Wait | Self::Leave => {
                Operation::Atomic { writes: true, drains_all: true }
            }
            Self::Notify { wakes } => Operation::Atomic { writes: wakes, drains_all: true },
            Self::Wake => Operation::Atomic { writes: false, drains_all: true },
        }
    }
}

/// One event of an SC execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Happening {
    /// What kind.
    pub kind: Kind,
    /// The cell; [`NONE`] for a fence.
    pub cell: CellId,
    /// The value it read, if it read one.
    pub read: Option<i64>,
    /// The value it wrote, if it wrote one.
    pub written: Option<i64>,
}

/// An SC execution on the reference machine, step by step.
#[derive(Debug)]
pub struct Run<'p> {
    machine: Machine<'p>,
    cells: Cells,
    state: State,
    outcome: Outcome,
}

impl<'p> Run<'p> {
    /// Nothing has happened.
    pub fn new(program: &'p Program, spurious_wakeups: bool) -> Self {
        let machine = Machine { spurious_wakeups, ..Machine::new(program, MemoryModel::Sc) };
        let (state, outcome) = machine.start();
        Self { machine, cells: Cells::of(program), state, outcome }
    }

    /// Back to the beginning.
    pub fn restart(&mut self) {
        (self.state, self.outcome) = self.machine.start();
    }

    /// The machine.
    pub fn machine(&self) -> &Machine<'p> {
        &self.machine
    }

    /// Where it is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How the last step came out.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The instruction a thread rests at.
    pub fn pc(&self, thread: ThreadId) -> Pc {
        self.state.threads[thread.index()].local.pc
    }

    /// What can be done next; nothing if the execution is over.
    pub fn possible(&self) -> Vec<Action> {
        if self.outcome == Outcome::Continues { self.machine.enabled(&self.state) } else { Vec::new() }
    }

    /// Takes a step; what happened to whom goes to `happened`, that of the own thread first. False, and nothing done, if
    /// it is not possible here.
    pub fn step(&mut self, action: Action, happened: &mut Vec<(ThreadId, Happening)>) -> bool {
        happened.clear();
        if self.outcome != Outcome::Continues || !self.machine.allows(&self.state, action) {
            return false;
        }
        let pause = self.state.threads[action.thread().index()].pause;
        let asleep: Vec<ThreadId> = match pause {
            Pause::Notify { condvar, .. } => self.state.waiters(condvar).collect(),
            _ => Vec::new(),
        };
        let effect;
        (effect, self.outcome) = self.machine.apply(&mut self.state, action);
        if let Some(effect) = effect {
            self.push(pause, effect, &mut |happening| happened.push((action.thread(), happening)));
        }
        if let Some(&(_, Happening { cell, .. })) = happened.first() {
            let is_awake = |thread: &ThreadId| !matches!(self.state.threads[thread.index()].phase, Phase::Waiting(_));
            let wake = Happening { kind: Kind::Wake, cell, read: None, written: None };
            happened.extend(asleep.into_iter().filter(is_awake).map(|thread| (thread, wake)));
        }
        true
    }

    fn push(&self, pause: Pause, effect: Effect, push: &mut impl FnMut(Happening)) {
        let quiet = |kind, cell| Happening { kind, cell, read: None, written: None };
        match effect {
            Effect::Load { loc, value, .. } => {
                push(Happening { read: Some(value), ..quiet(Kind::Load, loc.0) });
            }
            Effect::Store { loc, value, .. } => {
                push(Happening { written: Some(value), ..quiet(Kind::Store, loc.0) });
            }
            Effect::Rmw { loc, read, written } => {
                let drains_all = matches!(pause, Pause::Rmw { drains_all: true, .. });
                let kind = Kind::Rmw { writes: written.is_some(), drains_all };
                push(Happening { kind, cell: loc.0, read: Some(read), written });
            }
            Effect::Fence(fence) => push(quiet(Kind::Fence(fence), NONE)),
            Effect::Lock(mutex) | Effect::Reacquire { mutex } => push(quiet(Kind::Lock, self.cells.mutex(mutex))),
            Effect::Unlock(mutex) => push(quiet(Kind::Unlock, self.cells.mutex(mutex))),
            Effect::Wait { condvar, mutex } => {
                push(quiet(Kind::Wait, self.cells.condvar(condvar)));
                push(quiet(Kind::Unlock, self.cells.mutex(mutex)));
            }
            Effect::Notify { condvar, woken, .. } => {
                push(quiet(Kind::Notify { wakes: woken > 0 }, self.cells.condvar(condvar)));
            }
            Effect::SpuriousWake { condvar } => push(quiet(Kind::Leave, self.cells.condvar(condvar))),
            Effect::Choose { .. } | Effect::LeaveCritical | Effect::Commit { .. } => {}
        }
    }
}
