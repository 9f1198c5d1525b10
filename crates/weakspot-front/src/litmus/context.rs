//! What the parts of the reader share: the text, the memory cells named so far, and the mistakes found so far.

use weakspot_model::ids::Loc;
use weakspot_model::ir::Location;
use weakspot_model::source::{Diagnostic, Span};

use super::cursor::NumberError;

/// Mistakes reported for one file; the rest would only bury them.
const MOST_DIAGNOSTICS: usize = 50;

/// Locations in one test; real ones have a handful.
const MOST_LOCATIONS: usize = 1024;

/// Letters of a word that messages show.
const LONGEST_SHOWN: usize = 40;

/// Shared by the parts of the reader.
pub(super) struct Context<'a> {
    /// The whole file.
    pub(super) text: &'a str,
    /// Is [`super::GAP`] an instruction?
    pub(super) marks_gaps: bool,
    /// Memory cells in the order they are first named.
    pub(super) locations: Vec<Location>,
    /// Mistakes in the order they are found.
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<'a> Context<'a> {
    /// Nothing named, nothing wrong.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, marks_gaps: false, locations: Vec::with_capacity(4), diagnostics: Vec::new() }
    }

    /// Notes a mistake.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MOST_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Notes a mistake unless one of its kind is noted already.
    fn report_once(&mut self, diagnostic: Diagnostic) {
        if !self.diagnostics.iter().any(|known| known.code == diagnostic.code) {
            self.report(diagnostic);
        }
    }

    /// Have so many mistakes been found that it is better to stop?
    pub(super) fn is_full(&self) -> bool {
        self.diagnostics.len() >= MOST_DIAGNOSTICS
    }

    /// The cell of this name, made with initial value 0 if it is new.
    pub(super) fn location(&mut self, name: &str, span: Span) -> Loc {
        let known = self.locations.iter().position(|location| location.name == name);
        Loc::new(known.unwrap_or_else(|| {
            if self.locations.len() == MOST_LOCATIONS {
                let message = format!("the test names more than {MOST_LOCATIONS} locations");
                self.report_once(too_large(message, span));
                return 0;
            }
            self.locations.push(Location { name: name.to_owned(), init: 0, range: None });
            self.locations.len() - 1
        }))
    }
}

/// A word of the file as a message shows it: all of it, unless it is absurdly long.
pub(super) fn clip(word: &str) -> &str {
    match word.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => &word[..end],
        None => word,
    }
}

/// A mistake on its way to where it is reported; boxed because it is rare and large.
#[derive(Debug)]
pub(super) struct Mistake(Box<Diagnostic>);

impl Mistake {
    /// This mistake.
    pub(super) fn new(diagnostic: Diagnostic) -> Self {
        Self(Box::new(diagnostic))
    }
}

impl From<Mistake> for Diagnostic {
    fn from(mistake: Mistake) -> Self {
        *mistake.0
    }
}

/// The message about a test that goes beyond a limit.
pub(super) fn too_large(message: String, span: Span) -> Diagnostic {
    Diagnostic::error("test-too-large", message, span)
        .help("litmus tests are small; larger programs are better written in weakspot's own language")
}

/// The message about a number that cannot be read.
pub(super) fn number_diagnostic(error: NumberError, text: &str, span: Span) -> Diagnostic {
    let shown = clip(&text[span.range()]);
    match error {
        NumberError::Missing => {
            Diagnostic::error("expected-number", format!("expected a number, found `{shown}`"), span)
                .label("not a number")
                .help("constants are written `$1` or `1`")
        }
        NumberError::Malformed => Diagnostic::error("bad-number", format!("`{shown}` is not a number"), span)
            .label("not a number")
            .help("numbers are decimal (`17`, `-1`) or hexadecimal (`0x11`)"),
        NumberError::TooLarge => Diagnostic::error("number-too-large", format!("`{shown}` is too large"), span)
            .label("does not fit into 64 bits")
            .help("values are signed 64-bit integers"),
    }
}
