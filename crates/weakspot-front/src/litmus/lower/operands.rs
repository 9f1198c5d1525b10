//! How many operands an instruction takes and of which kind, and what is said if they are wrong.

use weakspot_model::source::{Diagnostic, Span};

use super::super::context::Mistake;
use super::super::instruction::{Instruction, Operand, Operands};
use super::super::mnemonic::Mnemonic;

/// The instructions that x86 allows a `LOCK` prefix on (`XCHG` apart).
pub(super) fn can_be_locked(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Arithmetic(_)
            | Mnemonic::Step(_)
            | Mnemonic::Negate
            | Mnemonic::Invert
            | Mnemonic::ExchangeAdd
            | Mnemonic::CompareExchange
    )
}

pub(super) fn no_operands(instruction: &Instruction<'_>) -> Result<(), Mistake> {
    match instruction.operands {
        Operands::None => Ok(()),
        _ => Err(wrong_operands(instruction, "it takes no operands")),
    }
}

pub(super) fn one_operand<'a>(instruction: &Instruction<'a>) -> Result<Operand<'a>, Mistake> {
    match instruction.operands {
        Operands::One(operand) => Ok(operand),
        _ => Err(wrong_operands(instruction, "it takes one operand")),
    }
}

/// Two operands that are not both in memory.
pub(super) fn two_operands<'a>(instruction: &Instruction<'a>) -> Result<(Operand<'a>, Operand<'a>), Mistake> {
    match instruction.operands {
        Operands::Two(Operand::Memory(_), Operand::Memory(_)) => Err(two_in_memory(instruction)),
        Operands::Two(first, second) => Ok((first, second)),
        _ => Err(wrong_operands(instruction, "it takes two operands")),
    }
}

pub(super) fn jump_target<'a>(instruction: &Instruction<'a>) -> Result<(&'a str, Span), Mistake> {
    match instruction.operands {
        Operands::One(Operand::Name(name, span)) => Ok((name, span)),
        Operands::One(Operand::Register(named)) => Ok((named.name, named.span)),
        _ => Err(wrong_operands(instruction, "it takes the name of a label")),
    }
}

pub(super) fn wrong_operands(instruction: &Instruction<'_>, rule: &str) -> Mistake {
    let message = format!("wrong operands for `{}`: {rule}", instruction.name);
    let help = match instruction.mnemonic {
        Mnemonic::Move => "for example `MOV EAX,[x]`, `MOV [x],$1` or `MOV EAX,EBX`",
        Mnemonic::Exchange => "for example `XCHG [x],EAX`",
        Mnemonic::ExchangeAdd => "for example `LOCK XADD [x],EAX`",
        Mnemonic::CompareExchange => "for example `LOCK CMPXCHG [x],ECX`, which compares [x] with EAX",
        Mnemonic::Arithmetic(_) => "for example `ADD EAX,$1` or `LOCK ADD [x],$1`",
        Mnemonic::Step(_) | Mnemonic::Negate | Mnemonic::Invert => "for example `INC EAX` or `LOCK INC [x]`",
        Mnemonic::Compare | Mnemonic::Test => "for example `CMP EAX,$1`",
        Mnemonic::Jump | Mnemonic::JumpIf(_) => "for example `JNE L0`, with `L0:` before some instruction",
        Mnemonic::SetIf(_) => "for example `SETE AL`",
        Mnemonic::MoveIf(_) => "for example `CMOVE EAX,EBX`",
        Mnemonic::Fence(_) | Mnemonic::Nothing | Mnemonic::Gap => "nothing may follow it in its cell",
    };
    Mistake::new(Diagnostic::error("wrong-operands", message, instruction.span).label(rule).help(help))
}

pub(super) fn two_in_memory(instruction: &Instruction<'_>) -> Mistake {
    let message = format!("`{}` has two operands in memory", instruction.name);
    let help = "x86 allows one; go through a register: `MOV EAX,[y]`, then `MOV [x],EAX`";
    Mistake::new(Diagnostic::error("two-memory-operands", message, instruction.span).help(help))
}

pub(super) fn constant_destination(instruction: &Instruction<'_>, span: Span) -> Mistake {
    let message = format!("`{}` cannot write to a constant", instruction.name);
    let help = "in Intel syntax the destination comes first: `MOV [x],$1`";
    Mistake::new(Diagnostic::error("constant-destination", message, span).label("a constant").help(help))
}

pub(super) fn bad_lock(instruction: &Instruction<'_>) -> Mistake {
    let name = instruction.name;
    let (message, help) = if can_be_locked(instruction.mnemonic) || instruction.mnemonic == Mnemonic::Exchange {
        (format!("`LOCK {name}` must change memory"), "its first operand must be a location: `LOCK ADD [x],$1`")
    } else {
        (format!("`{name}` cannot have a `LOCK` prefix"), "for an atomic store use `XCHG [x],EAX`")
    };
    Mistake::new(Diagnostic::error("bad-lock", message, instruction.span).help(help))
}

pub(super) fn unsupported_lock(instruction: &Instruction<'_>) -> Mistake {
    let message = format!("`LOCK {}` is not modelled", instruction.name);
    let help = "locked ADD, SUB, INC, DEC, AND, OR, XADD, CMPXCHG and XCHG are";
    Mistake::new(Diagnostic::error("unsupported-instruction", message, instruction.span).help(help))
}

pub(super) fn no_negative(instruction: &Instruction<'_>) -> Mistake {
    let message = "the constant has no negative in 64 bits";
    Mistake::new(Diagnostic::error("number-too-large", message, instruction.span).help("use a smaller constant"))
}

pub(super) fn flags_not_set(instruction: &Instruction<'_>) -> Mistake {
    let message = format!("`{}` looks at flags that nothing before it sets", instruction.name);
    let help = "put a comparison before it, such as `CMP EAX,$1`";
    Mistake::new(Diagnostic::error("flags-not-set", message, instruction.span).help(help))
}

pub(super) fn carry_not_kept(instruction: &Instruction<'_>) -> Mistake {
    let message = format!("`{}` looks at the carry flag after an addition", instruction.name);
    let help = "the carry of ADD, INC, DEC and XADD is not modelled; compare with `CMP`, or use a signed condition";
    Mistake::new(Diagnostic::error("carry-not-modelled", message, instruction.span).help(help))
}
