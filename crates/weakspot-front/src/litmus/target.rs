//! What the initial state, `locations [...]` and the condition talk about: `x`, `[x]`, `0:EAX`, `P0:EAX`.

use weakspot_model::source::{Diagnostic, Span};

use super::context::{Mistake, clip};
use super::cursor::Cursor;
use super::instruction::{NamedRegister, unknown_register};
use super::registers;

/// Something that has a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    /// A register of a thread.
    Register {
        /// The thread's number, not yet checked.
        thread: usize,
        /// Where the thread's number stands.
        thread_span: Span,
        /// The register.
        named: NamedRegister<'a>,
    },
    /// A memory cell.
    Memory(&'a str, Span),
}

/// Reads a target. C types before a name (`int x`) are passed over if `types` says so.
pub(super) fn parse_target<'a>(cursor: &mut Cursor<'a>, types: bool) -> Result<Target<'a>, Mistake> {
    cursor.skip_trivia();
    let start = cursor.pos;
    match cursor.peek() {
        Some(b'[') => bracketed(cursor),
        Some(b'0'..=b'9') => {
            while cursor.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                cursor.pos += 1;
            }
            let digits = &cursor.text[start..cursor.pos];
            let span = cursor.span_from(start);
            register(cursor, digits, span)
        }
        Some(b'*') if types => {
            cursor.pos += 1;
            parse_target(cursor, false)
        }
        _ => named(cursor, types),
    }
}

/// `[x]`.
fn bracketed<'a>(cursor: &mut Cursor<'a>) -> Result<Target<'a>, Mistake> {
    let open = cursor.span_from(cursor.pos);
    cursor.pos += 1;
    cursor.skip_trivia();
    let start = cursor.pos;
    let name = cursor.word();
    let span = cursor.span_from(start);
    if name.is_empty() {
        return Err(expected_target(cursor));
    }
    cursor.skip_trivia();
    if !cursor.eat("]") {
        let message = format!("expected `]` after `{}`, found {}", clip(name), cursor.found());
        let open = Span::new(open.start as usize, open.start as usize + 1);
        let diagnostic = Diagnostic::error("unclosed-bracket", message, cursor.found_span());
        let diagnostic = diagnostic.related(open, "the bracket that is open");
        return Err(Mistake::new(diagnostic.help("a location is written `x` or `[x]`")));
    }
    Ok(Target::Memory(name, span))
}

/// `x`, `P0:EAX` or `int x`.
fn named<'a>(cursor: &mut Cursor<'a>, types: bool) -> Result<Target<'a>, Mistake> {
    let mut start = cursor.pos;
    let mut name = cursor.word();
    if name.is_empty() {
        return Err(expected_target(cursor));
    }
    let mut end = cursor.pos;
    cursor.skip_trivia();
    while types && (cursor.peek() == Some(b'*') || !cursor.peek_word().is_empty()) {
        if cursor.eat("*") {
            cursor.skip_trivia();
            continue;
        }
        start = cursor.pos;
        name = cursor.word();
        end = cursor.pos;
        cursor.skip_trivia();
    }
    let span = Span::new(start, end);
    match cursor.peek() {
        Some(b':') if thread_digits(name).is_some() => register(cursor, thread_digits(name).unwrap_or_default(), span),
        Some(b':') => {
            let message = format!("`{}` is not a thread", clip(name));
            let help = "a register of the first thread is written `0:EAX` or `P0:EAX`";
            Err(Mistake::new(Diagnostic::error("unknown-thread", message, span).label("no such thread").help(help)))
        }
        Some(b'[') => {
            let message = format!("`{}` is used as an array", clip(name));
            let help = "arrays are not modelled; give every cell a name of its own";
            Err(Mistake::new(Diagnostic::error("unsupported-array", message, span).help(help)))
        }
        _ => {
            cursor.pos = end;
            Ok(Target::Memory(name, span))
        }
    }
}

/// The digits of `P12`.
pub(super) fn thread_digits(name: &str) -> Option<&str> {
    let digits = name.strip_prefix('P')?;
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(digits)
}

/// `:EAX` after the thread.
fn register<'a>(cursor: &mut Cursor<'a>, digits: &str, thread_span: Span) -> Result<Target<'a>, Mistake> {
    cursor.skip_trivia();
    if !cursor.eat(":") {
        let message =
            format!("expected `:` and a register after the thread `{}`, found {}", clip(digits), cursor.found());
        let help = "a register of the first thread is written `0:EAX`";
        return Err(Mistake::new(Diagnostic::error("expected-register", message, cursor.found_span()).help(help)));
    }
    cursor.skip_trivia();
    let start = cursor.pos;
    cursor.eat("%");
    let name = cursor.word();
    let span = cursor.span_from(start);
    if name.is_empty() {
        let message = format!("expected a register, found {}", cursor.found());
        let help = "a register of the first thread is written `0:EAX`";
        return Err(Mistake::new(Diagnostic::error("expected-register", message, cursor.found_span()).help(help)));
    }
    let register = registers::lookup(name).ok_or_else(|| unknown_register(name, span))?;
    // A number too long for a thread is a thread that does not exist; the caller says so.
    let thread = digits.parse().unwrap_or(usize::MAX);
    Ok(Target::Register { thread, thread_span, named: NamedRegister { name, register, span } })
}

fn expected_target(cursor: &Cursor<'_>) -> Mistake {
    let message = format!("expected a location or a register, found {}", cursor.found());
    let help = "locations are written `x` or `[x]`, registers `0:EAX` or `P0:EAX`";
    Mistake::new(Diagnostic::error("expected-target", message, cursor.found_span()).help(help))
}
