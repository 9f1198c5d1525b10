//! Abstract values: an interval of integers together with a parity.
//!
//! One representation serves all value domains of Sec. 4.1, "Domain of variables": an exact value is an interval of one
//! integer, a sign is one of three fixed intervals, a parity is the full interval with a parity. What a *variable* may
//! hold is cut down to its own domain when it is stored ([`super::valuation`]); between events, registers hold the full
//! interval and parity.
//!
//! # Bounds without end
//! A bound may be infinite. Infinite bounds come from widening, from signs and from parities; they mean that the value
//! is taken as a mathematical integer. Arithmetic on finite bounds that leaves 64 bits is an overflow, as in the
//! language; arithmetic on an infinite bound stays infinite and is no overflow, because otherwise every counter without
//! end would be an error (after 2^63 steps).

use std::fmt;

/// A bound below every integer; finite bounds are 64-bit integers.
const MINUS_INFINITY: i128 = i128::MIN;

/// A bound above every integer.
const INFINITY: i128 = i128::MAX;

/// What is known about the last bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Parity {
    /// Nothing.
    Any,
    /// It is 0.
    Even,
    /// It is 1.
    Odd,
}

impl Parity {
    fn of(value: i128) -> Self {
        if value.rem_euclid(2) == 0 { Self::Even } else { Self::Odd }
    }

    fn meet(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, known) | (known, Self::Any) => Some(known),
            (a, b) => (a == b).then_some(a),
        }
    }

    fn join(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }

    /// The parity of a sum or a difference.
    pub(super) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            (a, b) if a == b => Self::Even,
            _ => Self::Odd,
        }
    }

    /// The parity of a product, and of a bitwise and.
    pub(super) fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::Even, _) | (_, Self::Even) => Self::Even,
            (Self::Odd, Self::Odd) => Self::Odd,
            _ => Self::Any,
        }
    }

    /// The parity of a bitwise or.
    pub(super) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Odd, _) | (_, Self::Odd) => Self::Odd,
            (Self::Even, Self::Even) => Self::Even,
            _ => Self::Any,
        }
    }
}

/// A non-empty set of integers: those of one parity between two bounds. Bounds are tight: a finite bound is a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value {
    lo: i128,
    hi: i128,
    parity: Parity,
}

impl Value {
    /// Every integer.
    pub const ANY: Self = Self { lo: MINUS_INFINITY, hi: INFINITY, parity: Parity::Any };

    /// Less than zero.
    pub const NEGATIVE: Self = Self { lo: MINUS_INFINITY, hi: -1, parity: Parity::Any };

    /// Greater than zero.
    pub const POSITIVE: Self = Self { lo: 1, hi: INFINITY, parity: Parity::Any };

    /// One integer.
    pub fn exact(value: i64) -> Self {
        let value = i128::from(value);
        Self { lo: value, hi: value, parity: Parity::of(value) }
    }

    /// Every integer of a parity.
    pub fn of_parity(parity: Parity) -> Self {
        Self { parity, ..Self::ANY }
    }

    /// The integers between two bounds, both included; `None` if there are none.
    pub fn between(lo: i64, hi: i64) -> Option<Self> {
        Self::new(lo.into(), hi.into(), Parity::Any)
    }

    /// From bounds that need not be tight; `None` if there are no members.
    pub(super) fn new(mut lo: i128, mut hi: i128, mut parity: Parity) -> Option<Self> {
        if parity != Parity::Any {
            if lo != MINUS_INFINITY && lo <= hi && Parity::of(lo) != parity {
                lo += 1;
            }
            if hi != INFINITY && lo <= hi && Parity::of(hi) != parity {
                hi -= 1;
            }
        }
        if lo > hi {
            return None;
        }
        if lo == hi {
            parity = Parity::of(lo);
        }
        Some(Self { lo, hi, parity })
    }

    /// The integer, if it is only one.
    pub fn as_exact(self) -> Option<i64> {
        if self.lo == self.hi { i64::try_from(self.lo).ok() } else { None }
    }

    /// The smallest member; `None` if there is none.
    pub fn lowest(self) -> Option<i64> {
        i64::try_from(self.lo).ok()
    }

    /// The largest member; `None` if there is none.
    pub fn highest(self) -> Option<i64> {
        i64::try_from(self.hi).ok()
    }

    /// The lower bound, minus infinity included.
    pub(super) fn lo(self) -> i128 {
        self.lo
    }

    /// The upper bound, infinity included.
    pub(super) fn hi(self) -> i128 {
        self.hi
    }

    /// The parity of all members.
    pub fn parity(self) -> Parity {
        self.parity
    }

    /// Is it a member?
    pub fn contains(self, value: i64) -> bool {
        let value = i128::from(value);
        self.lo <= value && value <= self.hi && Parity::of(value).meet(self.parity).is_some()
    }

    /// Are all members of the other one members?
    pub fn includes(self, other: Self) -> bool {
        self.lo <= other.lo && other.hi <= self.hi && (self.parity == Parity::Any || self.parity == other.parity)
    }

    /// The common members; `None` if there are none.
    pub fn meet(self, other: Self) -> Option<Self> {
        let parity = self.parity.meet(other.parity)?;
        Self::new(self.lo.max(other.lo), self.hi.min(other.hi), parity)
    }

    /// The smallest value that includes both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), parity: self.parity.join(other.parity) }
    }

    /// The members less than (`strictly`) or at most the largest member of `other`.
    pub(super) fn below(self, other: Self, strictly: bool) -> Option<Self> {
        let hi = if other.hi == INFINITY { INFINITY } else { other.hi - i128::from(strictly) };
        Self::new(self.lo, self.hi.min(hi), self.parity)
    }

    /// The members greater than (`strictly`) or at least the smallest member of `other`.
    pub(super) fn above(self, other: Self, strictly: bool) -> Option<Self> {
        let lo = if other.lo == MINUS_INFINITY { MINUS_INFINITY } else { other.lo + i128::from(strictly) };
        Self::new(self.lo.max(lo), self.hi, self.parity)
    }

    /// The members that differ from one member of `other`, as far as bounds can say: only an exact `other` takes
    /// something away, and only at an end.
    pub(super) fn apart_from(self, other: Self) -> Option<Self> {
        if other.lo != other.hi {
            return Some(self);
        }
        let lo = self.lo + i128::from(self.lo == other.lo);
        let hi = self.hi - i128::from(self.hi == other.lo);
        Self::new(lo, hi, self.parity)
    }

    /// Can 0 be a member, and can something else?
    pub(super) fn zero_or_not(self) -> (bool, bool) {
        (self.contains(0), self.as_exact() != Some(0))
    }
}

/// Is the bound infinite?
pub(super) fn is_infinite(bound: i128) -> bool {
    bound == MINUS_INFINITY || bound == INFINITY
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lo == self.hi {
            return write!(f, "{}", self.lo);
        }
        let parity = match self.parity {
            Parity::Any => "",
            Parity::Even => "even ",
            Parity::Odd => "odd ",
        };
        match (self.lo == MINUS_INFINITY, self.hi == INFINITY) {
            (true, true) => write!(f, "{parity}any"),
            (true, false) => write!(f, "{parity}..={}", self.hi),
            (false, true) => write!(f, "{parity}{}..", self.lo),
            (false, false) => write!(f, "{parity}{}..={}", self.lo, self.hi),
        }
    }
}
