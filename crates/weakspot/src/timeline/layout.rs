//! How an execution is put into lines.
//!
//! Threads have columns beside one another. Where the terminal (or `COLUMNS`) is too narrow for them, columns are made
//! narrower and what stands in them is cut; if that leaves too little, every line names its thread instead. Without a
//! terminal there is no limit: whoever reads the output of a test run elsewhere can scroll.

use std::fmt::{self, Write as _};

use super::{Moment, Timeline};
use crate::source;

/// Columns are this wide at most.
const WIDEST: usize = 44;
/// What an event is called takes at most this much of it; the rest is for the source.
const WIDEST_TEXT: usize = 30;
/// Columns are at least this wide: what an event is called fits in most of the time.
const NARROWEST: usize = 16;
/// Less of the source than this says nothing.
const LEAST_SOURCE: usize = 10;
/// The place of the line's number, with the spaces before it.
const NUMBER: usize = 7;
/// Spaces before a column.
const GAP: usize = 2;

/// How wide the terminal is, if there is one or `COLUMNS` says so.
pub(crate) fn width_of_terminal() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    asked.filter(|&columns| columns > 0).or_else(terminal::width)
}

#[cfg(not(unix))]
mod terminal {
    pub(super) fn width() -> Option<usize> {
        None
    }
}

#[cfg(unix)]
mod terminal {
    use std::mem::MaybeUninit;

    /// That of standard output, where the messages of tests that fail are printed, if it is a terminal.
    pub(super) fn width() -> Option<usize> {
        // SAFETY: all zeros are a value of this type.
        let mut size: libc::winsize = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: the request writes to the structure it is given a pointer to, and to nothing else.
        let done = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
        (done == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
    }
}

/// So many times the same.
struct Row<'a> {
    moment: &'a Moment,
    times: usize,
}

/// What is shown: the moments, those that repeat the one before put together. A call may have several events; what follows
/// the first of them is shown if another thread has come between.
fn rows(shown: &[Moment]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for moment in shown {
        match rows.last_mut() {
            Some(Row { moment: last, .. })
                if moment.continues && (last.thread, &last.place) == (moment.thread, &moment.place) => {}
            Some(last) if last.moment == moment => last.times += 1,
            _ => rows.push(Row { moment, times: 1 }),
        }
    }
    rows
}

/// The text of a row, cut to a width.
fn cell(row: &Row<'_>, width: usize) -> String {
    let times = match row.times {
        1 => String::new(),
        times if width < WIDEST => format!(" ×{times}"),
        times => format!("  ({times} times)"),
    };
    let room = width.saturating_sub(length(&times));
    let Moment { text, place, .. } = row.moment;
    let room_for_source = room.saturating_sub(length(text).min(WIDEST_TEXT) + GAP);
    let rest = match source::line(place) {
        Some(line) if room_for_source < LEAST_SOURCE.min(length(line.trim())) => String::new(),
        Some(line) => source::cut_around(&line, place.column, room_for_source),
        None => place.to_string(),
    };
    format!("{}{times}", cut(format!("{text}  {rest}").trim_end(), room))
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// The beginning of a text that is too long.
fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// How wide columns may be, so that all fit; nothing if they would be too narrow.
fn widest_column(wanted: &[usize], width: usize) -> Option<usize> {
    let room = width.saturating_sub(NUMBER + GAP * wanted.len());
    let fits = |most: usize| wanted.iter().map(|&wanted| wanted.min(most)).sum::<usize>() <= room;
    (NARROWEST..=WIDEST).rev().find(|&most| fits(most))
}

/// Writes the last moments of an execution for a terminal of some width.
pub(super) fn write(f: &mut impl fmt::Write, timeline: &Timeline, most: usize, width: Option<usize>) -> fmt::Result {
    let columns = timeline.columns();
    let skipped = timeline.moments.len().saturating_sub(most);
    let rows = rows(&timeline.moments[skipped..]);
    let names: Vec<&str> =
        columns.iter().map(|&column| timeline.threads.get(column as usize).map_or("", String::as_str)).collect();
    let widths = |widest: usize| -> Vec<usize> {
        let own = |column: u32| rows.iter().filter(move |row| row.moment.thread == column);
        let cells = columns.iter().map(|&column| own(column).map(|row| length(&cell(row, widest))).max().unwrap_or(0));
        cells.zip(&names).map(|(cells, name)| cells.max(length(name)).min(widest.max(length(name)))).collect()
    };
    let wanted = widths(WIDEST);
    let fits = width.is_none_or(|width| NUMBER + wanted.iter().map(|wanted| GAP + wanted).sum::<usize>() <= width);
    let widest = if fits { Some(WIDEST) } else { widest_column(&wanted, width.unwrap_or(usize::MAX)) };
    let layout = match widest {
        Some(_) if fits => Columns { threads: columns, names, widths: wanted, widest: WIDEST },
        Some(widest) => {
            let widths = widths(widest).into_iter().map(|width| width.min(widest)).collect();
            Columns { threads: columns, names, widths, widest }
        }
        None => return write_list(f, timeline, &rows, skipped, width.unwrap_or(usize::MAX)),
    };
    layout.write(f, &rows, skipped)
}

/// One column for each thread.
struct Columns<'a> {
    /// Their threads.
    threads: Vec<u32>,
    names: Vec<&'a str>,
    widths: Vec<usize>,
    widest: usize,
}

impl Columns<'_> {
    fn write(&self, f: &mut impl fmt::Write, rows: &[Row<'_>], skipped: usize) -> fmt::Result {
        let mut head = format!("  {:>5}", "line");
        for (name, &width) in self.names.iter().zip(&self.widths) {
            write!(head, "  {:<width$}", cut(name, width))?;
        }
        f.write_str(head.trim_end())?;
        write_skipped(f, skipped)?;
        for row in rows {
            write!(f, "\n  {:>5}", row.moment.place.line)?;
            for (&column, &width) in self.threads.iter().zip(&self.widths) {
                if column == row.moment.thread {
                    write!(f, "  {}", cell(row, self.widest))?;
                    break;
                }
                write!(f, "  {:<width$}", "")?;
            }
        }
        Ok(())
    }
}

fn write_skipped(f: &mut impl fmt::Write, skipped: usize) -> fmt::Result {
    if skipped > 0 { write!(f, "\n  {:>5}  ({skipped} earlier events)", "…") } else { Ok(()) }
}

/// Each line with its thread, where there is no room for columns. What follows from the same thread does not name it again.
fn write_list(
    f: &mut impl fmt::Write,
    timeline: &Timeline,
    rows: &[Row<'_>],
    skipped: usize,
    width: usize,
) -> fmt::Result {
    write!(f, "  {:>5}", "line")?;
    write_skipped(f, skipped)?;
    let mut last = None;
    for row in rows {
        let Moment { thread, place, .. } = row.moment;
        if last.replace(thread) != Some(thread) {
            write!(f, "\n{}", cut(timeline.threads.get(*thread as usize).map_or("", String::as_str), width))?;
        }
        let room = width.saturating_sub(NUMBER + GAP).min(WIDEST);
        write!(f, "\n  {:>5}  {}", place.line, cell(row, room))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::SourcePlace;

    /// A timeline of some threads, in turn. Its source is not there to be read.
    fn timeline(threads: u32, names: &str) -> Timeline {
        let place = |line| SourcePlace { file: "src/some/module.rs".to_owned(), line, column: 9 };
        let moment = |at: u32| Moment {
            thread: at % threads,
            text: format!("store {at}"),
            place: place(at + 1),
            continues: false,
        };
        let threads = (0..threads).map(|thread| format!("thread {thread}{names}")).collect();
        Timeline { moments: (0..12).map(moment).collect(), threads }
    }

    fn drawn(timeline: &Timeline, width: Option<usize>) -> String {
        let mut text = String::new();
        write(&mut text, timeline, 80, width).expect("a string takes everything");
        text
    }

    #[test]
    fn every_line_fits_the_terminal() {
        for threads in 1..12 {
            for names in ["", " (a thread with a very long name indeed)"] {
                let timeline = timeline(threads, names);
                for width in [24, 30, 40, 60, 80, 100, 120] {
                    let text = drawn(&timeline, Some(width));
                    let longest = text.lines().map(length).max();
                    assert!(longest <= Some(width), "{longest:?} at {width}:\n{text}");
                    assert!((0..12).all(|at| text.contains(&format!("store {at}"))), "{text}");
                }
            }
        }
    }

    #[test]
    fn a_wide_terminal_changes_nothing() {
        let timeline = timeline(4, "");
        assert_eq!(drawn(&timeline, Some(200)), drawn(&timeline, None));
        assert_ne!(drawn(&timeline, Some(100)), drawn(&timeline, None));
    }

    #[test]
    fn a_narrow_terminal_has_a_list() {
        let text = drawn(&timeline(3, ""), Some(40));
        assert!(text.starts_with("   line\nthread 0\n      1  store 0  src/some/module.rs:1:9\nthread 1\n"), "{text}");
    }

    #[test]
    fn repetition_is_counted_and_fits() {
        let mut timeline = timeline(2, "");
        let first = timeline.moments[0].clone();
        timeline.moments.splice(0..0, std::iter::repeat_n(first, 40));
        for width in [30, 50, 70, 200] {
            let text = drawn(&timeline, Some(width));
            assert!(text.contains("(41 times)") || width < 200 && text.contains(" ×41"), "{text}");
            assert!(text.lines().all(|line| length(line) <= width), "{text}");
        }
    }
}
