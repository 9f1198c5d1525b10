//! The initial state: `{ x=0; [y]=1; int z=2; 0:EAX=1; P1:EBX = -1; }`.

use weakspot_model::source::{Diagnostic, Span};

use super::context::{Context, Mistake, clip, number_diagnostic};
use super::cursor::{Cursor, NumberError};
use super::instruction::NamedRegister;
use super::target::{Target, parse_target, thread_digits};

/// A register that does not start at 0, or is named at least.
#[derive(Debug, Clone, Copy)]
pub(super) struct InitialRegister<'a> {
    /// Whose register, not yet checked.
    pub(super) thread: usize,
    /// Where the thread's number stands.
    pub(super) thread_span: Span,
    /// Which register.
    pub(super) named: NamedRegister<'a>,
    /// Its first value.
    pub(super) value: i64,
    /// The whole entry.
    pub(super) span: Span,
}

/// What the initial state says of registers; what it says of memory is in [`Context::locations`].
#[derive(Default)]
pub(super) struct InitialState<'a> {
    /// In the order of the file.
    pub(super) registers: Vec<InitialRegister<'a>>,
    /// Where each location was given its value, by location.
    given: Vec<Option<Span>>,
}

/// Reads from behind `{` to behind `}` (and a `;` after it). `None` if the `}` is missing.
pub(super) fn parse_initial_state<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>) -> Option<InitialState<'a>> {
    let open = Span::new(cursor.pos - 1, cursor.pos);
    let mut state = InitialState::default();
    loop {
        cursor.skip_trivia();
        match cursor.peek() {
            Some(b'}') => {
                cursor.pos += 1;
                cursor.skip_trivia();
                cursor.eat(";");
                return Some(state);
            }
            Some(b';') => cursor.pos += 1,
            None => {
                context.report(unclosed(cursor, open, "the file ends inside the initial state"));
                return None;
            }
            Some(_) if starts_threads(cursor) => {
                context.report(unclosed(cursor, open, "the threads start inside the initial state"));
                return None;
            }
            Some(_) => {
                if let Err(diagnostic) = parse_entry(context, cursor, &mut state) {
                    context.report(diagnostic.into());
                    skip_entry(cursor);
                }
                if context.is_full() {
                    return None;
                }
            }
        }
    }
}

/// Does the row `P0 | P1 ;` come next, so that the `}` before it was forgotten?
fn starts_threads(cursor: &Cursor<'_>) -> bool {
    let word = cursor.peek_word();
    let mut after = Cursor::new(cursor.text, cursor.pos + word.len());
    after.skip_blanks();
    thread_digits(word).is_some() && matches!(after.peek(), Some(b'|' | b';'))
}

fn unclosed(cursor: &Cursor<'_>, open: Span, message: &str) -> Diagnostic {
    Diagnostic::error("unclosed-initial-state", message, cursor.found_span())
        .label("expected `}` first")
        .related(open, "the initial state starts here")
        .help("close the initial state with `}`")
}

/// Goes to the `;` or `}` that ends a wrong entry.
fn skip_entry(cursor: &mut Cursor<'_>) {
    while cursor.peek().is_some_and(|byte| !matches!(byte, b';' | b'}')) {
        cursor.pos += 1;
    }
}

fn parse_entry<'a>(
    context: &mut Context<'a>,
    cursor: &mut Cursor<'a>,
    state: &mut InitialState<'a>,
) -> Result<(), Mistake> {
    let start = cursor.pos;
    let target = parse_target(cursor, true)?;
    let value = parse_value(context, cursor)?;
    let span = cursor.span_from(start);
    cursor.skip_trivia();
    if !matches!(cursor.peek(), Some(b';' | b'}') | None) {
        let message = format!("expected `;` or `}}`, found {}", cursor.found());
        let help = "entries of the initial state are separated by `;`";
        return Err(Mistake::new(Diagnostic::error("expected-semicolon", message, cursor.found_span()).help(help)));
    }
    match target {
        Target::Register { thread, thread_span, named } => {
            state.registers.push(InitialRegister { thread, thread_span, named, value, span });
        }
        Target::Memory(name, name_span) => give(context, state, name, name_span, value),
    }
    Ok(())
}

/// `= value`; a target without it starts at 0.
fn parse_value<'a>(context: &Context<'a>, cursor: &mut Cursor<'a>) -> Result<i64, Mistake> {
    let end = cursor.pos;
    cursor.skip_trivia();
    if !cursor.eat("=") {
        cursor.pos = end;
        return Ok(0);
    }
    cursor.skip_trivia();
    let start = cursor.pos;
    match cursor.number() {
        Ok(value) => Ok(value),
        Err(NumberError::Missing) if cursor.pos > start => {
            let span = cursor.span_from(start);
            let message = format!("the initial value `{}` is not a number", clip(&context.text[span.range()]));
            let help = "addresses of locations are not values here; only numbers are";
            Err(Mistake::new(Diagnostic::error("address-value", message, span).label("not a number").help(help)))
        }
        Err(NumberError::Missing) => {
            let message = format!("expected a number after `=`, found {}", cursor.found());
            let help = "write the value, or leave out the `=` to start at 0";
            Err(Mistake::new(Diagnostic::error("expected-number", message, cursor.found_span()).help(help)))
        }
        Err(error) => Err(Mistake::new(number_diagnostic(error, context.text, cursor.span_from(start)))),
    }
}

/// Gives a location its value; giving it two different ones is a mistake.
fn give<'a>(context: &mut Context<'a>, state: &mut InitialState<'a>, name: &str, span: Span, value: i64) {
    let loc = context.location(name, span);
    let index = loc.index();
    if state.given.len() <= index {
        state.given.resize(index + 1, None);
    }
    match state.given[index] {
        Some(first) if context.locations[index].init != value => context.report(duplicate_value(name, span, first)),
        _ => {
            state.given[index] = Some(span);
            context.locations[index].init = value;
        }
    }
}

/// The message about a location or a register that is given two different values.
pub(super) fn duplicate_value(name: &str, span: Span, first: Span) -> Diagnostic {
    Diagnostic::error("duplicate-initial-value", format!("`{}` has two initial values", clip(name)), span)
        .label("given again")
        .related(first, "first given here")
        .help("keep one of them")
}
