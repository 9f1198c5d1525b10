//! The text of a file with changes made.

use std::ops::Range;

use super::record::{Change, Strengthening};

/// The text with the changes whose lines are known. Lines keep their ends.
pub fn edited(text: &str, changes: &[&Change]) -> String {
    let mut edited = String::with_capacity(text.len());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let here = |change: &&&Change| change.row as usize == index + 1;
        let here: Vec<&Change> = changes.iter().filter(here).copied().collect();
        let content = line.trim_end_matches(['\r', '\n']);
        let end = &line[content.len()..];
        let (fences, orderings): (Vec<&Change>, Vec<&Change>) =
            here.iter().partition(|change| change.how == Strengthening::FenceBefore);
        if let Some(fence) = fences.iter().find_map(|change| change.line.as_ref()) {
            edited.push_str(fence);
            edited.push_str(if end.is_empty() { "\n" } else { end });
        }
        edited.push_str(&with_orderings(content, &orderings));
        edited.push_str(end);
    }
    edited
}

/// A line with several orderings changed: each change knows the line with its own ordering only.
fn with_orderings(line: &str, changes: &[&Change]) -> String {
    let mut edits: Vec<(Range<usize>, &str)> =
        changes.iter().filter_map(|change| change.line.as_ref()).map(|new| difference(line, new)).collect();
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    // Of two changes of one ordering the line shows the first.
    edits.dedup_by(|later, earlier| later.0.end > earlier.0.start);
    let mut text = line.to_owned();
    for (range, new) in edits {
        text.replace_range(range, new);
    }
    text
}

/// What of the old line is replaced, and by what.
fn difference<'n>(old: &str, new: &'n str) -> (Range<usize>, &'n str) {
    let same = old.chars().zip(new.chars()).take_while(|(one, other)| one == other);
    let start: usize = same.map(|(letter, _)| letter.len_utf8()).sum();
    let same = old[start..].chars().rev().zip(new[start..].chars().rev()).take_while(|(one, other)| one == other);
    let end: usize = same.map(|(letter, _)| letter.len_utf8()).sum();
    (start..old.len() - end, &new[start..new.len() - end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::record::CodePlace;

    fn change(how: Strengthening, line: u32, new: &str) -> Change {
        let place = CodePlace { file: "a.rs".to_owned(), line, column: 1 };
        Change { place, how, says_ordering: true, path: None, line: Some(new.to_owned()), row: line }
    }

    #[test]
    fn lines_are_replaced_and_fences_stand_before_theirs() {
        let (store, fence) = (change(Strengthening::SeqCst, 1, "A"), change(Strengthening::FenceBefore, 2, "fence"));
        let last = change(Strengthening::Release, 3, "C");
        assert_eq!(edited("a\nb\nc", &[&store, &fence, &last]), "A\nfence\nb\nC");
        assert_eq!(edited("a\r\nb\r\n", &[&store, &fence]), "A\r\nfence\r\nb\r\n");
    }

    #[test]
    fn two_orderings_of_a_line_are_both_changed() {
        let line = "x.store(1, Relaxed); y.store(1, Relaxed); // ü";
        let first = change(Strengthening::SeqCst, 1, &line.replacen("Relaxed", "SeqCst", 1));
        let second = change(Strengthening::Release, 1, "x.store(1, Relaxed); y.store(1, Release); // ü");
        assert_eq!(edited(line, &[&first, &second]), "x.store(1, SeqCst); y.store(1, Release); // ü");
    }

    #[test]
    fn what_is_not_there_is_left_alone() {
        let (beyond, nowhere) = (change(Strengthening::SeqCst, 9, "x"), change(Strengthening::SeqCst, 0, "x"));
        let unknown = Change { line: None, ..change(Strengthening::SeqCst, 1, "x") };
        assert_eq!(edited("a\n", &[&beyond, &nowhere, &unknown]), "a\n");
    }
}
