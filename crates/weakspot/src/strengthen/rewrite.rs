//! A line of the source as it should read.

use super::Change;
use crate::failure::SourcePlace;
use crate::source;

/// The line with another ordering, or the fence that is to stand before it. `None` if the source is not there or the line
/// does not name the ordering.
pub(crate) fn rewritten(place: &SourcePlace, change: Change) -> Option<String> {
    rewrite(&source::line(place)?, place.column as usize, change)
}

fn rewrite(line: &str, column: usize, change: Change) -> Option<String> {
    if change == Change::FenceBefore {
        let indent: String = line.chars().take_while(|letter| letter.is_whitespace()).collect();
        return Some(format!("{indent}fence(Ordering::SeqCst);"));
    }
    let call = line.char_indices().nth(column - 1)?.0;
    let open = call + line[call..].find('(')?;
    let method = line[call..open].rsplit("::").next().unwrap_or_default().trim();
    let (from, to) = argument(line, open + 1, position_of_ordering(method, change))?;
    let old =
        ["Relaxed", "Acquire", "Release", "AcqRel"].into_iter().find(|name| line[from..to].trim().ends_with(name))?;
    let at = from + line[from..to].rfind(old)?;
    let new = match (change, old) {
        (Change::SeqCst, _) => "SeqCst",
        (_, "AcqRel") | (Change::AcqRel, _) | (Change::Release, "Acquire") | (Change::Acquire, "Release") => "AcqRel",
        (Change::Release, _) => "Release",
        _ => "Acquire",
    };
    Some(format!("{}{new}{}", &line[..at], &line[at + old.len()..]))
}

/// Which argument of an atomic's method is its ordering (of success, where there are two), or that of a fence.
fn position_of_ordering(method: &str, change: Change) -> usize {
    let is_second = usize::from(change == Change::AcquireOnFailure);
    match method {
        "compare_exchange" | "compare_exchange_weak" => 2 + is_second,
        "fetch_update" | "try_update" | "update" => is_second,
        "compare_and_swap" => 2,
        "load" | "fence" => 0,
        _ => 1,
    }
}

/// Where an argument of a call is, if the line has all of it.
fn argument(line: &str, start: usize, position: usize) -> Option<(usize, usize)> {
    let (mut depth, mut number, mut from) = (0_i32, 0, start);
    for (at, letter) in line[start..].char_indices().map(|(at, letter)| (start + at, letter)) {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return (number == position).then_some((from, at)),
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                if number == position {
                    return Some((from, at));
                }
                number += 1;
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Change, rewrite};

    fn changed(line: &str, method: &str, change: Change) -> Option<String> {
        let column = line.find(method).map_or(1, |at| at + 1);
        rewrite(line, column, change)
    }

    #[test]
    fn the_ordering_of_a_store_becomes_stronger() {
        let line = "    x[f(1, 2)].store(g(a, b), Ordering::Relaxed); // Relaxed";
        let new = changed(line, "store", Change::SeqCst);
        assert_eq!(new.as_deref(), Some("    x[f(1, 2)].store(g(a, b), Ordering::SeqCst); // Relaxed"));
    }

    #[test]
    fn the_ordering_of_success_is_meant() {
        let line = "x.compare_exchange(a, b, Acquire, Relaxed)";
        let new = changed(line, "compare_exchange", Change::Release);
        assert_eq!(new.as_deref(), Some("x.compare_exchange(a, b, AcqRel, Relaxed)"));
    }

    #[test]
    fn the_ordering_of_failure_is_the_second() {
        let line = "x.compare_exchange(a, b, Acquire, Ordering::Relaxed)";
        let new = changed(line, "compare_exchange", Change::AcquireOnFailure);
        assert_eq!(new.as_deref(), Some("x.compare_exchange(a, b, Acquire, Ordering::Acquire)"));
        let new = changed("x.fetch_update(Release, Relaxed, next)", "fetch_update", Change::AcquireOnFailure);
        assert_eq!(new.as_deref(), Some("x.fetch_update(Release, Acquire, next)"));
    }

    #[test]
    fn what_an_ordering_does_already_stays() {
        for (change, old, then) in [
            (Change::Acquire, "Relaxed", "Acquire"),
            (Change::Acquire, "Release", "AcqRel"),
            (Change::Release, "Relaxed", "Release"),
            (Change::Release, "AcqRel", "AcqRel"),
            (Change::AcqRel, "Relaxed", "AcqRel"),
        ] {
            let new = changed(&format!("x.swap(1, {old});"), "swap", change);
            assert_eq!(new, Some(format!("x.swap(1, {then});")), "{change:?}");
        }
        let new = changed("    atomic::fence(Acquire);", "atomic", Change::AcqRel);
        assert_eq!(new.as_deref(), Some("    atomic::fence(AcqRel);"));
    }

    #[test]
    fn an_ordering_that_the_line_does_not_name_is_left_alone() {
        assert_eq!(changed("x.compare_exchange(a, b, ORDER, Relaxed)", "compare_exchange", Change::Release), None);
        assert_eq!(changed("x.store(", "store", Change::SeqCst), None);
        assert_eq!(changed("x.store(1, order)", "store", Change::SeqCst), None);
    }

    #[test]
    fn a_fence_stands_before_the_line() {
        let new = changed("        y.load(Acquire)", "load", Change::FenceBefore);
        assert_eq!(new.as_deref(), Some("        fence(Ordering::SeqCst);"));
    }
}
