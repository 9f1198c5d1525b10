//! Messages about places in the source, with the source shown.
//!
//! Front ends make [`Diagnostic`]s as plain data; here they become text. The drawing itself is done by
//! `annotate-snippets`, the renderer of the Rust compiler's own messages. What it draws is a window of the source: a
//! line of a megabyte is cut around the marked place before it is handed over, so that the work and the output stay
//! small.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use weakspot_model::source::{Diagnostic, Severity, SourceFile, Span};

use crate::style::Style;

/// Lines longer than this many bytes are cut around what is marked.
const LONG_LINE: usize = 400;

/// How many bytes of a long line are kept on either side of the mark.
const KEPT: usize = 60;

/// A message with the places it is about.
#[derive(Debug, Clone)]
pub struct Message<'a> {
    /// `None`: the message is an explanation, neither error nor warning.
    pub severity: Option<Severity>,
    /// Stable name of the kind of mistake, shown in brackets.
    pub code: Option<&'a str>,
    /// The sentence.
    pub title: &'a str,
    /// What is marked as the place itself. The first one names the line and column of the header.
    pub primary: Vec<(Span, String)>,
    /// Other places that matter.
    pub related: Vec<(Span, String)>,
    /// What to do.
    pub help: Option<&'a str>,
}

/// Renders a diagnostic about a source file; ends with a line break.
pub fn render(file: &SourceFile, diagnostic: &Diagnostic, style: &Style) -> String {
    let message = Message {
        severity: Some(diagnostic.severity),
        code: Some(diagnostic.code),
        title: &diagnostic.message,
        primary: vec![(diagnostic.span, diagnostic.label.clone())],
        related: diagnostic.related.clone(),
        help: diagnostic.help.as_deref(),
    };
    render_message(file, &message, style)
}

/// Renders all of them with empty lines between; ends with a line break unless there is none.
pub fn render_all(file: &SourceFile, diagnostics: &[Diagnostic], style: &Style) -> String {
    diagnostics.iter().map(|diagnostic| render(file, diagnostic, style)).collect::<Vec<_>>().join("\n")
}

/// Renders a message; ends with a line break.
pub fn render_message(file: &SourceFile, message: &Message<'_>, style: &Style) -> String {
    let level = match message.severity {
        Some(Severity::Error) => Level::ERROR,
        Some(Severity::Warning) => Level::WARNING,
        None => Level::NOTE,
    };
    let mut title = level.primary_title(message.title);
    if let Some(code) = message.code {
        title = title.id(code);
    }
    let mut group = match window(file, message) {
        Some(window) => window.describe(file, message, title),
        None => title.element(Origin::path(file.name.as_str())),
    };
    if let Some(help) = message.help {
        group = group.element(Level::HELP.message(help));
    }
    let renderer = if style.colour { Renderer::styled() } else { Renderer::plain() };
    let text = renderer.term_width(style.width).render(&[group]);
    tidy(&text)
}

/// Without the carriage returns of a file with the line ends of Windows, which the renderer makes visible, and without
/// the empty path that it draws before a line that was cut; ends with a line break.
fn tidy(text: &str) -> String {
    let lines = text.trim_end().lines().filter(|line| unstyled(line).trim() != ":::");
    lines.map(|line| line.strip_suffix('␍').unwrap_or(line)).map(|line| line.to_owned() + "\n").collect()
}

/// A line without its escape sequences for colour.
fn unstyled(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default();
    parts.fold(first.to_owned(), |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// The part of a source file that a message shows.
struct Window {
    /// Bytes of the file.
    range: Range<usize>,
    /// One-based number of the first line.
    first_line: usize,
    /// Was a long line cut, so that columns must not be counted in the window?
    cut: bool,
}

impl Window {
    fn describe<'a>(
        &self,
        file: &'a SourceFile,
        message: &Message<'_>,
        title: annotate_snippets::Title<'a>,
    ) -> Group<'a> {
        let mut snippet = Snippet::source(&file.text[self.range.clone()]).line_start(self.first_line);
        let mut group = Group::with_title(title);
        if self.cut {
            let position = file.position(message.primary.first().map_or(0, |(span, _)| span.range().start));
            let origin = Origin::path(file.name.as_str()).line(position.line as usize);
            group = group.element(origin.char_column(position.column as usize));
        } else {
            snippet = snippet.path(file.name.as_str());
        }
        let marks = message.primary.iter().map(|mark| (AnnotationKind::Primary, mark));
        let others = message.related.iter().map(|mark| (AnnotationKind::Context, mark));
        for (kind, (span, label)) in marks.chain(others) {
            let Some(range) = self.locate(file, *span) else { continue };
            let label = (!label.is_empty()).then(|| label.clone());
            snippet = snippet.annotation(kind.span(range).label(label));
        }
        group.element(snippet)
    }

    /// A span as a range of the window, at character borders; `None` if it lies outside.
    fn locate(&self, file: &SourceFile, span: Span) -> Option<Range<usize>> {
        let start = floor(&file.text, span.range().start);
        let end = floor(&file.text, span.range().end.max(start));
        if start < self.range.start || start > self.range.end {
            return None;
        }
        Some(start - self.range.start..end.min(self.range.end) - self.range.start)
    }
}

/// The lines that the marks of a message touch; if one of them is long, only the neighbourhood of the first mark.
fn window(file: &SourceFile, message: &Message<'_>) -> Option<Window> {
    let spans = || message.primary.iter().chain(&message.related).map(|(span, _)| span.range());
    let start = floor(&file.text, spans().map(|range| range.start).min()?);
    let end = floor(&file.text, spans().map(|range| range.end).max()?.max(start));
    let begin = line_start(&file.text, start);
    let finish = end + file.text[end..].find('\n').unwrap_or(file.text.len() - end);
    let long = file.text[begin..finish].split('\n').any(|line| line.len() > LONG_LINE);
    if !long {
        let first_line = file.position(begin).line as usize;
        return Some(Window { range: begin..finish, first_line, cut: false });
    }
    let mark = message.primary.first().or(message.related.first())?.0.range();
    let mark_start = floor(&file.text, mark.start);
    let mark_line = line_start(&file.text, mark_start);
    let from = floor(&file.text, mark_start.saturating_sub(KEPT)).max(mark_line);
    let line_end = mark_start + file.text[mark_start..].find('\n').unwrap_or(file.text.len() - mark_start);
    let to = floor(&file.text, mark.end.min(mark_start + LONG_LINE).max(mark_start) + KEPT).min(line_end);
    Some(Window { range: from..to, first_line: file.position(mark_start).line as usize, cut: true })
}

fn line_start(text: &str, offset: usize) -> usize {
    text[..offset].rfind('\n').map_or(0, |at| at + 1)
}

/// The greatest character border that is not after `offset`.
fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(file: &SourceFile, diagnostic: &Diagnostic) -> String {
        render(file, diagnostic, &Style::plain())
    }

    fn unknown_name() -> Diagnostic {
        Diagnostic::error("unknown-name", "there is no variable `z`", Span::new(26, 27))
            .label("not declared")
            .related(Span::new(7, 8), "did you mean this one?")
            .help("declare it with `shared z;`")
    }

    #[test]
    fn a_diagnostic_shows_place_source_labels_and_help() {
        let file = SourceFile::new("f.weak", "shared y;\n\nthread a { y = z; }\n");
        insta::assert_snapshot!(plain(&file, &unknown_name()));
    }

    #[test]
    fn colours_come_only_when_asked_for() {
        let file = SourceFile::new("f.weak", "shared y;\n\nthread a { y = z; }\n");
        assert!(!plain(&file, &unknown_name()).contains('\u{1b}'));
        let coloured = render(&file, &unknown_name(), &Style { colour: true, width: 80 });
        assert!(coloured.contains('\u{1b}'));
    }

    #[test]
    fn a_line_of_a_megabyte_is_cut_around_the_mark() {
        let mut text = "x = 1; ".repeat(150_000);
        text.push_str("here");
        text.push_str(&" y = 2;".repeat(50_000));
        let at = text.find("here").expect("the word is there");
        let file = SourceFile::new("long.weak", text);
        let diagnostic = Diagnostic::error("syntax", "unexpected word", Span::new(at, at + 4)).label("this");
        let output = plain(&file, &diagnostic);
        assert!(output.len() < 1_000, "{output}");
        assert!(output.contains("long.weak:1:1050001"), "{output}");
        assert!(output.contains("here"), "{output}");
        assert!(output.lines().all(|line| line.chars().count() <= 140), "{output}");
    }

    #[test]
    fn a_cut_line_has_no_empty_path_before_it() {
        let file = SourceFile::new("long.weak", "x = 1; ".repeat(100));
        let diagnostic = Diagnostic::error("syntax", "unexpected word", Span::new(350, 351));
        for colour in [false, true] {
            let output = render(&file, &diagnostic, &Style { colour, width: 80 });
            assert!(output.contains("long.weak") && !output.contains(":::"), "{output}");
        }
    }

    #[test]
    fn line_ends_of_windows_are_not_shown() {
        let file = SourceFile::new("f.weak", "shared y;\r\n\r\nthread a { z = 1; }\r\n");
        let diagnostic = Diagnostic::error("unknown-name", "unknown name `z`", Span::new(24, 25));
        for colour in [false, true] {
            let output = render(&file, &diagnostic, &Style { colour, width: 80 });
            assert!(output.contains("thread a { z = 1; }") && !output.contains('␍'), "{output}");
        }
    }

    #[test]
    fn places_at_and_past_the_end_do_not_panic() {
        for text in ["", "x", "x\n", "ç"] {
            let file = SourceFile::new("f.weak", text);
            for (start, end) in [(0, 0), (1, 1), (1, 9), (5, 9), (9, 5)] {
                let output = plain(&file, &Diagnostic::error("syntax", "message", Span::new(start, end)));
                assert!(output.contains("message") && output.contains("f.weak"), "{output}");
            }
        }
    }

    #[test]
    fn control_characters_in_the_source_are_not_printed() {
        let file = SourceFile::new("f.weak", "x \u{1b}[31m y\n");
        let output = plain(&file, &Diagnostic::error("syntax", "unexpected", Span::new(2, 3)));
        assert!(!output.contains('\u{1b}'), "{output}");
    }
}
