//! The program every front end produces and every stateful engine reads.
//!
//! A thread is a flat list of three-address instructions over registers. An instruction is either an **event** (the
//! only places where threads switch: load, store, read-modify-write, fence, mutex and condition-variable operations),
//! a **local** instruction (belongs to the event before it), or one of the two **pauses** that are neither:
//! [`Instr::Choose`] (the only nondeterminism inside a thread) and [`Instr::LeaveCritical`].
//!
//! # Why leaving a critical block is a pause
//! Entering and leaving `critical { }` touch no memory. Were both glued to the event before them, nobody could ever
//! be *seen* inside an empty block. So a thread is inside from the event that leads into the block until a step of
//! its own that leaves it; that step is no memory event and never appears in a trace of (po, rf, co).
//!
//! # Deliberately absent
//! No structured statements, no names to resolve, no calls (functions are inlined), no expression trees, no
//! per-model instructions: what a fence means under PSO is the business of [`crate::machine`].

mod display;

use std::sync::Arc;

use crate::ids::{CondvarId, Loc, MutexId, Pc, Reg, Site, ThreadId};
use crate::source::{SiteInfo, SourceFile};

/// A complete program: threads, shared memory, specification and source map.
#[derive(Debug, Clone)]
pub struct Program {
    /// Where it came from.
    pub source: Arc<SourceFile>,
    /// Shared memory cells; the cells of an array are consecutive.
    pub locations: Vec<Location>,
    /// Names of the mutexes.
    pub mutexes: Vec<String>,
    /// Names of the condition variables.
    pub condvars: Vec<String>,
    /// The threads, template instances written out.
    pub threads: Vec<Thread>,
    /// Checked when every thread has ended and every buffer is empty. A pseudo-thread: its loads read memory at once.
    pub final_block: Option<Thread>,
    /// Messages of assertions.
    pub messages: Vec<String>,
    /// The source map.
    pub sites: Vec<SiteInfo>,
}

/// One shared memory cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// `x`, or `a[2]` for a cell of an array.
    pub name: String,
    /// Initial value.
    pub init: i64,
    /// Values that may be stored here, both ends included; anything else is a program error.
    pub range: Option<(i64, i64)>,
}

/// One thread, or the `final` block.
#[derive(Debug, Clone)]
pub struct Thread {
    /// `a`, or `p[1]` for an instance of a template.
    pub name: String,
    /// The template's name, the same for all instances: fences are counted once for each template.
    pub template: String,
    /// `me`: the index in the template, 0 for a single thread.
    pub index: u32,
    /// Registers; all start at 0.
    pub registers: Vec<Register>,
    /// Instructions; execution starts at the first, and the last is [`Instr::End`].
    pub code: Vec<Instr>,
    /// The source place of each instruction.
    pub sites: Vec<Site>,
    /// For each instruction: is a thread that rests here inside a `critical` block?
    pub critical: Vec<bool>,
}

/// A thread-local variable or a temporary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// The variable's name in the source; `None` for temporaries.
    pub name: Option<String>,
    /// Read by the `final` block, so its last value matters even when the thread has ended.
    pub observed: bool,
}

/// A constant or a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A constant.
    Const(i64),
    /// The value of a register.
    Reg(Reg),
}

/// A memory cell as an instruction names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// Always the same cell.
    Fixed(Loc),
    /// Cell `index` of the array that starts at `base`; outside `0..len` is a program error.
    Indexed {
        /// First cell of the array.
        base: Loc,
        /// Number of cells.
        len: u32,
        /// Which cell.
        index: Operand,
    },
}

impl Place {
    /// The operand that picks the cell; a constant where there is nothing to pick.
    fn index(self) -> Operand {
        match self {
            Self::Fixed(_) => Operand::Const(0),
            Self::Indexed { index, .. } => index,
        }
    }
}

/// Kinds of fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FenceKind {
    /// `fence;`: waits until the own buffer is empty.
    Full,
    /// `fence(store_store);`: keeps earlier stores before later ones (matters under PSO only).
    StoreStore,
    /// `fence(store_load);`: as strong as a full fence on these machines.
    StoreLoad,
}

impl FenceKind {
    /// As written in the language and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::StoreStore => "store_store",
            Self::StoreLoad => "store_load",
        }
    }
}

/// Atomic read-modify-write operations; all give the old value except `Cas`, which gives 1 if it swapped, else 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RmwOp<V = Operand> {
    /// `cas(x, old, new)`. Writes nothing when it fails.
    Cas {
        /// Expected value.
        old: V,
        /// New value.
        new: V,
    },
    /// `swap(x, v)`.
    Swap(V),
    /// `fetch_add(x, d)`; overflow is a program error.
    Add(V),
    /// `fetch_or(x, v)`.
    Or(V),
    /// `fetch_and(x, v)`.
    And(V),
    /// Compare-and-exchange that gives the *old value* (x86 `CMPXCHG`); writes nothing when it fails.
    CompareExchange {
        /// Expected value.
        old: V,
        /// New value.
        new: V,
    },
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-a`; overflow is a program error.
    Neg,
    /// `!a`: 1 if `a` is 0, else 0.
    Not,
}

/// Binary operators. `&&` and `||` are branches, not operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the operator of its name")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Instr {
    /// Event: `dst = place`.
    Load {
        /// Where the value goes.
        dst: Reg,
        /// What is read.
        place: Place,
    },
    /// Event: `place = value`.
    Store {
        /// What is written.
        place: Place,
        /// The value.
        value: Operand,
    },
    /// Event: an atomic read-modify-write.
    Rmw {
        /// Where the result goes, if anybody wants it.
        dst: Option<Reg>,
        /// The cell.
        place: Place,
        /// What is done to it.
        op: RmwOp,
        /// Waits for the *whole* own buffer under PSO too (x86 locked instructions), not only for its own location.
        drains_all: bool,
    },
    /// Event: a fence.
    Fence(FenceKind),
    /// Event: acquire a mutex; waits while it is held.
    Lock(MutexId),
    /// Event: release a mutex; a program error if the thread does not hold it.
    Unlock(MutexId),
    /// Event: release the mutex and block; a second event re-acquires it after a notification.
    Wait {
        /// What is waited on.
        condvar: CondvarId,
        /// What is released and re-acquired.
        mutex: MutexId,
    },
    /// Event: wake one waiting thread (any of them) or all.
    Notify {
        /// Whose waiters.
        condvar: CondvarId,
        /// All of them?
        all: bool,
    },
    /// Pause: `dst` becomes any value of `lo..=hi`; an empty range is a program error.
    Choose {
        /// Where the value goes.
        dst: Reg,
        /// Smallest value.
        lo: Operand,
        /// Largest value.
        hi: Operand,
    },
    /// Pause: leave the innermost `critical` block.
    LeaveCritical,
    /// Local: from here on the thread is inside a `critical` block.
    EnterCritical,
    /// Local: `dst = value`.
    Set {
        /// Where the value goes.
        dst: Reg,
        /// The value.
        value: Operand,
    },
    /// Local: `dst = op value`.
    Unary {
        /// Where the value goes.
        dst: Reg,
        /// The operator.
        op: UnaryOp,
        /// Its operand.
        value: Operand,
    },
    /// Local: `dst = left op right`.
    Binary {
        /// Where the value goes.
        dst: Reg,
        /// The operator.
        op: BinaryOp,
        /// Left operand.
        left: Operand,
        /// Right operand.
        right: Operand,
    },
    /// Local: go on at `target`.
    Jump {
        /// Where to.
        target: Pc,
    },
    /// Local: go on at `then` if `cond` is not 0, else at `otherwise`.
    Branch {
        /// The condition.
        cond: Operand,
        /// Taken when it is not 0.
        then: Pc,
        /// Taken when it is 0.
        otherwise: Pc,
    },
    /// Local: a program error if `cond` is 0.
    Assert {
        /// The condition.
        cond: Operand,
        /// Index into [`Program::messages`].
        message: Option<u32>,
    },
    /// Local: an execution in which `cond` is 0 here is not an execution.
    Assume {
        /// The condition.
        cond: Operand,
    },
    /// Local, in the `final` block only: `dst = ` the last value of another thread's register.
    ThreadRegister {
        /// Where the value goes.
        dst: Reg,
        /// Whose register.
        thread: ThreadId,
        /// Which register.
        register: Reg,
    },
    /// The thread has ended (its buffer goes on draining).
    End,
}

impl Instr {
    /// Is this an event in the sense of the language: a place where threads switch?
    pub fn is_event(&self) -> bool {
        matches!(
            self,
            Self::Load { .. }
                | Self::Store { .. }
                | Self::Rmw { .. }
                | Self::Fence(_)
                | Self::Lock(_)
                | Self::Unlock(_)
                | Self::Wait { .. }
                | Self::Notify { .. }
        )
    }

    /// Calls `with` for each constant or register it works with; what it writes to is none of them.
    pub fn for_each_operand(&self, mut with: impl FnMut(Operand)) {
        match *self {
            Self::Load { place, .. } => with(place.index()),
            Self::Store { place, value } => {
                with(place.index());
                with(value);
            }
            Self::Rmw { place, op, .. } => {
                with(place.index());
                match op {
                    RmwOp::Cas { old, new } | RmwOp::CompareExchange { old, new } => {
                        with(old);
                        with(new);
                    }
                    RmwOp::Swap(value) | RmwOp::Add(value) | RmwOp::Or(value) | RmwOp::And(value) => with(value),
                }
            }
            Self::Choose { lo, hi, .. } => {
                with(lo);
                with(hi);
            }
            Self::Set { value, .. } | Self::Unary { value, .. } => with(value),
            Self::Binary { left, right, .. } => {
                with(left);
                with(right);
            }
            Self::Branch { cond, .. } | Self::Assert { cond, .. } | Self::Assume { cond } => with(cond),
            Self::Fence(_)
            | Self::Lock(_)
            | Self::Unlock(_)
            | Self::Wait { .. }
            | Self::Notify { .. }
            | Self::LeaveCritical
            | Self::EnterCritical
            | Self::Jump { .. }
            | Self::ThreadRegister { .. }
            | Self::End => {}
        }
    }
}

impl Program {
    /// The source place of an instruction.
    pub fn site(&self, thread: ThreadId, pc: Pc) -> &SiteInfo {
        &self.sites[self.threads[thread.index()].sites[pc.index()].index()]
    }

    /// All thread ids in order.
    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.threads.len()).map(ThreadId::new)
    }

    /// Does some thread contain an `assume`? Then whether an execution counts shows only at its end.
    pub fn assumes(&self) -> bool {
        let mut code = self.threads.iter().flat_map(|thread| &thread.code);
        code.any(|instr| matches!(instr, Instr::Assume { .. }))
    }

    /// The largest number that stands in the text: a constant, or where a cell begins; without its sign.
    pub fn largest_constant(&self) -> u64 {
        let mut largest = self.locations.iter().map(|location| location.init.unsigned_abs()).max().unwrap_or(0);
        for instr in self.threads.iter().chain(&self.final_block).flat_map(|thread| &thread.code) {
            instr.for_each_operand(|operand| {
                if let Operand::Const(value) = operand {
                    largest = largest.max(value.unsigned_abs());
                }
            });
        }
        largest
    }

    /// Initial memory, one value for each location.
    pub fn initial_memory(&self) -> Vec<i64> {
        self.locations.iter().map(|location| location.init).collect()
    }
}
