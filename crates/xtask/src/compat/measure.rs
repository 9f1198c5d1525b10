//! One test in a process of its own.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Built;
use super::build::{Engine, Executable};
use super::fetch::file;
use super::suites::Suite;
use crate::repository::{self, ChoreError};

/// A test of a suite.
#[derive(Debug)]
pub struct Test {
    /// The target.
    pub target: String,
    /// The name, with its modules.
    pub name: String,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It passed, and everything was explored.
    Passed,
    /// It passed, but a bound of the test or a loop left something out.
    Bounded,
    /// It failed.
    Failed,
    /// It was stopped at the limit of time.
    OutOfTime,
}

impl Verdict {
    /// Is it what a right test should do? Not finding an end is not a failure of the test.
    pub fn is_good(self) -> bool {
        self != Self::Failed
    }

    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Bounded => "bounded",
            Self::Failed => "FAILED",
            Self::OutOfTime => "no end",
        }
    }
}

/// What was measured.
#[derive(Debug)]
pub struct Measure {
    /// How it ended.
    pub verdict: Verdict,
    /// Executions of all models of the test, as far as they are known.
    pub executions: Option<u64>,
    /// Wall-clock time.
    pub elapsed: Duration,
}

/// The tests of the executables that the suite does not ignore, in order.
pub fn tests(executables: &[Executable], suite: &Suite, part: Option<&str>) -> Result<Vec<Test>, ChoreError> {
    let mut tests = Vec::new();
    for executable in executables {
        let ignored = list(executable, &["--list", "--ignored"])?;
        let names = list(executable, &["--list"])?.into_iter().filter(|name| !ignored.contains(name));
        let wanted = names.filter(|name| name.contains(suite.filter) && name.contains(part.unwrap_or_default()));
        tests.extend(wanted.map(|name| Test { target: executable.target.clone(), name }));
    }
    Ok(tests)
}

fn list(executable: &Executable, arguments: &[&str]) -> Result<Vec<String>, ChoreError> {
    let output =
        Command::new(&executable.path).args(arguments).output().map_err(|error| file(&executable.path, error))?;
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// weakspot is told the limit and stops by itself, loom is stopped: both get this much longer.
const GRACE: Duration = Duration::from_secs(2);

/// Runs a test.
pub fn measure(built: &Built, suite: &Suite, test: &Test, limit: Duration) -> Result<Measure, ChoreError> {
    let Built { engine, source, executables } = built;
    let missing = || ChoreError::Failed(format!("{} has no target {}", engine.name(), test.target));
    let executable = executables.iter().find(|executable| executable.target == test.target).ok_or_else(missing)?;
    let logs = repository::root().join("target/compat/logs").join(suite.name);
    fs::create_dir_all(&logs).map_err(|error| file(&logs, error))?;
    let name = format!("{}-{}-{}", engine.name(), test.target, test.name.replace("::", "-"));
    let (log, statistics) = (logs.join(format!("{name}.log")), logs.join(format!("{name}.statistics")));
    let output = fs::File::create(&log).map_err(|error| file(&log, error))?;
    let errors = output.try_clone().map_err(|error| file(&log, error))?;
    let _ = fs::remove_file(&statistics);
    let mut command = Command::new(&executable.path);
    command
        .args(["--exact", &test.name, "--nocapture", "--test-threads=1"])
        .current_dir(source)
        .envs(suite.environment.iter().copied())
        .stdout(output)
        .stderr(errors)
        .stdin(Stdio::null());
    match engine {
        Engine::Weakspot => {
            command.env("WEAKSPOT_STATS", &statistics).env("LOOM_MAX_DURATION", limit.as_secs().to_string())
        }
        // loom says how far it is whenever it would write a checkpoint.
        Engine::Loom => command.env("LOOM_LOG", "info").env("LOOM_CHECKPOINT_INTERVAL", "100"),
    };
    let start = Instant::now();
    let status = run(&mut command, limit + GRACE).map_err(|error| file(&executable.path, error))?;
    let elapsed = start.elapsed();
    let (executions, bounded) = match engine {
        Engine::Weakspot => models_of_weakspot(&statistics),
        Engine::Loom => (executions_of_loom(&log), false),
    };
    let verdict = match status {
        None => Verdict::OutOfTime,
        Some(status) if status.success() && bounded && elapsed >= limit => Verdict::OutOfTime,
        Some(status) if status.success() && bounded => Verdict::Bounded,
        Some(status) if status.success() => Verdict::Passed,
        Some(_) => Verdict::Failed,
    };
    Ok(Measure { verdict, executions, elapsed })
}

/// The status, or nothing if the process was stopped at the limit.
fn run(command: &mut Command, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut child = command.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// `WEAKSPOT_STATS` gets one line a model: its executions, and whether one of them was stopped by a limit.
fn models_of_weakspot(statistics: &Path) -> (Option<u64>, bool) {
    let lines = fs::read_to_string(statistics).unwrap_or_default();
    let executions = sum(lines.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok()));
    (executions, lines.lines().any(|line| line.split_whitespace().any(|column| column == "bounded")))
}

/// loom logs how many iterations a model took, and now and then how far it is.
fn executions_of_loom(log: &Path) -> Option<u64> {
    let text = String::from_utf8_lossy(&fs::read(log).ok()?).into_owned();
    let after =
        |line: &str, words: &str| -> Option<u64> { line.split_once(words)?.1.split_whitespace().next()?.parse().ok() };
    sum(text.lines().filter_map(|line| after(line, "Completed in ")))
        .or_else(|| text.lines().filter_map(|line| after(line, "= Iteration ")).next_back())
}

fn sum(numbers: impl Iterator<Item = u64>) -> Option<u64> {
    numbers.reduce(|sum, number| sum + number)
}
