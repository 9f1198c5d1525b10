//! The code: a head row `P0 | P1 ;` and rows of instructions, one column a thread.
//!
//! A row ends with `;`. It may go over several lines as long as the line break stands next to a `|` or a `;`; a line
//! break inside a cell is taken for a forgotten `;`, which is the likelier mistake.

use weakspot_model::source::{Diagnostic, Span};

use super::context::{Context, clip, too_large};
use super::cursor::Cursor;
use super::instruction::parse_cell;
use super::target::thread_digits;
use super::thread::{Statement, ThreadBuilder};

/// Threads in one test; real ones have two to six.
const MOST_THREADS: usize = 64;

/// What is said if the head row is missing.
const HEAD_HELP: &str = "after the initial state comes a row with the names of the threads: `P0 | P1 ;`";

/// The span of each cell of the row in hand.
pub(super) type Row = Vec<Span>;

/// How a row ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowEnd {
    /// With its `;`.
    Semicolon,
    /// Without; the mistake is at this offset.
    Missing(usize),
}

/// Reads the head row. `None` if there are no threads to go on with.
pub(super) fn parse_head<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>) -> Option<Vec<ThreadBuilder<'a>>> {
    cursor.skip_trivia();
    if cursor.at_end() || starts_condition(cursor) {
        let message = format!("expected the threads, found {}", cursor.found());
        context.report(Diagnostic::error("missing-threads", message, cursor.found_span()).help(HEAD_HELP));
        return None;
    }
    let mut row = Row::new();
    let end = parse_row(cursor, &mut row);
    report_row_end(context, end);
    if row.len() > MOST_THREADS {
        let message = format!("the test has {} threads; at most {MOST_THREADS} are possible", row.len());
        context.report(too_large(message, row[MOST_THREADS]));
        return None;
    }
    if !row.iter().any(|span| thread_digits(&context.text[span.range()]).is_some()) {
        let found = clip(&context.text[row[0].range()]);
        let message = format!("expected the names of the threads, found `{found}`");
        context.report(Diagnostic::error("missing-threads", message, row[0]).label("expected `P0`").help(HEAD_HELP));
        return None;
    }
    for (index, &span) in row.iter().enumerate() {
        check_name(context, index, span);
    }
    Some(row.iter().enumerate().map(|(index, &span)| ThreadBuilder::new(index, span)).collect())
}

/// The thread of column `index` must be called `P<index>`.
fn check_name(context: &mut Context<'_>, index: usize, span: Span) {
    let name = &context.text[span.range()];
    if thread_digits(name).is_some_and(|digits| digits.parse() == Ok(index)) {
        return;
    }
    let message = match thread_digits(name) {
        Some(_) => format!("thread {index} is called `{}`", clip(name)),
        None if name.is_empty() => format!("thread {index} has no name"),
        None => format!("`{}` is not the name of a thread", clip(name)),
    };
    let diagnostic = Diagnostic::error("bad-thread-name", message, span).label(format!("expected `P{index}`"));
    context.report(diagnostic.help("threads are called P0, P1, P2, ... from left to right"));
}

/// Reads rows of code up to the condition or the end of the file.
pub(super) fn parse_rows<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>, threads: &mut [ThreadBuilder<'a>]) {
    let mut row = Row::new();
    loop {
        cursor.skip_trivia();
        if cursor.at_end() || starts_condition(cursor) || context.is_full() {
            return;
        }
        row.clear();
        let end = parse_row(cursor, &mut row);
        if report_misspelt_condition(context, cursor, &row) {
            return;
        }
        report_row_end(context, end);
        if row.len() == threads.len() {
            add_row(context, threads, &row);
        } else if row.iter().any(|span| span.start != span.end) {
            report_row_length(context, threads, &row);
        }
    }
}

/// Appends each cell to its thread.
fn add_row<'a>(context: &mut Context<'a>, threads: &mut [ThreadBuilder<'a>], row: &[Span]) {
    for (thread, &span) in threads.iter_mut().zip(row) {
        if span.start == span.end {
            continue;
        }
        let Some(cell) = parse_cell(context, span) else { continue };
        thread.statements.extend(cell.labels.into_iter().map(|(name, span)| Statement::Label(name, span)));
        thread.statements.extend(cell.instruction.map(Statement::Instruction));
    }
}

/// Splits a row into its cells, white space and comments trimmed.
pub(super) fn parse_row(cursor: &mut Cursor<'_>, row: &mut Row) -> RowEnd {
    loop {
        cursor.skip_trivia();
        let (span, missing) = take_cell(cursor);
        row.push(span);
        if let Some(offset) = missing {
            return RowEnd::Missing(offset);
        }
        match cursor.peek() {
            Some(b'|') => cursor.pos += 1,
            Some(b';') => {
                cursor.pos += 1;
                return RowEnd::Semicolon;
            }
            _ => return RowEnd::Missing(cursor.pos),
        }
    }
}

/// Takes one cell and stands before its `|` or `;`. The second result is where a `;` is missing.
fn take_cell(cursor: &mut Cursor<'_>) -> (Span, Option<usize>) {
    let bytes = cursor.text.as_bytes();
    let start = cursor.pos;
    let mut end = start;
    while let Some(byte) = cursor.peek() {
        match byte {
            b'|' => break,
            b';' if is_lock_prefix(cursor, start) => cursor.pos += 1,
            b';' => break,
            b'\n' => {
                cursor.skip_trivia();
                if !matches!(cursor.peek(), Some(b'|' | b';')) {
                    return (Span::new(start, end), Some(end));
                }
            }
            b'(' if bytes.get(cursor.pos + 1) == Some(&b'*') => cursor.skip_comment(),
            _ if byte.is_ascii_whitespace() => cursor.pos += 1,
            _ => {
                cursor.pos += 1;
                end = cursor.pos;
            }
        }
    }
    (Span::new(start, end), None)
}

/// Is the `;` here the one of `LOCK; INC [x]`? It is if the cell holds just `LOCK` and its line goes on.
fn is_lock_prefix(cursor: &Cursor<'_>, start: usize) -> bool {
    let cell = cursor.text[start..cursor.pos].trim_ascii_end();
    let word = cell.rsplit(':').next().unwrap_or(cell).trim_ascii_start();
    let rest = cursor.text[cursor.pos + 1..].bytes().find(|byte| !matches!(byte, b' ' | b'\t'));
    word.eq_ignore_ascii_case("lock") && rest.is_some_and(|byte| byte.is_ascii_alphabetic())
}

/// Does `locations`, `exists`, `~exists`, `forall`, `final`, `filter` or `<<` come next?
pub(super) fn starts_condition(cursor: &Cursor<'_>) -> bool {
    match cursor.peek_word() {
        "" => cursor.peek() == Some(b'~') || cursor.starts_with("<<"),
        "locations" | "exists" | "forall" | "final" | "filter" | "with" => true,
        "not" => {
            let mut after = Cursor::new(cursor.text, cursor.pos + "not".len());
            after.skip_trivia();
            after.peek_word() == "exists"
        }
        _ => false,
    }
}

/// A row that is no row but a condition with a misspelt keyword (`exist (...)`).
fn report_misspelt_condition(context: &mut Context<'_>, cursor: &Cursor<'_>, row: &Row) -> bool {
    let at = Cursor::new(cursor.text, row[0].start as usize);
    let word = at.peek_word();
    let mut after = Cursor::new(cursor.text, at.pos + word.len());
    after.skip_trivia();
    if word.is_empty() || after.peek() != Some(b'(') || super::mnemonic::lookup(word).is_some() {
        return false;
    }
    let Some(known) = crate::suggest::closest(word, ["exists", "forall", "final"]) else { return false };
    let message = format!("unknown keyword `{word}`");
    context.report(
        Diagnostic::error("unknown-keyword", message, at.found_span()).help(format!("did you mean `{known}`?")),
    );
    true
}

fn report_row_end(context: &mut Context<'_>, end: RowEnd) {
    if let RowEnd::Missing(offset) = end {
        let span = Span::new(offset, offset);
        context.report(
            Diagnostic::error("missing-semicolon", "this row does not end with `;`", span)
                .label("expected `;`")
                .help("rows of the code end with `;`, cells are separated by `|`"),
        );
    }
}

fn report_row_length(context: &mut Context<'_>, threads: &[ThreadBuilder<'_>], row: &[Span]) {
    let (cells, columns) = (row.len(), threads.len());
    let plural = |count: usize, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
    let message = format!("this row has {}, but the test has {}", plural(cells, "cell"), plural(columns, "thread"));
    let (span, label, help) = if cells > columns {
        (row[columns], "one cell too many", "cells are separated by `|`, one for each thread")
    } else {
        (row[0].to(row[cells - 1]), "", "threads that do nothing in a row have an empty cell: `MOV [x],$1 | ;`")
    };
    let last = threads[columns - 1].head;
    context.report(
        Diagnostic::error("wrong-number-of-cells", message, span)
            .label(label)
            .related(threads[0].head.to(last), "the threads")
            .help(help),
    );
}
