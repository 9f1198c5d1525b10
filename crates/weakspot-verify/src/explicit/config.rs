//! What one thread can do, resolved as far as it goes without looking at memory or at other threads.
//!
//! A **configuration** of a thread is its local state together with its store buffer; it has a number. For each
//! number there is one [`Config`]: what its step is, which stores it may commit, and where each leads, as numbers.

/// Where an action takes a thread: a configuration, with what the search has to know about the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Target(u32);

impl Target {
    /// Not computed yet.
    pub const UNKNOWN: Self = Self(u32::MAX);
    /// A false `assume`: not an execution.
    pub const PRUNED: Self = Self(u32::MAX - 1);
    /// A program error.
    pub const FAULT: Self = Self(u32::MAX - 2);

    const JUMPED_BACK: u32 = 1 << 31;
    const INSIDE: u32 = 1 << 30;
    /// Largest number of configurations of one thread: one less bit pattern than fits, so that the constants above
    /// are no targets.
    pub const MAX_CONFIGS: u32 = Self::INSIDE - 3;

    /// A configuration.
    pub fn new(config: u32, jumped_back: bool, inside: bool) -> Self {
        debug_assert!(config < Self::MAX_CONFIGS);
        let back = if jumped_back { Self::JUMPED_BACK } else { 0 };
        let inside = if inside { Self::INSIDE } else { 0 };
        Self(config | back | inside)
    }

    /// A prune, a fault or unknown: no configuration.
    pub fn is_special(self) -> bool {
        self.0 >= Self::FAULT.0
    }

    /// The configuration's number.
    pub fn config(self) -> u32 {
        self.0 & (Self::INSIDE - 1)
    }

    /// The thread jumped backwards on the way.
    pub fn jumped_back(self) -> bool {
        self.0 & Self::JUMPED_BACK != 0
    }

    /// The configuration is inside a `critical` block.
    pub fn is_inside(self) -> bool {
        self.0 & Self::INSIDE != 0
    }
}

/// A row of [`Slot`]s in a worker's tables, indexed by the value of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slots {
    pub start: u32,
    pub len: u32,
}

/// What comes of an event that reads a cell, for one value of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    pub to: Target,
    /// What a read-modify-write writes; [`Slot::NOTHING`] if nothing.
    pub written: u32,
}

impl Slot {
    pub const NOTHING: u32 = u32::MAX;
    pub const UNKNOWN: Self = Self { to: Target::UNKNOWN, written: Self::NOTHING };
}

/// What the step of a thread is. Cells are locations, then mutexes; values are numbers of the cell's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// This worker has not looked the configuration up yet.
    Missing,
    /// Ended, or spinning without events.
    Never,
    /// A store that does not fit the buffer's bound: waits for any commit of its own.
    Full,
    /// Waits until its own buffer is empty.
    Drain,
    /// Waits until its own buffer holds no store to this cell.
    DrainCell { cell: u32 },
    /// Touches nothing that others see: a store that is buffered, a fence that may pass, the end of a critical block.
    Local { to: Target },
    /// A load that its own buffer serves.
    Forward { cell: u32, to: Target },
    /// One target for each value chosen.
    Choose { lo: i64, targets: Slots },
    /// A load from memory.
    Load { cell: u32, slots: Slots },
    /// A read-modify-write.
    Rmw { cell: u32, slots: Slots },
    /// A store that acts at once (SC).
    Write { cell: u32, value: u32, to: Target },
    /// Acquires a mutex when it is free (value 0).
    Lock { cell: u32, mine: u32, to: Target },
    /// Releases a mutex; an error if its value is not `mine`.
    Unlock { cell: u32, mine: u32, to: Target },
    /// Releases a mutex and falls asleep.
    Wait { cell: u32, mine: u32, condvar: u32, to: Target },
    /// Asleep: a notification, or (if allowed) a spurious wake-up, leads to `woken`.
    Asleep { condvar: u32, woken: Target },
    /// Wakes one or all of those who are asleep.
    Notify { condvar: u32, all: bool, to: Target },
}

/// A store that may become visible now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Commit {
    pub cell: u32,
    pub value: u32,
    pub to: Target,
}

/// One configuration of one thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub step: Step,
    /// Its possible commits in the worker's tables.
    pub commits: Slots,
    /// Inside a `critical` block.
    pub inside: bool,
    /// Has ended (its buffer may still drain).
    pub ended: bool,
    /// Objects with stores in the buffer.
    pub held: Objects,
    /// Objects it may read, now or later.
    pub will_read: Objects,
    /// Objects it may write, now or later.
    pub will_write: Objects,
}

impl Config {
    pub const MISSING: Self = Self {
        step: Step::Missing,
        commits: Slots { start: 0, len: 0 },
        inside: false,
        ended: false,
        held: Objects::NONE,
        will_read: Objects::NONE,
        will_write: Objects::NONE,
    };
}

/// A set of shared objects: locations, mutexes, condition variables, and the entry of critical blocks.
///
/// There are 64 bits; a program with more objects has several of them share a bit, which only makes the partial-order
/// reduction see conflicts where there are none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Objects(u64);

impl Objects {
    pub const NONE: Self = Self(0);
    /// Entering a critical block.
    pub const ENTRY: Self = Self(1 << 63);

    /// The set of one object, by its number.
    pub fn only(object: u32) -> Self {
        Self(1 << (object % 63))
    }

    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
