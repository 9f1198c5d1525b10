//! A file that takes the place of another in one step: whoever reads the target sees the old contents or the new ones,
//! never a part. Until then the target is as it was.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The new files of this process, for a process that ends at once: nobody drops them then.
static BEGUN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes the new files that have not taken their target's place.
pub fn remove_unfinished() {
    for path in BEGUN.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // What is in its place, or was dropped, is not there any more.
        let _ = fs::remove_file(path);
    }
}

/// What is to become the target.
#[derive(Debug)]
pub struct Replacement {
    target: PathBuf,
    /// A new file beside the target.
    pub file: tempfile::NamedTempFile,
}

impl Replacement {
    /// A new file beside the target, which need not exist.
    pub fn of(path: &Path) -> io::Result<Self> {
        let target = target(path)?;
        let file = new_file(folder(&target)?)?;
        BEGUN.lock().unwrap_or_else(PoisonError::into_inner).push(file.path().to_owned());
        Ok(Self { target, file })
    }

    /// Could there be one, as far as can be seen without making it? For whoever is about to do long work first.
    pub fn is_possible(path: &Path) -> io::Result<()> {
        target(path).and_then(|target| folder(&target).map(|_| ()))
    }

    /// Puts it in the target's place, with the target's permissions.
    pub fn put_in_place(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        if let Ok(metadata) = fs::metadata(&self.target) {
            fs::set_permissions(self.file.path(), metadata.permissions())?;
        }
        self.file.persist(&self.target).map_err(|error| error.error)?;
        Ok(())
    }
}

impl io::Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
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

/// The folder of the target.
fn folder(target: &Path) -> io::Result<&Path> {
    let folder = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no folder `{}`", folder.display())))
}

/// A file that others may read as they may read any new file.
fn new_file(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".weakspot");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    // The name of the new file means nothing to anybody.
    builder.tempfile_in(directory).map_err(|error| io::Error::from(error.kind()))
}
