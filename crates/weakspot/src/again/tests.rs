//! Commands for tests that were started in some way.

use std::fs;
use std::path::{Path, PathBuf};

use super::cargo::Command;
use super::{Start, name_in_runner, only_test, quoted};

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// A folder with these files, which is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("weakspot-again-{name}-{}", std::process::id()));
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a temporary folder");
            fs::write(path, text).expect("a temporary file");
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A test of the package `queue`, in the folder, run by cargo.
fn start(folder: &Path, parent: &str, executable: &str) -> Start {
    Start {
        executable: Some(PathBuf::from(executable)),
        parent: words(parent),
        package: Some("queue".to_owned()),
        folder: Some(folder.to_owned()),
        test: Some("tests::smoke".to_owned()),
        ..Start::default()
    }
}

const PACKAGE: &str = "[package]\nname = \"queue\"\n";

#[test]
fn what_cargo_was_told_is_told_again() {
    let folder = Folder::new("told", &[("Cargo.toml", PACKAGE), ("tests/loom.rs", "")]);
    let loom = "/w/target/debug/deps/loom-0123456789abcdef";
    let unit = "/w/target/debug/deps/queue-0123456789abcdef";
    let command = |parent: &str, executable: &str| start(&folder.0, parent, executable).command();
    assert_eq!(command("/opt/cargo test", unit), "cargo test tests::smoke -- --exact");
    assert_eq!(command("cargo test smo -- --nocapture", unit), "cargo test tests::smoke -- --exact");
    assert_eq!(command("cargo t -q", loom), "cargo test --test loom tests::smoke -- --exact");
    assert_eq!(
        command("cargo --config a.b=1 test --test loom --features loom,std --release -j2 smoke", loom),
        "cargo test --config a.b=1 --test loom --features loom,std --release tests::smoke -- --exact"
    );
    let mut flags = start(&folder.0, "cargo test --features=loom", loom);
    flags.rustflags = Some("--cfg loom".to_owned());
    flags.arguments = words("--ignored");
    assert_eq!(
        flags.command(),
        "RUSTFLAGS=\"--cfg loom\" cargo test --features=loom --test loom tests::smoke -- --exact --ignored"
    );
}

#[test]
fn a_package_is_named_where_there_are_several() {
    let folder = Folder::new(
        "several",
        &[("Cargo.toml", "[workspace]\nmembers = [\"queue\"]\n"), ("queue/Cargo.toml", PACKAGE)],
    );
    let unit = "/w/target/debug/deps/queue-0123456789abcdef";
    let command = |parent: &str| start(&folder.0.join("queue"), parent, unit).command();
    assert_eq!(command("cargo test"), "cargo test -p queue tests::smoke -- --exact");
    assert_eq!(command("cargo test --workspace"), "cargo test --workspace tests::smoke -- --exact");
    assert_eq!(command("cargo test -pother -p queue"), "cargo test -pother -p queue tests::smoke -- --exact");
}

#[test]
fn what_is_not_known_is_not_said() {
    let files = [
        ("Cargo.toml", PACKAGE),
        ("tests/queue.rs", ""),
        ("tests/a_b.rs", ""),
        ("tests/a-b.rs", ""),
        ("tests/c-d.rs", ""),
    ];
    let folder = Folder::new("unknown", &files);
    let command = |name: &str| start(&folder.0, "cargo test", &format!("/w/target/debug/deps/{name}")).command();
    // The library, or the test of the same name.
    assert_eq!(command("queue-0123456789abcdef"), "cargo test tests::smoke -- --exact");
    // Two files.
    assert_eq!(command("a_b-0123456789abcdef"), "cargo test tests::smoke -- --exact");
    assert_eq!(command("c_d-0123456789abcdef"), "cargo test --test c-d tests::smoke -- --exact");
    // No file, no hash.
    assert_eq!(command("elsewhere-0123456789abcdef"), "cargo test tests::smoke -- --exact");
    assert_eq!(command("c_d"), "cargo test tests::smoke -- --exact");
    // An option that is not known may take the word behind it.
    let unknown = start(&folder.0, "cargo test --novel smoke", "/w/target/debug/deps/queue-0123456789abcdef");
    assert_eq!(unknown.command(), "cargo test tests::smoke -- --exact");
    // What may be a secret is not repeated.
    assert_eq!(Command::parse(&words("cargo test --config registry.token=x")), None);
}

#[test]
fn without_the_command_line_the_folder_tells_the_profile() {
    let folder = Folder::new("profile", &[("Cargo.toml", PACKAGE), ("tests/loom.rs", "")]);
    let command = |path: &str| start(&folder.0, "cargo-nextest nextest run", path).command();
    let name = "loom-0123456789abcdef";
    let rest = "--test loom tests::smoke -- --exact";
    assert_eq!(command(&format!("/w/target/debug/deps/{name}")), format!("cargo test {rest}"));
    assert_eq!(command(&format!("/w/target/release/deps/{name}")), format!("cargo test --release {rest}"));
    assert_eq!(command(&format!("/w/target/quick/deps/{name}")), format!("cargo test --profile quick {rest}"));
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    assert_eq!(
        command(&format!("/w/target/{triple}/debug/deps/{name}")),
        format!("cargo test --target {triple} {rest}")
    );
}

#[test]
fn what_is_no_test_of_cargo_is_run_as_it_was() {
    let mut start = start(Path::new("/nowhere"), "cargo run --example lock -- 3", "/w/target/debug/examples/lock");
    (start.test, start.arguments) = (None, words("3"));
    assert_eq!(start.command(), "cargo run --example lock -- 3");
    start.parent = words("bash");
    assert_eq!(start.command(), "/w/target/debug/examples/lock 3");
    start.parent = words("cargo test smoke -- --test-threads=1");
    assert_eq!(start.command(), "cargo test smoke -- --test-threads=1");
    (start.parent, start.package, start.test) = (words("bash"), None, Some("smoke".to_owned()));
    assert_eq!(start.command(), "/w/target/debug/examples/lock smoke --exact");
    start.executable = Some(PathBuf::from("/w/doctest/rust_out"));
    start.test = None;
    let line = |start: &Start| start.command().lines().next().map(str::to_owned).unwrap_or_default();
    assert_eq!(line(&start), "cargo test --doc");
    start.doc_test = Some("src/lock.rs".to_owned());
    assert_eq!(line(&start), "cargo test --doc -- src/lock.rs");
    start.doc_test = Some("9)".to_owned());
    assert_eq!(line(&start), "cargo test --doc -- \"9)\"");
}

#[test]
fn a_documentation_test_has_its_name_from_its_runner() {
    let runner = "mod __doctest_0 {\npub const TEST: … new_doctest(\n\"src/lib.rs - (line 1)\", false, \"src/lib.rs\", 1,\n}\n\
                  mod __doctest_1 {\npub const TEST: … new_doctest(\n\"src/lib.rs - Lock (line 9)\", false, 9,\n}\n";
    assert_eq!(name_in_runner(runner, 0), Some("src/lib.rs - (line 1)".to_owned()));
    assert_eq!(name_in_runner(runner, 1), Some("src/lib.rs - Lock (line 9)".to_owned()));
    assert_eq!(name_in_runner(runner, 2), None);
}

#[test]
fn a_single_test_is_known_by_its_arguments() {
    assert_eq!(only_test(&words("tests::smoke --exact --nocapture")), Some("tests::smoke".to_owned()));
    assert_eq!(only_test(&words("tests::smoke --nocapture")), None);
    assert_eq!(only_test(&words("one two --exact")), None);
}

#[test]
fn words_are_quoted_for_a_shell() {
    assert_eq!(quoted("--cfg=loom"), "--cfg=loom");
    assert_eq!(quoted("--cfg loom"), "\"--cfg loom\"");
    assert_eq!(quoted("patch.crates-io.loom.path=\"/x\""), "'patch.crates-io.loom.path=\"/x\"'");
    assert_eq!(quoted("it's \"so\""), r#"'it'\''s "so"'"#);
    assert_eq!(quoted(""), "\"\"");
}

#[test]
fn a_thread_with_a_name_of_its_own_is_no_test() {
    let name = |name: &str| {
        let thread = std::thread::Builder::new().name(name.to_owned());
        thread.spawn(|| super::name_of_thread(Some(file!()))).expect("a thread").join().expect("its name")
    };
    // These three strings are in this file; so is a function of the first name.
    assert_eq!(name("words"), Some("words".to_owned()));
    assert_eq!(name("worker_of_mine"), None);
    assert_eq!(name("two words"), None);
    let unseen = ["tests", "made_by_a_macro"].join("::");
    assert_eq!(name(&unseen), Some(unseen.clone()));
}
