//! The candidates of a litmus test: a row of its own after each instruction, and before the first.
//!
//! A new row has the columns of the row it follows, as far as that stands on one line; cells of other threads are empty.

use std::sync::Arc;

use weakspot_front::litmus::{InstructionOutline, RowOutline, TestOutline, ThreadOutline};
use weakspot_model::source::SourceFile;

use super::{Candidate, PointPlace, Points};
use crate::language::Language;
use crate::layout::Frame;

/// Letters of `MFENCE` and `SFENCE`.
const FENCE_WIDTH: usize = 6;

impl Points {
    /// The gaps of a litmus test.
    pub(crate) fn of_test(source: &Arc<SourceFile>, outline: &TestOutline) -> Self {
        let mut candidates = Vec::new();
        for (number, thread) in outline.threads.iter().enumerate() {
            let gaps = Column { source, outline, thread, number };
            candidates.extend(gaps.insertion(None));
            let reached = thread.instructions.iter().filter(|instruction| !instruction.leaves);
            candidates.extend(reached.filter_map(|instruction| gaps.insertion(Some(instruction))));
        }
        candidates.sort_by_key(|candidate| (candidate.frame.at.start, candidate.body));
        Self { source: Arc::clone(source), language: Language::Litmus, candidates }
    }
}

/// One column of the table.
struct Column<'a> {
    source: &'a SourceFile,
    outline: &'a TestOutline,
    thread: &'a ThreadOutline,
    number: usize,
}

impl Column<'_> {
    /// The gap after an instruction, or before the first row; `None` if the test has no rows.
    fn insertion(&self, previous: Option<&InstructionOutline>) -> Option<Candidate> {
        let row = self.outline.rows.get(previous.map_or(0, |instruction| instruction.row))?;
        let frame = if previous.is_some() { self.below(row) } else { self.above(row) };
        let span = previous.map_or(self.thread.head, |instruction| instruction.span);
        let place = PointPlace {
            body: self.thread.name.clone(),
            position: self.source.position(span.start as usize),
            insertion: self.source.position(frame.at.start),
            label: previous.and_then(|instruction| instruction.label.clone()),
            statement: previous.map(|_| self.source.text[span.range()].to_owned()),
        };
        Some(Candidate {
            place,
            body: self.number,
            loop_depth: 0,
            after_store: previous.is_some_and(|instruction| instruction.stores),
            existing: None,
            removal: frame.at.clone(),
            frame,
        })
    }

    /// A row below another one.
    fn below(&self, row: &RowOutline) -> Frame {
        let (before, after) = self.row_around(row);
        let rest = self.source.text[row.end..].find('\n').map(|length| &self.source.text[row.end..row.end + length]);
        match rest {
            Some(rest) if rest.trim().is_empty() => {
                let ending = if rest.ends_with('\r') { "\r\n" } else { "\n" };
                let at = row.end + rest.trim_end_matches('\r').len();
                Frame { at: at..at, before: format!("{ending}{before}"), after }
            }
            _ => Frame { at: row.end..row.end, before: format!(" {}", before.trim_start()), after },
        }
    }

    /// A row above the first one.
    fn above(&self, row: &RowOutline) -> Frame {
        let (before, after) = self.row_around(row);
        let at = row.cells.first().map_or(row.end, |cell| cell.start as usize);
        let line = self.line_start(at);
        let newline = self.source.text[..line].strip_suffix('\n');
        match newline {
            Some(above) if self.source.text[line..at].trim().is_empty() => {
                let ending = if above.ends_with('\r') { "\r\n" } else { "\n" };
                Frame { at: line..line, before, after: format!("{after}{ending}") }
            }
            _ => Frame { at: at..at, before: before.trim_start().to_owned(), after: format!("{after} ") },
        }
    }

    fn line_start(&self, at: usize) -> usize {
        self.source.text[..at].rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// What stands before and behind an instruction in a row that has only that one, shaped like another row.
    fn row_around(&self, row: &RowOutline) -> (String, String) {
        let count = row.cells.len();
        let start = row.cells.first().map_or(row.end, |cell| cell.start as usize);
        let line = self.line_start(start);
        let text = &self.source.text[line..row.end];
        let is_plain = text.matches('|').count() == count - 1 && text.matches(';').count() == 1;
        if text.contains('\n') || !is_plain {
            return (format!("  {}", "| ".repeat(self.number)), format!("{} ;", " |".repeat(count - 1 - self.number)));
        }
        let blank = |text: &str| -> String {
            text.chars().map(|letter| if matches!(letter, '|' | ';' | '\t') { letter } else { ' ' }).collect()
        };
        let cell = row.cells[self.number].range();
        let (at, end) = (cell.start - line, (cell.end - line).max(cell.start - line));
        let filled = text[at..end].chars().count().saturating_sub(FENCE_WIDTH);
        let behind = blank(&text[end..]);
        let short = FENCE_WIDTH.saturating_sub(text[at..end].chars().count());
        // a longer instruction takes up some of the space behind the shorter one
        let spare = behind.chars().take_while(|letter| *letter == ' ').count().saturating_sub(1).min(short);
        let glue = if behind.starts_with(['|', ';']) && short > 0 { " " } else { "" };
        (blank(&text[..at]), format!("{}{glue}{}", " ".repeat(filled), &behind[spare..]))
    }
}
