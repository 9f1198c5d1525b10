//! `weakspot fence --test`: tests of Rust code, run by cargo. Those of the package weakspot-examples are wrong in many ways;
//! packages without dependencies show the rest.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Run, Workspace, finish};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rust")
}

/// Runs the command in the package of the examples. The whole workspace is chosen, and the profile that this test is built
/// with, so that `cargo test --workspace` has built all of it before.
pub fn in_examples(arguments: &[&str]) -> Run {
    let profile: &[&str] = if cfg!(debug_assertions) { &[] } else { &["--release"] };
    let mut command = Workspace::new().command(&[arguments, &["--workspace"], profile].concat());
    finish(command.current_dir(examples()).env("RUST_BACKTRACE", "0"))
}

/// Asks about one of the tests that are wrong on purpose.
fn wrong(test: &str, options: &[&str]) -> Run {
    in_examples(&[&["fence", "--test", test], options, &["--", "--test", "wrong"]].concat())
}

/// The line of the examples' tests that says this, counted from 1.
fn line_of(text: &str) -> u64 {
    let source = std::fs::read_to_string(examples().join("tests/wrong.rs")).unwrap();
    source.lines().position(|line| line.contains(text)).unwrap() as u64 + 1
}

/// Everything but the line with figures.
fn without_figures(out: &str) -> String {
    let (figures, rest): (Vec<&str>, Vec<&str>) = out.lines().partition(|line| line.starts_with("  the test was run "));
    assert_eq!(figures.len(), 1, "{out}");
    rest.join("\n") + "\n"
}

#[test]
fn a_change_is_shown_as_a_diff_with_its_reason() {
    let run = wrong("dekker::excludes", &[]);
    assert_eq!(run.code, 0, "{run:?}");
    let expected = "\
fenced: dekker::excludes under tso: with 1 change it meets its specification;
  fewer are not enough

--- examples/rust/src/dekker.rs
+++ examples/rust/src/dekker.rs (strengthened)
@@ -39,7 +39,7 @@
     }

     fn announce(&self, me: usize) {
-        self.wants[me].store(true, Relaxed); // DELAYED
+        self.wants[me].store(true, SeqCst); // DELAYED
         if FENCED {
             fence(SeqCst);
         }

  · `SeqCst` for the store at examples/rust/src/dekker.rs:42:24, or
    `fence(SeqCst)` after it: without it, the store can stay in its buffer while
    its thread goes on to the load at examples/rust/src/dekker.rs:29:33

tried: with this made at run time, no execution of the test fails
";
    assert_eq!(without_figures(&run.out), expected);
}

#[test]
fn calls_that_take_several_lines_are_in_the_diff() {
    let run = wrong("over_several_lines", &["--model", "pso", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let answer: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let diff = answer["diff"].as_str().unwrap();
    let changed: Vec<&str> = diff.lines().filter(|line| line.starts_with(['+', '-'])).skip(2).collect();
    let expected = ["+    fence(Ordering::SeqCst);", "+                Release,", "-                Relaxed,"];
    assert_eq!(changed, expected, "{diff}");
    let (fence, ordering) = (&answer["fences"][0], &answer["fences"][1]);
    assert_eq!(
        (&fence["line"], &ordering["line"]),
        (&"    fence(Ordering::SeqCst);".into(), &"                Release,".into())
    );
    // The fence stands before the whole statement, and what has an ordering to change is the call.
    let statement = line_of("    let is_free = other[0]");
    let (exchange, success) = (line_of(".compare_exchange("), line_of("// Relaxed, (") + 1);
    let at = |place: &serde_json::Value| place["line"].as_u64().unwrap();
    assert_eq!(
        (at(&fence["place"]), at(&fence["after"]), fence["row"].as_u64()),
        (statement + 1, statement - 1, Some(statement))
    );
    assert_eq!((at(&ordering["place"]), ordering["row"].as_u64()), (exchange, Some(success)));
}

#[test]
fn orderings_that_prevent_a_data_race_are_changes_like_others() {
    let run =
        in_examples(&["fence", "--test", "hands_over", "--model", "pso", "--json", "--", "--test", "race_suggestions"]);
    assert_eq!(run.code, 0, "{run:?}");
    let answer: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    let facts = ["verdict", "minimal", "tried"].map(|field| answer[field].to_string());
    assert_eq!(facts, ["\"fenced\"", "true", "true"], "{answer}");
    let changes: Vec<_> =
        answer["fences"].as_array().unwrap().iter().map(|one| (&one["change"], &one["kind"])).collect();
    assert_eq!(
        format!("{changes:?}").replace("String", ""),
        r#"[(("Release"), ("store_store")), (("Acquire"), ("acquire"))]"#
    );
    let diff = answer["diff"].as_str().unwrap();
    for line in ["+            theirs.flag.store(1, Release);", "+        if shared.flag.load(Acquire) == 1 {"] {
        assert!(diff.contains(line), "{diff}");
    }
    let reason = answer["fences"][1]["reason"].as_str().unwrap();
    assert!(reason.starts_with("without it, a write at "), "{reason}");
}

#[test]
fn a_store_that_has_to_release_as_well_takes_more_than_a_fence() {
    let run = in_examples(&["fence", "--test", "announces", "--", "--test", "race_suggestions"]);
    assert_eq!(run.code, 0, "{run:?}");
    let words = run.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        words.matches("or `Release` with `fence(SeqCst)` after it: without it, a write at").count(),
        1,
        "{run:?}"
    );
    assert_eq!(words.matches("or `fence(SeqCst)` after it · `Acquire`").count(), 1, "{run:?}");
}

#[test]
fn a_test_that_needs_nothing_says_so() {
    let run = wrong("fenced_excludes", &["--model", "pso"]);
    assert_eq!(run.code, 0, "{run:?}");
    let expected = "none-needed: dekker::fenced_excludes under pso: it meets its specification as it is";
    assert!(run.unfolded().starts_with(expected), "{run:?}");
}

#[test]
fn all_models_of_a_test_are_looked_at() {
    let run = wrong("several_models", &["--model", "pso", "--json"]);
    let object = run.json();
    assert_eq!((run.code, &object["verdict"], &object["minimal"]), (0, &"fenced".into(), &true.into()), "{run:?}");
    assert_eq!((&object["command"], &object["model"]), (&"fence".into(), &"pso".into()));
    assert_eq!(object["models"].as_array().unwrap().len(), 3);
    let fences = object["fences"].as_array().unwrap();
    let changes: Vec<_> = fences.iter().map(|fence| (fence["change"].as_str(), fence["kind"].as_str())).collect();
    assert_eq!(changes, [(Some("SeqCst"), Some("full")), (Some("Release"), Some("store_store"))]);
    assert_eq!(fences[0]["after"]["line"], line_of("mine.store(1, Release)"));
    assert_eq!(fences[1]["after"]["line"], line_of("theirs.0.store(42, Relaxed)"));
    assert_eq!(fences[1]["line"], "        theirs.1.store(1, Release);");
}

#[test]
fn one_change_for_two_models_is_found_and_tried() {
    let run = wrong("one_fence_for_two_models", &["--json"]);
    let object = run.json();
    assert_eq!((run.code, object["cost"].as_u64(), object["iterations"].as_u64()), (0, Some(1), Some(2)), "{run:?}");
    assert_eq!(object["minimal"], true);
    let fence = &object["fences"][0];
    let line = line_of("let free = other[0].load");
    assert_eq!(
        (&fence["change"], &fence["kind"], &fence["place"]["line"]),
        (&"fence".into(), &"full".into(), &line.into())
    );
    assert_eq!(fence["after"]["line"], line - 1);
    assert!(object["diff"].as_str().unwrap().contains("\n+    fence(Ordering::SeqCst);\n"), "{run:?}");
}

#[test]
fn models_behind_one_that_ends_the_test_are_found_in_another_run() {
    let run = wrong("reports_by_hand", &["--model", "pso", "--json"]);
    let object = run.json();
    assert_eq!((run.code, object["cost"].as_u64(), object["iterations"].as_u64()), (0, Some(2), Some(3)), "{run:?}");
    assert!(!run.err.contains("error"), "that a run fails is no error: {run:?}");
}

#[test]
fn the_goal_decides_about_what_does_no_harm() {
    assert!(wrong("harmless", &["-q"]).out.starts_with("none-needed: "));
    let run = wrong("harmless", &["--goal", "robust"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.unfolded().contains("with 1 change it is store-buffer safe"), "{run:?}");
    assert!(run.out.contains("every execution of the test is one of SC"), "{run:?}");
}

#[test]
fn an_error_on_every_processor_exits_with_4_and_its_report_is_shown() {
    let run = wrong("loses_an_update", &[]);
    assert_eq!(run.code, 4, "{run:?}");
    assert!(run.out.starts_with("impossible: loses_an_update under tso: assertion"), "{run:?}");
    assert!(run.err.contains("weakspot: an execution fails, on every processor"), "{run:?}");
    let object = wrong("loses_an_update", &["--json"]).json();
    assert_eq!((&object["error"]["kind"], &object["fences"]), (&"panic".into(), &serde_json::json!([])));
}

#[test]
fn a_test_that_is_meant_to_fail_has_an_answer() {
    let run = wrong("is_meant_to_fail", &["-q"]);
    assert_eq!((run.code, run.out.starts_with("fenced: ")), (0, true), "{run:?}");
}

#[test]
fn failures_outside_of_models_leave_it_open() {
    let run = wrong("panics_after_its_model", &[]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.out.starts_with("inconclusive: ") && run.out.contains("mine.store(1, SeqCst);"), "{run:?}");
    assert!(run.err.contains("for another reason"), "{run:?}");
    let run = wrong("panics_before_its_model", &["--json"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    assert!(run.err.contains("not that far") && run.err.contains("failed before a model was explored"), "{run:?}");
}

#[test]
fn what_was_not_all_explored_is_no_answer() {
    let run = wrong("is_cut_short", &["--json"]);
    assert_eq!((run.code, &run.json()["limit"]), (3, &"bounded".into()), "{run:?}");
}

#[test]
fn tests_of_loom_are_tests_like_others() {
    let run = wrong("with_loom", &["--json"]);
    let object = run.json();
    assert_eq!((run.code, &object["verdict"], &object["cost"]), (0, &"fenced".into(), &2.into()), "{run:?}");
}

#[test]
fn a_name_that_is_no_test_is_refused_with_those_that_are_like_it() {
    let run = wrong("several_modles", &[]);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    let message = "error: there is no test `several_modles`\n help: these have names like it:\n       several_models\n";
    assert!(run.err.ends_with(message), "{run:?}");
    let run = wrong("excludes", &[]);
    let message = "error: 2 tests are called `excludes`\n help: give the whole path of one of them:\n       \
                   dekker::excludes\n       peterson::excludes\n";
    assert!(run.code == 2 && run.err.ends_with(message), "{run:?}");
    let run = wrong("peterson::excludes", &[]);
    assert!(run.code == 2 && run.err.contains("passes, but has run no model"), "{run:?}");
}

/// A package without dependencies.
fn package(code: &str) -> Workspace {
    let manifest = "[package]\nname = \"plain\"\nedition = \"2021\"\n\n[features]\nmore = []\n\n[workspace]\n";
    let workspace = Workspace::with("Cargo.toml", manifest);
    workspace.write("src/lib.rs", code);
    workspace
}

/// The command in a package, which builds it there.
fn command_in(package: &Workspace, arguments: &[&str]) -> Command {
    let mut command = package.command(&[&["fence"], arguments].concat());
    command.env_remove("CARGO_TARGET_DIR").env("RUST_BACKTRACE", "0");
    command
}

#[test]
fn a_test_without_a_model_is_refused() {
    let code = "#[test] fn plain() {}\n#[cfg(feature = \"more\")] #[test] fn hidden() {}\n";
    let package = package(code);
    let run = finish(&mut command_in(&package, &["--test", "plain"]));
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    assert!(run.err.contains("passes, but has run no model") && run.err.contains("weakspot::model"), "{run:?}");
    let manifest = package.path().join("Cargo.toml");
    let named = ["fence", "--manifest-path", manifest.to_str().unwrap(), "--package", "plain", "--test", "plain"];
    let run = Workspace::new().run(&named);
    assert!(run.code == 2 && run.err.contains("passes, but has run no model"), "{run:?}");
    let run = finish(&mut command_in(&package, &["--test", "hidden"]));
    assert!(run.code == 2 && run.err.contains("there is no test `hidden`"), "{run:?}");
    let run = finish(&mut command_in(&package, &["--test", "hidden", "--", "--features", "more"]));
    assert!(run.code == 2 && run.err.contains("`hidden` passes, but"), "{run:?}");
}

#[test]
fn a_documentation_test_is_run_alone() {
    let documented = |name: &str, code: &str| format!("/// ```\n/// {code}\n/// ```\npub fn {name}() {{}}\n");
    let code = documented("right", "plain::right();") + &"\n".repeat(6) + &documented("wrong", "panic!(\"of wrong\");");
    let package = package(&code);
    let asked = |name: &str| finish(&mut command_in(&package, &["--test", name]));
    let run = asked("src/lib.rs - right (line 1)");
    assert!(run.code == 2 && run.err.contains("(line 1)` passes, but has run no model"), "{run:?}");
    let run = asked("src/lib.rs - wrong (line 11)");
    assert!(run.code == 2 && run.err.contains("(line 11)` failed before a model was explored"), "{run:?}");
    assert!(run.err.contains("of wrong"), "{run:?}");
}

#[test]
fn what_cargo_cannot_do_is_bad_input() {
    let broken = package("#[test] fn broken() { let x: u8 = \"\"; }\n");
    let run = finish(&mut command_in(&broken, &["--test", "broken", "--json"]));
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    assert!(run.err.contains("mismatched types") && run.err.contains("`cargo test` failed"), "{run:?}");
    let run = finish(&mut command_in(&Workspace::new(), &["--test", "broken"]));
    assert!(run.code == 2 && run.err.contains("could not find `Cargo.toml`"), "{run:?}");
    let run = finish(command_in(&broken, &["--test", "broken"]).env("CARGO", "/nowhere/cargo"));
    assert!(run.code == 2 && run.err.contains("cannot run `/nowhere/cargo`: there is no such program"), "{run:?}");
    let run = finish(command_in(&broken, &["--test", "broken"]).env("TMPDIR", "/nowhere"));
    assert!(run.code == 2 && run.err.contains("cannot write"), "{run:?}");
}

#[test]
fn options_of_files_and_of_tests_do_not_mix() {
    let workspace = Workspace::with("a.weak", crate::support::STORE_BUFFERING);
    for arguments in [
        &["fence", "a.weak", "--test", "x"][..],
        &["fence", "--test", "x", "--strategy", "avoid"],
        &["fence", "--test", "x", "--output", "b.weak"],
        &["fence", "--test", "x", "--memory-limit", "10"],
        &["fence", "a.weak", "--model", "tso", "--package", "p"],
        &["fence", "a.weak", "--model", "tso", "--manifest-path", "p"],
        &["fence", "a.weak", "--model", "tso", "--", "--release"],
        &["fence", "a.weak"],
        &["fence"],
    ] {
        let run = workspace.run(arguments);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}: {run:?}");
    }
}

/// A test that says who it is and sleeps.
#[cfg(target_os = "linux")]
const SLEEPS: &str = "#[test] fn sleeps() {\n\
    std::fs::write(\"pid\", std::process::id().to_string()).unwrap();\n\
    std::thread::sleep(std::time::Duration::from_secs(100));\n}\n";

#[cfg(target_os = "linux")]
fn process_of(package: &Workspace) -> PathBuf {
    for _ in 0..3_000 {
        let pid = std::fs::read_to_string(package.path().join("pid")).unwrap_or_default();
        if !pid.is_empty() {
            return Path::new("/proc").join(pid);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the test never began");
}

#[cfg(target_os = "linux")]
#[test]
fn ctrl_c_and_limits_end_the_test_as_well() {
    use std::process::Stdio;
    let package = package(SLEEPS);
    let mut command = command_in(&package, &["--test", "sleeps", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let process = process_of(&package);
    assert!(process.exists());
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&object["verdict"], &object["limit"]), (&"inconclusive".into(), &"cancelled".into()), "{object}");
    assert!(is_over(&process), "the test goes on");
    let run = finish(&mut command_in(&package, &["--test", "sleeps", "--time-limit", "2", "--json"]));
    assert_eq!((run.code, &run.json()["limit"]), (3, &"time".into()), "{run:?}");
    assert!(is_over(&process_of(&package)), "the test goes on");
}

/// A process that was killed may take a moment to go.
#[cfg(target_os = "linux")]
fn is_over(process: &Path) -> bool {
    let is_gone = || {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ")
    };
    (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        is_gone()
    })
}
