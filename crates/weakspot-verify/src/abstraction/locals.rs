//! The automaton of one thread on abstract values: local states as numbers, and where each leads.
//!
//! What [`crate::threads`] is for exact values. While all registers are exact, the language's own functions
//! ([`weakspot_model::local`]) do the computing, so that nothing can differ. Where a register is abstract, a run from one
//! event to the next may split: at a comparison, at an index, at a value that may be out of range. Then there are
//! several successors.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use weakspot_model::ids::{CondvarId, Loc, MutexId, Pc, Reg, ThreadId};
use weakspot_model::ir::{FenceKind, Instr, Location, Operand, Place, RmwOp, Thread};
use weakspot_model::liveness::Liveness;
use weakspot_model::local::{self, Advance, LocalState};
use weakspot_model::machine::Phase;
use weakspot_model::problem::Fault;

use super::buffers::{ValueId, Values};
use super::run::{Configuration, End, Run};
use super::valuation::Valuation;
use super::value::Value;
use crate::intern::Interner;
use crate::threads::LocalId;

/// A local state: program counter, registers, and the phase of a `wait`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Local {
    pub(super) pc: Pc,
    pub(super) phase: Phase,
    /// Dead ones are 0.
    pub(super) registers: Box<[ValueId]>,
}

/// What a thread is about to do; [`local::Pause`] on abstract values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    Load { loc: Loc },
    Store { loc: Loc, value: ValueId },
    Rmw { loc: Loc, op: RmwOp<ValueId>, drains_all: bool },
    Fence(FenceKind),
    Lock(MutexId),
    Unlock(MutexId),
    Wait { condvar: CondvarId, mutex: MutexId },
    Notify { condvar: CondvarId, all: bool },
    Choose { lo: ValueId, hi: ValueId },
    LeaveCritical,
    ThreadRegister { thread: ThreadId, register: Reg },
    Spin,
    End,
}

/// What can come of resuming a local state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It rests here.
    Paused(LocalId),
    /// A program error.
    Failed(Fault),
}

/// What comes of running to the next pause. Runs that an `assume` ends leave nothing.
pub(super) type Successors = Rc<[Next]>;

/// The local states of one thread (or of the `final` block) met so far.
#[derive(Debug)]
pub(super) struct Locals<'p> {
    code: &'p Thread,
    locations: &'p [Location],
    liveness: Liveness,
    valuation: Rc<Valuation>,
    /// Its index in the valuation.
    thread: usize,
    states: Interner<Local>,
    pauses: Vec<Pause>,
    successors: FxHashMap<(LocalId, ValueId), Successors>,
}

impl<'p> Locals<'p> {
    pub(super) fn new(code: &'p Thread, locations: &'p [Location], valuation: Rc<Valuation>, thread: usize) -> Self {
        Self {
            code,
            locations,
            liveness: Liveness::of(code),
            valuation,
            thread,
            states: Interner::new(),
            pauses: Vec::new(),
            successors: FxHashMap::default(),
        }
    }

    /// Runs from the first instruction to the first pause.
    pub(super) fn start(&mut self, values: &mut Values) -> Successors {
        let (local, advance) = local::start(self.code, self.locations);
        let ends = ends_of(local, advance);
        self.settle_all(ends, values)
    }

    /// Resumes a running local state with the result of its pause.
    pub(super) fn resume(&mut self, from: LocalId, result: ValueId, values: &mut Values) -> Successors {
        if let Some(known) = self.successors.get(&(from, result)) {
            return Rc::clone(known);
        }
        let registers: Vec<Value> = self.get(from).registers.iter().map(|&id| values.get(id)).collect();
        let ends = self.run(self.pc(from), registers, values.get(result));
        let successors = self.settle_all(ends, values);
        self.successors.insert((from, result), Rc::clone(&successors));
        successors
    }

    /// Runs to the next pause, by the language's own functions if everything is exact.
    fn run(&self, pc: Pc, mut registers: Vec<Value>, result: Value) -> Vec<End> {
        let exact: Option<Vec<i64>> = registers.iter().map(|value| value.as_exact()).collect();
        if let (Some(registers), Some(result)) = (exact, result.as_exact()) {
            let mut local = LocalState { pc, registers };
            let advance = local::resume(self.code, self.locations, &mut local, result);
            return ends_of(local, advance);
        }
        let dst = match self.code.code[pc.index()] {
            Instr::Load { dst, .. } | Instr::Choose { dst, .. } | Instr::ThreadRegister { dst, .. } => Some(dst),
            Instr::Rmw { dst, .. } => dst,
            _ => None,
        };
        if let Some(dst) = dst {
            registers[dst.index()] = result;
        }
        let run = Run::new(self.code, self.locations, &self.valuation, self.thread);
        run.from(Configuration { pc: Pc(pc.0 + 1), registers })
    }

    fn settle_all(&mut self, ends: Vec<End>, values: &mut Values) -> Successors {
        let mut next = Vec::with_capacity(ends.len());
        for end in ends {
            let end = match end {
                End::Failed(fault) => Next::Failed(fault),
                End::Rests(configuration) => Next::Paused(self.settle(&configuration, values)),
            };
            if !next.contains(&end) {
                next.push(end);
            }
        }
        next.into()
    }

    /// The same place in the code, in another phase of its `wait`.
    pub(super) fn in_phase(&mut self, id: LocalId, phase: Phase, values: &mut Values) -> LocalId {
        let local = Local { phase, ..self.get(id).clone() };
        self.intern(&local, values)
    }

    pub(super) fn get(&self, id: LocalId) -> &Local {
        self.states.get(id.0)
    }

    pub(super) fn pause(&self, id: LocalId) -> Pause {
        self.pauses[id.index()]
    }

    pub(super) fn pc(&self, id: LocalId) -> Pc {
        self.get(id).pc
    }

    /// Does it rest inside a `critical` block?
    pub(super) fn is_inside(&self, id: LocalId) -> bool {
        self.code.critical[self.pc(id).index()]
    }

    pub(super) fn bytes(&self) -> usize {
        let local = size_of::<Local>() + self.code.registers.len() * size_of::<ValueId>() + size_of::<Pause>();
        self.states.len() * local + self.successors.capacity() * 48
    }

    fn intern(&mut self, local: &Local, values: &mut Values) -> LocalId {
        let id = self.states.intern(local);
        if id as usize == self.pauses.len() {
            let pause = self.pause_of(local, values);
            self.pauses.push(pause);
        }
        LocalId(id)
    }

    /// Forgets dead registers, widens abstract ones. The index of a cell stays what it is: it is exact by now.
    fn settle(&mut self, configuration: &Configuration, values: &mut Values) -> LocalId {
        let Configuration { pc, registers } = configuration;
        let index = index_of(&self.code.code[pc.index()]);
        let mut rested = Vec::with_capacity(registers.len());
        for (number, &value) in registers.iter().enumerate() {
            let register = Reg::new(number);
            let value = if !self.liveness.is_live(*pc, register) {
                Value::exact(0)
            } else if index == Some(Operand::Reg(register)) {
                value
            } else {
                self.valuation.rest(self.thread, register, value)
            };
            rested.push(values.intern(value));
        }
        let local = Local { pc: *pc, phase: Phase::Running, registers: rested.into() };
        self.intern(&local, values)
    }

    fn pause_of(&self, local: &Local, values: &mut Values) -> Pause {
        let mut get = |operand: Operand| match operand {
            Operand::Const(value) => values.exact(value),
            Operand::Reg(reg) => local.registers[reg.index()],
        };
        match self.code.code[local.pc.index()] {
            Instr::Store { place, value } => {
                let value = get(value);
                Pause::Store { loc: cell(place, local, values), value }
            }
            Instr::Rmw { place, op, drains_all, .. } => {
                let op = match op {
                    RmwOp::Cas { old, new } => RmwOp::Cas { old: get(old), new: get(new) },
                    RmwOp::CompareExchange { old, new } => RmwOp::CompareExchange { old: get(old), new: get(new) },
                    RmwOp::Swap(v) => RmwOp::Swap(get(v)),
                    RmwOp::Add(v) => RmwOp::Add(get(v)),
                    RmwOp::Or(v) => RmwOp::Or(get(v)),
                    RmwOp::And(v) => RmwOp::And(get(v)),
                };
                Pause::Rmw { loc: cell(place, local, values), op, drains_all }
            }
            Instr::Load { place, .. } => Pause::Load { loc: cell(place, local, values) },
            Instr::Fence(kind) => Pause::Fence(kind),
            Instr::Lock(mutex) => Pause::Lock(mutex),
            Instr::Unlock(mutex) => Pause::Unlock(mutex),
            Instr::Wait { condvar, mutex } => Pause::Wait { condvar, mutex },
            Instr::Notify { condvar, all } => Pause::Notify { condvar, all },
            Instr::Choose { lo, hi, .. } => Pause::Choose { lo: get(lo), hi: get(hi) },
            Instr::LeaveCritical => Pause::LeaveCritical,
            Instr::ThreadRegister { thread, register, .. } => Pause::ThreadRegister { thread, register },
            Instr::End => Pause::End,
            _ => Pause::Spin,
        }
    }
}

/// The cell an instruction names in a resting local state.
fn cell(place: Place, local: &Local, values: &Values) -> Loc {
    match place {
        Place::Fixed(loc) => loc,
        Place::Indexed { base, index, .. } => {
            let index = match index {
                Operand::Const(index) => Some(index),
                Operand::Reg(reg) => values.get(local.registers[reg.index()]).as_exact(),
            };
            let offset = index.and_then(|index| u32::try_from(index).ok());
            Loc(base.0 + offset.expect("invariant: a thread rests at a cell only after its index was made exact"))
        }
    }
}

/// The operand that picks the cell of an event.
fn index_of(instr: &Instr) -> Option<Operand> {
    match *instr {
        Instr::Load { place: Place::Indexed { index, .. }, .. }
        | Instr::Store { place: Place::Indexed { index, .. }, .. }
        | Instr::Rmw { place: Place::Indexed { index, .. }, .. } => Some(index),
        _ => None,
    }
}

fn ends_of(local: LocalState, advance: Result<Advance, Fault>) -> Vec<End> {
    match advance {
        Err(fault) => vec![End::Failed(fault)],
        Ok(Advance::Pruned) => Vec::new(),
        Ok(Advance::Paused { .. }) => {
            let registers = local.registers.into_iter().map(Value::exact).collect();
            vec![End::Rests(Configuration { pc: local.pc, registers })]
        }
    }
}
