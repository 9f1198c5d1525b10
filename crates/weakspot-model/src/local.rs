//! Thread-local execution: from one event to the next.
//!
//! A thread rests at a [`Pause`]: an event with all its operands resolved, a choice, the end of a critical block, or
//! its end. [`resume`] gives it the result of that pause and runs the local instructions up to the next one ("local
//! computation belongs to the event before it"). Which event comes next, and with which location and value, depends
//! on the registers alone: engines may cache it.
//!
//! # Loops without events
//! `loop { }` never reaches an event. [`Pause::Spin`] is where such a thread rests: it has not ended, will never do
//! anything again, and, since spinning is not deadlock, keeps the others from being deadlocked. It is recognised
//! exactly: the same instruction with the same registers was met again. A loop that keeps changing its registers
//! without an event for [`MAX_LOCAL_STEPS`] is a program error.

use crate::ids::{CondvarId, Loc, MutexId, Pc, Reg, ThreadId};
use crate::ir::{BinaryOp, FenceKind, Instr, Location, Operand, Place, RmwOp, Thread, UnaryOp};
use crate::problem::{Fault, FaultKind};

/// More local instructions than this between two events are a program error.
pub const MAX_LOCAL_STEPS: u64 = 20_000_000;

/// The most values one `choose` may range over.
pub const MAX_CHOICES: i64 = 65_536;

/// After this many local instructions, look for a loop without effect.
const LOOK_FOR_CYCLE_AFTER: u64 = 4_096;

/// Where a thread is and what its registers hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalState {
    /// The instruction it rests at.
    pub pc: Pc,
    /// One value for each of the thread's registers.
    pub registers: Vec<i64>,
}

impl Default for LocalState {
    /// The first instruction of a thread without registers.
    fn default() -> Self {
        Self { pc: Pc(0), registers: Vec::new() }
    }
}

/// What a thread is about to do, operands resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are those of the instruction of the same name")]
pub enum Pause {
    /// Event: read a cell; resume with its value.
    Load { loc: Loc },
    /// Event: write a cell. The value is within the declared range.
    Store { loc: Loc, value: i64 },
    /// Event: see [`rmw`]; resume with its result.
    Rmw { loc: Loc, op: RmwOp<i64>, drains_all: bool },
    /// Event: a fence.
    Fence(FenceKind),
    /// Event: acquire.
    Lock(MutexId),
    /// Event: release.
    Unlock(MutexId),
    /// Event: release and block.
    Wait { condvar: CondvarId, mutex: MutexId },
    /// Event: wake.
    Notify { condvar: CondvarId, all: bool },
    /// Resume with any value of `lo..=hi`.
    Choose { lo: i64, hi: i64 },
    /// Leave the innermost critical block.
    LeaveCritical,
    /// `final` only: resume with another thread's register.
    ThreadRegister { thread: ThreadId, register: Reg },
    /// Computes for ever without effect.
    Spin,
    /// Has ended.
    End,
}

/// What came of running a thread up to its next pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// It rests.
    Paused {
        /// At what.
        pause: Pause,
        /// Did it jump backwards on the way? Every cycle of a thread's code does somewhere.
        jumped_back: bool,
    },
    /// An `assume` was false: this is not an execution.
    Pruned,
}

/// Runs a thread from its first instruction to its first pause.
pub fn start(thread: &Thread, locations: &[Location]) -> (LocalState, Result<Advance, Fault>) {
    let mut local = LocalState { pc: Pc(0), registers: vec![0; thread.registers.len()] };
    let advance = run(thread, locations, &mut local);
    (local, advance)
}

/// Gives the pause a thread rests at its result and runs on to the next pause. The result is ignored by pauses that
/// have none.
pub fn resume(thread: &Thread, locations: &[Location], local: &mut LocalState, result: i64) -> Result<Advance, Fault> {
    let dst = match thread.code[local.pc.index()] {
        Instr::Load { dst, .. } | Instr::Choose { dst, .. } | Instr::ThreadRegister { dst, .. } => Some(dst),
        Instr::Rmw { dst, .. } => dst,
        _ => None,
    };
    if let Some(dst) = dst {
        local.registers[dst.index()] = result;
    }
    local.pc.0 += 1;
    run(thread, locations, local)
}

/// Applies an atomic to the value of its cell: what the program gets, and what is written, if anything.
///
/// Range and overflow errors are the caller's instruction's; `loc` is needed for the message only.
pub fn rmw(op: RmwOp<i64>, current: i64, loc: Loc, locations: &[Location]) -> Result<(i64, Option<i64>), FaultKind> {
    let (result, written) = match op {
        RmwOp::Cas { old, new } if old == current => (1, Some(new)),
        RmwOp::Cas { .. } => (0, None),
        RmwOp::CompareExchange { old, new } => (current, (old == current).then_some(new)),
        RmwOp::Swap(value) => (current, Some(value)),
        RmwOp::Add(delta) => (current, Some(current.checked_add(delta).ok_or(FaultKind::Overflow)?)),
        RmwOp::Or(value) => (current, Some(current | value)),
        RmwOp::And(value) => (current, Some(current & value)),
    };
    if let Some(value) = written {
        check_range(locations, loc, value)?;
    }
    Ok((result, written))
}

fn run(thread: &Thread, locations: &[Location], local: &mut LocalState) -> Result<Advance, Fault> {
    let mut jumped_back = false;
    let mut steps = 0_u64;
    let mut seen: Option<LocalState> = None;
    loop {
        let pc = local.pc;
        let fault = |kind| Fault { pc, kind };
        let instr = &thread.code[pc.index()];
        match step(instr, local).map_err(fault)? {
            Local::Went => {}
            Local::Pauses => {
                let pause = pause_at(instr, &local.registers, locations).map_err(fault)?;
                return Ok(Advance::Paused { pause, jumped_back });
            }
            Local::Pruned => return Ok(Advance::Pruned),
        }
        if local.pc <= pc {
            jumped_back = true;
            // Brent: keep one state, compare with it, and move it on at powers of two.
            if seen.as_ref().is_some_and(|seen| seen == local) {
                return Ok(Advance::Paused { pause: Pause::Spin, jumped_back });
            }
            if steps >= LOOK_FOR_CYCLE_AFTER && (seen.is_none() || steps.is_power_of_two()) {
                seen = Some(local.clone());
            }
            steps += 1;
        }
        if steps > MAX_LOCAL_STEPS {
            return Err(fault(FaultKind::LocalLoop));
        }
    }
}

/// What a local instruction did.
enum Local {
    Went,
    /// Nothing: it is not a local one.
    Pauses,
    Pruned,
}

#[inline]
fn value(registers: &[i64], operand: Operand) -> i64 {
    match operand {
        Operand::Const(value) => value,
        Operand::Reg(reg) => registers[reg.index()],
    }
}

fn resolve(registers: &[i64], place: Place) -> Result<Loc, FaultKind> {
    match place {
        Place::Fixed(loc) => Ok(loc),
        Place::Indexed { base, len, index } => {
            let index = value(registers, index);
            match u32::try_from(index) {
                Ok(offset) if offset < len => Ok(Loc(base.0 + offset)),
                _ => Err(FaultKind::Index { index, len }),
            }
        }
    }
}

fn check_range(locations: &[Location], loc: Loc, value: i64) -> Result<(), FaultKind> {
    match locations[loc.index()].range {
        Some((lo, hi)) if value < lo || value > hi => Err(FaultKind::Range { loc, value }),
        _ => Ok(()),
    }
}

/// The pause that an instruction is which is not a local one.
fn pause_at(instr: &Instr, registers: &[i64], locations: &[Location]) -> Result<Pause, FaultKind> {
    let get = |operand| value(registers, operand);
    Ok(match *instr {
        Instr::Load { place, .. } => Pause::Load { loc: resolve(registers, place)? },
        Instr::Store { place, value } => {
            let (loc, value) = (resolve(registers, place)?, get(value));
            check_range(locations, loc, value)?;
            Pause::Store { loc, value }
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
            Pause::Rmw { loc: resolve(registers, place)?, op, drains_all }
        }
        Instr::Fence(kind) => Pause::Fence(kind),
        Instr::Lock(mutex) => Pause::Lock(mutex),
        Instr::Unlock(mutex) => Pause::Unlock(mutex),
        Instr::Wait { condvar, mutex } => Pause::Wait { condvar, mutex },
        Instr::Notify { condvar, all } => Pause::Notify { condvar, all },
        Instr::Choose { lo, hi, .. } => {
            let (lo, hi) = (get(lo), get(hi));
            if lo > hi || hi.checked_sub(lo).is_none_or(|width| width >= MAX_CHOICES) {
                return Err(FaultKind::Choice { lo, hi });
            }
            Pause::Choose { lo, hi }
        }
        Instr::LeaveCritical => Pause::LeaveCritical,
        Instr::ThreadRegister { thread, register, .. } => Pause::ThreadRegister { thread, register },
        Instr::End => Pause::End,
        _ => unreachable!("invariant: local instructions do not pause"),
    })
}

/// Executes an instruction if it is a local one.
#[inline]
fn step(instr: &Instr, local: &mut LocalState) -> Result<Local, FaultKind> {
    let get = |operand| value(&local.registers, operand);
    let next = Pc(local.pc.0 + 1);
    let (assign, next) = match *instr {
        Instr::Set { dst, value } => (Some((dst, get(value))), next),
        Instr::Unary { dst, op, value } => (Some((dst, unary(op, get(value))?)), next),
        Instr::Binary { dst, op, left, right } => (Some((dst, binary(op, get(left), get(right))?)), next),
        Instr::Jump { target } => (None, target),
        Instr::Branch { cond, then, otherwise } => (None, if get(cond) != 0 { then } else { otherwise }),
        Instr::Assert { cond, message } => {
            if get(cond) == 0 {
                return Err(FaultKind::Assertion { message });
            }
            (None, next)
        }
        Instr::Assume { cond } => {
            if get(cond) == 0 {
                return Ok(Local::Pruned);
            }
            (None, next)
        }
        Instr::EnterCritical => (None, next),
        _ => return Ok(Local::Pauses),
    };
    if let Some((dst, value)) = assign {
        local.registers[dst.index()] = value;
    }
    local.pc = next;
    Ok(Local::Went)
}

/// Evaluates a unary operator.
pub fn unary(op: UnaryOp, value: i64) -> Result<i64, FaultKind> {
    match op {
        UnaryOp::Neg => value.checked_neg().ok_or(FaultKind::Overflow),
        UnaryOp::Not => Ok(i64::from(value == 0)),
    }
}

/// Evaluates a binary operator.
#[inline]
pub fn binary(op: BinaryOp, left: i64, right: i64) -> Result<i64, FaultKind> {
    let overflow = FaultKind::Overflow;
    let shift = || u32::try_from(right).ok().filter(|&n| n < 64).ok_or(FaultKind::Shift { amount: right });
    Ok(match op {
        BinaryOp::Add => left.checked_add(right).ok_or(overflow)?,
        BinaryOp::Sub => left.checked_sub(right).ok_or(overflow)?,
        BinaryOp::Mul => left.checked_mul(right).ok_or(overflow)?,
        BinaryOp::Div | BinaryOp::Rem if right == 0 => return Err(FaultKind::DivisionByZero),
        BinaryOp::Div => left.checked_div(right).ok_or(overflow)?,
        BinaryOp::Rem => left.checked_rem(right).ok_or(overflow)?,
        BinaryOp::Eq => i64::from(left == right),
        BinaryOp::Ne => i64::from(left != right),
        BinaryOp::Lt => i64::from(left < right),
        BinaryOp::Le => i64::from(left <= right),
        BinaryOp::Gt => i64::from(left > right),
        BinaryOp::Ge => i64::from(left >= right),
        BinaryOp::BitAnd => left & right,
        BinaryOp::BitOr => left | right,
        BinaryOp::BitXor => left ^ right,
        BinaryOp::Shl => {
            let amount = shift()?;
            let result = left << amount;
            if result >> amount != left {
                return Err(overflow);
            }
            result
        }
        BinaryOp::Shr => left >> shift()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifting_bits_out_is_an_overflow() {
        assert_eq!(binary(BinaryOp::Shl, 1, 62), Ok(1 << 62));
        assert_eq!(binary(BinaryOp::Shl, 1, 63), Err(FaultKind::Overflow));
        assert_eq!(binary(BinaryOp::Shl, -1, 63), Ok(i64::MIN));
        assert_eq!(binary(BinaryOp::Shl, 1, 64), Err(FaultKind::Shift { amount: 64 }));
        assert_eq!(binary(BinaryOp::Shr, -8, 1), Ok(-4));
    }

    #[test]
    fn division_knows_its_two_errors() {
        assert_eq!(binary(BinaryOp::Div, i64::MIN, -1), Err(FaultKind::Overflow));
        assert_eq!(binary(BinaryOp::Rem, 7, 0), Err(FaultKind::DivisionByZero));
        assert_eq!(binary(BinaryOp::Div, -7, 2), Ok(-3));
    }

    #[test]
    fn a_failed_cas_writes_nothing() {
        let locations = [Location { name: "x".into(), init: 0, range: Some((0, 1)) }];
        assert_eq!(rmw(RmwOp::Cas { old: 1, new: 9 }, 0, Loc(0), &locations), Ok((0, None)));
        assert_eq!(rmw(RmwOp::Swap(9), 0, Loc(0), &locations), Err(FaultKind::Range { loc: Loc(0), value: 9 }));
    }
}
