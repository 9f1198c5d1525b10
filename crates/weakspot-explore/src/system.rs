//! The border between the explorer and whatever runs the threads.
//!
//! A [`System`] is the *threads* of a program without their memory: it says what each thread is about to do and takes
//! the result of that. Memory, mutexes and condition variables belong to the explorer. A thread's own state depends on
//! nothing but the results it was given, so the explorer goes back in time either by a [`Token`] for each thread (the
//! interpreter hands out interned local states) or, where there are none (live code), by [`System::restart`] and
//! feeding the recorded results again.
//!
//! # Cells
//! Everything that has a coherence order is a *cell*, a dense number the system gives out: memory locations, mutexes
//! and condition variables alike.
//!
//! # Threads and cells that appear at run time
//! Live code makes both as it goes. A thread that some run has started keeps its number for ever; where it has not been
//! started yet it is [`Pending::Absent`]. A cell that a thread is about to use and that has no number yet in this run is
//! [`UNBOUND`]: the explorer gives it one with [`System::bind`], that of the graph if the event is being run again, else
//! one that the graph does not use. So numbers do not depend on who comes first.
//!
//! # Running again
//! Without tokens, everything a thread does happens for real (it frees memory, it writes files). So every run is in an
//! order that SC allows: an alternative is put into the graph first, and then the system runs again along a
//! linearisation of the graph.
//!
//! # Deliberately absent
//! No memory, no scheduling, no cloning and no comparing of program states.

use weakspot_model::ids::ThreadId;
use weakspot_model::ir::FenceKind;

/// A cell: memory location, mutex or condition variable.
pub type CellId = u32;

/// A cell that has no number yet in this run: see [`System::bind`].
pub const UNBOUND: CellId = CellId::MAX;

/// Restores one thread exactly. Only the system that gave it out understands it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub u32);

/// What a thread is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// Read a memory cell; resume with the value.
    Load(CellId),
    /// Write a memory cell.
    Store {
        /// The cell.
        cell: CellId,
        /// The value.
        value: i64,
    },
    /// Write a memory cell and wait until it is in memory: what an exchange does, without reading.
    InterlockedStore {
        /// The cell.
        cell: CellId,
        /// The value.
        value: i64,
    },
    /// An atomic: see [`System::update`].
    Rmw {
        /// The cell.
        cell: CellId,
        /// Waits for the whole own buffer under PSO too.
        drains_all: bool,
    },
    /// A fence.
    Fence(FenceKind),
    /// Acquire a mutex.
    Lock(CellId),
    /// Acquire a mutex if it is free; resume with 1 if it was, else with 0.
    TryLock(CellId),
    /// Release a mutex.
    Unlock(CellId),
    /// Release a mutex, sleep until notified, acquire it again.
    Wait {
        /// The condition variable.
        condvar: CellId,
        /// The mutex.
        mutex: CellId,
    },
    /// Wake waiters.
    Notify {
        /// The condition variable.
        condvar: CellId,
        /// All of them?
        all: bool,
    },
    /// Resume with any value of the range.
    Choose {
        /// Smallest value.
        lo: i64,
        /// Largest value.
        hi: i64,
    },
    /// Write a cell that is written only once: a thread is started, a thread has ended.
    Signal(CellId),
    /// Wait until such a cell is written. There is only one write to read, so this costs no executions.
    Await(CellId),
    /// Leave a critical block.
    LeaveCritical,
    /// Has not been started in this run.
    Absent,
    /// Has ended.
    Ended,
    /// Computes for ever without an event.
    Spinning,
    /// An `assume` was false: this is no execution.
    Pruned,
    /// The thread's last step broke the specification.
    Failed,
    /// The bound on loop rounds is reached.
    Bounded,
}

impl Pending {
    /// Will the thread never do anything again?
    pub fn is_last(self) -> bool {
        matches!(self, Self::Ended | Self::Spinning | Self::Pruned | Self::Failed | Self::Bounded)
    }

    /// Is the cell [`UNBOUND`]? A mutex that is waited with is not.
    #[inline]
    pub fn is_unbound(self) -> bool {
        match self {
            Self::Load(cell)
            | Self::Store { cell, .. }
            | Self::InterlockedStore { cell, .. }
            | Self::Rmw { cell, .. }
            | Self::Lock(cell)
            | Self::TryLock(cell)
            | Self::Unlock(cell)
            | Self::Wait { condvar: cell, .. }
            | Self::Notify { condvar: cell, .. }
            | Self::Signal(cell)
            | Self::Await(cell) => cell == UNBOUND,
            _ => false,
        }
    }
}

/// What an atomic makes of the value of its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// It acts.
    Acts {
        /// What the thread is resumed with.
        result: i64,
        /// What is written, if anything.
        written: Option<i64>,
    },
    /// It is a program error (overflow, out of range).
    Fails,
    /// It waits until the cell has another value.
    Blocks,
}

/// How the event a thread rests at can be a program error that only the memory knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Misuse {
    /// [`System::update`] says [`Update::Fails`] for this value.
    Update(i64),
    /// The thread releases a mutex it does not hold.
    NotHolding,
}

/// Which rounds of a loop are not explored in all ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeftOut {
    /// The loop looks many times and then does something else: those between the first rounds and the last.
    ManyRounds,
    /// The loop writes something new in each round: those after one in which it has read nothing new.
    Writes,
    /// The loop ends after another number of rounds each time, as if it asked a clock: what comes after its end.
    Clock,
    /// The rounds of the loop differ from each other and go on: those after one in which it has read nothing new.
    Winds,
    /// The loop ends by itself, but only after very many rounds: what comes after its end.
    LongLoop,
    /// The loop ends by itself sometimes, which was noticed late: what comes after its end elsewhere.
    Unsure,
    /// What the thread does after the loop depends on how often it went round: what comes of more rounds.
    Counts,
    /// The loop counts its rounds and fails after some: the failure.
    Fails,
    /// The loop waits for something that is no event, and went on when it had changed: what comes then.
    Unseen,
    /// The loop goes on because of what other threads write that go round loops as well: more of such rounds.
    Together,
    /// The loop waits with a timeout, and others go on each time that is over: more of such rounds.
    Timeouts,
}

/// One step of a run that is made again: see [`System::repeat`].
#[derive(Debug, Clone, Copy)]
pub struct Repeated {
    /// Whose step.
    pub thread: u32,
    /// What the thread did there.
    pub step: Step,
    /// The cell, if the step has one.
    pub cell: CellId,
    /// What a choice takes, and what a write wrote; what it writes now is left here.
    pub value: i64,
    /// A write writes something else than it did.
    pub changed: bool,
    /// The cell was [`UNBOUND`] and has got its number here.
    pub bound: bool,
}

/// What a thread did, as far as its events tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Read.
    Load,
    /// Wrote.
    Store,
    /// Wrote and waited until that was in memory.
    InterlockedStore,
    /// An atomic.
    Rmw {
        /// Waits for the whole own buffer under PSO too.
        drains_all: bool,
        /// Has it written? One that wrote what it had read may count as one that has not.
        writes: bool,
    },
    /// Acquired a mutex, at last or at once.
    Acquire,
    /// Released a mutex.
    Unlock,
    /// Woke waiters.
    Notify,
    /// Wrote a cell that is written only once.
    Signal,
    /// Found that written.
    Await,
    /// Passed a fence.
    Fence(FenceKind),
    /// Took a value.
    Choose,
    /// Rests there, and does not go on: only the cell gets its number.
    Rest,
    /// Did not wait any longer: see [`System::may_time_out`].
    TimeOut,
}

/// How the specification judges an execution in which every thread has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// It holds.
    Holds,
    /// It assumes something false: no execution.
    Pruned,
    /// It is broken.
    Fails,
}

/// Threads that can be run again and again.
pub trait System {
    /// Back to the beginning: every thread rests at its first pause.
    fn restart(&mut self);

    /// How many threads there are; may grow when a thread is resumed.
    fn threads(&self) -> usize;

    /// How many cells there are from the start.
    fn cells(&self) -> usize;

    /// The initial value of a cell: 0 for mutexes and condition variables.
    fn initial(&self, cell: CellId) -> i64;

    /// Gives a number to the cell that a thread is about to use, which is [`UNBOUND`].
    fn bind(&mut self, _thread: ThreadId, _cell: CellId) {}

    /// Was this number given to a cell since the system was restarted last? Then no other cell can have it.
    fn is_bound(&self, _cell: CellId) -> bool {
        false
    }

    /// What a thread is about to do.
    fn pending(&self, thread: ThreadId) -> Pending;

    /// What the atomic a thread rests at makes of a value.
    fn update(&self, thread: ThreadId, current: i64) -> Update;

    /// May the atomic a thread rests at ever wait ([`Update::Blocks`])?
    fn may_block(&self, _thread: ThreadId) -> bool {
        false
    }

    /// Does the atomic a thread rests at wait, although nobody has used its cell, which is [`UNBOUND`]?
    fn blocks_at_first(&self, _thread: ThreadId) -> bool {
        false
    }

    /// Does the atomic a thread rests at look before it acts? Then it is a plain load wherever it does not write. Where it does,
    /// it finds what it has seen: a look that came earlier would make no difference.
    fn looks(&self, _thread: ThreadId) -> bool {
        false
    }

    /// Lets all this happen again, in this order, as far as the threads do what they did: how many steps that was. The
    /// order is one that SC allows, so a read finds what was written last. A system that does nothing here is asked for
    /// every step by the other functions.
    fn repeat(&mut self, _steps: &mut Vec<Repeated>) -> usize {
        0
    }

    /// Gives the pause of a thread its result and runs the thread to the next one.
    fn resume(&mut self, thread: ThreadId, result: i64);

    /// The pause of a thread is a program error: from now on it is [`Pending::Failed`].
    fn fail(&mut self, thread: ThreadId, misuse: Misuse);

    /// A token for the present state of a thread; `None` if the system cannot go back.
    fn save(&self, _thread: ThreadId) -> Option<Token> {
        None
    }

    /// Puts a thread back to where [`System::save`] was called.
    fn restore(&mut self, _thread: ThreadId, _token: Token) {}

    /// Did the last [`System::resume`] of a thread jump backwards? Only then may it be at the end of a loop's round.
    fn jumped_back(&self, _thread: ThreadId) -> bool {
        false
    }

    /// A store that a thread made earlier has reached memory (on simulated store buffers only).
    fn committed(&mut self, _thread: ThreadId, _cell: CellId) {}

    /// For systems without tokens: which loop's marker the thread has passed since its last event. `Token(0)`: none.
    fn marker(&self, _thread: ThreadId) -> Token {
        Token(0)
    }

    /// How often the thread has passed a marker again since its last event.
    fn idle_passes(&self, _thread: ThreadId) -> u32 {
        0
    }

    /// The marker that the thread, which is about to choose, will pass if it does not choose the first that there is.
    fn place_of_choice(&self, _thread: ThreadId) -> Token {
        Token(0)
    }

    /// Does the thread rest at a wait that may be over after some time, whether what it waits for comes or not? If it is, a
    /// [`Pending::Wait`] is resumed with 1, and an atomic with what is there.
    fn may_time_out(&self, _thread: ThreadId) -> bool {
        false
    }

    /// May the thread rest at a [`Pending::Await`] for ever? Nothing is wrong then.
    fn may_stay(&self, _thread: ThreadId) -> bool {
        false
    }

    /// Has the thread passed the marker because a wait was over after some time?
    fn has_timed_out(&self, _thread: ThreadId) -> bool {
        false
    }

    /// The steps of a thread in this run, counted from 0, before which it may have changed memory that no event tells of.
    /// The number of all its steps stands for the time since the last one.
    fn unseen_changes(&self, _thread: ThreadId) -> Vec<u32> {
        Vec::new()
    }

    /// Some rounds of the loop whose marker the thread has passed are not explored.
    fn leave_rounds_out(&mut self, _thread: ThreadId, _why: LeftOut) {}

    /// The loop whose marker the thread has passed has been found to end by itself.
    fn note_end(&mut self, _thread: ThreadId) {}

    /// Is the loop with this marker known to end by itself, at least sometimes?
    fn is_known_to_end(&self, _marker: Token) -> bool {
        false
    }

    /// Will a thread behave the same from both tokens, bounds on rounds apart?
    fn same_state(&self, _thread: ThreadId, one: Token, other: Token) -> bool {
        one == other
    }

    /// Does a thread that rests here stand inside a critical block?
    fn is_inside(&self, _thread: ThreadId) -> bool {
        false
    }

    /// May any thread ever be inside a critical block?
    fn has_critical(&self) -> bool {
        false
    }

    /// Judges the end of an execution in which every thread has ended. `memory` gives the final value of a cell.
    fn judge(&self, _memory: &dyn Fn(CellId) -> i64) -> Judgement {
        Judgement::Holds
    }
}
