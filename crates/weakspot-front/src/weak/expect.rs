//! `//! expect …` lines: the results the file itself expects.
//!
//! A `//!` line whose first word is neither `expect` nor close to it is an ordinary comment.

use std::fmt;

use rustc_hash::FxHashMap;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::source::{Diagnostic, Span};

use super::problems::Problems;
use crate::suggest;

/// One expected result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expectation {
    /// What is expected.
    pub expected: Expected,
    /// The line, without leading and trailing space.
    pub span: Span,
}

/// What is expected of a command under a memory model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// `check sc|tso|pso: safe|unsafe|error`
    Check {
        /// The memory model.
        model: MemoryModel,
        /// The verdict.
        verdict: CheckVerdict,
    },
    /// `verify sc|tso|pso: verified|violated`
    Verify {
        /// The memory model.
        model: MemoryModel,
        /// The verdict.
        verdict: VerifyVerdict,
    },
    /// `fence tso|pso: N`
    Fence {
        /// The memory model.
        model: MemoryModel,
        /// The smallest number of fence statements to insert; one in a thread template counts once.
        count: u32,
    },
}

/// Verdicts of `weakspot check`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckVerdict {
    /// No SC execution is wrong, and the program is store-buffer safe.
    Safe,
    /// Not store-buffer safe.
    Unsafe,
    /// Some SC execution is wrong.
    Error,
}

/// Verdicts of `weakspot verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VerifyVerdict {
    /// The specification holds.
    Verified,
    /// It does not.
    Violated,
}

impl CheckVerdict {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Safe, Self::Unsafe, Self::Error];

    /// As written, also in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Unsafe => "unsafe",
            Self::Error => "error",
        }
    }
}

impl VerifyVerdict {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Verified, Self::Violated];

    /// As written, also in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Violated => "violated",
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Check { model, verdict } => write!(f, "check {}: {}", model.name(), verdict.name()),
            Self::Verify { model, verdict } => write!(f, "verify {}: {}", model.name(), verdict.name()),
            Self::Fence { model, count } => write!(f, "fence {}: {count}", model.name()),
        }
    }
}

const COMMANDS: [&str; 3] = ["check", "verify", "fence"];
const FORMS: &str =
    "write `//! expect check tso: safe`, `//! expect verify tso: verified` or `//! expect fence tso: 2`";

/// Reads all `//!` lines.
pub(super) fn expectations(text: &str, directives: &[Span], problems: &mut Problems) -> Vec<Expectation> {
    let mut found = Vec::new();
    let mut first: FxHashMap<(&str, MemoryModel), Span> = FxHashMap::default();
    for &span in directives {
        let line = text[span.range()].trim_end();
        let span = Span::new(span.start as usize, span.start as usize + line.len());
        let mut words = Words { text: line, base: span.start as usize, offset: "//!".len() };
        match expectation(&mut words, span) {
            Ok(None) => {}
            Ok(Some(expected)) => match first.insert(expected.subject(), span) {
                None => found.push(Expectation { expected, span }),
                Some(earlier) => problems.error(span, || {
                    let (command, model) = expected.subject();
                    let message = format!("there are two expectations of `{command} {}`", model.name());
                    Diagnostic::error("bad-expectation", message, span)
                        .related(earlier, "the first one")
                        .help("keep one of the two")
                }),
            },
            Err(diagnostic) => problems.error(span, || *diagnostic),
        }
    }
    found
}

impl Expected {
    /// The command and model it is about.
    fn subject(self) -> (&'static str, MemoryModel) {
        match self {
            Self::Check { model, .. } => ("check", model),
            Self::Verify { model, .. } => ("verify", model),
            Self::Fence { model, .. } => ("fence", model),
        }
    }
}

/// Boxed, because a diagnostic is much larger than what it stands in for.
type Outcome<T> = Result<T, Box<Diagnostic>>;

/// The words of a line; `:` is a word of its own.
struct Words<'a> {
    text: &'a str,
    base: usize,
    offset: usize,
}

impl<'a> Words<'a> {
    /// The next word and its place; empty at the end of the line.
    fn next(&mut self) -> (&'a str, Span) {
        let rest = &self.text[self.offset..];
        let skipped = rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        let length = if rest.starts_with(':') {
            1
        } else {
            rest.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(rest.len())
        };
        let start = self.offset + skipped;
        self.offset = start + length;
        (&self.text[start..self.offset], Span::new(self.base + start, self.base + self.offset))
    }
}

#[expect(clippy::unnecessary_box_returns, reason = "it becomes the boxed error of an `Outcome`")]
fn bad(message: String, span: Span, help: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("bad-expectation", message, span).help(help))
}

/// The word as a message shows it.
fn shown(word: &str) -> String {
    match word.chars().nth(40) {
        _ if word.is_empty() => "the end of the line".to_owned(),
        Some(_) => format!("`{}…`", word.chars().take(40).collect::<String>()),
        None => format!("`{word}`"),
    }
}

fn expectation(words: &mut Words<'_>, line: Span) -> Outcome<Option<Expected>> {
    let (word, span) = words.next();
    if word != "expect" {
        return match suggest::closest(word, ["expect"]) {
            // an ordinary English word
            Some(_) if !matches!(word, "except" | "expert" | "aspect") => {
                Err(bad(format!("unknown word {}", shown(word)), span, "did you mean `expect`?"))
            }
            _ => Ok(None),
        };
    }
    let (command, command_span) = words.next();
    if !COMMANDS.contains(&command) {
        let help = suggest::did_you_mean(command, COMMANDS).unwrap_or_else(|| FORMS.to_owned());
        let message = format!("expected `check`, `verify` or `fence`, found {}", shown(command));
        return Err(bad(message, command_span, help));
    }
    let model = model(words, command)?;
    let (colon, span) = words.next();
    if colon != ":" {
        return Err(bad(format!("expected `:` and the result, found {}", shown(colon)), span, FORMS));
    }
    let expected = match command {
        "check" => Expected::Check { model, verdict: verdict(words, CheckVerdict::ALL, CheckVerdict::name)? },
        "verify" => Expected::Verify { model, verdict: verdict(words, VerifyVerdict::ALL, VerifyVerdict::name)? },
        _ => Expected::Fence { model, count: count(words)? },
    };
    let (rest, span) = words.next();
    if rest.is_empty() {
        return Ok(Some(expected));
    }
    let span = Span { start: span.start, end: line.end };
    Err(bad(
        format!("unexpected {} after the expectation", shown(rest)),
        span,
        "one expectation a line; put remarks into a `//` line",
    ))
}

fn model(words: &mut Words<'_>, command: &str) -> Outcome<MemoryModel> {
    let (word, span) = words.next();
    let found = MemoryModel::ALL.into_iter().find(|model| model.name() == word);
    match found {
        Some(MemoryModel::Sc) if command == "fence" => {
            Err(bad("under `sc` no fences are needed".to_owned(), span, "write `tso` or `pso`"))
        }
        Some(model) => Ok(model),
        None => {
            let message = format!("expected the memory model `sc`, `tso` or `pso`, found {}", shown(word));
            let help = suggest::did_you_mean(word, MemoryModel::ALL.map(MemoryModel::name));
            Err(bad(message, span, help.unwrap_or_else(|| FORMS.to_owned())))
        }
    }
}

fn verdict<V: Copy, const N: usize>(words: &mut Words<'_>, all: [V; N], name: fn(V) -> &'static str) -> Outcome<V> {
    let (word, span) = words.next();
    if let Some(&verdict) = all.iter().find(|&&verdict| name(verdict) == word) {
        return Ok(verdict);
    }
    let known: Vec<String> = all.iter().map(|&verdict| format!("`{}`", name(verdict))).collect();
    let message = format!("expected {}, found {}", known.join(" or "), shown(word));
    let help = suggest::did_you_mean(word, all.map(name));
    Err(bad(message, span, help.unwrap_or_else(|| FORMS.to_owned())))
}

fn count(words: &mut Words<'_>) -> Outcome<u32> {
    let (word, span) = words.next();
    word.parse().map_err(|_| {
        let message = format!("expected the number of fences, found {}", shown(word));
        bad(message, span, "the smallest number of fence statements to insert; one in a thread template counts once")
    })
}
