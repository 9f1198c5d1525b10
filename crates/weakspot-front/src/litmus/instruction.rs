//! One cell of the code table: labels, `LOCK`, a mnemonic and its operands.
//!
//! Intel order (destination first) is the rule. An instruction with a `%register` or a `(location)` is in AT&T order,
//! as in herd's `X86_64` tests; its operands are turned round here, and nothing after this module knows. One
//! instruction in both syntaxes at once is refused, since its order is anybody's guess.

use weakspot_model::ids::Loc;
use weakspot_model::source::{Diagnostic, Span};

use crate::suggest;

use super::context::{Context, Mistake, clip, number_diagnostic};
use super::cursor::{Cursor, NumberError};
use super::mnemonic::{self, Mnemonic};
use super::registers::{self, MachineRegister};

/// One instruction of one thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instruction<'a> {
    /// What it does.
    pub(super) mnemonic: Mnemonic,
    /// Its name as written.
    pub(super) name: &'a str,
    /// Has it a `LOCK` prefix?
    pub(super) locked: bool,
    /// Its operands in Intel order.
    pub(super) operands: Operands<'a>,
    /// The text from `LOCK` or the mnemonic to the last operand.
    pub(super) span: Span,
}

/// At most two operands, in Intel order.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operands<'a> {
    None,
    One(Operand<'a>),
    Two(Operand<'a>, Operand<'a>),
}

/// One operand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operand<'a> {
    /// A register.
    Register(NamedRegister<'a>),
    /// A memory cell.
    Memory(Loc),
    /// A constant.
    Immediate(i64, Span),
    /// A bare name: the target of a jump.
    Name(&'a str, Span),
}

/// A register as the test writes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedRegister<'a> {
    pub(super) name: &'a str,
    pub(super) register: MachineRegister,
    pub(super) span: Span,
}

/// What a cell holds: any number of labels, then perhaps an instruction.
pub(super) struct Cell<'a> {
    /// Labels before the instruction.
    pub(super) labels: Vec<(&'a str, Span)>,
    /// The instruction.
    pub(super) instruction: Option<Instruction<'a>>,
}

/// Reads the cell at `span`. `None` if it is wrong, in which case the mistake has been reported.
pub(super) fn parse_cell<'a>(context: &mut Context<'a>, span: Span) -> Option<Cell<'a>> {
    let text = &context.text[..span.end as usize];
    let mut cursor = Cursor::new(text, span.start as usize);
    let labels = take_labels(&mut cursor);
    cursor.skip_trivia();
    if cursor.at_end() {
        return Some(Cell { labels, instruction: None });
    }
    let instruction = match parse_instruction(context, &mut cursor) {
        Ok(instruction) => instruction,
        Err(diagnostic) => {
            context.report(diagnostic.into());
            return None;
        }
    };
    Some(Cell { labels, instruction: Some(instruction) })
}

/// Takes `name:` as often as it comes.
fn take_labels<'a>(cursor: &mut Cursor<'a>) -> Vec<(&'a str, Span)> {
    let mut labels = Vec::new();
    loop {
        cursor.skip_trivia();
        let start = cursor.pos;
        let name = cursor.word();
        let span = cursor.span_from(start);
        cursor.skip_trivia();
        if name.is_empty() || !cursor.eat(":") {
            cursor.pos = start;
            return labels;
        }
        labels.push((name, span));
    }
}

fn parse_instruction<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>) -> Result<Instruction<'a>, Mistake> {
    let start = cursor.pos;
    let mut name_start = start;
    let mut name = cursor.word();
    let locked = name.eq_ignore_ascii_case("lock");
    if locked {
        cursor.skip_trivia();
        cursor.eat(";");
        cursor.skip_trivia();
        name_start = cursor.pos;
        name = cursor.word();
    }
    if name.is_empty() {
        return Err(no_instruction(cursor, locked));
    }
    let marker = (context.marks_gaps && name == super::GAP).then_some(Mnemonic::Gap);
    let Some(mnemonic) = marker.or_else(|| mnemonic::lookup(name)) else {
        let span = cursor.whole_word(name_start);
        return Err(unknown_instruction(&context.text[span.range()], span));
    };
    let (operands, syntax) = parse_operands(context, cursor)?;
    let operands = if syntax == Syntax::Att { operands.reversed() } else { operands };
    Ok(Instruction { mnemonic, name, locked, operands, span: cursor.span_from(start) })
}

fn no_instruction(cursor: &Cursor<'_>, locked: bool) -> Mistake {
    let after = if locked { " after `LOCK`" } else { "" };
    let message = format!("expected an instruction{after}, found {}", end_of_cell(cursor));
    Mistake::new(
        Diagnostic::error("expected-instruction", message, cursor.found_span())
            .label("no instruction here")
            .help("a cell is empty or holds one x86 instruction, such as `MOV EAX,[x]`"),
    )
}

/// What comes next; the end of the text is the end of the cell here.
fn end_of_cell(cursor: &Cursor<'_>) -> String {
    if cursor.at_end() { "the end of the cell".to_owned() } else { cursor.found() }
}

fn unknown_instruction(name: &str, span: Span) -> Mistake {
    let name = clip(name);
    if mnemonic::is_known_but_not_modelled(name) {
        let message = format!("the instruction `{name}` is not modelled");
        return Mistake::new(Diagnostic::error("unsupported-instruction", message, span).label("not modelled").help(
            "weakspot knows MOV, XCHG, the fences, ADD, SUB, AND, OR, XOR, INC, DEC, NEG, NOT, XADD, CMPXCHG, CMP, TEST, \
             jumps, SETcc and CMOVcc",
        ));
    }
    let diagnostic = Diagnostic::error("unknown-instruction", format!("unknown instruction `{name}`"), span);
    Mistake::new(match mnemonic::closest(name) {
        Some(known) => diagnostic.label("no such instruction").help(format!("did you mean `{known}`?")),
        None => diagnostic.label("no such instruction").help("a cell holds one x86 instruction, such as `MOV EAX,[x]`"),
    })
}

impl Operands<'_> {
    fn reversed(self) -> Self {
        match self {
            Self::Two(first, second) => Self::Two(second, first),
            other => other,
        }
    }
}

/// Which syntax an operand is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// The same in both: constants and labels.
    Either,
    /// `EAX`, `[x]`.
    Intel,
    /// `%eax`, `(x)`.
    Att,
}

/// Reads the operands up to the end of the cell.
fn parse_operands<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>) -> Result<(Operands<'a>, Syntax), Mistake> {
    let mut end = cursor.pos;
    cursor.skip_trivia();
    if cursor.at_end() {
        cursor.pos = end;
        return Ok((Operands::None, Syntax::Either));
    }
    let (first, mut syntax) = parse_operand(context, cursor)?;
    let mut operands = Operands::One(first);
    end = cursor.pos;
    cursor.skip_trivia();
    if cursor.eat(",") {
        cursor.skip_trivia();
        let start = cursor.pos;
        let (second, second_syntax) = parse_operand(context, cursor)?;
        operands = Operands::Two(first, second);
        syntax = common_syntax(syntax, second_syntax).ok_or_else(|| mixed_syntax(cursor.span_from(start)))?;
        end = cursor.pos;
        cursor.skip_trivia();
    }
    if cursor.at_end() {
        cursor.pos = end;
        return Ok((operands, syntax));
    }
    Err(trailing_text(cursor, operands))
}

/// The syntax of two operands; `None` if they differ.
fn common_syntax(first: Syntax, second: Syntax) -> Option<Syntax> {
    match (first, second) {
        (Syntax::Either, syntax) | (syntax, Syntax::Either) => Some(syntax),
        _ => (first == second).then_some(first),
    }
}

fn mixed_syntax(span: Span) -> Mistake {
    let message = "the instruction mixes Intel and AT&T syntax";
    let help = "write `MOV EAX,[x]` (destination first) or `movl (x),%eax` (destination last)";
    Mistake::new(
        Diagnostic::error("mixed-syntax", message, span).label("not the syntax of the first operand").help(help),
    )
}

fn trailing_text(cursor: &Cursor<'_>, operands: Operands<'_>) -> Mistake {
    let span = cursor.found_span();
    let message = format!("expected the end of the cell, found {}", cursor.found());
    let diagnostic = Diagnostic::error("trailing-text", message, span);
    Mistake::new(if matches!(operands, Operands::Two(..)) && cursor.peek() == Some(b',') {
        diagnostic.label("a third operand").help("every instruction that is modelled has at most two operands")
    } else {
        diagnostic.label("not part of the instruction").help("cells are separated by `|`, and a row ends with `;`")
    })
}

/// One operand, and the syntax it is written in.
fn parse_operand<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>) -> Result<(Operand<'a>, Syntax), Mistake> {
    let start = cursor.pos;
    match cursor.peek() {
        Some(b'[') => Ok((Operand::Memory(parse_memory(context, cursor, "]")?), Syntax::Intel)),
        Some(b'(') => Ok((Operand::Memory(parse_memory(context, cursor, ")")?), Syntax::Att)),
        Some(b'%') => {
            cursor.pos += 1;
            let name = cursor.word();
            let span = cursor.span_from(start);
            match registers::lookup(name) {
                Some(register) => Ok((Operand::Register(NamedRegister { name, register, span }), Syntax::Att)),
                None => Err(unknown_register(name, span)),
            }
        }
        Some(b'$' | b'-' | b'+' | b'0'..=b'9') => Ok((parse_immediate(context, cursor)?, Syntax::Either)),
        Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => parse_name(context, cursor),
        _ => {
            let message = format!("expected an operand, found {}", end_of_cell(cursor));
            Err(Mistake::new(
                Diagnostic::error("expected-operand", message, cursor.found_span())
                    .label("no operand here")
                    .help("an operand is a register (`EAX`), a location (`[x]`) or a constant (`$1`)"),
            ))
        }
    }
}

/// A register, a jump target, or `DWORD PTR [x]`.
fn parse_name<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>) -> Result<(Operand<'a>, Syntax), Mistake> {
    let start = cursor.pos;
    let name = cursor.word();
    let span = cursor.span_from(start);
    if let Some(register) = registers::lookup(name) {
        return Ok((Operand::Register(NamedRegister { name, register, span }), Syntax::Intel));
    }
    let sizes = ["byte", "word", "dword", "qword"];
    if sizes.iter().any(|size| name.eq_ignore_ascii_case(size)) {
        cursor.skip_trivia();
        if cursor.peek_word().eq_ignore_ascii_case("ptr") {
            cursor.word();
            cursor.skip_trivia();
        }
        if cursor.peek() == Some(b'[') {
            return Ok((Operand::Memory(parse_memory(context, cursor, "]")?), Syntax::Intel));
        }
    }
    Ok((Operand::Name(name, span), Syntax::Either))
}

/// `$1`, `1`, `$-1`, `0x10`.
fn parse_immediate<'a>(context: &Context<'a>, cursor: &mut Cursor<'a>) -> Result<Operand<'a>, Mistake> {
    let start = cursor.pos;
    cursor.eat("$");
    let value = cursor.number();
    let span = cursor.span_from(start);
    match value {
        Ok(value) => Ok(Operand::Immediate(value, span)),
        Err(NumberError::Missing) if span.end as usize > start + 1 => Err(address_constant(context.text, span)),
        Err(error) => Err(Mistake::new(number_diagnostic(error, context.text, span))),
    }
}

fn address_constant(text: &str, span: Span) -> Mistake {
    let message = format!("`{}` is not a constant number", clip(&text[span.range()]));
    let help = "addresses of locations are not values here; only numbers can be stored";
    Mistake::new(Diagnostic::error("address-value", message, span).label("not a number").help(help))
}

/// `[x]` or `(x)`; `close` is the bracket that ends it.
fn parse_memory<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>, close: &str) -> Result<Loc, Mistake> {
    let start = cursor.pos;
    cursor.pos += 1;
    cursor.skip_trivia();
    let name_start = cursor.pos;
    cursor.eat("%");
    let name = cursor.word();
    let name_span = cursor.span_from(name_start);
    if name.is_empty() {
        let message = format!("expected the name of a location, found {}", end_of_cell(cursor));
        let help = "a location is written `[x]`; computed addresses are not modelled";
        return Err(Mistake::new(Diagnostic::error("expected-location", message, cursor.found_span()).help(help)));
    }
    if registers::lookup(name).is_some() {
        let message = format!("`[{name}]` takes its address from a register");
        return Err(Mistake::new(
            Diagnostic::error("computed-address", message, name_span)
                .label("a register, not a location")
                .help("computed addresses are not modelled; name the location itself"),
        ));
    }
    cursor.skip_trivia();
    if !cursor.eat(close) {
        return Err(unclosed_memory(cursor, start, clip(name), close));
    }
    Ok(context.location(name, name_span))
}

fn unclosed_memory(cursor: &Cursor<'_>, start: usize, name: &str, close: &str) -> Mistake {
    if matches!(cursor.peek(), Some(b'+' | b'-' | b'*')) {
        let message = format!("the address `{name}{}...` is computed", &cursor.text[cursor.pos..=cursor.pos]);
        let help = "offsets and indices are not modelled; give every location a name of its own";
        return Mistake::new(Diagnostic::error("computed-address", message, cursor.next_char_span()).help(help));
    }
    let message = format!("expected `{close}` after `{name}`, found {}", end_of_cell(cursor));
    let diagnostic = Diagnostic::error("unclosed-bracket", message, cursor.found_span());
    let diagnostic = diagnostic.related(Span::new(start, start + 1), "the bracket that is open");
    Mistake::new(diagnostic.help("a location is written `[x]`"))
}

/// The message about a word that stands where a register should.
pub(super) fn unknown_register(name: &str, span: Span) -> Mistake {
    let name = clip(name);
    let diagnostic = Diagnostic::error("unknown-register", format!("unknown register `{name}`"), span);
    Mistake::new(match suggest::closest(name, registers::suggestions()) {
        Some(known) => diagnostic.label("no such register").help(format!("did you mean `{known}`?")),
        None => diagnostic
            .label("no such register")
            .help(format!("a location is written in brackets: `[{name}]`; registers are EAX, EBX, ECX, EDX, ...")),
    })
}
