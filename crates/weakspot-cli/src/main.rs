//! The `weakspot` command: arguments are parsed, inputs read, engines called, results printed. Nothing is decided here.
//!
//! | module | what it does |
//! |---|---|
//! | [`args`] | the definitions that help, completions and man page are made from |
//! | [`input`] | files and standard input to text, with every way that can go wrong |
//! | [`commands`] | one module for each subcommand |
//! | [`output`] | colour, width, quiet, JSON; a closed pipe is no error |
//! | [`progress`] | what is shown while a search runs, and Ctrl-C |
//! | [`exit`] | the exit status, and failures that end a command |
#![expect(clippy::doc_markdown, reason = "the name of the format is JSON")]

mod args;
mod commands;
mod exit;
mod input;
mod output;
mod progress;
mod units;

use std::process::ExitCode;

use clap::Parser;

use args::Cli;
use output::Output;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no errors; a closed pipe there is none either.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(exit::Exit::BadInput as u8));
        }
    };
    let output = Output::new(&cli.common);
    let exit = commands::run(&cli.command, &output).unwrap_or_else(|failure| failure.report(&output));
    ExitCode::from(exit as u8)
}
