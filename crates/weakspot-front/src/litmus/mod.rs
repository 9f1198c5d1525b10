//! `.litmus` text to [`LitmusTest`]: x86 tests as herd, litmus7 and their forebears write them.
//!
//! A file is read once, left to right, by one module for each of its parts:
//!
//! | part | module |
//! |---|---|
//! | `X86 NAME (Tag) "doc"`, `Key=Value` lines | [`header`] |
//! | `{ x=0; 0:EAX=1; }` | [`init`] |
//! | `P0 \| P1 ;` and the rows of instructions | [`table`], [`instruction`], [`mnemonic`], [`registers`] |
//! | `locations [...]`, `exists C` | [`condition`] |
//!
//! [`lower`] says what each instruction becomes and where that deviates from the processor; [`finish`] states the
//! condition as the program's `final` block.
//!
//! # How it reads
//! Mistakes in different entries and cells are independent and are all reported; after a mistake in the header or in
//! the condition the rest of that part is left alone. Anything that would change the meaning of a test and is not
//! modelled (computed addresses, arrays, `filter`, parts of registers) is refused by name, never skipped.
//!
//! # Deliberately absent
//! Other architectures, addresses as values, vector registers, the stack, self-modifying code.

mod condition;
mod context;
mod cursor;
mod finish;
mod header;
mod init;
mod instruction;
mod lower;
mod mnemonic;
mod outline;
mod registers;
mod table;
mod target;
mod thread;

use std::sync::Arc;

use weakspot_model::ids::{Reg, Site};
use weakspot_model::ir::{Instr, Operand, Program};
use weakspot_model::litmus::{LitmusTest, Observable};
use weakspot_model::source::{Diagnostic, SourceFile, Span};

pub use self::outline::{InstructionOutline, RowOutline, TestOutline, ThreadOutline, outline};
use condition::Ending;
use context::Context;
use cursor::Cursor;
use init::InitialState;
use thread::{Sites, ThreadBuilder};

/// Longest text that is read, in bytes; litmus tests have a few hundred.
const LONGEST_TEXT: usize = 4 << 20;

/// An instruction of [`parse_marked`]: it touches nothing, waits for nothing, and is a place to rest at.
pub const GAP: &str = "GAP";

/// Reads a litmus test in which [`GAP`] is an instruction too: a choice of one value, as a mark that executions show.
///
/// # Errors
/// Everything that is wrong with the text, in the order of the text.
pub fn parse_marked(source: &Arc<SourceFile>) -> Result<LitmusTest, Vec<Diagnostic>> {
    parse_in(source, Context { marks_gaps: true, ..Context::new(&source.text) })
}

/// Reads a litmus test.
///
/// Threads are called `P0`, `P1`, ...; each has one register for every machine register it names, under the name it
/// first uses, and hidden ones. Initial values of registers become assignments at the start of the thread.
///
/// # Errors
/// Everything that is wrong with the text, in the order of the text.
pub fn parse(source: &Arc<SourceFile>) -> Result<LitmusTest, Vec<Diagnostic>> {
    parse_in(source, Context::new(&source.text))
}

fn parse_in<'a>(source: &'a Arc<SourceFile>, mut context: Context<'a>) -> Result<LitmusTest, Vec<Diagnostic>> {
    if source.text.len() > LONGEST_TEXT {
        let message = format!("the file is longer than {} MiB", LONGEST_TEXT >> 20);
        return Err(vec![context::too_large(message, Span::new(0, 0))]);
    }
    let byte_order_mark = if source.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut cursor = Cursor::new(&source.text, byte_order_mark);
    let test = read(source, &mut context, &mut cursor);
    if let Some(start) = cursor.unclosed_comment {
        let open = Span::new(start, start + 2);
        let diagnostic = Diagnostic::error("unclosed-comment", "this comment is never closed", open);
        return Err(vec![diagnostic.help("comments end with `*)`, and they nest")]);
    }
    match test {
        Some(test) if context.diagnostics.is_empty() => Ok(test),
        _ => {
            context.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
            Err(context.diagnostics)
        }
    }
}

/// Every register the code writes and every location the code names: registers by (thread, name), then memory by name.
pub fn all_observables(test: &LitmusTest) -> Vec<Observable> {
    finish::named_by_code(&test.program)
}

/// `0:EAX` or `x`.
pub fn observable_name(test: &LitmusTest, observable: Observable) -> String {
    let mut name = String::new();
    finish::write_observable(&mut name, &test.program, observable);
    name
}

/// Reads the parts in order. `None` if a part is so wrong that nothing can be made of the rest.
fn read<'a>(source: &'a Arc<SourceFile>, context: &mut Context<'a>, cursor: &mut Cursor<'a>) -> Option<LitmusTest> {
    let name = header::parse_header(context, cursor)?;
    let initial = init::parse_initial_state(context, cursor)?;
    let mut threads = table::parse_head(context, cursor)?;
    table::parse_rows(context, cursor, &mut threads);
    let mut sites = Sites { source, table: Vec::with_capacity(16) };
    set_registers(context, &initial, &mut threads, &mut sites);
    for thread in &mut threads {
        lower::lower_thread(thread, context, &mut sites);
    }
    if context.is_full() {
        return None;
    }
    let ending = match condition::parse_ending(context, cursor, &mut threads) {
        Ok(ending) => Some(ending),
        Err(diagnostic) => {
            context.report(diagnostic.into());
            None
        }
    };
    let threads = threads.into_iter().map(|thread| thread.finish(context)).collect();
    let condition_site = sites.add(ending.as_ref()?.span, None);
    let program = Program {
        source: Arc::clone(source),
        locations: std::mem::take(&mut context.locations),
        mutexes: Vec::new(),
        condvars: Vec::new(),
        threads,
        final_block: None,
        messages: Vec::new(),
        sites: sites.table,
    };
    Some(finish_test(name, program, ending?, condition_site))
}

/// The initial values of registers, as assignments at the start of their threads.
fn set_registers<'a>(
    context: &mut Context<'a>,
    initial: &InitialState<'a>,
    threads: &mut [ThreadBuilder<'a>],
    sites: &mut Sites<'a>,
) {
    let mut given: Vec<(usize, Reg, i64, Span)> = Vec::new();
    for entry in &initial.registers {
        let count = threads.len();
        let Some(thread) = threads.get_mut(entry.thread) else {
            context.report(condition::unknown_thread(count, entry.thread_span, context.text).into());
            continue;
        };
        let dst = thread.register(context, entry.named);
        match given.iter().find(|&&(thread, register, ..)| (thread, register) == (entry.thread, dst)) {
            Some(&(.., value, first)) if value != entry.value => {
                context.report(init::duplicate_value(entry.named.name, entry.span, first));
            }
            Some(_) => continue,
            None => given.push((entry.thread, dst, entry.value, entry.span)),
        }
        if entry.value != 0 {
            let site = sites.add(entry.span, None);
            thread.start_instruction(site);
            thread.emit(Instr::Set { dst, value: Operand::Const(entry.value) });
        }
    }
}

fn finish_test(name: &str, mut program: Program, ending: Ending, site: Site) -> LitmusTest {
    let Ending { quantifier, condition, mut observed, .. } = ending;
    finish::sort_observables(&mut observed, &program);
    let condition_text = finish::condition_text(quantifier, &condition, &program);
    program.messages.push(finish::message(quantifier, &condition_text));
    program.final_block = Some(finish::final_block(quantifier, &condition, 0, site));
    LitmusTest { name: name.to_owned(), program, observed, quantifier, condition, condition_text }
}
