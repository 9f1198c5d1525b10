//! Unified diffs of two texts.
//!
//! Lines are compared with the greedy algorithm of Myers (1986), whose cost is the length of the texts times the number
//! of changed lines.

use std::fmt::Write as _;
use std::ops::Range;

use crate::style::{Line, Role, Style};

/// Unchanged lines around a change.
const CONTEXT: usize = 3;

/// One line of the way from the old text to the new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    /// In both: index in the old and in the new text.
    Keep(usize, usize),
    /// Only in the old text.
    Remove(usize),
    /// Only in the new text.
    Insert(usize),
}

/// The diff, empty if the texts are equal. Control characters (and the `\r` of a line ending) are not shown.
pub fn unified(old_name: &str, new_name: &str, old: &str, new: &str, style: &Style) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let edits = edits(&old, &new);
    let hunks = hunks(&edits);
    let mut text = String::new();
    if hunks.is_empty() {
        return text;
    }
    for (mark, name) in [("---", old_name), ("+++", new_name)] {
        let _ = writeln!(text, "{}", Line::of(Role::Heading, format!("{mark} {name}")).render(style));
    }
    for hunk in hunks {
        let head = format!("@@ -{} +{} @@", range(&edits, &hunk, old_line), range(&edits, &hunk, new_line));
        let _ = writeln!(text, "{}", Line::of(Role::Visible, head).render(style));
        for edit in &edits[hunk] {
            let (role, mark, line) = match *edit {
                Edit::Keep(_, index) => (Role::Plain, ' ', new[index]),
                Edit::Remove(index) => (Role::Failure, '-', old[index]),
                Edit::Insert(index) => (Role::Success, '+', new[index]),
            };
            let shown = line.replace('\t', "    ");
            let _ = writeln!(text, "{}", Line::of(role, format!("{mark}{shown}")).render(style));
        }
    }
    text
}

fn old_line(edit: Edit) -> Option<usize> {
    match edit {
        Edit::Keep(index, _) | Edit::Remove(index) => Some(index),
        Edit::Insert(_) => None,
    }
}

fn new_line(edit: Edit) -> Option<usize> {
    match edit {
        Edit::Keep(_, index) | Edit::Insert(index) => Some(index),
        Edit::Remove(_) => None,
    }
}

/// `start,length` of one side of a hunk; `start` is the line before it if the length is 0.
fn range(edits: &[Edit], hunk: &Range<usize>, side: fn(Edit) -> Option<usize>) -> String {
    let length = edits[hunk.clone()].iter().filter(|edit| side(**edit).is_some()).count();
    let before = edits[..hunk.start].iter().filter(|edit| side(**edit).is_some()).count();
    let start = before + usize::from(length > 0);
    if length == 1 { start.to_string() } else { format!("{start},{length}") }
}

/// Changes with their context; hunks that touch are one.
fn hunks(edits: &[Edit]) -> Vec<Range<usize>> {
    let mut hunks: Vec<Range<usize>> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        if matches!(edit, Edit::Keep(..)) {
            continue;
        }
        let around = index.saturating_sub(CONTEXT)..(index + 1 + CONTEXT).min(edits.len());
        match hunks.last_mut() {
            Some(last) if around.start <= last.end => last.end = around.end,
            _ => hunks.push(around),
        }
    }
    hunks
}

/// A shortest way from the old lines to the new ones.
fn edits(old: &[&str], new: &[&str]) -> Vec<Edit> {
    let (length, other) = (old.len() as isize, new.len() as isize);
    let middle = length + other + 1;
    // reach[middle + k]: how far into the old text the best way on diagonal k (old - new) has got
    let mut reach = vec![0_isize; 2 * middle as usize + 1];
    let mut history = Vec::new();
    'search: for distance in 0..=length + other {
        history.push(reach[(middle - distance - 1) as usize..=(middle + distance + 1) as usize].to_vec());
        for diagonal in (-distance..=distance).step_by(2) {
            let at = |diagonal: isize| (middle + diagonal) as usize;
            let down =
                diagonal == -distance || diagonal != distance && reach[at(diagonal - 1)] < reach[at(diagonal + 1)];
            let mut x = if down { reach[at(diagonal + 1)] } else { reach[at(diagonal - 1)] + 1 };
            while x < length && x - diagonal < other && old[x as usize] == new[(x - diagonal) as usize] {
                x += 1;
            }
            reach[at(diagonal)] = x;
            if x >= length && x - diagonal >= other {
                break 'search;
            }
        }
    }
    walk_back(length, other, &history)
}

fn walk_back(length: isize, other: isize, history: &[Vec<isize>]) -> Vec<Edit> {
    let (mut x, mut y) = (length, other);
    let mut edits = Vec::new();
    for (distance, reach) in history.iter().enumerate().rev() {
        let distance = distance as isize;
        let at = |diagonal: isize| (diagonal + distance + 1) as usize;
        let diagonal = x - y;
        let down = diagonal == -distance || diagonal != distance && reach[at(diagonal - 1)] < reach[at(diagonal + 1)];
        let previous = if distance == 0 {
            0
        } else if down {
            reach[at(diagonal + 1)]
        } else {
            reach[at(diagonal - 1)] + 1
        };
        while x > previous && y > 0 {
            x -= 1;
            y -= 1;
            edits.push(Edit::Keep(x as usize, y as usize));
        }
        if distance > 0 && down {
            y -= 1;
            edits.push(Edit::Insert(y as usize));
        } else if distance > 0 {
            x -= 1;
            edits.push(Edit::Remove(x as usize));
        }
    }
    edits.reverse();
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        unified("a", "b", old, new, &Style::plain())
    }

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(diff("x\ny\n", "x\ny\n"), "");
    }

    #[test]
    fn a_line_is_shown_with_three_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\n5\nnew\n6\n7\n8\n9\n";
        assert_eq!(diff(old, new), "--- a\n+++ b\n@@ -3,6 +3,7 @@\n 3\n 4\n 5\n+new\n 6\n 7\n 8\n");
    }

    #[test]
    fn changes_far_apart_are_two_hunks_and_ends_are_handled() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
        let new = "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\nX\n";
        let expected = "--- a\n+++ b\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -7,4 +8,4 @@\n 7\n 8\n 9\n-10\n+X\n";
        assert_eq!(diff(old, new), expected);
        assert_eq!(diff("", "x\n"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
        assert_eq!(diff("x\n", ""), "--- a\n+++ b\n@@ -1 +0,0 @@\n-x\n");
    }

    #[test]
    fn applying_the_edits_gives_the_new_text() {
        let texts = ["", "a", "a b c", "b a c", "a a b b", "c c c", "x a y b z", "a b a b a b"];
        for old in texts {
            for new in texts {
                let (old, new): (Vec<&str>, Vec<&str>) = (old.split(' ').collect(), new.split(' ').collect());
                let edits = edits(&old, &new);
                let from_old: Vec<&str> =
                    edits.iter().filter_map(|edit| old_line(*edit)).map(|index| old[index]).collect();
                let made: Vec<&str> = edits
                    .iter()
                    .filter_map(|edit| match *edit {
                        Edit::Keep(index, _) => Some(old[index]),
                        Edit::Insert(index) => Some(new[index]),
                        Edit::Remove(_) => None,
                    })
                    .collect();
                assert_eq!((from_old, made), (old, new));
            }
        }
    }
}
