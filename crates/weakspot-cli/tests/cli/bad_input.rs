//! Every kind of bad input: a clear message, exit status 2, nothing on standard output.

use crate::support::{SB_LITMUS, STORE_BUFFERING, Workspace};

/// Verifies a file of this name and content and insists on refusal; the words must be in the message.
fn refused(name: &str, text: impl AsRef<[u8]>, words: &[&str]) {
    let workspace = Workspace::with(name, text);
    let arguments = ["verify", name, "--model", "tso"];
    let run = workspace.run(&arguments);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    for word in words {
        assert!(run.err.contains(word), "no {word:?} in: {}", run.err);
    }
    assert!(!run.err.contains("panicked"), "{}", run.err);
    let quiet = workspace.run(&[&arguments[..], &["-q", "--json"]].concat());
    assert_eq!((quiet.code, quiet.out, quiet.err), (2, String::new(), run.err), "neither -q nor --json hide an error");
}

/// The same for a `.weak` program that is text but not a program: the message names line and column and gives a hint.
fn refused_program(text: &str, place: &str, words: &[&str]) {
    refused("p.weak", text, words);
    let run = Workspace::with("p.weak", text).run(&["verify", "p.weak", "--model", "tso"]);
    assert!(run.err.contains(&format!("p.weak:{place}")), "not at {place}: {}", run.err);
    assert!(run.err.contains("error["), "{}", run.err);
}

#[test]
fn a_missing_file() {
    let run = Workspace::new().run(&["verify", "missing.weak", "--model", "tso"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("missing.weak") && run.err.contains("no such file"), "{}", run.err);
}

#[test]
fn a_directory() {
    let workspace = Workspace::with("dir/sb.weak", STORE_BUFFERING);
    for command in [&["verify", "dir", "--model", "tso"][..], &["check", "dir"], &["fmt", "dir"]] {
        let run = workspace.run(command);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
        assert!(run.err.contains("`dir`") && run.err.contains("directory"), "{}", run.err);
    }
}

#[cfg(unix)]
#[test]
fn an_unreadable_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let workspace = Workspace::with("secret.weak", STORE_BUFFERING);
    let path = workspace.path().join("secret.weak");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        return; // the tests are run by a user who may read everything
    }
    let run = workspace.run(&["verify", "secret.weak", "--model", "tso"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("secret.weak"), "{}", run.err);
}

#[test]
fn an_empty_file() {
    refused("empty.weak", "", &["`empty.weak` is empty", "help"]);
    refused("blank.weak", " \n\t\n", &["`blank.weak` is empty"]);
    refused("empty.litmus", "", &["`empty.litmus` is empty"]);
}

#[test]
fn a_binary_file() {
    refused("a.weak", b"\x7fELF\x02\x01\x01\0\0\0\0", &["`a.weak` is a binary file", "offset 7"]);
}

/// One sentence instead of an error for each line.
#[test]
fn rust_code() {
    let text = "use std::sync::atomic::AtomicBool;\n\n#[test]\nfn knock() {\n    weakspot::model(|| {});\n}\n";
    refused("lib.rs", text, &["`lib.rs` is Rust code, not a program of weakspot's", "cargo test", "docs/rust.md"]);
    let workspace = Workspace::with("lib.rs", text);
    for command in [&["fence", "lib.rs", "--model", "tso"][..], &["check", "lib.rs"]] {
        let run = workspace.run(command);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
        assert!(run.err.contains("is Rust code") && run.err.lines().count() < 5, "{}", run.err);
    }
    let run = Workspace::with("named.rs", STORE_BUFFERING).run(&["check", "named.rs", "--model", "sc"]);
    assert_eq!(run.code, 0, "a program is one whatever its name: {run:?}");
}

#[test]
fn text_that_is_not_utf8() {
    refused("latin1.weak", b"shared x;\n// caf\xe9\n", &["latin1.weak:2:7", "UTF-8", "0xe9", "offset 16"]);
}

#[test]
fn a_syntax_error() {
    refused_program("shared x;\nthread a { x = ; }\n", "2:16", &[]);
    refused_program("shared x;\nthread a { x = 1;\n", "", &[]);
}

#[test]
fn an_unknown_name() {
    refused_program("shared count;\nthread a { cuont = 1; }\n", "2:12", &["cuont", "count"]);
}

#[test]
fn an_index_known_to_be_out_of_range() {
    refused_program("shared a[2];\nthread t { a[2] = 1; }\n", "2:", &["2"]);
}

#[test]
fn a_thread_count_of_0_or_of_10000() {
    refused_program("shared x;\nthread t[0] { x = 1; }\n", "2:", &["0"]);
    refused_program("shared x;\nthread t[10000] { x = 1; }\n", "2:", &["10000"]);
}

#[test]
fn duplicate_names() {
    refused_program("shared x, x;\nthread a { x = 1; }\n", "1:11", &["`x`"]);
    refused_program("shared x;\nthread a { x = 1; }\nthread a { x = 2; }\n", "3:8", &["`a`"]);
}

#[test]
fn a_final_block_that_writes() {
    refused_program("shared x;\nthread a { x = 1; }\nfinal { x = 2; }\n", "3:", &["final"]);
}

#[test]
fn recursion() {
    refused_program("shared x;\nfn f() { f(); }\nthread a { f(); }\n", "2:", &["recurs"]);
    refused_program("shared x;\nfn f() { g(); }\nfn g() { f(); }\nthread a { f(); }\n", "", &["recurs"]);
}

#[test]
fn a_litmus_test_of_another_architecture_is_named() {
    let text = "AArch64 MP\n{ 0:X1=x; }\n P0 ;\n MOV W0,#1 ;\nexists (0:X0=1)\n";
    refused("mp.litmus", text, &["mp.litmus:1", "AArch64"]);
}

#[test]
fn an_unknown_instruction_is_named_with_its_line() {
    refused("f.litmus", SB_LITMUS.replace("MOV EAX,[y]", "FROB EAX,[y]"), &["f.litmus:5", "FROB"]);
}

#[test]
fn an_unfinished_litmus_test() {
    refused("t.litmus", "X86 T\n{ x=0; }\n", &["t.litmus:"]);
    refused("t.litmus", "X86 T\n{ x=0; \n P0 ;\n MOV [x],$1 ;\nexists (x=1)\n", &["t.litmus:"]);
}

#[test]
fn a_line_of_a_megabyte_does_not_flood_the_terminal() {
    let mut text = "shared x; thread a { ".to_owned();
    text.push_str(&"x = 1; ".repeat(150_000));
    text.push_str("nonsense = ; }");
    let run = Workspace::with("long.weak", text).run(&["verify", "long.weak", "--model", "tso"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.len() < 10_000, "{} bytes", run.err.len());
}

#[test]
fn escapes_in_names_and_text_do_not_reach_the_terminal() {
    let run = Workspace::with("p.weak", "shared x;\nthread a { \u{1b}[31m = 1; }\n")
        .run(&["verify", "p.weak", "--model", "tso"]);
    assert_eq!(run.code, 2);
    assert!(!run.err.contains('\u{1b}'), "{:?}", run.err);
}
