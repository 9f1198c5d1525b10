//! `cargo xtask compat`: published test suites that were written for loom, run unchanged with weakspot in loom's place.
//!
//! cargo fetches the crates of [`suites`] from the registry; each is copied to `target/compat/suites` and tested there
//! with its own flags and nothing changed but `--config patch.crates-io.loom.path=…` (and the version of loom in its lock
//! file, where that is not the newest). Every test runs in a process of its
//! own with a limit of time. With `--with-loom` the same tests run with the real loom as well, for comparison.
//!
//! | module | its part |
//! |---|---|
//! | [`suites`] | which crates, with which flags |
//! | [`other`] | a crate that is not listed, with flags from the command line |
//! | [`fetch`] | the sources, by way of cargo |
//! | [`build`] | test executables |
//! | [`measure`] | one test: verdict, executions, time |
//! | [`table`] | what is printed |
//!
//! This takes long and needs the registry, so it is no part of the tests of the repository.

mod build;
mod fetch;
mod measure;
mod other;
mod suites;
mod table;

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::repository::{self, ChoreError};
use build::{Engine, Executable};
use measure::{Measure, Test};
use suites::{SUITES, Suite};

/// What to run.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct CompatArgs {
    /// Only these crates; `promised` stands for those that the project promises to run
    suites: Vec<String>,

    #[command(flatten)]
    other: other::OtherArgs,

    /// Only tests whose name contains this
    #[arg(long, value_name = "TEXT")]
    test: Option<String>,

    /// Run every test with loom, too
    #[arg(long)]
    with_loom: bool,

    /// Seconds for each test
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    limit: u64,

    /// Build with optimisation
    #[arg(long)]
    release: bool,

    /// Name the suites and stop
    #[arg(long)]
    list: bool,

    /// Write the tables to docs/suites.md, too
    #[arg(long)]
    document: bool,
}

/// A test and what came of it with each engine.
type Row = (Test, Vec<Measure>);

/// A suite and what came of its tests.
pub struct Ran<'s> {
    suite: &'s Suite,
    rows: Vec<Row>,
}

/// The page that `--document` writes.
const DOCUMENT: &str = "docs/suites.md";

/// Runs the suites and prints a table for each.
pub fn run(args: &CompatArgs) -> Result<(), ChoreError> {
    let chosen = choose(args)?;
    let mut out = io::stdout().lock();
    if args.list {
        return table::list(&mut out, &chosen).map_err(printing);
    }
    let (mut failures, mut mistakes, mut ran) = (0, 0, Vec::new());
    for suite in chosen {
        let Some(rows) = run_suite(&mut out, args, suite)? else {
            failures += 1;
            continue;
        };
        let bad = rows.iter().filter(|(_, measures)| !measures[0].verdict.is_good());
        let (mistaken, others): (Vec<_>, Vec<_>) = bad.partition(|(test, _)| suite.is_mistaken(&test.name));
        (failures, mistakes) = (failures + others.len(), mistakes + mistaken.len());
        ran.push(Ran { suite, rows });
        // After each suite: it takes long.
        if args.document {
            let page = table::document(&ran, Duration::from_secs(args.limit), args.release);
            let path = repository::root().join(DOCUMENT);
            std::fs::write(&path, page).map_err(|error| fetch::file(&path, error))?;
        }
    }
    if mistakes > 0 {
        let what = "fail, rightly: the crates make mistakes, which docs/crates.md tells of";
        writeln!(out, "\n{mistakes} test(s) {what}").map_err(printing)?;
    }
    if failures > 0 {
        return Err(ChoreError::Failed(format!("{failures} test(s) do not pass with weakspot")));
    }
    Ok(())
}

fn choose(args: &CompatArgs) -> Result<Vec<&'static Suite>, ChoreError> {
    let is_called = |suite: &Suite, name: &str| suite.name == name || (suite.promised && name == "promised");
    if let Some(unknown) = args.suites.iter().find(|name| !SUITES.iter().any(|suite| is_called(suite, name))) {
        return Err(ChoreError::Failed(format!("there is no suite `{unknown}`: --list names those that are")));
    }
    let other = args.other.suite()?;
    let all = args.suites.is_empty() && other.is_none();
    let wanted = |suite: &&Suite| all || args.suites.iter().any(|name| is_called(suite, name));
    Ok(SUITES.iter().filter(wanted).chain(other).collect())
}

/// A suite that was built with an engine.
struct Built {
    engine: Engine,
    source: PathBuf,
    executables: Vec<Executable>,
}

/// What came of each test; nothing if the suite does not build.
fn run_suite(out: &mut impl Write, args: &CompatArgs, suite: &Suite) -> Result<Option<Vec<Row>>, ChoreError> {
    let engines: &[Engine] = if args.with_loom { &[Engine::Weakspot, Engine::Loom] } else { &[Engine::Weakspot] };
    table::heading(out, suite, engines).map_err(printing)?;
    let mut built = Vec::new();
    for &engine in engines {
        let source = fetch::fetch(&repository::root().join("target/compat"), suite, engine)?;
        match build::build(suite, &source, engine, args.release)? {
            Ok(executables) => built.push(Built { engine, source, executables }),
            Err(log) => {
                table::not_built(out, engine, &log).map_err(printing)?;
                if engine == Engine::Weakspot {
                    return Ok(None);
                }
            }
        }
    }
    let limit = Duration::from_secs(args.limit);
    let tests = measure::tests(&built[0].executables, suite, args.test.as_deref())?;
    let mut rows = Vec::new();
    for test in tests {
        let measures: Vec<_> =
            built.iter().map(|built| measure::measure(built, suite, &test, limit)).collect::<Result<_, _>>()?;
        table::row(out, &test, &measures).map_err(printing)?;
        rows.push((test, measures));
    }
    table::summary(out, &rows).map_err(printing)?;
    Ok(Some(rows))
}

fn printing(error: io::Error) -> ChoreError {
    ChoreError::File { path: "standard output".to_owned(), error }
}
