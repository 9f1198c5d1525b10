//! A [`Program`] as a [`System`].
//!
//! Every local state a thread reaches is interned once; a step is then a look-up of (state, result), and a [`Token`] is
//! the number of a state. Registers that nobody will read again are set to 0 before a state is interned
//! ([`Liveness`]), so states that behave alike are one state.
//!
//! # Cells
//! Memory locations come first, then mutexes, then condition variables: see [`Cells`].

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use weakspot_model::ids::{CondvarId, Loc, MutexId, Pc, Site, ThreadId};
use weakspot_model::ir::{Program, RmwOp, Thread};
use weakspot_model::liveness::Liveness;
use weakspot_model::local::{self, Advance, LocalState, Pause};
use weakspot_model::problem::{Fault, FaultKind, Problem};
use weakspot_model::trace::Cell;

use crate::system::{CellId, Judgement, Misuse, Pending, System, Token, Update};

/// How memory locations, mutexes and condition variables are numbered as cells.
#[derive(Debug, Clone, Copy)]
pub struct Cells {
    locations: u32,
    mutexes: u32,
    condvars: u32,
}

impl Cells {
    /// The numbering of a program.
    pub fn of(program: &Program) -> Self {
        Self {
            locations: program.locations.len() as u32,
            mutexes: program.mutexes.len() as u32,
            condvars: program.condvars.len() as u32,
        }
    }

    /// How many there are.
    pub fn count(self) -> usize {
        (self.locations + self.mutexes + self.condvars) as usize
    }

    /// The cell of a mutex.
    pub fn mutex(self, mutex: MutexId) -> CellId {
        self.locations + u32::from(mutex.0)
    }

    /// The cell of a condition variable.
    pub fn condvar(self, condvar: CondvarId) -> CellId {
        self.locations + self.mutexes + u32::from(condvar.0)
    }

    /// What a cell stands for.
    pub fn cell(self, cell: CellId) -> Cell {
        if cell < self.locations {
            Cell::Memory(Loc(cell))
        } else if cell < self.locations + self.mutexes {
            Cell::Mutex(MutexId::new((cell - self.locations) as usize))
        } else {
            Cell::Condvar(CondvarId::new((cell - self.locations - self.mutexes) as usize))
        }
    }
}

/// What is known of an interned local state.
#[derive(Debug, Clone, Copy)]
struct Node {
    pending: Pending,
    /// The operation, if it rests at an atomic.
    update: Option<RmwOp<i64>>,
    /// What went wrong, if it has failed.
    fault: Option<Fault>,
    pc: Pc,
    inside: bool,
    /// The same for all states that differ in `rounds` only.
    behaviour: u32,
    /// The successor found first; the others are in [`ThreadTable::successors`].
    first: Option<(i64, Successor)>,
}

/// Where a result leads.
#[derive(Debug, Clone, Copy)]
struct Successor {
    target: u32,
    jumped_back: bool,
}

/// The interned states of one thread.
#[derive(Debug, Default)]
struct ThreadTable {
    nodes: Vec<Node>,
    states: Vec<Interned>,
    /// Known successors by state and result.
    successors: FxHashMap<(u32, i64), Successor>,
    /// The numbers of all states that have not ended otherwise than regularly, by the hash of the state.
    ids: HashTable<u32>,
    /// The first state with these registers, whatever its rounds (only under a bound).
    behaviours: FxHashMap<LocalState, u32>,
    /// Where a misuse leads.
    failures: FxHashMap<(u32, Misuse), u32>,
}

/// A local state, and how often each instruction was reached by a jump backwards (only under a bound).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Interned {
    local: LocalState,
    ended: bool,
    rounds: Box<[u32]>,
}

/// The interpreter.
#[derive(Debug)]
pub struct Interpreter<'p> {
    program: &'p Program,
    cells: Cells,
    liveness: Vec<Liveness>,
    unroll: Option<u32>,
    tokens: bool,
    has_critical: bool,
    tables: Vec<ThreadTable>,
    current: Vec<u32>,
    jumped_back: Vec<bool>,
}

impl<'p> Interpreter<'p> {
    /// The threads of a program, at their first pauses. `unroll` bounds how often a thread may reach an instruction by
    /// a jump backwards.
    pub fn new(program: &'p Program, unroll: Option<u32>) -> Self {
        let mut this = Self {
            program,
            cells: Cells::of(program),
            liveness: program.threads.iter().map(Liveness::of).collect(),
            unroll,
            tokens: true,
            has_critical: program.threads.iter().any(|thread| thread.critical.contains(&true)),
            tables: program.threads.iter().map(|_| ThreadTable::default()).collect(),
            current: vec![0; program.threads.len()],
            jumped_back: vec![false; program.threads.len()],
        };
        for thread in program.thread_ids() {
            let code = &program.threads[thread.index()];
            let (local, advance) = local::start(code, &program.locations);
            let rounds = if unroll.is_some() { vec![0; code.code.len()] } else { Vec::new() };
            let first = this.intern(thread, local, advance, rounds);
            debug_assert_eq!(first, 0, "the first state of a thread has number 0");
        }
        this
    }

    /// The same without tokens, as live code is: the explorer has to run everything again from the start.
    #[must_use]
    pub fn without_tokens(mut self) -> Self {
        self.tokens = false;
        self
    }

    /// The program.
    pub fn program(&self) -> &'p Program {
        self.program
    }

    /// The numbering of its cells.
    pub fn cell_numbering(&self) -> Cells {
        self.cells
    }

    /// What went wrong in a thread that has failed, in words.
    pub fn problem(&self, thread: ThreadId) -> Option<Problem> {
        self.node(thread).fault.map(|fault| fault.describe(self.program, thread))
    }

    /// The instruction a thread rests at.
    pub fn pc(&self, thread: ThreadId) -> Pc {
        self.node(thread).pc
    }

    /// The instruction of a token.
    pub fn pc_of(&self, thread: ThreadId, token: Token) -> Pc {
        self.tables[thread.index()].nodes[token.0 as usize].pc
    }

    /// Roughly how many bytes the tables of local states take.
    pub fn bytes(&self) -> u64 {
        let registers: usize = self.program.threads.iter().map(|thread| thread.registers.len()).max().unwrap_or(0);
        let state = size_of::<Node>() + size_of::<Interned>() + registers * size_of::<i64>() + 2 * size_of::<u32>();
        let successors: usize = self.tables.iter().map(|table| table.successors.capacity()).sum();
        (self.interned() * state + successors * size_of::<((u32, i64), Successor)>()) as u64
    }

    /// How many local states are stored.
    pub fn interned(&self) -> usize {
        self.tables.iter().map(|table| table.nodes.len()).sum()
    }

    #[inline]
    fn node(&self, thread: ThreadId) -> &Node {
        &self.tables[thread.index()].nodes[self.current[thread.index()] as usize]
    }

    fn code(&self, thread: ThreadId) -> &'p Thread {
        &self.program.threads[thread.index()]
    }

    /// The successor that is not known yet.
    #[cold]
    fn discover(&mut self, thread: ThreadId, from: u32, result: i64) -> u32 {
        let state = &self.tables[thread.index()].states[from as usize];
        let (mut local, rounds) = (state.local.clone(), state.rounds.to_vec());
        let advance = local::resume(self.code(thread), &self.program.locations, &mut local, result);
        let jumped_back = matches!(advance, Ok(Advance::Paused { jumped_back: true, .. }));
        let target = self.intern(thread, local, advance, rounds);
        let table = &mut self.tables[thread.index()];
        let successor = Successor { target, jumped_back };
        let first = &mut table.nodes[from as usize].first;
        if first.is_none() {
            *first = Some((result, successor));
        } else {
            table.successors.insert((from, result), successor);
        }
        self.jumped_back[thread.index()] = jumped_back;
        target
    }

    fn misuse_fault(&self, thread: ThreadId, misuse: Misuse) -> Option<FaultKind> {
        let node = self.node(thread);
        match (misuse, node.pending) {
            (Misuse::Update(current), Pending::Rmw { cell, .. }) => {
                local::rmw(node.update?, current, Loc(cell), &self.program.locations).err()
            }
            (Misuse::NotHolding, Pending::Unlock(mutex) | Pending::Wait { mutex, .. }) => {
                match self.cells.cell(mutex) {
                    Cell::Mutex(mutex) => Some(FaultKind::NotHolding { mutex }),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn intern(
        &mut self,
        thread: ThreadId,
        mut local: LocalState,
        advance: Result<Advance, Fault>,
        mut rounds: Vec<u32>,
    ) -> u32 {
        let code = self.code(thread);
        let mut node = Node {
            pending: Pending::Pruned,
            update: None,
            fault: None,
            pc: local.pc,
            inside: false,
            behaviour: 0,
            first: None,
        };
        match advance {
            Err(fault) => {
                node.pending = Pending::Failed;
                node.pc = fault.pc;
                node.fault = Some(fault);
            }
            Ok(Advance::Pruned) => {}
            Ok(Advance::Paused { pause, jumped_back }) => {
                (node.pending, node.update) = self.pending_at(pause);
                node.inside = code.critical[local.pc.index()];
                if jumped_back && let (Some(bound), Some(count)) = (self.unroll, rounds.get_mut(local.pc.index())) {
                    *count += 1;
                    if *count > bound {
                        node.pending = Pending::Bounded;
                    }
                }
                self.liveness[thread.index()].forget_dead(&mut local);
            }
        }
        let ended = node.pending.is_last() && node.pending != Pending::Ended;
        let state = Interned { local, ended, rounds: rounds.into() };
        let table = &mut self.tables[thread.index()];
        let hash = FxBuildHasher.hash_one(&state);
        if !ended && let Some(&id) = table.ids.find(hash, |&id| table.states[id as usize] == state) {
            return id;
        }
        let id = table.nodes.len() as u32;
        node.behaviour = id;
        if self.unroll.is_some() && !ended {
            node.behaviour = *table.behaviours.entry(state.local.clone()).or_insert(id);
        }
        table.nodes.push(node);
        table.states.push(state);
        if !ended {
            let states = &table.states;
            table.ids.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(&states[id as usize]));
        }
        id
    }

    fn pending_at(&self, pause: Pause) -> (Pending, Option<RmwOp<i64>>) {
        let pending = match pause {
            Pause::Load { loc } => Pending::Load(loc.0),
            Pause::Store { loc, value } => Pending::Store { cell: loc.0, value },
            Pause::Rmw { loc, op, drains_all } => return (Pending::Rmw { cell: loc.0, drains_all }, Some(op)),
            Pause::Fence(kind) => Pending::Fence(kind),
            Pause::Lock(mutex) => Pending::Lock(self.cells.mutex(mutex)),
            Pause::Unlock(mutex) => Pending::Unlock(self.cells.mutex(mutex)),
            Pause::Wait { condvar, mutex } => {
                Pending::Wait { condvar: self.cells.condvar(condvar), mutex: self.cells.mutex(mutex) }
            }
            Pause::Notify { condvar, all } => Pending::Notify { condvar: self.cells.condvar(condvar), all },
            Pause::Choose { lo, hi } => Pending::Choose { lo, hi },
            Pause::LeaveCritical => Pending::LeaveCritical,
            Pause::Spin => Pending::Spinning,
            Pause::End | Pause::ThreadRegister { .. } => Pending::Ended,
        };
        (pending, None)
    }

    /// Runs the `final` block; the problem it finds, if any.
    pub fn run_final(&self, memory: &dyn Fn(CellId) -> i64) -> Result<Judgement, Problem> {
        let Some(block) = &self.program.final_block else { return Ok(Judgement::Holds) };
        let (mut local, mut advance) = local::start(block, &self.program.locations);
        loop {
            let pause = match advance {
                Err(fault) => return Err(fault.describe_final(self.program)),
                Ok(Advance::Pruned) => return Ok(Judgement::Pruned),
                Ok(Advance::Paused { pause, .. }) => pause,
            };
            let result = match pause {
                Pause::Load { loc } => memory(loc.0),
                Pause::ThreadRegister { thread, register } => {
                    let state = self.current[thread.index()];
                    self.tables[thread.index()].states[state as usize].local.registers[register.index()]
                }
                _ => return Ok(Judgement::Holds),
            };
            advance = local::resume(block, &self.program.locations, &mut local, result);
        }
    }
}

impl System for Interpreter<'_> {
    fn restart(&mut self) {
        self.current.fill(0);
    }

    fn threads(&self) -> usize {
        self.program.threads.len()
    }

    fn cells(&self) -> usize {
        self.cells.count()
    }

    fn initial(&self, cell: CellId) -> i64 {
        self.program.locations.get(cell as usize).map_or(0, |location| location.init)
    }

    #[inline]
    fn pending(&self, thread: ThreadId) -> Pending {
        self.node(thread).pending
    }

    #[inline]
    fn update(&self, thread: ThreadId, current: i64) -> Update {
        let node = self.node(thread);
        let (Pending::Rmw { cell, .. }, Some(op)) = (node.pending, node.update) else { return Update::Fails };
        match local::rmw(op, current, Loc(cell), &self.program.locations) {
            Ok((result, written)) => Update::Acts { result, written },
            Err(_) => Update::Fails,
        }
    }

    #[inline]
    fn resume(&mut self, thread: ThreadId, result: i64) {
        let from = self.current[thread.index()];
        let table = &self.tables[thread.index()];
        let known = match table.nodes[from as usize].first {
            Some((first, successor)) if first == result => Some(successor),
            _ => table.successors.get(&(from, result)).copied(),
        };
        if let Some(Successor { target, jumped_back }) = known {
            self.current[thread.index()] = target;
            self.jumped_back[thread.index()] = jumped_back;
            return;
        }
        self.current[thread.index()] = self.discover(thread, from, result);
    }

    fn fail(&mut self, thread: ThreadId, misuse: Misuse) {
        let from = self.current[thread.index()];
        if let Some(&known) = self.tables[thread.index()].failures.get(&(from, misuse)) {
            self.current[thread.index()] = known;
            return;
        }
        let kind = self.misuse_fault(thread, misuse).expect("invariant: the explorer reports real misuse only");
        let state = &self.tables[thread.index()].states[from as usize];
        let (local, rounds) = (state.local.clone(), state.rounds.to_vec());
        let fault = Fault { pc: local.pc, kind };
        let failed = self.intern(thread, local, Err(fault), rounds);
        self.tables[thread.index()].failures.insert((from, misuse), failed);
        self.current[thread.index()] = failed;
    }

    #[inline]
    fn save(&self, thread: ThreadId) -> Option<Token> {
        self.tokens.then(|| Token(self.current[thread.index()]))
    }

    #[inline]
    fn restore(&mut self, thread: ThreadId, token: Token) {
        self.current[thread.index()] = token.0;
    }

    #[inline]
    fn jumped_back(&self, thread: ThreadId) -> bool {
        self.jumped_back[thread.index()]
    }

    #[inline]
    fn same_state(&self, thread: ThreadId, one: Token, other: Token) -> bool {
        let nodes = &self.tables[thread.index()].nodes;
        nodes[one.0 as usize].behaviour == nodes[other.0 as usize].behaviour
    }

    #[inline]
    fn is_inside(&self, thread: ThreadId) -> bool {
        self.node(thread).inside
    }

    fn has_critical(&self) -> bool {
        self.has_critical
    }

    fn site(&self, thread: ThreadId) -> Site {
        self.code(thread).sites[self.pc(thread).index()]
    }

    fn judge(&self, memory: &dyn Fn(CellId) -> i64) -> Judgement {
        self.run_final(memory).unwrap_or(Judgement::Fails)
    }
}
