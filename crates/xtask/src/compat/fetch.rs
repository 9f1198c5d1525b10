//! The sources of the suites, by way of cargo: a package that depends on the suite is resolved, and cargo says where it has
//! unpacked it.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::build::Engine;
use super::suites::Suite;
use crate::repository::ChoreError;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

/// A copy of a suite for an engine under `folder`. Each engine has its own, because cargo notes in the lock file of the
/// copy which loom it uses.
pub fn fetch(folder: &Path, suite: &Suite, engine: Engine) -> Result<PathBuf, ChoreError> {
    let copy = folder.join(format!("suites/{}/{}-{}", engine.name(), suite.name, suite.version));
    if !copy.is_dir() {
        let metadata = resolve(&folder.join("fetch").join(suite.name), suite)?;
        let found =
            metadata.packages.iter().find(|package| package.name == suite.name && package.version == suite.version);
        let source = found
            .and_then(|package| package.manifest_path.parent())
            .ok_or_else(|| ChoreError::Failed(format!("cargo did not fetch {} {}", suite.name, suite.version)))?;
        copy_folder(source, &copy)?;
    }
    Ok(copy)
}

/// What cargo says of a package that depends on the suite. One package for each: crates with a common dependency need
/// not agree on its version.
fn resolve(package: &Path, suite: &Suite) -> Result<Metadata, ChoreError> {
    let mut manifest = "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\n\n[workspace]\n\n[dependencies]\n".to_owned();
    let _ = writeln!(manifest, "{} = {{ version = \"={}\", default-features = false }}", suite.name, suite.version);
    create_folder(&package.join("src"))?;
    write(&package.join("Cargo.toml"), &manifest)?;
    write(&package.join("src/lib.rs"), "")?;
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1"])
        .current_dir(package)
        .output()
        .map_err(|error| ChoreError::File { path: "cargo".to_owned(), error })?;
    if !output.status.success() {
        return Err(ChoreError::Failed(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr))));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| ChoreError::Failed(format!("cargo metadata: {error}")))
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), ChoreError> {
    create_folder(to)?;
    for entry in fs::read_dir(from).map_err(|error| file(from, error))? {
        let entry = entry.map_err(|error| file(from, error))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_folder(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(|error| file(&source, error))?;
        }
    }
    Ok(())
}

fn create_folder(path: &Path) -> Result<(), ChoreError> {
    fs::create_dir_all(path).map_err(|error| file(path, error))
}

fn write(path: &Path, text: &str) -> Result<(), ChoreError> {
    fs::write(path, text).map_err(|error| file(path, error))
}

/// An error about a file.
pub fn file(path: &Path, error: std::io::Error) -> ChoreError {
    ChoreError::File { path: path.display().to_string(), error }
}
