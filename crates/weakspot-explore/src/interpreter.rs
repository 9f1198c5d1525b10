//! A [`Program`] as a [`System`].
//!
//! Every local state a thread reaches is interned once; a step is then a look-up of (state, result), and a [`Token`] is
//! the number of a state. Registers that nobody will read again are set to 0 before a state is interned
//! ([`Liveness`]), so states that behave alike are one state.
//!
//! # Cells
//! Memory locations come first, then mutexes, then condition variables: see [`Cells`].

mod table;

use weakspot_model::ids::{CondvarId, Loc, MutexId, Pc, ThreadId};
use weakspot_model::ir::{Program, RmwOp, Thread};
use weakspot_model::local::{self, Advance, Pause};
use weakspot_model::problem::{Fault, FaultKind, Problem};
use weakspot_model::trace::Cell;

use crate::system::{CellId, Judgement, Misuse, Pending, System, Token, Update};
use table::{Node, Successor, ThreadTable};

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

/// The interpreter.
#[derive(Debug)]
pub struct Interpreter<'p> {
    program: &'p Program,
    cells: Cells,
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
            unroll,
            tokens: true,
            has_critical: program.threads.iter().any(|thread| thread.critical.contains(&true)),
            tables: Vec::new(),
            current: vec![0; program.threads.len()],
            jumped_back: vec![false; program.threads.len()],
        };
        for thread in program.thread_ids() {
            let code = &program.threads[thread.index()];
            let (local, advance) = local::start(code, &program.locations);
            this.tables.push(ThreadTable::new(code, local, unroll.is_some()));
            let first = this.intern(thread, advance);
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
        let fault = self.tables[thread.index()].faults.get(&self.current[thread.index()])?;
        Some(fault.describe(self.program, thread))
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
        self.tables.iter().map(|table| table.bytes() as u64).sum()
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
    #[inline(never)]
    fn discover(&mut self, thread: ThreadId, from: u32, result: i64) -> Successor {
        let table = &mut self.tables[thread.index()];
        table.load(from);
        let code = &self.program.threads[thread.index()];
        let advance = local::resume(code, &self.program.locations, &mut table.running.local, result);
        let jumped_back = matches!(advance, Ok(Advance::Paused { jumped_back: true, .. }));
        let successor = Successor::new(self.intern(thread, advance), jumped_back);
        self.tables[thread.index()].note_successor(from, result, successor);
        successor
    }

    fn misuse_fault(&self, thread: ThreadId, misuse: Misuse) -> Option<FaultKind> {
        match (misuse, self.node(thread).pending) {
            (Misuse::Update(current), Pending::Rmw { cell, .. }) => {
                let op = self.tables[thread.index()].update(self.current[thread.index()]);
                local::rmw(op, current, Loc(cell), &self.program.locations).err()
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

    /// The number of the state that a thread's table is in: this came of running up to it.
    fn intern(&mut self, thread: ThreadId, advance: Result<Advance, Fault>) -> u32 {
        let (mut pending, mut update) = (Pending::Pruned, None);
        match advance {
            Err(fault) => return self.intern_failed(thread, fault),
            Ok(Advance::Pruned) => {}
            Ok(Advance::Paused { pause, jumped_back }) => {
                (pending, update) = self.pending_at(pause);
                if jumped_back && self.exceeds_bound(thread) {
                    pending = Pending::Bounded;
                }
            }
        }
        self.tables[thread.index()].intern(pending, update)
    }

    /// A thread has reached an instruction by a jump backwards once more: is that too often?
    fn exceeds_bound(&mut self, thread: ThreadId) -> bool {
        let Some(bound) = self.unroll else { return false };
        let running = &mut self.tables[thread.index()].running;
        let count = &mut running.rounds[running.local.pc.index()];
        *count += 1;
        *count > bound
    }

    /// The number of a state in which a thread has failed.
    #[cold]
    fn intern_failed(&mut self, thread: ThreadId, fault: Fault) -> u32 {
        let table = &mut self.tables[thread.index()];
        let failed = table.intern_cut_off(Pending::Failed, fault.pc);
        table.faults.insert(failed, fault);
        failed
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
                    self.tables[thread.index()].register(state, register)
                }
                _ => return Ok(Judgement::Holds),
            };
            advance = local::resume(block, &self.program.locations, &mut local, result);
        }
    }
}

impl Drop for Interpreter<'_> {
    fn drop(&mut self) {
        // The first thread takes the table that is left last: it gets its own back.
        self.tables.drain(..).rev().for_each(ThreadTable::leave);
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
        let Pending::Rmw { cell, .. } = self.node(thread).pending else { return Update::Fails };
        let op = self.tables[thread.index()].update(self.current[thread.index()]);
        match local::rmw(op, current, Loc(cell), &self.program.locations) {
            Ok((result, written)) => Update::Acts { result, written },
            Err(_) => Update::Fails,
        }
    }

    #[inline]
    fn resume(&mut self, thread: ThreadId, result: i64) {
        let from = self.current[thread.index()];
        let known = self.tables[thread.index()].successor(from, result);
        let successor = known.unwrap_or_else(|| self.discover(thread, from, result));
        self.current[thread.index()] = successor.target();
        self.jumped_back[thread.index()] = successor.jumped_back();
    }

    fn fail(&mut self, thread: ThreadId, misuse: Misuse) {
        let from = self.current[thread.index()];
        if let Some(&known) = self.tables[thread.index()].failures.get(&(from, misuse)) {
            self.current[thread.index()] = known;
            return;
        }
        let kind = self.misuse_fault(thread, misuse).expect("invariant: the explorer reports real misuse only");
        let pc = self.pc(thread);
        self.tables[thread.index()].load(from);
        let failed = self.intern_failed(thread, Fault { pc, kind });
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
        self.tables[thread.index()].behave_alike(one.0, other.0)
    }

    #[inline]
    fn is_inside(&self, thread: ThreadId) -> bool {
        let node = self.node(thread);
        !matches!(node.pending, Pending::Failed | Pending::Pruned) && self.code(thread).critical[node.pc.index()]
    }

    fn has_critical(&self) -> bool {
        self.has_critical
    }

    fn judge(&self, memory: &dyn Fn(CellId) -> i64) -> Judgement {
        self.run_final(memory).unwrap_or(Judgement::Fails)
    }
}
