//! Colours and widths: lines made of pieces with a meaning, painted last.
//!
//! Text is laid out as plain pieces first, so that a colour never counts as width and plain output is the coloured
//! output without its escapes.

use std::borrow::Cow;

use anstyle::{AnsiColor, Effects};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The width assumed where there is no terminal to ask.
pub const DEFAULT_WIDTH: usize = 80;

/// How text may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Use colours?
    pub colour: bool,
    /// Columns to stay within.
    pub width: usize,
}

impl Style {
    /// No colours, [`DEFAULT_WIDTH`].
    pub fn plain() -> Self {
        Self { colour: false, width: DEFAULT_WIDTH }
    }

    /// Paints one piece of text.
    pub fn paint<'t>(&self, role: Role, text: &'t str) -> Cow<'t, str> {
        let look = role.look();
        if !self.colour || look.is_plain() || text.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(format!("{look}{text}{look:#}"))
    }
}

/// What a piece of text means; decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    Plain,
    /// Rules, numbers, things to look past.
    Faint,
    /// Names of threads, headings.
    Heading,
    /// A store that waits in a buffer.
    Delayed,
    /// A store that becomes visible.
    Visible,
    /// Where it fails.
    Failure,
    /// A good answer.
    Success,
    /// No answer.
    Unknown,
}

impl Role {
    fn look(self) -> anstyle::Style {
        match self {
            Self::Plain => anstyle::Style::new(),
            Self::Faint => anstyle::Style::new().effects(Effects::DIMMED),
            Self::Heading => anstyle::Style::new().effects(Effects::BOLD),
            Self::Delayed => AnsiColor::Yellow.on_default(),
            Self::Visible => AnsiColor::Cyan.on_default(),
            Self::Failure => AnsiColor::Red.on_default().effects(Effects::BOLD),
            Self::Success => AnsiColor::Green.on_default().effects(Effects::BOLD),
            Self::Unknown => AnsiColor::Yellow.on_default().effects(Effects::BOLD),
        }
    }
}

/// One line of text in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    pieces: Vec<(Role, String)>,
}

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// A line of one piece.
    pub fn of(role: Role, text: impl AsRef<str>) -> Self {
        Self::new().with(role, text)
    }

    /// Adds a piece. Control characters cannot reach the terminal: they are shown as `�`.
    pub fn push(&mut self, role: Role, text: impl AsRef<str>) {
        self.pieces.push((role, text.as_ref().replace(char::is_control, "\u{fffd}")));
    }

    /// The line with one piece more.
    #[must_use]
    pub fn with(mut self, role: Role, text: impl AsRef<str>) -> Self {
        self.push(role, text);
        self
    }

    /// Adds all pieces of another line.
    pub fn append(&mut self, other: Self) {
        self.pieces.extend(other.pieces);
    }

    /// Gives every piece the same role.
    #[must_use]
    pub fn all(mut self, role: Role) -> Self {
        for piece in &mut self.pieces {
            piece.0 = role;
        }
        self
    }

    /// Columns it takes.
    pub fn width(&self) -> usize {
        self.pieces.iter().map(|(_, text)| text.width()).sum()
    }

    /// Cuts the line to at most `width` columns; what is cut off is shown as `…`.
    #[must_use]
    pub fn fit(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut cut = Self::new();
        for (role, text) in self.pieces {
            let kept = prefix(&text, left);
            let complete = kept.len() == text.len();
            left -= kept.width();
            cut.pieces.push((role, kept.to_owned()));
            if !complete {
                if width > 0 {
                    cut.pieces.push((role, "…".to_owned()));
                }
                break;
            }
        }
        cut
    }

    /// Fills the line with spaces up to `width` columns.
    #[must_use]
    pub fn pad(mut self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        if missing > 0 {
            self.pieces.push((Role::Plain, " ".repeat(missing)));
        }
        self
    }

    /// The painted text, without spaces at its end.
    pub fn render(&self, style: &Style) -> String {
        let kept = self.pieces.iter().rposition(|(_, text)| !text.trim_end().is_empty()).map_or(0, |last| last + 1);
        let paint = |(index, (role, text)): (usize, &(Role, String))| {
            let text = if index + 1 == kept { text.trim_end() } else { text };
            style.paint(*role, text).into_owned()
        };
        self.pieces[..kept].iter().enumerate().map(paint).collect()
    }
}

/// The longest prefix that takes at most `width` columns.
fn prefix(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, character) in text.char_indices() {
        used += character.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

/// Breaks a sentence into lines of at most `width` columns at its spaces; a longer word stands alone.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("invariant: there is always a line");
        if last.is_empty() {
            last.push_str(word);
        } else if last.width() + 1 + word.width() <= width {
            last.push(' ');
            last.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_ends_in_an_ellipsis_within_the_width() {
        let line = Line::of(Role::Plain, "want[me]").with(Role::Delayed, " = 12345");
        assert_eq!(line.clone().fit(16).render(&Style::plain()), "want[me] = 12345");
        assert_eq!(line.clone().fit(10).render(&Style::plain()), "want[me] …");
        assert_eq!(line.fit(0).render(&Style::plain()), "");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(Line::of(Role::Plain, "漢字").width(), 4);
        assert_eq!(Line::of(Role::Plain, "漢字").fit(3).render(&Style::plain()), "漢…");
    }

    #[test]
    fn colour_is_the_plain_text_with_escapes_around_it() {
        let line = Line::of(Role::Failure, "no").with(Role::Plain, " way");
        assert_eq!(line.render(&Style::plain()), "no way");
        assert_eq!(line.render(&Style { colour: true, width: 80 }), "\u{1b}[1m\u{1b}[31mno\u{1b}[0m way");
    }

    #[test]
    fn escapes_in_the_source_do_not_reach_the_terminal() {
        assert_eq!(Line::of(Role::Plain, "a\u{1b}[31m").render(&Style::plain()), "a\u{fffd}[31m");
    }

    #[test]
    fn wrapping_breaks_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible a", 4), ["incomprehensible", "a"]);
    }
}
