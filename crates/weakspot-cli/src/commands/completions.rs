//! `weakspot completions SHELL`.

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::{Exit, Failure};
use crate::output::Output;

/// Prints the script. It is a script with `--json` too: there is nothing to say about it.
pub fn run(args: &CompletionsArgs, output: &Output) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "weakspot", &mut script);
    output.result(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Good)
}
