//! Which test is meant.

use std::fmt::Write as _;

use crate::exit::Failure;

/// More names than this help nobody.
const SHOWN: usize = 8;

/// Names that are shorter are like every other.
const FEWEST_LETTERS: usize = 3;

/// The whole name of the one test that is meant.
pub fn one<'n>(wanted: &str, names: &'n [String]) -> Result<&'n str, Failure> {
    let whole: Vec<&String> = names.iter().filter(|name| *name == wanted).collect();
    let ends = |name: &&String| name.strip_suffix(wanted).is_some_and(|path| path.ends_with("::"));
    let found = if whole.is_empty() { names.iter().filter(ends).collect() } else { whole };
    match &found[..] {
        [one] => Ok(one),
        [] => Err(unknown(wanted, names)),
        several => Err(ambiguous(wanted, several)),
    }
}

/// The arguments of a test binary that choose one test of all. rustdoc takes the name of a documentation test
/// (`src/lib.rs - Lock (line 9)`) apart at its spaces: such a test is chosen by its line, and what others have in their
/// names is left out.
pub fn filter<'n>(test: &'n str, names: &'n [String]) -> Vec<&'n str> {
    if !test.contains(' ') {
        return vec![test, "--exact"];
    }
    let line = test.split_whitespace().rfind(|part| part.ends_with(')')).unwrap_or(test);
    let others = names.iter().filter(|name| name.contains(line));
    let mut foreign: Vec<&str> =
        others.filter_map(|name| name.split_whitespace().find(|part| !test.contains(part))).collect();
    foreign.sort_unstable();
    foreign.dedup();
    std::iter::once(line).chain(foreign.into_iter().flat_map(|part| ["--skip", part])).collect()
}

fn ambiguous(wanted: &str, several: &[&String]) -> Failure {
    let is_same = several.iter().all(|name| *name == several[0]);
    let help = if is_same {
        "choose the target behind `--`: `--lib`, or `--test FILE`; or the package".to_owned()
    } else {
        format!("give the whole path of one of them:{}", listed(several.iter().map(|name| name.as_str())))
    };
    Failure::Usage { message: format!("{} tests are called `{wanted}`", several.len()), help }
}

fn unknown(wanted: &str, names: &[String]) -> Failure {
    if names.is_empty() {
        let message = "there are no tests in this package".to_owned();
        let help = "if a flag or a feature turns them on, set RUSTFLAGS=\"--cfg …\", or give `-- --features …`; `--package` \
                    chooses another package";
        return Failure::Usage { message, help: help.to_owned() };
    }
    let mut close: Vec<(usize, &str)> =
        names.iter().filter_map(|name| Some((likeness(wanted, name)?, name.as_str()))).collect();
    close.sort_unstable();
    let help = if close.is_empty() {
        let tests = if names.len() == 1 { "test" } else { "tests" };
        format!(
            "none of its {} {tests} has a name like that; `--package` chooses another package, and what follows `--` goes to \
             `cargo test`",
            names.len()
        )
    } else {
        format!("these have names like it:{}", listed(close.into_iter().map(|(_, name)| name)))
    };
    Failure::Usage { message: format!("there is no test `{wanted}`"), help }
}

/// One on each line.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.collect();
    let more = names.len().saturating_sub(SHOWN);
    let mut text = String::new();
    for name in names.iter().take(SHOWN) {
        let _ = write!(text, "\n       {name}");
    }
    if more > 0 {
        let _ = write!(text, "\n       … and {more} more");
    }
    text
}

/// How far a name is from the one that is wanted, if it is near: a part of it, or a few letters away.
fn likeness(wanted: &str, name: &str) -> Option<usize> {
    let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
    let last = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
    let (its_end, wanted_end) = (last(&name), last(&wanted));
    if wanted_end.chars().count() < FEWEST_LETTERS {
        return None;
    }
    if its_end.contains(&wanted_end) || name.contains(&wanted) {
        return Some(0);
    }
    let distance = letters_apart(&wanted_end, &its_end);
    (distance <= 2.max(wanted_end.chars().count() / 4)).then_some(distance)
}

/// Letters to be changed, added or left out.
fn letters_apart(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], index + 1);
        for (column, known) in other.iter().enumerate() {
            let changed = before + usize::from(letter != *known);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<String> {
        ["a::tests::excludes", "b::tests::excludes", "b::tests::passes", "loom_excludes"].map(str::to_owned).to_vec()
    }

    fn refused(wanted: &str, names: &[String]) -> (String, String) {
        match one(wanted, names) {
            Err(Failure::Usage { message, help }) => (message, help),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_test_may_be_named_by_its_end() {
        assert_eq!(one("passes", &names()).ok(), Some("b::tests::passes"));
        assert_eq!(one("a::tests::excludes", &names()).ok(), Some("a::tests::excludes"));
        assert_eq!(one("loom_excludes", &names()).ok(), Some("loom_excludes"));
    }

    #[test]
    fn a_documentation_test_is_chosen_by_parts_of_its_name() {
        assert_eq!(filter("b::tests::passes", &names()), ["b::tests::passes", "--exact"]);
        let documented = ["src/a.rs - A (line 5)", "src/a.rs - A (line 15)", "src/b.rs - b::new (line 5)"];
        let documented = documented.map(str::to_owned);
        assert_eq!(filter("src/a.rs - A (line 5)", &documented), ["5)", "--skip", "15)", "--skip", "src/b.rs"]);
        assert_eq!(filter("src/a.rs - A (line 15)", &documented), ["15)"]);
    }

    #[test]
    fn several_tests_are_listed() {
        let (message, help) = refused("excludes", &names());
        assert_eq!(message, "2 tests are called `excludes`");
        assert!(help.ends_with("\n       a::tests::excludes\n       b::tests::excludes"), "{help}");
        let twice = ["x".to_owned(), "x".to_owned()];
        assert!(refused("x", &twice).1.contains("--test FILE"));
    }

    #[test]
    fn what_looks_like_it_is_named() {
        let (message, help) = refused("exclude", &names());
        assert_eq!(message, "there is no test `exclude`");
        assert!(help.contains("loom_excludes") && !help.contains("passes"), "{help}");
        assert_eq!(refused("pases", &names()).1, "these have names like it:\n       b::tests::passes");
        assert!(refused("something_else", &names()).1.starts_with("none of its 4 tests"));
        assert_eq!(refused("x", &[]).0, "there are no tests in this package");
    }
}
