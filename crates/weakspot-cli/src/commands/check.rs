//! `weakspot check`. Reads and checks its input; the exploration engine it needs is not there yet, and it says so.

use weakspot_model::buffer::MemoryModel;
use weakspot_report::json;

use super::{dump_ir, not_there_yet};
use crate::args::CheckArgs;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Output;

/// Checks store-buffer safety.
pub fn run(args: &CheckArgs, output: &Output) -> Result<Exit, Failure> {
    let program = input::program(&args.file, output)?;
    if args.dump_ir {
        return dump_ir("check", &program, output);
    }
    let model = MemoryModel::from(args.model);
    let instead =
        format!("`weakspot verify {} --model {}` checks the specification", args.file.display(), model.name());
    let reason = not_there_yet("check", &instead, output);
    if output.json {
        let (file, seconds) = (&program.source.name, output.seconds());
        let head = json::Head { command: "check", file, model: Some(model.name()), verdict: "bounded", seconds };
        output.object(&json::Check {
            head,
            exhaustive: false,
            executions: 0,
            borderline: 0,
            violations: Vec::new(),
            impact: None,
            trace: None,
            witness: None,
            error: None,
            reason: Some(&reason),
        })?;
    }
    Ok(Exit::NoAnswer)
}
