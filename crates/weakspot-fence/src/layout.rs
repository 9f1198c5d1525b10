//! Where text goes so that it looks as if the author had written it.
//!
//! A fence after a statement that has a line of its own gets a line of its own with the same indentation, below any
//! comment that ends the line; everywhere else it goes between its neighbours with one space. Line endings are those of
//! the line next to it. Nothing that stands in the text is moved or removed.

use std::ops::Range;

use weakspot_model::source::Span;

/// A replacement of a piece of text by `before`, something, and `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// What is replaced; empty for an insertion.
    pub(crate) at: Range<usize>,
    /// Goes before what is put in.
    pub(crate) before: String,
    /// Goes after it.
    pub(crate) after: String,
}

impl Frame {
    fn insert(at: usize, before: impl Into<String>, after: impl Into<String>) -> Self {
        Self { at: at..at, before: before.into(), after: after.into() }
    }
}

/// Where a statement goes that follows another one.
pub(crate) fn after_statement(text: &str, statement: Span) -> Frame {
    let Range { start, end } = statement.range();
    if let (Some(indent), Some(line_end)) = (indent_before(text, start), blank_until(text, end)) {
        let ending = if text[line_end..].starts_with('\r') { "\r\n" } else { "\n" };
        return Frame::insert(line_end, format!("{ending}{indent}"), "");
    }
    Frame::insert(end, " ", "")
}

/// Where a statement goes that precedes another one, the first of its block.
pub(crate) fn before_statement(text: &str, statement: Span) -> Frame {
    let start = statement.range().start;
    match indent_before(text, start).zip(ending_before(text, start)) {
        Some((indent, ending)) => Frame::insert(start, "", format!("{ending}{indent}")),
        None => Frame::insert(start, "", " "),
    }
}

/// Where the only statement of a block goes that ends with this brace.
pub(crate) fn in_empty_block(text: &str, brace: Span) -> Frame {
    let at = brace.range().start;
    if let Some((indent, ending)) = indent_before(text, at).zip(ending_before(text, at)) {
        let deeper = if indent.contains('\t') { "\t" } else { "    " };
        return Frame::insert(at, deeper, format!("{ending}{indent}"));
    }
    let spaced = text[..at].ends_with([' ', '\t']);
    Frame::insert(at, if spaced { "" } else { " " }, " ")
}

/// What goes when a statement goes: its whole line if it has one for itself, else it and the space before it.
pub(crate) fn removal(text: &str, statement: Span) -> Range<usize> {
    let Range { start, end } = statement.range();
    let line = &text[end..];
    let rest = line.find('\n').map(|length| &line[..=length]);
    match (indent_before(text, start), rest) {
        (Some(indent), Some(rest)) if rest.trim().is_empty() => start - indent.len()..end + rest.len(),
        _ if text[..start].ends_with(' ') && !text[..start - 1].ends_with('\n') => start - 1..end,
        _ => start..end,
    }
}

/// The space before a place that is the first on its line.
fn indent_before(text: &str, at: usize) -> Option<&str> {
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let indent = &text[line..at];
    indent.chars().all(|character| character == ' ' || character == '\t').then_some(indent)
}

/// How the line above a place ends.
fn ending_before(text: &str, at: usize) -> Option<&'static str> {
    let newline = text[..at].rfind('\n')?;
    Some(if text[..newline].ends_with('\r') { "\r\n" } else { "\n" })
}

/// The end of the line, if there is nothing on it from a place on except space and one comment.
fn blank_until(text: &str, from: usize) -> Option<usize> {
    let line = &text[from..from + text[from..].find('\n')?];
    let line = line.strip_suffix('\r').unwrap_or(line);
    let rest = line.trim_start();
    let blank = rest.is_empty() || rest.starts_with("//") || is_one_block_comment(rest.trim_end());
    blank.then_some(from + line.len())
}

/// Block comments nest.
fn is_one_block_comment(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" if depth > 0 => depth -= 1,
            _ if depth == 0 => return false,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at == bytes.len();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_comments_are_recognised_to_their_end() {
        assert!(is_one_block_comment("/* a /* b */ c */"));
        assert!(!is_one_block_comment("/* a */ x = 1;"));
        assert!(!is_one_block_comment("/* a"));
        assert!(!is_one_block_comment("x = 1;"));
    }
}
