//! Test executables of a suite, with weakspot in loom's place or with loom itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Deserialize;

use super::fetch::file;
use super::suites::{LoomVersion, Suite};
use crate::repository::{self, ChoreError};

/// Who explores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// The package under `compat/`.
    Weakspot,
    /// What the registry has.
    Loom,
}

impl Engine {
    /// How it is called in tables and folders.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weakspot => "weakspot",
            Self::Loom => "loom",
        }
    }
}

/// A test executable.
#[derive(Debug)]
pub struct Executable {
    /// The target it is made from.
    pub target: String,
    /// Where it is.
    pub path: PathBuf,
}

/// One line of cargo's messages.
#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// The executables, or what cargo says if it cannot build them.
pub fn build(
    suite: &Suite,
    source: &Path,
    engine: Engine,
    release: bool,
) -> Result<Result<Vec<Executable>, String>, ChoreError> {
    let mut output = run(test(suite, source, engine, release)?, source)?;
    if engine == Engine::Weakspot && is_unused(&output) {
        // The suite's lock file names another version of loom.
        for version in locked_looms(suite, source) {
            run(update(suite, source, &version)?, source)?;
        }
        output = run(test(suite, source, engine, release)?, source)?;
    }
    let log = String::from_utf8_lossy(&output.stderr);
    if engine == Engine::Weakspot && is_unused(&output) {
        return Ok(Err(format!("the patch is not used:\n{log}")));
    }
    if !output.status.success() {
        return Ok(Err(log.into_owned()));
    }
    let messages = output.stdout.split(|&byte| byte == b'\n');
    Ok(Ok(messages.filter_map(|line| serde_json::from_slice(line).ok()).filter_map(executable).collect()))
}

fn executable(message: Message) -> Option<Executable> {
    let is_test = message.reason == "compiler-artifact" && message.profile?.test;
    let (target, path) = (message.target?.name, message.executable?);
    is_test.then_some(Executable { target, path })
}

fn run(mut command: Command, source: &Path) -> Result<Output, ChoreError> {
    command.current_dir(source).output().map_err(|error| file(source, error))
}

fn is_unused(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains("was not used in the crate graph")
}

/// Versions of loom in the lock file that the patch stands for. (Dependencies may use other ones.)
fn locked_looms(suite: &Suite, source: &Path) -> Vec<String> {
    let minor = match suite.loom {
        LoomVersion::Seven => "0.7.",
        LoomVersion::Six => "0.6.",
        LoomVersion::Five => "0.5.",
    };
    let lock = fs::read_to_string(source.join("Cargo.lock")).unwrap_or_default();
    let after_name = lock.lines().zip(lock.lines().skip(1)).filter(|(name, _)| *name == "name = \"loom\"");
    let versions = after_name.filter_map(|(_, line)| line.strip_prefix("version = \"")?.strip_suffix('"'));
    versions.filter(|version| version.starts_with(minor)).map(str::to_owned).collect()
}

/// Brings loom in the lock file to the version of the patch.
fn update(suite: &Suite, source: &Path, version: &str) -> Result<Command, ChoreError> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["update", "-p", &format!("loom@{version}")]).args(patch(suite)?).current_dir(source);
    Ok(command)
}

fn root() -> Result<PathBuf, ChoreError> {
    repository::root().canonicalize().map_err(|error| file(&repository::root(), error))
}

/// The arguments that put weakspot in loom's place.
fn patch(suite: &Suite) -> Result<[String; 2], ChoreError> {
    let package = match suite.loom {
        LoomVersion::Seven => "compat/loom",
        LoomVersion::Six => "compat/loom-0.6",
        LoomVersion::Five => "compat/loom-0.5",
    };
    let path = root()?.join(package).display().to_string();
    Ok(["--config".to_owned(), format!("patch.crates-io.loom.path={path:?}")])
}

/// The engines are dependencies of a suite. They are optimised, as they would be in the suite's own profile for long tests;
/// the suite itself is built as it says.
const OPTIMISED_DEPENDENCIES: [&str; 2] =
    ["profile.dev.package.\"*\".opt-level=3", "profile.dev.package.\"*\".debug-assertions=false"];

fn test(suite: &Suite, source: &Path, engine: Engine, release: bool) -> Result<Command, ChoreError> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--no-run", "--message-format=json-render-diagnostics"])
        // What a crate needs of the compiler is seen when it is built; many promise less than they could.
        .arg("--ignore-rust-version")
        .args(suite.targets)
        .current_dir(source)
        .env("CARGO_TARGET_DIR", root()?.join("target/compat").join(engine.name()))
        .env("RUSTFLAGS", suite.rustflags());
    if !suite.default_features {
        command.arg("--no-default-features");
    }
    if !suite.features.is_empty() {
        command.args(["--features", suite.features]);
    }
    if release || suite.release {
        command.arg("--release");
    }
    for setting in OPTIMISED_DEPENDENCIES {
        command.args(["--config", setting]);
    }
    if engine == Engine::Weakspot {
        command.args(patch(suite)?);
    }
    Ok(command)
}
