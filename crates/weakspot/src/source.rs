//! Lines of the source of a test, if it is there to be read.

use std::cell::RefCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::failure::SourcePlace;
use crate::rt::Place;
use crate::timeline;

/// The file of a documentation test that rustdoc has compiled by itself (before the edition of 2024). The compiler is
/// told the name of the file, and counts the lines in what rustdoc has made of the test.
static DOC_TEST: OnceLock<String> = OnceLock::new();

/// Is this process a documentation test? Then this is the folder that rustdoc has made it in.
fn folder_of_doc_test() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    executable.ends_with("rust_out").then(|| executable.parent().map(Path::to_owned)).flatten()
}

/// A model is started here.
pub(crate) fn note_start(place: Place) {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    if let Some(folder) = FOLDER.get_or_init(folder_of_doc_test)
        && !Path::new(place.file()).starts_with(folder)
    {
        let _ = DOC_TEST.set(place.file().to_owned());
    }
}

/// The file of the documentation test that this process is, if the lines of places in it are not those of the file.
pub(crate) fn file_of_doc_test() -> Option<&'static str> {
    DOC_TEST.get().map(String::as_str)
}

thread_local! {
    static FILES: RefCell<FxHashMap<String, Option<Vec<String>>>> = RefCell::default();
}

/// Where the compiler's name of a file leads from here. Tests run in the folder of their package; the compiler names
/// files from the folder of the workspace.
fn find(file: &str) -> Option<PathBuf> {
    let path = Path::new(file);
    let mut folder = std::env::current_dir().ok()?;
    loop {
        let candidate = folder.join(path);
        if candidate.is_file() {
            return Some(candidate);
        }
        if !folder.pop() {
            return None;
        }
    }
}

/// The path of a file that the compiler names so, if it is there and its lines are those that places name.
pub(crate) fn path(file: &str) -> Option<PathBuf> {
    if file_of_doc_test() == Some(file) { None } else { find(file) }
}

/// Something of the lines of a file, if they are those that places name.
pub(crate) fn with_file<R>(file: &str, read: impl FnOnce(&[String]) -> R) -> Option<R> {
    if file_of_doc_test() == Some(file) {
        return None;
    }
    FILES.with_borrow_mut(|files| {
        let lines = files.entry(file.to_owned()).or_insert_with(|| {
            let text = std::fs::read_to_string(find(file)?).ok()?;
            Some(text.lines().map(str::to_owned).collect())
        });
        lines.as_deref().map(read)
    })
}

/// Does a file say this somewhere?
pub(crate) fn has(file: &str, text: &str) -> bool {
    with_file(file, |lines| lines.iter().any(|line| line.contains(text))).unwrap_or(false)
}

/// The line of a place.
pub(crate) fn line(place: &SourcePlace) -> Option<String> {
    with_file(&place.file, |lines| lines.get(place.line as usize - 1).cloned()).flatten()
}

/// As much of a line as there is room for, with what stands at a column in it.
pub(crate) fn cut_around(line: &str, column: u32, room: usize) -> String {
    if room < 2 {
        return String::new();
    }
    let characters: Vec<char> = line.chars().collect();
    let indent = characters.iter().take_while(|character| character.is_whitespace()).count();
    let at = (column as usize).saturating_sub(1).min(characters.len());
    let text = |from: usize, room: usize| -> String {
        let rest = &characters[from.min(characters.len())..];
        if rest.len() <= room {
            return rest.iter().collect();
        }
        rest.iter().take(room.saturating_sub(1)).chain(['…'].iter()).collect()
    };
    let word =
        characters[at..].iter().take_while(|character| character.is_alphanumeric() || **character == '_').count();
    let is_seen = at + word < indent + room;
    let characters_left = characters.len().saturating_sub(indent);
    if characters_left <= room || is_seen || at < indent {
        return text(indent, room).trim_end().to_owned();
    }
    let from = beginning_of_operand(&characters, at);
    let from = if at + word - from < room.saturating_sub(1) { from } else { at };
    format!("…{}", text(from, room.saturating_sub(1))).trim_end().to_owned()
}

/// Where the expression begins whose method stands at a position: `self.flags[1 - me]` of `self.flags[1 - me].load`.
fn beginning_of_operand(characters: &[char], at: usize) -> usize {
    let mut depth = 0usize;
    let mut from = at;
    while from > 0 {
        match characters[from - 1] {
            ')' | ']' => depth += 1,
            '(' | '[' if depth > 0 => depth -= 1,
            character if depth > 0 || character.is_alphanumeric() || "_.:*&".contains(character) => {}
            _ => break,
        }
        from -= 1;
    }
    from
}

/// Lines of an excerpt are no longer than this if nobody knows how wide the terminal is.
const WIDTH: usize = 120;
/// Nor shorter, however narrow it is.
const NARROWEST: usize = 40;
/// The number of a line and the bar.
const MARGIN: usize = 8;

/// As much of a line as there is room for, so that a mark at a position and the note behind it fit, too; and where the mark is.
fn around_mark(line: &str, at: usize, note: usize, room: usize) -> (String, usize) {
    let characters: Vec<char> = line.chars().collect();
    let at = at.min(characters.len());
    // Of a line that is cut, what stands at the position should be seen as well.
    let is_long = characters.len() > room;
    let wanted = (note + 2).max(if is_long { room / 3 } else { 0 });
    let from = (at + wanted).saturating_sub(room).min(at);
    let (is_cut_before, is_cut_behind) = (from > 0, characters.len() - from > room);
    let to = if is_cut_behind { from + room - 1 } else { characters.len() };
    let mut shown: String = characters[from..to].iter().collect();
    if is_cut_before {
        // In place of its first letter, unless that is what the mark is for.
        let first = shown.chars().next().map_or(0, char::len_utf8);
        if at > from {
            shown.replace_range(..first, "…");
        }
    }
    if is_cut_behind {
        shown.push('…');
    }
    (shown, at - from)
}

/// A place with the lines around it and a mark under it.
pub(crate) fn excerpt(place: &SourcePlace, note: &str) -> String {
    let width = timeline::width_of_terminal().unwrap_or(WIDTH).max(NARROWEST);
    let room = width - MARGIN;
    let mut text = format!("   --> {place}\n");
    let around = with_file(&place.file, |lines| {
        let at = place.line as usize;
        let (from, to) = (at.saturating_sub(2).max(1), (at + 1).min(lines.len()));
        (from..=to).map(|number| (number, lines[number - 1].clone())).collect::<Vec<_>>()
    });
    let Some(around) = around else {
        let _ = writeln!(text, "    = {note}");
        if file_of_doc_test() == Some(&place.file) {
            text.push_str("    = (rustdoc counts the lines of a documentation test from its beginning, with some of its own before)\n");
        }
        return text;
    };
    for (number, line) in around {
        if number != place.line as usize {
            let (line, _) = around_mark(&line, 0, 0, room);
            let _ = writeln!(text, "{}", format!("{number:>5} | {line}").trim_end());
            continue;
        }
        let at = place.column.saturating_sub(1) as usize;
        let (line, at) = around_mark(&line, at, note.chars().count(), room);
        let before: String = line.chars().take(at).map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
        let _ = writeln!(text, "{number:>5} | {line}\n      | {before}^ {note}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{around_mark, cut_around};

    #[test]
    fn the_mark_is_under_the_same_letter_and_everything_fits() {
        let line: String = ('a'..='z').cycle().take(100).collect();
        for room in 32..120 {
            for at in 0..=100 {
                for note in [0, 4, 20] {
                    let (shown, mark) = around_mark(&line, at, note, room);
                    assert!(
                        shown.chars().count() <= room && mark + 2 + note <= room.max(22),
                        "{room} {at} {note}: {shown}"
                    );
                    assert_eq!(shown.chars().nth(mark), line.chars().nth(at), "{room} {at} {note}: {shown}");
                    assert!(100 > room || shown == line || mark + 2 + note >= room - 1, "{room} {at} {note}: {shown}");
                }
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_around_its_place() {
        let line = "    while self.wants[1 - me].load(Acquire) && self.turn[f(me)].load(Acquire) == 1 - me {";
        let place = |what: &str| line.find(what).map_or(0, |at| at as u32 + 1);
        assert_eq!(cut_around(line, place("load(Acquire) &&"), 30), "while self.wants[1 - me].load…");
        assert_eq!(cut_around(line, place("load(Acquire) =="), 30), "…self.turn[f(me)].load(Acquir…");
        assert_eq!(cut_around(line, place("load(Acquire) =="), 12), "…load(Acqui…");
        assert_eq!(cut_around(line, place("load(Acquire) =="), 200), line.trim());
        for room in 0..100 {
            for column in 0..100 {
                assert!(cut_around(line, column, room).chars().count() <= room, "{column} {room}");
            }
        }
    }
}
