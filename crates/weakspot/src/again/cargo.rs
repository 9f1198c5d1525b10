//! What a command line of cargo says.

use std::path::Path;

/// Options that take the next word, if there is no `=` in them.
const WITH_VALUE: [&str; 20] = [
    "-p",
    "--package",
    "--exclude",
    "--bin",
    "--example",
    "--test",
    "--bench",
    "-F",
    "--features",
    "--profile",
    "--target",
    "--target-dir",
    "--manifest-path",
    "--lockfile-path",
    "--config",
    "-Z",
    "-C",
    "--artifact-dir",
    "--out-dir",
    "--build-dir",
];

/// Those of this kind that do not matter to one test.
const NEEDLESS_WITH_VALUE: [&str; 4] = ["-j", "--jobs", "--message-format", "--color"];

/// Options that stand alone.
const ALONE: [&str; 19] = [
    "--workspace",
    "--all",
    "--lib",
    "--bins",
    "--examples",
    "--tests",
    "--benches",
    "--all-targets",
    "--doc",
    "--all-features",
    "--no-default-features",
    "-r",
    "--release",
    "--locked",
    "--offline",
    "--frozen",
    "--ignore-rust-version",
    "--unit-graph",
    "--no-run",
];

/// Those of this kind that do not matter to one test.
const NEEDLESS_ALONE: [&str; 9] = [
    "--no-fail-fast",
    "-q",
    "--quiet",
    "-v",
    "-vv",
    "--verbose",
    "--keep-going",
    "--timings",
    "--future-incompat-report",
];

fn takes_value(name: &str) -> bool {
    WITH_VALUE.contains(&name) || NEEDLESS_WITH_VALUE.contains(&name)
}

fn stands_alone(name: &str) -> bool {
    ALONE.contains(&name) || NEEDLESS_ALONE.contains(&name)
}

fn is_needless(name: &str) -> bool {
    NEEDLESS_WITH_VALUE.contains(&name) || NEEDLESS_ALONE.contains(&name)
}

const PACKAGES: [&str; 5] = ["-p", "--package", "--workspace", "--all", "--manifest-path"];

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

/// A command of cargo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    /// `test`, `run`, …
    subcommand: String,
    /// The options that matter.
    pub(super) options: Vec<String>,
    /// All words, `cargo` first.
    pub(super) everything: Vec<String>,
    /// Do the options say which package?
    pub(super) chooses_package: bool,
    /// Do they say which test target?
    pub(super) chooses_target: bool,
}

impl Command {
    /// What the words of a process mean, if it is cargo and all of them are known.
    pub(super) fn parse(words: &[String]) -> Option<Self> {
        let (program, words) = words.split_first()?;
        if Path::new(program).file_stem()? != "cargo" || words.iter().any(|word| is_secret(word)) {
            return None;
        }
        let everything = std::iter::once("cargo".to_owned()).chain(words.iter().cloned()).collect();
        let mut command = Self { everything, ..Self::test() };
        let mut positions = Vec::new();
        let mut words = words.iter().take_while(|word| *word != "--");
        while let Some(word) = words.next() {
            let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
            let is_joined = name != word;
            match () {
                () if !word.starts_with('-') => positions.push(word.clone()),
                () if stands_alone(name) => command.add(name, [word.clone()]),
                () if takes_value(name) && is_joined => command.add(name, [word.clone()]),
                () if takes_value(name) => command.add(name, [word.clone(), words.next()?.clone()]),
                // `-j4`, `-Fname`, `-ppackage`
                () if !word.starts_with("--") && word.is_char_boundary(2) && takes_value(&word[..2]) => {
                    command.add(&word[..2], [word.clone()]);
                }
                () => return None,
            }
        }
        command.subcommand.clone_from(positions.first()?);
        // What follows is the filter, and there is one at most.
        (positions.len() <= 2).then_some(command)
    }

    fn add<const COUNT: usize>(&mut self, name: &str, words: [String; COUNT]) {
        self.chooses_package |= PACKAGES.contains(&name);
        self.chooses_target |= TARGETS.contains(&name);
        if !is_needless(name) {
            self.options.extend(words);
        }
    }

    /// `cargo test` without options.
    fn test() -> Self {
        Self {
            subcommand: "test".to_owned(),
            options: Vec::new(),
            everything: Vec::new(),
            chooses_package: false,
            chooses_target: false,
        }
    }

    /// Is it one that runs tests?
    pub(super) fn is_test(&self) -> bool {
        ["test", "t"].contains(&self.subcommand.as_str()) && !self.options.iter().any(|option| option == "--doc")
    }

    /// What the folder of a test executable says: `target/TRIPLE/PROFILE/deps`, the triple only if it was asked for.
    pub(super) fn of_executable(path: &Path) -> Option<Self> {
        let folder = path.parent().filter(|folder| folder.ends_with("deps"))?.parent()?;
        let mut command = Self::test();
        match folder.file_name()?.to_str()? {
            "debug" => {}
            "release" => command.options.push("--release".to_owned()),
            profile => command.options.extend(["--profile".to_owned(), profile.to_owned()]),
        }
        let above = folder.parent().and_then(|above| above.file_name()?.to_str());
        if let Some(triple) = above.filter(|name| name.starts_with(&format!("{}-", std::env::consts::ARCH))) {
            command.options.extend(["--target".to_owned(), triple.to_owned()]);
        }
        Some(command)
    }
}

/// Words that should not be printed again.
fn is_secret(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    ["token", "secret", "password", "credential"].iter().any(|secret| word.contains(secret) && word.contains('='))
}

/// How a file may be called whose name became this one of a crate.
pub(super) fn spellings(name: &str) -> Vec<String> {
    let mut spellings = vec![name.to_owned(), name.replace('_', "-")];
    spellings.dedup();
    spellings
}

/// The words that our parent was started with, where the system tells.
#[cfg(target_os = "linux")]
pub(super) fn command_line_of_parent() -> Vec<String> {
    let path = format!("/proc/{}/cmdline", std::os::unix::process::parent_id());
    let text = std::fs::read(path).unwrap_or_default();
    let words = text.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let mut words: Vec<String> = words.collect();
    // The last word ends with a 0 as well.
    words.pop();
    words
}

/// The same elsewhere: nothing.
#[cfg(not(target_os = "linux"))]
pub(super) fn command_line_of_parent() -> Vec<String> {
    Vec::new()
}
