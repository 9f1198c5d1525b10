//! The document: sections with tables, written as Markdown, and compared without the times.
//!
//! Everything in the document is the same in every run except the times. They stand in columns whose heading begins
//! with [`TIME`], so that two documents can be compared without them.

use std::fmt::Write as _;

/// How the heading of a column of measured times begins.
pub const TIME: &str = "time";

/// One experiment of one paper.
pub struct Section {
    /// The heading.
    pub title: String,
    /// What is shown.
    pub introduction: String,
    /// The figures.
    pub tables: Vec<Table>,
    /// What must agree, what differs, and why.
    pub reading: String,
}

/// A table with a heading for each column.
pub struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(headings: &[&str]) -> Self {
        Self { headings: headings.iter().map(ToString::to_string).collect(), rows: Vec::new() }
    }

    /// Adds a row; it must have a cell for each heading.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.headings.len(), "invariant: a cell for each heading");
        self.rows.push(cells);
    }

    fn write(&self, text: &mut String) {
        let mut line =
            |cells: &[String]| writeln!(text, "| {} |", cells.join(" | ")).expect("invariant: a String grows");
        line(&self.headings);
        line(&vec!["---".to_owned(); self.headings.len()]);
        self.rows.iter().for_each(|row| line(row));
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
        text.push('\n');
        text + &self.reading + "\n"
    }
}

/// The text with every measured time taken out.
pub fn without_times(text: &str) -> String {
    let mut timed: Vec<bool> = Vec::new();
    let mut stripped = String::new();
    for line in text.lines() {
        let cells = line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
        let Some(cells) = cells else {
            timed.clear();
            stripped += line;
            stripped.push('\n');
            continue;
        };
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        if timed.is_empty() {
            timed = cells.iter().map(|heading| heading.starts_with(TIME)).collect();
        }
        for (cell, &is_time) in cells.iter().zip(&timed) {
            stripped += if is_time { "" } else { cell };
            stripped.push('|');
        }
        stripped.push('\n');
    }
    stripped
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

#[cfg(test)]
mod tests {
    use super::*;

    fn table(time: &str, states: &str) -> String {
        let mut table = Table::new(&["program", "time, s", "states"]);
        table.row(vec!["dekker".to_owned(), time.to_owned(), states.to_owned()]);
        let mut text = "Words.\n".to_owned();
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
        assert_eq!(first_difference(&old, &new), Some((4, "dekker||7|", "dekker||8|")));
    }

    #[test]
    fn a_missing_line_is_a_difference() {
        assert_eq!(first_difference("a\nb", "a"), Some((2, "b", "(end)")));
        assert_eq!(first_difference("a\nb", "a\nb\n"), None);
    }

    #[test]
    fn numbers_have_a_comma_before_each_three_digits() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
