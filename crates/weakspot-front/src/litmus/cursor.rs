//! Reading a litmus file left to right: white space, comments, words and numbers.
//!
//! There is no token list: the parts of a litmus file have different lexical rules (a name in the header is not a name
//! in the code), and one pass over the bytes is what keeps thousands of tests a second cheap.
//!
//! Every position handed out lies on a character boundary, because the cursor only ever stops at ASCII bytes, at the
//! end of the text, or after a whole character.

use weakspot_model::source::Span;

/// A place in the text that moves forward.
pub(super) struct Cursor<'a> {
    /// The whole text.
    pub(super) text: &'a str,
    /// Byte offset of what comes next.
    pub(super) pos: usize,
    /// Where a comment starts that never ends.
    pub(super) unclosed_comment: Option<usize>,
}

/// Why a number could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberError {
    /// There is no number here.
    Missing,
    /// The digits go on with something that is no digit.
    Malformed,
    /// It does not fit into 64 signed bits.
    TooLarge,
}

impl<'a> Cursor<'a> {
    /// Starts at a byte offset, which must be a character boundary.
    pub(super) fn new(text: &'a str, pos: usize) -> Self {
        Self { text, pos, unclosed_comment: None }
    }

    /// The next byte.
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    /// The byte after the next one.
    pub(super) fn peek_second(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos + 1).copied()
    }

    /// Is nothing left?
    pub(super) fn at_end(&self) -> bool {
        self.pos >= self.text.len()
    }

    /// Does the rest start like this?
    pub(super) fn starts_with(&self, prefix: &str) -> bool {
        self.text.as_bytes()[self.pos..].starts_with(prefix.as_bytes())
    }

    /// Takes `prefix` if the rest starts with it.
    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        let found = self.starts_with(prefix);
        if found {
            self.pos += prefix.len();
        }
        found
    }

    /// Skips white space and comments.
    pub(super) fn skip_trivia(&mut self) {
        loop {
            match self.peek() {
                Some(byte) if byte.is_ascii_whitespace() => self.pos += 1,
                Some(b'(') if self.peek_second() == Some(b'*') => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// Skips spaces and tabs, but no line end and no comment.
    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r')) {
            self.pos += 1;
        }
    }

    /// Skips one comment; comments nest.
    pub(super) fn skip_comment(&mut self) {
        let bytes = self.text.as_bytes();
        let start = self.pos;
        let mut depth = 0_usize;
        while self.pos + 1 < bytes.len() {
            match (bytes[self.pos], bytes[self.pos + 1]) {
                (b'(', b'*') => {
                    depth += 1;
                    self.pos += 2;
                }
                (b'*', b')') => {
                    depth -= 1;
                    self.pos += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.pos += 1,
            }
        }
        self.pos = bytes.len();
        self.unclosed_comment.get_or_insert(start);
    }

    /// Goes to the end of the line (before its line feed).
    pub(super) fn skip_line(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.pos += 1;
        }
    }

    /// Takes a word: letters, digits and `_`, not starting with a digit. Empty if there is none.
    pub(super) fn word(&mut self) -> &'a str {
        let start = self.pos;
        if self.peek().is_some_and(is_word_start) {
            while self.peek().is_some_and(is_word_byte) {
                self.pos += 1;
            }
        }
        &self.text[start..self.pos]
    }

    /// The word that comes next, without taking it.
    pub(super) fn peek_word(&self) -> &'a str {
        Cursor::new(self.text, self.pos).word()
    }

    /// Takes an integer: optional sign, decimal or `0x` hexadecimal. Moves past the digits even if they are wrong.
    pub(super) fn number(&mut self) -> Result<i64, NumberError> {
        let negative = self.peek() == Some(b'-');
        if negative || self.peek() == Some(b'+') {
            self.pos += 1;
            self.skip_blanks();
        }
        let start = self.pos;
        while self.peek().is_some_and(is_word_byte) {
            self.pos += 1;
        }
        parse_digits(&self.text[start..self.pos], negative)
    }

    /// From `start` to here.
    pub(super) fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.pos)
    }

    /// The next character, for messages about what was found; empty at the end of the file.
    pub(super) fn next_char_span(&self) -> Span {
        let length = self.text[self.pos..].chars().next().map_or(0, char::len_utf8);
        Span::new(self.pos, self.pos + length)
    }

    /// What comes next, as a message names it.
    pub(super) fn found(&self) -> String {
        let word = self.peek_word();
        if !word.is_empty() {
            return format!("`{}`", super::context::clip(word));
        }
        match self.text[self.pos..].chars().next() {
            None => "the end of the file".to_owned(),
            Some(c) if c.is_control() => format!("the character U+{:04X}", c as u32),
            Some(c) => format!("`{c}`"),
        }
    }

    /// From `start` over everything that looks like one word to a reader, letters outside ASCII included.
    pub(super) fn whole_word(&self, start: usize) -> Span {
        let rest = &self.text[start..];
        let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        Span::new(start, start + length)
    }

    /// The span of the next word, or of the next character.
    pub(super) fn found_span(&self) -> Span {
        let word = self.peek_word();
        if word.is_empty() { self.next_char_span() } else { Span::new(self.pos, self.pos + word.len()) }
    }
}

/// Can a word start with this byte?
pub(super) fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Can a word go on with this byte?
pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The value of digits without their sign.
fn parse_digits(digits: &str, negative: bool) -> Result<i64, NumberError> {
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(NumberError::Missing);
    }
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hexadecimal) => (16, hexadecimal),
        None => (10, digits),
    };
    if digits.is_empty() {
        return Err(NumberError::Malformed);
    }
    let mut value = 0_i64;
    let mut too_large = false;
    for c in digits.chars() {
        let digit = i64::from(c.to_digit(radix).ok_or(NumberError::Malformed)?);
        let digit = if negative { -digit } else { digit };
        match value.checked_mul(i64::from(radix)).and_then(|v| v.checked_add(digit)) {
            Some(next) => value = next,
            None => too_large = true,
        }
    }
    if too_large { Err(NumberError::TooLarge) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_nest_and_count_as_white_space() {
        let mut cursor = Cursor::new(" (* a (* b *) c *)\t x", 0);
        cursor.skip_trivia();
        assert_eq!(cursor.word(), "x");
        assert_eq!(cursor.unclosed_comment, None);
    }

    #[test]
    fn unclosed_comment_is_remembered_where_it_starts() {
        let mut cursor = Cursor::new("x (* (* *) y", 1);
        cursor.skip_trivia();
        assert!(cursor.at_end());
        assert_eq!(cursor.unclosed_comment, Some(2));
    }

    #[test]
    fn numbers_have_signs_and_may_be_hexadecimal() {
        let read = |text| Cursor::new(text, 0).number();
        assert_eq!(read("17;"), Ok(17));
        assert_eq!(read("-0x10"), Ok(-16));
        assert_eq!(read("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(read("9223372036854775808"), Err(NumberError::TooLarge));
        assert_eq!(read("1f"), Err(NumberError::Malformed));
        assert_eq!(read("0x"), Err(NumberError::Malformed));
        assert_eq!(read("x"), Err(NumberError::Missing));
    }
}
