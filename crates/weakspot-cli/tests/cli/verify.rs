//! `weakspot verify`: verdicts, exit status, what is printed.

use crate::support::{ENDLESS, SB_LITMUS, STORE_BUFFERING, Workspace};

const UNBOUNDED_STORES: &str =
    "shared x, y;\nthread a { loop { x = 1; y = 1; } }\nthread b { let r = x; let s = y; }\n";

const DEADLOCK: &str = "\
mutex l, r;
thread a { lock(l); lock(r); unlock(r); unlock(l); }
thread b { lock(r); lock(l); unlock(l); unlock(r); }
";

#[test]
fn a_verified_program_exits_with_0() {
    let run = Workspace::with("sb.weak", STORE_BUFFERING).run(&["verify", "sb.weak", "--model", "sc"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert!(run.out.starts_with("verified: sb.weak under sc\n"), "{}", run.out);
}

#[test]
fn a_violated_program_exits_with_1_and_shows_the_execution() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    for model in ["tso", "pso"] {
        let run = workspace.run(&["verify", "sb.weak", "--model", model]);
        assert_eq!((run.code, run.err.as_str()), (1, ""), "{run:?}");
        assert!(run.out.starts_with(&format!("violated: sb.weak under {model}: assertion failed\n")), "{}", run.out);
        for word in ["x=1 buffered", "from memory", "⇢ x=1 visible", "✗", "sb.weak:4:9", "What was delayed:"] {
            assert!(run.out.contains(word), "no {word:?} in {}", run.out);
        }
    }
}

#[test]
fn the_shortest_execution_of_store_buffering_has_six_steps() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    let run = workspace.run(&["verify", "sb.weak", "--model", "tso", "--shortest", "--json"]);
    assert_eq!(run.json()["trace"].as_array().unwrap().len(), 6, "{run:?}");
}

#[test]
fn quiet_prints_the_verdict_line_only() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    let run = workspace.run(&["verify", "sb.weak", "--model", "tso", "-q"]);
    assert_eq!((run.code, run.out.as_str()), (1, "violated: sb.weak under tso: assertion failed\n"));
    let run = workspace.run(&["verify", "sb.weak", "--model", "sc", "-q"]);
    assert_eq!((run.code, run.out.as_str()), (0, "verified: sb.weak under sc\n"));
}

#[test]
fn verbose_prints_figures() {
    let run = Workspace::with("sb.weak", STORE_BUFFERING).run(&["verify", "sb.weak", "--model", "sc", "-v"]);
    for word in ["explicit engine", "states", "transitions", "states/s", "MiB"] {
        assert!(run.out.contains(word), "no {word:?} in {}", run.out);
    }
}

#[test]
fn a_full_buffer_is_said_and_exits_with_3() {
    let workspace = Workspace::with("u.weak", UNBOUNDED_STORES);
    let run = workspace.run(&["verify", "u.weak", "--model", "tso", "--buffer", "3"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.out.starts_with("inconclusive: u.weak under tso: "), "{}", run.out);
    assert!(run.out.contains('3') && run.out.contains("--buffer"), "{}", run.out);
    let run = workspace.run(&["verify", "u.weak", "--model", "tso", "--buffer", "3", "--json"]);
    let object = run.json();
    assert_eq!((object["limit"].as_str(), object["buffer"].as_u64()), (Some("buffer"), Some(3)), "{run:?}");
}

#[test]
fn limits_are_honoured_and_exit_with_3() {
    let workspace = Workspace::with("endless.weak", ENDLESS);
    for (option, value, limit) in [("--time-limit", "0.2", "time"), ("--memory-limit", "1", "memory")] {
        let run = workspace.run(&["verify", "endless.weak", "--model", "tso", option, value, "--json"]);
        assert_eq!(run.code, 3, "{run:?}");
        let object = run.json();
        assert_eq!(object["verdict"], "inconclusive");
        assert_eq!(object["limit"], limit);
        assert!(object["states"].as_u64().unwrap() > 0);
        let run = workspace.run(&["verify", "endless.weak", "--model", "tso", option, value]);
        assert_eq!(run.code, 3, "{run:?}");
        assert!(run.out.contains(option), "no advice to raise {option}: {}", run.out);
    }
}

#[test]
fn a_deadlock_is_a_violation_unless_it_is_allowed() {
    let workspace = Workspace::with("d.weak", DEADLOCK);
    let run = workspace.run(&["verify", "d.weak", "--model", "tso"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.contains("deadlock") && run.out.contains("is stuck here"), "{}", run.out);
    let run = workspace.run(&["verify", "d.weak", "--model", "tso", "--allow-deadlock"]);
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn spurious_wakeups_come_only_when_asked_for() {
    let text = "\
shared woken;
mutex m;
condvar c;
thread waiter { lock(m); wait(c, m); assert(woken == 1); unlock(m); }
thread waker { lock(m); woken = 1; notify_one(c); unlock(m); }
";
    let workspace = Workspace::with("w.weak", text);
    let quiet = ["verify", "w.weak", "--model", "tso", "--allow-deadlock"];
    assert_eq!(workspace.run(&quiet).code, 0);
    let run = workspace.run(&[&quiet[..], &["--spurious-wakeups"]].concat());
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.contains("was not notified"), "{}", run.out);
}

#[test]
fn every_way_to_search_gives_the_same_verdict() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    for options in [&["--no-reduction"][..], &["--jobs", "1"], &["--jobs", "2"], &["--shortest", "--no-reduction"]] {
        for (model, code) in [("sc", 0), ("tso", 1), ("pso", 1)] {
            let run = workspace.run(&[&["verify", "sb.weak", "--model", model], options].concat());
            assert_eq!(run.code, code, "{options:?}: {run:?}");
        }
    }
}

#[test]
fn a_litmus_file_is_accepted() {
    let workspace = Workspace::with("sb.litmus", SB_LITMUS);
    assert_eq!(workspace.run(&["verify", "sb.litmus", "--model", "sc"]).code, 0);
    let run = workspace.run(&["verify", "sb.litmus", "--model", "tso"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.contains("MOV [x],$1"), "{}", run.out);
}

#[test]
fn a_program_may_come_from_standard_input() {
    let run = Workspace::new().run_with_input(&["verify", "-", "--model", "tso"], STORE_BUFFERING);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.starts_with("violated: <stdin> under tso"), "{}", run.out);
    for text in [SB_LITMUS.to_owned(), format!("(* of a file *)\n{}", SB_LITMUS.trim_start())] {
        let run = Workspace::new().run_with_input(&["verify", "-", "--model", "tso"], &text);
        assert_eq!(run.code, 1, "a litmus test is recognised: {run:?}");
    }
}

#[test]
fn the_intermediate_representation_can_be_shown() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    for arguments in [&["verify", "sb.weak", "--model", "tso", "--dump-ir"][..], &["check", "sb.weak", "--dump-ir"]] {
        let run = workspace.run(arguments);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
        assert!(run.out.contains("shared x = 0") && run.out.contains("store [x], 1"), "{}", run.out);
    }
    let run = workspace.run(&["verify", "sb.weak", "--model", "tso", "--dump-ir", "--json"]);
    assert!(run.json()["ir"].as_str().unwrap().contains("store [x], 1"));
}
