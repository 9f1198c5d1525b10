//! The files of the corpus.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files with one of these endings in a folder, given from the root of the repository, and in its subfolders; sorted.
///
/// # Panics
///
/// If the folder cannot be read.
pub fn files(folder: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join(folder), extensions, &mut found);
    found.sort();
    found
}

/// The `.weak` programs of the corpus, without those that only measure exploration: they have very many states.
pub fn programs() -> Vec<PathBuf> {
    let mut found = files("corpus", &["weak"]);
    found.retain(|path| !is_bench(path));
    found
}

/// Does the file only measure exploration?
pub fn is_bench(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("corpus/bench"))
}

fn collect(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", folder.display())).path();
        if path.is_dir() {
            collect(&path, extensions, found);
        } else if path.extension().is_some_and(|ending| extensions.iter().any(|&wanted| ending == wanted)) {
            found.push(path);
        }
    }
}
