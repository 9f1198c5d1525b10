//! Options: what fits, what does not, and what is promised about every command.

use crate::support::{SB_LITMUS, STORE_BUFFERING, Workspace, finish};

fn workspace() -> Workspace {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("sb.litmus", SB_LITMUS);
    workspace
}

/// Runs, and insists on exit status 2, silence on standard output and the words on standard error.
fn refused(arguments: &[&str], words: &[&str]) {
    let run = workspace().run(arguments);
    assert_eq!(run.code, 2, "{arguments:?}: {run:?}");
    assert_eq!(run.out, "", "{arguments:?}");
    for word in words {
        assert!(run.err.contains(word), "{arguments:?} does not say {word:?}: {}", run.err);
    }
}

#[test]
fn bad_usage_is_refused_with_the_name_of_what_is_wrong() {
    refused(&[], &["Usage"]);
    refused(&["verfy", "sb.weak"], &["verfy", "verify"]);
    refused(&["verify", "sb.weak"], &["--model"]);
    refused(&["verify", "sb.weak", "--model", "tos"], &["tos", "tso"]);
    refused(&["verify", "sb.weak", "--model", "arm"], &["arm", "sc, tso, pso"]);
    refused(&["verify", "sb.weak", "--model", "tso", "--engine", "explict"], &["explict", "explicit"]);
    refused(&["verify", "--model", "tso"], &["FILE"]);
    refused(&["verify", "sb.weak", "--model", "tso", "--nonsense"], &["--nonsense"]);
    refused(&["verify", "sb.weak", "--model", "tso", "-q", "-v"], &["--quiet", "--verbose"]);
    refused(&["litmus", "--model", "tso"], &["FILES"]);
    refused(&["fmt", "sb.weak", "--check", "--write"], &["--check", "--write"]);
    refused(&["completions", "tcsh"], &["tcsh"]);
}

#[test]
fn options_that_do_not_fit_the_command_or_engine_are_refused() {
    refused(&["litmus", "sb.litmus", "--model", "tso", "--engine", "explicit"], &["--engine"]);
    refused(&["fmt", "sb.weak", "--model", "tso"], &["--model"]);
    let verify = |rest: &[&'static str]| [&["verify", "sb.weak", "--model", "tso"], rest].concat();
    refused(&verify(&["--domain", "set"]), &["--domain", "abstract"]);
    refused(&verify(&["-k", "2"]), &["-k", "abstract"]);
    refused(&verify(&["--engine", "symbolic", "--buffer", "4"]), &["--buffer", "symbolic"]);
    refused(&verify(&["--engine", "abstract", "--shortest"]), &["--shortest", "abstract"]);
    refused(&verify(&["--engine", "symbolic", "-k", "2"]), &["-k", "symbolic"]);
    refused(&verify(&["--value", "x=sign"]), &["--value", "abstract"]);
    refused(&verify(&["--engine", "abstract", "--jobs", "2"]), &["--jobs", "explicit"]);
    refused(&verify(&["--engine", "abstract", "--domain", "set", "-k", "1"]), &["-k", "set", "fd"]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let verify = |rest: &[&'static str]| [&["verify", "sb.weak", "--model", "tso"], rest].concat();
    for (option, bad) in [
        ("--jobs", ["0", "-1", "many"]),
        ("--buffer", ["0", "-1", "1e3"]),
        ("--memory-limit", ["0", "-5", "x"]),
        ("--time-limit", ["0", "-5", "soon"]),
    ] {
        for value in bad {
            refused(&verify(&[option, value]), &[option]);
        }
    }
    for option in ["--max-preemptions", "--unroll", "--random", "--pct", "--depth", "--seed"] {
        refused(&["check", "sb.weak", option, "-1"], &[option]);
    }
    refused(&verify(&["--time-limit", "inf"]), &["--time-limit"]);
    refused(&verify(&["--time-limit", "NaN"]), &["--time-limit"]);
    refused(&verify(&["--time-limit", "3 days"]), &["3 days", "500ms, 90s, 5m, 1h"]);
    refused(&verify(&["--memory-limit", "lots"]), &["lots", "512M, 4G"]);
}

#[test]
fn limits_may_have_units() {
    let run = workspace().run(&["check", "sb.weak", "--time-limit", "5m", "--memory-limit", "1GiB"]);
    assert_eq!(run.code, 1, "{run:?}");
}

#[test]
fn the_symbolic_engine_answers_with_unbounded_buffers_and_knows_every_fence() {
    let endless = "shared x, y;\nthread a { loop { x = 1; x = 2; let r = y; } }\nthread b { loop { let r = x; assert(r < 3); } }\n";
    let workspace = Workspace::with("endless.weak", endless);
    let run = workspace.run(&["verify", "endless.weak", "--model", "tso", "--engine", "symbolic", "--json"]);
    let object = run.json();
    assert_eq!((run.code, object["engine"].as_str()), (0, Some("symbolic")), "{run:?}");
    assert!(object["visited"].is_u64() && object["depth"].is_u64() && object["buffer"].is_null(), "{run:?}");
    let run = workspace.run(&["verify", "endless.weak", "--model", "tso", "--engine", "explicit", "--no-reduction"]);
    assert_eq!(run.code, 3, "{run:?}");

    let run = self::workspace().run(&[
        "verify",
        "sb.weak",
        "--model",
        "tso",
        "--engine",
        "symbolic",
        "--count-errors",
        "--json",
    ]);
    assert_eq!((run.code, run.json()["errors"].as_u64()), (1, Some(1)), "{run:?}");

    let fenced = "shared x, y;\nthread a { x = 1; fence(store_store); y = 1; }\nthread b { let r = y; let s = x; }\n";
    let workspace = Workspace::with("fenced.weak", fenced);
    let run = workspace.run(&["verify", "fenced.weak", "--model", "pso", "--engine", "symbolic"]);
    assert_eq!(run.code, 0, "{run:?}");
    refused(&["verify", "sb.weak", "--model", "tso", "--engine", "symbolic", "--jobs", "2"], &["--jobs", "explicit"]);
    refused(&["verify", "sb.weak", "--model", "tso", "--count-errors"], &["--count-errors", "symbolic"]);
}

#[test]
fn options_of_one_engine_of_check_are_refused_by_the_other() {
    let attack = |option: [&'static str; 2]| [&["check", "sb.weak", "--engine", "attack"][..], &option].concat();
    refused(&attack(["--monitor", "sober"]), &["--monitor", "stateless"]);
    refused(&attack(["--max-preemptions", "2"]), &["--max-preemptions", "stateless"]);
    refused(&attack(["--unroll", "2"]), &["--unroll", "stateless"]);
    refused(&["check", "sb.weak", "--model", "pso", "--monitor", "sober"], &["TSO", "--monitor operational"]);
}

#[test]
fn every_engine_and_monitor_of_check_finds_store_buffering() {
    for options in [
        &["--engine", "attack"][..],
        &["--engine", "stateless"],
        &["--monitor", "operational", "--model", "pso"],
        &["--monitor", "operational"],
        &["--monitor", "sober-published"],
        &["--max-preemptions", "1"],
        &["--unroll", "1"],
    ] {
        let run = workspace().run(&[&["check", "sb.weak", "--json"], options].concat());
        let object = run.json();
        let answer = (object["verdict"].as_str(), object["impact"].as_str());
        assert_eq!((run.code, answer), (1, (Some("unsafe"), Some("harmful"))), "{options:?}: {run:?}");
        assert!(!object["witness"].as_array().unwrap().is_empty(), "{options:?}");
    }
}

/// The smallest program that SOBER's monitor as published is silent about, although it is not store-buffer safe.
#[test]
fn the_published_monitor_is_not_said_to_have_proved_anything() {
    let workspace = Workspace::with(
        "n6.weak",
        "shared x, y;\nthread a { x = 1; let r = x; let s = y; }\nthread b { y = 2; x = 2; }\n",
    );
    let run = workspace.run(&["check", "n6.weak", "--monitor", "sober-published"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.unfolded().contains("as published it misses some violations"), "{run:?}");
    assert!(!run.unfolded().contains("store buffers add no other"), "{run:?}");
    assert_eq!(workspace.run(&["check", "n6.weak", "--monitor", "sober"]).code, 1);
}

/// Too long is not without end.
#[test]
fn a_long_execution_is_not_said_to_have_no_end() {
    let workspace =
        Workspace::with("long.weak", "shared x;\nthread a { let i = 0; while i < 70000 { x = i; i = i + 1; } }\n");
    let run = workspace.run(&["check", "long.weak", "--engine", "stateless"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.unfolded().contains("an execution grew too long to be explored, perhaps without end"), "{run:?}");
    assert_eq!(workspace.run(&["check", "long.weak"]).code, 0);
}

#[test]
fn a_bound_that_finds_nothing_says_so() {
    let fenced = "shared x, y;\nthread a { x = 1; fence; let r = y; }\nthread b { y = 1; fence; let r = x; }\n";
    let workspace = Workspace::with("fenced.weak", fenced);
    let run = workspace.run(&["check", "fenced.weak", "--max-preemptions", "1"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.out.starts_with("bounded: ") && run.out.contains("--max-preemptions"), "{run:?}");
    let run = workspace.run(&["check", "fenced.weak", "--json"]);
    let object = run.json();
    assert_eq!((run.code, object["engine"].as_str(), object["executions"].as_u64()), (0, Some("stateless"), Some(3)));
}

#[test]
fn every_command_refuses_an_input_that_is_missing() {
    refused(&["check", "missing.weak"], &["missing.weak"]);
    refused(&["fence", "missing.weak", "--model", "tso"], &["missing.weak"]);
    refused(&["trace", "missing.trace", "--model", "tso"], &["missing.trace"]);
}

#[test]
fn colour_only_where_it_is_wanted() {
    let workspace = workspace();
    let verify = ["verify", "sb.weak", "--model", "tso"];
    let coloured = |text: &str| text.contains("\u{1b}[");
    assert!(!coloured(&workspace.run(&verify).out), "standard output is no terminal");
    assert!(coloured(&workspace.run(&[&verify[..], &["--color", "always"]].concat()).out));
    assert!(!coloured(&workspace.run(&[&verify[..], &["--color", "never"]].concat()).out));
    let forced = finish(workspace.command(&verify).env("CLICOLOR_FORCE", "1"));
    assert!(coloured(&forced.out));
    let never = finish(workspace.command(&verify).env("NO_COLOR", "1"));
    assert!(!coloured(&never.out));
    let bad = workspace.run(&["verify", "missing.weak", "--model", "tso", "--color", "always"]);
    assert!(coloured(&bad.err), "{bad:?}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    use std::process::Stdio;
    let workspace = workspace();
    let mut child = workspace
        .command(&["verify", "sb.weak", "--model", "tso", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    for arguments in [&["--help"][..], &["man"], &["completions", "bash"]] {
        let mut child = workspace.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]), "{arguments:?}");
    }
}
