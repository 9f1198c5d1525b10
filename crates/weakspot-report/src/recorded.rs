//! Recorded traces, for people: findings with the source they come from, and damage with the place where it is.

use std::fmt::Write as _;
use std::sync::Arc;

use weakspot_model::source::{Severity, SourceFile, Span};

use crate::diagnostic::{Message, render_message};
use crate::style::{Role, Style, wrap};

/// A place that was recorded.
#[derive(Debug, Clone, Copy)]
pub struct RecordedPlace<'a> {
    /// The name of the file when it was recorded.
    pub file: &'a str,
    /// One-based.
    pub line: u32,
    /// One-based, in characters.
    pub column: u32,
    /// In characters; 0: not known.
    pub length: u32,
    /// The file as it is now, if it is still the one that was recorded.
    pub source: Option<&'a Arc<SourceFile>>,
}

/// A party to a finding.
#[derive(Debug, Clone, Copy)]
pub struct Party<'a> {
    /// The name of the thread.
    pub thread: &'a str,
    /// Where, if that was recorded.
    pub place: Option<RecordedPlace<'a>>,
}

/// A pair of accesses that a store buffer turns round.
#[derive(Debug, Clone, Copy)]
pub struct RecordedViolation<'a> {
    /// The store that can be late.
    pub store: Party<'a>,
    /// The access that can come before it.
    pub access: Party<'a>,
    /// The location of both.
    pub location: &'a str,
    /// In how many executions, which is the first, and which of its events is the access.
    pub executions: u64,
    /// Counted from 1.
    pub execution: u64,
    /// Counted from 1.
    pub event: u64,
}

impl RecordedViolation<'_> {
    /// With the source lines if there are any; ends with a line break.
    pub fn render(&self, style: &Style) -> String {
        let mut text = self.snippet(style).unwrap_or_else(|| self.sentence(style));
        let Self { executions, execution, event, .. } = self;
        let found = match executions {
            1 => format!("found in execution {execution}, event {event}"),
            _ => format!("found in {executions} executions, first in execution {execution}, event {event}"),
        };
        let _ = writeln!(text, "  {found}");
        text
    }

    fn title(&self) -> String {
        format!("a store of `{}` to `{}` can still be invisible", self.store.thread, self.location)
            + &format!(" when an access of `{}` comes that is later under SC", self.access.thread)
    }

    /// The source with both places marked, if both are known and in one file.
    fn snippet(&self, style: &Style) -> Option<String> {
        let (store, access) = (self.store.place?, self.access.place?);
        let source = store.source.filter(|_| store.file == access.file)?;
        let late = (span(source, store)?, format!("`{}`: this store", self.store.thread));
        let early =
            (span(source, access)?, format!("`{}`: this can come before the store is visible", self.access.thread));
        let title = self.title();
        let message = Message {
            severity: Some(Severity::Warning),
            code: Some("store-buffer"),
            title: &title,
            primary: vec![late],
            related: vec![early],
            help: None,
        };
        Some(render_message(source, &message, style))
    }

    fn sentence(&self, style: &Style) -> String {
        let warning = style.paint(Role::Heading, "warning[store-buffer]:");
        let mut text = format!("{warning} {}\n", self.title());
        for (what, party) in [("the store", self.store), ("the access", self.access)] {
            let _ = writeln!(text, "  {what}, of `{}`: {}", party.thread, place(party));
        }
        text
    }
}

fn place(party: Party<'_>) -> String {
    let Some(RecordedPlace { file, line, column, source, .. }) = party.place else {
        return "the place is not recorded".to_owned();
    };
    let mut text = format!("{file}:{line}:{column}");
    if source.is_none() {
        text.push_str(" (the file cannot be read or has changed since)");
    }
    text
}

/// The bytes of a place; `None` if the file has no such line.
fn span(source: &SourceFile, place: RecordedPlace<'_>) -> Option<Span> {
    let lines = source.text.split_inclusive('\n').take(place.line.checked_sub(1)? as usize);
    let start: usize = lines.map(str::len).sum();
    let rest = source.text.get(start..).filter(|rest| !rest.is_empty())?;
    let offset = |characters: usize| rest.char_indices().nth(characters).map_or(rest.len(), |(offset, _)| offset);
    let first = place.column.saturating_sub(1) as usize;
    Some(Span::new(start + offset(first), start + offset(first + place.length.max(1) as usize)))
}

/// A line of a recorded trace that is wrong.
#[derive(Debug, Clone, Copy)]
pub struct WrongLine<'a> {
    /// The name of the trace.
    pub file: &'a str,
    /// One-based.
    pub line: u64,
    /// One-based, in characters.
    pub column: u64,
    /// How many characters are meant.
    pub length: u64,
    /// The line.
    pub text: &'a str,
    /// What is wrong.
    pub message: &'a str,
    /// What to do.
    pub help: &'a str,
}

/// How many characters of a line are shown on either side of what is wrong.
const KEPT: usize = 50;

impl WrongLine<'_> {
    /// The message, the line, and a mark under what is meant; ends with a line break.
    pub fn render(&self, style: &Style) -> String {
        let Self { file, line, column, length, .. } = *self;
        let margin = " ".repeat(line.to_string().len());
        let before = (column as usize - 1).saturating_sub(KEPT);
        let shown: String = self.text.chars().skip(before).take(2 * KEPT + length.min(80) as usize).collect();
        let shown: String = shown.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
        let mark = "^".repeat(length.clamp(1, 80) as usize);
        let mut text = format!("{} {}\n", style.paint(Role::Failure, "error:"), self.message);
        let _ = writeln!(text, "{margin}--> {file}:{line}:{column}");
        let _ = writeln!(text, "{margin} |");
        let _ = writeln!(text, "{line} | {shown}");
        let _ = writeln!(
            text,
            "{margin} | {}{}",
            " ".repeat(column as usize - 1 - before),
            style.paint(Role::Failure, &mark)
        );
        let help = wrap(self.help, style.width.saturating_sub(9).max(20)).join("\n       ");
        let _ = writeln!(text, "{} {help}", style.paint(Role::Heading, " help:"));
        text
    }
}
