//! The document: sections with tables and facts, written as Markdown, and compared without the times.
//!
//! Everything in the document is the same in every run except the times. They stand in columns whose heading begins
//! with [`TIME`], so that two documents can be compared without them.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::time::Duration;

/// How the heading of a column of measured times begins.
const TIME: &str = "time";

/// What a table shows where there is nothing to show.
pub const NOTHING: &str = "–";

/// One experiment of one paper.
pub struct Section {
    /// The heading.
    pub title: &'static str,
    /// What is shown.
    pub introduction: &'static str,
    /// The figures.
    pub tables: Vec<Table>,
    /// What must come out.
    pub facts: Vec<Fact>,
    /// What agrees, what differs, and why.
    pub reading: &'static str,
}

/// Something the paper found that must be found again.
pub struct Fact {
    /// A sentence without its full stop.
    pub claim: &'static str,
    /// Was it found?
    pub holds: bool,
}

/// A table with a heading for each column.
pub struct Table {
    caption: &'static str,
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table. A column whose heading begins with "time" is not compared.
    pub fn new(caption: &'static str, headings: &[&'static str]) -> Self {
        Self { caption, headings: headings.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; it must have a cell for each heading.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "invariant: a cell for each heading");
        self.rows.push(cells);
    }

    fn write(&self, text: &mut String) {
        let mut line = |cells: &[&str]| writeln!(text, "{}", cells.join(" | ")).expect("invariant: a String grows");
        line(&[self.caption]);
        line(&[""]);
        let framed = |cells: &[&str]| format!("| {} |", cells.join(" | "));
        line(&[&framed(&self.headings)]);
        line(&[&framed(&vec!["---"; self.headings.len()])]);
        for row in &self.rows {
            line(&[&framed(&row.iter().map(String::as_str).collect::<Vec<_>>())]);
        }
    }
}

impl Section {
    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n", self.title, self.introduction);
        for table in &self.tables {
            text.push('\n');
            table.write(&mut text);
        }
        text += "\nWhat must come out:\n\n";
        for fact in &self.facts {
            let _ = writeln!(text, "- {}: **{}**", fact.claim, if fact.holds { "yes" } else { "no" });
        }
        text.push('\n');
        text + self.reading + "\n"
    }
}

/// The text with every measured time taken out.
pub fn without_times(text: &str) -> String {
    let mut timed: Vec<bool> = Vec::new();
    let mut stripped = String::new();
    for line in text.lines() {
        if let Some(cells) = cells(line) {
            if timed.is_empty() {
                timed = cells.iter().map(|heading| heading.starts_with(TIME)).collect();
            }
            let kept = cells.iter().zip(&timed).filter(|&(_, &is_time)| !is_time).map(|(&cell, _)| cell);
            let _ = writeln!(stripped, "| {} |", kept.collect::<Vec<_>>().join(" | "));
        } else {
            timed.clear();
            let _ = writeln!(stripped, "{line}");
        }
    }
    stripped
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// The number of the first line in which two texts differ, and the two lines.
pub fn first_difference<'a>(old: &'a str, new: &'a str) -> Option<(usize, &'a str, &'a str)> {
    let (mut old, mut new) = (old.lines(), new.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => return None,
            (old, new) if old == new => {}
            (old, new) => return Some((number, old.unwrap_or("(end)"), new.unwrap_or("(end)"))),
        }
    }
    None
}

/// The lines of tables that a whole document lacks.
pub fn missing_rows<'a>(whole: &str, part: &'a str) -> Vec<&'a str> {
    let known: HashSet<&str> = whole.lines().collect();
    part.lines().filter(|line| line.starts_with('|') && !known.contains(line)).collect()
}

/// 12345 as `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time in seconds.
pub fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        short if short < 0.001 => "< 0.001".to_owned(),
        short if short < 1.0 => format!("{short:.3}"),
        long => format!("{long:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(time: &str, states: &str) -> String {
        let mut table = Table::new("States.", &["program", "time, s", "states"]);
        table.row(vec!["dekker".to_owned(), time.to_owned(), states.to_owned()]);
        let mut text = String::new();
        table.write(&mut text);
        text
    }

    #[test]
    fn documents_that_differ_in_times_only_are_equal() {
        assert_eq!(without_times(&table("0.1", "7")), without_times(&table("0.2", "7")));
    }

    #[test]
    fn other_differences_are_found() {
        let (old, new) = (without_times(&table("0.1", "7")), without_times(&table("0.1", "8")));
        assert_eq!(first_difference(&old, &new), Some((5, "| dekker | 7 |", "| dekker | 8 |")));
        assert_eq!(missing_rows(&old, &new), ["| dekker | 8 |"]);
    }

    #[test]
    fn a_missing_line_is_a_difference() {
        assert_eq!(first_difference("a\nb", "a"), Some((2, "b", "(end)")));
        assert_eq!(first_difference("a\nb", "a\nb\n"), None);
    }

    #[test]
    fn a_table_after_another_has_time_columns_of_its_own() {
        let text = format!("{}\n| states | time |\n|---|---|\n| 1 | 2 |\n", table("0.1", "7"));
        assert!(without_times(&text).ends_with("| states |\n| --- |\n| 1 |\n"));
    }

    #[test]
    fn numbers_have_a_comma_before_each_three_digits() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
