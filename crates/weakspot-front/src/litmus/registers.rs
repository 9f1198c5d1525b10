//! The names of x86 registers, and which of them are the same register.
//!
//! `EAX` and `RAX` are taken for one register with one value: a 32-bit write clears the upper half, so the two names
//! agree for every value from 0 to 2^31 - 1. A 16-bit or 8-bit write keeps the upper part of the register; rather than
//! model that, a thread that uses one register under such a name *and* under another is refused (see
//! [`super::thread`]). Used under one name only, `AL` is as good a register as any.

/// A register name, reduced to what matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MachineRegister {
    /// Which of the sixteen machine registers.
    pub(super) number: u8,
    /// Which part of it.
    pub(super) part: Part,
}

/// Which part of a machine register a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// `EAX` or `RAX`.
    Whole,
    /// `AX`.
    Word,
    /// `AL`.
    Byte,
    /// `AH`.
    HighByte,
}

/// The accumulator is register 0.
pub(super) const ACCUMULATOR: u8 = 0;

/// Longest register name (`R15D`, `SPL`, ...).
const LONGEST: usize = 4;

/// The registers that have names instead of numbers, by 32-bit name.
const NAMED: [&str; 8] = ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI", "EBP", "ESP"];

/// What a name stands for, in upper or lower case; `None` if it is no register.
pub(super) fn lookup(name: &str) -> Option<MachineRegister> {
    if name.len() < 2 || name.len() > LONGEST {
        return None;
    }
    let mut buffer = [0_u8; LONGEST];
    let upper = &mut buffer[..name.len()];
    upper.copy_from_slice(name.as_bytes());
    upper.make_ascii_uppercase();
    let (number, part) = match &*upper {
        [b'E' | b'R', rest @ ..] if rest.len() == 2 && named(rest).is_some() => (named(rest)?, Part::Whole),
        [b'R', rest @ ..] if rest[0].is_ascii_digit() => return numbered(rest),
        [_, _] if named(upper).is_some() => (named(upper)?, Part::Word),
        [letter @ b'A'..=b'D', b'L'] => (letter - b'A', Part::Byte),
        [letter @ b'A'..=b'D', b'H'] => (letter - b'A', Part::HighByte),
        [first, second, b'L'] => (named(&[*first, *second]).filter(|&number| number >= 4)?, Part::Byte),
        _ => return None,
    };
    Some(MachineRegister { number, part })
}

/// The number of `AX`, `BX`, ..., `SP`.
fn named(two_letters: &[u8]) -> Option<u8> {
    NAMED.iter().position(|name| &name.as_bytes()[1..] == two_letters).map(|index| index as u8)
}

/// `8`, `9D`, `15W`, `10B` after the `R`.
fn numbered(rest: &[u8]) -> Option<MachineRegister> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = rest[..digits].iter().fold(0_u8, |n, digit| n.saturating_mul(10).saturating_add(digit - b'0'));
    let part = match &rest[digits..] {
        [] | [b'D'] => Part::Whole,
        [b'W'] => Part::Word,
        [b'B' | b'L'] => Part::Byte,
        _ => return None,
    };
    let plain = (8..16).contains(&number) && rest[0] != b'0';
    plain.then_some(MachineRegister { number, part })
}

/// The accumulator's name beside an operand of this part: `EAX`, `AX` or `AL`.
pub(super) fn accumulator_name(part: Part) -> &'static str {
    match part {
        Part::Whole => "EAX",
        Part::Word => "AX",
        Part::Byte | Part::HighByte => "AL",
    }
}

/// The names a misspelt one may have meant.
pub(super) fn suggestions() -> impl Iterator<Item = &'static str> {
    NAMED.into_iter().chain(["RAX", "RBX", "RCX", "RDX", "RSI", "RDI", "R8", "R9", "R10", "R11", "R12", "R13"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_register_share_its_number() {
        let number = |name| lookup(name).map(|register| register.number);
        for name in ["EAX", "rax", "AX", "al", "AH"] {
            assert_eq!(number(name), Some(ACCUMULATOR), "{name}");
        }
        assert_eq!(number("ESI"), number("sil"));
        assert_eq!(number("R8"), number("r8d"));
        assert_ne!(number("EBX"), number("ECX"));
    }

    #[test]
    fn thirty_two_and_sixty_four_bit_names_are_the_same_part() {
        assert_eq!(lookup("EDX"), lookup("RDX"));
        assert_eq!(lookup("R10D"), lookup("R10"));
        assert_ne!(lookup("AL"), lookup("AH"));
        assert_ne!(lookup("AX"), lookup("EAX"));
    }

    #[test]
    fn other_words_are_no_registers() {
        for name in ["x", "y0", "EEX", "R7", "R16", "R08", "RIP", "XMM0", "E", "", "EL", "AXL", "çL"] {
            assert_eq!(lookup(name), None, "{name}");
        }
    }
}
