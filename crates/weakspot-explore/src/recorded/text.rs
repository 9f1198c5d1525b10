//! The text format: one record a line; see `docs/traces.md` for its grammar.
//!
//! The reader takes what a person may write (blank lines, comments, spaces); the writer writes one form. A line that is
//! wrong is shown with the column. The reader holds one line in memory.
//!
//! A digit that has become another one leaves a line that is as good as before. So the writer ends a trace with a checksum
//! of its text. A reader that finds one believes nothing else; a person, who writes none, is believed.

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};

use super::checksum::crc32c;
use super::rules::{Breach, KINDS, Rules, code_of, sort_of, values_of};
use super::{At, CellSort, Ending, LONGEST_STRING, Record, TraceError, TraceEvent, TracePlace};
use crate::graph::NONE;
use crate::happening::Happening;

/// The first line.
pub const HEADER: &str = "weakspot-trace 1";

/// A longer line is no trace: a reader's memory does not depend on what it reads.
const LONGEST_LINE: usize = 8 * LONGEST_STRING;

/// Writes the text format.
#[derive(Debug)]
pub struct TextWriter<W: Write> {
    to: W,
    line: String,
    /// Numbers given out: files, threads, cells, places.
    numbers: [u32; 4],
    executions: u64,
    events: u64,
    /// Of all lines so far.
    checksum: u32,
}

impl<W: Write> TextWriter<W> {
    /// Begins a trace.
    pub fn new(mut to: W) -> io::Result<Self> {
        writeln!(to, "{HEADER}")?;
        let checksum = continued(0, HEADER.as_bytes());
        Ok(Self { to, line: String::new(), numbers: [0; 4], executions: 0, events: 0, checksum })
    }

    /// Writes the next record.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        self.line.clear();
        match record {
            Record::Event(event) => self.event(event),
            Record::File { name, hash } => {
                let number = self.number(0);
                let _ = write!(self.line, "file {number} {hash:016x} ");
                self.quote(name)?;
            }
            Record::Thread { name } => {
                let number = self.number(1);
                let _ = write!(self.line, "thread {number} ");
                self.quote(name)?;
            }
            Record::Cell { sort, name } => {
                let number = self.number(2);
                let _ = write!(self.line, "{} {number} ", sort.name());
                self.quote(name)?;
            }
            Record::Place(place) => self.place(place)?,
            Record::Assumes => self.line.push_str("assumes"),
            Record::Begin => {
                self.line.push_str("begin");
                self.executions += 1;
            }
            Record::End(ending) => self.end(ending)?,
        }
        self.line.push('\n');
        self.checksum = crc32c(self.checksum, self.line.as_bytes());
        self.to.write_all(self.line.as_bytes())
    }

    fn number(&mut self, table: usize) -> u32 {
        let number = self.numbers[table];
        self.numbers[table] += 1;
        number
    }

    fn place(&mut self, place: &TracePlace) -> io::Result<()> {
        let number = self.number(3);
        let TracePlace { file, line, column, length, label } = place;
        let _ = write!(self.line, "place {number} {file}:{line}:{column}");
        if *length > 0 {
            let _ = write!(self.line, "+{length}");
        }
        if let Some(label) = label {
            self.line.push(' ');
            self.quote(label)?;
        }
        Ok(())
    }

    fn end(&mut self, ending: &Ending) -> io::Result<()> {
        self.line.push_str("end ");
        self.line.push_str(match ending {
            Ending::Complete => "complete",
            Ending::Blocked => "blocked",
            Ending::Deadlock => "deadlock",
            Ending::Unfinished => "unfinished",
            Ending::Error(_) => "error ",
        });
        if let Ending::Error(message) = ending { self.quote(message) } else { Ok(()) }
    }

    fn event(&mut self, event: &TraceEvent) {
        let Happening { kind, cell, read, written } = event.happening;
        let _ = write!(self.line, "{} {}", event.thread, KINDS[usize::from(code_of(kind))].1);
        if sort_of(kind).is_some() {
            let _ = write!(self.line, " {cell}");
        }
        if let Some(value) = read {
            let _ = write!(self.line, " -> {value}");
        }
        if let Some(value) = written {
            let _ = write!(self.line, " <- {value}");
        }
        if let Some(place) = event.place {
            let _ = write!(self.line, " @{place}");
        }
        self.events += 1;
    }

    fn quote(&mut self, text: &str) -> io::Result<()> {
        if text.len() > LONGEST_STRING {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a name is too long for a recorded trace"));
        }
        self.line.push('"');
        for letter in text.chars() {
            match letter {
                '"' | '\\' => {
                    self.line.push('\\');
                    self.line.push(letter);
                }
                '\n' => self.line.push_str("\\n"),
                '\r' => self.line.push_str("\\r"),
                '\t' => self.line.push_str("\\t"),
                letter if letter.is_control() => {
                    let _ = write!(self.line, "\\u{{{:x}}}", u32::from(letter));
                }
                letter => self.line.push(letter),
            }
        }
        self.line.push('"');
        Ok(())
    }

    /// Ends the trace.
    pub fn close(mut self) -> io::Result<W> {
        let counts = format!("close {} {} ", self.executions, self.events);
        writeln!(self.to, "{counts}{:08x}", crc32c(self.checksum, counts.as_bytes()))?;
        self.to.flush()?;
        Ok(self.to)
    }
}

/// The checksum of some lines and one more.
fn continued(checksum: u32, line: &[u8]) -> u32 {
    crc32c(crc32c(checksum, line), b"\n")
}

/// Reads the text format.
#[derive(Debug)]
pub struct TextReader<R: BufRead> {
    from: R,
    rules: Rules,
    line: Vec<u8>,
    number: u64,
    begun: bool,
    closed: bool,
    /// The line read last has no end.
    cut: bool,
    /// Of the lines before that.
    checksum: u32,
}

/// A mistake in a line: the bytes that are meant, and what is wrong.
type Mistake = (std::ops::Range<usize>, String);

impl<R: BufRead> TextReader<R> {
    /// A stream from its first byte.
    pub fn new(from: R) -> Self {
        let (line, rules) = (Vec::new(), Rules::default());
        Self { from, rules, line, number: 0, begun: false, closed: false, cut: false, checksum: 0 }
    }

    /// The number of the line read last.
    pub fn line_number(&self) -> u64 {
        self.number
    }

    /// The next record; `None` at the end of a trace that is whole.
    pub fn read(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            let there_is_one = self.read_line()?;
            if !there_is_one {
                return self.ended();
            }
            let bytes = std::mem::take(&mut self.line);
            let parsed = match std::str::from_utf8(&bytes) {
                Ok(text) => self.parse(text).map_err(|mistake| (mistake, text.to_owned())),
                Err(error) => {
                    let at = error.valid_up_to();
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    Err(((at..at + 1, "this is not UTF-8 text".to_owned()), text))
                }
            };
            self.checksum = continued(self.checksum, &bytes);
            self.line = bytes;
            match parsed {
                Ok(None) => {}
                Ok(record) => return Ok(record),
                Err((_, text)) if self.begun && !self.closed && self.cut => {
                    let message = "the trace is truncated: it ends inside this line";
                    return Err(self.mistake(&text, text.len()..text.len(), message.to_owned()));
                }
                Err(((range, message), text)) => return Err(self.mistake(&text, range, message)),
            }
        }
    }

    fn ended(&mut self) -> Result<Option<Record>, TraceError> {
        if self.closed {
            return Ok(None);
        }
        let message = if self.number == 0 {
            "the trace is empty"
        } else {
            "the trace is truncated: its last line should be `close`, with the numbers of executions and events"
        };
        self.number += 1;
        Err(self.mistake("", 0..0, message.to_owned()))
    }

    fn mistake(&self, text: &str, range: std::ops::Range<usize>, message: String) -> TraceError {
        let characters = |bytes: &str| bytes.chars().count() as u64;
        let start = (0..=range.start.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        let meant = text.get(start..range.end.max(start)).unwrap_or_default();
        let at = At::Line {
            line: self.number,
            column: characters(&text[..start]) + 1,
            length: characters(meant).max(1),
            text: text.to_owned(),
        };
        TraceError::Damaged { at, message }
    }

    /// Reads a line without its end; false at the end of the stream. What follows the longest line is not read.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        loop {
            let available = match self.from.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            if available.is_empty() {
                self.cut = !self.line.is_empty();
                self.number += u64::from(self.cut);
                return Ok(!self.line.is_empty());
            }
            let end = available.iter().position(|&byte| byte == b'\n');
            let taken = end.unwrap_or(available.len());
            self.line.extend_from_slice(&available[..taken]);
            self.from.consume(taken + usize::from(end.is_some()));
            if self.line.len() > LONGEST_LINE {
                self.number += 1;
                let shown = String::from_utf8_lossy(&self.line[..80]).into_owned();
                return Err(self.mistake(&shown, 0..1, "this line is longer than any can be".to_owned()));
            }
            if end.is_some() {
                self.number += 1;
                if self.line.last() == Some(&b'\r') {
                    self.line.pop();
                }
                return Ok(true);
            }
        }
    }

    /// The record of a line; nothing for a blank line, a comment, and the first and the last line.
    fn parse(&mut self, text: &str) -> Result<Option<Record>, Mistake> {
        if !self.begun {
            if text.trim_end() != HEADER {
                let shown = text.len().min(40);
                let known = text.strip_prefix("weakspot-trace ").map(str::trim_end);
                return Err(match known {
                    Some(version) => {
                        (15..text.len(), format!("version `{version}` of the format is not known, only version 1"))
                    }
                    None => (0..shown, format!("a recorded trace begins with the line `{HEADER}`")),
                });
            }
            self.begun = true;
            return Ok(None);
        }
        let mut words = Words { text, at: 0 };
        let Some((word, range)) = words.next() else { return Ok(None) };
        if self.closed {
            return Err((range, "there is something after the end of the trace".to_owned()));
        }
        let record = if word.as_bytes()[0].is_ascii_digit() {
            self.event(word, range, &mut words).map(|event| Some(Record::Event(event)))?
        } else {
            self.other(word, range, &mut words)?
        };
        match words.next() {
            Some((_, range)) => Err((range, "there is more on this line than belongs to it".to_owned())),
            None => Ok(record),
        }
    }

    fn other(
        &mut self,
        word: &str,
        range: std::ops::Range<usize>,
        words: &mut Words<'_>,
    ) -> Result<Option<Record>, Mistake> {
        let sort =
            [CellSort::Location, CellSort::Mutex, CellSort::Condvar].into_iter().find(|sort| sort.name() == word);
        Ok(Some(match word {
            "file" => {
                self.number_of("file", words)?;
                let (digits, range) = words.expect("the hash of the file, 16 hexadecimal digits")?;
                let hash = parse_hexadecimal(digits, 16)
                    .ok_or_else(|| (range, "this is not a hash of 16 hexadecimal digits".to_owned()))?;
                self.rules.declare_file();
                Record::File { name: words.string("the name of the file")?, hash }
            }
            "thread" => {
                self.number_of("thread", words)?;
                self.rules.declare_thread().map_err(|message| (range, message))?;
                Record::Thread { name: words.string("the name of the thread")? }
            }
            "place" => Record::Place(self.place(range, words)?),
            "assumes" => Record::Assumes,
            "begin" => {
                self.rules.begin().map_err(|message| (range, message))?;
                Record::Begin
            }
            "end" => Record::End(self.ending(range, words)?),
            "close" => {
                let (executions, _) = words.number("the number of executions")?;
                let (events, _) = words.number("the number of events")?;
                self.rules.close(executions, events).map_err(|message| (range, message))?;
                self.compare_checksum(words)?;
                self.closed = true;
                return Ok(None);
            }
            _ => {
                let Some(sort) = sort else {
                    let message = "a line begins with the number of a thread, or with file, thread, location, mutex, \
                                   condvar, place, begin, end or close";
                    return Err((range, message.to_owned()));
                };
                self.number_of(word, words)?;
                self.rules.declare_cell(sort).map_err(|message| (range, message))?;
                Record::Cell { sort, name: words.string("its name")? }
            }
        }))
    }

    /// The checksum of everything before it, if there is one.
    fn compare_checksum(&self, words: &mut Words<'_>) -> Result<(), Mistake> {
        let Some((digits, range)) = words.next() else { return Ok(()) };
        let Some(given) = parse_hexadecimal(digits, 8) else {
            return Err((range, "this is not a checksum of 8 hexadecimal digits".to_owned()));
        };
        if given == u64::from(crc32c(self.checksum, &words.text.as_bytes()[..range.start])) {
            return Ok(());
        }
        let message = "the checksum is wrong: something before it is not as it was recorded (if it was changed on \
                       purpose, leave the checksum out)";
        Err((range, message.to_owned()))
    }

    /// The number of a declaration, which must be the next one.
    fn number_of(&mut self, what: &str, words: &mut Words<'_>) -> Result<(), Mistake> {
        let next = self.rules.next_number(what);
        let (number, range) = words.number("the number that is declared")?;
        if number == u64::from(next) {
            return Ok(());
        }
        let shared = if matches!(what, "file" | "thread" | "place") {
            format!("the next {what} has the number {next}")
        } else {
            format!("the next location, mutex or condvar has the number {next}")
        };
        Err((range, shared))
    }

    fn place(&mut self, start: std::ops::Range<usize>, words: &mut Words<'_>) -> Result<TracePlace, Mistake> {
        self.number_of("place", words)?;
        let (word, range) = words.expect("a place, FILE:LINE:COLUMN or FILE:LINE:COLUMN+LENGTH")?;
        let (position, length) =
            word.split_once('+').map_or((word, None), |(position, length)| (position, Some(length)));
        let mut parts = position.split(':').map(|part| part.parse::<u32>().ok());
        let length = length.map_or(Some(0), |length| length.parse().ok());
        let parsed = (parts.next().flatten(), parts.next().flatten(), parts.next().flatten(), parts.next(), length);
        let (Some(file), Some(line), Some(column), None, Some(length)) = parsed else {
            return Err((range, "this is not a place: FILE:LINE:COLUMN or FILE:LINE:COLUMN+LENGTH".to_owned()));
        };
        self.rules.file(u64::from(file)).map_err(|message| (range, message))?;
        self.rules.declare_place().map_err(|message| (start, message))?;
        let label = if words.is_at_end() { None } else { Some(words.string("a label")?) };
        Ok(TracePlace { file, line, column, length, label: label.filter(|label| !label.is_empty()) })
    }

    fn ending(&mut self, start: std::ops::Range<usize>, words: &mut Words<'_>) -> Result<Ending, Mistake> {
        let (word, range) = words.expect("how the execution ended")?;
        let ending = match word {
            "complete" => Ending::Complete,
            "blocked" => Ending::Blocked,
            "deadlock" => Ending::Deadlock,
            "unfinished" => Ending::Unfinished,
            "error" => Ending::Error(words.string("a message")?),
            _ => return Err((range, "an execution ends complete, blocked, deadlock, unfinished or error".to_owned())),
        };
        self.rules.end().map_err(|message| (start, message))?;
        Ok(ending)
    }

    fn event(
        &mut self,
        word: &str,
        range: std::ops::Range<usize>,
        words: &mut Words<'_>,
    ) -> Result<TraceEvent, Mistake> {
        let at = |range: &std::ops::Range<usize>, breach: Breach| breach.map_err(|message| (range.clone(), message));
        let thread =
            parse_number(word).ok_or_else(|| (range.clone(), "this is not the number of a thread".to_owned()))?;
        at(&range, self.rules.thread(thread))?;
        let (name, kind_range) = words.expect("what the thread did")?;
        let Some(&(kind, _)) = KINDS.iter().find(|(_, known)| *known == name) else {
            let known = KINDS.map(|(_, name)| name).join(", ");
            return Err((kind_range, format!("there is no such event; there are {known}")));
        };
        let mut cell = NONE;
        if let Some(sort) = sort_of(kind) {
            let (number, range) = words.number(&format!("the number of a {}", sort.name()))?;
            at(&range, self.rules.cell(number, kind))?;
            cell = number as u32;
        }
        let (may_read, may_write) = values_of(kind);
        let (mut read, mut written, mut place) = (None, None, None);
        while let Some((word, range)) = words.next() {
            match word {
                "->" if may_read && read.is_none() => read = Some(words.value("the value that was read")?),
                "<-" if may_write && written.is_none() => written = Some(words.value("the value that was written")?),
                _ => match word.strip_prefix('@').and_then(parse_number) {
                    Some(number) if place.is_none() => {
                        at(&range, self.rules.place(number))?;
                        place = Some(number as u32);
                    }
                    _ => {
                        let message = format!(
                            "this does not belong to a {name}: -> and a value that it read, <- and one that it wrote, @ and a place"
                        );
                        return Err((range, message));
                    }
                },
            }
        }
        at(&range, self.rules.event())?;
        Ok(TraceEvent { thread: thread as u32, happening: Happening { kind, cell, read, written }, place })
    }
}

/// Digits only: no sign.
fn parse_number(word: &str) -> Option<u64> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

/// So many hexadecimal digits: no sign.
fn parse_hexadecimal(word: &str, digits: usize) -> Option<u64> {
    let is_one = word.len() == digits && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| u64::from_str_radix(word, 16).ok()).flatten()
}

/// The words of a line, up to a comment.
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Words<'t> {
    fn skip_spaces(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_spaces();
        let rest = &self.text[self.at..];
        rest.is_empty() || rest.starts_with('#')
    }

    fn next(&mut self) -> Option<(&'t str, std::ops::Range<usize>)> {
        if self.is_at_end() {
            return None;
        }
        let start = self.at;
        let rest = &self.text.as_bytes()[start..];
        self.at += rest.iter().take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
        Some((&self.text[start..self.at], start..self.at))
    }

    fn expect(&mut self, what: &str) -> Result<(&'t str, std::ops::Range<usize>), Mistake> {
        let end = self.text.len();
        self.next().ok_or_else(|| (end..end, format!("the line ends where {what} should be")))
    }

    fn number(&mut self, what: &str) -> Result<(u64, std::ops::Range<usize>), Mistake> {
        let (word, range) = self.expect(what)?;
        match parse_number(word) {
            Some(number) => Ok((number, range)),
            None => Err((range, format!("this should be {what}"))),
        }
    }

    fn value(&mut self, what: &str) -> Result<i64, Mistake> {
        let (word, range) = self.expect(what)?;
        word.parse().map_err(|_| (range, format!("this should be {what}, a 64-bit number")))
    }

    fn string(&mut self, what: &str) -> Result<String, Mistake> {
        if self.is_at_end() || !self.text[self.at..].starts_with('"') {
            let start = self.at;
            return Err((start..start + 1, format!("{what} should be here, in double quotes")));
        }
        let start = self.at;
        let mut text = String::new();
        let mut letters = self.text[start + 1..].char_indices();
        while let Some((offset, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.at = start + 1 + offset + 1;
                    if text.len() > LONGEST_STRING {
                        return Err((start..self.at, "this string is longer than any can be".to_owned()));
                    }
                    return Ok(text);
                }
                '\\' => {
                    let here = start + 1 + offset;
                    let escaped = escape(&mut letters);
                    text.push(escaped.ok_or_else(|| {
                        (
                            here..here + 2,
                            "there is no such escape; there are \\\\, \\\", \\n, \\r, \\t and \\u{…}".to_owned(),
                        )
                    })?);
                }
                letter => text.push(letter),
            }
        }
        Err((start..self.text.len(), "this string has no end".to_owned()))
    }
}

fn escape(letters: &mut std::str::CharIndices<'_>) -> Option<char> {
    Some(match letters.next()?.1 {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        letter @ ('"' | '\\') => letter,
        'u' => {
            if letters.next()?.1 != '{' {
                return None;
            }
            let digits: String =
                letters.by_ref().map(|(_, letter)| letter).take_while(|&letter| letter != '}').collect();
            char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
        }
        _ => return None,
    })
}
