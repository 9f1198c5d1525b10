//! The `.weak` modelling language.
//!
//! ```text
//! text --lexer--> tokens --parser--> ast --check--> tables --lower--> Program
//!                   |                                  \_________ diagnostics
//!                   format
//! ```
//!
//! [`compile`] reports all independent mistakes at once; [`format()`] gives the canonical form of a file.
//!
//! # Decisions
//! Where the description of the language is silent, this is what holds.
//!
//! **Words.** `const shared mutex condvar thread fn let if else while loop break continue return true false me` are
//! reserved. All other words of the language are recognised by where they stand: a variable, mutex or label may be
//! called `lock`, `swap` or `wait`; a function may not take the name of an operation. Names are made of ASCII letters,
//! digits and `_`. Integers are decimal, `0x…` or `0b…`, with `_` between digits. Block comments nest.
//!
//! **Operators** bind as in Rust: unary, `* / %`, `+ -`, `<< >>`, `&`, `^`, `|`, comparisons, `&&`, `||`. Comparisons do
//! not chain. Of an assignment to a cell, the index is evaluated before the value; of an atomic, the index, then the
//! operands from left to right. `choose(lo..=hi)` may stand wherever an expression may, outside `final`.
//!
//! **Names.** Items need distinct names. A local or parameter may not be named like an item other than a thread, but an
//! inner block may hide a local of an outer one. Two `let` of one name in one block are an error. Items may be used
//! before they are declared, except that a constant may use only constants above it. Labels are a world of their own,
//! unique in each body; instructions of an inlined function that have no label of their own carry that of the call.
//!
//! **Locals** start at 0. `a.r` in `final` is the `r` of the outermost block of thread `a`, else the only `r` of the
//! thread. A local that never changes after its `let` needs no register if it is constant or a copy, unless `final`
//! reads it.
//!
//! **`me`** is the index in `thread name[N]`, also in functions called from there; in a single thread it is 0.
//!
//! **Functions** take parameters by value. Falling off the end, and `return;`, give 0. Recursion is an error.
//!
//! **`critical`** may be nested; leaving it by `break`, `continue` or `return` leaves every level on the way.
//!
//! **`final`** may hold `let`, assignments to its own locals, `assert`, `if` and `skip`.
//!
//! **Errors and warnings.** Whatever is certain to be wrong is an error, whatever depends on what is reached is left to
//! the engines: a constant outside the declared range of its cell, or an index that is out of range in one instance
//! of a template, is a warning here and a program error when it is executed. Constant division by zero is an error in
//! constants, lengths, initial values and indices only.
//!
//! **Limits.** 64 threads, 65,536 cells, 1,024 mutexes, 1,024 condition variables, 256 levels of nesting, 1,000,000
//! instructions, 65,535 registers a thread, names of 255 letters, 4 GiB of text.

mod ast;
mod check;
mod expect;
mod format;
mod lexer;
mod lower;
mod names;
mod outline;
mod parser;
mod problems;

use std::sync::Arc;

use weakspot_model::ir::Program;
use weakspot_model::source::{Diagnostic, SourceFile, Span};

pub use self::expect::{CheckVerdict, Expectation, Expected, VerifyVerdict};
pub use self::outline::{Outline, OutlineBlock, OutlineBody, OutlineStatement};

/// A file that has been understood.
#[derive(Debug, Clone)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// The file's own expected results, in the order of the text.
    pub expectations: Vec<Expectation>,
    /// What the user should look at.
    pub warnings: Vec<Diagnostic>,
}

/// Parses, resolves, checks and lowers. All independent mistakes of the file are reported at once, in the order of the
/// text.
pub fn compile(source: &Arc<SourceFile>) -> Result<Compiled, Vec<Diagnostic>> {
    limit_size(source)?;
    let parser::Outcome { ast, names, mut problems, directives } = parser::parse(&source.text);
    let expectations = expect::expectations(&source.text, &directives, &mut problems);
    let checked = check::check(&ast, &names, &mut problems);
    if problems.any_error() {
        return Err(problems.finish().err().unwrap_or_default());
    }
    let program = lower::lower(source, &ast, &names, &checked, &mut problems);
    let warnings = problems.finish()?;
    Ok(Compiled { program, expectations, warnings })
}

/// Where the statements and blocks of a file without mistakes stand, for tools that edit its text.
pub fn outline(source: &Arc<SourceFile>) -> Result<Outline, Vec<Diagnostic>> {
    limit_size(source)?;
    let parser::Outcome { ast, names, mut problems, .. } = parser::parse(&source.text);
    check::check(&ast, &names, &mut problems);
    problems.finish()?;
    Ok(outline::outline(&ast, &names))
}

/// The canonical form of a file without syntax errors: comments and single blank lines kept, one statement a line.
/// Formatting the result again changes nothing, and it means what the source means.
pub fn format(source: &Arc<SourceFile>) -> Result<String, Vec<Diagnostic>> {
    limit_size(source)?;
    parser::parse(&source.text).problems.finish()?;
    Ok(format::format(&source.text))
}

/// Places in the text are 32-bit numbers.
fn limit_size(source: &SourceFile) -> Result<(), Vec<Diagnostic>> {
    if u32::try_from(source.text.len()).is_ok() {
        return Ok(());
    }
    let diagnostic = Diagnostic::error("too-large", "this file is larger than 4 GiB", Span::default());
    Err(vec![diagnostic.help("split the model into several files")])
}
