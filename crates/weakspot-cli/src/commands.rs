//! One module for each subcommand: from arguments to a printed result and an exit status.

mod check;
mod completions;
mod fence;
mod fmt;
mod limits;
mod litmus;
mod man;
pub mod replacement;
mod trace;
mod values;
mod verify;

use std::path::Path;

use weakspot_model::ir::Program;
use weakspot_report::json;

use crate::args::Command;
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Does what was asked.
pub fn run(command: &Command, output: &Output) -> Result<Exit, Failure> {
    match command {
        Command::Check(args) => check::run(args, output),
        Command::Verify(args) => verify::run(args, output),
        Command::Fence(args) => fence::run(args, output),
        Command::Litmus(args) => litmus::run(args, output),
        Command::Trace(args) => trace::run(args, output),
        Command::Fmt(args) => fmt::run(args, output),
        Command::Completions(args) => completions::run(args, output),
        Command::Man(args) => man::run(args, output),
    }
}

/// `--dump-ir`.
fn dump_ir(command: &'static str, program: &Program, output: &Output) -> Result<Exit, Failure> {
    let ir = program.to_string();
    if output.json {
        let file = &program.source.name;
        let head = json::Head { command, file, model: None, verdict: "dumped", seconds: output.seconds() };
        output.object(&json::DumpIr { head, ir: &ir })?;
    } else {
        output.result(&ir)?;
    }
    Ok(Exit::Good)
}

/// `1 event`, `2 events`.
fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// The name to show for a file.
fn shown(path: &Path) -> String {
    if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() }
}
