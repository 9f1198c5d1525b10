//! No input may panic, overflow the stack or take more than linear time.

#![allow(clippy::unwrap_used, clippy::format_push_string, clippy::format_collect)]

use proptest::prelude::*;
use weakspot_front::weak;
use weakspot_model::source::SourceFile;

/// Compiles and formats; gives the codes of the errors.
fn codes(text: impl Into<String>) -> Vec<&'static str> {
    let source = SourceFile::new("test.weak", text);
    let formatted = weak::format(&source);
    match weak::compile(&source) {
        Ok(_) => {
            assert!(formatted.is_ok());
            Vec::new()
        }
        Err(errors) => {
            assert!(errors.len() <= 51, "the number of errors is limited");
            errors.iter().map(|error| error.code).collect()
        }
    }
}

#[test]
fn deep_nesting_is_refused_once() {
    let deep = 100_000;
    for (open, close) in
        [("(", ")"), ("!", ""), ("- ", ""), ("a[", "]"), ("f(", ")"), ("choose(0..=", ")"), ("1 + (", ")")]
    {
        let text = format!(
            "shared a[2]; fn f(p) {{ return p; }} thread t {{ let r = {}1{}; }}",
            open.repeat(deep),
            close.repeat(deep)
        );
        assert_eq!(codes(text), ["too-deep"], "{open}");
    }
    for block in ["loop { ", "if a[0] { ", "while a[0] == 1 { ", "critical { "] {
        let text = format!("shared a[2]; thread t {{ {}{} }}", block.repeat(deep), "}".repeat(deep));
        assert_eq!(codes(text), ["too-deep"], "{block}");
    }
}

#[test]
fn nesting_up_to_the_limit_is_fine() {
    let text = |blocks: usize, parentheses: usize| {
        let (open, close) = ("if x { ".repeat(blocks), "}".repeat(blocks));
        let value = format!("{}x{}", "-(1 + ".repeat(parentheses), ")".repeat(parentheses));
        format!("shared x; thread t {{ {open} x = {value}; {close} }}")
    };
    assert_eq!(codes(text(250, 0)), [""; 0]);
    assert_eq!(codes(text(10, 80)), [""; 0]);
    assert_eq!(codes(text(10, 130)), ["too-deep"]);
}

#[test]
fn left_operands_count_as_nesting_too() {
    // every level is a chain in the leftmost operand of a chain in the leftmost operand …
    let text =
        format!("shared x; thread t {{ let r = {}x{}; }}", "(".repeat(200), " * 2 + 1 < 3 && 1 || 1)".repeat(200));
    assert_eq!(codes(text), ["too-deep"]);
}

#[test]
fn long_chains_are_not_deep() {
    let many = 300_000;
    assert_eq!(codes(format!("shared a; thread t {{ let r = 1{}; a = r; }}", "+1".repeat(1_000_000))), [""; 0]);
    assert_eq!(codes(format!("shared a; thread t {{ let r = a{}; }}", "+a".repeat(1_000_000))), ["too-large"]);
    assert_eq!(codes(format!("shared a; thread t {{ if a{} {{ a = 1; }} }}", "||a".repeat(many))), [""; 0]);
    let arms = " else if a == 1 { skip; }".repeat(100_000);
    assert_eq!(codes(format!("shared a; thread t {{ if a == 0 {{ skip; }}{arms} }}")), [""; 0]);
}

#[test]
fn calls_of_calls_do_not_explode() {
    let doubling = |levels: usize, leaf: &str| {
        let mut text = format!("shared x; fn f0() {{ {leaf} }}\n");
        for level in 1..levels {
            text += &format!("fn f{level}() {{ f{0}(); f{0}(); }}\n", level - 1);
        }
        text + &format!("thread t {{ f{}(); x = 1; }}", levels - 1)
    };
    assert_eq!(codes(doubling(60, "x = 1;")), ["too-large"]);
    assert_eq!(codes(doubling(60, "skip;")), ["too-large"]);
    assert_eq!(codes(doubling(10, "x = 1;")), [""; 0]);
}

#[test]
fn long_chains_of_calls_are_refused() {
    let mut text = "shared x; fn f0(p) { return p; }\n".to_owned();
    for level in 1..20_000 {
        let deep = ("-(".repeat(40), ")".repeat(40));
        text += &format!("fn f{level}(p) {{ if p {{ if p {{ return {}f{}(p){}; }} }} }}\n", deep.0, level - 1, deep.1);
    }
    text += "thread t { let r = f19999(x); }";
    assert_eq!(codes(text), ["too-large"]);
}

#[test]
fn a_circle_of_many_functions_is_found() {
    let mut text = String::new();
    for number in 0..100_000 {
        text += &format!("fn f{number}() {{ f{}(); }}\n", (number + 1) % 100_000);
    }
    assert_eq!(codes(text + "thread t { f0(); }"), ["recursion"]);
}

#[test]
fn too_many_locals_are_refused() {
    let lets: String = (0..70_000).map(|number| format!("let r{number} = choose(0..=1);\n")).collect();
    assert_eq!(codes(format!("thread t {{ {lets} }}")), ["too-large"]);
}

#[test]
fn large_files_of_every_kind() {
    let fill = |part: &str| part.repeat(500_000 / part.len());
    for part in
        ["{", "}", "(", ";", "thread a {", "\"", "/*", "//!\n", "€", "\0", "x = 1;", "else", "let r = 1; ", "fn f() { "]
    {
        codes(fill(part));
        codes(format!("shared x; thread t {{ {} }}", fill(part)));
    }
    codes(format!("thread {} {{ skip; }}", "a".repeat(5_000_000)));
    codes(format!("thread t {{ x = {}; }}", "9".repeat(5_000_000)));
    assert_eq!(codes(format!("{} thread t {{ skip; }}", fill("// remark\n"))), [""; 0]);
    assert_eq!(codes(format!("thread t {{ {} }}", "skip; // remark\n".repeat(300_000))), [""; 0]);
}

/// Words the random programs are made of.
const WORDS: &[&str] = &[
    "const",
    "shared",
    "mutex",
    "condvar",
    "thread",
    "fn",
    "final",
    "let",
    "if",
    "else",
    "while",
    "loop",
    "break",
    "continue",
    "return",
    "true",
    "false",
    "me",
    "fence",
    "assert",
    "assume",
    "await",
    "lock",
    "unlock",
    "wait",
    "notify_one",
    "critical",
    "skip",
    "choose",
    "cas",
    "swap",
    "fetch_add",
    "store_store",
    "x",
    "y",
    "a",
    "m",
    "c",
    "f",
    "t",
    "p",
    "r",
    "0",
    "1",
    "2",
    "0x7f",
    "9223372036854775808",
    "\"text\"",
    "..=",
    "==",
    "!=",
    "<",
    ">=",
    "&&",
    "||",
    "<<",
    "..",
    "++",
    ";",
    ";",
    ";",
    ",",
    ":",
    ".",
    "=",
    "=",
    "!",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "(",
    "(",
    ")",
    ")",
    "[",
    "]",
    "{",
    "{",
    "}",
    "}",
    "// remark\n",
    "/* remark */",
    "//! expect check sc: safe\n",
    "\n",
    "\n\n",
];

/// A program that uses everything, to be cut and mangled.
const PROGRAM: &str = r#"//! expect check tso: unsafe
// A bit of everything.
const N = 2;   /* two */
shared want[N], turn, t: 0..=2 = 1, lock;
mutex m; condvar c;

fn other(i) { return 1 - i; }
fn bounded(v, limit) { if v > limit { return limit; } v = v + 1; return v; }

thread p[N] {
    let o = other(me);
    let r = 0;
    loop { // again and again
        here: want[me] = 1;
        while want[o] == 1 && !(turn == me || r > 3) { r = bounded(r, 3) + want[r % 2]; }
        critical { turn = o; if r == 2 { break; } }

        /* before the atomics */ r = cas(lock, 0, 1) + swap(t, r & 1) - -fetch_add(turn, 0);
        fence; fence(store_store); fence(store_load);
        if r == 0 { continue; } else if r << 1 == 2 { return; } else { skip; }
        assert(r != 7, "seven \"is\" not"); assume(r < 9); await(lock == 0);
        lock(m); wait(c, m); notify_one(c); notify_all(c); unlock(m);
        let v = choose(0..=N);
        want[v ^ 1] = -v * ~~~;
    }
}
final { let sum = p[0].r + p[1].r; if sum > 0 { assert(turn == 0 || sum != 3); } }
"#;

fn program() -> String {
    PROGRAM.replace(" * ~~~", " * 2 / (1 + v) % 5 | 4 >> 1")
}

/// The instructions of all threads, without places.
fn meaning(text: &str) -> Option<String> {
    let compiled = weak::compile(&SourceFile::new("test.weak", text)).ok()?;
    let dump = compiled.program.to_string();
    Some(dump.lines().map(|line| format!("{}\n", line.split(" ; ").next().unwrap_or_default())).collect())
}

/// Formatting is idempotent and changes neither the meaning nor the number of expectations.
fn check_format(text: &str) {
    let Ok(once) = weak::format(&SourceFile::new("test.weak", text)) else { return };
    let twice = weak::format(&SourceFile::new("test.weak", once.clone())).expect("formatted text has no syntax errors");
    assert_eq!(once, twice, "formatting again changes something");
    assert_eq!(meaning(text), meaning(&once), "formatting changes the meaning");
    assert!(!once.contains("\n\n\n") || text.contains("/*"), "more than one blank line");
}

#[test]
fn the_program_that_is_mangled_is_right() {
    assert!(meaning(&program()).is_some(), "{:?}", weak::compile(&SourceFile::new("test.weak", program())));
    check_format(&program());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text(text in any::<String>()) {
        codes(text.clone());
        check_format(&text);
    }

    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        codes(text.clone());
        check_format(&text);
    }

    #[test]
    fn random_tokens(tokens in proptest::collection::vec(proptest::sample::select(WORDS), 0..120), glue in any::<bool>()) {
        let text = tokens.join(if glue { "" } else { " " });
        codes(text.clone());
        check_format(&text);
        let text = format!("shared x, y, a[2]; mutex m; thread t {{ {text} }}");
        codes(text.clone());
        check_format(&text);
    }

    #[test]
    fn truncated_programs(cut in 0..2000_usize, from in 0..2000_usize) {
        let program = program();
        let text: String = program.chars().take(cut).collect();
        codes(text.clone());
        check_format(&text);
        let text: String = program.chars().skip(from.min(cut)).take(cut).collect();
        codes(text);
    }

    #[test]
    fn mutated_programs(edits in proptest::collection::vec((0..2000_usize, proptest::sample::select(WORDS), 0..3_u8), 1..6)) {
        let mut text = program();
        for (at, word, kind) in edits {
            let at = text.char_indices().nth(at % text.chars().count().max(1)).map_or(0, |(at, _)| at);
            match kind {
                0 => text.insert_str(at, word),
                1 => text.insert_str(at, &format!(" {word} ")),
                _ => text = text[..at].chars().chain(text[at..].chars().skip(word.len())).collect(),
            }
        }
        codes(text.clone());
        check_format(&text);
    }

    #[test]
    fn comments_and_breaks_anywhere_keep_the_meaning(
        places in proptest::collection::vec(
            (0..400_usize, proptest::sample::select(&["\n", "\n\n\n", " // remark\n", "\n// own\n", "/* in */", "\n/* own */\n", "/* a\n b */"][..])),
            0..12,
        )
    ) {
        // between words of the program, never inside one
        let program = program();
        let mut parts: Vec<String> = program.split_inclusive([' ', '\n']).map(str::to_owned).collect();
        for (at, insert) in places {
            let at = at % parts.len();
            let line_is_comment = parts[..=at].iter().rev().take_while(|part| !part.ends_with('\n')).any(|part| part.contains("//"));
            let in_string_or_comment = parts[at].contains('"') || parts[at].contains("/*") || parts[at].contains("//");
            if !line_is_comment && !in_string_or_comment {
                parts[at].push_str(insert);
            }
        }
        let text = parts.concat();
        check_format(&text);
    }
}
