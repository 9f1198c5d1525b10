//! Traces: what an execution did to shared memory, without the interleaving it happened in.
//!
//! The representation is Definition 1 of the SOBER paper (Burckhardt, Musuvathi, CAV 2008): every event carries a
//! *coherence index*, the number of the value it wrote or read in the sequence of values of its cell. Index 0 is the
//! initial value, the writes of a cell are numbered 1, 2, …. Program order, reads-from, coherence order and from-read
//! all follow from it, and two executions have the same trace exactly if their [`Trace`]s are equal.
//!
//! | the paper | here |
//! |---|---|
//! | (E1) issue indices of a processor are 1, 2, … | events are listed thread by thread, each in program order |
//! | (E2) the writes of a cell are numbered 1, 2, … | checked by [`Trace::new`] |
//! | (E3) a load reads the initial value or a write | checked by [`Trace::new`] |
//! | `st`, `ld`, `il` | [`Operation::Store`], [`Operation::Load`], everything else that names a cell |
//!
//! What the paper does not have: an atomic that writes nothing (a failed `cas`; its index is that of the value it
//! read), fences as events of their own, and mutexes and condition variables, which are interlocked operations on a
//! [`Cell`] of their own. An atomic that writes reads the value just before its own: a trace cannot say otherwise.
//!
//! # Deliberately absent
//! No order between events of different threads beyond what the indices say, no commits, no local steps.

use std::collections::BTreeMap;
use std::collections::HashMap;

use thiserror::Error;

use crate::ids::{CondvarId, Loc, MutexId, Pc, ThreadId};
use crate::ir::{FenceKind, Instr, Program};
use crate::machine::Effect;

/// An event of a trace: index into [`Trace::events`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u32);

impl EventId {
    /// The id of event `index`.
    pub fn new(index: usize) -> Self {
        Self(index as u32)
    }

    /// The event this id names.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Anything that has a coherence order: memory, and the objects that interlocked operations act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// A memory cell.
    Memory(Loc),
    /// A mutex.
    Mutex(MutexId),
    /// A condition variable.
    Condvar(CondvarId),
}

/// What an event did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Read a memory cell.
    Load {
        /// The cell.
        loc: Loc,
        /// The value read.
        value: i64,
    },
    /// Wrote a memory cell, through the store buffer.
    Store {
        /// The cell.
        loc: Loc,
        /// The value written.
        value: i64,
    },
    /// An atomic read-modify-write.
    Rmw {
        /// The cell.
        loc: Loc,
        /// The value read.
        read: i64,
        /// The value written; `None` for a compare-and-swap that failed.
        written: Option<i64>,
        /// Waits for the whole own buffer under PSO too.
        drains_all: bool,
    },
    /// A fence.
    Fence(FenceKind),
    /// Acquired a mutex, at a `lock` or at the end of a `wait`.
    Lock(MutexId),
    /// Released a mutex, at an `unlock` or at the beginning of a `wait`.
    Unlock(MutexId),
    /// Began to wait. One `wait` is four events: `Wait`, `Unlock`, `Wake` or `Leave`, and `Lock`.
    Wait(CondvarId),
    /// Was woken: reads the notification.
    Wake(CondvarId),
    /// Woke without a notification: leaves the list of waiters, as a notification would have taken it from there.
    Leave(CondvarId),
    /// Notified one waiter or all. If nobody waited, it only looked.
    Notify {
        /// The condition variable.
        condvar: CondvarId,
        /// Did anybody wait?
        wakes: bool,
    },
}

/// The only things the axioms look at in an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A plain read.
    Load(Cell),
    /// A plain write.
    Store(Cell),
    /// An interlocked operation, whether it wrote or not.
    Atomic {
        /// What it acts on.
        cell: Cell,
        /// Waits for the whole own buffer under PSO too.
        drains_all: bool,
    },
    /// A fence.
    Fence(FenceKind),
}

impl Class {
    /// What it acts on; nothing for a fence.
    pub fn cell(self) -> Option<Cell> {
        match self {
            Self::Load(cell) | Self::Store(cell) | Self::Atomic { cell, .. } => Some(cell),
            Self::Fence(_) => None,
        }
    }
}

impl Operation {
    /// As the axioms see it.
    pub fn class(self) -> Class {
        let interlocked = |cell| Class::Atomic { cell, drains_all: true };
        match self {
            Self::Load { loc, .. } => Class::Load(Cell::Memory(loc)),
            Self::Store { loc, .. } => Class::Store(Cell::Memory(loc)),
            Self::Rmw { loc, drains_all, .. } => Class::Atomic { cell: Cell::Memory(loc), drains_all },
            Self::Fence(kind) => Class::Fence(kind),
            Self::Lock(mutex) | Self::Unlock(mutex) => interlocked(Cell::Mutex(mutex)),
            Self::Wait(condvar) | Self::Wake(condvar) | Self::Leave(condvar) | Self::Notify { condvar, .. } => {
                interlocked(Cell::Condvar(condvar))
            }
        }
    }

    /// What it acts on; nothing for a fence.
    pub fn cell(self) -> Option<Cell> {
        self.class().cell()
    }

    /// Does it write its cell? Mutex and condition-variable operations do, except for being woken and for waking nobody.
    pub fn writes(self) -> bool {
        match self {
            Self::Store { .. } | Self::Lock(_) | Self::Unlock(_) => true,
            Self::Wait(_) | Self::Leave(_) => true,
            Self::Notify { wakes, .. } => wakes,
            Self::Rmw { written, .. } => written.is_some(),
            Self::Load { .. } | Self::Wake(_) | Self::Fence(_) => false,
        }
    }

    /// Does it read its cell?
    pub fn reads(self) -> bool {
        !matches!(self, Self::Store { .. } | Self::Fence(_))
    }
}

/// One event: the paper's o(p, i, a, c).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Event {
    /// Whose event.
    pub thread: ThreadId,
    /// The instruction.
    pub pc: Pc,
    /// What it did.
    pub operation: Operation,
    /// For an event that writes, the number of the value it wrote; for one that only reads, of the value it read;
    /// 0 for a fence.
    pub coherence: u32,
}

impl Event {
    /// The number of the value an event that reads has read.
    pub fn read_index(&self) -> Option<u32> {
        self.operation.reads().then(|| self.coherence - u32::from(self.operation.writes()))
    }
}

/// Events that are no trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TraceError {
    /// The events are not listed thread by thread.
    #[error("event {0:?} belongs to an earlier thread than the event before it")]
    ThreadOrder(EventId),
    /// Against (E2).
    #[error("the writes of {0:?} are not numbered 1, 2, … without gaps")]
    WriteIndices(Cell),
    /// Against (E3).
    #[error("event {0:?} reads a value that nobody wrote")]
    UnknownSource(EventId),
}

/// A trace: events, program order, reads-from and coherence order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Trace {
    /// Thread by thread, each in program order.
    events: Vec<Event>,
    /// The writes of each cell in coherence order: entry `i` has coherence index `i + 1`.
    writes: BTreeMap<Cell, Vec<EventId>>,
}

impl Trace {
    /// Takes the events, listed thread by thread, and checks (E2) and (E3).
    pub fn new(events: Vec<Event>) -> Result<Self, TraceError> {
        if let Some(at) = events.windows(2).position(|pair| pair[0].thread > pair[1].thread) {
            return Err(TraceError::ThreadOrder(EventId::new(at + 1)));
        }
        let mut numbered: BTreeMap<Cell, Vec<(u32, EventId)>> = BTreeMap::new();
        for (index, event) in events.iter().enumerate() {
            if let (Some(cell), true) = (event.operation.cell(), event.operation.writes()) {
                numbered.entry(cell).or_default().push((event.coherence, EventId::new(index)));
            }
        }
        let mut writes = BTreeMap::new();
        for (cell, mut of_cell) in numbered {
            of_cell.sort_unstable();
            if of_cell.iter().zip(1..).any(|(&(index, _), expected)| index != expected) {
                return Err(TraceError::WriteIndices(cell));
            }
            writes.insert(cell, of_cell.into_iter().map(|(_, event)| event).collect::<Vec<_>>());
        }
        for (index, event) in events.iter().enumerate() {
            if let (Some(cell), Some(read)) = (event.operation.cell(), event.read_index())
                && read as usize > writes.get(&cell).map_or(0, Vec::len)
            {
                return Err(TraceError::UnknownSource(EventId::new(index)));
            }
        }
        Ok(Self { events, writes })
    }

    /// The events, thread by thread, each in program order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// An event.
    pub fn event(&self, id: EventId) -> &Event {
        &self.events[id.index()]
    }

    /// All ids, in the order of [`Trace::events`].
    pub fn ids(&self) -> impl Iterator<Item = EventId> + use<> {
        (0..self.events.len()).map(EventId::new)
    }

    /// The cells that are written, each with its writes in coherence order.
    pub fn coherence(&self) -> impl Iterator<Item = (Cell, &[EventId])> {
        self.writes.iter().map(|(&cell, writes)| (cell, writes.as_slice()))
    }

    /// The write of a cell that has this coherence index; none for the initial value.
    pub fn write(&self, cell: Cell, index: u32) -> Option<EventId> {
        let before = index.checked_sub(1)?;
        self.writes.get(&cell)?.get(before as usize).copied()
    }

    /// Reads-from: the write an event reads; none if it reads the initial value or does not read.
    pub fn source(&self, id: EventId) -> Option<EventId> {
        let event = self.event(id);
        self.write(event.operation.cell()?, event.read_index()?)
    }

    /// Program order.
    pub fn is_before(&self, earlier: EventId, later: EventId) -> bool {
        earlier < later && self.event(earlier).thread == self.event(later).thread
    }
}

/// Records an execution of the [machine](crate::machine) as a trace.
///
/// Two builders are equal exactly if the executions so far have the same trace and the same pending stores.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TraceBuilder {
    threads: Vec<Vec<Recorded>>,
    /// Writes of each cell that have reached memory, in that order: (thread, index in the thread).
    written: BTreeMap<Cell, Vec<(ThreadId, usize)>>,
    /// Pending stores, oldest first: index in the thread.
    pending: BTreeMap<(ThreadId, Loc), Vec<usize>>,
    /// How far each thread is inside a `wait`.
    sleep: Vec<Sleep>,
}

/// How far a thread is inside a `wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sleep {
    /// Not inside, or awake again.
    Awake,
    /// Is on the list of waiters.
    Asleep(CondvarId),
    /// Was woken by the write of the condition variable with this coherence index.
    Woken(CondvarId, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Recorded {
    pc: Pc,
    operation: Operation,
    source: Source,
}

/// Where a reading event took its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    /// From memory when it held the value of this coherence index.
    Memory(u32),
    /// From the thread's own pending store: index in the thread.
    OwnBuffer(usize),
}

impl TraceBuilder {
    /// Nothing has happened yet.
    pub fn new(threads: usize) -> Self {
        Self {
            threads: vec![Vec::new(); threads],
            written: BTreeMap::new(),
            pending: BTreeMap::new(),
            sleep: vec![Sleep::Awake; threads],
        }
    }

    /// Records what an action of `thread` did; `pc` is where the thread rested before it.
    pub fn record(&mut self, program: &Program, thread: ThreadId, pc: Pc, effect: Effect) {
        match effect {
            Effect::Load { loc, value, forwarded } => {
                let own = if forwarded { self.youngest_pending(thread, loc) } else { None };
                let source = match own {
                    Some(index) => Source::OwnBuffer(index),
                    None => self.memory_source(Cell::Memory(loc)),
                };
                self.push(thread, Recorded { pc, operation: Operation::Load { loc, value }, source });
            }
            Effect::Store { loc, value, buffered } => {
                let operation = Operation::Store { loc, value };
                if buffered {
                    let index = self.push(thread, Recorded { pc, operation, source: Source::Memory(0) });
                    self.pending.entry((thread, loc)).or_default().push(index);
                } else {
                    self.act(thread, pc, operation);
                }
            }
            Effect::Rmw { loc, read, written } => {
                let instr = program.threads[thread.index()].code[pc.index()];
                let drains_all = matches!(instr, Instr::Rmw { drains_all: true, .. });
                self.act(thread, pc, Operation::Rmw { loc, read, written, drains_all });
            }
            Effect::Fence(kind) => {
                let operation = Operation::Fence(kind);
                self.push(thread, Recorded { pc, operation, source: Source::Memory(0) });
            }
            Effect::Lock(mutex) => self.act(thread, pc, Operation::Lock(mutex)),
            Effect::Reacquire { mutex } => {
                if let Sleep::Woken(condvar, by) = std::mem::replace(&mut self.sleep[thread.index()], Sleep::Awake) {
                    let source = Source::Memory(by);
                    self.push(thread, Recorded { pc, operation: Operation::Wake(condvar), source });
                }
                self.act(thread, pc, Operation::Lock(mutex));
            }
            Effect::Unlock(mutex) => self.act(thread, pc, Operation::Unlock(mutex)),
            Effect::Wait { condvar, mutex } => {
                self.act(thread, pc, Operation::Wait(condvar));
                self.act(thread, pc, Operation::Unlock(mutex));
                self.sleep[thread.index()] = Sleep::Asleep(condvar);
            }
            Effect::Notify { condvar, woken, one } => {
                self.act(thread, pc, Operation::Notify { condvar, wakes: woken > 0 });
                if woken > 0 {
                    self.wake(condvar, one);
                }
            }
            Effect::SpuriousWake { condvar } => {
                self.act(thread, pc, Operation::Leave(condvar));
                self.sleep[thread.index()] = Sleep::Awake;
            }
            Effect::Commit { loc, .. } => self.commit(thread, loc),
            Effect::Choose { .. } | Effect::LeaveCritical => {}
        }
    }

    /// How many events of a thread there are so far.
    pub fn events_of(&self, thread: ThreadId) -> usize {
        self.threads[thread.index()].len()
    }

    /// The trace so far. Stores still pending are taken to commit now, thread by thread, in program order.
    pub fn finish(mut self) -> Trace {
        for ((thread, loc), stores) in std::mem::take(&mut self.pending) {
            let written = self.written.entry(Cell::Memory(loc)).or_default();
            written.extend(stores.into_iter().map(|index| (thread, index)));
        }
        let coherence: HashMap<(ThreadId, usize), u32> =
            self.written.values().flat_map(|writes| writes.iter().copied().zip(1..)).collect();
        let mut events = Vec::with_capacity(self.threads.iter().map(Vec::len).sum());
        for (id, recorded) in self.threads.iter().enumerate().map(|(index, thread)| (ThreadId::new(index), thread)) {
            for (index, &Recorded { pc, operation, source }) in recorded.iter().enumerate() {
                let read = match source {
                    Source::Memory(index) => index,
                    Source::OwnBuffer(store) => coherence[&(id, store)],
                };
                let coherence = coherence.get(&(id, index)).copied().unwrap_or(read);
                events.push(Event { thread: id, pc, operation, coherence });
            }
        }
        Trace::new(events).expect("invariant: a recorded execution numbers its writes and reads what was written")
    }

    fn push(&mut self, thread: ThreadId, recorded: Recorded) -> usize {
        let events = &mut self.threads[thread.index()];
        events.push(recorded);
        events.len() - 1
    }

    /// Records an operation that acts on memory at once.
    fn act(&mut self, thread: ThreadId, pc: Pc, operation: Operation) {
        let cell = operation.cell().expect("invariant: only operations on a cell act");
        let source = self.memory_source(cell);
        let index = self.push(thread, Recorded { pc, operation, source });
        if operation.writes() {
            self.written.entry(cell).or_default().push((thread, index));
        }
    }

    /// The last write of a condition variable has woken one of those who wait for it, or all.
    fn wake(&mut self, condvar: CondvarId, one: Option<ThreadId>) {
        let by = self.written.get(&Cell::Condvar(condvar)).map_or(0, Vec::len) as u32;
        for (index, sleep) in self.sleep.iter_mut().enumerate() {
            if *sleep == Sleep::Asleep(condvar) && one.is_none_or(|one| one.index() == index) {
                *sleep = Sleep::Woken(condvar, by);
            }
        }
    }

    fn memory_source(&self, cell: Cell) -> Source {
        Source::Memory(self.written.get(&cell).map_or(0, Vec::len) as u32)
    }

    fn youngest_pending(&self, thread: ThreadId, loc: Loc) -> Option<usize> {
        self.pending.get(&(thread, loc))?.last().copied()
    }

    fn commit(&mut self, thread: ThreadId, loc: Loc) {
        let pending = self.pending.get_mut(&(thread, loc)).expect("invariant: a commit has a pending store");
        let store = pending.remove(0);
        if pending.is_empty() {
            self.pending.remove(&(thread, loc));
        }
        self.written.entry(Cell::Memory(loc)).or_default().push((thread, store));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const X: Loc = Loc(0);

    fn event(thread: u16, operation: Operation, coherence: u32) -> Event {
        Event { thread: ThreadId(thread), pc: Pc(0), operation, coherence }
    }

    fn store(thread: u16, coherence: u32) -> Event {
        event(thread, Operation::Store { loc: X, value: 1 }, coherence)
    }

    #[test]
    fn writes_of_a_cell_are_numbered_without_gaps() {
        assert!(Trace::new(vec![store(0, 2), store(1, 1)]).is_ok());
        let gap = Err(TraceError::WriteIndices(Cell::Memory(X)));
        assert_eq!(Trace::new(vec![store(0, 2), store(1, 2)]), gap);
        assert_eq!(Trace::new(vec![store(0, 0)]), gap);
    }

    #[test]
    fn a_load_reads_something_that_was_written() {
        let load = |coherence| event(1, Operation::Load { loc: X, value: 1 }, coherence);
        let trace = Trace::new(vec![store(0, 1), load(1)]).unwrap();
        assert_eq!(trace.source(EventId(1)), Some(EventId(0)));
        assert_eq!(Trace::new(vec![store(0, 1), load(2)]), Err(TraceError::UnknownSource(EventId(1))));
    }

    #[test]
    fn an_atomic_reads_the_value_before_its_own() {
        let rmw = |written| Operation::Rmw { loc: X, read: 1, written, drains_all: false };
        let trace = Trace::new(vec![store(0, 1), event(1, rmw(Some(2)), 2), event(1, rmw(None), 1)]).unwrap();
        assert_eq!(trace.source(EventId(1)), Some(EventId(0)));
        assert_eq!(trace.source(EventId(2)), Some(EventId(0)));
    }

    #[test]
    fn pending_stores_of_a_recorded_execution_come_last() {
        let program = Program {
            source: crate::source::SourceFile::new("none", ""),
            locations: Vec::new(),
            mutexes: Vec::new(),
            condvars: Vec::new(),
            threads: Vec::new(),
            final_block: None,
            messages: Vec::new(),
            sites: Vec::new(),
        };
        let mut builder = TraceBuilder::new(2);
        let mut record = |thread, effect| builder.record(&program, ThreadId(thread), Pc(0), effect);
        record(0, Effect::Store { loc: X, value: 1, buffered: true });
        record(0, Effect::Load { loc: X, value: 1, forwarded: true });
        record(1, Effect::Store { loc: X, value: 2, buffered: true });
        record(1, Effect::Commit { loc: X, value: 2 });
        let trace = builder.finish();
        assert_eq!(trace.events().iter().map(|e| e.coherence).collect::<Vec<_>>(), [2, 2, 1]);
    }
}
