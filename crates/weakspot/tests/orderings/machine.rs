//! Every execution of a program on SC, TSO or PSO, by brute force: states are followed one step at a time, and each carries
//! what it has come from. Nothing here is shared with weakspot but the table of orderings in `docs/rust.md`.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use weakspot::MemoryModel;

use crate::outcomes::Outcome;
use crate::program::{CELLS, LOCATIONS, LOCKS, Operation, Program, Step};

/// States after which a program is too large.
const MOST_STATES: usize = 60_000;

/// What each thread knows of each: C11's happens-before.
type Clock = [u8; 3];
/// A write: its thread and the number of its step.
type Write = (usize, usize);

fn join(clock: &mut Clock, other: Clock) {
    for (own, other) in clock.iter_mut().zip(other) {
        *own = (*own).max(other);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Message {
    value: u8,
    write: Option<Write>,
    releases: Clock,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Pending {
    location: usize,
    message: Message,
    /// Store-store fences before it.
    segment: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Thread {
    next: usize,
    last_read: u8,
    reads: Vec<(u8, Option<Write>)>,
    buffer: Vec<Pending>,
    segment: u8,
    clock: Clock,
    /// The clock at the last fence that releases, and what the next one that acquires will bring.
    fenced: Clock,
    unacquired: Clock,
    over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    threads: Vec<Thread>,
    memory: Vec<Message>,
    coherence: Vec<Vec<Write>>,
    holders: Vec<Option<usize>>,
    lock_clocks: Vec<Clock>,
    lock_orders: Vec<Vec<usize>>,
    cell_writes: Vec<Clock>,
    cell_reads: Vec<Clock>,
}

/// Who read what, in which order the writes came, and the locks were taken.
pub type Trace = (Vec<Vec<Option<Write>>>, Vec<Vec<Write>>, Vec<Vec<usize>>);
/// All that can happen.
#[derive(Debug, Default)]
pub struct Everything {
    pub traces: HashSet<Trace>,
    pub outcomes: BTreeSet<Outcome>,
    pub race: bool,
    pub deadlock: bool,
}

enum Next {
    Waits,
    Races,
    State(Box<State>),
}

fn releases(order: Ordering) -> bool {
    matches!(order, Release | AcqRel | SeqCst)
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Acquire | AcqRel | SeqCst)
}

impl State {
    fn new(threads: usize) -> Self {
        // Thread 0 has made everything, which was its first event.
        let made = [1, 0, 0];
        let first = Message { value: 0, write: None, releases: made };
        Self {
            threads: vec![Thread { clock: made, ..Thread::default() }; threads],
            memory: vec![first; LOCATIONS],
            coherence: vec![Vec::new(); LOCATIONS],
            holders: vec![None; LOCKS],
            lock_clocks: vec![[0; 3]; LOCKS],
            lock_orders: vec![Vec::new(); LOCKS],
            cell_writes: vec![made; CELLS],
            cell_reads: vec![[0; 3]; CELLS],
        }
    }

    fn write(&mut self, location: usize, message: Message) {
        self.coherence[location].extend(message.write);
        self.memory[location] = message;
    }

    fn read(&mut self, thread: usize, message: &Message, order: Ordering) {
        let thread = &mut self.threads[thread];
        join(if acquires(order) { &mut thread.clock } else { &mut thread.unacquired }, message.releases);
        thread.last_read = message.value;
        thread.reads.push((message.value, message.write));
    }

    fn released(&self, thread: usize, order: Ordering) -> Clock {
        if releases(order) { self.threads[thread].clock } else { self.threads[thread].fenced }
    }

    fn unlock(&mut self, thread: usize, lock: usize) {
        if self.holders[lock] == Some(thread) {
            self.holders[lock] = None;
            self.lock_clocks[lock] = self.threads[thread].clock;
        }
    }

    fn can_commit(&self, thread: usize, place: usize, model: MemoryModel) -> bool {
        let buffer = &self.threads[thread].buffer;
        let store = &buffer[place];
        let holds_back = |older: &Pending| older.location == store.location || older.segment < store.segment;
        if model == MemoryModel::Pso { !buffer[..place].iter().any(holds_back) } else { place == 0 }
    }

    /// Must an atomic wait? A relaxed one under PSO only for stores to its location; if all that is pending was stored before
    /// the last fence, for that.
    fn must_drain(&self, thread: usize, location: usize, order: Ordering, model: MemoryModel) -> bool {
        let Thread { buffer, segment, .. } = &self.threads[thread];
        let waits_for = |store: &Pending| store.location == location;
        if model == MemoryModel::Pso && order == Relaxed && buffer.iter().any(|store| store.segment == *segment) {
            return buffer.iter().any(waits_for);
        }
        !buffer.is_empty()
    }

    fn outcome(&self) -> Outcome {
        let reads = self.threads.iter().flat_map(|thread| thread.reads.iter().map(|read| read.0));
        reads.chain(self.memory.iter().map(|message| message.value)).collect()
    }

    fn trace(&self) -> Trace {
        let reads = |thread: &Thread| thread.reads.iter().map(|read| read.1).collect();
        (self.threads.iter().map(reads).collect(), self.coherence.clone(), self.lock_orders.clone())
    }

    /// The threads end: nothing is pending, and no lock is held any more.
    fn end(&self, thread: usize) -> Next {
        if self.threads[thread].over || !self.threads[thread].buffer.is_empty() {
            return Next::Waits;
        }
        let mut next = Box::new(self.clone());
        next.threads[thread].over = true;
        for lock in 0..LOCKS {
            next.unlock(thread, lock);
        }
        Next::State(next)
    }

    fn step(&self, program: &Program, thread: usize, model: MemoryModel) -> Next {
        let Thread { next: number, last_read, ref buffer, .. } = self.threads[thread];
        let Some(&Step { only_after, operation }) = program[thread].get(number) else { return self.end(thread) };
        let mut next = Box::new(self.clone());
        next.threads[thread].next += 1;
        if only_after.is_some_and(|value| value != last_read) {
            return Next::State(next);
        }
        next.threads[thread].clock[thread] += 1;
        let write = Some((thread, number));
        match operation {
            Operation::Load(location, order) => {
                let own = buffer.iter().rev().find(|store| store.location == location);
                let message = own.map_or(&self.memory[location], |store| &store.message);
                next.read(thread, message, order);
            }
            Operation::Store(location, value, order) => {
                let message = Message { value, write, releases: next.released(thread, order) };
                if model == MemoryModel::Sc || order == SeqCst {
                    if !buffer.is_empty() {
                        return Next::Waits;
                    }
                    next.write(location, message);
                } else {
                    let thread = &mut next.threads[thread];
                    thread.segment += u8::from(releases(order));
                    thread.buffer.push(Pending { location, message, segment: thread.segment });
                }
            }
            Operation::Swap(location, _, order)
            | Operation::Add(location, _, order)
            | Operation::CompareExchange(location, _, _, order, _) => {
                if self.must_drain(thread, location, order, model) {
                    return Next::Waits;
                }
                next.update(thread, location, order, operation, write);
            }
            Operation::Fence(order) => {
                if order == SeqCst && !buffer.is_empty() {
                    return Next::Waits;
                }
                next.fence(thread, order);
            }
            Operation::ReadCell(cell) | Operation::WriteCell(cell) => {
                if next.races(thread, cell, matches!(operation, Operation::WriteCell(_))) {
                    return Next::Races;
                }
            }
            Operation::Lock(lock) => {
                if !buffer.is_empty() || self.holders[lock].is_some() {
                    return Next::Waits;
                }
                next.holders[lock] = Some(thread);
                next.lock_orders[lock].push(thread);
                join(&mut next.threads[thread].clock, self.lock_clocks[lock]);
            }
            Operation::Unlock(lock) => {
                if !buffer.is_empty() {
                    return Next::Waits;
                }
                next.unlock(thread, lock);
            }
        }
        Next::State(next)
    }

    fn update(&mut self, thread: usize, location: usize, order: Ordering, operation: Operation, write: Option<Write>) {
        let old = self.memory[location].clone();
        let value = match operation {
            Operation::Swap(_, value, _) => value,
            Operation::Add(_, value, _) => old.value + value,
            Operation::CompareExchange(_, expected, value, ..) if old.value == expected => value,
            Operation::CompareExchange(.., failure) => return self.read(thread, &old, failure),
            _ => unreachable!("{operation:?} is no atomic"),
        };
        self.read(thread, &old, order);
        let mut releases = self.released(thread, order);
        join(&mut releases, old.releases);
        self.write(location, Message { value, write, releases });
    }

    fn fence(&mut self, thread: usize, order: Ordering) {
        let thread = &mut self.threads[thread];
        if acquires(order) {
            join(&mut thread.clock, thread.unacquired);
        }
        if releases(order) {
            thread.fenced = thread.clock;
            thread.segment += 1;
        }
    }

    /// An access to plain memory: is it one of a data race?
    fn races(&mut self, thread: usize, cell: usize, writes: bool) -> bool {
        let clock = self.threads[thread].clock;
        let unknown = |seen: Clock| (0..3).any(|other| other != thread && seen[other] > clock[other]);
        let races = unknown(self.cell_writes[cell]) || writes && unknown(self.cell_reads[cell]);
        let accesses = if writes { &mut self.cell_writes } else { &mut self.cell_reads };
        accesses[cell][thread] = clock[thread];
        races
    }

    fn commits(&self, model: MemoryModel) -> Vec<Self> {
        let mut states = Vec::new();
        for thread in 0..self.threads.len() {
            for place in 0..self.threads[thread].buffer.len() {
                if self.can_commit(thread, place, model) {
                    let mut next = self.clone();
                    let store = next.threads[thread].buffer.remove(place);
                    next.write(store.location, store.message);
                    states.push(next);
                }
            }
        }
        states
    }
}

/// Everything that a program can do; nothing if that is too much.
pub fn run(program: &Program, model: MemoryModel) -> Option<Everything> {
    let mut everything = Everything::default();
    let mut seen: HashSet<State> = HashSet::new();
    let mut waiting = vec![State::new(program.len())];
    // Starting threads is an event of thread 0.
    waiting[0].threads[0].clock[0] += 1;
    while let Some(state) = waiting.pop() {
        let mut next = state.commits(model);
        let mut has_raced = false;
        for thread in 0..program.len() {
            match state.step(program, thread, model) {
                Next::Waits => {}
                Next::Races => has_raced = true,
                Next::State(state) => next.push(*state),
            }
        }
        everything.race |= has_raced;
        if next.is_empty() && !has_raced {
            if state.threads.iter().all(|thread| thread.over) {
                everything.traces.insert(state.trace());
                everything.outcomes.insert(state.outcome());
            } else {
                everything.deadlock = true;
            }
        }
        for state in next {
            if seen.insert(state.clone()) {
                waiting.push(state);
            }
        }
        if seen.len() > MOST_STATES {
            return None;
        }
    }
    Some(everything)
}
