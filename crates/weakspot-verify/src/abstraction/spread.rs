//! Which registers and locations hold abstract values, given the variables that were asked for.
//!
//! A fixpoint over the code of all threads that ignores control flow:
//! * a register that a value of such a variable can reach, by loads and arithmetic, is abstract;
//! * a location that such a register is stored to, and that has no domain of its own, gets `interval`;
//! * a register that counts (it is computed from itself) and whose value can reach such a variable is abstract: otherwise
//!   `n = n + 1; x = n;` would go on for ever in the register, whatever becomes of `x`.
//!
//! Results of comparisons are 0 or 1 and carry nothing on.

use weakspot_model::ids::Reg;
use weakspot_model::ir::{BinaryOp, Instr, Operand, Place, RmwOp, Thread, UnaryOp};

use super::valuation::ValueDomain;

/// The fixpoint.
pub(super) struct Spread {
    /// The domain of each location; `None`: exact.
    pub(super) domains: Vec<Option<ValueDomain>>,
    /// For each thread, which registers are abstract.
    pub(super) registers: Vec<Vec<bool>>,
    /// For each thread and register, the registers that count and that its value is computed from.
    counters: Vec<Vec<Vec<Reg>>>,
    changed: bool,
}

impl Spread {
    /// Spreads the domains of the locations over the threads (and the `final` block).
    pub(super) fn over(codes: &[&Thread], domains: Vec<Option<ValueDomain>>) -> Self {
        let asked = domains.iter().any(Option::is_some);
        let mut spread = Self {
            domains,
            registers: codes.iter().map(|code| vec![false; code.registers.len()]).collect(),
            counters: if asked { codes.iter().map(|code| counters(code)).collect() } else { Vec::new() },
            changed: asked,
        };
        while std::mem::take(&mut spread.changed) {
            for (thread, code) in codes.iter().enumerate() {
                code.code.iter().for_each(|instr| spread.follow(thread, instr));
            }
        }
        spread
    }

    fn follow(&mut self, thread: usize, instr: &Instr) {
        match *instr {
            Instr::Load { dst, place } if self.holds_abstract(place) => self.mark(thread, dst),
            Instr::Store { place, value } => self.store(thread, place, value),
            Instr::Rmw { dst, place, op, .. } => {
                let (written, gives_old) = match op {
                    RmwOp::Cas { new, .. } => (new, false),
                    RmwOp::CompareExchange { new, .. } => (new, true),
                    RmwOp::Swap(v) | RmwOp::Add(v) | RmwOp::Or(v) | RmwOp::And(v) => (v, true),
                };
                self.store(thread, place, written);
                if let Some(dst) = dst.filter(|_| gives_old && self.holds_abstract(place)) {
                    self.mark(thread, dst);
                }
            }
            Instr::ThreadRegister { dst, thread: other, register }
                if self.registers[other.index()][register.index()] =>
            {
                self.mark(thread, dst);
            }
            _ => {
                if let Some((dst, operands)) = computed(instr)
                    && operands.iter().any(|&operand| self.is_abstract(thread, operand))
                {
                    self.mark(thread, dst);
                }
            }
        }
    }

    fn holds_abstract(&self, place: Place) -> bool {
        cells(place).any(|cell| self.domains[cell].is_some())
    }

    fn is_abstract(&self, thread: usize, operand: Operand) -> bool {
        matches!(operand, Operand::Reg(reg) if self.registers[thread][reg.index()])
    }

    fn mark(&mut self, thread: usize, register: Reg) {
        let mark = &mut self.registers[thread][register.index()];
        self.changed |= !std::mem::replace(mark, true);
    }

    fn store(&mut self, thread: usize, place: Place, value: Operand) {
        let Operand::Reg(register) = value else { return };
        if self.holds_abstract(place) {
            for counter in self.counters[thread][register.index()].clone() {
                self.mark(thread, counter);
            }
        }
        if !self.is_abstract(thread, value) {
            return;
        }
        for cell in cells(place) {
            if self.domains[cell].is_none() {
                self.domains[cell] = Some(ValueDomain::Interval);
                self.changed = true;
            }
        }
    }
}

/// The register an instruction computes and what from; not for comparisons.
fn computed(instr: &Instr) -> Option<(Reg, [Operand; 2])> {
    match *instr {
        Instr::Choose { dst, lo, hi } => Some((dst, [lo, hi])),
        Instr::Set { dst, value } | Instr::Unary { dst, op: UnaryOp::Neg, value } => Some((dst, [value, value])),
        Instr::Binary { dst, op, left, right } if !is_comparison(op) => Some((dst, [left, right])),
        _ => None,
    }
}

/// For each register, the registers it is computed from (itself included) that are computed from themselves.
fn counters(code: &Thread) -> Vec<Vec<Reg>> {
    let count = code.registers.len();
    let mut sources: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (dst, operands) in code.code.iter().filter_map(computed) {
        let registers = operands.iter().filter_map(|operand| match operand {
            Operand::Reg(reg) => Some(reg.index()),
            Operand::Const(_) => None,
        });
        sources[dst.index()].extend(registers);
    }
    let reached: Vec<Vec<bool>> = (0..count).map(|start| reached_from(start, &sources)).collect();
    let counts = |register: &usize| reached[*register][*register];
    let among = |from: usize| {
        let all = (0..count).filter(|&other| other == from || reached[from][other]);
        all.filter(counts).map(Reg::new).collect()
    };
    (0..count).map(among).collect()
}

/// What can be reached in one step or more.
fn reached_from(start: usize, next: &[Vec<usize>]) -> Vec<bool> {
    let mut reached = vec![false; next.len()];
    let mut waiting = next[start].clone();
    while let Some(register) = waiting.pop() {
        if !std::mem::replace(&mut reached[register], true) {
            waiting.extend(&next[register]);
        }
    }
    reached
}

/// The cells an access can mean.
fn cells(place: Place) -> std::ops::Range<usize> {
    match place {
        Place::Fixed(loc) => loc.index()..loc.index() + 1,
        Place::Indexed { base, len, .. } => base.index()..base.index() + len as usize,
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge)
}
