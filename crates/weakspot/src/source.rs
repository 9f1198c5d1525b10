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

/// The line of a place.
pub(crate) fn line(place: &SourcePlace) -> Option<String> {
    with_file(&place.file, |lines| lines.get(place.line as usize - 1).cloned()).flatten()
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
