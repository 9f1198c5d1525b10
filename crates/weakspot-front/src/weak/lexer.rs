//! Text to tokens, one at a time: a file is never held as a list of tokens.
//!
//! Comments are skipped, except that `//!` lines are remembered for [`super::expect`] and that the formatter asks to
//! see them all. Characters that begin no token are reported, a run of them once, and skipped.

use weakspot_model::source::{Diagnostic, Span};

use super::names::{Name, Names};
use super::problems::Problems;

/// A name may be this long; longer ones only make messages unreadable.
const LONGEST_NAME: usize = 255;

macro_rules! symbols {
    ($($symbol:ident = $text:literal),* $(,)?) => {
        /// Punctuation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Symbol { $($symbol),* }

        impl Symbol {
            /// As written.
            pub(super) fn text(self) -> &'static str {
                match self { $(Self::$symbol => $text),* }
            }
        }
    };
}

symbols! {
    RangeInclusive = "..=", Equal = "==", NotEqual = "!=", LessEqual = "<=", GreaterEqual = ">=", AndAnd = "&&",
    OrOr = "||", ShiftLeft = "<<", ShiftRight = ">>", Range = "..", PlusPlus = "++", PlusAssign = "+=",
    MinusAssign = "-=", Arrow = "->", Semicolon = ";", Comma = ",", Colon = ":", Dot = ".",
    Assign = "=", Less = "<", Greater = ">", Not = "!", Plus = "+", Minus = "-", Star = "*", Slash = "/",
    Percent = "%", And = "&", Or = "|", Xor = "^", OpenParen = "(", CloseParen = ")", OpenBracket = "[",
    CloseBracket = "]", OpenBrace = "{", CloseBrace = "}",
}

impl Symbol {
    /// The longest symbol the text begins with.
    fn at_start_of(text: &[u8]) -> Option<Self> {
        let byte = |index: usize| text.get(index).copied().unwrap_or(0);
        Some(match (byte(0), byte(1), byte(2)) {
            (b'.', b'.', b'=') => Self::RangeInclusive,
            (b'.', b'.', _) => Self::Range,
            (b'=', b'=', _) => Self::Equal,
            (b'!', b'=', _) => Self::NotEqual,
            (b'<', b'=', _) => Self::LessEqual,
            (b'>', b'=', _) => Self::GreaterEqual,
            (b'&', b'&', _) => Self::AndAnd,
            (b'|', b'|', _) => Self::OrOr,
            (b'<', b'<', _) => Self::ShiftLeft,
            (b'>', b'>', _) => Self::ShiftRight,
            (b'+', b'+', _) => Self::PlusPlus,
            (b'+', b'=', _) => Self::PlusAssign,
            (b'-', b'=', _) => Self::MinusAssign,
            (b'-', b'>', _) => Self::Arrow,
            (b';', ..) => Self::Semicolon,
            (b',', ..) => Self::Comma,
            (b':', ..) => Self::Colon,
            (b'.', ..) => Self::Dot,
            (b'=', ..) => Self::Assign,
            (b'<', ..) => Self::Less,
            (b'>', ..) => Self::Greater,
            (b'!', ..) => Self::Not,
            (b'+', ..) => Self::Plus,
            (b'-', ..) => Self::Minus,
            (b'*', ..) => Self::Star,
            (b'/', ..) => Self::Slash,
            (b'%', ..) => Self::Percent,
            (b'&', ..) => Self::And,
            (b'|', ..) => Self::Or,
            (b'^', ..) => Self::Xor,
            (b'(', ..) => Self::OpenParen,
            (b')', ..) => Self::CloseParen,
            (b'[', ..) => Self::OpenBracket,
            (b']', ..) => Self::CloseBracket,
            (b'{', ..) => Self::OpenBrace,
            (b'}', ..) => Self::CloseBrace,
            _ => return None,
        })
    }
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name or a word of the language.
    Word(Name),
    /// An integer, at most 2^63 (which is only good after a minus).
    Integer(u64),
    /// A string; its span includes the quotes.
    Text,
    /// Punctuation.
    Symbol(Symbol),
    /// A comment; only when the lexer was asked to keep them.
    Comment,
    /// The end of the file.
    End,
}

/// A token and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    /// What.
    pub(super) kind: TokenKind,
    /// Where.
    pub(super) span: Span,
    /// Something wrong was reported right before it, so a complaint about this token would be one too many.
    pub(super) after_mistake: bool,
}

impl Token {
    /// Is it this symbol?
    pub(super) fn is(self, symbol: Symbol) -> bool {
        self.kind == TokenKind::Symbol(symbol)
    }

    /// Is it this word?
    pub(super) fn is_word(self, name: Name) -> bool {
        self.kind == TokenKind::Word(name)
    }
}

/// The lexer.
#[derive(Debug)]
pub(super) struct Lexer<'source> {
    text: &'source str,
    offset: usize,
    keep_comments: bool,
    /// See [`Token::after_mistake`].
    mistake: bool,
    /// The names met so far.
    pub(super) names: Names<'source>,
    /// What went wrong so far.
    pub(super) problems: Problems,
    /// The `//!` lines, slashes included.
    pub(super) directives: Vec<Span>,
}

impl<'source> Lexer<'source> {
    /// At the beginning of the text.
    pub(super) fn new(text: &'source str) -> Self {
        let offset = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self {
            text,
            offset,
            keep_comments: false,
            mistake: false,
            names: Names::new(),
            problems: Problems::default(),
            directives: Vec::new(),
        }
    }

    /// The same, giving comments as tokens.
    pub(super) fn with_comments(text: &'source str) -> Self {
        Self { keep_comments: true, ..Self::new(text) }
    }

    /// The next token.
    pub(super) fn next_token(&mut self) -> Token {
        let after_mistake = std::mem::take(&mut self.mistake);
        let token = self.scan();
        let skipped = self.mistake && token.kind != TokenKind::Text;
        self.mistake &= !skipped;
        Token { after_mistake: after_mistake || skipped, ..token }
    }

    fn scan(&mut self) -> Token {
        loop {
            let bytes = self.text.as_bytes();
            while bytes.get(self.offset).is_some_and(u8::is_ascii_whitespace) {
                self.offset += 1;
            }
            let start = self.offset;
            let Some(&first) = bytes.get(start) else { return self.token(TokenKind::End, start) };
            match first {
                b'/' if matches!(bytes.get(start + 1), Some(b'/' | b'*')) => {
                    self.comment(start);
                    if self.keep_comments {
                        return self.token(TokenKind::Comment, start);
                    }
                }
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => return self.word(start),
                0x80.. if self.text[start..].starts_with(char::is_alphabetic) => return self.word(start),
                b'0'..=b'9' => return self.integer(start),
                b'"' => return self.string(start),
                _ => match self.symbol() {
                    Some(symbol) => return self.token(TokenKind::Symbol(symbol), start),
                    None => {
                        if let Some(symbol) = self.skip_unknown(start) {
                            return self.token(TokenKind::Symbol(symbol), start);
                        }
                    }
                },
            }
        }
    }

    fn token(&self, kind: TokenKind, start: usize) -> Token {
        Token { kind, span: Span::new(start, self.offset), after_mistake: false }
    }

    /// Skips a comment; block comments nest.
    fn comment(&mut self, start: usize) {
        let bytes = self.text.as_bytes();
        if bytes[start + 1] == b'/' {
            let length = bytes[start..].iter().position(|&b| b == b'\n').unwrap_or(bytes.len() - start);
            self.offset = start + length;
            if bytes.get(start + 2) == Some(&b'!') {
                self.directives.push(Span::new(start, self.offset));
            }
            return;
        }
        let (mut depth, mut at) = (1_usize, start + 2);
        while depth > 0 {
            match bytes.get(at..at + 2) {
                Some(b"/*") => (depth, at) = (depth + 1, at + 2),
                Some(b"*/") => (depth, at) = (depth - 1, at + 2),
                Some(_) => at += 1,
                None => {
                    self.offset = bytes.len();
                    let opening = Span::new(start, start + 2);
                    self.problems.error(opening, || {
                        Diagnostic::error("unclosed-comment", "this comment is never closed", opening)
                            .help("close it with `*/`; comments nest, so every `/*` inside needs its own `*/`")
                    });
                    return;
                }
            }
        }
        self.offset = at;
    }

    fn word(&mut self, start: usize) -> Token {
        let text = self.text;
        let rest = &text.as_bytes()[start..];
        let mut length = rest.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_').unwrap_or(rest.len());
        let foreign = rest.get(length).is_some_and(|b| !b.is_ascii());
        if foreign {
            let rest = &text[start..];
            length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        }
        self.offset = start + length;
        let span = Span::new(start, self.offset);
        if foreign && !text[start..self.offset].is_ascii() {
            self.problems.error(span, || {
                Diagnostic::error("unknown-character", "a name can only have ASCII letters, digits and `_`", span)
                    .help("write it with the letters a-z and A-Z")
            });
        }
        if length > LONGEST_NAME && !foreign {
            self.problems.error(span, || {
                let message = format!("this name is longer than {LONGEST_NAME} characters");
                Diagnostic::error("long-name", message, span).help("give it a shorter name")
            });
        }
        let word = &text[start..self.offset];
        let shown = word.char_indices().nth(LONGEST_NAME).map_or(word, |(end, _)| &word[..end]);
        let name = self.names.intern(shown);
        self.token(TokenKind::Word(name), start)
    }

    fn integer(&mut self, start: usize) -> Token {
        let rest = &self.text.as_bytes()[start..];
        let length = rest.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_').unwrap_or(rest.len());
        self.offset = start + length;
        let digits = &self.text[start..self.offset];
        let value = match digits.get(..2) {
            Some("0x" | "0X") => parse_digits(&digits[2..], 16),
            Some("0b" | "0B") => parse_digits(&digits[2..], 2),
            _ => parse_digits(digits, 10),
        };
        let value = value.unwrap_or_else(|mistake| {
            let span = Span::new(start, self.offset);
            self.problems.error(span, || mistake.describe(span));
            BAD_INTEGER
        });
        self.token(TokenKind::Integer(value), start)
    }

    fn string(&mut self, start: usize) -> Token {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        loop {
            match bytes.get(at) {
                Some(b'"') => {
                    self.offset = at + 1;
                    return self.token(TokenKind::Text, start);
                }
                Some(b'\\') if matches!(bytes.get(at + 1), Some(b'"' | b'\\')) => at += 2,
                Some(b'\n') | None => break,
                Some(_) => at += 1,
            }
        }
        self.offset = at;
        self.mistake = true;
        let opening = Span::new(start, start + 1);
        self.problems.error(opening, || {
            Diagnostic::error("unclosed-string", "this string is not closed on its line", opening)
                .help("end it with `\"`; write `\\\"` for a quotation mark inside")
        });
        self.token(TokenKind::Text, start)
    }

    fn symbol(&mut self) -> Option<Symbol> {
        let rest = &self.text.as_bytes()[self.offset..];
        let symbol = Symbol::at_start_of(rest)?;
        self.offset += symbol.text().len();
        Some(symbol)
    }

    /// Skips a run of characters that begin no token; gives the operator they stand for, if they do.
    fn skip_unknown(&mut self, start: usize) -> Option<Symbol> {
        let unknown =
            |c: char| !c.is_ascii() || (c.is_ascii_control() && !c.is_ascii_whitespace()) || "#$'?@\\`~".contains(c);
        let rest = &self.text[start..];
        let first = rest.chars().next().unwrap_or_default();
        let meant = stands_for(first);
        let length = match meant {
            Some(_) => first.len_utf8(),
            None => rest.find(|c| !unknown(c) || stands_for(c).is_some()).unwrap_or(rest.len()).max(first.len_utf8()),
        };
        self.offset = start + length;
        let span = Span::new(start, self.offset);
        self.problems.error(span, || {
            let diagnostic = if length == first.len_utf8() {
                Diagnostic::error("unknown-character", format!("unknown character `{}`", first.escape_debug()), span)
            } else {
                Diagnostic::error("unknown-character", "these characters have no meaning here", span)
            };
            match meant {
                Some(known) => diagnostic.help(format!("write `{known}`")),
                None => diagnostic.help("remove it; text that is not part of the program goes into a `//` comment"),
            }
        });
        let symbol = meant.and_then(|meant| Symbol::at_start_of(meant.as_bytes())).filter(|&s| s != Symbol::Slash);
        self.mistake |= symbol.is_none();
        symbol
    }
}

/// What somebody who types this character probably means.
fn stands_for(unknown: char) -> Option<&'static str> {
    Some(match unknown {
        '“' | '”' | '„' | '«' | '»' | '\'' | '‘' | '’' => "\"",
        '≠' => "!=",
        '≤' => "<=",
        '≥' => ">=",
        '∧' => "&&",
        '∨' => "||",
        '¬' | '~' => "!",
        '−' | '–' | '—' => "-",
        '×' | '·' => "*",
        '÷' => "/",
        '←' => "=",
        '…' => "..=",
        _ => return None,
    })
}

/// The value of an integer that was reported: too large for any that was not, so that nothing is said about it again.
pub(super) const BAD_INTEGER: u64 = u64::MAX;

/// What is wrong with an integer.
enum IntegerMistake {
    NoDigits,
    BadDigit(char, u32),
    TooLarge,
}

impl IntegerMistake {
    fn describe(self, span: Span) -> Diagnostic {
        let error = |message: String| Diagnostic::error("bad-integer", message, span);
        match self {
            Self::NoDigits => error("this integer has no digits".into()).help("write for example `0x1F` or `0b101`"),
            Self::BadDigit(digit, 10) if digit.is_ascii_alphabetic() || digit == '_' => {
                error(format!("`{digit}` cannot follow a number")).help("a name must begin with a letter or `_`")
            }
            Self::BadDigit(digit, radix) => {
                let kind = if radix == 2 { "binary" } else { "hexadecimal" };
                error(format!("`{digit}` is not a digit of a {kind} number")).help(if radix == 2 {
                    "use 0 and 1"
                } else {
                    "use 0-9, a-f, A-F"
                })
            }
            Self::TooLarge => error("this integer does not fit into 64 bits".into())
                .help("values go from -9223372036854775808 to 9223372036854775807"),
        }
    }
}

/// The value of digits with `_` between them; at most 2^63.
fn parse_digits(digits: &str, radix: u32) -> Result<u64, IntegerMistake> {
    let mut value = Some(0_u64);
    let mut any = false;
    for digit in digits.chars().filter(|&c| c != '_') {
        let number = digit.to_digit(radix).ok_or(IntegerMistake::BadDigit(digit, radix))?;
        any = true;
        value = value.and_then(|v| v.checked_mul(radix.into())?.checked_add(number.into()));
    }
    match value {
        _ if !any => Err(IntegerMistake::NoDigits),
        Some(value) if value <= 1 << 63 => Ok(value),
        _ => Err(IntegerMistake::TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let mut lexer = Lexer::new(text);
        let mut kinds = Vec::new();
        loop {
            match lexer.next_token().kind {
                TokenKind::End => return kinds,
                kind => kinds.push(kind),
            }
        }
    }

    fn error(text: &str) -> &'static str {
        let mut lexer = Lexer::new(text);
        while lexer.next_token().kind != TokenKind::End {}
        lexer.problems.finish().map_or_else(|errors| errors[0].code, |_| "no error")
    }

    #[test]
    fn integers_in_three_bases() {
        use TokenKind::Integer;
        assert_eq!(kinds("1_000 0x1F 0b1_01"), [Integer(1000), Integer(31), Integer(5)]);
        assert_eq!(kinds("9223372036854775808"), [Integer(1 << 63)]);
        assert_eq!(error("9223372036854775809"), "bad-integer");
        assert_eq!(error("0x"), "bad-integer");
        assert_eq!(error("12ab"), "bad-integer");
    }

    #[test]
    fn the_longest_symbol_wins() {
        use Symbol::{Less, LessEqual, RangeInclusive, ShiftLeft};
        assert_eq!(kinds("..= <= << <"), [RangeInclusive, LessEqual, ShiftLeft, Less].map(TokenKind::Symbol));
    }

    #[test]
    fn comments_nest_and_end() {
        assert_eq!(kinds("/* a /* b */ c */ // d\n;"), [TokenKind::Symbol(Symbol::Semicolon)]);
        assert_eq!(error("/* /* */"), "unclosed-comment");
    }

    #[test]
    fn strings_end_on_their_line() {
        assert_eq!(kinds(r#""a \" b""#), [TokenKind::Text]);
        assert_eq!(error("\"abc\n\""), "unclosed-string");
    }
}
