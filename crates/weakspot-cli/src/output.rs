//! Where text goes and how it may look. Results go to standard output, everything else to standard error.
//!
//! A closed pipe (`weakspot … | head`) is no error: what is left is dropped, the exit status stays that of the verdict.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Instant;

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use weakspot_report::json;
use weakspot_report::style::{DEFAULT_WIDTH, Role, Style, wrap};

use crate::args::{Colour, CommonArgs};
use crate::exit::{Exit, Failure};

/// Narrower than this, lines are cut rather than squeezed further.
const MIN_WIDTH: usize = 40;

/// Wider than this, lines are hard to follow.
const MAX_WIDTH: usize = 160;

/// How results and messages are printed.
#[derive(Debug)]
pub struct Output {
    /// JSON on standard output, and nothing else there.
    pub json: bool,
    /// Verdict only.
    pub quiet: bool,
    /// More figures.
    pub verbose: bool,
    /// How standard output may look.
    pub out: Style,
    /// How standard error may look.
    pub err: Style,
    started: Instant,
}

impl Output {
    /// Resolves the options, the environment and the terminal once.
    pub fn new(common: &CommonArgs) -> Self {
        let colour = |auto: ColorChoice| match common.color {
            Colour::Auto => auto != ColorChoice::Never,
            Colour::Always => true,
            Colour::Never => false,
        };
        let out = Style {
            colour: colour(AutoStream::choice(&io::stdout())),
            width: width(terminal_size::terminal_size_of(io::stdout())),
        };
        let err = Style {
            colour: colour(AutoStream::choice(&io::stderr())),
            width: width(terminal_size::terminal_size_of(io::stderr())),
        };
        let CommonArgs { json, quiet, verbose, .. } = *common;
        Self { json, quiet, verbose, out, err, started: Instant::now() }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Is somebody watching standard error who wants to see progress?
    pub fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Prints a result.
    #[expect(clippy::unused_self, reason = "where text goes is the business of the output, not of its callers")]
    pub fn result(&self, text: &str) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::Output { what: "to standard output".to_owned(), error })
            }
            _ => Ok(()),
        }
    }

    /// The first line of an answer: the verdict painted, then what it is about and what it means. Folded to the width
    /// of the terminal, with what follows the first line indented; always one line with `--quiet`.
    pub fn headline(&self, exit: Exit, verdict: &str, rest: &str) -> String {
        let role = match exit {
            Exit::Good => Role::Success,
            Exit::NoAnswer => Role::Unknown,
            _ => Role::Failure,
        };
        let width = if self.quiet { usize::MAX } else { self.out.width - 2 };
        let text = wrap(&format!("{verdict}: {rest}"), width).join("\n  ");
        let painted = self.out.paint(role, verdict);
        format!("{painted}{}\n", text.strip_prefix(verdict).unwrap_or_default())
    }

    /// Prints a result as JSON.
    pub fn object(&self, object: &impl Serialize) -> Result<(), Failure> {
        self.result(&json::to_text(object))
    }

    /// Prints an error. Nothing is left to do if standard error is closed.
    #[expect(clippy::unused_self, reason = "where text goes is the business of the output, not of its callers")]
    pub fn error(&self, text: &str) {
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Prints a warning or a remark, unless `--quiet`.
    pub fn remark(&self, text: &str) {
        if !self.quiet {
            self.error(text);
        }
    }
}

fn width(size: Option<(terminal_size::Width, terminal_size::Height)>) -> usize {
    size.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0).clamp(MIN_WIDTH, MAX_WIDTH))
}
