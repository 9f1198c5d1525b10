//! Recorded traces: SC executions as files, written while a search goes on and read again under a monitor.
//!
//! Two formats hold the same [`Record`]s, a text for people and other tools and a compact binary one;
//! `docs/traces.md` defines both.
//!
//! | module | what lives there |
//! |---|---|
//! | [`text`] | the text format |
//! | [`binary`] | the binary format: checksummed blocks of records |
//! | [`reader`] | whichever of them a stream is in |
//! | [`recorder`] | from explored executions to records |
//! | [`watch`] | monitors over a stream of records |
//! | `rules` | what may stand where; shared by the readers |
//! | `checksum` | CRC-32C, and the hash of a source file |
//!
//! A stream is read once, from its beginning to its end, and nothing of it is kept but what was declared: threads,
//! cells, places and source files, each under the next free number. Declarations may come anywhere, so that a recorder
//! need not know beforehand what a program will touch.
//!
//! # Deliberately absent
//! No random access, no compression, no order between executions. A recorded execution cannot be run again: that is what
//! [`crate::schedule`] is for.

pub mod binary;
mod checksum;
pub mod reader;
pub mod recorder;
mod rules;
pub mod text;
pub mod watch;

use std::io::{self, Write};

use thiserror::Error;

pub use checksum::source_hash;

use crate::happening::Happening;

/// What has a coherence order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CellSort {
    /// Memory.
    Location,
    /// A mutex.
    Mutex,
    /// A condition variable.
    Condvar,
}

impl CellSort {
    /// The word of the text format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Location => "location",
            Self::Mutex => "mutex",
            Self::Condvar => "condvar",
        }
    }
}

/// A place in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePlace {
    /// The number of the file.
    pub file: u32,
    /// One-based.
    pub line: u32,
    /// One-based, in characters.
    pub column: u32,
    /// How many characters of the source it covers; 0: not known.
    pub length: u32,
    /// The statement's label.
    pub label: Option<String>,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// The number of the thread.
    pub thread: u32,
    /// What it did.
    pub happening: Happening,
    /// The number of the place, if it is known.
    pub place: Option<u32>,
}

/// How a recorded execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Every thread ended and the specification holds.
    Complete,
    /// A false `assume`, or only threads that wait in loops were left.
    Blocked,
    /// Nobody could move, and that was not taken for an error.
    Deadlock,
    /// Cut off: by a bound on loops or on length, or because recording ended.
    Unfinished,
    /// It broke the specification.
    Error(String),
}

/// What a recorded trace consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The next source file: its name and the hash of its text.
    File {
        /// As the user named it.
        name: String,
        /// [`source_hash`] of its text.
        hash: u64,
    },
    /// The next thread.
    Thread {
        /// Its name.
        name: String,
    },
    /// The next cell.
    Cell {
        /// What it is.
        sort: CellSort,
        /// Its name.
        name: String,
    },
    /// The next place.
    Place(TracePlace),
    /// The program assumes something, so an execution that a monitor predicts may turn out to be none.
    Assumes,
    /// An execution begins: all cells have their initial values, no thread has done anything.
    Begin,
    /// The next event of the execution.
    Event(TraceEvent),
    /// The execution ends.
    End(Ending),
}

/// The two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines of text.
    Text,
    /// Checksummed blocks.
    Binary,
}

impl Format {
    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Binary => "binary",
        }
    }
}

/// Where in a stream something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// Binary: the offset of a byte from the beginning.
    Byte(u64),
    /// Text: a place in a line.
    Line {
        /// One-based.
        line: u64,
        /// One-based, in characters.
        column: u64,
        /// How many characters are meant, at least 1.
        length: u64,
        /// The line itself.
        text: String,
    },
}

/// Why a stream is not a recorded trace.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The stream cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It can, but it is no trace, or a damaged one.
    #[error("{message}")]
    Damaged {
        /// Where.
        at: At,
        /// What is wrong, without a full stop.
        message: String,
    },
}

/// The longest string a trace may hold, in bytes.
pub const LONGEST_STRING: usize = 1 << 16;

/// Writes records in one of the formats.
#[derive(Debug)]
pub enum Writer<W: Write> {
    /// As text.
    Text(text::TextWriter<W>),
    /// As blocks.
    Binary(binary::BinaryWriter<W>),
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    pub fn new(to: W, format: Format) -> io::Result<Self> {
        Ok(match format {
            Format::Text => Self::Text(text::TextWriter::new(to)?),
            Format::Binary => Self::Binary(binary::BinaryWriter::new(to)?),
        })
    }

    /// Writes the next record. The caller numbers declarations as [`Record`] says and begins and ends executions.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        match self {
            Self::Text(writer) => writer.write(record),
            Self::Binary(writer) => writer.write(record),
        }
    }

    /// Ends the trace; without this the file counts as truncated.
    pub fn close(self) -> io::Result<W> {
        match self {
            Self::Text(writer) => writer.close(),
            Self::Binary(writer) => writer.close(),
        }
    }
}
