//! `weakspot fence`. Reads and checks its input; the fence engine it needs is not there yet, and it says so.

use weakspot_model::buffer::MemoryModel;
use weakspot_report::json;

use super::not_there_yet;
use crate::args::FenceArgs;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Output;

/// Looks for fences.
pub fn run(args: &FenceArgs, output: &Output) -> Result<Exit, Failure> {
    let program = input::program(&args.file, output)?;
    let model = MemoryModel::from(args.model);
    let instead = format!(
        "insert fences by hand and ask `weakspot verify {} --model {}` again",
        args.file.display(),
        model.name()
    );
    let reason = not_there_yet("fence", &instead, output);
    if output.json {
        let (file, seconds) = (&program.source.name, output.seconds());
        let head = json::Head { command: "fence", file, model: Some(model.name()), verdict: "inconclusive", seconds };
        output.object(&json::Fence { head, fences: Vec::new(), minimal: false, reason: Some(&reason) })?;
    }
    Ok(Exit::NoAnswer)
}
