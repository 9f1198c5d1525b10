//! Monitors over a stream of records.
//!
//! The memory this takes depends on what is declared (threads, cells, places) and on the pairs that are found, never on
//! the number of events: see [`crate::monitor::streaming`].

use std::collections::BTreeMap;

use thiserror::Error;
use weakspot_model::task::{Budget, Limit};

use super::{Ending, Record, TraceEvent};
use crate::exhaustive::{AnyMonitor, MonitorKind};
use crate::graph::NONE;
use crate::monitor::streaming::Streaming;
use crate::monitor::{Event, Finding, Monitor as _};

/// A party to a finding: a thread, and the place in its code if that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Party {
    /// The number of the thread.
    pub thread: u32,
    /// The number of the place.
    pub place: Option<u32>,
}

/// A pair of accesses that a store buffer turns round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The store that can still be pending.
    pub store: Party,
    /// The access of another thread that happens after it and yet can come first.
    pub access: Party,
    /// The cell of both.
    pub cell: u32,
    /// In how many executions it was found.
    pub executions: u64,
    /// The first of them, counted from 1.
    pub execution: u64,
    /// The event of that execution that is the access, counted from 1.
    pub event: u64,
}

/// What a trace holds.
#[derive(Debug, Clone, Default)]
pub struct Watched {
    /// Executions, the last one perhaps not to its end.
    pub executions: u64,
    /// Events of all of them.
    pub events: u64,
    /// Executions that tripped the monitor.
    pub borderline: u64,
    /// Executions that ran to their end.
    pub complete: u64,
    /// Those that turned out to be none: something assumed is false, or a loop waits for ever.
    pub blocked: u64,
    /// The program assumes something: what a monitor finds may turn out to be no execution.
    pub assumes: bool,
    /// The first execution that broke the specification, and how.
    pub error: Option<(u64, String)>,
    /// Executions that broke the specification.
    pub errors: u64,
    /// By store and access, in the order in which they were found first.
    pub pairs: Vec<Pair>,
}

/// Why watching had to stop.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Stopped {
    /// A limit of the budget.
    #[error("a limit was reached")]
    Limit(Limit),
    /// A thread has more events in one execution than can be counted.
    #[error("an execution has more than {} events of one thread", u32::MAX - 1)]
    TooLong,
}

/// Records between two looks at the clock and at memory.
const RECORDS_BETWEEN_LOOKS: u32 = 1 << 14;

/// A monitor and what it has seen.
#[derive(Debug)]
pub struct Watch<'b> {
    monitor: AnyMonitor,
    budget: &'b Budget,
    /// Threads and cells that are declared.
    declared: (usize, usize),
    /// Threads and cells that the monitor has room for.
    room: (usize, usize),
    /// Events of each thread in this execution.
    indices: Vec<u32>,
    /// What the labels that the monitor gives back stand for.
    parties: Vec<Party>,
    /// The label of each place in each thread; the first is that of no place.
    labels: Vec<Vec<u32>>,
    known: BTreeMap<(u32, u32), usize>,
    /// The execution in which each pair was found last.
    last_found: Vec<u64>,
    /// Events of this execution.
    event: u64,
    tripped: bool,
    until_look: u32,
    watched: Watched,
}

impl<'b> Watch<'b> {
    /// Nothing has been seen.
    pub fn new(kind: MonitorKind, budget: &'b Budget) -> Self {
        Self {
            monitor: AnyMonitor::new(kind, 0, 0),
            budget,
            declared: (0, 0),
            room: (0, 0),
            indices: Vec::new(),
            parties: Vec::new(),
            labels: Vec::new(),
            known: BTreeMap::new(),
            last_found: Vec::new(),
            event: 0,
            tripped: false,
            until_look: RECORDS_BETWEEN_LOOKS,
            watched: Watched::default(),
        }
    }

    /// What has been seen so far.
    pub fn watched(&self) -> &Watched {
        &self.watched
    }

    /// Roughly how many bytes the tables of the monitor take.
    pub fn bytes(&self) -> u64 {
        match &self.monitor {
            AnyMonitor::Sober(monitor) => monitor.bytes(),
            AnyMonitor::Operational(monitor) => monitor.bytes(),
        }
    }

    /// The next record.
    #[inline]
    pub fn accept(&mut self, record: &Record) -> Result<(), Stopped> {
        match record {
            Record::Event(event) => self.event(event)?,
            Record::Thread { .. } => self.declared.0 += 1,
            Record::Cell { .. } => self.declared.1 += 1,
            Record::Assumes => self.watched.assumes = true,
            Record::Begin => self.begin(),
            Record::End(ending) => self.end(ending),
            Record::File { .. } | Record::Place(_) => {}
        }
        self.until_look -= 1;
        if self.until_look == 0 { self.look() } else { Ok(()) }
    }

    fn begin(&mut self) {
        match &mut self.monitor {
            AnyMonitor::Sober(monitor) => monitor.reset(),
            AnyMonitor::Operational(monitor) => monitor.reset(),
        }
        self.indices.fill(0);
        self.event = 0;
        self.tripped = false;
        self.watched.executions += 1;
    }

    fn end(&mut self, ending: &Ending) {
        match ending {
            Ending::Complete => self.watched.complete += 1,
            Ending::Error(message) => {
                self.watched.errors += 1;
                self.watched.error.get_or_insert_with(|| (self.watched.executions, message.clone()));
            }
            Ending::Blocked => self.watched.blocked += 1,
            Ending::Deadlock | Ending::Unfinished => {}
        }
    }

    #[cold]
    fn look(&mut self) -> Result<(), Stopped> {
        self.until_look = RECORDS_BETWEEN_LOOKS;
        let streaming: &mut dyn Streaming = match &mut self.monitor {
            AnyMonitor::Sober(monitor) => monitor,
            AnyMonitor::Operational(monitor) => monitor,
        };
        streaming.forget();
        let bytes = streaming.bytes();
        self.budget.exhausted(bytes).map_or(Ok(()), |limit| Err(Stopped::Limit(limit)))
    }

    /// Makes room for what was declared, twice as much as before so that it is seldom.
    #[cold]
    fn grow(&mut self) -> Result<(), Stopped> {
        let larger = |room: usize, needed: usize| if needed > room { needed.max(2 * room) } else { room };
        let (threads, cells) = (larger(self.room.0, self.declared.0), larger(self.room.1, self.declared.1));
        if let Some(limit) = self.budget.exhausted(clock_bytes(threads, cells)) {
            return Err(Stopped::Limit(limit));
        }
        match &mut self.monitor {
            AnyMonitor::Sober(monitor) => monitor.grow(threads, cells),
            AnyMonitor::Operational(monitor) => monitor.grow(threads, cells),
        }
        self.room = (threads, cells);
        self.indices.resize(threads, 0);
        self.labels.resize(threads, Vec::new());
        Ok(())
    }

    /// The number that stands for a place in a thread.
    #[inline]
    fn label(&mut self, thread: u32, place: Option<u32>) -> u32 {
        let slot = place.map_or(0, |place| place as usize + 1);
        match self.labels[thread as usize].get(slot) {
            Some(&label) if label != NONE => label,
            _ => self.new_label(thread, place, slot),
        }
    }

    #[cold]
    fn new_label(&mut self, thread: u32, place: Option<u32>, slot: usize) -> u32 {
        let labels = &mut self.labels[thread as usize];
        labels.resize(labels.len().max(slot + 1), NONE);
        labels[slot] = self.parties.len() as u32;
        self.parties.push(Party { thread, place });
        labels[slot]
    }

    #[inline]
    fn event(&mut self, event: &TraceEvent) -> Result<(), Stopped> {
        if self.declared.0 > self.room.0 || self.declared.1 > self.room.1 {
            self.grow()?;
        }
        let TraceEvent { thread, happening, place } = *event;
        let label = self.label(thread, place);
        let index = self.indices[thread as usize];
        self.indices[thread as usize] = index.checked_add(1).filter(|&next| next < u32::MAX).ok_or(Stopped::TooLong)?;
        let seen = Event { thread, index, operation: happening.kind.operation(), cell: happening.cell, label };
        let found = match &mut self.monitor {
            AnyMonitor::Sober(monitor) => monitor.observe(&seen),
            AnyMonitor::Operational(monitor) => monitor.observe(&seen),
        };
        self.event += 1;
        self.watched.events += 1;
        if let Some(found) = found {
            self.note(found, happening.cell);
        }
        Ok(())
    }

    #[cold]
    fn note(&mut self, Finding { store, access }: Finding, cell: u32) {
        self.watched.borderline += u64::from(!self.tripped);
        self.tripped = true;
        let execution = self.watched.executions;
        let number = *self.known.entry((store, access)).or_insert_with(|| {
            self.watched.pairs.push(Pair {
                store: self.parties[store as usize],
                access: self.parties[access as usize],
                cell,
                executions: 0,
                execution,
                event: self.event,
            });
            self.last_found.push(0);
            self.last_found.len() - 1
        });
        self.watched.pairs[number].executions += u64::from(self.last_found[number] != execution);
        self.last_found[number] = execution;
    }
}

/// What the clocks of a monitor take, all of them: three tables of happens-before and five of twice the width.
fn clock_bytes(threads: usize, cells: usize) -> u64 {
    let (threads, cells) = (threads as u64, cells as u64);
    4 * threads * (threads * 5 + cells * 8)
}
