//! Thread-local execution on abstract values, from one event to the next; [`weakspot_model::local`] made to split.
//!
//! A run is a set of configurations that are followed one by one. It splits
//! * at a comparison that can come out both ways; each way keeps only the members for which it does,
//! * at a branch, an assertion or an assumption on a value that may and may not be 0,
//! * at a cell whose index is not exact: one way for each cell, and an error if it may be outside,
//! * at a store that may be outside the declared range.
//!
//! # Local loops
//! A loop without events may go round for ever on abstract values although no concrete one does. A configuration that
//! comes back ends its way: the thread may spin there. Unless nothing abstract was written, it may as well compute for
//! longer than the language allows, so that error is then reported as possible. At every jump backwards abstract
//! registers are widened to landmarks, and after [`MOST_CONFIGURATIONS`] every register to any value, so that a run ends.

use rustc_hash::FxHashSet;
use weakspot_model::ids::{Loc, Pc, Reg};
use weakspot_model::ir::{Instr, Location, Operand, Place, Thread, UnaryOp};
use weakspot_model::local::MAX_CHOICES;
use weakspot_model::problem::{Fault, FaultKind};

use super::arithmetic::{self, Computed};
use super::valuation::Valuation;
use super::value::Value;

/// Configurations met at jumps backwards after which every register is widened to any value.
const MOST_CONFIGURATIONS: usize = 10_000;

/// Where a run is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Configuration {
    pub(super) pc: Pc,
    pub(super) registers: Vec<Value>,
}

impl Configuration {
    fn value(&self, operand: Operand) -> Value {
        match operand {
            Operand::Const(value) => Value::exact(value),
            Operand::Reg(reg) => self.registers[reg.index()],
        }
    }

    /// Narrows a register; a constant stays what it is.
    fn narrow(&mut self, operand: Operand, value: Value) {
        if let Operand::Reg(reg) = operand {
            self.registers[reg.index()] = value;
        }
    }

    fn at(&self, pc: Pc) -> Self {
        Self { pc, registers: self.registers.clone() }
    }
}

/// How one way of a run ends. A way that an `assume` ends leaves nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// At an event, a choice, the end of a block or of the thread; or inside a loop without events.
    Rests(Configuration),
    /// With a program error.
    Failed(Fault),
}

/// A run under way.
pub(super) struct Run<'a> {
    code: &'a Thread,
    locations: &'a [Location],
    valuation: &'a Valuation,
    thread: usize,
    waiting: Vec<Configuration>,
    /// Configurations met at jumps backwards.
    seen: FxHashSet<Configuration>,
    /// Something abstract was written.
    wrote_abstract: bool,
    /// Configurations that came back.
    spins: Vec<Configuration>,
    ends: Vec<End>,
}

impl<'a> Run<'a> {
    pub(super) fn new(code: &'a Thread, locations: &'a [Location], valuation: &'a Valuation, thread: usize) -> Self {
        Self {
            code,
            locations,
            valuation,
            thread,
            waiting: Vec::new(),
            seen: FxHashSet::default(),
            wrote_abstract: false,
            spins: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// All ends of the run that starts here.
    pub(super) fn from(mut self, start: Configuration) -> Vec<End> {
        self.waiting.push(start);
        while let Some(configuration) = self.waiting.pop() {
            self.step(configuration);
        }
        for configuration in std::mem::take(&mut self.spins) {
            if self.wrote_abstract {
                self.ends.push(End::Failed(Fault { pc: configuration.pc, kind: FaultKind::LocalLoop }));
            }
            self.ends.push(End::Rests(configuration));
        }
        self.ends
    }

    fn fail(&mut self, pc: Pc, kind: FaultKind) {
        self.ends.push(End::Failed(Fault { pc, kind }));
    }

    /// Goes on at `to.pc`, which follows `from`.
    fn go(&mut self, from: Pc, mut to: Configuration) {
        if to.pc > from {
            self.waiting.push(to);
            return;
        }
        let too_many = self.seen.len() > MOST_CONFIGURATIONS;
        self.wrote_abstract |= too_many;
        for (index, value) in to.registers.iter_mut().enumerate() {
            let rested = self.valuation.rest(self.thread, Reg::new(index), *value);
            *value = if too_many { Value::ANY } else { rested };
        }
        if self.seen.insert(to.clone()) {
            self.waiting.push(to);
        } else {
            self.spins.push(to);
        }
    }

    /// Executes one instruction.
    fn step(&mut self, here: Configuration) {
        let pc = here.pc;
        let next = Pc(pc.0 + 1);
        match self.code.code[pc.index()] {
            Instr::Set { dst, value } => {
                let value = here.value(value);
                self.assign(here, dst, Computed { value: Some(value), faults: Vec::new() });
            }
            Instr::Unary { dst, op: UnaryOp::Neg, value } => {
                let computed = arithmetic::negate(here.value(value));
                self.assign(here, dst, computed);
            }
            Instr::Unary { dst, op: UnaryOp::Not, value } => {
                self.split(&here, value, |holds, mut way| {
                    way.registers[dst.index()] = Value::exact(i64::from(!holds));
                    Some(way)
                });
            }
            Instr::Binary { dst, op, left, right } => {
                let (a, b) = (here.value(left), here.value(right));
                let Some(cases) = arithmetic::compare(op, a, b) else {
                    return self.assign(here, dst, arithmetic::binary(op, a, b));
                };
                for case in cases {
                    let mut way = here.at(next);
                    way.narrow(left, case.left);
                    way.narrow(right, case.right);
                    way.registers[dst.index()] = Value::exact(i64::from(case.holds));
                    self.go(pc, way);
                }
            }
            Instr::Jump { target } => self.go(pc, here.at(target)),
            Instr::Branch { cond, then, otherwise } => self.split(&here, cond, |holds, mut way| {
                way.pc = if holds { then } else { otherwise };
                Some(way)
            }),
            Instr::Assert { cond, message } => {
                if here.value(cond).zero_or_not().0 {
                    self.fail(pc, FaultKind::Assertion { message });
                }
                self.split(&here, cond, bool::then_some);
            }
            Instr::Assume { cond } => self.split(&here, cond, bool::then_some),
            Instr::EnterCritical => self.go(pc, here.at(next)),
            Instr::Load { place, .. } => self.rest_at_cell(here, place, None),
            Instr::Store { place, value } => self.rest_at_cell(here, place, Some(value)),
            Instr::Rmw { place, .. } => self.rest_at_cell(here, place, None),
            Instr::Choose { lo, hi, .. } => self.rest_at_choice(here, lo, hi),
            Instr::Fence(_)
            | Instr::Lock(_)
            | Instr::Unlock(_)
            | Instr::Wait { .. }
            | Instr::Notify { .. }
            | Instr::LeaveCritical
            | Instr::ThreadRegister { .. }
            | Instr::End => self.ends.push(End::Rests(here)),
        }
    }

    fn assign(&mut self, mut here: Configuration, dst: Reg, computed: Computed) {
        let pc = here.pc;
        for fault in computed.faults {
            self.fail(pc, fault);
        }
        let Some(value) = computed.value else { return };
        self.wrote_abstract |= value.as_exact().is_none();
        here.registers[dst.index()] = value;
        here.pc = Pc(pc.0 + 1);
        self.go(pc, here);
    }

    /// Splits into the ways in which a condition holds (is not 0) and does not; `way` says where each goes.
    fn split(
        &mut self,
        here: &Configuration,
        cond: Operand,
        way: impl Fn(bool, Configuration) -> Option<Configuration>,
    ) {
        let value = here.value(cond);
        let (zero, other) = value.zero_or_not();
        for (possible, holds) in [(other, true), (zero, false)] {
            if !possible {
                continue;
            }
            let narrowed = if holds { value.apart_from(Value::exact(0)) } else { Some(Value::exact(0)) };
            let Some(narrowed) = narrowed else { continue };
            let mut next = here.at(Pc(here.pc.0 + 1));
            next.narrow(cond, narrowed);
            if let Some(next) = way(holds, next) {
                self.go(here.pc, next);
            }
        }
    }

    /// Rests at an access: one way for each cell it can be, each with a value that the cell may hold.
    fn rest_at_cell(&mut self, here: Configuration, place: Place, stored: Option<Operand>) {
        match place {
            Place::Fixed(loc) => self.rest_at_store(here, loc, stored),
            Place::Indexed { base, len, index } => {
                let value = here.value(index);
                let outside = |bound: Option<i64>| bound.filter(|&bound| bound < 0 || bound >= i64::from(len));
                if !Value::between(0, i64::from(len) - 1).is_some_and(|inside| inside.includes(value)) {
                    let index = outside(value.highest()).or(outside(value.lowest())).unwrap_or(i64::from(len));
                    self.fail(here.pc, FaultKind::Index { index, len });
                }
                for offset in (0..len).filter(|&offset| value.contains(offset.into())) {
                    let mut way = here.clone();
                    way.narrow(index, Value::exact(offset.into()));
                    self.rest_at_store(way, Loc(base.0 + offset), stored);
                }
            }
        }
    }

    fn rest_at_store(&mut self, mut here: Configuration, loc: Loc, stored: Option<Operand>) {
        let range = self.locations[loc.index()].range;
        let within = range.map_or(Some(Value::ANY), |(lo, hi)| Value::between(lo, hi));
        if let Some(operand) = stored {
            let value = here.value(operand);
            let fits = within.and_then(|within| within.meet(value));
            if fits != Some(value) {
                let outside = |bound: Option<i64>| bound.filter(|&bound| !within.is_some_and(|w| w.contains(bound)));
                let worst = outside(value.highest()).or(outside(value.lowest())).or(value.lowest());
                self.fail(here.pc, FaultKind::Range { loc, value: worst.or(value.highest()).unwrap_or(0) });
            }
            let Some(fits) = fits else { return };
            here.narrow(operand, fits);
        }
        self.ends.push(End::Rests(here));
    }

    fn rest_at_choice(&mut self, here: Configuration, lo: Operand, hi: Operand) {
        let (lo, hi) = (here.value(lo), here.value(hi));
        let width = match (lo.lowest(), hi.highest()) {
            (Some(lo), Some(hi)) => hi.checked_sub(lo),
            _ => None,
        };
        let never_empty = lo.hi() <= hi.lo();
        if !never_empty || width.is_none_or(|width| width >= MAX_CHOICES) {
            let (lo, hi) = (lo.highest().unwrap_or(i64::MAX), hi.lowest().unwrap_or(i64::MIN));
            self.fail(here.pc, FaultKind::Choice { lo, hi });
        }
        if lo.lo() <= hi.hi() {
            self.ends.push(End::Rests(here));
        }
    }
}
