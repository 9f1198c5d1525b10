//! The arguments. Help texts, shell completions and the man page are all made from what is written here.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use weakspot_model::buffer::MemoryModel;

use crate::units::{mebibytes, seconds};

/// More threads than this help nobody.
const MAX_JOBS: i64 = 1_024;

/// The most stores a bounded buffer may be asked to hold.
const MAX_BUFFER: i64 = 65_535;

/// The largest depth of PCT: far beyond what its guarantee is good for.
const MAX_DEPTH: i64 = 1_000;

/// The most stores of an abstract buffer that may be asked to stay in order.
const MAX_K: u32 = 1_000;

/// Is low-lock code correct when processors delay stores in store buffers, where does it break, and which fences fix it?
#[derive(Debug, Parser)]
#[command(name = "weakspot", version = env!("WEAKSPOT_VERSION"), max_term_width = 100)]
#[command(after_help = EXIT_STATUS)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub common: CommonArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  the answer is good: safe, verified, fences found or none needed
  1  a problem was found: unsafe, error, violated
  2  bad usage or bad input
  3  no answer within the bounds or limits: bounded, inconclusive
  4  no fence placement can make the program correct";

/// Options of every command.
#[derive(Debug, Clone, Args)]
pub struct CommonArgs {
    /// Print the result as JSON on standard output, and nothing else there
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = Colour::Auto)]
    #[arg(help_heading = "Output")]
    pub color: Colour,
    /// Print the verdict only, no execution, no warnings, no progress
    #[arg(short, long, global = true, help_heading = "Output")]
    pub quiet: bool,
    /// Print more figures about the search
    #[arg(short, long, global = true, conflicts_with = "quiet", help_heading = "Output")]
    pub verbose: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Are all SC executions correct, and is the program store-buffer safe under the model?
    Check(CheckArgs),
    /// Does the program meet its specification under a memory model?
    Verify(VerifyArgs),
    /// Find the fewest fences that make the program correct
    Fence(FenceArgs),
    /// Run x86 litmus tests; prints a log in herd7's format
    Litmus(LitmusArgs),
    /// Run the monitors over a recorded trace
    Trace(TraceArgs),
    /// Print a program in canonical form
    Fmt(FmtArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the man page
    Man(ManArgs),
}

/// A memory model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// Sequential consistency: stores act at once
    Sc,
    /// Total store order: one store buffer per thread, first in, first out
    Tso,
    /// Partial store order: stores to different locations may overtake one another
    Pso,
}

impl From<Model> for MemoryModel {
    fn from(model: Model) -> Self {
        match model {
            Model::Sc => Self::Sc,
            Model::Tso => Self::Tso,
            Model::Pso => Self::Pso,
        }
    }
}

/// How much a search may spend.
#[derive(Debug, Clone, Args)]
pub struct LimitArgs {
    /// Threads to search with [default: 1; with more, which counterexample is found first may differ from run to run]
    #[arg(short, long, value_name = "N", value_parser = positive(MAX_JOBS), allow_negative_numbers = true)]
    #[arg(help_heading = "Limits")]
    pub jobs: Option<NonZeroUsize>,
    /// Give up after this many seconds (or 500ms, 5m, 1h)
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    #[arg(help_heading = "Limits")]
    pub time_limit: Option<f64>,
    /// Give up when the tables of the search grow past this many MiB (or 4G)
    #[arg(long, value_name = "MIB", value_parser = mebibytes, allow_negative_numbers = true)]
    #[arg(help_heading = "Limits")]
    pub memory_limit: Option<NonZeroUsize>,
}

/// `weakspot check`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct CheckArgs {
    /// The program: a .weak or a .litmus file; - reads standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The memory model
    #[arg(short, long, value_enum, default_value_t = Model::Tso)]
    pub model: Model,
    /// How to explore
    #[arg(long, value_enum, default_value_t = CheckEngine::Auto)]
    pub engine: CheckEngine,
    /// stateless: explore executions with at most this many preemptions, 0 first [default: no bound]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub max_preemptions: Option<u32>,
    /// stateless: explore this many random schedules
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(allow_negative_numbers = true)]
    pub random: Option<u64>,
    /// stateless: explore this many schedules by random priorities, which find a bug of a small --depth with a known probability
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(allow_negative_numbers = true)]
    pub pct: Option<u64>,
    /// pct: how many orderings of two steps a bug may need [default: 3]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=MAX_DEPTH))]
    #[arg(allow_negative_numbers = true)]
    pub depth: Option<u32>,
    /// random, pct: the same seed gives the same schedules [default: 0]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Run exactly one schedule: the one that is printed with a finding, such as 0x3.1.0
    #[arg(long, value_name = "SCHEDULE", allow_hyphen_values = true)]
    pub replay: Option<String>,
    /// stateless: write the explored executions to this file, for `weakspot trace`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub record: Option<PathBuf>,
    /// record: the format of the file [default: text for names that end in .txt, else binary]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub record_format: Option<RecordFormat>,
    /// stateless: let each loop go round at most this often [default: no bound]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub unroll: Option<u32>,
    /// stateless: how to recognise executions that a store buffer turns into others [default: operational for pso, else sober]
    #[arg(long, value_enum)]
    pub monitor: Option<Monitor>,
    /// Go on after the first violation, and group violations by their pair of accesses
    #[arg(long)]
    pub all: bool,
    /// A deadlock is not an error
    #[arg(long)]
    pub allow_deadlock: bool,
    /// A wait may end without a notification
    ///
    /// Where the stateless engine explores, a thread that only goes round its loop wakes up so twice in a row at most:
    /// more often makes no difference to anybody else.
    #[arg(long)]
    pub spurious_wakeups: bool,
    /// Print the intermediate representation of the program and stop
    #[arg(long)]
    pub dump_ir: bool,
    /// How much the search may spend.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// The engines of `check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckEngine {
    /// Choose by the program
    Auto,
    /// Systematic exploration of SC executions with a monitor
    Stateless,
    /// The exact stateful engine, for programs with loops
    Attack,
}

/// The formats of recorded traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordFormat {
    /// Lines that people can read
    Text,
    /// Compact, with checksums
    Binary,
}

/// The monitors of `check` and `trace`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Monitor {
    /// Relaxed vector clocks, corrected
    Sober,
    /// Relaxed vector clocks as published, which miss some violations
    SoberPublished,
    /// The operational monitors for TSO and PSO
    Operational,
}

/// `weakspot verify`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct VerifyArgs {
    /// The program: a .weak or a .litmus file; - reads standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The memory model
    #[arg(short, long, value_enum)]
    pub model: Model,
    /// How to verify
    #[arg(long, value_enum, default_value_t = Engine::Explicit)]
    pub engine: Engine,
    /// explicit: the most stores one buffer may hold; the verdict says so if a buffer wanted more
    #[arg(long, value_name = "N", value_parser = positive(MAX_BUFFER), allow_negative_numbers = true)]
    pub buffer: Option<NonZeroUsize>,
    /// explicit: find a shortest execution that breaks the specification
    #[arg(long)]
    pub shortest: bool,
    /// explicit: look at every interleaving instead of one of each kind
    #[arg(long)]
    pub no_reduction: bool,
    /// symbolic: go on after the first error state, and count them all
    #[arg(long)]
    pub count_errors: bool,
    /// abstract: the abstract domain of buffers [default: fd]
    #[arg(long, value_enum)]
    pub domain: Option<Domain>,
    /// abstract: how many stores of each buffer are kept in order; auto climbs from 0 until there is an answer [default: auto]
    #[arg(short, long, value_name = "N|auto", value_parser = kept_in_order, allow_negative_numbers = true)]
    pub k: Option<KeptInOrder>,
    /// abstract: keep only the sign, the parity or an interval of a variable's values; may be given once for each variable
    #[arg(long, value_name = "NAME=sign|parity|interval")]
    pub value: Vec<String>,
    /// A deadlock is not a violation
    #[arg(long)]
    pub allow_deadlock: bool,
    /// A wait may end without a notification
    #[arg(long)]
    pub spurious_wakeups: bool,
    /// Print the intermediate representation of the program and stop
    #[arg(long)]
    pub dump_ir: bool,
    /// How much the search may spend.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// The engines of `verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Every state one by one, buffers up to --buffer
    Explicit,
    /// Sets of buffers as automata, unbounded
    Symbolic,
    /// Partial-coherence abstractions of buffers, unbounded; ends for every program that is finite-state under SC
    Abstract,
}

impl Engine {
    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Explicit => "explicit",
            Self::Symbolic => "symbolic",
            Self::Abstract => "abstract",
        }
    }
}

/// The domains of the abstract engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Domain {
    /// The set of pending stores, without order
    Set,
    /// Fully disjunctive: the latest store, the oldest k in order, and the set between
    Fd,
    /// Partially disjunctive: as fd, with a set that may be too large
    Pd,
}

impl From<Domain> for weakspot_verify::abstraction::Domain {
    fn from(domain: Domain) -> Self {
        match domain {
            Domain::Set => Self::Set,
            Domain::Fd => Self::Fd,
            Domain::Pd => Self::Pd,
        }
    }
}

/// The k of the abstract engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptInOrder {
    /// 0, 1, 2, … until there is an answer.
    Auto,
    /// This one.
    Fixed(u32),
}

/// `weakspot fence`.
#[derive(Debug, Args)]
#[command(override_usage = "weakspot fence [OPTIONS] --model <MODEL> <FILE>\n       \
                            weakspot fence [OPTIONS] --test <NAME> [-- <CARGO-TEST-ARGS>...]")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct FenceArgs {
    /// The program: a .weak or a .litmus file; - reads standard input
    #[arg(value_hint = ValueHint::FilePath, required_unless_present_any = ["test", "cargo"])]
    pub file: Option<PathBuf>,
    /// The memory model [with --test: tso if nothing is said]
    #[arg(short, long, value_enum, required_unless_present = "test")]
    pub model: Option<Model>,
    /// What the fences are for
    #[arg(long, value_enum, default_value_t = Goal::Spec)]
    pub goal: Goal,
    /// How to search for them
    #[arg(long, value_enum, default_value_t = Strategy::Guided)]
    pub strategy: Strategy,
    /// Who is asked about a placement; with `--strategy avoid`, whose states are labelled
    #[arg(long, value_enum, default_value_t = FenceEngine::Auto)]
    pub engine: FenceEngine,
    /// abstract: the abstract domain of buffers [default: fd]
    #[arg(long, value_enum)]
    pub domain: Option<Domain>,
    /// abstract: how many stores of each buffer are kept in order; auto climbs from 0 until that decides [default: auto; 1
    /// with `--strategy avoid`]
    #[arg(short, long, value_name = "N|auto", value_parser = kept_in_order, allow_negative_numbers = true)]
    pub k: Option<KeptInOrder>,
    /// abstract: keep only the sign, the parity or an interval of a variable's values; may be given once for each variable
    #[arg(long, value_name = "NAME=sign|parity|interval")]
    pub value: Vec<String>,
    /// Write the fenced program here, after it was verified again
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Also list the other placements of the same cost
    #[arg(long)]
    pub alternatives: bool,
    /// Use fence(store_store) or fence(store_load) where they suffice
    #[arg(long)]
    pub fine: bool,
    /// A fence inside d loops counts as 10 to the power of d instead of 1
    #[arg(long)]
    pub weights: bool,
    /// Fences of the program may go, too: the smallest number in the whole program, existing ones preferred
    #[arg(long)]
    pub minimise: bool,
    /// A deadlock is not an error
    #[arg(long)]
    pub allow_deadlock: bool,
    /// A wait may end without a notification
    #[arg(long)]
    pub spurious_wakeups: bool,
    /// How much the search may spend.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// The test of live code, instead of a file.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// `weakspot fence --test`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rust code")]
pub struct LiveArgs {
    /// A test of Rust code that uses the library weakspot (or loom, patched): which of its operations to strengthen
    ///
    /// `cargo test` runs it, and the changes are made at run time. The name is the whole path (lock::tests::excludes), or its
    /// end if there is one such test.
    #[arg(long, value_name = "NAME", conflicts_with_all = NOT_FOR_TESTS)]
    pub test: Option<String>,
    /// The package of the test, as for cargo
    #[arg(short, long, value_name = "PACKAGE")]
    pub package: Option<String>,
    /// The Cargo.toml of the test, as for cargo
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub manifest_path: Option<PathBuf>,
    /// More arguments of `cargo test`, such as --features x, --release or --test loom; behind another -- those of the test
    /// binary
    #[arg(last = true, value_name = "CARGO-TEST-ARGS")]
    pub cargo: Vec<OsString>,
}

/// Options of `fence` that are about programs.
const NOT_FOR_TESTS: [&str; 14] = [
    "file",
    "strategy",
    "engine",
    "domain",
    "k",
    "value",
    "output",
    "alternatives",
    "fine",
    "weights",
    "minimise",
    "allow_deadlock",
    "spurious_wakeups",
    "memory_limit",
];

/// The engines of `fence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FenceEngine {
    /// The best for the program and the goal
    Auto,
    /// Every state one by one, buffers bounded
    Explicit,
    /// Sets of buffers as automata, unbounded
    Symbolic,
    /// Partial-coherence abstractions, unbounded
    Abstract,
}

/// How fences are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Strategy {
    /// By counterexamples and minimum hitting sets
    Guided,
    /// By labelling all states with formulae of what to avoid
    Avoid,
}

/// What fences are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Goal {
    /// The program meets its specification
    Spec,
    /// The program is store-buffer safe
    Robust,
}

/// `weakspot litmus`.
#[derive(Debug, Args)]
pub struct LitmusArgs {
    /// Litmus tests, or directories that are searched for *.litmus files; - reads standard input
    #[arg(required = true, value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// The memory model
    #[arg(short, long, value_enum)]
    pub model: Model,
    /// Threads to run tests with [default: as many as there are processors]
    #[arg(short, long, value_name = "N", value_parser = positive(MAX_JOBS), allow_negative_numbers = true)]
    pub jobs: Option<NonZeroUsize>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub time_limit: Option<f64>,
}

/// `weakspot trace`.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// The recorded trace, in either format; - reads standard input
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// The memory model: tso or pso
    #[arg(short, long, value_enum)]
    pub model: Model,
    /// How to recognise executions that a store buffer turns into others [default: operational for pso, else sober]
    #[arg(long, value_enum)]
    pub monitor: Option<Monitor>,
    /// Give up after this many seconds (or 500ms, 5m, 1h)
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    #[arg(help_heading = "Limits")]
    pub time_limit: Option<f64>,
    /// Give up when the tables of the monitor grow past this many MiB (or 4G) [default: 4096]
    #[arg(long, value_name = "MIB", value_parser = mebibytes, allow_negative_numbers = true)]
    #[arg(help_heading = "Limits")]
    pub memory_limit: Option<NonZeroUsize>,
}

/// `weakspot fmt`.
#[derive(Debug, Args)]
pub struct FmtArgs {
    /// Programs; - reads standard input
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Rewrite the files in place
    #[arg(short, long, conflicts_with = "check")]
    pub write: bool,
    /// Print nothing; exit with 1 if a file is not in canonical form
    #[arg(long)]
    pub check: bool,
}

/// `weakspot completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `weakspot man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page for each command into this directory instead
    #[arg(long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath, action = ArgAction::Set)]
    pub directory: Option<PathBuf>,
}

/// A whole number from 1 to `most`.
fn positive(most: i64) -> impl clap::builder::TypedValueParser<Value = NonZeroUsize> {
    use clap::builder::{RangedI64ValueParser, TypedValueParser};
    RangedI64ValueParser::<usize>::new()
        .range(1..=most)
        .map(|number| NonZeroUsize::new(number).expect("invariant: the range begins at 1"))
}

/// `auto`, or a number of stores.
fn kept_in_order(text: &str) -> Result<KeptInOrder, String> {
    if text == "auto" {
        return Ok(KeptInOrder::Auto);
    }
    let number = text.parse().ok().filter(|&number| number <= MAX_K);
    number.map(KeptInOrder::Fixed).ok_or_else(|| format!("neither `auto` nor a number from 0 to {MAX_K}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}
