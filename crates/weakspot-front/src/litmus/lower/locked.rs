//! Instructions with a `LOCK` prefix: one read-modify-write event that drains the whole buffer.

use weakspot_model::ids::{Loc, Reg};
use weakspot_model::ir::{BinaryOp, Instr, Operand as Value, RmwOp, UnaryOp};

use super::super::context::Mistake;
use super::super::instruction::{Instruction, Operand, Operands};
use super::super::mnemonic::Mnemonic;
use super::operands::{bad_lock, can_be_locked, no_negative, one_operand, two_operands, unsupported_lock};
use super::{Destination, Lowering};

impl<'a> Lowering<'_, 'a> {
    /// Instructions with a `LOCK` prefix.
    pub(super) fn locked(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        let loc = match (instruction.mnemonic, instruction.operands) {
            (Mnemonic::Exchange, _) => return self.exchange(instruction),
            (mnemonic, Operands::One(Operand::Memory(loc)) | Operands::Two(Operand::Memory(loc), _))
                if can_be_locked(mnemonic) =>
            {
                loc
            }
            _ => return Err(bad_lock(instruction)),
        };
        match instruction.mnemonic {
            Mnemonic::Arithmetic(op) => self.locked_arithmetic(instruction, loc, op),
            Mnemonic::Step(by) => {
                one_operand(instruction)?;
                self.locked_add(loc, Value::Const(by));
                Ok(())
            }
            Mnemonic::ExchangeAdd => self.locked_exchange_add(instruction, loc),
            Mnemonic::CompareExchange => self.locked_compare_exchange(instruction, loc),
            _ => Err(unsupported_lock(instruction)),
        }
    }

    fn locked_arithmetic(&mut self, instruction: &Instruction<'a>, loc: Loc, op: BinaryOp) -> Result<(), Mistake> {
        let (_, source) = two_operands(instruction)?;
        let value = self.read(source)?;
        match op {
            BinaryOp::Add => self.locked_add(loc, value),
            BinaryOp::Sub => self.locked_subtract(instruction, loc, value)?,
            BinaryOp::BitAnd | BinaryOp::BitOr => {
                let rmw = if op == BinaryOp::BitAnd { RmwOp::And(value) } else { RmwOp::Or(value) };
                let old = self.old_for_flags();
                self.rmw(old, loc, rmw);
                if let Some(old) = old {
                    self.binary(old, op, Value::Reg(old), value);
                    self.set_flags(Value::Reg(old), Value::Const(0));
                }
            }
            _ => return Err(unsupported_lock(instruction)),
        }
        Ok(())
    }

    fn locked_add(&mut self, loc: Loc, value: Value) {
        let old = self.old_for_flags();
        self.rmw(old, loc, RmwOp::Add(value));
        if let Some(old) = old {
            self.binary(old, BinaryOp::Add, Value::Reg(old), value);
            self.set_flags(Value::Reg(old), Value::Const(0));
        }
    }

    fn locked_subtract(&mut self, instruction: &Instruction<'a>, loc: Loc, value: Value) -> Result<(), Mistake> {
        let negated = match value {
            Value::Const(constant) => Value::Const(constant.checked_neg().ok_or_else(|| no_negative(instruction))?),
            Value::Reg(_) => {
                let dst = self.thread.temporary();
                self.thread.emit(Instr::Unary { dst, op: UnaryOp::Neg, value });
                Value::Reg(dst)
            }
        };
        let old = self.old_for_flags();
        self.rmw(old, loc, RmwOp::Add(negated));
        if let Some(old) = old {
            self.set_flags(Value::Reg(old), value);
        }
        Ok(())
    }

    /// A temporary for the old value, if the flags need it.
    fn old_for_flags(&mut self) -> Option<Reg> {
        self.flags.registers.is_some().then(|| self.thread.temporary())
    }

    fn locked_exchange_add(&mut self, instruction: &Instruction<'a>, loc: Loc) -> Result<(), Mistake> {
        let (_, source) = two_operands(instruction)?;
        let source = self.source_register(instruction, source)?;
        let added = self.old_for_flags();
        if let Some(added) = added {
            self.write(Destination::Register(added), Value::Reg(source));
        }
        self.rmw(Some(source), loc, RmwOp::Add(Value::Reg(source)));
        if let Some(added) = added {
            self.binary(added, BinaryOp::Add, Value::Reg(source), Value::Reg(added));
            self.set_flags(Value::Reg(added), Value::Const(0));
        }
        Ok(())
    }

    /// When it succeeds the old value equals the accumulator, so the accumulator takes the old value either way.
    fn locked_compare_exchange(&mut self, instruction: &Instruction<'a>, loc: Loc) -> Result<(), Mistake> {
        let (_, source) = two_operands(instruction)?;
        let accumulator = self.accumulator(instruction, source);
        let source = self.source_register(instruction, source)?;
        let op = RmwOp::CompareExchange { old: Value::Reg(accumulator), new: Value::Reg(source) };
        match self.old_for_flags() {
            None => self.rmw(Some(accumulator), loc, op),
            Some(old) => {
                self.rmw(Some(old), loc, op);
                self.set_flags(Value::Reg(accumulator), Value::Reg(old));
                self.write(Destination::Register(accumulator), Value::Reg(old));
            }
        }
        Ok(())
    }
}
