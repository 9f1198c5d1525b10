//! Finds the paths of a thread.
//!
//! The thread is run with registers that hold either constants or nodes of an expression graph whose leaves are "the
//! value read by event `i` of this path". Where control flow depends on such a value, and where a compare-and-exchange
//! may succeed or fail, the path splits, and each half notes what has to be true of the values.

use weakspot_model::ids::{Loc, Pc, Reg};
use weakspot_model::ir::{BinaryOp, Instr, Location, Operand, Place, RmwOp, Thread, UnaryOp};
use weakspot_model::local::{self, MAX_CHOICES};
use weakspot_model::problem::{Fault, FaultKind};
use weakspot_model::trace::{Cell, Class};

use super::path::{Check, Node, Path, PathEvent, Value};
use super::{LitmusError, MAX_PATHS, UNROLL};

/// A path that has not reached its end.
#[derive(Clone)]
struct Partial {
    pc: Pc,
    path: Path,
    /// How often each backward jump was followed.
    rounds: Vec<(Pc, u32)>,
}

impl Partial {
    fn get(&self, operand: Operand) -> Value {
        match operand {
            Operand::Const(value) => Value::Const(value),
            Operand::Reg(reg) => self.path.registers[reg.index()],
        }
    }

    fn set(&mut self, reg: Reg, value: Value) {
        self.path.registers[reg.index()] = value;
    }

    fn check(&mut self, check: Check) {
        self.path.checks.push(check);
    }

    fn fail(&mut self, kind: FaultKind) -> Stop {
        self.check(Check::Fails(Fault { pc: self.pc, kind }));
        Stop::Ended
    }

    /// Goes to an instruction, unless that is one round of a loop too many.
    fn go(&mut self, target: Pc) -> Result<(), Stop> {
        let from = std::mem::replace(&mut self.pc, target);
        if target > from {
            return Ok(());
        }
        let at = self.rounds.iter().position(|(pc, _)| *pc == from).unwrap_or_else(|| {
            self.rounds.push((from, 0));
            self.rounds.len() - 1
        });
        self.rounds[at].1 += 1;
        if self.rounds[at].1 > UNROLL { Err(Stop::CutOff) } else { Ok(()) }
    }
}

/// Why a path goes no further.
enum Stop {
    /// It is complete.
    Ended,
    /// No execution takes it.
    Dropped,
    /// A loop was cut off.
    CutOff,
    /// The thread cannot be dealt with.
    Refused(LitmusError),
}

fn unsupported(what: &'static str) -> Stop {
    Stop::Refused(LitmusError::Unsupported { what })
}

/// Runs one thread along all its paths.
pub(super) struct Walker<'a> {
    thread: &'a Thread,
    locations: &'a [Location],
    nodes: &'a mut Vec<Node>,
    pending: Vec<Partial>,
    /// The complete paths.
    pub finished: Vec<Path>,
    /// A loop was cut off.
    pub cut_off: bool,
}

impl<'a> Walker<'a> {
    pub fn new(thread: &'a Thread, locations: &'a [Location], nodes: &'a mut Vec<Node>) -> Self {
        let registers = vec![Value::Const(0); thread.registers.len()];
        let start = Partial { pc: Pc(0), path: Path { registers, ..Path::default() }, rounds: Vec::new() };
        Self { thread, locations, nodes, pending: vec![start], finished: Vec::new(), cut_off: false }
    }

    /// Finds all paths.
    pub fn walk(&mut self) -> Result<(), LitmusError> {
        while let Some(mut partial) = self.pending.pop() {
            let stop = loop {
                if let Err(stop) = self.step(&mut partial) {
                    break stop;
                }
            };
            match stop {
                Stop::Ended => self.finished.push(partial.path),
                Stop::Dropped => {}
                Stop::CutOff => self.cut_off = true,
                Stop::Refused(error) => return Err(error),
            }
            if self.finished.len() + self.pending.len() > MAX_PATHS {
                return Err(LitmusError::TooManyPaths);
            }
        }
        Ok(())
    }

    /// One instruction.
    fn step(&mut self, partial: &mut Partial) -> Result<(), Stop> {
        let pc = partial.pc;
        match self.thread.code[pc.index()] {
            Instr::Load { dst, place } => {
                let class = Class::Load(cell(partial, place)?.1);
                let value = self.read(partial, class, None);
                partial.set(dst, value);
            }
            Instr::Store { place, value } => {
                let (loc, cell) = cell(partial, place)?;
                let value = partial.get(value);
                self.note_range(partial, loc, value);
                partial.path.events.push(PathEvent { class: Class::Store(cell), written: Some(value) });
            }
            Instr::Rmw { dst, place, op, drains_all } => {
                let (loc, cell) = cell(partial, place)?;
                self.rmw(partial, dst, loc, Class::Atomic { cell, drains_all }, op);
            }
            Instr::Fence(kind) => {
                partial.path.events.push(PathEvent { class: Class::Fence(kind), written: None });
            }
            Instr::Set { dst, value } => partial.set(dst, partial.get(value)),
            Instr::Unary { dst, op, value } => self.unary(partial, dst, op, value)?,
            Instr::Binary { dst, op, left, right } => self.binary(partial, dst, op, left, right)?,
            Instr::Jump { target } => return partial.go(target),
            Instr::Branch { cond, then, otherwise } => return self.branch(partial, cond, then, otherwise),
            Instr::Assert { cond, message } => {
                let kind = FaultKind::Assertion { message };
                match partial.get(cond) {
                    Value::Const(0) => return Err(partial.fail(kind)),
                    Value::Const(_) => {}
                    node @ Value::Node(_) => partial.check(Check::Holds(node, Fault { pc, kind })),
                }
            }
            Instr::Assume { cond } => match partial.get(cond) {
                Value::Const(0) => return Err(Stop::Dropped),
                Value::Const(_) => {}
                node @ Value::Node(_) => partial.check(Check::NonZero(node)),
            },
            Instr::Choose { dst, lo, hi } => self.choose(partial, dst, lo, hi)?,
            Instr::End => return Err(Stop::Ended),
            Instr::Lock(_) | Instr::Unlock(_) => return Err(unsupported("a mutex")),
            Instr::Wait { .. } | Instr::Notify { .. } => return Err(unsupported("a condition variable")),
            Instr::EnterCritical | Instr::LeaveCritical => return Err(unsupported("a critical block")),
            Instr::ThreadRegister { .. } => return Err(unsupported("a register of another thread")),
        }
        partial.pc = Pc(pc.0 + 1);
        Ok(())
    }

    /// Adds an event that reads, and gives the value it reads.
    fn read(&mut self, partial: &mut Partial, class: Class, written: Option<Value>) -> Value {
        let event = partial.path.events.len() as u32;
        partial.path.events.push(PathEvent { class, written });
        self.node(Node::Read(event))
    }

    fn node(&mut self, node: Node) -> Value {
        self.nodes.push(node);
        Value::Node(self.nodes.len() as u32 - 1)
    }

    fn note_range(&self, partial: &mut Partial, loc: Loc, value: Value) {
        if self.locations[loc.index()].range.is_some() {
            partial.check(Check::InRange(loc, value, partial.pc));
        }
    }

    fn rmw(&mut self, partial: &mut Partial, dst: Option<Reg>, loc: Loc, class: Class, op: RmwOp) {
        let read = match op {
            RmwOp::Cas { old, new } => {
                let exchange = CompareExchange { old: partial.get(old), new: partial.get(new), gives_old: false };
                return self.compare_exchange(partial, dst, loc, class, exchange);
            }
            RmwOp::CompareExchange { old, new } => {
                let exchange = CompareExchange { old: partial.get(old), new: partial.get(new), gives_old: true };
                return self.compare_exchange(partial, dst, loc, class, exchange);
            }
            RmwOp::Swap(value) => {
                let value = partial.get(value);
                self.note_range(partial, loc, value);
                self.read(partial, class, Some(value))
            }
            RmwOp::Add(value) => self.fetch(partial, loc, class, BinaryOp::Add, value),
            RmwOp::Or(value) => self.fetch(partial, loc, class, BinaryOp::BitOr, value),
            RmwOp::And(value) => self.fetch(partial, loc, class, BinaryOp::BitAnd, value),
        };
        if let Some(dst) = dst {
            partial.set(dst, read);
        }
    }

    /// An atomic that writes a function of what it reads; gives what it reads.
    fn fetch(&mut self, partial: &mut Partial, loc: Loc, class: Class, op: BinaryOp, operand: Operand) -> Value {
        let operand = partial.get(operand);
        let read = self.read(partial, class, None);
        let written = self.node(Node::Binary(op, read, operand, partial.pc));
        partial.path.events.last_mut().expect("invariant: pushed by `read`").written = Some(written);
        partial.check(Check::Computes(written));
        self.note_range(partial, loc, written);
        read
    }

    /// Splits into a path on which the exchange fails (later) and one on which it succeeds (now).
    fn compare_exchange(
        &mut self,
        partial: &mut Partial,
        dst: Option<Reg>,
        loc: Loc,
        class: Class,
        exchange: CompareExchange,
    ) {
        let mut failed = partial.clone();
        for (path, swaps) in [(&mut failed, false), (&mut *partial, true)] {
            let read = self.read(path, class, swaps.then_some(exchange.new));
            if swaps {
                path.check(Check::Equal(read, exchange.old));
                self.note_range(path, loc, exchange.new);
            } else {
                path.check(Check::Different(read, exchange.old));
            }
            if let Some(dst) = dst {
                path.set(dst, if exchange.gives_old { read } else { Value::Const(i64::from(swaps)) });
            }
        }
        failed.pc.0 += 1;
        self.pending.push(failed);
    }

    fn unary(&mut self, partial: &mut Partial, dst: Reg, op: UnaryOp, value: Operand) -> Result<(), Stop> {
        let result = match partial.get(value) {
            Value::Const(value) => Value::Const(local::unary(op, value).map_err(|kind| partial.fail(kind))?),
            node @ Value::Node(_) => {
                let result = self.node(Node::Unary(op, node, partial.pc));
                partial.check(Check::Computes(result));
                result
            }
        };
        partial.set(dst, result);
        Ok(())
    }

    fn binary(
        &mut self,
        partial: &mut Partial,
        dst: Reg,
        op: BinaryOp,
        left: Operand,
        right: Operand,
    ) -> Result<(), Stop> {
        let result = match (partial.get(left), partial.get(right)) {
            (Value::Const(left), Value::Const(right)) => {
                Value::Const(local::binary(op, left, right).map_err(|kind| partial.fail(kind))?)
            }
            (left, right) => {
                let result = self.node(Node::Binary(op, left, right, partial.pc));
                partial.check(Check::Computes(result));
                result
            }
        };
        partial.set(dst, result);
        Ok(())
    }

    fn branch(&mut self, partial: &mut Partial, cond: Operand, then: Pc, otherwise: Pc) -> Result<(), Stop> {
        match partial.get(cond) {
            Value::Const(0) => partial.go(otherwise),
            Value::Const(_) => partial.go(then),
            node @ Value::Node(_) => {
                let mut other = partial.clone();
                other.check(Check::Zero(node));
                match other.go(otherwise) {
                    Ok(()) => self.pending.push(other),
                    Err(_) => self.cut_off = true,
                }
                partial.check(Check::NonZero(node));
                partial.go(then)
            }
        }
    }

    /// Splits into one path for each value; goes on with the smallest.
    fn choose(&mut self, partial: &mut Partial, dst: Reg, lo: Operand, hi: Operand) -> Result<(), Stop> {
        let (Value::Const(lo), Value::Const(hi)) = (partial.get(lo), partial.get(hi)) else {
            return Err(unsupported("a choice between computed bounds"));
        };
        if lo > hi || hi.checked_sub(lo).is_none_or(|width| width >= MAX_CHOICES) {
            return Err(partial.fail(FaultKind::Choice { lo, hi }));
        }
        for value in lo + 1..=hi {
            let mut other = partial.clone();
            other.set(dst, Value::Const(value));
            other.pc.0 += 1;
            self.pending.push(other);
        }
        partial.set(dst, Value::Const(lo));
        Ok(())
    }
}

/// The operands of a compare-and-exchange.
#[derive(Clone, Copy)]
struct CompareExchange {
    old: Value,
    new: Value,
    /// The result is the old value, not whether it swapped.
    gives_old: bool,
}

/// The cell an instruction names.
fn cell(partial: &mut Partial, place: Place) -> Result<(Loc, Cell), Stop> {
    let loc = match place {
        Place::Fixed(loc) => loc,
        Place::Indexed { base, len, index } => {
            let Value::Const(index) = partial.get(index) else {
                return Err(unsupported("an array cell chosen by a computed value"));
            };
            match u32::try_from(index) {
                Ok(offset) if offset < len => Loc(base.0 + offset),
                _ => return Err(partial.fail(FaultKind::Index { index, len })),
            }
        }
    };
    Ok((loc, Cell::Memory(loc)))
}
