//! `WEAKSPOT_SUGGESTIONS=FILE`: what was found of each model and what would help, for `weakspot fence --test`.
//!
//! While it is set, a test is asked a question rather than run for its own sake:
//! - `WEAKSPOT_MODEL`, `WEAKSPOT_FAIL_ON` and `WEAKSPOT_STRENGTHENED` count for every model, whatever its builder says, and
//!   everything is explored: nothing is run again, monitors are on;
//! - a model that fails only because of store buffers does not end its test, so that the models behind it are explored, too.
//!
//! # The file
//! It is appended to, one block for each model. Fields are separated by tabs; in a field `\t`, `\n`, `\r` and `\\` stand for
//! what would be in the way.
//!
//! | line | fields |
//! |---|---|
//! | `model` | its number on its OS thread, file, line and column of its start, `sc`, `tso` or `pso`, the verdict, `all` or `some` (was every execution explored?), executions |
//! | `why` | what went wrong (`panic`, `race`, … or `bounded`), in words, and, if that is known, file, line and column |
//! | `late` | a store that may come late: its file, line, column; what overtakes it (`load`, …), and its file, line, column |
//! | `clause` | the changes that follow make one execution impossible that must go: one of them has to be made |
//! | `helps` | the changes that follow were tried out together: `proved`, or `seen` if not everything was explored |
//! | `change` | `SeqCst`, `Release`, `Acquire`, `AcqRel`, `AcquireOnFailure` or `FenceBefore`; file, line, column; `ordering` or `call` (does it say its ordering?); the path of the file, the line as it should read, or the one to put before it, and its number, if these are known |
//! | `end` | |

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::panic::Location;

use crate::builder::Builder;
use crate::failure::{Failure, FailureKind, SourcePlace};
use crate::impact::Impact;
use crate::report::{Bound, Report, Verdict, bound_text};
use crate::source;
use crate::strengthen::{Candidate, Change, rewritten};
use weakspot_model::buffer::MemoryModel;

const VARIABLE: &str = "WEAKSPOT_SUGGESTIONS";

fn file() -> Option<OsString> {
    std::env::var_os(VARIABLE).filter(|path| !path.is_empty())
}

/// Does somebody collect suggestions?
pub(crate) fn are_collected() -> bool {
    file().is_some()
}

/// The builder as the environment wants it, if suggestions are collected.
#[track_caller]
pub(crate) fn as_asked(builder: &Builder) -> Builder {
    let mut builder = builder.clone();
    if are_collected() {
        let asked = Builder::new();
        let is_said = |name: &str| std::env::var_os(name).is_some_and(|text| !text.is_empty());
        if is_said("WEAKSPOT_MODEL") {
            builder.model = asked.model;
        }
        if is_said("WEAKSPOT_FAIL_ON") {
            builder.fail_on = asked.fail_on;
        }
        let new = asked.strengthened.into_iter().filter(|change| !builder.strengthened.contains(change));
        let new: Vec<_> = new.collect();
        builder.strengthened.extend(new);
        (builder.monitor, builder.replay) = (true, None);
    }
    builder
}

/// Appends what was found of a model, if somebody wants it.
///
/// # Panics
/// If the file cannot be written: whoever asked would take it that there was no model.
#[track_caller]
pub(crate) fn record(report: &Report, start: &Location<'_>) {
    let Some(path) = file() else { return };
    let text = block(report, start);
    let written = OpenOptions::new().create(true).append(true).open(&path);
    if let Err(error) = written.and_then(|mut file| file.write_all(text.as_bytes())) {
        panic!("{VARIABLE}={} should be a file that can be written: {error}", path.display());
    }
}

fn block(report: &Report, start: &Location<'_>) -> String {
    let mut text = String::new();
    let (number, verdict) = (report.number().to_string(), verdict(report.verdict));
    let [file, at, column] = fields(&start.into());
    let extent = if report.exhaustive { "all" } else { "some" };
    let executions = report.executions.to_string();
    line(&mut text, &["model", &number, &file, &at, &column, model(report.model), verdict, extent, &executions]);
    if let Some(why) = why(report) {
        line(&mut text, &why.iter().map(String::as_str).collect::<Vec<_>>());
    }
    for violation in &report.violations {
        let Some(later) = &violation.overtaken_by else { continue };
        let ([file, at, column], [its_file, its_line, its_column]) =
            (fields(&violation.store.place), fields(&later.place));
        line(&mut text, &["late", &file, &at, &column, later.what, &its_file, &its_line, &its_column]);
    }
    for clause in &report.clauses {
        line(&mut text, &["clause"]);
        for candidate in clause {
            change(&mut text, candidate);
        }
    }
    if let Some(first) = report.suggestions.first().filter(|first| first.tried) {
        line(&mut text, &["helps", if first.proved { "proved" } else { "seen" }]);
        for suggestion in &report.suggestions {
            let known = |candidate: &&Candidate| {
                (SourcePlace::from(candidate.place), candidate.change) == (suggestion.place.clone(), suggestion.change)
            };
            if let Some(candidate) = report.clauses.iter().flatten().find(known) {
                change(&mut text, candidate);
            }
        }
    }
    line(&mut text, &["end"]);
    text
}

fn change(text: &mut String, candidate: &Candidate) {
    let place = SourcePlace::from(candidate.place);
    let [file, at, column] = fields(&place);
    let says = if candidate.says_ordering() { "ordering" } else { "call" };
    let path = source::path(&place.file).map(|path| path.display().to_string()).unwrap_or_default();
    let (row, new) = rewritten(&place, candidate.change).map(|new| (new.row.to_string(), new.text)).unwrap_or_default();
    line(text, &["change", candidate.change.name(), &file, &at, &column, says, &path, &new, &row]);
}

/// Why a model is not as it should be, or not known to be.
fn why(report: &Report) -> Option<Vec<String>> {
    let harm = if let Some(Impact::Harmful(harm)) = &report.impact { Some(&harm.failure) } else { None };
    let failure = report.failure.as_ref().or(harm);
    let mut fields = vec!["why".to_owned()];
    match (failure, report.verdict) {
        (Some(Failure { kind, message, place, .. }), _) => {
            fields.extend([name_of(kind).to_owned(), message.lines().next().unwrap_or_default().to_owned()]);
            fields.extend(place.iter().flat_map(self::fields));
        }
        (None, Verdict::Bounded(bound)) => fields.extend(["bounded".to_owned(), nothing_found(bound)]),
        (None, Verdict::Unknown) => {
            let words = "store buffers add executions; none that fails was found, and not all were looked at";
            fields.extend(["bounded".to_owned(), words.to_owned()]);
        }
        _ => return None,
    }
    Some(fields)
}

fn nothing_found(bound: Bound) -> String {
    format!("nothing found {}", bound_text(bound))
}

fn name_of(kind: &FailureKind) -> &'static str {
    match kind {
        FailureKind::Panic { .. } => "panic",
        FailureKind::Race { .. } => "race",
        FailureKind::UsedAfterFree(_) => "used-after-free",
        FailureKind::Deadlock => "deadlock",
        FailureKind::Livelock => "livelock",
        FailureKind::TooLong => "too-long",
        FailureKind::Leak => "leak",
        FailureKind::NotDeterministic => "not-deterministic",
        FailureKind::Schedule => "schedule",
        FailureKind::Other => "other",
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Safe => "safe",
        Verdict::Failed => "failed",
        Verdict::Harmful => "harmful",
        Verdict::Benign => "benign",
        Verdict::Unknown => "unknown",
        Verdict::Bounded(_) => "bounded",
    }
}

fn model(model: MemoryModel) -> &'static str {
    match model {
        MemoryModel::Sc => "sc",
        MemoryModel::Tso => "tso",
        MemoryModel::Pso => "pso",
    }
}

fn fields(place: &SourcePlace) -> [String; 3] {
    [place.file.clone(), place.line.to_string(), place.column.to_string()]
}

fn line(text: &mut String, fields: &[&str]) {
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            text.push('\t');
        }
        escape(text, field);
    }
    text.push('\n');
}

fn escape(text: &mut String, field: &str) {
    for letter in field.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            other => text.push(other),
        }
    }
}

/// The changes that `WEAKSPOT_STRENGTHENED` names: `SeqCst@src/lib.rs:7:10`, several of them with `;` in between.
pub(crate) fn changes(text: &str) -> Option<Vec<(SourcePlace, Change)>> {
    text.split(';').map(str::trim).filter(|part| !part.is_empty()).map(change_at).collect()
}

fn change_at(text: &str) -> Option<(SourcePlace, Change)> {
    let (name, place) = text.split_once('@')?;
    let change = Change::ALL.into_iter().find(|known| known.name() == name)?;
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    let file = parts.next().filter(|file| !file.is_empty())?.to_owned();
    Some((SourcePlace { file, line, column }, change))
}

#[cfg(test)]
mod tests {
    use super::{Change, SourcePlace, changes, escape};

    #[test]
    fn changes_are_named_by_their_places() {
        let place = |file: &str, line, column| SourcePlace { file: file.to_owned(), line, column };
        let named = changes("SeqCst@src/lib.rs:7:10; FenceBefore@C:\\a b.rs:1:2;");
        let expected =
            vec![(place("src/lib.rs", 7, 10), Change::SeqCst), (place("C:\\a b.rs", 1, 2), Change::FenceBefore)];
        assert_eq!(named, Some(expected));
        assert_eq!(changes(" "), Some(Vec::new()));
        for wrong in ["SeqCst", "SeqCst@src/lib.rs:7", "Seqcst@src/lib.rs:7:10", "SeqCst@:7:10", "SeqCst@a:-1:10"] {
            assert_eq!(changes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_field_is_one_line_without_tabs() {
        let mut text = String::new();
        escape(&mut text, "a\tb\\n\r\n");
        assert_eq!(text, "a\\tb\\\\n\\r\\n");
    }
}
