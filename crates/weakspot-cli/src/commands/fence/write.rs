//! `--output`: the fenced program becomes a file only after what was written has been read and verified again.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;

use weakspot_fence::{Confirmation, FenceError};
use weakspot_model::source::SourceFile;

use crate::commands::replacement::Replacement;
use crate::exit::Failure;

/// Writes a text to a new file beside the target, asks about what stands there, and puts it in the target's place in
/// one step. If anything goes wrong the target is as it was. What goes to a pipe or a device is asked about first.
pub fn replace(
    path: &Path,
    text: &str,
    confirm: impl FnOnce(&Arc<SourceFile>) -> Result<Confirmation, FenceError>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Output { what: format!("`{}`", path.display()), error };
    let mut replacement = Replacement::of(path).map_err(failed)?;
    let written = match replacement.beside() {
        Some(file) => {
            file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
            Some(fs::read_to_string(file.path()).map_err(failed)?)
        }
        None => None,
    };
    let is_written = written.is_some();
    let written = written.unwrap_or_else(|| text.to_owned());
    let source = SourceFile::new(path.display().to_string(), written);
    match confirm(&source).map_err(|error| Failure::Internal(error.to_string()))? {
        Confirmation::Correct => {}
        Confirmation::Broken => {
            return Err(Failure::Internal("the fenced program is not correct; nothing was written".to_owned()));
        }
        Confirmation::Undecided(doubt) => {
            let reached = super::reached(doubt);
            let message = format!("{reached} before the fenced program was verified again; nothing was written");
            return Err(Failure::TooLarge { file: path.display().to_string(), message });
        }
    }
    if !is_written {
        replacement.write_all(text.as_bytes()).map_err(failed)?;
    }
    replacement.put_in_place().map_err(failed)
}
