//! Which variables hold abstract values, and how a value is cut down to the domain of its variable.
//!
//! Sec. 4.1, "Domain of variables": the buffer abstraction composes with any abstraction of values. Stored values are
//! replaced by elements of the variable's domain, and these are what buffers and memory hold:
//!
//! | domain | elements | a value that fits none |
//! |---|---|---|
//! | `sign` | negative, 0, positive | is split: one successor for each element |
//! | `parity` | even, odd | is split |
//! | `interval` | every interval between *landmarks* | is widened to the landmarks around it |
//!
//! Landmarks are the constants of the program (with initial values and the ends of declared ranges) and the gaps between
//! them; where no variable has the domain `interval`, only 0 and 1 and the gaps around them. Widening to landmarks at once, instead of after some rounds of a loop, keeps the domain finite: every search
//! ends, whatever a counter does, and comparisons with constants stay exact. A declared range cuts every element.
//!
//! Registers that such values reach are abstract as well ([`super::spread`]); they are widened to landmarks wherever the
//! thread rests.

use weakspot_model::ids::{Loc, Reg, ThreadId};
use weakspot_model::ir::{Instr, Operand, Program, RmwOp, Thread};

use super::spread::Spread;
use super::value::{Parity, Value, is_infinite};

/// The domain of a variable's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueDomain {
    /// Negative, zero or positive.
    Sign,
    /// Even or odd.
    Parity,
    /// Between two constants of the program.
    Interval,
}

impl ValueDomain {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sign, Self::Parity, Self::Interval];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Parity => "parity",
            Self::Interval => "interval",
        }
    }
}

/// The domains of all variables and registers of a program.
#[derive(Debug, Clone)]
pub(super) struct Valuation {
    /// The domain of each location; `None`: exact.
    domains: Vec<Option<ValueDomain>>,
    /// Declared ranges.
    ranges: Vec<Option<Value>>,
    /// For each thread (and last, for `final`), which registers are abstract.
    registers: Vec<Vec<bool>>,
    /// 0, 1 and, where there are intervals, the constants of the program; ascending.
    landmarks: Vec<i128>,
    /// Some variable has the domain `parity`, so that parities of registers are of use.
    keeps_parity: bool,
}

impl Valuation {
    /// Spreads the domains that were asked for, one for each location, over the program.
    pub(super) fn new(program: &Program, asked: &[Option<ValueDomain>]) -> Self {
        let mut domains = asked.to_vec();
        domains.resize(program.locations.len(), None);
        let codes: Vec<&Thread> = program.threads.iter().chain(&program.final_block).collect();
        let asked = |domain| asked.contains(&Some(domain));
        let mut landmarks = vec![0, 1];
        if asked(ValueDomain::Interval) {
            add_constants(program, &codes, &mut landmarks);
        }
        let (keeps_parity, spread) = (asked(ValueDomain::Parity), Spread::over(&codes, domains));
        let range = |range: Option<(i64, i64)>| range.and_then(|(lo, hi)| Value::between(lo, hi));
        let ranges = program.locations.iter().map(|location| range(location.range)).collect();
        Self { domains: spread.domains, ranges, registers: spread.registers, landmarks, keeps_parity }
    }

    /// The elements of the location's domain that together include a value.
    pub(super) fn elements(&self, loc: Loc, value: Value) -> Vec<Value> {
        let Some(domain) = self.domains[loc.index()] else { return vec![value] };
        let candidates = match domain {
            ValueDomain::Interval => vec![self.widen(value, Parity::Any)],
            ValueDomain::Sign => vec![Value::NEGATIVE, Value::exact(0), Value::POSITIVE],
            ValueDomain::Parity => vec![Value::of_parity(Parity::Even), Value::of_parity(Parity::Odd)],
        };
        let within = self.ranges[loc.index()].unwrap_or(Value::ANY);
        let fitting = candidates.into_iter().filter(|element| element.meet(value).is_some());
        fitting.filter_map(|element| element.meet(within)).collect()
    }

    /// What a register may keep while its thread rests.
    pub(super) fn rest(&self, thread: usize, register: Reg, value: Value) -> Value {
        if !self.registers[thread][register.index()] {
            return value;
        }
        self.widen(value, if self.keeps_parity { value.parity() } else { Parity::Any })
    }

    /// The index of the `final` block's registers, behind those of all threads.
    pub(super) fn thread_index(program: &Program, thread: Option<ThreadId>) -> usize {
        thread.map_or(program.threads.len(), ThreadId::index)
    }

    /// The smallest interval between landmarks that includes the value, cut down to a parity that all of it has.
    fn widen(&self, value: Value, parity: Parity) -> Value {
        let widened = Value::new(self.floor(value.lo()), self.ceiling(value.hi()), parity);
        widened.unwrap_or(value)
    }

    /// The start of the landmark, or of the gap between landmarks, that a bound is in.
    fn floor(&self, bound: i128) -> i128 {
        if is_infinite(bound) {
            return bound;
        }
        match self.landmarks.binary_search(&bound) {
            Ok(_) => bound,
            Err(0) => i128::MIN,
            Err(at) => self.landmarks[at - 1] + 1,
        }
    }

    /// The end of the landmark, or of the gap between landmarks, that a bound is in.
    fn ceiling(&self, bound: i128) -> i128 {
        if is_infinite(bound) {
            return bound;
        }
        match self.landmarks.binary_search(&bound) {
            Ok(_) => bound,
            Err(at) if at == self.landmarks.len() => i128::MAX,
            Err(at) => self.landmarks[at] - 1,
        }
    }
}

/// Initial values, ends of ranges and all constants of the code.
fn add_constants(program: &Program, codes: &[&Thread], landmarks: &mut Vec<i128>) {
    for location in &program.locations {
        landmarks.push(location.init.into());
        landmarks.extend(location.range.into_iter().flat_map(|(lo, hi)| [i128::from(lo), i128::from(hi)]));
    }
    for instr in codes.iter().flat_map(|thread| &thread.code) {
        constants(instr, landmarks);
    }
    landmarks.sort_unstable();
    landmarks.dedup();
}

/// The constants an instruction mentions.
fn constants(instr: &Instr, found: &mut Vec<i128>) {
    let mut operand = |operand: Operand| {
        if let Operand::Const(value) = operand {
            found.push(value.into());
        }
    };
    match *instr {
        Instr::Store { value, .. } | Instr::Set { value, .. } | Instr::Unary { value, .. } => operand(value),
        Instr::Rmw { op, .. } => match op {
            RmwOp::Cas { old, new } | RmwOp::CompareExchange { old, new } => {
                operand(old);
                operand(new);
            }
            RmwOp::Swap(v) | RmwOp::Add(v) | RmwOp::Or(v) | RmwOp::And(v) => operand(v),
        },
        Instr::Choose { lo, hi, .. } => {
            operand(lo);
            operand(hi);
        }
        Instr::Binary { left, right, .. } => {
            operand(left);
            operand(right);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn valuation(domains: Vec<Option<ValueDomain>>, range: Option<(i64, i64)>) -> Valuation {
        let range = range.and_then(|(lo, hi)| Value::between(lo, hi));
        let (ranges, registers) = (vec![range; domains.len()], vec![vec![true]]);
        Valuation { ranges, domains, registers, landmarks: vec![0, 1, 5], keeps_parity: true }
    }

    const X: Loc = Loc(0);

    fn above(lo: i64) -> Value {
        Value::POSITIVE.above(Value::exact(lo), false).unwrap()
    }

    #[test]
    fn intervals_are_widened_to_the_landmarks_around_them() {
        let valuation = valuation(vec![Some(ValueDomain::Interval)], None);
        assert_eq!(valuation.elements(X, Value::exact(5)), [Value::exact(5)]);
        assert_eq!(valuation.elements(X, Value::exact(3)), [Value::between(2, 4).unwrap()]);
        assert_eq!(valuation.elements(X, Value::exact(9)), [above(6)]);
        assert_eq!(valuation.elements(X, Value::between(0, 3).unwrap()), [Value::between(0, 4).unwrap()]);
        let odd = Value::NEGATIVE.meet(Value::of_parity(Parity::Odd)).unwrap();
        assert_eq!(valuation.rest(0, Reg(0), Value::exact(-7)), odd, "registers keep their parity");
    }

    #[test]
    fn signs_and_parities_split() {
        let signs = valuation(vec![Some(ValueDomain::Sign)], None);
        assert_eq!(signs.elements(X, Value::exact(3)), [Value::POSITIVE]);
        assert_eq!(signs.elements(X, Value::between(0, 3).unwrap()), [Value::exact(0), Value::POSITIVE]);
        let parities = valuation(vec![Some(ValueDomain::Parity)], None);
        assert_eq!(parities.elements(X, Value::exact(3)), [Value::of_parity(Parity::Odd)]);
        assert_eq!(parities.elements(X, Value::between(0, 3).unwrap()).len(), 2);
    }

    #[test]
    fn a_declared_range_cuts_every_element() {
        let signs = valuation(vec![Some(ValueDomain::Sign)], Some((0, 3)));
        assert_eq!(signs.elements(X, Value::exact(2)), [Value::between(1, 3).unwrap()]);
    }
}
