//! The binary format: see `docs/traces.md` for every byte.
//!
//! A header, then blocks, then a closing block. Each block carries a CRC-32C of itself that continues that of the block
//! before it, so a changed, lost, repeated or moved byte is found before anything is made of it; the closing block
//! carries the totals, so a lost end is found as well. The reader holds one block in memory.

use std::io::{self, Read, Write};

use super::checksum::crc32c;
use super::rules::{KINDS, Rules, code_of, sort_of, values_of};
use super::{At, CellSort, Ending, LONGEST_STRING, Record, TraceError, TraceEvent, TracePlace};
use crate::graph::NONE;
use crate::happening::{Happening, Kind};

/// The first bytes. The first is no letter, and the line ends break if something translates them.
pub const MAGIC: [u8; 8] = [0x89, b'W', b'T', b'R', b'\r', b'\n', 0x1a, b'\n'];

/// The version of the format that is written, and the only one that is read.
pub const VERSION: u8 = 1;

/// A block is written when its payload has reached this many bytes.
const BLOCK: usize = 1 << 16;

/// A longer block is damage: nothing of a stream is believed before its checksum is.
const LONGEST_BLOCK: usize = 1 << 20;

/// The low half of a record's first byte if it is no event; the high half then says what it is.
const CONTROL: u8 = 15;

/// Bits of the first byte of an event.
const OTHER_THREAD: u8 = 1 << 4;
const HAS_PLACE: u8 = 1 << 5;
const HAS_READ: u8 = 1 << 6;
const HAS_WRITTEN: u8 = 1 << 7;

/// A notification, with a flag if it wakes nobody. It has no values, so this is the bit of one.
const NOTIFICATION: u8 = code_of(Kind::Notify { wakes: true });
const OF_NOBODY: u8 = HAS_READ;

/// The kind of an event as its first byte has it.
#[inline]
const fn bits_of(kind: Kind) -> u8 {
    if matches!(kind, Kind::Notify { wakes: false }) { NOTIFICATION | OF_NOBODY } else { code_of(kind) }
}

/// The kind that stands in a first byte, and what that says beside.
#[inline]
fn kind_of(first: u8) -> Option<(Kind, u8)> {
    let (code, flags) = (first & CONTROL, first & !CONTROL);
    if code == NOTIFICATION && flags & OF_NOBODY != 0 {
        return Some((Kind::Notify { wakes: false }, flags & !OF_NOBODY));
    }
    KINDS.get(usize::from(code)).filter(|_| code != CONTROL).map(|&(kind, _)| (kind, flags))
}

/// Writes the binary format.
#[derive(Debug)]
pub struct BinaryWriter<W: Write> {
    to: W,
    payload: Vec<u8>,
    checksum: u32,
    thread: u32,
    executions: u64,
    events: u64,
}

impl<W: Write> BinaryWriter<W> {
    /// Begins a trace.
    pub fn new(mut to: W) -> io::Result<Self> {
        let mut header = MAGIC.to_vec();
        header.push(VERSION);
        to.write_all(&header)?;
        let checksum = crc32c(0, &header);
        Ok(Self { to, payload: Vec::with_capacity(BLOCK + 64), checksum, thread: 0, executions: 0, events: 0 })
    }

    /// Writes the next record.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        match record {
            Record::Event(event) => self.event(event),
            Record::File { name, hash } => {
                self.control(0);
                self.payload.extend_from_slice(&hash.to_le_bytes());
                self.string(name)?;
            }
            Record::Thread { name } => {
                self.control(1);
                self.string(name)?;
            }
            Record::Cell { sort, name } => {
                self.control(2 + *sort as u8);
                self.string(name)?;
            }
            Record::Place(place) => self.place(place)?,
            Record::Begin => {
                self.control(6);
                self.thread = 0;
                self.executions += 1;
            }
            Record::End(ending) => self.end(ending)?,
            Record::Assumes => self.control(8),
        }
        if self.payload.len() >= BLOCK { self.flush_block() } else { Ok(()) }
    }

    fn control(&mut self, code: u8) {
        self.payload.push(CONTROL | code << 4);
    }

    fn place(&mut self, place: &TracePlace) -> io::Result<()> {
        self.control(5);
        for number in [place.file, place.line, place.column, place.length] {
            self.number(u64::from(number));
        }
        self.string(place.label.as_deref().unwrap_or_default())
    }

    fn end(&mut self, ending: &Ending) -> io::Result<()> {
        self.control(7);
        let code = match ending {
            Ending::Complete => 0,
            Ending::Blocked => 1,
            Ending::Deadlock => 2,
            Ending::Unfinished => 3,
            Ending::Error(_) => 4,
        };
        self.payload.push(code);
        if let Ending::Error(message) = ending { self.string(message) } else { Ok(()) }
    }

    #[inline]
    fn event(&mut self, event: &TraceEvent) {
        let Happening { kind, cell, read, written } = event.happening;
        let flag = |bit: u8, set: bool| if set { bit } else { 0 };
        let first = bits_of(kind)
            | flag(OTHER_THREAD, event.thread != self.thread)
            | flag(HAS_PLACE, event.place.is_some())
            | flag(HAS_READ, read.is_some())
            | flag(HAS_WRITTEN, written.is_some());
        self.payload.push(first);
        if event.thread != self.thread {
            self.number(u64::from(event.thread));
            self.thread = event.thread;
        }
        if sort_of(kind).is_some() {
            self.number(u64::from(cell));
        }
        if let Some(place) = event.place {
            self.number(u64::from(place));
        }
        for value in [read, written].into_iter().flatten() {
            self.number(zigzag(value));
        }
        self.events += 1;
    }

    #[inline]
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.payload.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.payload.push(number as u8);
    }

    fn string(&mut self, text: &str) -> io::Result<()> {
        if text.len() > LONGEST_STRING {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name is too long for a recorded trace"));
        }
        self.number(text.len() as u64);
        self.payload.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn flush_block(&mut self) -> io::Result<()> {
        if self.payload.is_empty() {
            return Ok(());
        }
        let length = (self.payload.len() as u32).to_le_bytes();
        self.checksum = crc32c(crc32c(self.checksum, &length), &self.payload);
        self.to.write_all(&length)?;
        self.to.write_all(&self.checksum.to_le_bytes())?;
        self.to.write_all(&self.payload)?;
        self.payload.clear();
        Ok(())
    }

    /// Ends the trace.
    pub fn close(mut self) -> io::Result<W> {
        self.flush_block()?;
        let mut closing = [0; 20];
        closing[4..12].copy_from_slice(&self.executions.to_le_bytes());
        closing[12..].copy_from_slice(&self.events.to_le_bytes());
        let checksum = crc32c(self.checksum, &closing);
        self.to.write_all(&closing[..4])?;
        self.to.write_all(&checksum.to_le_bytes())?;
        self.to.write_all(&closing[4..])?;
        self.to.flush()?;
        Ok(self.to)
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Reads the binary format.
#[derive(Debug)]
pub struct BinaryReader<R: Read> {
    from: R,
    rules: Rules,
    /// The payload of the present block.
    block: Vec<u8>,
    /// What has been read of it.
    at: usize,
    /// Where it begins in the stream.
    block_offset: u64,
    /// Bytes taken from the stream.
    offset: u64,
    checksum: u32,
    thread: u32,
    begun: bool,
    closed: bool,
}

fn damaged(offset: u64, message: impl Into<String>) -> TraceError {
    TraceError::Damaged { at: At::Byte(offset), message: message.into() }
}

impl<R: Read> BinaryReader<R> {
    /// A stream from its first byte.
    pub fn new(from: R) -> Self {
        Self {
            from,
            rules: Rules::default(),
            block: Vec::new(),
            at: 0,
            block_offset: 0,
            offset: 0,
            checksum: 0,
            thread: 0,
            begun: false,
            closed: false,
        }
    }

    /// The offset of the next record.
    pub fn offset(&self) -> u64 {
        self.block_offset + self.at as u64
    }

    /// The next record; `None` at the end of a trace that is whole.
    #[inline]
    pub fn read(&mut self) -> Result<Option<Record>, TraceError> {
        while self.at == self.block.len() {
            if self.closed {
                return Ok(None);
            }
            self.next_block()?;
        }
        let start = self.offset();
        let first = self.byte()?;
        if first & CONTROL == CONTROL {
            return self.declaration(first >> 4, start).map(Some);
        }
        self.event(first, start).map(|event| Some(Record::Event(event)))
    }

    fn fill(&mut self, buffer: &mut [u8], what: &str) -> Result<(), TraceError> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.from.read(&mut buffer[filled..]) {
                Ok(0) => {
                    let end = self.offset + filled as u64;
                    return Err(damaged(end, format!("the trace is truncated: it ends inside {what}")));
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.offset += buffer.len() as u64;
        Ok(())
    }

    fn header(&mut self) -> Result<(), TraceError> {
        let mut header = [0; MAGIC.len() + 1];
        self.fill(&mut header, "its header")?;
        if let Some(wrong) = (0..MAGIC.len()).find(|&byte| header[byte] != MAGIC[byte]) {
            return Err(damaged(wrong as u64, "this is not the beginning of a recorded trace"));
        }
        let version = header[MAGIC.len()];
        if version != VERSION {
            let message = format!("version {version} of the format is not known, only version {VERSION}");
            return Err(damaged(MAGIC.len() as u64, message));
        }
        self.checksum = crc32c(0, &header);
        self.begun = true;
        Ok(())
    }

    fn next_block(&mut self) -> Result<(), TraceError> {
        if !self.begun {
            self.header()?;
        }
        let start = self.offset;
        let mut head = [0; 8];
        self.fill(&mut head, "the head of a block; the closing block is missing")?;
        let (length, checksum) = head.split_at(4);
        let length_of = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let expected = u32::from_le_bytes([checksum[0], checksum[1], checksum[2], checksum[3]]);
        if length_of > LONGEST_BLOCK {
            return Err(damaged(start, format!("a block of {length_of} bytes is longer than any can be")));
        }
        let size = if length_of == 0 { 16 } else { length_of };
        let mut block = std::mem::take(&mut self.block);
        block.clear();
        block.resize(size, 0);
        self.at = 0;
        self.block_offset = self.offset;
        let filled = self.fill(&mut block, "a block");
        self.checksum = crc32c(crc32c(self.checksum, length), &block);
        filled?;
        if self.checksum != expected {
            return Err(damaged(start, "the checksum of the block that begins here is wrong"));
        }
        if length_of == 0 {
            return self.closing_block(&block, start);
        }
        self.block = block;
        Ok(())
    }

    fn closing_block(&mut self, block: &[u8], start: u64) -> Result<(), TraceError> {
        let number = |at: usize| block[at..at + 8].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        self.rules.close(number(0), number(8)).map_err(|message| damaged(start, message))?;
        let end = self.offset;
        loop {
            match self.from.read(&mut [0]) {
                Ok(0) => break,
                Ok(_) => return Err(damaged(end, "there is something after the end of the trace")),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.closed = true;
        self.block_offset = end;
        Ok(())
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, TraceError> {
        let Some(&byte) = self.block.get(self.at) else {
            return Err(damaged(self.offset(), "a record goes past the end of its block"));
        };
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn number(&mut self) -> Result<u64, TraceError> {
        let start = self.offset();
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(damaged(start, "a number does not fit 64 bits"));
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn number32(&mut self) -> Result<u32, TraceError> {
        let start = self.offset();
        let number = self.number()?;
        u32::try_from(number).map_err(|_| damaged(start, format!("{number} is too large here")))
    }

    fn string(&mut self) -> Result<String, TraceError> {
        let start = self.offset();
        let length = self.number()? as usize;
        if length > LONGEST_STRING {
            return Err(damaged(start, "a string is longer than any can be"));
        }
        let Some(bytes) = self.block.get(self.at..self.at + length) else {
            return Err(damaged(start, "a string goes past the end of its block"));
        };
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| damaged(start, "a string is not UTF-8 text"))?;
        self.at += length;
        Ok(text)
    }

    #[inline]
    fn event(&mut self, first: u8, start: u64) -> Result<TraceEvent, TraceError> {
        let Some((kind, flags)) = kind_of(first) else {
            return Err(damaged(start, format!("there is no record of the kind {first:#04x}")));
        };
        let has = |bit: u8| flags & bit != 0;
        let at = |message: String| damaged(start, message);
        if has(OTHER_THREAD) {
            let thread = self.number()?;
            self.rules.thread(thread).map_err(at)?;
            self.thread = thread as u32;
        } else {
            self.rules.thread(u64::from(self.thread)).map_err(at)?;
        }
        let mut cell = NONE;
        if sort_of(kind).is_some() {
            let number = self.number()?;
            self.rules.cell(number, kind).map_err(at)?;
            cell = number as u32;
        }
        let mut place = None;
        if has(HAS_PLACE) {
            let number = self.number()?;
            self.rules.place(number).map_err(at)?;
            place = Some(number as u32);
        }
        let (may_read, may_write) = values_of(kind);
        if (has(HAS_READ) && !may_read) || (has(HAS_WRITTEN) && !may_write) {
            return Err(damaged(start, "an event has a value that events of its kind do not have"));
        }
        let read = if has(HAS_READ) { Some(unzigzag(self.number()?)) } else { None };
        let written = if has(HAS_WRITTEN) { Some(unzigzag(self.number()?)) } else { None };
        self.rules.event().map_err(at)?;
        Ok(TraceEvent { thread: self.thread, happening: Happening { kind, cell, read, written }, place })
    }

    fn declaration(&mut self, code: u8, start: u64) -> Result<Record, TraceError> {
        let at = |message: String| damaged(start, message);
        Ok(match code {
            0 => {
                let mut hash = 0;
                for shift in 0..8 {
                    hash |= u64::from(self.byte()?) << (8 * shift);
                }
                self.rules.declare_file();
                Record::File { name: self.string()?, hash }
            }
            1 => {
                self.rules.declare_thread().map_err(at)?;
                Record::Thread { name: self.string()? }
            }
            2..=4 => {
                let sort = [CellSort::Location, CellSort::Mutex, CellSort::Condvar][usize::from(code) - 2];
                self.rules.declare_cell(sort).map_err(at)?;
                Record::Cell { sort, name: self.string()? }
            }
            5 => {
                let file = self.number32()?;
                self.rules.file(u64::from(file)).map_err(at)?;
                self.rules.declare_place().map_err(at)?;
                let (line, column, length) = (self.number32()?, self.number32()?, self.number32()?);
                let label = Some(self.string()?).filter(|label| !label.is_empty());
                Record::Place(TracePlace { file, line, column, length, label })
            }
            6 => {
                self.rules.begin().map_err(at)?;
                self.thread = 0;
                Record::Begin
            }
            7 => {
                self.rules.end().map_err(at)?;
                Record::End(self.ending(start)?)
            }
            8 => Record::Assumes,
            _ => return Err(damaged(start, format!("there is no record of the kind {:#04x}", CONTROL | code << 4))),
        })
    }

    fn ending(&mut self, start: u64) -> Result<Ending, TraceError> {
        Ok(match self.byte()? {
            0 => Ending::Complete,
            1 => Ending::Blocked,
            2 => Ending::Deadlock,
            3 => Ending::Unfinished,
            4 => Ending::Error(self.string()?),
            other => return Err(damaged(start, format!("an execution cannot end with {other}"))),
        })
    }
}
