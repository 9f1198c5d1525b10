//! The first lines, down to the `{` of the initial state: architecture, name, `(Tag)`, `"doc"`, `Key=Value` lines.
//!
//! Only the architecture and the name are kept. `X86_64` is read like `X86`: the instructions mean the same to a store
//! buffer.

use weakspot_model::source::{Diagnostic, Span};

use crate::suggest;

use super::context::{Context, clip};
use super::cursor::Cursor;
use super::target::thread_digits;

/// Architectures that herd reads and this front end does not.
const OTHER_ARCHITECTURES: [&str; 14] = [
    "AArch64",
    "ARM",
    "ASL",
    "BPF",
    "C",
    "CPP",
    "GPU_PTX",
    "JAVA",
    "LISA",
    "BELL",
    "LoongArch",
    "MIPS",
    "PPC",
    "RISCV",
];

/// Reads up to and including `{`. `None` if there is no point in going on.
pub(super) fn parse_header<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>) -> Option<&'a str> {
    cursor.skip_trivia();
    if cursor.at_end() {
        let message = if cursor.text.is_empty() { "the file is empty" } else { "the file holds no test" };
        let help = "a litmus test starts with its architecture and its name: `X86 SB`";
        context.report(Diagnostic::error("empty-file", message, Span::new(cursor.pos, cursor.pos)).help(help));
        return None;
    }
    let start = cursor.pos;
    let architecture = cursor.word();
    let span = cursor.span_from(start);
    if !is_x86(architecture) {
        context.report(wrong_architecture(cursor, architecture, span));
        return None;
    }
    cursor.skip_blanks();
    let name = test_name(cursor);
    if name.is_empty() {
        let help = "the first line reads `X86 NAME`";
        let message = format!("expected the name of the test, found {}", found_on_line(cursor));
        context.report(Diagnostic::error("expected-name", message, cursor.found_span()).help(help));
    }
    skip_to_initial_state(context, cursor).then_some(name)
}

fn is_x86(architecture: &str) -> bool {
    ["X86", "X86_64"].iter().any(|known| known.eq_ignore_ascii_case(architecture))
}

fn wrong_architecture(cursor: &Cursor<'_>, architecture: &str, span: Span) -> Diagnostic {
    if architecture.is_empty() {
        let message = format!("expected the architecture `X86`, found {}", cursor.found());
        let help = "a litmus test starts with its architecture and its name: `X86 SB`";
        return Diagnostic::error("not-a-litmus-test", message, cursor.found_span()).help(help);
    }
    if let Some(known) = OTHER_ARCHITECTURES.iter().find(|known| known.eq_ignore_ascii_case(architecture)) {
        return Diagnostic::error(
            "other-architecture",
            format!("this is a litmus test for {known}, not for x86"),
            span,
        )
        .label("not x86")
        .help("weakspot reads litmus tests for X86 (and X86_64)");
    }
    let message = format!("unknown architecture `{}`", clip(architecture));
    let diagnostic = Diagnostic::error("unknown-architecture", message, span).label("expected `X86`");
    match suggest::closest(architecture, ["X86", "X86_64"].into_iter().chain(OTHER_ARCHITECTURES)) {
        Some(known) if is_x86(known) => diagnostic.help(format!("did you mean `{known}`?")),
        _ => diagnostic.help("a litmus test starts with its architecture and its name: `X86 SB`"),
    }
}

/// Everything up to white space, a doc string or the initial state.
fn test_name<'a>(cursor: &mut Cursor<'a>) -> &'a str {
    let start = cursor.pos;
    while cursor.peek().is_some_and(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'{')) {
        cursor.pos += 1;
    }
    &cursor.text[start..cursor.pos]
}

fn found_on_line(cursor: &Cursor<'_>) -> String {
    if cursor.peek() == Some(b'\n') { "the end of the line".to_owned() } else { cursor.found() }
}

/// Passes over everything before `{`, and over `{` itself.
fn skip_to_initial_state(context: &mut Context<'_>, cursor: &mut Cursor<'_>) -> bool {
    loop {
        cursor.skip_trivia();
        let start = cursor.pos;
        match cursor.peek() {
            Some(b'{') => {
                cursor.pos += 1;
                return true;
            }
            Some(b'"') => {
                if !skip_string(cursor) {
                    let open = Span::new(start, start + 1);
                    let help = "doc strings end with `\"`, and stand before the `{`";
                    context.report(Diagnostic::error("unclosed-string", "this `\"` is never closed", open).help(help));
                    return false;
                }
            }
            Some(b'(') => skip_tag(cursor),
            _ => {
                cursor.skip_line();
                let line = &cursor.text[start..cursor.pos];
                if !line.contains('=') || cursor.at_end() {
                    context.report(missing_initial_state(cursor, start));
                    return false;
                }
            }
        }
    }
}

/// `(Tag)`, up to the bracket or the end of the line.
fn skip_tag(cursor: &mut Cursor<'_>) {
    while cursor.peek().is_some_and(|byte| byte != b')' && byte != b'\n') {
        cursor.pos += 1;
    }
    cursor.eat(")");
}

/// `"..."`, over several lines if need be.
fn skip_string(cursor: &mut Cursor<'_>) -> bool {
    cursor.pos += 1;
    while let Some(byte) = cursor.peek() {
        cursor.pos += 1;
        match byte {
            b'"' => return true,
            b'\\' if cursor.peek().is_some_and(|byte| byte.is_ascii()) => cursor.pos += 1,
            _ => {}
        }
    }
    false
}

fn missing_initial_state(cursor: &Cursor<'_>, start: usize) -> Diagnostic {
    let at = Cursor::new(cursor.text, start);
    let help = "the initial state is written `{ x=0; y=0; }`; `{ }` starts every location at 0";
    if thread_digits(at.peek_word()).is_some() {
        let message = "the threads start before the initial state";
        return Diagnostic::error("missing-initial-state", message, at.found_span())
            .label("expected `{` first")
            .help(help);
    }
    let message = format!("expected `{{` or a `Key=Value` line, found {}", at.found());
    Diagnostic::error("missing-initial-state", message, at.found_span()).label("expected `{`").help(help)
}
