//! What may happen in a symbolic state, and what it does: the reference machine's rules on sets of buffer contents.
//!
//! | paper, Sec. 3 | here |
//! |---|---|
//! | store, load, commit on buffer automata | [`BufferEffect`], performed by [`BufferEffect::perform`] |
//! | transitions enabled in a state | [`System::labels`]: one load for each value it can give, one commit for each first symbol |
//! | independence, rules 1 to 4 | [`Footprint::conflicts`] |
//!
//! # Stores are not delayed (departs from the paper)
//! A buffered store only lengthens the own buffer. It commutes with everything other threads can do (they never see
//! the buffer) and with the own commits (they take from the other end, and a commit that is possible before the store
//! is possible after it). So it is a left mover: in any execution a store that is due can be moved to just behind the
//! thread's previous step, or appended there if the execution ends before it. [`System::settle`] therefore performs
//! due stores as part of the step before them. It stops before a store that would
//! * fail or be pruned by an `assume` (the other executions from here must be kept),
//! * enter or leave a critical block (being inside is what others are checked against),
//! * come back to a local state of the same run (so that a run ends).
//!
//! # Independence
//! Finer than the paper's, and about all words of the state: actions of different threads are dependent only if one
//! writes a memory location the other reads or writes, if both touch mutexes or condition variables, or if both enter
//! or leave a critical block. A load reads memory only if some word of the own buffer has no store to its location. A
//! fence waits for the own buffer alone, so it is nobody else's business (the paper's `sync` empties all buffers).

use std::rc::Rc;

use rustc_hash::FxHashMap;
use weakspot_model::buffer::{MemoryModel, StoreBuffer};
use weakspot_model::ids::{Loc, MutexId, Site, ThreadId};
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::local::{self, Pause};
use weakspot_model::machine::{Action, Machine, Phase, State, ThreadState};

use super::automaton::{Language, Languages, Symbol};
use super::state::{Buffers, Cell, CellId, Cells, Layout};
use crate::threads::{LocalId, Successor, ThreadAutomaton};

/// An action of a symbolic state. Two states of the same cell name the same action by the same label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Label {
    /// A thread performs what it rests at; a load has the value it gives as `result`.
    Step { thread: ThreadId, choice: i64, result: i64 },
    /// The oldest store of a buffer becomes visible; it is this one.
    Commit { thread: ThreadId, symbol: Symbol },
    /// A waiting thread wakes without a notification.
    Wake { thread: ThreadId },
}

impl Label {
    pub(super) fn thread(self) -> ThreadId {
        match self {
            Self::Step { thread, .. } | Self::Commit { thread, .. } | Self::Wake { thread } => thread,
        }
    }
}

/// What an action does to one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum BufferEffect {
    /// A store goes in.
    Append { buffer: usize, symbol: Symbol },
    /// A load gives `value`, which is (`in_memory`) or is not what memory holds.
    Load { buffer: usize, loc: Loc, value: i64, in_memory: bool },
    /// The oldest store goes out.
    Commit { buffer: usize, symbol: Symbol },
    /// The buffer has to be empty.
    Drained { buffer: usize },
}

impl BufferEffect {
    fn buffer(self) -> usize {
        match self {
            Self::Append { buffer, .. }
            | Self::Load { buffer, .. }
            | Self::Commit { buffer, .. }
            | Self::Drained { buffer } => buffer,
        }
    }

    pub(super) fn perform(self, languages: &mut Languages, buffers: &mut [Language]) {
        let (buffer, after) = match self {
            Self::Append { buffer, symbol } => (buffer, languages.append(buffers[buffer], symbol)),
            Self::Load { buffer, loc, value, in_memory } => {
                (buffer, languages.after_load(buffers[buffer], loc, value, in_memory))
            }
            Self::Commit { buffer, symbol } => (buffer, languages.quotient(buffers[buffer], symbol)),
            Self::Drained { buffer } => (buffer, languages.drained(buffers[buffer])),
        };
        buffers[buffer] = after;
    }
}

/// An action that was taken, with all it takes to repeat it on other buffer contents and on the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) label: Label,
    pub(super) effects: Box<[BufferEffect]>,
    /// Stores performed right after it.
    pub(super) stores: usize,
}

impl Move {
    /// The machine's actions, in order.
    pub(super) fn actions(&self, languages: &Languages) -> impl DoubleEndedIterator<Item = Action> + use<> {
        let first = match self.label {
            Label::Step { thread, choice, .. } => Action::Step { thread, choice },
            Label::Commit { thread, symbol } => Action::Commit { thread, loc: languages.store(symbol).0 },
            Label::Wake { thread } => Action::Wake { thread },
        };
        let store = Action::Step { thread: self.label.thread(), choice: 0 };
        std::iter::once(first).chain(std::iter::repeat_n(store, self.stores))
    }
}

/// What came of an action.
pub(super) enum Outcome {
    /// The state after it.
    Next { cell: CellId, buffers: Buffers, taken: Move },
    /// A false `assume`.
    Pruned,
    /// It breaks the specification. `before` are the buffer contents for which it can happen; `error` tells error
    /// states apart.
    Failed { before: Buffers, error: ErrorState },
}

/// An error state as Table 2 counts them: the state two threads are inside in, or the one a thread fails in.
pub(super) type ErrorState = (CellId, Option<ThreadId>);

/// Something this engine cannot represent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unsupported {
    pub(super) thread: ThreadId,
    pub(super) site: Site,
}

/// What an action touches that other threads can see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Footprint {
    reads: Option<Loc>,
    writes: Option<Loc>,
    /// Mutexes and condition variables.
    synchronises: bool,
    /// Enters or leaves a critical block (or may).
    crosses: bool,
}

impl Footprint {
    /// Would it matter in which order the actions happen? (They belong to different threads.)
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let hits =
            |write: Option<Loc>, other: &Self| write.is_some() && (write == other.reads || write == other.writes);
        hits(self.writes, other)
            || hits(other.writes, self)
            || (self.synchronises && other.synchronises)
            || (self.crosses && other.crosses)
    }
}

/// Stores that are performed at once, and where the thread rests then.
type Settled = Rc<(Vec<(Loc, i64)>, LocalId)>;

/// The longest run of stores performed at once.
const LONGEST_RUN: usize = 64;

/// A program under a memory model, on symbolic states.
pub(super) struct System<'p> {
    pub(super) machine: Machine<'p>,
    pub(super) layout: Layout,
    pub(super) languages: Languages,
    pub(super) cells: Cells,
    threads: Vec<ThreadAutomaton<'p>>,
    settled: FxHashMap<(ThreadId, LocalId), Settled>,
}

impl<'p> System<'p> {
    pub(super) fn new(machine: Machine<'p>) -> Self {
        let program = machine.program;
        Self {
            machine,
            layout: Layout::new(program, machine.model),
            languages: Languages::new(),
            cells: Cells::default(),
            threads: program.thread_ids().map(|thread| ThreadAutomaton::new(program, thread)).collect(),
            settled: FxHashMap::default(),
        }
    }

    fn program(&self) -> &'p Program {
        self.machine.program
    }

    /// The initial state and the stores performed to get there, with the buffers they went to. Only for programs that
    /// start without a problem.
    pub(super) fn start(&mut self) -> (CellId, Buffers, Vec<(usize, Action)>) {
        let mut buffers = vec![Language::EMPTY_WORD; self.layout.len()];
        let (mut locals, mut actions) = (Vec::new(), Vec::new());
        for thread in self.program().thread_ids() {
            let Successor::Paused { to, .. } = self.threads[thread.index()].start() else {
                unreachable!("invariant: the machine has started this program without a problem");
            };
            let settled = self.settle(thread, to);
            locals.push(settled.1);
            for effect in self.appended(thread, &settled) {
                effect.perform(&mut self.languages, &mut buffers);
                actions.push((effect.buffer(), Action::Step { thread, choice: 0 }));
            }
        }
        let cell = Cell {
            locals: locals.into(),
            memory: self.program().initial_memory().into(),
            owners: vec![None; self.program().mutexes.len()].into(),
        };
        (self.cells.intern(cell), buffers.into(), actions)
    }

    /// Bytes held by all tables.
    pub(super) fn bytes(&self) -> usize {
        self.languages.bytes() + self.cells.bytes() + self.threads.iter().map(ThreadAutomaton::bytes).sum::<usize>()
    }

    /// Performs the stores that are due at a local state; see the module's head.
    fn settle(&mut self, thread: ThreadId, from: LocalId) -> Settled {
        if let Some(known) = self.settled.get(&(thread, from)) {
            return Rc::clone(known);
        }
        let automaton = &mut self.threads[thread.index()];
        let mut run = vec![from];
        let mut stores = Vec::new();
        let mut here = from;
        while self.layout.model != MemoryModel::Sc && run.len() < LONGEST_RUN {
            let Pause::Store { loc, value } = automaton.pause(here) else { break };
            let Successor::Paused { to, .. } = automaton.resume(here, 0) else { break };
            if automaton.is_inside(to) != automaton.is_inside(here) || run.contains(&to) {
                break;
            }
            stores.push((loc, value));
            run.push(to);
            here = to;
        }
        let settled = Rc::new((stores, here));
        self.settled.insert((thread, from), Rc::clone(&settled));
        settled
    }

    fn appended(&mut self, thread: ThreadId, settled: &Settled) -> Vec<BufferEffect> {
        settled.0.iter().filter_map(|&(loc, value)| self.append(thread, loc, value)).collect()
    }

    /// The effect of a buffered store; `None` under SC.
    fn append(&mut self, thread: ThreadId, loc: Loc, value: i64) -> Option<BufferEffect> {
        let buffer = self.layout.buffer(thread, loc)?;
        Some(BufferEffect::Append { buffer, symbol: self.languages.symbol(loc, value) })
    }

    fn drained(&self, thread: ThreadId) -> Vec<BufferEffect> {
        self.layout.of_thread(thread).map(|buffer| BufferEffect::Drained { buffer }).collect()
    }

    fn can_drain(&self, buffers: &[Language], thread: ThreadId) -> bool {
        self.layout.of_thread(thread).all(|buffer| self.languages.has_empty_word(buffers[buffer]))
    }

    /// Everything that may happen: threads in order, each thread's steps before its commits.
    pub(super) fn labels(&mut self, cell: CellId, buffers: &[Language]) -> Vec<Label> {
        let mut labels = Vec::new();
        for thread in self.program().thread_ids() {
            self.push_steps(cell, buffers, thread, &mut labels);
            for buffer in self.layout.of_thread(thread) {
                let commits = self.languages.first(buffers[buffer]);
                labels.extend(commits.map(|symbol| Label::Commit { thread, symbol }));
            }
        }
        labels
    }

    fn push_steps(&mut self, cell: CellId, buffers: &[Language], thread: ThreadId, labels: &mut Vec<Label>) {
        let (pause, phase) = self.rests_at(cell, thread);
        let free = |mutex: MutexId| self.cells.get(cell).owners[mutex.index()].is_none();
        let step = Label::Step { thread, choice: 0, result: 0 };
        match (phase, pause) {
            (Phase::Waiting(_), _) if self.machine.spurious_wakeups => labels.push(Label::Wake { thread }),
            (Phase::Waiting(_), _) => {}
            (Phase::Reacquiring(mutex), _) => labels.extend(free(mutex).then_some(step)),
            (_, Pause::Load { loc }) => {
                let values = self.loadable(cell, buffers, thread, loc);
                labels.extend(values.into_iter().map(|result| Label::Step { thread, choice: 0, result }));
            }
            (_, Pause::Store { .. } | Pause::LeaveCritical | Pause::Fence(FenceKind::StoreStore)) => labels.push(step),
            (_, Pause::Choose { lo, hi }) => {
                labels.extend((lo..=hi).map(|choice| Label::Step { thread, choice, result: 0 }));
            }
            (_, Pause::Rmw { loc, drains_all: false, .. }) if self.layout.model == MemoryModel::Pso => {
                let buffer = self.layout.buffer(thread, loc).expect("invariant: PSO has buffers");
                labels.extend(self.languages.has_empty_word(buffers[buffer]).then_some(step));
            }
            (_, Pause::Lock(mutex)) => labels.extend((free(mutex) && self.can_drain(buffers, thread)).then_some(step)),
            (_, Pause::Notify { condvar, all: false }) if self.can_drain(buffers, thread) => {
                let waiters = self.waiters(cell, Phase::Waiting(condvar));
                let wakes = |waiter: ThreadId| Label::Step { thread, choice: i64::from(waiter.0), result: 0 };
                if waiters.is_empty() {
                    labels.push(step);
                }
                labels.extend(waiters.into_iter().map(wakes));
            }
            (_, Pause::Rmw { .. } | Pause::Fence(_) | Pause::Unlock(_) | Pause::Wait { .. } | Pause::Notify { .. }) => {
                labels.extend(self.can_drain(buffers, thread).then_some(step));
            }
            (_, Pause::Spin | Pause::End | Pause::ThreadRegister { .. }) => {}
        }
    }

    /// The values a load can give, ascending.
    fn loadable(&mut self, cell: CellId, buffers: &[Language], thread: ThreadId, loc: Loc) -> Vec<i64> {
        let in_memory = self.cells.get(cell).memory[loc.index()];
        let Some(buffer) = self.layout.buffer(thread, loc) else { return vec![in_memory] };
        let last = self.languages.last_stores(buffers[buffer], loc);
        let mut values = last.values.clone();
        if last.absent && !values.contains(&in_memory) {
            values.push(in_memory);
            values.sort_unstable();
        }
        values
    }

    fn rests_at(&self, cell: CellId, thread: ThreadId) -> (Pause, Phase) {
        let local = self.threads[thread.index()].local(self.cells.get(cell).locals[thread.index()]);
        (local.pause, local.phase)
    }

    fn waiters(&self, cell: CellId, phase: Phase) -> Vec<ThreadId> {
        self.program().thread_ids().filter(|&thread| self.rests_at(cell, thread).1 == phase).collect()
    }

    /// What an enabled action touches; see the module's head.
    pub(super) fn footprint(&mut self, cell: CellId, buffers: &[Language], label: Label) -> Footprint {
        let thread = match label {
            Label::Commit { symbol, .. } => {
                return Footprint { writes: Some(self.languages.store(symbol).0), ..Footprint::default() };
            }
            Label::Wake { .. } => return Footprint { synchronises: true, ..Footprint::default() },
            Label::Step { thread, .. } => thread,
        };
        let (pause, phase) = self.rests_at(cell, thread);
        let mut touched = match pause {
            _ if phase != Phase::Running => Footprint { synchronises: true, ..Footprint::default() },
            Pause::Load { loc } => {
                let buffer = self.layout.buffer(thread, loc);
                let reads = buffer.is_none_or(|buffer| self.languages.last_stores(buffers[buffer], loc).absent);
                Footprint { reads: reads.then_some(loc), ..Footprint::default() }
            }
            Pause::Store { loc, .. } if self.layout.model == MemoryModel::Sc => {
                Footprint { writes: Some(loc), ..Footprint::default() }
            }
            Pause::Rmw { loc, .. } => Footprint { reads: Some(loc), writes: Some(loc), ..Footprint::default() },
            Pause::Lock(_) | Pause::Unlock(_) | Pause::Wait { .. } | Pause::Notify { .. } => {
                Footprint { synchronises: true, ..Footprint::default() }
            }
            _ => Footprint::default(),
        };
        touched.crosses = self.may_cross(cell, label, thread);
        touched
    }

    fn may_cross(&mut self, cell: CellId, label: Label, thread: ThreadId) -> bool {
        let Label::Step { choice, result, .. } = label else { return false };
        let (pause, phase) = self.rests_at(cell, thread);
        let value = match pause {
            _ if phase != Phase::Running => return true,
            Pause::Load { .. } => result,
            Pause::Choose { .. } => choice,
            Pause::Rmw { loc, op, .. } => {
                let current = self.cells.get(cell).memory[loc.index()];
                let Ok((value, _)) = local::rmw(op, current, loc, &self.program().locations) else { return true };
                value
            }
            Pause::Wait { .. } => return false,
            _ => 0,
        };
        let from = self.cells.get(cell).locals[thread.index()];
        let automaton = &mut self.threads[thread.index()];
        match automaton.resume(from, value) {
            Successor::Paused { to, .. } => automaton.is_inside(to) != automaton.is_inside(from),
            Successor::Pruned | Successor::Failed(_) => true,
        }
    }

    /// Takes an enabled action.
    pub(super) fn take(&mut self, cell: CellId, buffers: &[Language], label: Label) -> Result<Outcome, Unsupported> {
        let mut work = Work { cell: self.cells.get(cell).clone(), buffers: buffers.into(), effects: Vec::new() };
        let resumed = match label {
            Label::Commit { thread, symbol } => {
                let (loc, value) = self.languages.store(symbol);
                let buffer = self.layout.buffer(thread, loc).expect("invariant: commits come from buffers");
                work.effects.push(BufferEffect::Commit { buffer, symbol });
                work.cell.memory[loc.index()] = value;
                None
            }
            Label::Wake { thread } => {
                self.wake(&mut work.cell, thread);
                None
            }
            Label::Step { thread, choice, result } => match self.perform(&mut work, thread, choice, result)? {
                Performed::Stays => None,
                Performed::Resumes { from, value } => Some((thread, self.threads[thread.index()].resume(from, value))),
                Performed::Fails => {
                    let before = self.performed(&work);
                    return Ok(Outcome::Failed { before, error: (cell, Some(thread)) });
                }
            },
        };
        Ok(match resumed {
            None => self.finish(work, label, 0),
            Some((_, Successor::Pruned)) => Outcome::Pruned,
            Some((thread, Successor::Failed(_))) => {
                let before = self.before_stores(&work, buffers);
                Outcome::Failed { before, error: (cell, Some(thread)) }
            }
            Some((thread, Successor::Paused { to, .. })) => {
                work.cell.locals[thread.index()] = to;
                if self.is_intrusion(&work.cell, thread) {
                    let before = self.before_stores(&work, buffers);
                    return Ok(Outcome::Failed { before, error: (self.cells.intern(work.cell), None) });
                }
                let settled = self.settle(thread, to);
                work.cell.locals[thread.index()] = settled.1;
                let appended = self.appended(thread, &settled);
                let stores = appended.len();
                work.effects.extend(appended);
                self.finish(work, label, stores)
            }
        })
    }

    fn finish(&mut self, work: Work, label: Label, stores: usize) -> Outcome {
        let buffers = self.performed(&work);
        let taken = Move { label, effects: work.effects.into(), stores };
        Outcome::Next { cell: self.cells.intern(work.cell), buffers, taken }
    }

    fn performed(&mut self, work: &Work) -> Buffers {
        let mut buffers = work.buffers.clone();
        for effect in &work.effects {
            effect.perform(&mut self.languages, &mut buffers);
        }
        buffers
    }

    /// The contents of the buffers, before the action, for which it can happen.
    fn before_stores(&mut self, work: &Work, buffers: &[Language]) -> Buffers {
        let mut before: Buffers = buffers.into();
        for effect in work.effects.iter().filter(|effect| !matches!(effect, BufferEffect::Append { .. })) {
            effect.perform(&mut self.languages, &mut before);
        }
        before
    }

    /// Is the thread inside a critical block while another one is?
    fn is_intrusion(&self, cell: &Cell, thread: ThreadId) -> bool {
        let inside = |id: ThreadId| self.threads[id.index()].is_inside(cell.locals[id.index()]);
        inside(thread) && self.program().thread_ids().any(|other| other != thread && inside(other))
    }

    /// Acts on memory, buffers and locks; what the reference machine's `perform` does.
    fn perform(
        &mut self,
        work: &mut Work,
        thread: ThreadId,
        choice: i64,
        result: i64,
    ) -> Result<Performed, Unsupported> {
        let from = work.cell.locals[thread.index()];
        let local = self.threads[thread.index()].local(from);
        let (pause, phase) = (local.pause, local.phase);
        if let Phase::Reacquiring(mutex) = phase {
            work.cell.owners[mutex.index()] = Some(thread);
            let from = self.threads[thread.index()].in_phase(from, Phase::Running);
            return Ok(Performed::Resumes { from, value: 0 });
        }
        let value = match pause {
            Pause::Load { loc } => {
                let in_memory = work.cell.memory[loc.index()] == result;
                let buffer = self.layout.buffer(thread, loc);
                work.effects.extend(buffer.map(|buffer| BufferEffect::Load { buffer, loc, value: result, in_memory }));
                result
            }
            Pause::Store { loc, value } => {
                match self.append(thread, loc, value) {
                    Some(effect) => work.effects.push(effect),
                    None => work.cell.memory[loc.index()] = value,
                }
                0
            }
            Pause::Rmw { loc, op, drains_all } => {
                work.effects = if self.layout.model == MemoryModel::Pso && !drains_all {
                    self.layout.buffer(thread, loc).map(|buffer| BufferEffect::Drained { buffer }).into_iter().collect()
                } else {
                    self.drained(thread)
                };
                let current = work.cell.memory[loc.index()];
                let Ok((value, written)) = local::rmw(op, current, loc, &self.program().locations) else {
                    return Ok(Performed::Fails);
                };
                if let Some(written) = written {
                    work.cell.memory[loc.index()] = written;
                }
                value
            }
            Pause::Fence(FenceKind::StoreStore) => {
                let pending = |buffer: usize| work.buffers[buffer] != Language::EMPTY_WORD;
                if self.layout.model == MemoryModel::Pso && self.layout.of_thread(thread).any(pending) {
                    let pc = self.threads[thread.index()].pc(from);
                    return Err(Unsupported { thread, site: self.program().threads[thread.index()].sites[pc.index()] });
                }
                0
            }
            Pause::Choose { .. } => choice,
            Pause::LeaveCritical => 0,
            _ => {
                work.effects = self.drained(thread);
                return Ok(self.synchronise(work, thread, choice, pause));
            }
        };
        Ok(Performed::Resumes { from, value })
    }

    /// Fences, mutexes and condition variables; the own buffers are empty.
    fn synchronise(&mut self, work: &mut Work, thread: ThreadId, choice: i64, pause: Pause) -> Performed {
        let from = work.cell.locals[thread.index()];
        let owns = |work: &Work, mutex: MutexId| work.cell.owners[mutex.index()] == Some(thread);
        match pause {
            Pause::Lock(mutex) => work.cell.owners[mutex.index()] = Some(thread),
            Pause::Unlock(mutex) | Pause::Wait { mutex, .. } if !owns(work, mutex) => return Performed::Fails,
            Pause::Unlock(mutex) => work.cell.owners[mutex.index()] = None,
            Pause::Wait { condvar, mutex } => {
                work.cell.owners[mutex.index()] = None;
                let asleep = self.threads[thread.index()].in_phase(from, Phase::Waiting(condvar));
                work.cell.locals[thread.index()] = asleep;
                return Performed::Stays;
            }
            Pause::Notify { condvar, all } => {
                for waiter in self.program().thread_ids() {
                    let local = self.threads[waiter.index()].local(work.cell.locals[waiter.index()]);
                    if local.phase == Phase::Waiting(condvar) && (all || i64::from(waiter.0) == choice) {
                        self.wake(&mut work.cell, waiter);
                    }
                }
            }
            _ => {}
        }
        Performed::Resumes { from, value: 0 }
    }

    fn wake(&mut self, cell: &mut Cell, thread: ThreadId) {
        let local = cell.locals[thread.index()];
        let automaton = &mut self.threads[thread.index()];
        let Pause::Wait { mutex, .. } = automaton.pause(local) else {
            unreachable!("invariant: a waiting thread rests at its wait");
        };
        cell.locals[thread.index()] = automaton.in_phase(local, Phase::Reacquiring(mutex));
    }

    /// The machine's state of a cell whose buffers are all empty.
    pub(super) fn concrete(&self, cell: CellId) -> State {
        let cell = self.cells.get(cell);
        let threads = cell.locals.iter().zip(&self.threads).map(|(&local, automaton)| {
            let local = automaton.local(local);
            ThreadState {
                local: local.state.clone(),
                pause: local.pause,
                phase: local.phase,
                buffer: StoreBuffer::new(),
            }
        });
        State { threads: threads.collect(), memory: cell.memory.to_vec(), owners: cell.owners.to_vec() }
    }
}

/// A successor in the making.
struct Work {
    cell: Cell,
    buffers: Buffers,
    effects: Vec<BufferEffect>,
}

/// What became of a thread's step before its local computation.
enum Performed {
    Resumes { from: LocalId, value: i64 },
    Stays,
    Fails,
}
