//! `weakspot check`: verdicts, impact, exit status, what is printed.

use crate::support::{ENDLESS, SB_LITMUS, STORE_BUFFERING, Workspace};

/// Store buffering whose outcome nobody minds.
const BENIGN: &str = "shared x, y;\nthread a { x = 1; let r = y; }\nthread b { y = 1; let r = x; }\n";

#[test]
fn a_safe_program_exits_with_0() {
    let fenced = BENIGN.replace("; let", "; fence; let");
    let run = Workspace::with("sb.weak", fenced).run(&["check", "sb.weak"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert!(run.out.starts_with("safe: sb.weak under tso: "), "{}", run.out);
}

#[test]
fn every_program_is_store_buffer_safe_under_sc() {
    let run = Workspace::with("sb.weak", STORE_BUFFERING).run(&["check", "sb.weak", "--model", "sc", "-q"]);
    assert_eq!((run.code, run.out.lines().count()), (0, 1), "{run:?}");
    assert!(run.out.starts_with("safe: sb.weak under sc: "), "{}", run.out);
}

#[test]
fn a_harmful_violation_shows_the_pair_the_cycle_and_the_execution() {
    let run = Workspace::with("sb.weak", STORE_BUFFERING).run(&["check", "sb.weak"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""), "{run:?}");
    assert!(run.out.starts_with("unsafe (harmful): sb.weak under tso: assertion failed\n"), "{}", run.out);
    for words in ["waits in the store buffer", "happens-before cycle", "(fr)", "breaks the specification", "✗"] {
        assert!(run.out.contains(words), "no {words:?} in {}", run.out);
    }
}

#[test]
fn a_benign_violation_is_unsafe_all_the_same() {
    let run = Workspace::with("sb.weak", BENIGN).run(&["check", "sb.weak", "--model", "pso"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.starts_with("unsafe (benign): sb.weak under pso: "), "{}", run.out);
    assert!(
        run.out.contains("an execution that no SC execution matches") && run.out.contains("buffered ①"),
        "{}",
        run.out
    );
}

#[test]
fn an_error_under_sc_comes_first() {
    let text = "shared x, y;\nthread a { x = 1; let r = y; assert(r == 0); }\nthread b { y = 1; let r = x; }\n";
    let workspace = Workspace::with("e.weak", text);
    let run = workspace.run(&["check", "e.weak"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.starts_with("error: e.weak under tso: assertion failed (already under sc)\n"), "{}", run.out);
    let object = workspace.run(&["check", "e.weak", "--json"]).json();
    assert_eq!((&object["verdict"], &object["error"]["kind"]), (&"error".into(), &"assertion".into()));
    assert!(object["trace"].as_array().is_some_and(|trace| !trace.is_empty()) && object.get("witness").is_none());
}

#[test]
fn the_object_has_what_is_promised() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("sb.litmus", SB_LITMUS);
    for file in ["sb.weak", "sb.litmus"] {
        let run = workspace.run(&["check", file, "--all", "--json"]);
        assert_eq!(run.code, 1, "{run:?}");
        let object = run.json();
        assert_eq!((&object["verdict"], &object["impact"]), (&"unsafe".into(), &"harmful".into()));
        assert!(object["executions"].is_u64() && object["borderline"].is_u64(), "{object}");
        let violations = object["violations"].as_array().unwrap();
        assert_eq!(violations.len(), 2, "one for each of the two stores: {object}");
        for violation in violations {
            for place in ["store", "access", "passed"] {
                assert_eq!(violation[place]["file"], file, "{violation}");
                assert!(violation[place]["line"].is_u64() && violation[place]["thread"].is_string(), "{violation}");
            }
            assert_ne!(violation["store"]["thread"], violation["access"]["thread"], "{violation}");
            assert_eq!(violation["cycle"].as_array().unwrap().len(), 4, "{violation}");
        }
        assert!(object["trace"].is_array() && object["witness"].is_array() && object["harm"].is_array(), "{object}");
        assert!(object["witness"].as_array().unwrap().iter().any(|event| event["kind"] == "commit"), "{object}");
        assert_eq!(object["error"]["kind"], "assertion");
    }
}

#[test]
fn only_the_first_pair_is_listed_unless_all_are_asked_for() {
    let object = Workspace::with("sb.weak", STORE_BUFFERING).run(&["check", "sb.weak", "--json"]).json();
    assert_eq!(object["violations"].as_array().unwrap().len(), 1);
}

#[test]
fn a_limit_gives_bounded_and_exits_with_3() {
    let workspace = Workspace::with("endless.weak", ENDLESS);
    let run = workspace.run(&["check", "endless.weak", "--time-limit", "0.2"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.out.starts_with("bounded: endless.weak under tso: the time limit was reached\n"), "{}", run.out);
    let object = workspace.run(&["check", "endless.weak", "--time-limit", "0.2", "--json"]).json();
    assert_eq!((&object["verdict"], &object["exhaustive"]), (&"bounded".into(), &false.into()));
    assert_eq!(object["limit"], "time");
}

#[test]
fn that_pairs_may_be_missing_is_said_where_all_were_asked_for_and_not_all_was_looked_at() {
    let workspace = Workspace::with("sb.weak", BENIGN);
    let says_so = |options: &[&str]| {
        let run = workspace.run(&[&["check", "sb.weak"], options].concat());
        assert!(run.out.starts_with("unsafe (benign)"), "{options:?}: {run:?}");
        run.out.contains("there may be more pairs of accesses")
    };
    assert!(says_so(&["--all", "--max-preemptions", "0"]) && says_so(&["--all", "--random", "20"]));
    assert!(
        !says_so(&["--all"]) && !says_so(&["--max-preemptions", "0"]) && !says_so(&["--all", "--engine", "attack"])
    );
}
