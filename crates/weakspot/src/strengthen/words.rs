//! Suggestions in words.

use std::fmt::{self, Write};

use super::{Change, Suggestion};
use crate::failure::SourcePlace;

impl Suggestion {
    /// The change, with the line as it should read.
    fn in_words(&self) -> String {
        let Self { place, what, change, line, row, .. } = self;
        let mut text = match (change, self.says_ordering) {
            (Change::SeqCst, true) if self.releases => format!(
                "use `Ordering::SeqCst` for the {what} at {place}, or `Ordering::Release` and put `fence(SeqCst)` after it"
            ),
            (Change::SeqCst, true) => {
                format!("use `Ordering::SeqCst` for the {what} at {place}, or put `fence(SeqCst)` after it")
            }
            (Change::SeqCst, false) => format!("put `fence(SeqCst)` after the call at {place}"),
            (Change::Release, true) => {
                format!("use `Ordering::Release` for the {what} at {place}, or put `fence(Release)` before it")
            }
            (Change::Release, false) => format!("put `fence(Release)` before the call at {place}"),
            (Change::Acquire, _) => {
                format!("use `Ordering::Acquire` for the {what} at {place}, or put `fence(Acquire)` after it")
            }
            (Change::AcqRel, _) => format!("use `Ordering::AcqRel` for the {what} at {place}"),
            (Change::AcquireOnFailure, _) => {
                let when = if *what == "fetch_update" { "loads" } else { "failure" };
                format!("use `Ordering::Acquire` as the second ordering, that of {when}, of the {what} at {place}")
            }
            (Change::FenceBefore, _) => format!("put `fence(SeqCst)` before the load at {place}"),
        };
        if let Some(line) = line {
            let _ = write!(text, "\n{row:>5} + {line}");
        }
        text
    }
}

/// What helps, and what is known of it. With `fails_on_unsafe`, the test fails on whatever SC does not have.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, suggestions: &[Suggestion], fails_on_unsafe: bool) -> fmt::Result {
    let Some(first) = suggestions.first() else { return Ok(()) };
    for (index, suggestion) in suggestions.iter().enumerate() {
        let lead = if index == 0 { "\n\nhelp: " } else { "\n  and " };
        write!(f, "{lead}{}", suggestion.in_words())?;
    }
    let these = if suggestions.len() == 1 { "this" } else { "these" };
    if let Some(failure) = &first.then_fails {
        return write!(f, "\n  (tried: with {these}, another execution fails: {failure})");
    }
    if !first.tried {
        return write!(f, "\n  (not tried out: {these} may not be enough)");
    }
    match (first.proved, fails_on_unsafe) {
        (true, true) => write!(f, "\n  (tried: with {these}, every execution is one of SC")?,
        (true, false) => write!(f, "\n  (tried: with {these}, no execution fails")?,
        (false, _) => write!(f, "\n  (tried: with {these}, none that fails was found; not all were looked at")?,
    }
    let fewer = if first.fewest && suggestions.len() > 1 { "; fewer changes are not enough)" } else { ")" };
    f.write_str(fewer)
}

/// No ordering orders two accesses, of these threads.
pub(super) fn no_order(first: u32, second: u32) -> String {
    format!(
        "no ordering helps here: nothing that thread {first} writes after that is read by thread {second} before its own access, \
         directly or through others, so nothing can order the two. {REMEDY}"
    )
}

/// No ordering orders the accesses at two places, in another execution than the one that is shown.
pub(super) fn no_order_at(one: &SourcePlace, other: &SourcePlace) -> String {
    format!(
        "stronger orderings are not enough: whatever they are, nothing orders the accesses at {one} and at {other} in another \
         execution. {REMEDY}"
    )
}

/// What orders accesses to plain memory.
const REMEDY: &str =
    "Protect the memory with a lock, or publish it through an atomic that the other thread reads first";
