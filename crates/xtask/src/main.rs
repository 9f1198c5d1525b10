//! Chores of the repository: `cargo xtask COMMAND`.
//!
//! | command | what it does |
//! |---|---|
//! | `compat` | runs published loom suites with weakspot in loom's place |
//! | `reproduce` | runs the experiments of the papers again and writes `docs/reproduction.md` |
//!
//! A chore uses the library crates, never the `weakspot` binary. Each has a module of its own; a new one is a variant
//! of [`Command`] and an arm in [`main`].

mod compat;
mod repository;
mod reproduce;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the weakspot repository.
#[derive(Debug, Parser)]
#[command(name = "xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run published loom suites with weakspot in loom's place
    Compat(Box<compat::CompatArgs>),
    /// Run the experiments of the papers and write docs/reproduction.md
    Reproduce(reproduce::ReproduceArgs),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Compat(args) => compat::run(&args),
        Command::Reproduce(args) => reproduce::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
