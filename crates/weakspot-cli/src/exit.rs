//! The exit status, and failures that end a command.

use std::fmt::Write as _;
use std::sync::Arc;

use weakspot_model::source::{Diagnostic, SourceFile};
use weakspot_report::diagnostic;
use weakspot_report::recorded::WrongLine;
use weakspot_report::style::Role;

use crate::input::InputError;
use crate::output::Output;

/// The exit status that scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// The answer is good.
    Good = 0,
    /// A problem was found.
    Problem = 1,
    /// Bad usage or bad input.
    BadInput = 2,
    /// No answer within the bounds or limits.
    NoAnswer = 3,
    /// No fence placement can make the program correct.
    NoPlacement = 4,
}

/// Why a command ends without a result.
#[derive(Debug)]
pub enum Failure {
    /// An input cannot be read.
    Input(InputError),
    /// An input is not a program.
    Source(Arc<SourceFile>, Vec<Diagnostic>),
    /// Options that do not go together.
    Usage {
        /// What is wrong, without a full stop.
        message: String,
        /// What to do.
        help: String,
    },
    /// The result cannot be written.
    Output {
        /// What was to be written where.
        what: String,
        /// Why not.
        error: std::io::Error,
    },
    /// The input is fine, but too large for the engine.
    TooLarge {
        /// The input.
        file: String,
        /// What is too large, without a full stop.
        message: String,
    },
    /// A line of a recorded trace is wrong.
    TraceLine {
        /// The trace.
        file: String,
        /// Line, column, and how many characters are meant.
        position: (u64, u64, u64),
        /// The line.
        text: String,
        /// What is wrong, without a full stop.
        message: String,
        /// What to do.
        help: String,
    },
    /// A defect of weakspot.
    Internal(String),
    /// Several inputs failed.
    Several(Vec<Failure>),
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

impl Failure {
    /// Prints the failure on standard error and gives the exit status.
    pub fn report(&self, output: &Output) -> Exit {
        output.error(&self.text(output));
        self.exit()
    }

    /// The exit status.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Internal(_) | Self::TooLarge { .. } => Exit::NoAnswer,
            Self::Several(failures) if failures.iter().all(|failure| failure.exit() == Exit::NoAnswer) => {
                Exit::NoAnswer
            }
            _ => Exit::BadInput,
        }
    }

    fn text(&self, output: &Output) -> String {
        let style = &output.err;
        match self {
            Self::Input(error) => sentence(output, &error.to_string(), error.help()),
            Self::Source(file, diagnostics) => diagnostic::render_all(file, diagnostics, style),
            Self::Usage { message, help } => sentence(output, message, Some(help)),
            Self::Output { what, error } => sentence(output, &format!("cannot write {what}: {error}"), None),
            Self::TraceLine { file, position: (line, column, length), text, message, help } => {
                WrongLine { file, line: *line, column: *column, length: *length, text, message, help }.render(style)
            }
            Self::TooLarge { file, message } => sentence(output, &format!("no answer for `{file}`: {message}"), None),
            Self::Internal(message) => sentence(
                output,
                &format!("internal error: {message}"),
                Some("this is a defect of weakspot, and no verdict is given; please report it with the program"),
            ),
            Self::Several(failures) => {
                let mut text = failures.iter().map(|failure| failure.text(output)).collect::<Vec<_>>().join("\n");
                if failures.len() > 1 {
                    let _ = writeln!(text, "\n{} inputs have no result", failures.len());
                }
                text
            }
        }
    }
}

/// `error: …` and `help: …` on lines of their own.
fn sentence(output: &Output, message: &str, help: Option<&str>) -> String {
    let mut text = format!("{} {message}\n", output.err.paint(Role::Failure, "error:"));
    if let Some(help) = help {
        let _ = writeln!(text, " {} {help}", output.err.paint(Role::Heading, "help:"));
    }
    text
}
