//! The `.weak` modelling language.

mod ast;
mod check;
mod expect;
mod lexer;
mod lower;
mod names;
mod parser;
mod problems;

use std::sync::Arc;

use weakspot_model::ir::Program;
use weakspot_model::source::{Diagnostic, SourceFile};

pub use self::expect::{CheckVerdict, Expectation, Expected, VerifyVerdict};

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
