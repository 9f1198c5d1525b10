//! Abstract states and their transitions: the reference machine's rules with abstract buffers and values.
//!
//! A state is a row of numbers: one for memory and mutexes ([`Shared`]), and for each thread its local state and its
//! buffer. Everything behind a number is interned, so a transition is a few look-ups and a new row.
//!
//! | Sem. 3 | here |
//! |---|---|
//! | LOAD-G, LOAD-B | [`System::load`] |
//! | STORE-H, STORE-S | [`System::store`], [`super::buffer`] |
//! | FLUSH-… | [`System::commits`], [`super::buffer`] |
//! | FENCE, CAS-T, CAS-F | [`System::is_ready`], [`System::rmw`] |
//! | – (mutexes, condition variables, `choose`, `critical`) | [`System::synchronise`], [`System::advance`] |
//!
//! Whether a buffer, or one location of it, is empty is known exactly in every domain, so a fence waits here exactly when
//! it waits on the machine, and so a deadlock is one here exactly if it is one there.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Loc, MutexId, Pc, ThreadId};
use weakspot_model::ir::{BinaryOp, FenceKind, Program, RmwOp};
use weakspot_model::machine::Phase;
use weakspot_model::problem::{Fault, FaultKind};

use super::AbstractOptions;
use super::arithmetic::{self, Computed};
use super::buffer::{Entry, Forwarded, Rules};
use super::buffers::{BufferId, Buffers, Entries, ValueId, Values};
use super::failure::Failure;
use super::locals::{Locals, Next, Pause};
use super::valuation::Valuation;
use super::value::Value;
use crate::intern::Interner;
use crate::threads::LocalId;

/// What a transition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// The thread performs the instruction it rests at.
    Event {
        /// The instruction.
        pc: Pc,
        /// The value of a `choose`, the thread woken by a `notify_one`; else 0.
        choice: i64,
    },
    /// A buffered store of the thread becomes visible.
    Commit {
        /// Its location.
        loc: Loc,
    },
    /// The thread wakes from a `wait` without a notification.
    Wake,
}

/// The transitions of one state.
#[derive(Debug, Default)]
pub(super) struct Expansion {
    pub(super) transitions: Vec<Transition>,
    /// The rows of the states they lead to, one behind the other.
    pub(super) rows: Vec<u32>,
    /// Something may happen, even if no state comes of it.
    pub(super) enabled: bool,
}

/// A transition of the state that was expanded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transition {
    pub(super) thread: ThreadId,
    pub(super) step: Step,
    /// The failure, or none: then it leads to the next row of [`Expansion::rows`].
    pub(super) failure: Option<Failure>,
}

impl Expansion {
    fn clear(&mut self) {
        self.transitions.clear();
        self.rows.clear();
        self.enabled = false;
    }
}

/// The shared part of a state: the value of each location, then for each mutex 0 or its owner plus one.
type Shared = Box<[u32]>;

/// A step in the making: the state it starts from and what it has changed so far.
#[derive(Clone, Copy)]
struct Work<'a> {
    row: &'a [u32],
    thread: ThreadId,
    step: Step,
    shared: u32,
    buffer: BufferId,
}

/// A program under a memory model, on abstract states.
pub(super) struct System<'p> {
    pub(super) program: &'p Program,
    pub(super) model: MemoryModel,
    spurious_wakeups: bool,
    labelled: bool,
    pub(super) valuation: Rc<Valuation>,
    pub(super) values: Values,
    pub(super) entries: Entries,
    pub(super) buffers: Buffers,
    pub(super) locals: Vec<Locals<'p>>,
    final_block: Option<Locals<'p>>,
    shared: Interner<Shared>,
    updates: FxHashMap<(u32, u32, u32), u32>,
}

/// Where a row keeps the local state of a thread.
pub(super) fn local_at(thread: ThreadId) -> usize {
    1 + 2 * thread.index()
}

/// Where a row keeps the buffer of a thread.
pub(super) fn buffer_at(thread: ThreadId) -> usize {
    2 + 2 * thread.index()
}

impl<'p> System<'p> {
    pub(super) fn new(program: &'p Program, options: &AbstractOptions, labelled: bool) -> Self {
        let valuation = Rc::new(Valuation::new(program, &options.values));
        let locals = |thread: Option<ThreadId>, code| {
            let index = Valuation::thread_index(program, thread);
            Locals::new(code, &program.locations, Rc::clone(&valuation), index)
        };
        let threads = program.thread_ids().zip(&program.threads);
        Self {
            program,
            model: options.model,
            spurious_wakeups: options.spurious_wakeups,
            labelled,
            values: Values::new(),
            entries: Entries::new(),
            buffers: Buffers::new(Rules {
                keeps_exact: labelled,
                ..Rules::new(options.domain, options.model, options.k)
            }),
            locals: threads.map(|(id, code)| locals(Some(id), code)).collect(),
            final_block: program.final_block.as_ref().map(|block| locals(None, block)),
            shared: Interner::new(),
            updates: FxHashMap::default(),
            valuation,
        }
    }

    /// Numbers in a row.
    pub(super) fn width(&self) -> usize {
        1 + 2 * self.program.threads.len()
    }

    /// All initial states (several if values split), and how the start can fail.
    pub(super) fn start(&mut self, out: &mut Expansion) {
        out.clear();
        let mut memories: Vec<Vec<u32>> = vec![Vec::new()];
        for (index, location) in self.program.locations.iter().enumerate() {
            let elements = self.valuation.elements(Loc::new(index), Value::exact(location.init));
            let elements: Vec<u32> = elements.into_iter().map(|value| self.values.intern(value).0).collect();
            let extended = |memory: Vec<u32>| elements.iter().map(move |&value| [&memory[..], &[value]].concat());
            memories = memories.into_iter().flat_map(extended).collect();
        }
        for mut memory in memories {
            memory.extend(std::iter::repeat_n(0, self.program.mutexes.len()));
            let mut row = vec![self.shared.intern(&memory.into())];
            row.resize(self.width(), 0);
            self.start_threads(&row, 0, out);
        }
    }

    fn start_threads(&mut self, row: &[u32], index: usize, out: &mut Expansion) {
        if index == self.program.threads.len() {
            let start = Step::Event { pc: Pc(0), choice: 0 };
            out.transitions.push(Transition { thread: ThreadId::new(0), step: start, failure: None });
            out.rows.extend_from_slice(row);
            return;
        }
        let thread = ThreadId::new(index);
        for next in self.locals[index].start(&mut self.values).iter() {
            match *next {
                Next::Failed(fault) => push_failure(thread, Failure::Fault(thread, fault), out),
                Next::Paused(local) => {
                    let mut row = row.to_vec();
                    row[local_at(thread)] = local.0;
                    match self.intruder(&row, thread, index) {
                        Some(failure) => push_failure(thread, failure, out),
                        None => self.start_threads(&row, index + 1, out),
                    }
                }
            }
        }
    }

    /// If the thread is inside a critical block: another one, of the first `among`, that is, too.
    fn intruder(&self, row: &[u32], thread: ThreadId, among: usize) -> Option<Failure> {
        let local = |id: ThreadId| LocalId(row[local_at(id)]);
        let inside = |id: ThreadId| self.locals[id.index()].is_inside(local(id));
        if !inside(thread) {
            return None;
        }
        let other = (0..among).map(ThreadId::new).find(|&other| other != thread && inside(other))?;
        Some(Failure::Intrusion(thread, self.locals[thread.index()].pc(local(thread)), other))
    }

    /// All transitions of a state: threads in order, each thread's steps before its flushes.
    pub(super) fn expand(&mut self, row: &[u32], out: &mut Expansion) {
        out.clear();
        for thread in self.program.thread_ids() {
            self.steps(row, thread, out);
            self.commits(row, thread, out);
        }
    }

    fn commits(&mut self, row: &[u32], thread: ThreadId, out: &mut Expansion) {
        for commit in self.buffers.commits(BufferId(row[buffer_at(thread)])).iter() {
            let value = self.entries.value(commit.entry);
            let shared = self.write(row[0], commit.loc, value);
            let step = Step::Commit { loc: commit.loc };
            let local = row[local_at(thread)];
            push(Work { row, thread, step, shared, buffer: commit.after }, local, out);
        }
    }

    fn steps(&mut self, row: &[u32], thread: ThreadId, out: &mut Expansion) {
        let id = LocalId(row[local_at(thread)]);
        let locals = &self.locals[thread.index()];
        let (pc, phase, pause) = (locals.pc(id), locals.get(id).phase, locals.pause(id));
        let step = Step::Event { pc, choice: 0 };
        let work = Work { row, thread, step, shared: row[0], buffer: BufferId(row[buffer_at(thread)]) };
        match phase {
            Phase::Waiting(_) if self.spurious_wakeups => {
                let woken = self.woken(thread, id);
                push(Work { step: Step::Wake, ..work }, woken.0, out);
            }
            Phase::Waiting(_) => {}
            Phase::Reacquiring(mutex) => {
                if self.owner(row[0], mutex).is_none() {
                    let shared = self.set_owner(row[0], mutex, Some(thread));
                    let running = self.locals[thread.index()].in_phase(id, Phase::Running, &mut self.values);
                    self.advance(Work { shared, ..work }, running, None, out);
                }
            }
            Phase::Running if !self.is_ready(&work, pause) => {}
            Phase::Running => self.perform(work, id, pause, out),
        }
    }

    /// May the event happen now? (FENCE, CAS and whatever else waits for the own buffer.)
    fn is_ready(&self, work: &Work<'_>, pause: Pause) -> bool {
        let empty = work.buffer == BufferId::EMPTY;
        match pause {
            Pause::Load { .. } | Pause::Store { .. } | Pause::Choose { .. } | Pause::LeaveCritical => true,
            Pause::Fence(FenceKind::StoreStore) => true,
            Pause::Rmw { loc, drains_all: false, .. } if self.model == MemoryModel::Pso => {
                !self.buffers.get(work.buffer).holds(loc)
            }
            Pause::Rmw { .. } | Pause::Fence(_) | Pause::Unlock(_) | Pause::Wait { .. } | Pause::Notify { .. } => empty,
            Pause::Lock(mutex) => empty && self.owner(work.shared, mutex).is_none(),
            Pause::Spin | Pause::End | Pause::ThreadRegister { .. } => false,
        }
    }

    /// Performs an event that is ready.
    fn perform(&mut self, work: Work<'_>, id: LocalId, pause: Pause, out: &mut Expansion) {
        out.enabled = true;
        match pause {
            Pause::Load { loc } => self.load(work, id, loc, out),
            Pause::Store { loc, value } => self.store(work, id, loc, value, out),
            Pause::Rmw { loc, op, .. } => self.rmw(work, id, loc, op, out),
            Pause::Fence(FenceKind::StoreStore) => {
                let buffer = self.buffers.fence_stores(work.buffer);
                self.advance(Work { buffer, ..work }, id, None, out);
            }
            Pause::Choose { lo, hi } => self.choose(work, id, lo, hi, out),
            Pause::Fence(_) | Pause::LeaveCritical => self.advance(work, id, None, out),
            _ => self.synchronise(work, id, pause, out),
        }
    }

    /// LOAD-G and LOAD-B.
    fn load(&mut self, work: Work<'_>, id: LocalId, loc: Loc, out: &mut Expansion) {
        let latest = match self.buffers.forward(work.buffer, loc) {
            Forwarded::Nothing => self.read(work.shared, loc),
            Forwarded::Latest(entry) => self.entries.value(entry),
            Forwarded::AnyOf(set) => {
                let mut found: Vec<ValueId> = set.iter().map(|&entry| self.entries.value(entry)).collect();
                found.sort_unstable();
                found.dedup();
                for value in found {
                    self.advance(work, id, Some(value), out);
                }
                return;
            }
        };
        self.advance(work, id, Some(latest), out);
    }

    /// STORE-H and STORE-S; under SC the value goes to memory. A value that fits no element of its variable's domain
    /// splits.
    fn store(&mut self, work: Work<'_>, id: LocalId, loc: Loc, value: ValueId, out: &mut Expansion) {
        let Step::Event { pc, .. } = work.step else { return };
        for element in self.valuation.elements(loc, self.values.get(value)) {
            let value = self.values.intern(element);
            let after = if self.model == MemoryModel::Sc {
                Work { shared: self.write(work.shared, loc, value), ..work }
            } else {
                let entry: Entry = self.entries.intern(self.labelled.then_some(pc), value);
                Work { buffer: self.buffers.store(work.buffer, loc, entry), ..work }
            };
            self.advance(after, id, None, out);
        }
    }

    /// CAS-T, CAS-F and the other atomics, on abstract values.
    fn rmw(&mut self, work: Work<'_>, id: LocalId, loc: Loc, op: RmwOp<ValueId>, out: &mut Expansion) {
        let current = self.values.get(self.read(work.shared, loc));
        let get = |id: ValueId| self.values.get(id);
        let combined = |op: BinaryOp, with: ValueId| arithmetic::binary(op, current, get(with));
        let plain = |with: ValueId| Computed { value: Some(get(with)), faults: Vec::new() };
        match op {
            RmwOp::Swap(value) => self.write_back(work, id, loc, current, plain(value), out),
            RmwOp::Add(delta) => self.write_back(work, id, loc, current, combined(BinaryOp::Add, delta), out),
            RmwOp::Or(value) => self.write_back(work, id, loc, current, combined(BinaryOp::BitOr, value), out),
            RmwOp::And(value) => self.write_back(work, id, loc, current, combined(BinaryOp::BitAnd, value), out),
            RmwOp::Cas { old, new } | RmwOp::CompareExchange { old, new } => {
                let gives_old = matches!(op, RmwOp::CompareExchange { .. });
                let new = plain(new);
                for case in arithmetic::compare(BinaryOp::Eq, current, get(old)).unwrap_or_default() {
                    let result = if gives_old { case.left } else { Value::exact(i64::from(case.holds)) };
                    if case.holds {
                        self.write_back(work, id, loc, result, new.clone(), out);
                    } else {
                        let result = self.values.intern(result);
                        self.advance(work, id, Some(result), out);
                    }
                }
            }
        }
    }

    /// Writes the result of an atomic to memory, as far as it is no error, and resumes.
    fn write_back(
        &mut self,
        work: Work<'_>,
        id: LocalId,
        loc: Loc,
        result: Value,
        computed: Computed,
        out: &mut Expansion,
    ) {
        let range = self.program.locations[loc.index()].range;
        let within = range.map_or(Some(Value::ANY), |(lo, hi)| Value::between(lo, hi));
        let fits = computed.value.and_then(|value| within.and_then(|within| within.meet(value)));
        let outside = computed.value.filter(|&value| fits != Some(value)).map(|value| {
            let beyond =
                |bound: Option<i64>| bound.filter(|&bound| !within.is_some_and(|within| within.contains(bound)));
            let worst = beyond(value.highest()).or(beyond(value.lowest())).or(value.lowest());
            FaultKind::Range { loc, value: worst.unwrap_or(0) }
        });
        let Step::Event { pc, .. } = work.step else { return };
        for kind in computed.faults.into_iter().chain(outside) {
            let failure = Some(Failure::Fault(work.thread, Fault { pc, kind }));
            out.transitions.push(Transition { thread: work.thread, step: work.step, failure });
        }
        let Some(fits) = fits else { return };
        let result = self.values.intern(result);
        for element in self.valuation.elements(loc, fits) {
            let value = self.values.intern(element);
            let shared = self.write(work.shared, loc, value);
            self.advance(Work { shared, ..work }, id, Some(result), out);
        }
    }

    fn choose(&mut self, work: Work<'_>, id: LocalId, lo: ValueId, hi: ValueId, out: &mut Expansion) {
        let (lo, hi) = (self.values.get(lo), self.values.get(hi));
        let Step::Event { pc, .. } = work.step else { return };
        if let (Some(lo), Some(hi)) = (lo.as_exact(), hi.as_exact()) {
            for choice in lo..=hi {
                let value = self.values.exact(choice);
                self.advance(Work { step: Step::Event { pc, choice }, ..work }, id, Some(value), out);
            }
            return;
        }
        let any = lo.join(hi).above(lo, false).and_then(|any| any.below(hi, false));
        let value = self.values.intern(any.unwrap_or(Value::ANY));
        let choice = lo.highest().or(hi.lowest()).unwrap_or(0);
        self.advance(Work { step: Step::Event { pc, choice }, ..work }, id, Some(value), out);
    }

    /// Mutexes and condition variables; the own buffer is empty.
    fn synchronise(&mut self, work: Work<'_>, id: LocalId, pause: Pause, out: &mut Expansion) {
        let Step::Event { pc, .. } = work.step else { return };
        let thread = work.thread;
        match pause {
            Pause::Lock(mutex) => {
                let shared = self.set_owner(work.shared, mutex, Some(thread));
                self.advance(Work { shared, ..work }, id, None, out);
            }
            Pause::Unlock(mutex) | Pause::Wait { mutex, .. } if self.owner(work.shared, mutex) != Some(thread) => {
                let fault = Fault { pc, kind: FaultKind::NotHolding { mutex } };
                let failure = Some(Failure::Fault(thread, fault));
                out.transitions.push(Transition { thread, step: work.step, failure });
            }
            Pause::Unlock(mutex) => {
                let shared = self.set_owner(work.shared, mutex, None);
                self.advance(Work { shared, ..work }, id, None, out);
            }
            Pause::Wait { condvar, mutex } => {
                let shared = self.set_owner(work.shared, mutex, None);
                let waiting = Phase::Waiting(condvar);
                let asleep = self.locals[thread.index()].in_phase(id, waiting, &mut self.values);
                push(Work { shared, ..work }, asleep.0, out);
            }
            Pause::Notify { condvar, all } => {
                let waits = |&other: &ThreadId| {
                    let local = LocalId(work.row[local_at(other)]);
                    self.locals[other.index()].get(local).phase == Phase::Waiting(condvar)
                };
                let waiters: Vec<ThreadId> = self.program.thread_ids().filter(waits).collect();
                let groups: Vec<&[ThreadId]> =
                    if all || waiters.is_empty() { vec![&waiters[..]] } else { waiters.chunks(1).collect() };
                for group in groups {
                    let choice = if all { 0 } else { group.first().map_or(0, |waiter| i64::from(waiter.0)) };
                    let mut row = work.row.to_vec();
                    for &waiter in group {
                        row[local_at(waiter)] = self.woken(waiter, LocalId(row[local_at(waiter)])).0;
                    }
                    self.advance(Work { row: &row, step: Step::Event { pc, choice }, ..work }, id, None, out);
                }
            }
            _ => {}
        }
    }

    /// A waiting thread's local state after it was woken.
    fn woken(&mut self, thread: ThreadId, id: LocalId) -> LocalId {
        let locals = &mut self.locals[thread.index()];
        let Pause::Wait { mutex, .. } = locals.pause(id) else {
            unreachable!("invariant: a waiting thread rests at its wait");
        };
        locals.in_phase(id, Phase::Reacquiring(mutex), &mut self.values)
    }

    /// Resumes the thread and runs it to its next pause; checks mutual exclusion.
    fn advance(&mut self, work: Work<'_>, from: LocalId, result: Option<ValueId>, out: &mut Expansion) {
        out.enabled = true;
        let thread = work.thread;
        let result = result.unwrap_or_else(|| self.values.exact(0));
        let successors = self.locals[thread.index()].resume(from, result, &mut self.values);
        for next in successors.iter() {
            match *next {
                Next::Failed(fault) => {
                    let failure = Some(Failure::Fault(thread, fault));
                    out.transitions.push(Transition { thread, step: work.step, failure });
                }
                Next::Paused(local) => {
                    push(work, local.0, out);
                    let start = out.rows.len() - work.row.len();
                    if let Some(failure) = self.intruder(&out.rows[start..], thread, self.locals.len()) {
                        out.rows.truncate(start);
                        let last = out.transitions.last_mut().expect("invariant: a transition was just pushed");
                        last.failure = Some(failure);
                    }
                }
            }
        }
    }

    /// Judges a state in which nothing is enabled.
    pub(super) fn rest(&mut self, row: &[u32], allow_deadlock: bool) -> Option<Failure> {
        let pause = |thread: ThreadId| self.locals[thread.index()].pause(LocalId(row[local_at(thread)]));
        let pauses: Vec<Pause> = self.program.thread_ids().map(pause).collect();
        if pauses.iter().all(|pause| *pause == Pause::End) {
            return self.check_final(row);
        }
        let spins = pauses.contains(&Pause::Spin);
        (!spins && !allow_deadlock).then_some(Failure::Deadlock)
    }

    /// Runs the `final` block in all ways; gives the first error.
    fn check_final(&mut self, row: &[u32]) -> Option<Failure> {
        let mut block = self.final_block.take()?;
        let mut waiting: Vec<Next> = block.start(&mut self.values).to_vec();
        let mut failure = None;
        while let Some(next) = waiting.pop() {
            let local = match next {
                Next::Failed(fault) => {
                    failure = Some(Failure::Final(fault));
                    break;
                }
                Next::Paused(local) => local,
            };
            let result = match block.pause(local) {
                Pause::Load { loc } => self.read(row[0], loc),
                Pause::ThreadRegister { thread, register } => {
                    let state = self.locals[thread.index()].get(LocalId(row[local_at(thread)]));
                    state.registers[register.index()]
                }
                _ => continue,
            };
            waiting.extend_from_slice(&block.resume(local, result, &mut self.values));
        }
        self.final_block = Some(block);
        failure
    }

    /// The value of a location.
    pub(super) fn read(&self, shared: u32, loc: Loc) -> ValueId {
        ValueId(self.shared.get(shared)[loc.index()])
    }

    fn write(&mut self, shared: u32, loc: Loc, value: ValueId) -> u32 {
        self.update(shared, loc.0, value.0)
    }

    /// Who holds a mutex.
    pub(super) fn owner(&self, shared: u32, mutex: MutexId) -> Option<ThreadId> {
        let owner = self.shared.get(shared)[self.program.locations.len() + mutex.index()];
        owner.checked_sub(1).map(|thread| ThreadId(thread as u16))
    }

    fn set_owner(&mut self, shared: u32, mutex: MutexId, owner: Option<ThreadId>) -> u32 {
        let at = self.program.locations.len() + mutex.index();
        self.update(shared, at as u32, owner.map_or(0, |thread| u32::from(thread.0) + 1))
    }

    fn update(&mut self, shared: u32, at: u32, value: u32) -> u32 {
        if self.shared.get(shared)[at as usize] == value {
            return shared;
        }
        if let Some(&known) = self.updates.get(&(shared, at, value)) {
            return known;
        }
        let mut updated = self.shared.get(shared).clone();
        updated[at as usize] = value;
        let id = self.shared.intern(&updated);
        self.updates.insert((shared, at, value), id);
        id
    }

    /// Bytes held by all tables, roughly.
    pub(super) fn bytes(&self) -> usize {
        let cells = self.program.locations.len() + self.program.mutexes.len();
        self.buffers.bytes()
            + self.locals.iter().map(Locals::bytes).sum::<usize>()
            + self.shared.len() * (size_of::<Shared>() + cells * size_of::<u32>() + size_of::<u32>())
            + self.updates.capacity() * size_of::<((u32, u32, u32), u32)>()
    }
}

/// The state after a step that leaves the thread in this local state.
fn push(work: Work<'_>, local: u32, out: &mut Expansion) {
    out.enabled = true;
    out.transitions.push(Transition { thread: work.thread, step: work.step, failure: None });
    let start = out.rows.len();
    out.rows.extend_from_slice(work.row);
    let row = &mut out.rows[start..];
    row[0] = work.shared;
    row[local_at(work.thread)] = local;
    row[buffer_at(work.thread)] = work.buffer.0;
}

fn push_failure(thread: ThreadId, failure: Failure, out: &mut Expansion) {
    let step = Step::Event { pc: Pc(0), choice: 0 };
    out.transitions.push(Transition { thread, step, failure: Some(failure) });
}
