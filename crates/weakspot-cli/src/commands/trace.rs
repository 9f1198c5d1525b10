//! `weakspot trace`. Reads its input; the monitors it needs are not there yet, and it says so.

use weakspot_model::buffer::MemoryModel;
use weakspot_report::json;

use super::not_there_yet;
use crate::args::TraceArgs;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Output;

/// Runs the monitors over a recorded trace.
pub fn run(args: &TraceArgs, output: &Output) -> Result<Exit, Failure> {
    let file = input::read(&args.file)?;
    let model = MemoryModel::from(args.model);
    let reason = not_there_yet("trace", "`weakspot verify` checks programs, not recorded traces", output);
    if output.json {
        let (file, seconds) = (&file.name, output.seconds());
        let head = json::Head { command: "trace", file, model: Some(model.name()), verdict: "inconclusive", seconds };
        output.object(&json::NoAnswer { head, reason: &reason })?;
    }
    Ok(Exit::NoAnswer)
}
