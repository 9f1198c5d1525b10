//! `WEAKSPOT_STATS=FILE`: one line for each model that was checked, for tools that compare runs.
//!
//! A line has six columns: executions, explorations that were none, `complete` / `bounded` / `failed`, microseconds, how
//! often the model was run, and events that were explored.

use std::fs::OpenOptions;
use std::io::{self, Write};

use crate::report::{Report, Verdict};

/// Appends the line of a model, if somebody wants it.
pub(crate) fn record(report: &Report) {
    let Some(path) = std::env::var_os("WEAKSPOT_STATS").filter(|path| !path.is_empty()) else { return };
    if let Err(error) =
        OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| append(&mut file, report))
    {
        eprintln!("WEAKSPOT_STATS: {}: {error}", path.display());
    }
}

fn append(file: &mut impl Write, report: &Report) -> io::Result<()> {
    let end = match report.verdict {
        Verdict::Failed | Verdict::Harmful => "failed",
        _ if report.exhaustive => "complete",
        _ => "bounded",
    };
    let Report { executions, blocked, elapsed, runs, events, .. } = report;
    let line = format!("{executions} {blocked} {end} {} {runs} {events}\n", elapsed.as_micros());
    file.write_all(line.as_bytes())
}
