//! What each x86 instruction becomes.
//!
//! | x86 | program |
//! |---|---|
//! | `MOV` | [`Instr::Load`], [`Instr::Store`] or [`Instr::Set`] |
//! | `XCHG` with memory, anything with `LOCK` | one [`Instr::Rmw`] that drains the whole buffer |
//! | `INC [x]` and the like without `LOCK` | a load, an operation, a store: three places where threads switch |
//! | `MFENCE`, `SFENCE` | a full fence, a store-store fence |
//! | `LFENCE`, `NOP`, `PAUSE` | nothing: loads are in order on all three machines |
//! | `CMP`, `TEST`, arithmetic | the two hidden registers *left* and *right*, if a later instruction looks at flags |
//! | `Jcc`, `SETcc`, `CMOVcc` | a comparison of *left* with *right* |
//!
//! # Flags
//! The flags are kept as the two values whose difference they describe. `CMP a,b`, `SUB a,b`, `NEG b` (with a = 0)
//! and `CMPXCHG` (accumulator and old value) leave exactly that. Other arithmetic leaves its result and 0, which is
//! right for zero and sign, and for carry after `AND`, `OR`, `XOR`, `TEST`, which clear it. After `ADD`, `INC`, `DEC`
//! and `XADD` the carry is not kept, so an unsigned condition there is refused.
//!
//! # Deviations from the processor
//! * A `CMPXCHG` that fails writes nothing; the processor writes the old value back, which no other thread can see.
//! * Arithmetic is on 64 signed bits and overflow is a program error; the processor wraps at the operand size.
//! * `LOCK XOR`, `LOCK NOT` and `LOCK NEG` are refused: the program has no such atomic operation.

mod locked;
mod operands;

use weakspot_model::ids::{Loc, Pc, Reg};
use weakspot_model::ir::{BinaryOp, Instr, Operand as Value, Place, RmwOp, UnaryOp};

use super::context::{Context, Mistake};
use super::instruction::{Instruction, NamedRegister, Operand};
use super::mnemonic::{FlagTest, Mnemonic};
use super::registers::{ACCUMULATOR, MachineRegister, Part, accumulator_name};
use super::thread::{Sites, Statement, ThreadBuilder};
use operands::{
    bad_lock, carry_not_kept, constant_destination, flags_not_set, jump_target, no_operands, one_operand,
    two_in_memory, two_operands, wrong_operands,
};

/// Turns the statements of a thread into its code.
pub(super) fn lower_thread<'a>(thread: &mut ThreadBuilder<'a>, context: &mut Context<'a>, sites: &mut Sites<'a>) {
    let statements = std::mem::take(&mut thread.statements);
    let flags = Flags::plan(&statements, thread);
    if !statements.iter().any(|statement| matches!(statement, Statement::Instruction(_))) {
        let site = sites.add(thread.head, None);
        thread.start_instruction(site);
    }
    let mut lowering = Lowering { thread, context, flags };
    let mut label = None;
    for statement in &statements {
        if lowering.context.is_full() {
            return;
        }
        match statement {
            Statement::Label(name, span) => {
                lowering.thread.define_label(lowering.context, name, *span);
                lowering.flags.at_label();
                label = Some(*name);
            }
            Statement::Instruction(instruction) => {
                let site = sites.add(instruction.span, label.take());
                lowering.thread.start_instruction(site);
                if let Err(diagnostic) = lowering.instruction(instruction) {
                    lowering.context.report(diagnostic.into());
                }
                lowering.flags.after(instruction.mnemonic);
            }
        }
    }
}

/// What is known of the flags while a thread is lowered.
struct Flags {
    /// The hidden registers; `None` if no instruction of the thread looks at flags.
    registers: Option<(Reg, Reg)>,
    /// Has any instruction set them so far?
    set: bool,
    /// Is the carry flag right here?
    carry: bool,
    /// Would it be right after a jump from anywhere?
    carry_everywhere: bool,
}

impl Flags {
    fn plan(statements: &[Statement<'_>], thread: &mut ThreadBuilder<'_>) -> Self {
        let mnemonics = || {
            statements.iter().filter_map(|statement| match statement {
                Statement::Instruction(instruction) => Some(instruction.mnemonic),
                Statement::Label(..) => None,
            })
        };
        let used = mnemonics().any(|mnemonic| mnemonic.flag_test().is_some());
        let carry_everywhere = !mnemonics().any(Mnemonic::loses_carry);
        let registers = used.then(|| (thread.hidden_register(), thread.hidden_register()));
        Self { registers, set: false, carry: carry_everywhere, carry_everywhere }
    }

    fn at_label(&mut self) {
        self.carry = self.carry_everywhere;
    }

    fn after(&mut self, mnemonic: Mnemonic) {
        if mnemonic.sets_flags() {
            self.set = true;
            self.carry = !mnemonic.loses_carry();
        }
    }
}

struct Lowering<'t, 'a> {
    thread: &'t mut ThreadBuilder<'a>,
    context: &'t mut Context<'a>,
    flags: Flags,
}

/// Where a result goes.
#[derive(Clone, Copy)]
enum Destination {
    Register(Reg),
    Memory(Loc),
}

impl<'a> Lowering<'_, 'a> {
    fn instruction(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        if instruction.locked {
            return self.locked(instruction);
        }
        match instruction.mnemonic {
            Mnemonic::Move => self.move_value(instruction),
            Mnemonic::Exchange => self.exchange(instruction),
            Mnemonic::Fence(kind) => {
                no_operands(instruction)?;
                self.thread.emit(Instr::Fence(kind));
                Ok(())
            }
            Mnemonic::Nothing => no_operands(instruction),
            Mnemonic::Gap => {
                no_operands(instruction)?;
                let dst = self.thread.temporary();
                self.thread.emit(Instr::Choose { dst, lo: Value::Const(1), hi: Value::Const(1) });
                Ok(())
            }
            Mnemonic::Arithmetic(op) => self.arithmetic(instruction, op),
            Mnemonic::Step(by) => self.step(instruction, by),
            Mnemonic::Negate => self.negate(instruction),
            Mnemonic::Invert => self.invert(instruction),
            Mnemonic::ExchangeAdd => self.exchange_add(instruction),
            Mnemonic::CompareExchange => self.compare_exchange(instruction),
            Mnemonic::Compare => self.compare(instruction),
            Mnemonic::Test => self.test(instruction),
            Mnemonic::Jump => self.jump(instruction),
            Mnemonic::JumpIf(test) => self.jump_if(instruction, test),
            Mnemonic::SetIf(test) => self.set_if(instruction, test),
            Mnemonic::MoveIf(test) => self.move_if(instruction, test),
        }
    }

    // ---- operands ----

    fn register(&mut self, named: NamedRegister<'a>) -> Reg {
        self.thread.register(self.context, named)
    }

    /// The value of an operand; memory is loaded into a temporary.
    fn read(&mut self, operand: Operand<'a>) -> Result<Value, Mistake> {
        Ok(match operand {
            Operand::Register(named) => Value::Reg(self.register(named)),
            Operand::Immediate(value, _) => Value::Const(value),
            Operand::Memory(loc) => {
                let dst = self.thread.temporary();
                self.thread.emit(Instr::Load { dst, place: Place::Fixed(loc) });
                Value::Reg(dst)
            }
            Operand::Name(name, span) => return Err(super::instruction::unknown_register(name, span)),
        })
    }

    fn destination(&mut self, instruction: &Instruction<'a>, operand: Operand<'a>) -> Result<Destination, Mistake> {
        match operand {
            Operand::Register(named) => Ok(Destination::Register(self.register(named))),
            Operand::Memory(loc) => Ok(Destination::Memory(loc)),
            Operand::Name(name, span) => Err(super::instruction::unknown_register(name, span)),
            Operand::Immediate(_, span) => Err(constant_destination(instruction, span)),
        }
    }

    /// Two operands, of which at most one is in memory, the first of which can be written.
    fn two(&mut self, instruction: &Instruction<'a>) -> Result<(Destination, Operand<'a>), Mistake> {
        let (first, second) = two_operands(instruction)?;
        let destination = self.destination(instruction, first)?;
        Ok((destination, second))
    }

    fn write(&mut self, destination: Destination, value: Value) {
        self.thread.emit(match destination {
            Destination::Register(dst) => Instr::Set { dst, value },
            Destination::Memory(loc) => Instr::Store { place: Place::Fixed(loc), value },
        });
    }

    /// The old value of a destination that is about to be changed.
    fn read_destination(&mut self, destination: Destination) -> Reg {
        match destination {
            Destination::Register(register) => register,
            Destination::Memory(loc) => {
                let dst = self.thread.temporary();
                self.thread.emit(Instr::Load { dst, place: Place::Fixed(loc) });
                dst
            }
        }
    }

    /// Where a result is computed: in the register itself, or in a temporary on its way to memory.
    fn scratch(&mut self, destination: Destination) -> Reg {
        match destination {
            Destination::Register(register) => register,
            Destination::Memory(_) => self.thread.temporary(),
        }
    }

    fn store_scratch(&mut self, destination: Destination, scratch: Reg) {
        if let Destination::Memory(loc) = destination {
            self.thread.emit(Instr::Store { place: Place::Fixed(loc), value: Value::Reg(scratch) });
        }
    }

    fn binary(&mut self, dst: Reg, op: BinaryOp, left: Value, right: Value) {
        self.thread.emit(Instr::Binary { dst, op, left, right });
    }

    fn rmw(&mut self, dst: Option<Reg>, loc: Loc, op: RmwOp) {
        self.thread.emit(Instr::Rmw { dst, place: Place::Fixed(loc), op, drains_all: true });
    }

    // ---- flags ----

    /// The flags now describe `left - right`.
    fn set_flags(&mut self, left: Value, right: Value) {
        if let Some((left_register, right_register)) = self.flags.registers {
            self.thread.emit(Instr::Set { dst: left_register, value: left });
            self.thread.emit(Instr::Set { dst: right_register, value: right });
        }
    }

    /// A temporary that is 1 if the condition holds, else 0.
    fn flag_test(&mut self, instruction: &Instruction<'a>, test: FlagTest) -> Result<Reg, Mistake> {
        let (left, right) = match self.flags.registers {
            Some((left, right)) if self.flags.set => (Value::Reg(left), Value::Reg(right)),
            _ => return Err(flags_not_set(instruction)),
        };
        if test.needs_carry() && !self.flags.carry {
            return Err(carry_not_kept(instruction));
        }
        let dst = self.thread.temporary();
        let (op, unsigned) = comparison(test);
        self.binary(dst, op, left, right);
        if unsigned {
            self.correct_for_signs(dst, left, right);
        }
        Ok(dst)
    }

    /// `a < b` without signs differs from `a < b` with signs exactly if one of the two is negative.
    fn correct_for_signs(&mut self, dst: Reg, left: Value, right: Value) {
        let negative = self.thread.temporary();
        for value in [left, right] {
            self.binary(negative, BinaryOp::Lt, value, Value::Const(0));
            self.binary(dst, BinaryOp::BitXor, Value::Reg(dst), Value::Reg(negative));
        }
    }

    // ---- instructions ----

    fn move_value(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        let (destination, source) = self.two(instruction)?;
        if let (Destination::Register(dst), Operand::Memory(loc)) = (destination, source) {
            self.thread.emit(Instr::Load { dst, place: Place::Fixed(loc) });
            return Ok(());
        }
        let value = self.read(source)?;
        self.write(destination, value);
        Ok(())
    }

    fn exchange(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        match two_operands(instruction)? {
            (Operand::Memory(loc), Operand::Register(named)) | (Operand::Register(named), Operand::Memory(loc)) => {
                let register = self.register(named);
                self.rmw(Some(register), loc, RmwOp::Swap(Value::Reg(register)));
            }
            (Operand::Register(first), Operand::Register(second)) if !instruction.locked => {
                let (first, second) = (self.register(first), self.register(second));
                let saved = self.thread.temporary();
                self.write(Destination::Register(saved), Value::Reg(first));
                self.write(Destination::Register(first), Value::Reg(second));
                self.write(Destination::Register(second), Value::Reg(saved));
            }
            (Operand::Register(_), Operand::Register(_)) => return Err(bad_lock(instruction)),
            (Operand::Name(name, span), _) | (_, Operand::Name(name, span)) => {
                return Err(super::instruction::unknown_register(name, span));
            }
            (Operand::Immediate(_, span), _) | (_, Operand::Immediate(_, span)) => {
                return Err(constant_destination(instruction, span));
            }
            (Operand::Memory(_), Operand::Memory(_)) => return Err(two_in_memory(instruction)),
        }
        Ok(())
    }

    fn arithmetic(&mut self, instruction: &Instruction<'a>, op: BinaryOp) -> Result<(), Mistake> {
        let (destination, source) = self.two(instruction)?;
        let right = self.read(source)?;
        let left = Value::Reg(self.read_destination(destination));
        if op == BinaryOp::Sub {
            self.set_flags(left, right);
        }
        let result = self.scratch(destination);
        self.binary(result, op, left, right);
        self.store_scratch(destination, result);
        if op != BinaryOp::Sub {
            self.set_flags(Value::Reg(result), Value::Const(0));
        }
        Ok(())
    }

    fn step(&mut self, instruction: &Instruction<'a>, by: i64) -> Result<(), Mistake> {
        let destination = self.destination(instruction, one_operand(instruction)?)?;
        let old = Value::Reg(self.read_destination(destination));
        let result = self.scratch(destination);
        self.binary(result, BinaryOp::Add, old, Value::Const(by));
        self.store_scratch(destination, result);
        self.set_flags(Value::Reg(result), Value::Const(0));
        Ok(())
    }

    fn negate(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        let destination = self.destination(instruction, one_operand(instruction)?)?;
        let old = Value::Reg(self.read_destination(destination));
        self.set_flags(Value::Const(0), old);
        let result = self.scratch(destination);
        self.thread.emit(Instr::Unary { dst: result, op: UnaryOp::Neg, value: old });
        self.store_scratch(destination, result);
        Ok(())
    }

    fn invert(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        let destination = self.destination(instruction, one_operand(instruction)?)?;
        let old = Value::Reg(self.read_destination(destination));
        let result = self.scratch(destination);
        self.binary(result, BinaryOp::BitXor, old, Value::Const(-1));
        self.store_scratch(destination, result);
        Ok(())
    }

    fn exchange_add(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        let (destination, source) = self.two(instruction)?;
        let source = self.source_register(instruction, source)?;
        let old = self.read_destination(destination);
        let sum = self.thread.temporary();
        self.binary(sum, BinaryOp::Add, Value::Reg(old), Value::Reg(source));
        match destination {
            Destination::Register(register) => {
                self.write(Destination::Register(source), Value::Reg(register));
                self.write(destination, Value::Reg(sum));
            }
            Destination::Memory(_) => {
                self.write(destination, Value::Reg(sum));
                self.write(Destination::Register(source), Value::Reg(old));
            }
        }
        self.set_flags(Value::Reg(sum), Value::Const(0));
        Ok(())
    }

    /// `if accumulator == destination then destination = source else accumulator = destination`.
    fn compare_exchange(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        let (destination, source) = self.two(instruction)?;
        let accumulator = self.accumulator(instruction, source);
        let source = self.source_register(instruction, source)?;
        let old = self.read_destination(destination);
        self.set_flags(Value::Reg(accumulator), Value::Reg(old));
        let equal = self.thread.temporary();
        self.binary(equal, BinaryOp::Eq, Value::Reg(accumulator), Value::Reg(old));
        let branch = self.thread.here().index();
        let at = |offset: usize| Pc::new(branch + offset);
        self.thread.emit(Instr::Branch { cond: Value::Reg(equal), then: at(1), otherwise: at(3) });
        self.write(destination, Value::Reg(source));
        self.thread.emit(Instr::Jump { target: at(4) });
        self.write(Destination::Register(accumulator), Value::Reg(old));
        Ok(())
    }

    fn compare(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        let (left, right) = two_operands(instruction)?;
        let left = self.read(left)?;
        let right = self.read(right)?;
        self.set_flags(left, right);
        Ok(())
    }

    fn test(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        let (left, right) = two_operands(instruction)?;
        let left = self.read(left)?;
        let right = self.read(right)?;
        let result = self.thread.temporary();
        self.binary(result, BinaryOp::BitAnd, left, right);
        self.set_flags(Value::Reg(result), Value::Const(0));
        Ok(())
    }

    fn jump(&mut self, instruction: &Instruction<'a>) -> Result<(), Mistake> {
        let (name, span) = jump_target(instruction)?;
        self.thread.jump_to(self.thread.here(), name, span);
        self.thread.emit(Instr::Jump { target: Pc::new(0) });
        Ok(())
    }

    fn jump_if(&mut self, instruction: &Instruction<'a>, test: FlagTest) -> Result<(), Mistake> {
        let (name, span) = jump_target(instruction)?;
        let holds = self.flag_test(instruction, test)?;
        let pc = self.thread.here();
        self.thread.jump_to(pc, name, span);
        let next = Pc::new(pc.index() + 1);
        self.thread.emit(Instr::Branch { cond: Value::Reg(holds), then: next, otherwise: next });
        Ok(())
    }

    fn set_if(&mut self, instruction: &Instruction<'a>, test: FlagTest) -> Result<(), Mistake> {
        let destination = self.destination(instruction, one_operand(instruction)?)?;
        let holds = self.flag_test(instruction, test)?;
        self.write(destination, Value::Reg(holds));
        Ok(())
    }

    fn move_if(&mut self, instruction: &Instruction<'a>, test: FlagTest) -> Result<(), Mistake> {
        let (destination, source) = self.two(instruction)?;
        let Destination::Register(_) = destination else {
            return Err(wrong_operands(instruction, "its first operand must be a register"));
        };
        let value = self.read(source)?;
        let holds = self.flag_test(instruction, test)?;
        let branch = self.thread.here().index();
        let (then, otherwise) = (Pc::new(branch + 1), Pc::new(branch + 2));
        self.thread.emit(Instr::Branch { cond: Value::Reg(holds), then, otherwise });
        self.write(destination, value);
        Ok(())
    }

    // ---- shared by plain and locked instructions ----

    fn source_register(&mut self, instruction: &Instruction<'a>, source: Operand<'a>) -> Result<Reg, Mistake> {
        match source {
            Operand::Register(named) => Ok(self.register(named)),
            Operand::Name(name, span) => Err(super::instruction::unknown_register(name, span)),
            _ => Err(wrong_operands(instruction, "its second operand must be a register")),
        }
    }

    /// The register that `CMPXCHG` compares with: `EAX`, or the part of it that has the size of the operand.
    fn accumulator(&mut self, instruction: &Instruction<'a>, source: Operand<'a>) -> Reg {
        let part = match source {
            Operand::Register(NamedRegister { register: MachineRegister { part: Part::HighByte, .. }, .. }) => {
                Part::Byte
            }
            Operand::Register(named) => named.register.part,
            _ => Part::Whole,
        };
        let register = MachineRegister { number: ACCUMULATOR, part };
        self.register(NamedRegister { name: accumulator_name(part), register, span: instruction.span })
    }
}

/// The comparison of *left* with *right* that a condition stands for, and whether it ignores signs.
fn comparison(test: FlagTest) -> (BinaryOp, bool) {
    match test {
        FlagTest::Equal => (BinaryOp::Eq, false),
        FlagTest::NotEqual => (BinaryOp::Ne, false),
        FlagTest::Less | FlagTest::Negative => (BinaryOp::Lt, false),
        FlagTest::LessOrEqual => (BinaryOp::Le, false),
        FlagTest::Greater => (BinaryOp::Gt, false),
        FlagTest::GreaterOrEqual | FlagTest::NotNegative => (BinaryOp::Ge, false),
        FlagTest::Below => (BinaryOp::Lt, true),
        FlagTest::BelowOrEqual => (BinaryOp::Le, true),
        FlagTest::Above => (BinaryOp::Gt, true),
        FlagTest::AboveOrEqual => (BinaryOp::Ge, true),
    }
}
