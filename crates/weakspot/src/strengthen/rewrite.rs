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
    let code = only_code(&lines.join("\n"));
    if change == Change::FenceBefore {
        let code: Vec<&str> = code.lines().collect();
        let row = statement(&code, row, call)?;
        let indent: String = lines[row].chars().take_while(|letter| letter.is_whitespace()).collect();
        return Some(NewLine { row: row as u32 + 1, text: format!("{indent}fence(Ordering::SeqCst);") });
    }
    let start: usize = lines[..row].iter().map(|line| line.len() + 1).sum();
    let length = lines[row..].iter().take(MOST_LINES).map(|line| line.len() + 1).sum::<usize>() - 1;
    let (text, code) = (lines[row..].join("\n"), &code[start..start + length]);
    let open = call + code[call..].find('(')?;
    let path = code[call..open].trim();
    let method = path.rsplit("::").next().unwrap_or_default().trim();
    if path.ends_with('!') {
        return None;
    }
    // Called by its path, it is given the atomic first.
    let is_path = path.contains("::") && !method.ends_with("fence");
    let (from, to) = argument(code, open + 1, position_of_ordering(method, change) + usize::from(is_path))?;
    let named = code[from..to].trim_end();
    let name = named.rsplit(|letter: char| letter != '_' && !letter.is_alphanumeric()).next()?;
    let old = ["Relaxed", "Acquire", "Release", "AcqRel"].into_iter().find(|&old| old == name)?;
    let at = from + named.len() - old.len();
    let new = match (change, old) {
        (Change::SeqCst, _) => "SeqCst",
        (_, "AcqRel") | (Change::AcqRel, _) | (Change::Release, "Acquire") | (Change::Acquire, "Release") => "AcqRel",
        (Change::Release, _) => "Release",
        _ => "Acquire",
    };
    let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
    let line = format!("{}{new}{}", &text[begin..at], &text[at + old.len()..end]);
    let further = text[..at].matches('\n').count();
    Some(NewLine { row: (row + further) as u32 + 1, text: line })
}

/// The first line of the statement that a load in this line is in, if a fence that stands before that statement does what one right
/// before the load would do: nothing comes between the two that may store, and there is no way around it.
fn statement(code: &[&str], row: usize, call: usize) -> Option<usize> {
    let mut before = code[row][..call].to_owned();
    let mut first = row;
    loop {
        let line = code[first].trim();
        let above = (0..first).rev().find(|&above| !code[above].trim().is_empty())?;
        let line_above = code[above].trim();
        // A part of something that has a beginning of its own, which is not looked for.
        let ends_a_part = line_above.ends_with(',') || line_above.ends_with("=>");
        if ends_a_part || line.starts_with(['}', ')', ']']) || line.starts_with("else") {
            return None;
        }
        if line_above.starts_with("#[") {
            first = above;
            continue;
        }
        if line_above.ends_with([';', '{', '}']) {
            // What goes on behind a block is no statement of its own.
            let goes_on = line.starts_with(|letter: char| letter.is_ascii_punctuation() && letter != '_')
                || line.starts_with("as ");
            if line_above.ends_with('}') && goes_on {
                return None;
            }
            break;
        }
        before.insert_str(0, &format!("{line_above} "));
        first = above;
    }
    let rest = code[row][call..].chars().chain(code[row + 1..].iter().flat_map(|line| line.chars()));
    let rest: String = rest.take_while(|&letter| letter != ';' && letter != '{').collect();
    let is_call = rest.split_once('(').is_some_and(|(name, _)| name.chars().all(is_of_word));
    // An argument, a field, an arm of a `match` or its guard.
    let is_part = code[first].trim_end().ends_with(',') || rest.contains("=>") || names_a_field(code[first]);
    (is_call && !is_part && is_harmless(&before)).then_some(first)
}

fn is_of_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

/// Does a line begin with the name of a field, and what it is?
fn names_a_field(line: &str) -> bool {
    let behind = line.trim().trim_start_matches(is_of_word).trim_start();
    behind.starts_with(':') && !behind.starts_with("::")
}

/// Can nothing that comes before a load in its statement store, or lead past a fence? Other loads and what only looks at values may
/// stand there.
fn is_harmless(before: &str) -> bool {
    let words = || before.split(|letter| !is_of_word(letter));
    let is_closure = before.match_indices('|').any(|(at, _)| {
        let lead = before[..at].trim_end();
        lead.is_empty() || lead.ends_with(['(', ',', '=']) || lead.ends_with("move")
    });
    let calls = |(at, _): (usize, &str)| {
        let lead = before[..at].trim_end();
        let word = &lead[lead.trim_end_matches(is_of_word).len()..];
        let is_macro = lead.ends_with('!');
        let name = lead.trim_end_matches('!');
        let asserts = ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"];
        if is_macro {
            return !asserts.contains(&&name[name.trim_end_matches(is_of_word).len()..]);
        }
        !matches!(word, "" | "load" | "if" | "match" | "return" | "let" | "in" | "Some" | "Ok" | "Err")
            || lead.ends_with([')', ']', '>'])
    };
    let is_apart = before.contains([';', '{']) || before.contains("=>") || words().any(|word| word == "while");
    !is_closure && !is_apart && !before.match_indices('(').any(calls)
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
        return Some(length_of_comment(text));
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

/// Comments may stand in comments.
fn length_of_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
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
            ("    ;\n    return (x.load(Acquire), self.all[1 - me].y.load(Acquire));", 2, 4),
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
            // Something may be stored after the fence.
            "f();\nannounce(me) && y.load(Acquire) == 0;",
            "f();\nif announce(me)\n    && y.load(Acquire) == 0\n{",
            "f();\nlet (_, seen) = (announce(me), y.load(Acquire));",
            "f();\nwhole!(y, 1).load(Acquire);",
            "f();\nwhile(y.load(Acquire) == 0) {}",
            // What goes on there is no statement.
            "f();\nlet x = unsafe {\n    p\n}\n.load(Acquire);",
            "f();\nlet x = if c { 1 } else { 0 }\n    + y.load(Acquire);",
            "match f() {\n    Some(x) if y.load(Acquire) == x => {",
            "match f() {\n    1 => {}\n    Some(x) if y.load(Acquire)\n        == x => {",
            "Seen {\n    y: y.load(Acquire)\n}",
            // Nobody knows what stands above.
            "y.load(Acquire)",
        ] {
            assert_eq!(changed_in(text, "load", Change::FenceBefore), None, "{text}");
        }
    }

    #[test]
    fn a_fence_stands_in_no_comment_and_no_string() {
        let text = "    f();\n    let x = /* a\n    b;\n    */ y.load(Acquire);";
        let fence = NewLine { row: 2, text: "    fence(Ordering::SeqCst);".to_owned() };
        assert_eq!(changed_in(text, "load", Change::FenceBefore), Some(fence));
        let text = "    f();\n    let x = (\"one;\n    two;\n    three\", y.load(Acquire));";
        assert_eq!(changed_in(text, "load", Change::FenceBefore).map(|new| new.row), Some(2));
    }

    #[test]
    fn what_is_called_by_its_path_has_one_more_argument() {
        let new = changed("AtomicUsize::store(&x, 1, Relaxed)", "AtomicUsize", Change::Release);
        assert_eq!(new.as_deref(), Some("AtomicUsize::store(&x, 1, Release)"));
        let line = "AtomicUsize::compare_exchange(&x, 0, 1, Relaxed, Relaxed)";
        let new = changed(line, "AtomicUsize", Change::AcquireOnFailure);
        assert_eq!(new.as_deref(), Some("AtomicUsize::compare_exchange(&x, 0, 1, Relaxed, Acquire)"));
        assert_eq!(changed("x.store(1, MyRelaxed)", "store", Change::Release), None);
        assert_eq!(changed("put!(x, Relaxed)", "put", Change::Release), None);
    }

    #[test]
    fn words_are_blanked() {
        for (text, code) in [
            ("f('\\'', '(', \"\\\")\", 'a) // \"", "f(    ,    ,      , 'a)     "),
            ("a /* ( /* ( */ ) */ b", "a                   b"),
            ("a /* ( */ b r#\"\"(\"# 'é'", "a         b           "),
            ("\"open", "     "),
            ("x\n// (\ny", "x\n    \ny"),
        ] {
            let blank = only_code(text);
            assert_eq!((blank.trim_end(), blank.len()), (code.trim_end(), text.len()), "{text}");
        }
    }
}
