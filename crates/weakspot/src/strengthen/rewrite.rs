//! A line of the source as it should read.
//!
//! What stands in the source is not parsed: a call is followed from its name to its end, over several lines if need be, and a fence has
//! to stand before the statement that a load is in. Where that cannot be told from the lines, nothing is said: a change that stands
//! elsewhere than where it was tried out would be another one.

use super::Change;
use crate::failure::SourcePlace;
use crate::source;

/// A line as it should read, or a fence that is to stand before a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NewLine {
    /// Which line.
    pub(crate) row: u32,
    pub(crate) text: String,
}

/// Lines that a call may take.
const MOST_LINES: usize = 40;

/// The line with another ordering, or the fence. `None` if the source is not there, does not name the ordering, or has no place for
/// the fence.
pub(crate) fn rewritten(place: &SourcePlace, change: Change) -> Option<NewLine> {
    source::with_file(&place.file, |lines| rewrite(lines, place.line as usize - 1, place.column as usize, change))
        .flatten()
}

fn rewrite(lines: &[String], row: usize, column: usize, change: Change) -> Option<NewLine> {
    let call = lines.get(row)?.char_indices().nth(column - 1)?.0;
    if change == Change::FenceBefore {
        let row = statement(lines, row, call)?;
        let indent: String = lines[row].chars().take_while(|letter| letter.is_whitespace()).collect();
        return Some(NewLine { row: row as u32 + 1, text: format!("{indent}fence(Ordering::SeqCst);") });
    }
    let text = lines[row..lines.len().min(row + MOST_LINES)].join("\n");
    let code = only_code(&text);
    let open = call + code[call..].find('(')?;
    let method = code[call..open].rsplit("::").next().unwrap_or_default().trim();
    let (from, to) = argument(&code, open + 1, position_of_ordering(method, change))?;
    let named = code[from..to].trim_end();
    let old = ["Relaxed", "Acquire", "Release", "AcqRel"].into_iter().find(|name| named.ends_with(name))?;
    let at = from + named.len() - old.len();
    let new = match (change, old) {
        (Change::SeqCst, _) => "SeqCst",
        (_, "AcqRel") | (Change::AcqRel, _) | (Change::Release, "Acquire") | (Change::Acquire, "Release") => "AcqRel",
        (Change::Release, _) => "Release",
        _ => "Acquire",
    };
    let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let text_of_line = format!("{}{new}{}", &text[begin..at], &text[at + old.len()..end]);
    let further = text[..at].matches('\n').count();
    Some(NewLine { row: (row + further) as u32 + 1, text: text_of_line })
}

/// The first line of the statement that a call in this line is in, if a statement can stand before it that comes right before the
/// call.
fn statement(lines: &[String], row: usize, call: usize) -> Option<usize> {
    let code = only_code(&lines[row]);
    let mut before = code[..call].to_owned();
    let mut first = row;
    loop {
        let line = only_code(&lines[first]);
        let line = line.trim();
        let above = (0..first).rev().find(|&above| !only_code(&lines[above]).trim().is_empty())?;
        let line_above = only_code(&lines[above]);
        let line_above = line_above.trim();
        let is_attribute = line_above.starts_with("#[");
        // A part of something that has a beginning of its own, which is not looked for.
        if line.starts_with(['}', ')', ']'])
            || line.starts_with("else")
            || line_above.ends_with(',')
            || line_above.ends_with("=>")
        {
            return None;
        }
        if !is_attribute && line_above.ends_with([';', '{', '}']) {
            break;
        }
        if !is_attribute {
            before.insert_str(0, &format!("{line_above} "));
        }
        first = above;
    }
    let before: String = before.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_closure = before.match_indices('|').any(|(at, _)| {
        let lead = before[..at].trim_end();
        lead.is_empty() || lead.ends_with(['(', ',', '=']) || lead.ends_with("move")
    });
    let is_apart =
        before.contains([';', '{']) || before.contains("=>") || before.split(' ').any(|word| word == "while");
    // Nothing but a part of an expression ends so: an argument, a field, an arm of a `match`.
    let is_part = only_code(&lines[first]).trim_end().ends_with(',');
    (!is_closure && !is_apart && !is_part).then_some(first)
}

/// The text with blanks in place of comments and of what stands between quotation marks, as long as it was.
fn only_code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let words = length_of_words(rest);
        let (part, behind) = rest.split_at(words.unwrap_or(letter.len_utf8()));
        match words {
            Some(_) => code.extend(part.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' })),
            None => code.push(letter),
        }
        rest = behind;
    }
    code
}

/// How long the comment or the quotation is that a text begins with.
fn length_of_words(text: &str) -> Option<usize> {
    let end = |from: usize, mark: &str| text[from..].find(mark).map_or(text.len(), |at| from + at + mark.len());
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(end(2, "*/"));
    }
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.bytes().take_while(|&byte| byte == b'#').count();
        return raw[hashes..].starts_with('"').then(|| end(hashes + 2, &format!("\"{}", "#".repeat(hashes))));
    }
    let quotes = text.bytes().next().filter(|byte| matches!(byte, b'"' | b'\''))?;
    // Of a lifetime there is nothing to skip.
    let is_lifetime =
        quotes == b'\'' && !text[1..].starts_with('\\') && text[1..].chars().nth(1).is_none_or(|next| next != '\'');
    let mut is_escaped = false;
    let closes = |byte: u8| {
        let closes = byte == quotes && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    };
    (!is_lifetime).then(|| text.bytes().skip(1).position(closes).map_or(text.len(), |at| at + 2))
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

/// Where an argument of a call is, if the text has all of it.
fn argument(text: &str, start: usize, position: usize) -> Option<(usize, usize)> {
    let (mut depth, mut number, mut from) = (0_i32, 0, start);
    for (at, letter) in text[start..].char_indices().map(|(at, letter)| (start + at, letter)) {
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
    use super::{Change, NewLine, only_code, rewrite};

    /// What becomes of a text at the first place of a word.
    fn changed_in(text: &str, word: &str, change: Change) -> Option<NewLine> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let (row, at) = lines.iter().enumerate().find_map(|(row, line)| Some((row, line.find(word)?)))?;
        rewrite(&lines, row, lines[row][..at].chars().count() + 1, change)
    }

    /// The same of one line.
    fn changed(line: &str, method: &str, change: Change) -> Option<String> {
        changed_in(line, method, change).map(|new| new.text)
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
    fn a_call_may_take_several_lines() {
        let text = "let x = self
    .state
    .compare_exchange_weak(
        f(a, ')'), // Relaxed, (
        \"b, c\",
        Ordering::Relaxed, // of success
        Ordering::Relaxed,
    );";
        let new = |row, text: &str| Some(NewLine { row, text: text.to_owned() });
        let then = new(6, "        Ordering::Release, // of success");
        assert_eq!(changed_in(text, "compare", Change::Release), then);
        assert_eq!(changed_in(text, "compare", Change::AcquireOnFailure), new(7, "        Ordering::Acquire,"));
        let text = "ä.store(\n    1, Relaxed);";
        assert_eq!(changed_in(text, "store", Change::SeqCst), new(2, "    1, SeqCst);"));
    }

    #[test]
    fn a_fence_stands_before_the_statement() {
        for (text, row, indent) in [
            ("fn f() {\n        y.load(Acquire)\n}", 2, 8),
            ("    f();\n\n    // Looks.\n    let x = self\n        .tail\n        .load(Acquire);", 4, 4),
            ("    }\n    if a ||\n        y.load(Acquire) == 1 {", 2, 4),
            ("    ;\n    #[allow(unused)]\n    let x = y.load(Acquire);", 2, 4),
            ("    g();\n    assert_eq!(y.load(Acquire), 1);", 2, 4),
        ] {
            let fence = format!("{}fence(Ordering::SeqCst);", " ".repeat(indent));
            assert_eq!(changed_in(text, "load", Change::FenceBefore), Some(NewLine { row, text: fence }), "{text}");
        }
    }

    #[test]
    fn where_no_statement_can_stand_right_before_it_there_is_no_fence() {
        for text in [
            // Every round has to pass it.
            "f();\nwhile y.load(Acquire) == 0 {}",
            "f();\nlet read = || y.load(Acquire);",
            "f();\nlet read = move |y: &AtomicUsize| y.load(Acquire);",
            "f();\nx.store(1, Relaxed); y.load(Acquire);",
            "f();\nif a { y.load(Acquire); }",
            "match f() {\n    1 => y.load(Acquire),\n}",
            "match f() {\n    1 =>\n        y.load(Acquire),\n}",
            "if a {\n} else if y.load(Acquire) == 1 {\n}",
            "Seen {\n    y: y.load(Acquire),\n}",
            "f(\n    1,\n    y.load(Acquire),\n)",
            // Nobody knows what stands above.
            "y.load(Acquire)",
        ] {
            assert_eq!(changed_in(text, "load", Change::FenceBefore), None, "{text}");
        }
    }

    #[test]
    fn words_are_blanked() {
        for (text, code) in [
            ("f('\\'', '(', \"\\\")\", 'a) // \"", "f(    ,    ,      , 'a)     "),
            ("a /* ( */ b r#\"\"(\"# 'é'", "a         b           "),
            ("\"open", "     "),
            ("x\n// (\ny", "x\n    \ny"),
        ] {
            let blank = only_code(text);
            assert_eq!((blank.trim_end(), blank.len()), (code.trim_end(), text.len()), "{text}");
        }
    }
}
