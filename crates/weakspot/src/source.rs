//! Lines of the source of a test, if it is there to be read.

use std::cell::RefCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use crate::failure::SourcePlace;

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

fn with_file<R>(file: &str, read: impl FnOnce(&[String]) -> R) -> Option<R> {
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

/// A place with the lines around it and a mark under it.
pub(crate) fn excerpt(place: &SourcePlace, note: &str) -> String {
    let mut text = format!("   --> {place}\n");
    let around = with_file(&place.file, |lines| {
        let at = place.line as usize;
        let (from, to) = (at.saturating_sub(2).max(1), (at + 1).min(lines.len()));
        (from..=to).map(|number| (number, lines[number - 1].clone())).collect::<Vec<_>>()
    });
    let Some(around) = around else {
        let _ = writeln!(text, "    = {note}");
        return text;
    };
    for (number, line) in around {
        let _ = writeln!(text, "{number:>5} | {line}");
        if number == place.line as usize {
            let indent = " ".repeat(place.column.saturating_sub(1) as usize);
            let _ = writeln!(text, "      | {indent}^ {note}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::cut_around;

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
