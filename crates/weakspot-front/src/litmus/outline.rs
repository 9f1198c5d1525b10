//! The shape of a test's text: threads, rows, instructions and their places, without what they mean.
//!
//! For tools that edit a test and want its layout kept: they insert rows at the places named here and read the result again.

use std::sync::Arc;

use weakspot_model::source::{Diagnostic, SourceFile, Span};

use super::context::Context;
use super::cursor::Cursor;
use super::instruction::{Instruction, Operand, Operands, parse_cell};
use super::mnemonic::Mnemonic;
use super::table::{self, Row};
use super::{header, init};

/// The code of a test.
#[derive(Debug, Clone)]
pub struct TestOutline {
    /// One for each column.
    pub threads: Vec<ThreadOutline>,
    /// The rows below the head, in the order of the text.
    pub rows: Vec<RowOutline>,
}

/// One column.
#[derive(Debug, Clone)]
pub struct ThreadOutline {
    /// `P0`, `P1`, ...
    pub name: String,
    /// Where its name stands.
    pub head: Span,
    /// In the order of the text.
    pub instructions: Vec<InstructionOutline>,
}

/// One row of the table.
#[derive(Debug, Clone)]
pub struct RowOutline {
    /// One for each thread; empty where a thread does nothing.
    pub cells: Vec<Span>,
    /// Just behind its `;`.
    pub end: usize,
}

/// One instruction of one thread.
#[derive(Debug, Clone)]
pub struct InstructionOutline {
    /// Which of [`TestOutline::rows`] it stands in.
    pub row: usize,
    /// From `LOCK` or the mnemonic to the last operand.
    pub span: Span,
    /// The last label before it in its cell.
    pub label: Option<String>,
    /// Does it write memory, with no `LOCK`?
    pub stores: bool,
    /// `JMP`: what follows it is not reached from it.
    pub leaves: bool,
}

/// Makes the outline of a test.
///
/// # Errors
/// Everything that is wrong with the text, as [`super::parse`] reports it.
pub fn outline(source: &Arc<SourceFile>) -> Result<TestOutline, Vec<Diagnostic>> {
    super::parse(source)?;
    let mut context = Context::new(&source.text);
    let start = source.text.len() - source.text.trim_start_matches('\u{feff}').len();
    let mut cursor = Cursor::new(&source.text, start);
    let outline = read(&mut context, &mut cursor);
    outline.ok_or(context.diagnostics)
}

fn read<'a>(context: &mut Context<'a>, cursor: &mut Cursor<'a>) -> Option<TestOutline> {
    header::parse_header(context, cursor)?;
    init::parse_initial_state(context, cursor)?;
    let heads = table::parse_head(context, cursor)?;
    let thread =
        |head: Span| ThreadOutline { name: context.text[head.range()].to_owned(), head, instructions: Vec::new() };
    let mut outline =
        TestOutline { threads: heads.iter().map(|builder| thread(builder.head)).collect(), rows: Vec::new() };
    loop {
        cursor.skip_trivia();
        if cursor.at_end() || table::starts_condition(cursor) {
            return Some(outline);
        }
        let mut cells = Row::new();
        table::parse_row(cursor, &mut cells);
        if cells.len() == outline.threads.len() {
            outline.add_row(context, cells, cursor.pos);
        }
    }
}

impl TestOutline {
    fn add_row(&mut self, context: &mut Context<'_>, cells: Row, end: usize) {
        let row = self.rows.len();
        for (thread, &span) in self.threads.iter_mut().zip(&cells) {
            if span.start == span.end {
                continue;
            }
            let Some(cell) = parse_cell(context, span) else { continue };
            let label = cell.labels.last().map(|(name, _)| (*name).to_owned());
            thread.instructions.extend(cell.instruction.map(|instruction| InstructionOutline {
                row,
                span: instruction.span,
                label,
                stores: stores(&instruction),
                leaves: instruction.mnemonic == Mnemonic::Jump,
            }));
        }
        self.rows.push(RowOutline { cells, end });
    }
}

fn stores(instruction: &Instruction<'_>) -> bool {
    let reads_only = matches!(instruction.mnemonic, Mnemonic::Compare | Mnemonic::Test | Mnemonic::Exchange);
    let first = match instruction.operands {
        Operands::None => None,
        Operands::One(first) | Operands::Two(first, _) => Some(first),
    };
    !instruction.locked && !reads_only && matches!(first, Some(Operand::Memory(_)))
}
