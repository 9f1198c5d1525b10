//! The labelled transition system of the concrete machine, with bounded store buffers.
//!
//! # What is labelled
//! The paper marks each buffered store with the instruction it came from, and prevents a step by an *ordering
//! constraint*, "a fence on all paths between the store and the step" (Sec. 5.2). Here a state knows a little more and the
//! formula becomes exact: each thread remembers which gaps it has run through since its last step. A fence in one of them
//! needs an empty buffer at some moment before the next step, and between two steps the buffer only drains. So
//! `prevent(t)` is the disjunction of these gaps if the buffer is not empty just before `t`, and otherwise nothing prevents
//! `t`. As soon as a buffer is empty the gaps are forgotten: all their fences have had their moment.
//!
//! The program that is explored has a marker in every gap ([`Points::marked`](crate::points::Points::marked)); threads run
//! through markers as part of the local computation after a step.
//!
//! A step that breaks the specification is no edge but an error with its source; gaps behind that step prevent nothing, for
//! the reason given in [`crate::clause`].
//!
//! # Bounds
//! A store waits while the buffer holds `bound` stores. Every path of the graph is a real execution, so the formula is
//! *necessary*: every correct placement satisfies it. If no store ever waited (and no `assume` makes fences matter in
//! other ways) it is also sufficient.
//!
//! No partial-order reduction: orders of independent steps that lead to the same state may differ in what prevents them.
//!
//! Configurations of threads and memories are numbers, as in the explicit engine; a state is a row of numbers.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use weakspot_model::buffer::{MemoryModel, StoreBuffer};
use weakspot_model::ids::{Loc, ThreadId};
use weakspot_model::ir::{FenceKind, Program};
use weakspot_model::local::{self, Pause};
use weakspot_model::machine::{Machine, Phase, Rest, State, ThreadState};
use weakspot_model::problem::ProblemKind;
use weakspot_model::task::{Budget, Limit, Progress};
use weakspot_verify::threads::{LocalId, Successor, ThreadAutomaton};

use super::bdd::{Formula, Formulas};
use super::label::Edges;
use crate::FenceOptions;
use crate::points::{CHOSEN, Rendered};

/// Who holds no mutex.
const NOBODY: i64 = -1;

/// The budget is asked about once in so many states.
const ASK_BUDGET: usize = 4096;

/// A thread with its buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Config {
    local: LocalId,
    /// Gaps run through since the last step, ascending; empty if the buffer is.
    gaps: Vec<usize>,
    buffer: StoreBuffer,
}

/// Numbers for things that are met again and again.
#[derive(Debug)]
struct Interner<T> {
    items: Vec<T>,
    index: HashTable<u32>,
}

impl<T: Eq + Hash> Interner<T> {
    fn new() -> Self {
        Self { items: Vec::new(), index: HashTable::new() }
    }

    fn intern(&mut self, item: T) -> u32 {
        let hash = FxBuildHasher.hash_one(&item);
        if let Some(&known) = self.index.find(hash, |&known| self.items[known as usize] == item) {
            return known;
        }
        let number = u32::try_from(self.items.len()).expect("invariant: memory ends before numbers do");
        self.items.push(item);
        let items = &self.items;
        self.index.insert_unique(hash, number, |&known| FxBuildHasher.hash_one(&items[known as usize]));
        number
    }
}

/// What came of exploring.
pub(crate) struct Explored {
    pub(crate) edges: Edges,
    /// Steps that break the specification: from which state, and what prevents them. A state that breaks it itself (a
    /// deadlock, an end that the `final` block refuses) is one that nothing prevents.
    pub(crate) errors: Vec<(usize, Formula)>,
    /// Did a store have to wait because of the bound?
    pub(crate) is_bounded: bool,
}

/// A program with markers, and the limits of the search.
pub(crate) struct Task<'a> {
    pub(crate) program: &'a Program,
    pub(crate) rendered: &'a Rendered,
    pub(crate) options: &'a FenceOptions,
    /// The most stores a buffer holds.
    pub(crate) bound: usize,
    pub(crate) max_states: usize,
    pub(crate) budget: &'a Budget,
    pub(crate) progress: &'a dyn Progress,
}

/// Explores all states, breadth first; state 0 is the initial one. `None` if there is none: an `assume` is false at the
/// start, or a check fails there, which no fence changes.
pub(crate) fn explore(task: &Task, formulas: &mut Formulas) -> Result<Option<Explored>, Limit> {
    let mut explorer = Explorer::new(task, formulas);
    let Some(initial) = explorer.start() else { return Ok(None) };
    explorer.add(initial);
    while explorer.edges.nodes() < explorer.states.items.len() {
        let expanded = explorer.edges.nodes();
        if expanded.is_multiple_of(ASK_BUDGET) {
            explorer.ask_budget()?;
        }
        if explorer.states.items.len() > task.max_states {
            return Err(Limit::States(task.max_states as u64));
        }
        explorer.expand(expanded);
    }
    let Explorer { edges, errors, is_bounded, .. } = explorer;
    Ok(Some(Explored { edges, errors, is_bounded }))
}

/// A state: the number of its memory, then of each thread's configuration.
type Row = Box<[u32]>;

struct Explorer<'a> {
    task: &'a Task<'a>,
    machine: Machine<'a>,
    formulas: &'a mut Formulas,
    automata: Vec<ThreadAutomaton<'a>>,
    /// For each thread and instruction: the gap whose marker it is.
    markers: Vec<Vec<Option<usize>>>,
    /// Memory, then owners of mutexes.
    memories: Interner<Vec<i64>>,
    configs: Vec<Interner<Config>>,
    /// What prevents a step after these gaps.
    prevents: FxHashMap<Vec<usize>, Formula>,
    states: Interner<Row>,
    edges: Edges,
    errors: Vec<(usize, Formula)>,
    is_bounded: bool,
    /// Edges of the state that is being expanded.
    found: Vec<(u32, Formula)>,
    /// It has a step into a false `assume`: no edge, but no rest either.
    is_pruned: bool,
    transitions: u64,
}

/// Where a thread comes to rest after a step.
enum Settled {
    At { local: LocalId, gaps: Vec<usize> },
    Failed,
    Pruned,
}

/// What changes in a state by a step.
#[derive(Debug, Default)]
struct Change {
    /// A cell of the memory row, and its new value.
    write: Option<(usize, i64)>,
    buffer: Option<StoreBuffer>,
    /// Threads that are woken.
    woken: Vec<usize>,
}

impl<'a> Explorer<'a> {
    fn new(task: &'a Task<'a>, formulas: &'a mut Formulas) -> Self {
        let program = task.program;
        let machine =
            Machine { spurious_wakeups: task.options.spurious_wakeups, ..Machine::new(program, task.options.model) };
        let marker = |thread: ThreadId, pc: usize| {
            let code = &program.threads[thread.index()];
            let at = program.sites[code.sites[pc].index()].span.start as usize;
            let is_choice = matches!(code.code[pc], weakspot_model::ir::Instr::Choose { .. });
            if is_choice { task.rendered.marker(at) } else { None }
        };
        let markers = program
            .thread_ids()
            .map(|id| (0..program.threads[id.index()].code.len()).map(|pc| marker(id, pc)).collect())
            .collect();
        Self {
            task,
            machine,
            formulas,
            automata: program.thread_ids().map(|id| ThreadAutomaton::new(program, id)).collect(),
            markers,
            memories: Interner::new(),
            configs: program.threads.iter().map(|_| Interner::new()).collect(),
            prevents: FxHashMap::default(),
            states: Interner::new(),
            edges: Edges::default(),
            errors: Vec::new(),
            is_bounded: false,
            found: Vec::new(),
            is_pruned: false,
            transitions: 0,
        }
    }

    fn start(&mut self) -> Option<Row> {
        let mut memory = self.task.program.initial_memory();
        memory.extend(self.task.program.mutexes.iter().map(|_| NOBODY));
        let mut row = vec![self.memories.intern(memory)];
        for thread in 0..self.automata.len() {
            let first = self.automata[thread].start();
            let Settled::At { local, .. } = self.run_through_gaps(thread, first) else { return None };
            row.push(self.configs[thread].intern(Config { local, gaps: Vec::new(), buffer: StoreBuffer::new() }));
        }
        Some(row.into())
    }

    fn add(&mut self, row: Row) -> u32 {
        self.states.intern(row)
    }

    fn ask_budget(&self) -> Result<(), Limit> {
        let states = self.states.items.len();
        self.task.progress.update(states as u64, self.transitions, (states - self.edges.nodes()) as u64);
        let rows = states * (size_of::<Row>() + (self.automata.len() + 1) * size_of::<u32>() + 8);
        let automata: usize = self.automata.iter().map(ThreadAutomaton::bytes).sum();
        let used = rows + automata + self.edges.bytes() + self.formulas.bytes();
        self.task.budget.exhausted(used as u64).map_or(Ok(()), Err)
    }

    /// Finds everything that may happen in a state.
    fn expand(&mut self, state: usize) {
        let row = self.states.items[state].clone();
        let errors = self.errors.len();
        self.is_pruned = false;
        for thread in 0..self.automata.len() {
            self.step(state, &row, thread);
            self.commit(&row, thread);
        }
        let is_at_rest = self.found.is_empty() && self.errors.len() == errors && !self.is_pruned;
        if is_at_rest && self.is_bad_rest(&row) {
            self.errors.push((state, Formula::FALSE));
        }
        self.transitions += self.found.len() as u64;
        let found = std::mem::take(&mut self.found);
        self.edges.push_node(found.iter().copied());
        self.found = found;
        self.found.clear();
    }

    fn config(&self, row: &Row, thread: usize) -> &Config {
        &self.configs[thread].items[row[thread + 1] as usize]
    }

    fn memory(&self, row: &Row) -> &[i64] {
        &self.memories.items[row[0] as usize]
    }

    /// Stores of a thread that may become visible.
    fn commit(&mut self, row: &Row, thread: usize) {
        let config = self.config(row, thread).clone();
        let cells: Vec<Loc> = config.buffer.committable(self.task.options.model).collect();
        for loc in cells {
            let mut next = config.clone();
            let value = next.buffer.commit(loc).expect("invariant: only committable stores are committed");
            if next.buffer.is_empty() {
                next.gaps.clear();
            }
            let mut target = row.clone();
            target[0] = self.written(row, loc.index(), value);
            target[thread + 1] = self.configs[thread].intern(next);
            let target = self.add(target);
            self.found.push((target, Formula::FALSE));
        }
    }

    fn written(&mut self, row: &Row, cell: usize, value: i64) -> u32 {
        if self.memory(row)[cell] == value {
            return row[0];
        }
        let mut memory = self.memory(row).to_vec();
        memory[cell] = value;
        self.memories.intern(memory)
    }

    /// The steps of a thread.
    fn step(&mut self, state: usize, row: &Row, thread: usize) {
        let config = self.config(row, thread).clone();
        let local = self.automata[thread].local(config.local);
        let (pause, phase, pc) = (local.pause, local.phase, local.state.pc);
        if self.markers[thread][pc.index()].is_some() {
            return; // runs through gaps for ever
        }
        let prevent = self.prevent(&config);
        match phase {
            Phase::Waiting(_) if self.task.options.spurious_wakeups => {
                let change = Change { woken: vec![thread], ..Change::default() };
                let target = self.changed(row, &change);
                let target = self.add(target);
                self.found.push((target, Formula::FALSE));
            }
            Phase::Waiting(_) => {}
            Phase::Reacquiring(mutex) => {
                let cell = self.owner_cell(mutex.index());
                if self.memory(row)[cell] == NOBODY {
                    let change = Change { write: Some((cell, thread as i64)), ..Change::default() };
                    let running = self.automata[thread].in_phase(config.local, Phase::Running);
                    self.finish(state, row, thread, running, 0, &change, prevent);
                }
            }
            Phase::Running => self.running(state, row, thread, &config, pause, prevent),
        }
    }

    /// A step of a thread that is not inside a `wait`.
    fn running(&mut self, state: usize, row: &Row, thread: usize, config: &Config, pause: Pause, prevent: Formula) {
        let model = self.task.options.model;
        let buffer = &config.buffer;
        let mut change = Change::default();
        let result = match pause {
            Pause::Load { loc } => buffer.forward(loc).unwrap_or(self.memory(row)[loc.index()]),
            Pause::Store { loc, value } if model == MemoryModel::Sc => {
                change.write = Some((loc.index(), value));
                0
            }
            Pause::Store { .. } if buffer.len() >= self.task.bound => {
                self.is_bounded = true;
                return;
            }
            Pause::Store { loc, value } => {
                let mut buffer = buffer.clone();
                buffer.store(model, loc, value);
                change.buffer = Some(buffer);
                0
            }
            Pause::Rmw { loc, drains_all, .. } if self.rmw_waits(buffer, loc, drains_all) => return,
            Pause::Rmw { loc, op, .. } => {
                let read = self.memory(row)[loc.index()];
                let Ok((result, written)) = local::rmw(op, read, loc, &self.task.program.locations) else {
                    self.errors.push((state, prevent));
                    return;
                };
                change.write = written.map(|value| (loc.index(), value));
                result
            }
            Pause::Fence(FenceKind::StoreStore) => {
                let mut buffer = buffer.clone();
                buffer.fence_stores(model);
                change.buffer = Some(buffer);
                0
            }
            Pause::Choose { lo, hi } => {
                for value in lo..=hi {
                    self.finish(state, row, thread, config.local, value, &change, prevent);
                }
                return;
            }
            Pause::LeaveCritical => 0,
            Pause::Spin | Pause::End | Pause::ThreadRegister { .. } => return,
            _ if !buffer.is_empty() => return,
            Pause::Fence(_) => 0,
            Pause::Lock(_) | Pause::Unlock(_) | Pause::Wait { .. } | Pause::Notify { .. } => {
                return self.synchronise(state, row, thread, config.local, pause);
            }
        };
        self.finish(state, row, thread, config.local, result, &change, prevent);
    }

    fn rmw_waits(&self, buffer: &StoreBuffer, loc: Loc, drains_all: bool) -> bool {
        if self.task.options.model == MemoryModel::Pso && !drains_all { buffer.holds(loc) } else { !buffer.is_empty() }
    }

    fn owner_cell(&self, mutex: usize) -> usize {
        self.task.program.locations.len() + mutex
    }

    /// Mutexes and condition variables. The own buffer is empty, so nothing prevents these steps.
    fn synchronise(&mut self, state: usize, row: &Row, thread: usize, local: LocalId, pause: Pause) {
        let mine = thread as i64;
        let mut change = Change::default();
        match pause {
            Pause::Lock(mutex) => {
                let cell = self.owner_cell(mutex.index());
                if self.memory(row)[cell] != NOBODY {
                    return;
                }
                change.write = Some((cell, mine));
            }
            Pause::Unlock(mutex) | Pause::Wait { mutex, .. } => {
                let cell = self.owner_cell(mutex.index());
                if self.memory(row)[cell] != mine {
                    self.errors.push((state, Formula::FALSE));
                    return;
                }
                change.write = Some((cell, NOBODY));
                if let Pause::Wait { condvar, .. } = pause {
                    let asleep = self.automata[thread].in_phase(local, Phase::Waiting(condvar));
                    let mut target = self.changed(row, &change);
                    target[thread + 1] = self.configs[thread].intern(Config {
                        local: asleep,
                        gaps: Vec::new(),
                        buffer: StoreBuffer::new(),
                    });
                    let target = self.add(target);
                    self.found.push((target, Formula::FALSE));
                    return;
                }
            }
            Pause::Notify { condvar, all } => {
                let waits = |other: &usize| {
                    let id = self.config(row, *other).local;
                    self.automata[*other].local(id).phase == Phase::Waiting(condvar)
                };
                let waiters: Vec<usize> = (0..self.automata.len()).filter(waits).collect();
                if !all && waiters.len() > 1 {
                    for waiter in waiters {
                        let change = Change { woken: vec![waiter], ..Change::default() };
                        self.finish(state, row, thread, local, 0, &change, Formula::FALSE);
                    }
                    return;
                }
                change.woken = waiters;
            }
            _ => unreachable!("invariant: only mutexes and condition variables come here"),
        }
        self.finish(state, row, thread, local, 0, &change, Formula::FALSE);
    }

    /// A state after a change, the thread that made it aside.
    fn changed(&mut self, row: &Row, change: &Change) -> Row {
        let mut target = row.clone();
        if let Some((cell, value)) = change.write {
            target[0] = self.written(row, cell, value);
        }
        for &thread in &change.woken {
            let mut config = self.config(row, thread).clone();
            if let Pause::Wait { mutex, .. } = self.automata[thread].pause(config.local) {
                config.local = self.automata[thread].in_phase(config.local, Phase::Reacquiring(mutex));
            }
            target[thread + 1] = self.configs[thread].intern(config);
        }
        target
    }

    /// Lets a thread run on after its step, and adds the edge.
    #[expect(clippy::too_many_arguments, reason = "the parts of one step")]
    fn finish(
        &mut self,
        state: usize,
        row: &Row,
        thread: usize,
        from: LocalId,
        result: i64,
        change: &Change,
        prevent: Formula,
    ) {
        let successor = self.automata[thread].resume(from, result);
        let (local, mut gaps) = match self.run_through_gaps(thread, successor) {
            Settled::At { local, gaps } => (local, gaps),
            Settled::Pruned => {
                self.is_pruned = true;
                return;
            }
            Settled::Failed => {
                self.errors.push((state, prevent));
                return;
            }
        };
        if self.has_intruder(row, thread, local) {
            self.errors.push((state, prevent));
            return;
        }
        let buffer = change.buffer.clone().unwrap_or_else(|| self.config(row, thread).buffer.clone());
        if buffer.is_empty() {
            gaps.clear();
        }
        let mut target = self.changed(row, change);
        target[thread + 1] = self.configs[thread].intern(Config { local, gaps, buffer });
        let target = self.add(target);
        self.found.push((target, prevent));
    }

    /// Would two threads be inside critical blocks?
    fn has_intruder(&self, row: &Row, thread: usize, local: LocalId) -> bool {
        let is_inside = |other: &usize| self.automata[*other].is_inside(self.config(row, *other).local);
        self.automata[thread].is_inside(local)
            && (0..self.automata.len()).filter(|other| *other != thread).any(|other| is_inside(&other))
    }

    /// What prevents the next step of a thread.
    fn prevent(&mut self, config: &Config) -> Formula {
        if config.gaps.is_empty() {
            return Formula::FALSE;
        }
        if let Some(&known) = self.prevents.get(&config.gaps) {
            return known;
        }
        let formula = self.formulas.any(&config.gaps);
        self.prevents.insert(config.gaps.clone(), formula);
        formula
    }

    /// Takes the markers in front of a thread. A thread that meets nothing else for ever is left where it is.
    fn run_through_gaps(&mut self, thread: usize, mut successor: Successor) -> Settled {
        let mut gaps = Vec::new();
        let mut met = FxHashSet::default();
        loop {
            let local = match successor {
                Successor::Paused { to, .. } => to,
                Successor::Pruned => return Settled::Pruned,
                Successor::Failed(_) => return Settled::Failed,
            };
            let pc = self.automata[thread].pc(local);
            match self.markers[thread][pc.index()] {
                Some(gap) if met.insert(local) => gaps.push(gap),
                _ => {
                    gaps.sort_unstable();
                    gaps.dedup();
                    return Settled::At { local, gaps };
                }
            }
            successor = self.automata[thread].resume(local, CHOSEN);
        }
    }

    /// Does a state in which nothing can happen break the specification?
    fn is_bad_rest(&self, row: &Row) -> bool {
        let memory = self.memory(row);
        let (cells, owners) = memory.split_at(self.task.program.locations.len());
        let mut threads = Vec::new();
        for thread in 0..self.automata.len() {
            let config = self.config(row, thread);
            if !config.buffer.is_empty() {
                return false; // a commit is possible
            }
            let local = self.automata[thread].local(config.local);
            let runs_for_ever = self.markers[thread][local.state.pc.index()].is_some();
            let pause = if runs_for_ever { Pause::Spin } else { local.pause };
            let (local, phase) = (local.state.clone(), local.phase);
            threads.push(ThreadState { local, pause, phase, buffer: StoreBuffer::new() });
        }
        let owner = |&owner: &i64| usize::try_from(owner).ok().map(ThreadId::new);
        let state = State { memory: cells.to_vec(), threads, owners: owners.iter().map(owner).collect() };
        match self.machine.rest(&state) {
            Rest::Failed(problem) => !(self.task.options.allow_deadlock && problem.kind == ProblemKind::Deadlock),
            Rest::Finished | Rest::Pruned | Rest::Spinning => false,
        }
    }
}
