//! `cargo test`, run for the names of its tests and for one of them. What it says goes to standard error.
//!
//! It has a process group of its own, so that Ctrl-C and limits end the test with it: a cargo that is killed alone leaves
//! its test running.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use weakspot_fence::live::Change;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::task::{Budget, Limit};

use crate::args::FenceArgs;
use crate::commands::count;
use crate::exit::Failure;
use crate::output::Output;
use crate::progress::SearchProgress;

/// How often it is asked whether it is done.
const TICK: Duration = Duration::from_millis(20);

/// What a process has to end by itself when it is asked to.
#[cfg(unix)]
const GRACE: Duration = Duration::from_millis(200);

/// What libtest says of a test that was to fail. The models of such a test do not fail while suggestions are collected.
const DID_NOT_PANIC: &str = "test did not panic as expected";

/// Arguments of `cargo test` that choose targets.
const TARGETS: [&str; 11] = [
    "--lib",
    "--bin",
    "--bins",
    "--example",
    "--examples",
    "--test",
    "--tests",
    "--bench",
    "--benches",
    "--all-targets",
    "--doc",
];

/// A program that has ended, or was ended.
pub enum Ended<T> {
    /// By itself.
    Done(T),
    /// A limit was reached.
    Stopped(Limit),
}

/// What a test has left behind.
pub struct TestOutcome {
    /// It has passed, or was meant to fail and does not while suggestions are collected.
    pub passed: bool,
    /// What it has printed.
    pub printed: String,
    /// What the library has recorded.
    pub recorded: String,
}

/// `cargo test` as the arguments want it.
pub struct Cargo<'a> {
    args: &'a FenceArgs,
    output: &'a Output,
    budget: &'a Budget,
    program: OsString,
    /// Of the arguments of the user, those for cargo and those for the test binary.
    own: &'a [OsString],
    binary: &'a [OsString],
    records: tempfile::TempDir,
}

impl<'a> Cargo<'a> {
    /// Nothing is run yet.
    pub fn new(args: &'a FenceArgs, output: &'a Output, budget: &'a Budget) -> Result<Self, Failure> {
        let all = &args.live.cargo;
        let split = all.iter().position(|argument| argument == "--").unwrap_or(all.len());
        let (own, rest) = all.split_at(split);
        let program = std::env::var_os("CARGO").filter(|path| !path.is_empty()).unwrap_or_else(|| "cargo".into());
        let records = tempfile::Builder::new().prefix("weakspot-fence-").tempdir().map_err(unwritable)?;
        let binary = rest.get(1..).unwrap_or_default();
        Ok(Self { args, output, budget, program, own, binary, records })
    }

    /// The names of all tests, after they were built.
    pub fn names(&self, test: &str) -> Result<Ended<Vec<String>>, Failure> {
        let mut command = self.command(test, self.output.quiet);
        command.arg("--").arg("--list").args(self.binary);
        let (status, listed) = match self.finish(command, None)? {
            Ended::Done(done) => done,
            Ended::Stopped(limit) => return Ok(Ended::Stopped(limit)),
        };
        if !status.success() {
            let message = "`cargo test` failed before it could list the tests".to_owned();
            let help = "its own message stands above; `--manifest-path` and `--package` choose the package, and what follows \
                        `--` goes to `cargo test`";
            return Err(Failure::Usage { message, help: help.to_owned() });
        }
        let names = listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned);
        Ok(Ended::Done(names.collect()))
    }

    /// Runs a test, and no other one, with changes made at run time. Its filter is for the test binary.
    pub fn run(
        &self,
        test: &str,
        filter: &[&str],
        changes: &[Change],
        progress: &SearchProgress,
    ) -> Result<Ended<TestOutcome>, Failure> {
        let records = self.records.path().join("suggestions");
        File::create(&records).map_err(unwritable)?;
        let mut command = self.command(test, !self.output.verbose);
        command.args(["--", "--include-ignored"]).args(filter).args(self.binary);
        self.ask(&mut command, changes, &records);
        let doing = match changes.len() {
            0 => "running the test".to_owned(),
            changes => format!("running the test with {}", count(changes as u64, "change")),
        };
        let (status, printed) = match self.finish(command, Some((progress, &doing)))? {
            Ended::Done(done) => done,
            Ended::Stopped(limit) => return Ok(Ended::Stopped(limit)),
        };
        let recorded = std::fs::read(&records).map_err(unwritable)?;
        let recorded = String::from_utf8_lossy(&recorded).into_owned();
        let passed = status.success() || printed.contains(DID_NOT_PANIC);
        Ok(Ended::Done(TestOutcome { passed, printed, recorded }))
    }

    /// `cargo test` with the package and the user's arguments.
    fn command(&self, test: &str, quiet: bool) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("test");
        let live = &self.args.live;
        if let Some(path) = &live.manifest_path {
            command.arg("--manifest-path").arg(path);
        }
        if let Some(package) = &live.package {
            command.arg("--package").arg(package);
        }
        let talks = ["-q", "--quiet", "-v", "-vv", "--verbose"];
        if quiet && !self.own.iter().any(|argument| talks.iter().any(|talk| argument == talk)) {
            command.arg("--quiet");
        }
        // Documentation tests are compiled for each run; they have spaces in their names.
        if !test.contains(' ') && !self.own.iter().any(|argument| chooses_targets(argument)) {
            command.arg("--tests");
        }
        command.args(self.own);
        command
    }

    /// The question, as the library reads it.
    fn ask(&self, command: &mut Command, changes: &[Change], records: &PathBuf) {
        let goal = match super::goal(self.args) {
            weakspot_fence::Goal::Spec => "harmful",
            weakspot_fence::Goal::Robust => "unsafe",
        };
        let model: MemoryModel = super::memory_model(self.args);
        command.env("WEAKSPOT_SUGGESTIONS", records).env("WEAKSPOT_MODEL", model.name()).env("WEAKSPOT_FAIL_ON", goal);
        if let Some(jobs) = self.args.limits.jobs {
            command.env("WEAKSPOT_JOBS", jobs.to_string());
        }
        if !changes.is_empty() {
            let own = std::env::var("WEAKSPOT_STRENGTHENED").into_iter();
            let asked = changes.iter().map(|change| format!("{}@{}", change.how.name(), change.place));
            command.env("WEAKSPOT_STRENGTHENED", own.chain(asked).collect::<Vec<_>>().join(";"));
        }
    }

    /// Runs a command to its end, or to the end of the budget: its status, and what it has printed.
    fn finish(
        &self,
        mut command: Command,
        progress: Option<(&SearchProgress, &str)>,
    ) -> Result<Ended<(ExitStatus, String)>, Failure> {
        let mut printed = tempfile::tempfile().map_err(unwritable)?;
        let stdout = printed.try_clone().map_err(unwritable)?;
        // A run of the test is not the last word: that it fails is said, or not, by whoever asked.
        let stderr = if progress.is_some() { Stdio::piped() } else { Stdio::inherit() };
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        lead_a_group(&mut command);
        let mut child = command.spawn().map_err(|error| self.not_started(&error))?;
        let passed_on = child.stderr.take().map(|stderr| std::thread::spawn(move || pass_on(stderr)));
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return Err(Failure::Internal(format!("cannot wait for cargo: {error}"))),
            }
            if let Some(limit) = self.budget.exhausted(0) {
                end(&mut child);
                return Ok(Ended::Stopped(limit));
            }
            if let Some((progress, doing)) = progress {
                progress.note(doing);
            }
            std::thread::sleep(TICK);
        };
        // It ends with the last process that could say something.
        let _ = passed_on.map(JoinHandle::join);
        let mut text = Vec::new();
        printed.rewind().and_then(|()| printed.read_to_end(&mut text)).map_err(unwritable)?;
        Ok(Ended::Done((status, String::from_utf8_lossy(&text).into_owned())))
    }

    fn not_started(&self, error: &io::Error) -> Failure {
        let program = self.program.to_string_lossy();
        let why = match error.kind() {
            io::ErrorKind::NotFound => "there is no such program".to_owned(),
            _ => error.to_string(),
        };
        let help = "install Rust, or say in the variable CARGO where its cargo is".to_owned();
        Failure::Usage { message: format!("cannot run `{program}`: {why}"), help }
    }
}

/// What cargo says on standard error when a test fails.
const TEST_FAILED: [&str; 2] = ["error: test failed, to rerun pass", "error: 1 target failed:"];

/// Passes on what is said while a test runs, line by line, without cargo's conclusion.
fn pass_on(stderr: ChildStderr) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if !TEST_FAILED.iter().any(|conclusion| line.starts_with(conclusion)) {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

fn chooses_targets(argument: &OsStr) -> bool {
    let argument = argument.to_string_lossy();
    let name = argument.split('=').next().unwrap_or_default();
    TARGETS.contains(&name)
}

fn unwritable(error: io::Error) -> Failure {
    let what = format!("what the test finds to a file in `{}`", std::env::temp_dir().display());
    Failure::Output { what, error }
}

#[cfg(unix)]
fn lead_a_group(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
}

#[cfg(not(unix))]
fn lead_a_group(_: &mut Command) {}

/// Ends cargo, and on Unix what it has started. Until it is waited for, its group is nobody else's.
fn end(child: &mut Child) {
    end_group(child);
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(unix)]
fn end_group(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let _ = kill_process_group(group, Signal::TERM);
    std::thread::sleep(GRACE);
    let _ = kill_process_group(group, Signal::KILL);
}

#[cfg(not(unix))]
fn end_group(_: &Child) {}
