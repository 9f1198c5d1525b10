//! The instructions that are understood, by name.

use weakspot_model::ir::{BinaryOp, FenceKind};

use crate::suggest;

/// What an instruction does, apart from its operands and its `LOCK` prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mnemonic {
    /// `MOV`.
    Move,
    /// `XCHG`.
    Exchange,
    /// `MFENCE`, `SFENCE`.
    Fence(FenceKind),
    /// [`super::GAP`].
    Gap,
    /// `NOP`, `PAUSE`, and `LFENCE`: loads are performed in order on all three machines anyway.
    Nothing,
    /// `ADD`, `SUB`, `AND`, `OR`, `XOR`.
    Arithmetic(BinaryOp),
    /// `INC` (+1) and `DEC` (-1).
    Step(i64),
    /// `NEG`.
    Negate,
    /// `NOT`.
    Invert,
    /// `XADD`.
    ExchangeAdd,
    /// `CMPXCHG`.
    CompareExchange,
    /// `CMP`.
    Compare,
    /// `TEST`.
    Test,
    /// `JMP`.
    Jump,
    /// `Jcc`.
    JumpIf(FlagTest),
    /// `SETcc`.
    SetIf(FlagTest),
    /// `CMOVcc`.
    MoveIf(FlagTest),
}

/// The condition of a `Jcc`, `SETcc` or `CMOVcc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlagTest {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Below,
    BelowOrEqual,
    Above,
    AboveOrEqual,
    Negative,
    NotNegative,
}

impl FlagTest {
    /// Does it look at the carry flag?
    pub(super) fn needs_carry(self) -> bool {
        matches!(self, Self::Below | Self::BelowOrEqual | Self::Above | Self::AboveOrEqual)
    }

    /// The condition after `J`, `SET` or `CMOV`.
    fn from_suffix(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "E" | "Z" => Self::Equal,
            "NE" | "NZ" => Self::NotEqual,
            "L" | "NGE" => Self::Less,
            "LE" | "NG" => Self::LessOrEqual,
            "G" | "NLE" => Self::Greater,
            "GE" | "NL" => Self::GreaterOrEqual,
            "B" | "NAE" | "C" => Self::Below,
            "BE" | "NA" => Self::BelowOrEqual,
            "A" | "NBE" => Self::Above,
            "AE" | "NB" | "NC" => Self::AboveOrEqual,
            "S" => Self::Negative,
            "NS" => Self::NotNegative,
            _ => return None,
        })
    }
}

impl Mnemonic {
    /// Does it set the flags that a conditional jump looks at?
    pub(super) fn sets_flags(self) -> bool {
        matches!(
            self,
            Self::Arithmetic(_)
                | Self::Step(_)
                | Self::Negate
                | Self::ExchangeAdd
                | Self::CompareExchange
                | Self::Compare
                | Self::Test
        )
    }

    /// Does it leave a carry flag that is not kept track of?
    pub(super) fn loses_carry(self) -> bool {
        matches!(self, Self::Arithmetic(BinaryOp::Add) | Self::Step(_) | Self::ExchangeAdd)
    }

    /// Does its name tell the size of its operands in AT&T syntax?
    fn has_a_size(self) -> bool {
        !matches!(self, Self::Fence(_) | Self::Nothing | Self::Jump | Self::JumpIf(_) | Self::SetIf(_))
    }

    /// The condition it depends on, if it depends on the flags.
    pub(super) fn flag_test(self) -> Option<FlagTest> {
        match self {
            Self::JumpIf(test) | Self::SetIf(test) | Self::MoveIf(test) => Some(test),
            _ => None,
        }
    }
}

/// Longest name (`CMOVNBEQ` with a size letter).
const LONGEST: usize = 8;

/// What a name stands for, in upper or lower case. Instructions with operands may end in the size letter of AT&T
/// syntax (`movl`, `xchgq`).
pub(super) fn lookup(name: &str) -> Option<Mnemonic> {
    lookup_exact(name).or_else(|| {
        let stem = name.strip_suffix(['b', 'w', 'l', 'q', 'B', 'W', 'L', 'Q'])?;
        lookup_exact(stem).filter(|mnemonic| mnemonic.has_a_size())
    })
}

fn lookup_exact(name: &str) -> Option<Mnemonic> {
    if name.len() > LONGEST {
        return None;
    }
    let mut buffer = [0_u8; LONGEST];
    let upper = &mut buffer[..name.len()];
    upper.copy_from_slice(name.as_bytes());
    upper.make_ascii_uppercase();
    let upper = std::str::from_utf8(upper).ok()?;
    Some(match upper {
        "MOV" => Mnemonic::Move,
        "XCHG" => Mnemonic::Exchange,
        "MFENCE" => Mnemonic::Fence(FenceKind::Full),
        "SFENCE" => Mnemonic::Fence(FenceKind::StoreStore),
        "LFENCE" | "NOP" | "PAUSE" => Mnemonic::Nothing,
        "ADD" => Mnemonic::Arithmetic(BinaryOp::Add),
        "SUB" => Mnemonic::Arithmetic(BinaryOp::Sub),
        "AND" => Mnemonic::Arithmetic(BinaryOp::BitAnd),
        "OR" => Mnemonic::Arithmetic(BinaryOp::BitOr),
        "XOR" => Mnemonic::Arithmetic(BinaryOp::BitXor),
        "INC" => Mnemonic::Step(1),
        "DEC" => Mnemonic::Step(-1),
        "NEG" => Mnemonic::Negate,
        "NOT" => Mnemonic::Invert,
        "XADD" => Mnemonic::ExchangeAdd,
        "CMPXCHG" => Mnemonic::CompareExchange,
        "CMP" => Mnemonic::Compare,
        "TEST" => Mnemonic::Test,
        "JMP" => Mnemonic::Jump,
        _ => return conditional(upper),
    })
}

/// `Jcc`, `SETcc`, `CMOVcc`.
fn conditional(upper: &str) -> Option<Mnemonic> {
    if let Some(suffix) = upper.strip_prefix("CMOV") {
        return FlagTest::from_suffix(suffix).map(Mnemonic::MoveIf);
    }
    if let Some(suffix) = upper.strip_prefix("SET") {
        return FlagTest::from_suffix(suffix).map(Mnemonic::SetIf);
    }
    upper.strip_prefix('J').and_then(FlagTest::from_suffix).map(Mnemonic::JumpIf)
}

/// x86 instructions that exist but are not modelled, so that nobody is told they are misspelt.
const NOT_MODELLED: [&str; 34] = [
    "ADC",
    "BSF",
    "BSR",
    "BT",
    "BTC",
    "BTR",
    "BTS",
    "CALL",
    "CLFLUSH",
    "CLFLUSHOPT",
    "CLWB",
    "CMPXCHG8B",
    "CMPXCHG16B",
    "CPUID",
    "DIV",
    "IDIV",
    "IMUL",
    "LEA",
    "MOVNTI",
    "MOVSX",
    "MOVZX",
    "MUL",
    "POP",
    "PREFETCH",
    "PUSH",
    "RET",
    "ROL",
    "ROR",
    "SAR",
    "SBB",
    "SHL",
    "SHR",
    "XBEGIN",
    "XEND",
];

/// Is it an instruction that exists but is not modelled?
pub(super) fn is_known_but_not_modelled(name: &str) -> bool {
    NOT_MODELLED.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The name a misspelt one may have meant.
pub(super) fn closest(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 37] = [
        "MOV", "XCHG", "MFENCE", "SFENCE", "LFENCE", "NOP", "PAUSE", "ADD", "SUB", "AND", "OR", "XOR", "INC", "DEC",
        "NEG", "NOT", "XADD", "CMPXCHG", "CMP", "TEST", "JMP", "JE", "JNE", "JZ", "JNZ", "JG", "JGE", "JL", "JLE",
        "JA", "JAE", "JB", "JBE", "SETE", "SETNE", "CMOVE", "CMOVNE",
    ];
    suggest::closest(name, NAMES)
}
