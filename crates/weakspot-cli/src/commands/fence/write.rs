//! `--output`: the fenced program becomes a file only after what was written has been read and verified again.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weakspot_fence::{Confirmation, FenceError};
use weakspot_model::source::SourceFile;

use crate::exit::Failure;

/// Writes a text to a new file beside the target, asks about what stands there, and puts it in the target's place in
/// one step. If anything goes wrong the target is as it was.
pub fn replace(
    path: &Path,
    text: &str,
    confirm: impl FnOnce(&Arc<SourceFile>) -> Result<Confirmation, FenceError>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::Output { what: format!("`{}`", path.display()), error };
    let target = target(path).map_err(failed)?;
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = new_file(directory).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    let written = fs::read_to_string(file.path()).map_err(failed)?;
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
    if let Ok(metadata) = fs::metadata(&target) {
        fs::set_permissions(file.path(), metadata.permissions()).map_err(failed)?;
    }
    file.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
}

/// A link stays a link: the file it leads to is replaced.
fn target(path: &Path) -> io::Result<PathBuf> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")),
        Ok(metadata) if metadata.permissions().readonly() => {
            Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"))
        }
        Ok(_) => fs::canonicalize(path),
    }
}

/// A file that others may read as they may read any new file.
fn new_file(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".weakspot");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(directory)
}
