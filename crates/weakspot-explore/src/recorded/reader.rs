//! Reads a recorded trace in whichever format it is.

use std::io::{BufReader, Cursor, Read};

use super::binary::{BinaryReader, MAGIC};
use super::text::TextReader;
use super::{Format, Record, TraceError};

/// How much is asked of the stream at a time.
const BUFFER: usize = 1 << 16;

type Source<R> = std::io::Chain<Cursor<Vec<u8>>, R>;

/// A stream of records.
#[derive(Debug)]
pub enum Reader<R: Read> {
    /// Of text.
    Text(TextReader<BufReader<Source<R>>>),
    /// Of blocks.
    Binary(BinaryReader<BufReader<Source<R>>>),
}

impl<R: Read> Reader<R> {
    /// Looks at the first byte and decides.
    pub fn new(mut from: R) -> Result<Self, TraceError> {
        let mut first = Vec::new();
        from.by_ref().take(1).read_to_end(&mut first)?;
        let is_binary = first.first() == Some(&MAGIC[0]);
        let buffered = BufReader::with_capacity(BUFFER, Cursor::new(first).chain(from));
        Ok(if is_binary { Self::Binary(BinaryReader::new(buffered)) } else { Self::Text(TextReader::new(buffered)) })
    }

    /// Which format it is.
    pub fn format(&self) -> Format {
        match self {
            Self::Text(_) => Format::Text,
            Self::Binary(_) => Format::Binary,
        }
    }

    /// The next record; `None` at the end of a trace that is whole.
    #[inline]
    pub fn read(&mut self) -> Result<Option<Record>, TraceError> {
        match self {
            Self::Text(reader) => reader.read(),
            Self::Binary(reader) => reader.read(),
        }
    }
}
