//! How to run a test again: the command that a report ends with.
//!
//! A test does not know how it was built, but parts of it can be found out, and nothing else is printed:
//!
//! | what | from where |
//! |---|---|
//! | features, targets, profile, `--config` | the command line of cargo, our parent (Linux) |
//! | the same without it: profile, target | the folder of the executable |
//! | `--cfg loom` and the like | `RUSTFLAGS`, which cargo hands on |
//! | the package, where there are several | `CARGO_PKG_NAME`, which cargo sets |
//! | the file of an integration test | the name of the executable, if such a file is there and nothing else has the name |
//! | the test | the name of the thread, or what follows `--exact` |
//! | a documentation test | what rustdoc has made of it (since the edition of 2024), or at least its file |
//!
//! Where a test is not run by cargo, or its name is not known, the line says how it was started.

mod cargo;
pub(crate) mod long;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::source;
use crate::timeline::Timeline;

/// How this process was started.
#[derive(Debug, Default, Clone)]
struct Start {
    executable: Option<PathBuf>,
    /// Without the executable.
    arguments: Vec<String>,
    /// The command line of the parent.
    parent: Vec<String>,
    rustflags: Option<String>,
    package: Option<String>,
    /// The folder of the package.
    folder: Option<PathBuf>,
    /// The test that runs, if it is known.
    test: Option<String>,
    /// What a documentation test that runs is chosen by.
    doc_test: Option<String>,
}

/// The line that runs a schedule again.
pub(crate) fn line(schedule: &str, timeline: Option<&Timeline>) -> String {
    let file = timeline.and_then(|timeline| timeline.moments.first()).map(|moment| moment.place.file.as_str());
    let start = Start::of_this_process(file);
    format!("to run this execution again: WEAKSPOT_REPLAY={schedule} {}", start.command())
}

impl Start {
    fn of_this_process(file: Option<&str>) -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let arguments: Vec<String> = std::env::args_os().skip(1).map(|text| text.to_string_lossy().into()).collect();
        let test = name_of_thread(file).or_else(|| only_test(&arguments));
        Self {
            executable: std::env::current_exe().ok(),
            arguments,
            parent: cargo::command_line_of_parent(),
            rustflags: variable("RUSTFLAGS"),
            package: variable("CARGO_PKG_NAME"),
            folder: variable("CARGO_MANIFEST_DIR").map(PathBuf::from),
            test,
            doc_test: doc_test(),
        }
    }

    fn command(&self) -> String {
        let flags = self.rustflags.as_ref().map(|flags| format!("RUSTFLAGS={} ", quoted(flags))).unwrap_or_default();
        match (cargo::Command::parse(&self.parent), &self.test) {
            (Some(command), Some(test)) if command.is_test() => flags + &self.cargo_test(command, test),
            (Some(command), _) => flags + &joined(&command.everything),
            (None, Some(test)) if self.package.is_some() => {
                let command = self.executable.as_deref().and_then(cargo::Command::of_executable);
                match command {
                    Some(command) => flags + &self.cargo_test(command, test),
                    None => self.itself(),
                }
            }
            (None, _) => self.itself(),
        }
    }

    /// The test by cargo.
    fn cargo_test(&self, mut command: cargo::Command, test: &str) -> String {
        if let Some(package) = &self.package
            && !command.chooses_package
            && self.folder.as_deref().is_some_and(is_in_workspace)
        {
            command.options.extend(["-p".to_owned(), package.clone()]);
        }
        if !command.chooses_target
            && let Some(target) = self.integration_test()
        {
            command.options.extend(["--test".to_owned(), target]);
        }
        let mut text = String::from("cargo test");
        for option in &command.options {
            let _ = write!(text, " {}", quoted(option));
        }
        let _ = write!(text, " {} -- --exact", quoted(test));
        for option in self.arguments.iter().filter(|text| ["--ignored", "--include-ignored"].contains(&text.as_str())) {
            let _ = write!(text, " {option}");
        }
        text
    }

    /// A documentation test by cargo. There may be others that the same filter chooses.
    fn cargo_test_doc(&self) -> String {
        let mut text = String::from("cargo test --doc");
        if let Some(package) = &self.package
            && self.folder.as_deref().is_some_and(is_in_workspace)
        {
            let _ = write!(text, " -p {}", quoted(package));
        }
        if let Some(filter) = &self.doc_test {
            let _ = write!(text, " -- {}", quoted(filter));
        }
        text + "\n  (this runs all documentation tests that the filter chooses; to others than this one the schedule means nothing)"
    }

    /// The file of `tests/` that the executable was made of. Its name is that of the file and a hash.
    fn integration_test(&self) -> Option<String> {
        let name = self.executable.as_ref()?.file_stem()?.to_str()?;
        let (name, hash) = name.rsplit_once('-')?;
        let is_hash = hash.len() == 16 && hash.chars().all(|digit| digit.is_ascii_hexdigit());
        // A library or a program may have the name as well: then it is not known which this is.
        let is_other = |package: &String| package.replace('-', "_") == name;
        if !is_hash || self.package.as_ref().is_none_or(is_other) {
            return None;
        }
        let tests = self.folder.as_ref()?.join("tests");
        let is_there =
            |name: &String| tests.join(format!("{name}.rs")).is_file() || tests.join(name).join("main.rs").is_file();
        let mut found = cargo::spellings(name).into_iter().filter(is_there);
        found.next().filter(|_| found.next().is_none())
    }

    /// The same process again.
    fn itself(&self) -> String {
        // That of a documentation test is gone as soon as it has run.
        if self.executable.as_ref().is_some_and(|path| path.ends_with("rust_out")) {
            return self.cargo_test_doc();
        }
        let executable = self.executable.as_ref().map(|path| path.display().to_string());
        match &self.test {
            Some(test) => joined(&[executable.unwrap_or_default(), test.clone(), "--exact".to_owned()]),
            None => joined(&executable.into_iter().chain(self.arguments.iter().cloned()).collect::<Vec<_>>()),
        }
    }
}

/// The name of the thread, if it is that of a test: the harness gives each test a thread of its own.
fn name_of_thread(file: Option<&str>) -> Option<String> {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main")?;
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    // A thread that the test has started itself may have a name, too, and the source says it.
    let is_given = file.is_some_and(|file| source::has(file, &format!("\"{name}\"")));
    let is_function = |word: &str| file.is_some_and(|file| source::has(file, &format!("fn {word}")));
    let is_test = name.split("::").all(is_word) && (!is_given || name.split("::").any(is_function));
    is_test.then(|| name.to_owned())
}

/// What a documentation test is chosen by: the end of its name, or its file. (rustdoc takes a filter apart at spaces.)
fn doc_test() -> Option<String> {
    let number = std::env::var("RUSTDOC_DOCTEST_RUN_NB_TEST").ok().and_then(|number| number.parse().ok());
    let runner = std::env::current_exe().ok().and_then(|executable| runner_in(executable.parent()?));
    let name = number.zip(runner).and_then(|(number, runner)| name_in_runner(&runner, number));
    let end = name.and_then(|name| name.split_whitespace().last().map(str::to_owned));
    end.or_else(|| source::file_of_doc_test().map(str::to_owned))
}

/// The program that rustdoc has made of several tests.
fn runner_in(folder: &Path) -> Option<String> {
    let is_runner = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("doctest_runner_")) && path.extension().is_some_and(|end| end == "rs")
    };
    let mut files = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_runner);
    let runner = files.next().filter(|_| files.next().is_none())?;
    std::fs::read_to_string(runner).ok()
}

/// The name of the test of some number: `"src/lib.rs - Lock (line 9)"` is the first text in its module.
fn name_in_runner(runner: &str, number: usize) -> Option<String> {
    let (_, module) = runner.split_once(&format!("mod __doctest_{number} {{"))?;
    let name = module.split('"').nth(1)?;
    name.ends_with(')').then(|| name.to_owned())
}

/// The test, if the harness was told to run this one: a single test may run in the main thread.
fn only_test(arguments: &[String]) -> Option<String> {
    let mut names = arguments.iter().filter(|text| !text.starts_with('-'));
    let name = names.next().filter(|_| arguments.iter().any(|text| text == "--exact"))?;
    names.next().is_none().then(|| name.clone())
}

/// Is there more than one package?
fn is_in_workspace(folder: &Path) -> bool {
    let says_so = |text: String| text.lines().any(|line| line.trim().starts_with("[workspace"));
    folder.ancestors().any(|folder| std::fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(says_so))
}

fn joined(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-+=:,./@%".contains(letter);
    match word {
        _ if !word.is_empty() && word.chars().all(is_plain) => word.to_owned(),
        _ if !word.contains(['"', '$', '`', '\\', '!']) => format!("\"{word}\""),
        _ => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests;
