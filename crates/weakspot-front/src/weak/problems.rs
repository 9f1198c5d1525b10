//! Collects diagnostics, and knows when to stop.
//!
//! Binary garbage may hold millions of mistakes; the first [`MOST_ERRORS`] are kept, the rest is counted. A message is
//! only worded (and a "did you mean" only searched) when it will be kept.

use rustc_hash::FxHashSet;
use weakspot_model::source::{Diagnostic, Severity, Span};

/// How many errors are reported; warnings have a limit of the same size.
pub(super) const MOST_ERRORS: usize = 50;

/// The diagnostics of one file.
#[derive(Debug, Default)]
pub(super) struct Problems {
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    left_off: usize,
    last_left_off: Span,
    /// A template is lowered once for each instance, a function once for each call: their warnings come only once.
    warned: FxHashSet<(Span, &'static str)>,
}

impl Problems {
    /// Reports an error.
    pub(super) fn error(&mut self, span: Span, describe: impl FnOnce() -> Diagnostic) {
        if self.is_full() {
            self.left_off += 1;
            self.last_left_off = span;
        } else {
            let diagnostic = describe();
            debug_assert_eq!(diagnostic.severity, Severity::Error);
            self.errors.push(diagnostic);
        }
    }

    /// Reports a warning, unless the same kind was reported at the same place.
    pub(super) fn warning(&mut self, code: &'static str, span: Span, describe: impl FnOnce() -> Diagnostic) {
        if self.warnings.len() < MOST_ERRORS && self.warned.insert((span, code)) {
            self.warnings.push(describe());
        }
    }

    /// Is there no room for another error? Then its wording does not matter.
    pub(super) fn is_full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// Has anything gone wrong so far?
    pub(super) fn any_error(&self) -> bool {
        !self.errors.is_empty()
    }

    /// The errors in the order of the text, or else the warnings.
    pub(super) fn finish(mut self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        if self.errors.is_empty() {
            self.warnings.sort_by_key(|warning| (warning.span, warning.code));
            return Ok(self.warnings);
        }
        self.errors.sort_by_key(|error| error.span);
        self.errors.dedup_by(|later, earlier| later.span == earlier.span && later.message == earlier.message);
        if self.left_off > 0 {
            let message = format!("and {} more {}", self.left_off, if self.left_off == 1 { "error" } else { "errors" });
            let last = Diagnostic::error("too-many-errors", message, self.last_left_off)
                .help("mend the first ones, the others may follow from them");
            self.errors.push(last);
        }
        Err(self.errors)
    }
}
