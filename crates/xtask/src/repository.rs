//! The files of the repository a chore works on.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use weakspot_front::weak;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;

/// Why a chore was not done.
#[derive(Debug, Error)]
pub enum ChoreError {
    /// A file of the repository cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// From the root of the repository.
        path: String,
        /// Why not.
        error: io::Error,
    },
    /// A program of the corpus does not compile.
    #[error("{path} does not compile: {messages}")]
    Source {
        /// From the root of the repository.
        path: String,
        /// All messages.
        messages: String,
    },
    /// What should be true is not: a document is not what the chore would write, an experiment came out otherwise.
    #[error("{0}")]
    Failed(String),
    /// An engine has no answer, or found a mistake of its own.
    #[error("no answer for corpus/{program}.weak: {message}")]
    Engine {
        /// In the corpus.
        program: String,
        /// What the engine says.
        message: String,
    },
}

impl ChoreError {
    /// Of an engine, about a program of the corpus.
    pub fn engine(program: &str, error: &dyn std::error::Error) -> Self {
        Self::Engine { program: program.to_owned(), message: error.to_string() }
    }
}

/// Where the repository is.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of a file, named from the root.
pub fn read(path: &str) -> Result<String, ChoreError> {
    fs::read_to_string(root().join(path)).map_err(|error| ChoreError::File { path: path.to_owned(), error })
}

/// Writes a file, named from the root.
pub fn write(path: &str, text: &str) -> Result<(), ChoreError> {
    fs::write(root().join(path), text).map_err(|error| ChoreError::File { path: path.to_owned(), error })
}

/// The text of a program of the corpus: `source("mutex/dekker-loop")`.
pub fn source(name: &str) -> Result<Arc<SourceFile>, ChoreError> {
    let path = format!("corpus/{name}.weak");
    let text = read(&path)?;
    Ok(SourceFile::new(path, text))
}

/// A program of the corpus.
pub fn program(name: &str) -> Result<Program, ChoreError> {
    let source = source(name)?;
    let compiled = weak::compile(&source).map_err(|errors| ChoreError::Source {
        path: source.name.clone(),
        messages: errors.iter().map(|error| error.message.as_str()).collect::<Vec<_>>().join("; "),
    })?;
    Ok(compiled.program)
}
