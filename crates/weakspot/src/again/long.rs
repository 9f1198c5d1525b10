//! Schedules that are too long for a command line: they are put into files, and the line names the file.
//!
//! Systems have a limit (128 KiB for a variable on Linux, 32 KiB for all on Windows), and terminals have a patience. A file is named
//! by what it holds, in the folder for temporary files, so that the same failure has the same file.

use std::hash::BuildHasher;
use std::io::Write;
use std::path::{Path, PathBuf};

use rustc_hash::FxBuildHasher;

/// Letters that a schedule on a command line may have.
const LONGEST: usize = 4_000;

/// Stands before the name of a file. No schedule begins with it.
const FILE: char = '@';

/// Puts a schedule that is too long into a file: which. Without one if that cannot be done.
pub(crate) fn keep(schedule: &str) -> Option<PathBuf> {
    if schedule.len() <= LONGEST {
        return None;
    }
    let path = std::env::temp_dir().join(format!("weakspot-{:016x}.replay", FxBuildHasher.hash_one(schedule)));
    match std::fs::File::create_new(&path) {
        Ok(mut file) => file.write_all(schedule.as_bytes()).ok(),
        // The same was put there before.
        Err(_) => std::fs::read(&path).ok().filter(|known| known == schedule.as_bytes()).map(drop),
    }?;
    Some(path)
}

/// How a file is named in the place of a schedule.
pub(crate) fn name_of(path: &Path) -> String {
    super::quoted(&format!("{FILE}{}", path.display()))
}

/// The schedule that a text is, or that is in the file that it names; or else why not.
pub(crate) fn read(text: String) -> Result<String, String> {
    match text.trim().strip_prefix(FILE) {
        None => Ok(text),
        Some(path) => match std::fs::read(path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(error) => Err(format!("the file `{path}` cannot be read: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, keep, name_of, read};

    #[test]
    fn what_is_too_long_is_read_again() {
        let schedule = format!("sc:{}", "0.1.".repeat(LONGEST));
        let path = keep(&schedule);
        let name = path.as_deref().map(name_of).unwrap_or_default();
        assert!(name.starts_with('@'), "{name}");
        assert_eq!(read(name), Ok(schedule.clone()));
        assert_eq!(keep(&schedule), path, "there already");
        assert!(path.is_some_and(|path| std::fs::remove_file(path).is_ok()));
    }

    #[test]
    fn what_fits_stays_where_it_is() {
        assert_eq!(keep("sc:0.1"), None);
        assert_eq!(read("sc:0.1@2".to_owned()), Ok("sc:0.1@2".to_owned()));
        assert!(read("@there/is/no/such.file".to_owned()).is_err_and(|why| why.contains("there/is/no/such.file")));
    }
}
