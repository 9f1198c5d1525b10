//! `--record`: the explored executions become a file when all of them are written, or not at all.

use std::io::BufWriter;
use std::path::Path;

use weakspot_check::CheckOptions;
use weakspot_check::recorded::recorder::{RecordError, Recorded, Recorder};
use weakspot_check::recorded::{Format, Writer};
use weakspot_model::ir::Program;

use crate::args::{CheckArgs, RecordFormat};
use crate::commands::replacement::Replacement;
use crate::exit::Failure;

/// A recording that has begun.
pub type Recording<'p> = Recorder<'p, BufWriter<Replacement>>;

/// The format of the file.
pub fn format(args: &CheckArgs, path: &Path) -> Format {
    match args.record_format {
        Some(RecordFormat::Text) => Format::Text,
        Some(RecordFormat::Binary) => Format::Binary,
        None if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("txt")) => Format::Text,
        None => Format::Binary,
    }
}

fn failure(path: &Path, error: RecordError) -> Failure {
    match error {
        RecordError::Io(error) => Failure::Output { what: format!("`{}`", path.display()), error },
        RecordError::NotPossible { .. } => Failure::Internal(error.to_string()),
    }
}

/// Begins to write beside the target.
pub fn begin<'p>(
    args: &CheckArgs,
    path: &Path,
    program: &'p Program,
    options: &CheckOptions,
) -> Result<Recording<'p>, Failure> {
    let replacement = Replacement::of(path).map_err(|error| failure(path, error.into()))?;
    let writer = Writer::new(BufWriter::new(replacement), format(args, path));
    let writer = writer.map_err(|error| failure(path, error.into()))?;
    Recorder::new(program, options.spurious_wakeups, options.allow_deadlock, writer)
        .map_err(|error| failure(path, error))
}

/// Ends the file and puts it in its place.
pub fn finish(path: &Path, recording: Recording<'_>) -> Result<Recorded, Failure> {
    let (writer, recorded) = recording.finish().map_err(|error| failure(path, error))?;
    let put = writer.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(Replacement::put_in_place);
    put.map_err(|error| failure(path, error.into()))?;
    Ok(recorded)
}
