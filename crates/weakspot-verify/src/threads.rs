//! The automaton of one thread: its local states as small numbers, and where each leads.
//!
//! What a thread does next depends on its program counter and registers alone ([`weakspot_model::local`]). So every
//! local state gets a [`LocalId`] the first time it is met, together with the pause it rests at; and what comes of
//! resuming it with a value is computed once for each pair. Engines then follow numbers instead of running code.
//!
//! Local states are matched after dead registers are set to 0 ([`weakspot_model::liveness`]). The phase of a `wait` is
//! part of a local state here: asleep, notified and running are three different states of the same instruction.
//!
//! Deliberately absent: memory, buffers, other threads. Nothing here knows a memory model.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use weakspot_model::ids::{Pc, ThreadId};
use weakspot_model::ir::{Location, Program, Thread};
use weakspot_model::liveness::Liveness;
use weakspot_model::local::{self, Advance, LocalState, Pause};
use weakspot_model::machine::Phase;
use weakspot_model::problem::Fault;

/// A local state of one thread: index into its [`ThreadAutomaton`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalId(pub u32);

impl LocalId {
    /// The table entry this id names.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What comes of resuming a local state with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Successor {
    /// The thread rests again.
    Paused {
        /// Where.
        to: LocalId,
        /// It jumped backwards on the way. Every cycle of local states has such a step.
        jumped_back: bool,
    },
    /// A false `assume`: not an execution.
    Pruned,
    /// A program error.
    Failed(Fault),
}

/// Everything about one local state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// Program counter and registers, dead ones 0.
    pub state: LocalState,
    /// What it is about to do; a function of `state`.
    pub pause: Pause,
    /// Running, or where in a `wait`.
    pub phase: Phase,
}

/// The local states of one thread met so far.
#[derive(Debug)]
pub struct ThreadAutomaton<'p> {
    code: &'p Thread,
    locations: &'p [Location],
    liveness: Liveness,
    locals: Vec<Local>,
    /// Finds a local state by its content.
    index: HashTable<LocalId>,
    successors: FxHashMap<(LocalId, i64), Successor>,
}

impl<'p> ThreadAutomaton<'p> {
    /// The automaton of a thread of a program; it has no states yet.
    pub fn new(program: &'p Program, thread: ThreadId) -> Self {
        let code = &program.threads[thread.index()];
        Self {
            code,
            locations: &program.locations,
            liveness: Liveness::of(code),
            locals: Vec::new(),
            index: HashTable::new(),
            successors: FxHashMap::default(),
        }
    }

    /// Runs the thread from its first instruction to its first pause.
    pub fn start(&mut self) -> Successor {
        let (state, advance) = local::start(self.code, self.locations);
        self.settle(state, advance)
    }

    /// Resumes a running local state with the result of its pause.
    pub fn resume(&mut self, from: LocalId, result: i64) -> Successor {
        if let Some(&known) = self.successors.get(&(from, result)) {
            return known;
        }
        let mut state = self.locals[from.index()].state.clone();
        let advance = local::resume(self.code, self.locations, &mut state, result);
        let successor = self.settle(state, advance);
        self.successors.insert((from, result), successor);
        successor
    }

    /// The same place in the code, in another phase of its `wait`.
    pub fn in_phase(&mut self, id: LocalId, phase: Phase) -> LocalId {
        let local = Local { phase, ..self.locals[id.index()].clone() };
        self.intern(local)
    }

    /// Finds or adds a local state. Dead registers are forgotten.
    pub fn intern(&mut self, mut local: Local) -> LocalId {
        self.liveness.forget_dead(&mut local.state);
        let locals = &self.locals;
        let hash = hash(&local);
        if let Some(&id) = self.index.find(hash, |id| locals[id.index()] == local) {
            return id;
        }
        let id = LocalId(u32::try_from(self.locals.len()).expect("invariant: memory ends before local states do"));
        self.locals.push(local);
        let locals = &self.locals;
        self.index.insert_unique(hash, id, |id| self::hash(&locals[id.index()]));
        id
    }

    fn settle(&mut self, state: LocalState, advance: Result<Advance, Fault>) -> Successor {
        match advance {
            Err(fault) => Successor::Failed(fault),
            Ok(Advance::Pruned) => Successor::Pruned,
            Ok(Advance::Paused { pause, jumped_back }) => {
                let to = self.intern(Local { state, pause, phase: Phase::Running });
                Successor::Paused { to, jumped_back }
            }
        }
    }

    /// A local state.
    pub fn local(&self, id: LocalId) -> &Local {
        &self.locals[id.index()]
    }

    /// What a local state is about to do.
    pub fn pause(&self, id: LocalId) -> Pause {
        self.locals[id.index()].pause
    }

    /// The instruction a local state rests at.
    pub fn pc(&self, id: LocalId) -> Pc {
        self.locals[id.index()].state.pc
    }

    /// Does it rest inside a `critical` block?
    pub fn is_inside(&self, id: LocalId) -> bool {
        self.code.critical[self.pc(id).index()]
    }

    /// How many local states there are.
    pub fn len(&self) -> usize {
        self.locals.len()
    }

    /// No local state was met yet.
    pub fn is_empty(&self) -> bool {
        self.locals.is_empty()
    }

    /// Bytes held by the tables.
    pub fn bytes(&self) -> usize {
        let registers = self.locals.len() * self.code.registers.len() * size_of::<i64>();
        let pair = size_of::<((LocalId, i64), Successor)>() + 1;
        registers
            + self.locals.capacity() * size_of::<Local>()
            + self.index.capacity() * (size_of::<LocalId>() + 1)
            + self.successors.capacity() * pair
    }
}

/// `Pause` is a function of the state: hashing it would add nothing.
fn hash(local: &Local) -> u64 {
    struct Key<'a>(&'a Local);
    impl Hash for Key<'_> {
        fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
            (&self.0.state, self.0.phase).hash(hasher);
        }
    }
    FxBuildHasher.hash_one(Key(local))
}
