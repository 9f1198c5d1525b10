//! Rows become lines: side by side if the width allows it, else as a list.

use weakspot_model::ids::ThreadId;

use super::Execution;
use super::lanes::Lanes;
use super::rows::{Cell, Row, last_rows};
use crate::style::{Line, Role, Style};

/// A column narrower than this is not readable; the list is.
const MIN_COLUMN: usize = 22;

/// A column wider than this only moves things apart.
const MAX_COLUMN: usize = 48;

/// Spaces between columns.
const GAP: usize = 2;

/// Draws the table. Ends with a line break.
pub(super) fn draw(execution: &Execution<'_>, lanes: &Lanes, rows: &[Row], style: &Style) -> String {
    let lines = match Columns::new(execution, lanes, rows, style) {
        Some(columns) => columns.draw(rows),
        None => draw_list(execution, rows, style),
    };
    lines.iter().map(|line| line.render(style) + "\n").collect()
}

fn digits(number: usize) -> usize {
    number.to_string().len()
}

/// `✗` or a space, the number of the step, two spaces.
fn number_cell(row: &Row, width: usize) -> Line {
    let number = row.number.map_or(String::new(), |number| number.to_string());
    let (mark, role) = if row.failing { ('✗', Role::Failure) } else { (' ', Role::Faint) };
    Line::of(role, format!("{mark} {number:>width$}")).with(Role::Plain, "  ")
}

fn widest_line_number(rows: &[Row]) -> usize {
    let cells = rows.iter().flat_map(|row| row.cells.iter().chain(&row.across));
    cells.filter_map(|cell| cell.line_number).max().map_or(0, |line| digits(line as usize))
}

/// The lines of a cell within a width: source, effect and buffer, each on a new line if it does not fit the last.
fn cell_lines(cell: &Cell, width: usize, number_width: usize, always_show_buffer: bool) -> Vec<Line> {
    let mut line = Line::new();
    if let Some(number) = cell.line_number {
        line.push(Role::Faint, format!("{number:>number_width$}: "));
    }
    let indent = line.width();
    line.append(cell.what.clone());
    let shows_buffer = cell.buffer_matters || always_show_buffer;
    let buffer = if shows_buffer { Line::of(Role::Faint, &cell.buffer) } else { Line::new() };
    let mut lines = Vec::new();
    for part in [cell.effect.clone(), buffer].into_iter().filter(|part| part.width() > 0) {
        if line.width() + 2 + part.width() <= width {
            line.push(Role::Plain, "  ");
        } else {
            lines.push(std::mem::replace(&mut line, Line::new().pad(indent)));
        }
        line.append(part);
    }
    lines.push(line);
    lines.into_iter().map(|line| line.fit(width)).collect()
}

/// The table with one column per thread.
struct Columns<'a> {
    execution: &'a Execution<'a>,
    lanes: &'a Lanes,
    /// Width of a column, lanes included.
    width: usize,
    /// Width of the step numbers.
    number_width: usize,
    /// For each delay: the row in which it ends.
    last: Vec<usize>,
}

impl<'a> Columns<'a> {
    /// `None` if the columns would be too narrow.
    fn new(execution: &'a Execution<'a>, lanes: &'a Lanes, rows: &[Row], style: &Style) -> Option<Self> {
        let threads = execution.program.threads.len();
        let number_width = digits(execution.replay.steps.len());
        let available = style.width.saturating_sub(number_width + 4);
        let width = (available + GAP).checked_div(threads)?.saturating_sub(GAP).min(MAX_COLUMN);
        let last = last_rows(lanes, rows, threads);
        (width >= MIN_COLUMN).then_some(Self { execution, lanes, width, number_width, last })
    }

    fn draw(&self, rows: &[Row]) -> Vec<Line> {
        let line_digits = widest_line_number(rows);
        let mut lines = self.header();
        for (index, row) in rows.iter().enumerate() {
            lines.extend(self.row(index, row, line_digits));
        }
        lines
    }

    fn header(&self) -> Vec<Line> {
        let lead = Line::of(Role::Plain, " ".repeat(self.number_width + 4));
        let (mut names, mut rules) = (lead.clone(), lead);
        for thread in &self.execution.program.threads {
            names.append(Line::of(Role::Heading, &thread.name).fit(self.width).pad(self.width + GAP));
            rules.append(Line::of(Role::Faint, "─".repeat(self.width)).pad(self.width + GAP));
        }
        vec![names, rules]
    }

    fn row(&self, index: usize, row: &Row, line_digits: usize) -> Vec<Line> {
        if let Some(cell) = &row.across {
            return self.across(index, row, cell, line_digits);
        }
        let cells: Vec<(ThreadId, Vec<Line>)> = row
            .cells
            .iter()
            .map(|cell| (cell.thread, cell_lines(cell, self.text_width(cell.thread), line_digits, false)))
            .collect();
        let height = cells.iter().map(|(_, lines)| lines.len()).max().unwrap_or(1);
        (0..height).map(|at| self.line(index, row, &cells, at)).collect()
    }

    fn line(&self, index: usize, row: &Row, cells: &[(ThreadId, Vec<Line>)], at: usize) -> Line {
        let mut line =
            if at == 0 { number_cell(row, self.number_width) } else { Line::new().pad(self.number_width + 4) };
        for thread in self.execution.program.thread_ids() {
            let mut column = self.lane_cell(thread, index, at == 0);
            let text = cells.iter().find(|(owner, _)| *owner == thread).and_then(|(_, lines)| lines.get(at));
            column.append(text.cloned().unwrap_or_default());
            line.append(column.pad(self.width + GAP));
        }
        line
    }

    /// A row that belongs to no thread: the lanes end before it, so it may use the whole width.
    fn across(&self, index: usize, row: &Row, cell: &Cell, line_digits: usize) -> Vec<Line> {
        let lead = self.execution.program.thread_ids().next().map_or(Line::new(), |id| self.lane_cell(id, index, true));
        let total = (self.width + GAP) * self.execution.program.threads.len() - GAP;
        let mut text = Line::of(Role::Failure, "final ");
        text.append(cell.what.clone());
        let cell = Cell { what: text, effect: cell.effect.clone(), buffer: String::new(), ..*cell };
        let lines = cell_lines(&cell, total.saturating_sub(lead.width()), line_digits, false);
        let number = |at: usize| match at {
            0 => number_cell(row, self.number_width),
            _ => Line::new().pad(self.number_width + 4),
        };
        let build = |(at, line): (usize, Line)| {
            let mut whole = number(at);
            whole.append(Line::new().pad(lead.width()));
            whole.append(line);
            whole
        };
        lines.into_iter().enumerate().map(build).collect()
    }

    fn lane_cell(&self, thread: ThreadId, row: usize, first_line: bool) -> Line {
        let lanes = self.lanes.count(thread);
        if lanes == 0 {
            return Line::new();
        }
        let glyphs = (0..lanes).map(|lane| self.lanes.glyph(thread, lane, row, &self.last, first_line));
        Line::of(Role::Delayed, glyphs.collect::<String>()).with(Role::Plain, " ")
    }

    fn text_width(&self, thread: ThreadId) -> usize {
        match self.lanes.count(thread) {
            0 => self.width,
            lanes => self.width - lanes - 1,
        }
    }
}

/// One line (or two) per row with the thread's name, for many threads or narrow terminals.
fn draw_list(execution: &Execution<'_>, rows: &[Row], style: &Style) -> Vec<Line> {
    let number_width = digits(execution.replay.steps.len());
    let line_digits = widest_line_number(rows);
    let longest = execution.program.threads.iter().map(|thread| Line::of(Role::Plain, &thread.name).width()).max();
    let name_width = longest.unwrap_or(0).max("final".len()).min(style.width / 4);
    let text_width = style.width.saturating_sub(number_width + 4 + name_width + 2);
    let mut lines = Vec::new();
    for row in rows {
        let named = row.cells.iter().map(|cell| (execution.thread_name(cell.thread), cell));
        for (name, cell) in named.chain(row.across.iter().map(|cell| ("final", cell))) {
            for (at, text) in cell_lines(cell, text_width, line_digits, true).into_iter().enumerate() {
                let blank = Line::new().pad(number_width + 4);
                let mut line = if at == 0 { number_cell(row, number_width) } else { blank };
                let name = if at == 0 { name } else { "" };
                line.append(Line::of(Role::Heading, name).fit(name_width).pad(name_width + 2));
                line.append(text);
                lines.push(line);
            }
        }
    }
    lines
}
