//! A plain rendering of diagnostics for snapshots. What users see is made by the report crate.

use std::fmt::Write as _;

use weakspot_model::source::{Diagnostic, Severity, SourceFile, Span};

/// `file:line:column: error[code]: message`, the source line, a marker, related places, help.
pub fn render(source: &SourceFile, diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let kind = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let position = source.position(diagnostic.span.start as usize);
        let place = format!("{}:{}:{}", source.name, position.line, position.column);
        let _ = writeln!(text, "{place}: {kind}[{}]: {}", diagnostic.code, diagnostic.message);
        text.push_str(&snippet(source, diagnostic.span, '^', &diagnostic.label));
        for (span, label) in &diagnostic.related {
            text.push_str(&snippet(source, *span, '-', label));
        }
        if let Some(help) = &diagnostic.help {
            let _ = writeln!(text, "  = help: {help}");
        }
        text.push('\n');
    }
    text
}

/// The line a span begins on, and a marker under the part of the span that is on it.
fn snippet(source: &SourceFile, span: Span, marker: char, label: &str) -> String {
    let position = source.position(span.start as usize);
    // of a very long line, show the part around the span
    let skipped = (position.column as usize - 1).saturating_sub(60);
    let line: String = source.line(position.line).chars().skip(skipped).take(100).collect();
    let end = source.position(span.end as usize);
    let column = position.column as usize - 1 - skipped;
    let last = if end.line == position.line { end.column as usize - 1 - skipped } else { 100 };
    let width = last.min(line.chars().count()).saturating_sub(column).max(1);
    let indent = " ".repeat(column);
    let marker = marker.to_string().repeat(width);
    let number = format!("{:4}", position.line);
    let gap = " ".repeat(number.len());
    let mut text = format!("{number} | {line}\n");
    let _ = writeln!(text, "{}", format!("{gap} | {indent}{marker} {label}").trim_end());
    text
}
