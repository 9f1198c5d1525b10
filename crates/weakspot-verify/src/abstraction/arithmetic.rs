//! Arithmetic and comparisons on abstract values: the operators of the language on [`Value`]s.
//!
//! Every function covers the language's own ([`weakspot_model::local`]): the result of concrete operands is a member of
//! the result of values that contain them, and an error of concrete operands is among the errors. Exact operands are
//! handed to the language's functions themselves.
//!
//! A comparison of values may hold for some members and not for others. [`compare`] then gives both cases, each with
//! its operands narrowed to the members for which it can come out that way.

use weakspot_model::ir::{BinaryOp, UnaryOp};
use weakspot_model::local;
use weakspot_model::problem::FaultKind;

use super::value::{Parity, Value, is_infinite};

/// What an operator can come to: a value (`None`: never one) and errors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Computed {
    pub(super) value: Option<Value>,
    pub(super) faults: Vec<FaultKind>,
}

impl Computed {
    fn from_exact(result: Result<i64, FaultKind>) -> Self {
        match result {
            Ok(value) => Self { value: Some(Value::exact(value)), faults: Vec::new() },
            Err(fault) => Self { value: None, faults: vec![fault] },
        }
    }

    fn value(value: Option<Value>) -> Self {
        Self { value, faults: Vec::new() }
    }

    /// Bounds that may have left 64 bits.
    fn bounded(lo: i128, hi: i128, parity: Parity) -> Self {
        let (min, max) = (i128::from(i64::MIN), i128::from(i64::MAX));
        let below = !is_infinite(lo) && lo < min;
        let above = !is_infinite(hi) && hi > max;
        let lo = if is_infinite(lo) { lo } else { lo.clamp(min, max + 1) };
        let hi = if is_infinite(hi) { hi } else { hi.clamp(min - 1, max) };
        let faults = if below || above { vec![FaultKind::Overflow] } else { Vec::new() };
        Self { value: Value::new(lo, hi, parity), faults }
    }

    fn or_fault(mut self, fault: FaultKind) -> Self {
        self.faults.push(fault);
        self
    }
}

/// One way a comparison can come out: its result, and the operands for which it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) holds: bool,
    pub(super) left: Value,
    pub(super) right: Value,
}

/// `-a`. (`!a` is the comparison with 0.)
pub(super) fn negate(value: Value) -> Computed {
    if let Some(exact) = value.as_exact() {
        return Computed::from_exact(local::unary(UnaryOp::Neg, exact));
    }
    Computed::bounded(minus(value.hi()), minus(value.lo()), value.parity())
}

/// All binary operators that are not comparisons.
pub(super) fn binary(op: BinaryOp, left: Value, right: Value) -> Computed {
    if let (Some(a), Some(b)) = (left.as_exact(), right.as_exact()) {
        return Computed::from_exact(local::binary(op, a, b));
    }
    match op {
        BinaryOp::Add => {
            let parity = left.parity().plus(right.parity());
            Computed::bounded(plus(left.lo(), right.lo()), plus(left.hi(), right.hi()), parity)
        }
        BinaryOp::Sub => {
            let parity = left.parity().plus(right.parity());
            Computed::bounded(plus(left.lo(), minus(right.hi())), plus(left.hi(), minus(right.lo())), parity)
        }
        BinaryOp::Mul => product(left, right),
        BinaryOp::Div => quotient(left, right),
        BinaryOp::Rem => remainder(left, right),
        BinaryOp::BitAnd => bit_and(left, right),
        BinaryOp::BitOr => bits(left, right, left.parity().or(right.parity())),
        BinaryOp::BitXor => bits(left, right, left.parity().plus(right.parity())),
        BinaryOp::Shl | BinaryOp::Shr => shift(op, left, right),
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
            Computed::value(Value::between(0, 1))
        }
    }
}

/// The ways a comparison can come out, at least one; `None` for operators that are none.
pub(super) fn compare(op: BinaryOp, left: Value, right: Value) -> Option<Vec<Case>> {
    let (holds, fails) = match op {
        BinaryOp::Eq => (equal(left, right), different(left, right)),
        BinaryOp::Ne => (different(left, right), equal(left, right)),
        BinaryOp::Lt => (less(left, right, true), flip(less(right, left, false))),
        BinaryOp::Le => (less(left, right, false), flip(less(right, left, true))),
        BinaryOp::Gt => (flip(less(right, left, true)), less(left, right, false)),
        BinaryOp::Ge => (flip(less(right, left, false)), less(left, right, true)),
        _ => return None,
    };
    let case =
        |holds: bool, operands: Option<(Value, Value)>| operands.map(|(left, right)| Case { holds, left, right });
    Some(case(true, holds).into_iter().chain(case(false, fails)).collect())
}

fn equal(left: Value, right: Value) -> Option<(Value, Value)> {
    left.meet(right).map(|common| (common, common))
}

fn different(left: Value, right: Value) -> Option<(Value, Value)> {
    if left.as_exact().is_some() && left == right {
        return None;
    }
    Some((left.apart_from(right)?, right.apart_from(left)?))
}

/// `left < right` if `strictly`, else `left <= right`.
fn less(left: Value, right: Value, strictly: bool) -> Option<(Value, Value)> {
    Some((left.below(right, strictly)?, right.above(left, strictly)?))
}

fn flip(pair: Option<(Value, Value)>) -> Option<(Value, Value)> {
    pair.map(|(a, b)| (b, a))
}

fn minus(bound: i128) -> i128 {
    match bound {
        i128::MIN => i128::MAX,
        i128::MAX => i128::MIN,
        finite => -finite,
    }
}

/// The sum of two lower or of two upper bounds.
fn plus(a: i128, b: i128) -> i128 {
    if is_infinite(a) {
        a
    } else if is_infinite(b) {
        b
    } else {
        a + b
    }
}

fn times(a: i128, b: i128) -> i128 {
    if a == 0 || b == 0 {
        return 0;
    }
    if is_infinite(a) || is_infinite(b) {
        return if (a > 0) == (b > 0) { i128::MAX } else { i128::MIN };
    }
    a * b
}

fn product(left: Value, right: Value) -> Computed {
    let corners = [
        times(left.lo(), right.lo()),
        times(left.lo(), right.hi()),
        times(left.hi(), right.lo()),
        times(left.hi(), right.hi()),
    ];
    let (lo, hi) = corners.iter().fold((i128::MAX, i128::MIN), |(lo, hi), &corner| (lo.min(corner), hi.max(corner)));
    Computed::bounded(lo, hi, left.parity().times(right.parity()))
}

/// Division rounds to zero: it moves towards 0, the further the larger a positive divisor is.
fn quotient(left: Value, right: Value) -> Computed {
    if right.lo() > 0 {
        let (least, most) = (right.lo(), right.hi());
        let lo = divided(left.lo(), if left.lo() < 0 { least } else { most });
        let hi = divided(left.hi(), if left.hi() < 0 { most } else { least });
        return Computed::value(Value::new(lo, hi, Parity::Any));
    }
    let computed = if left.contains(i64::MIN) && right.contains(-1) && !is_infinite(left.lo()) {
        Computed::value(Some(Value::ANY)).or_fault(FaultKind::Overflow)
    } else {
        // A quotient is never further from 0 than its dividend.
        let furthest = left.lo().min(minus(left.hi())).min(0);
        Computed::value(Value::new(furthest, minus(furthest), Parity::Any))
    };
    if right.contains(0) { computed.or_fault(FaultKind::DivisionByZero) } else { computed }
}

/// A bound divided by a positive bound.
fn divided(bound: i128, by: i128) -> i128 {
    match (is_infinite(bound), is_infinite(by)) {
        (true, _) => bound,
        (false, true) => 0,
        (false, false) => bound / by,
    }
}

/// The remainder has the sign of the dividend, is smaller than the divisor and not larger than the dividend.
fn remainder(left: Value, right: Value) -> Computed {
    let largest = right.hi().max(minus(right.lo()));
    let largest = if is_infinite(largest) { i128::MAX } else { largest - 1 };
    let hi = left.hi().max(0).min(largest);
    let lo = left.lo().min(0).max(minus(largest));
    let parity = if right.parity() == Parity::Even { left.parity() } else { Parity::Any };
    let mut computed = Computed::value(if largest < 0 { None } else { Value::new(lo, hi, parity) });
    if left.lo() >= 0 && right.lo() > left.hi() {
        computed.value = Some(left);
    }
    if !is_infinite(left.lo()) && left.contains(i64::MIN) && right.contains(-1) {
        computed = computed.or_fault(FaultKind::Overflow);
    }
    if right.contains(0) { computed.or_fault(FaultKind::DivisionByZero) } else { computed }
}

fn bit_and(left: Value, right: Value) -> Computed {
    let parity = left.parity().times(right.parity());
    let hi = match (left.lo() >= 0, right.lo() >= 0) {
        (true, true) => left.hi().min(right.hi()),
        (true, false) => left.hi(),
        (false, true) => right.hi(),
        (false, false) => return Computed::value(Some(Value::of_parity(parity))),
    };
    Computed::value(Value::new(0, hi, parity))
}

/// Bitwise or and exclusive or: where both are non-negative, so is the result, and below the next power of two.
fn bits(left: Value, right: Value, parity: Parity) -> Computed {
    let hi = left.hi().max(right.hi());
    if left.lo() < 0 || right.lo() < 0 {
        return Computed::value(Some(Value::of_parity(parity)));
    }
    let hi = if is_infinite(hi) { hi } else { (1_i128 << (128 - hi.leading_zeros())) - 1 };
    Computed::value(Value::new(0, hi, parity))
}

fn shift(op: BinaryOp, left: Value, right: Value) -> Computed {
    let Some(amount) = right.as_exact() else {
        let amount = right.lowest().filter(|&low| low < 0).or(right.highest()).unwrap_or(i64::MAX);
        return Computed { value: Some(Value::ANY), faults: vec![FaultKind::Overflow, FaultKind::Shift { amount }] };
    };
    match u32::try_from(amount) {
        Ok(amount @ 0..64) if op == BinaryOp::Shl => {
            let by = Value::new(1_i128 << amount, 1_i128 << amount, Parity::Any);
            by.map_or_else(Computed::default, |by| product(left, by))
        }
        Ok(amount @ 0..64) => {
            let shifted = |bound: i128| if is_infinite(bound) { bound } else { bound >> amount };
            Computed::value(Value::new(shifted(left.lo()), shifted(left.hi()), Parity::Any))
        }
        _ => Computed { value: None, faults: vec![FaultKind::Shift { amount }] },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    const OPERATORS: [BinaryOp; 16] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Rem,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Gt,
        BinaryOp::Ge,
        BinaryOp::BitAnd,
        BinaryOp::BitOr,
        BinaryOp::BitXor,
        BinaryOp::Shl,
        BinaryOp::Shr,
    ];

    /// Small integers, and some at the ends of 64 bits.
    fn integer() -> impl Strategy<Value = i64> {
        prop_oneof![
            4 => -9_i64..=9,
            1 => (0_i64..3).prop_map(|n| i64::MAX - n),
            1 => (0_i64..3).prop_map(|n| i64::MIN + n),
            1 => any::<i64>()
        ]
    }

    /// A value, and a member of it.
    fn value() -> impl Strategy<Value = (Value, i64)> {
        (integer(), integer(), integer(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            |(a, b, c, no_low, no_high, parity)| {
                let mut ends = [a, b, c];
                ends.sort_unstable();
                let [lo, member, hi] = ends;
                let parity = if parity { Value::exact(member).parity() } else { Parity::Any };
                let lo = if no_low { i128::MIN } else { lo.into() };
                let hi = if no_high { i128::MAX } else { hi.into() };
                (Value::new(lo, hi, parity).unwrap(), member)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn the_result_of_members_is_a_member_of_the_result((left, a) in value(), (right, b) in value(), op in 0..16_usize) {
            let op = OPERATORS[op];
            prop_assert!(left.contains(a) && right.contains(b));
            let computed = binary(op, left, right);
            match local::binary(op, a, b) {
                Ok(result) => prop_assert!(computed.value.is_some_and(|value| value.contains(result)), "{computed:?}"),
                // An infinite bound is a mathematical integer: it does not overflow.
                Err(FaultKind::Overflow) if left.highest().is_none() || left.lowest().is_none() => {}
                Err(FaultKind::Overflow) if right.highest().is_none() || right.lowest().is_none() => {}
                Err(FaultKind::Shift { .. }) => {
                    let reported = computed.faults.iter().any(|fault| matches!(fault, FaultKind::Shift { .. }));
                    prop_assert!(reported);
                }
                Err(fault) => prop_assert!(computed.faults.contains(&fault), "{computed:?}"),
            }
        }

        #[test]
        fn comparisons_keep_the_members_they_are_true_for((left, a) in value(), (right, b) in value(), op in 0..16_usize) {
            let op = OPERATORS[op];
            if let Some(cases) = compare(op, left, right) {
                let holds = local::binary(op, a, b).unwrap() == 1;
                let kept = |case: &Case| case.holds == holds && case.left.contains(a) && case.right.contains(b);
                prop_assert!(cases.iter().any(kept), "{cases:?}");
                prop_assert!(cases.iter().all(|case| left.includes(case.left) && right.includes(case.right)));
            }
        }

        #[test]
        fn negation_covers_its_members((value, a) in value()) {
            let computed = negate(value);
            match local::unary(UnaryOp::Neg, a) {
                Ok(result) => prop_assert!(computed.value.is_some_and(|value| value.contains(result))),
                Err(fault) => prop_assert!(computed.faults.contains(&fault) || value.lowest().is_none()),
            }
        }

        #[test]
        fn meet_and_join_are_bounds((left, a) in value(), (right, b) in value()) {
            let join = left.join(right);
            prop_assert!(join.includes(left) && join.includes(right) && join.contains(a) && join.contains(b));
            prop_assert_eq!(left.meet(right).is_some_and(|meet| meet.contains(a)), right.contains(a));
        }
    }

    #[test]
    fn parity_decides_what_remains_of_two() {
        let odd = Value::new(1, i128::MAX, Parity::Odd).unwrap();
        assert_eq!(binary(BinaryOp::Rem, odd, Value::exact(2)).value, Some(Value::exact(1)));
        assert_eq!(
            binary(BinaryOp::BitAnd, Value::of_parity(Parity::Odd), Value::exact(1)).value,
            Some(Value::exact(1))
        );
        let even = Value::of_parity(Parity::Even);
        assert_eq!(binary(BinaryOp::Rem, even, Value::exact(2)).value, Some(Value::exact(0)));
        assert_eq!(compare(BinaryOp::Eq, even, Value::of_parity(Parity::Odd)).unwrap().len(), 1);
    }
}
