//! Files and standard input to text and to programs, with every way that can go wrong.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;
use weakspot_front::{litmus, weak};
use weakspot_model::ir::Program;
use weakspot_model::litmus::LitmusTest;
use weakspot_model::source::SourceFile;
use weakspot_report::diagnostic;

use crate::exit::Failure;
use crate::output::Output;

/// No program is longer than this, in bytes; spans are 32-bit.
const LONGEST: u64 = 512 << 20;

/// Why an input cannot be read as text.
#[derive(Debug, Error)]
pub enum InputError {
    #[error("cannot read `{name}`: there is no such file")]
    Missing { name: String },
    #[error("cannot read `{name}`: it is a directory")]
    Directory { name: String },
    #[error("cannot read `{name}`: {error}")]
    Unreadable { name: String, error: io::Error },
    #[error("`{name}` is empty")]
    Empty { name: String },
    #[error("cannot read `{name}`: it is a directory")]
    NoTrace { name: String },
    #[error("`{name}` is a recorded trace, not a program")]
    Trace { name: String },
    #[error("`{name}` is Rust code, not a program of weakspot's language")]
    Rust { name: String },
    #[error("`{name}` is a binary file: there is a NUL byte at offset {offset}")]
    Binary { name: String, offset: usize },
    #[error("`{name}:{line}:{column}` is not UTF-8 text: byte 0x{byte:02x} at offset {offset}")]
    NotUtf8 { name: String, offset: usize, line: usize, column: usize, byte: u8 },
    #[error("`{name}` is longer than {} MiB", LONGEST >> 20)]
    TooLong { name: String },
    #[error("there is no .litmus file in `{name}`")]
    NoTests { name: String },
    #[error("`{name}` is a litmus test; there is no canonical form for it")]
    NotWeak { name: String },
}

impl InputError {
    /// What to do about it.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Missing { .. } => Some("check the path; `-` reads standard input"),
            Self::Directory { .. } => Some("name a .weak or .litmus file; only `weakspot litmus` takes directories"),
            Self::NoTrace { .. } => Some("name a recorded trace; `weakspot check --record FILE` writes one"),
            Self::Unreadable { .. } => None,
            Self::Empty { .. } => Some("a program has at least one thread: `thread a { … }`"),
            Self::Trace { .. } => Some("`weakspot trace` runs the monitors over it"),
            Self::Rust { .. } => Some(
                "its tests use the library `weakspot`: `cargo test` shows what is missing and where it goes, and `weakspot fence \
                 --test NAME` the fewest changes: docs/rust.md",
            ),
            Self::Binary { .. } => Some("weakspot reads the text of .weak programs and .litmus tests"),
            Self::NotUtf8 { .. } => Some("save the file with the encoding UTF-8"),
            Self::TooLong { .. } => None,
            Self::NoTests { .. } => {
                Some("directories are searched, with all below them, for names that end in .litmus")
            }
            Self::NotWeak { .. } => Some("`weakspot fmt` takes .weak programs"),
        }
    }
}

/// Reads a file, or standard input for `-`.
pub fn read(path: &Path) -> Result<Arc<SourceFile>, InputError> {
    if path == Path::new("-") {
        return text(read_all(io::stdin().lock(), "<stdin>")?, "<stdin>");
    }
    let name = path.display().to_string();
    if path.is_dir() {
        return Err(InputError::Directory { name });
    }
    let file = fs::File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => InputError::Missing { name: name.clone() },
        _ => InputError::Unreadable { name: name.clone(), error },
    })?;
    text(read_all(file, &name)?, &name)
}

fn read_all(reader: impl Read, name: &str) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let read = reader.take(LONGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| InputError::Unreadable { name: name.to_owned(), error })?;
    if bytes.len() as u64 > LONGEST {
        return Err(InputError::TooLong { name: name.to_owned() });
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>, name: &str) -> Result<Arc<SourceFile>, InputError> {
    let name = name.to_owned();
    if bytes.starts_with(b"weakspot-trace ") || bytes.starts_with(b"\x89WTR") {
        return Err(InputError::Trace { name });
    }
    if let Some(offset) = bytes.iter().position(|&byte| byte == 0) {
        return Err(InputError::Binary { name, offset });
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..offset]);
        let last_line = before.rsplit('\n').next().unwrap_or_default();
        let (line, column) = (before.matches('\n').count() + 1, last_line.chars().count() + 1);
        InputError::NotUtf8 { name: name.clone(), offset, line, column, byte: error.as_bytes()[offset] }
    })?;
    if text.trim().is_empty() {
        return Err(InputError::Empty { name });
    }
    Ok(SourceFile::new(name, text))
}

/// Is this the name of a litmus test?
pub fn is_litmus(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("litmus"))
}

/// Reads a program: a `.litmus` file as a litmus test, everything else as `.weak`. Warnings are printed. Standard
/// input has no name; it is a litmus test if it begins like one, which no `.weak` program does.
pub fn program(path: &Path, output: &Output) -> Result<Program, Failure> {
    program_or_test(path, output).map(|(program, _)| program)
}

/// The same, and whether it is a litmus test.
pub fn program_or_test(path: &Path, output: &Output) -> Result<(Program, bool), Failure> {
    let file = read(path)?;
    let begins_like_a_test = ["X86 ", "(*"].iter().any(|&beginning| file.text.trim_start().starts_with(beginning));
    let unnamed_test = path == Path::new("-") && begins_like_a_test;
    if is_litmus(path) || unnamed_test {
        return Ok((parse_litmus(&file)?.program, true));
    }
    let compiled = weak::compile(&file).map_err(|diagnostics| {
        if path.extension().is_some_and(|extension| extension == "rs") {
            return InputError::Rust { name: path.display().to_string() }.into();
        }
        Failure::Source(Arc::clone(&file), diagnostics)
    })?;
    if !compiled.warnings.is_empty() {
        output.remark(&diagnostic::render_all(&file, &compiled.warnings, &output.err));
    }
    Ok((compiled.program, false))
}

/// Reads a litmus test, whatever its name.
pub fn litmus_test(path: &Path) -> Result<LitmusTest, Failure> {
    parse_litmus(&read(path)?)
}

fn parse_litmus(file: &Arc<SourceFile>) -> Result<LitmusTest, Failure> {
    litmus::parse(file).map_err(|diagnostics| Failure::Source(Arc::clone(file), diagnostics))
}

/// The files that are named or lie in the directories that are named, in the order of the arguments and sorted within
/// a directory. Links to directories are not followed, so the walk ends.
pub fn litmus_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, InputError> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = files.len();
            walk(path, &mut files)?;
            if files.len() == before {
                return Err(InputError::NoTests { name: path.display().to_string() });
            }
        } else {
            files.push(path.clone());
        }
    }
    Ok(files)
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), InputError> {
    let unreadable = |error| InputError::Unreadable { name: directory.display().to_string(), error };
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type().map_err(unreadable)?.is_dir() {
            walk(&path, files)?;
        } else if is_litmus(&path) {
            files.push(path);
        }
    }
    Ok(())
}
