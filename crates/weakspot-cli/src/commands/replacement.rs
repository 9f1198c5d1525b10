//! A file that takes the place of another in one step: whoever reads the target sees the old contents or the new ones,
//! never a part. Until then the target is as it was. Pipes and devices are no files to be replaced: they are written to.

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
    contents: Contents,
}

/// Where it is written to.
#[derive(Debug)]
enum Contents {
    /// A new file beside the target.
    Beside(tempfile::NamedTempFile),
    /// The target itself: a pipe or a device.
    Stream(fs::File),
}

impl Replacement {
    /// A new file beside the target, which need not exist.
    pub fn of(path: &Path) -> io::Result<Self> {
        let target = target(path)?;
        if is_stream(&target) {
            let contents = Contents::Stream(fs::OpenOptions::new().write(true).open(&target)?);
            return Ok(Self { target, contents });
        }
        let file = new_file(folder(&target)?)?;
        BEGUN.lock().unwrap_or_else(PoisonError::into_inner).push(file.path().to_owned());
        Ok(Self { target, contents: Contents::Beside(file) })
    }

    /// The new file beside the target; none for a pipe or a device, from which nothing can be read again.
    pub fn beside(&mut self) -> Option<&mut tempfile::NamedTempFile> {
        match &mut self.contents {
            Contents::Beside(file) => Some(file),
            Contents::Stream(_) => None,
        }
    }

    /// Could there be one, as far as can be seen without making it? For whoever is about to do long work first.
    pub fn is_possible(path: &Path) -> io::Result<()> {
        let target = target(path)?;
        if is_stream(&target) { Ok(()) } else { folder(&target).map(|_| ()) }
    }

    /// Puts it in the target's place, with the target's permissions.
    pub fn put_in_place(self) -> io::Result<()> {
        let Contents::Beside(file) = self.contents else { return Ok(()) };
        file.as_file().sync_all()?;
        if let Ok(metadata) = fs::metadata(&self.target) {
            fs::set_permissions(file.path(), metadata.permissions())?;
        }
        file.persist(&self.target).map_err(|error| error.error)?;
        Ok(())
    }
}

impl io::Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.contents {
            Contents::Beside(file) => file.write(bytes),
            Contents::Stream(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.contents {
            Contents::Beside(file) => file.flush(),
            Contents::Stream(file) => file.flush(),
        }
    }
}

/// Is there something that is neither a file nor a folder?
fn is_stream(target: &Path) -> bool {
    fs::metadata(target).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
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
        Ok(metadata) if !metadata.is_file() => Ok(path.to_owned()),
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
