//! `check --random`, `--pct` and `--replay`: some schedules, or exactly one.

use crate::support::{STORE_BUFFERING, Workspace, very_many};

/// Fails under SC as soon as both threads have read before either writes.
const LOST_UPDATE: &str = "\
shared x;
thread p[2] { let r = x; x = r + 1; }
final { assert(x == 2, \"an update is lost\"); }
";

/// One thread chooses, one wakes another.
const CHOICES: &str = "\
shared x;
mutex m;
condvar c;
thread a { let v = choose(1..=3); x = v; assert(v != 3); }
thread b { lock(m); wait(c, m); unlock(m); }
thread n { lock(m); notify_one(c); unlock(m); }
";

/// The access that comes too early is a store: SOBER sees another execution of this than the one that is shown.
const EARLY_STORE: &str = "\
shared x, y;
thread a { x = 2; y = 2; }
thread b { y = 1; let r = x; }
";

/// SOBER names the store of `c` for one execution and the store of `a` for another; it is the latter that is late in both.
const ONE_PAIR: &str = "\
shared x, y;
thread a { y = 3; let r = x; }
thread b { let r = x; let s = y; }
thread c { x = 2; }
";

fn fenced() -> String {
    STORE_BUFFERING.replace("; let", "; fence; let")
}

#[test]
fn random_search_finds_errors_and_violations_and_is_bounded_otherwise() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("fenced.weak", fenced());
    workspace.write("lost.weak", LOST_UPDATE);
    for mode in [&["--random", "200"][..], &["--pct", "200"], &["--pct", "200", "--depth", "2", "--seed", "9"]] {
        let verdict = |file: &str| {
            let run = workspace.run(&[&["check", file, "--json"], mode].concat());
            (run.code, run.json()["verdict"].as_str().unwrap().to_owned())
        };
        assert_eq!(verdict("sb.weak"), (1, "unsafe".to_owned()), "{mode:?}");
        assert_eq!(verdict("lost.weak"), (1, "error".to_owned()), "{mode:?}");
        assert_eq!(verdict("fenced.weak"), (3, "bounded".to_owned()), "{mode:?}");
    }
    let run = workspace.run(&["check", "fenced.weak", "--random", "200"]);
    assert!(run.out.starts_with("bounded: fenced.weak under tso: nothing found in 200 schedules\n"), "{}", run.out);
    assert!(run.out.contains("200 SC executions") && run.out.contains("--seed"), "{}", run.out);
}

#[test]
fn the_same_seed_gives_the_same_answer_and_another_seed_other_schedules() {
    let workspace = Workspace::with("lost.weak", LOST_UPDATE);
    let run = |seed: &str| {
        let mut object = workspace.run(&["check", "lost.weak", "--random", "50", "--seed", seed, "--json"]).json();
        object["seconds"] = 0.into();
        assert_eq!(object["seed"].to_string(), seed);
        object
    };
    assert_eq!(run("5"), run("5"));
    let executions = (0..20).map(|seed| run(&seed.to_string())["executions"].as_u64()).collect::<Vec<_>>();
    assert!(executions.iter().any(|count| *count != executions[0]), "{executions:?}");
}

/// The words after `weakspot` on the line that is printed for pasting.
fn pasted(out: &str) -> Vec<String> {
    let line = out.lines().find_map(|line| line.strip_prefix("replay: weakspot ")).unwrap_or_else(|| panic!("{out}"));
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn the_printed_line_leads_to_the_same_finding() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("lost.weak", LOST_UPDATE);
    workspace.write("choices.weak", CHOICES);
    workspace.write("stores.weak", EARLY_STORE);
    for arguments in [
        &["check", "sb.weak"][..],
        &["check", "stores.weak", "--monitor", "sober"],
        &["check", "stores.weak", "--monitor", "sober-published"],
        &["check", "stores.weak", "--monitor", "operational"],
        &["check", "sb.weak", "--engine", "attack"],
        &["check", "sb.weak", "--model", "pso"],
        &["check", "sb.weak", "--monitor", "operational"],
        &["check", "lost.weak"],
        &["check", "lost.weak", "--model", "sc"],
        &["check", "choices.weak"],
        &["check", "choices.weak", "--engine", "attack", "--spurious-wakeups"],
        &["check", "choices.weak", "--engine", "stateless", "--spurious-wakeups"],
        &["check", "choices.weak", "--max-preemptions", "2", "--spurious-wakeups"],
        &["check", "choices.weak", "--random", "100", "--spurious-wakeups"],
        &["check", "choices.weak", "--pct", "100", "--spurious-wakeups"],
        &["check", "choices.weak", "--random", "100", "--allow-deadlock"],
    ] {
        let first = workspace.run(arguments);
        assert_eq!(first.code, 1, "{arguments:?}: {first:?}");
        let words = pasted(&first.out);
        let again = workspace.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((again.code, pasted(&again.out)), (1, words.clone()), "{arguments:?}: {again:?}");
        assert_eq!(first.out.lines().next(), again.out.lines().next(), "{arguments:?}");
        let json = |arguments: &[&str]| workspace.run(&[arguments, &["--json"]].concat()).json();
        let (one, other) = (json(arguments), json(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        for field in ["verdict", "model", "schedule", "trace", "error", "impact"] {
            assert_eq!(one.get(field), other.get(field), "{arguments:?}: {field}");
        }
        assert_eq!(Some(one["schedule"].as_str().unwrap()), words.last().map(String::as_str));
        assert_eq!(other["mode"], "replay");
        let pair = |object: &serde_json::Value| (object["store"].clone(), object["access"].clone());
        assert_eq!(pair(&one["violations"][0]), pair(&other["violations"][0]), "{arguments:?}");
    }
}

#[test]
fn every_violation_has_its_own_line() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    let run = workspace.run(&["check", "sb.weak", "--all"]);
    assert_eq!(run.out.lines().filter(|line| line.starts_with("replay: ")).count(), 2, "{}", run.out);
}

#[test]
fn no_pair_is_reported_twice() {
    let workspace = Workspace::with("one.weak", ONE_PAIR);
    for monitor in ["sober", "sober-published", "operational"] {
        let run = workspace.run(&["check", "one.weak", "--all", "--monitor", monitor, "--json"]).json();
        let violations = run["violations"].as_array().unwrap();
        let threads: Vec<_> =
            violations.iter().map(|found| [&found["store"]["thread"], &found["access"]["thread"]]).collect();
        assert_eq!(threads, [["a", "b"]], "{monitor}");
    }
}

/// Both threads have the same two accesses, whoever was late in which schedule.
#[test]
fn the_accesses_of_a_template_are_one_pair_in_every_mode() {
    let workspace = Workspace::with("sb.weak", "shared x[2];\nthread p[2] { x[me] = 1; let r = x[1 - me]; }\n");
    for mode in [
        &["--engine", "stateless"][..],
        &["--engine", "attack"],
        &["--max-preemptions", "2"],
        &["--random", "50"],
        &["--pct", "50"],
    ] {
        let run = workspace.run(&[&["check", "sb.weak", "--all", "--json"], mode].concat()).json();
        assert_eq!(run["violations"].as_array().unwrap().len(), 1, "{mode:?}");
    }
}

#[test]
fn the_line_can_be_pasted_whatever_the_file_is_called() {
    let workspace = Workspace::with("it's a test.weak", STORE_BUFFERING);
    let run = workspace.run(&["check", "it's a test.weak"]);
    assert!(run.out.contains(r"replay: weakspot check 'it'\''s a test.weak' --replay 0x2.1x2"), "{}", run.out);
}

/// A wait that is no loop breaks if it can end unasked, in every mode; the schedule says so with a `w`.
#[test]
fn a_wake_up_that_nobody_asked_for_is_found_in_every_mode() {
    let text = "shared ready; mutex m; condvar c;\n\
        thread w { lock(m); if ready == 0 { wait(c, m); } assert(ready == 1); unlock(m); }\n\
        thread n { lock(m); ready = 1; notify_one(c); unlock(m); }\n";
    let workspace = Workspace::with("wake.weak", text);
    assert_eq!(workspace.run(&["check", "wake.weak"]).code, 0);
    for options in [
        &["--engine", "stateless"][..],
        &["--engine", "stateless", "--jobs", "2"],
        &["--engine", "attack"],
        &["--max-preemptions", "1"],
        &["--random", "50"],
        &["--pct", "50"],
        &["--replay", "0x3.0w.0x2"],
    ] {
        let run = workspace.run(&[&["check", "wake.weak", "--spurious-wakeups"], options].concat());
        assert_eq!(run.code, 1, "{options:?}: {run:?}");
        assert!(run.out.contains("wakes, though c was not notified") && run.out.contains("0w"), "{}", run.out);
    }
    let run = workspace.run(&["check", "wake.weak", "--replay", "0x3.0w.0x2"]);
    assert!(run.code == 2 && run.err.contains("takes `--spurious-wakeups`"), "{run:?}");
}

#[test]
fn a_schedule_in_which_nothing_is_found_says_where_it_ends() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("choices.weak", CHOICES);
    workspace.write("assume.weak", "shared x;\nthread a { let r = x; assume(r == 1); }\n");
    for (file, schedule, options, words) in [
        ("sb.weak", "", &[][..], "threads can still move"),
        ("sb.weak", "0.1.0x1", &[], "threads can still move"),
        ("sb.weak", "0x2.1x2", &["--model", "sc"], "runs to the end of the program"),
        ("assume.weak", "0", &[], "it is no execution"),
        ("choices.weak", "2x3.0=1.0.1x2", &["--allow-deadlock"], "ends in a deadlock"),
    ] {
        let run = workspace.run(&[&["check", file, "--replay", schedule], options].concat());
        assert_eq!(run.code, 3, "{schedule}: {run:?}");
        assert!(run.out.starts_with("bounded: ") && run.unfolded().contains(words), "{schedule}: {}", run.out);
    }
}

#[test]
fn a_schedule_that_does_not_fit_names_the_step_and_what_was_possible() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("choices.weak", CHOICES);
    workspace.write("lost.weak", LOST_UPDATE);
    for (file, schedule, words) in [
        ("sb.weak", "0x3", &["step 3", "thread 0 (`a`) cannot move", "thread 1 (`b`) can go on at 3:12 (`y = 1`)"][..]),
        ("sb.weak", "0.5", &["step 2", "no thread 5", "thread 0 (`a`), thread 1 (`b`)"]),
        ("sb.weak", "0x2.1x2.0", &["step 5", "over after 4 steps", "`0x2.1x2`"]),
        ("choices.weak", "0=4", &["step 1", "cannot choose 4", "=1 to =3 at 4:"]),
        ("choices.weak", "0", &["step 1", "cannot choose 0", "=1 to =3"]),
        ("choices.weak", "1x2.1", &["step 3", "thread 1 (`b`) cannot move", "thread 2 (`n`) can go on at 6:12"]),
        ("choices.weak", "1x2.1w", &["step 3", "thread 1 (`b`) cannot wake up"]),
        ("choices.weak", "0=3.0.1", &["step 3", "over after 2 steps", "assertion failed"]),
        ("lost.weak", "0.1.0.1.0", &["step 5", "over after 4 steps"]),
        ("sb.weak", "0.x", &["part 2", "`x`", "0x3.1=2.0"]),
        ("sb.weak", "zero", &["part 1", "`zero`"]),
        ("sb.weak", "0x99999999999999999999", &["part 1"]),
        ("sb.weak", "-1", &["part 1"]),
    ] {
        let run = workspace.run(&["check", file, "--replay", schedule]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{schedule}: {run:?}");
        for word in words {
            assert!(run.err.contains(word), "{schedule} does not say {word:?}: {}", run.err);
        }
    }
}

#[test]
fn options_that_contradict_each_other_are_refused_with_a_hint() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    for (options, words) in [
        (&["--random", "5", "--pct", "5"][..], &["`--random` and `--pct` contradict", "give one"][..]),
        (&["--random", "5", "--max-preemptions", "2"], &["`--random` and `--max-preemptions`"]),
        (&["--random", "5", "--replay", "0"], &["`--replay` and `--random`"]),
        (&["--pct", "5", "--replay", "0"], &["`--replay` and `--pct`"]),
        (&["--seed", "5"], &["`--seed`", "`--random N` or `--pct N`"]),
        (&["--random", "5", "--depth", "2"], &["`--depth`", "`--pct N`"]),
        (&["--random", "5", "--engine", "attack"], &["`--random`", "stateless"]),
        (&["--pct", "5", "--engine", "attack"], &["`--pct`", "stateless"]),
        (&["--replay", "0", "--engine", "attack"], &["`--replay`", "stateless"]),
        (&["--replay", "0", "--unroll", "2"], &["`--replay` and `--unroll`"]),
        (&["--replay", "0", "--all"], &["`--replay` and `--all`"]),
        (&["--random", "0"], &["--random"]),
        (&["--pct", "-3"], &["-3"]),
        (&["--pct", "3", "--depth", "0"], &["--depth"]),
        (&["--random", "3", "--seed", "x"], &["--seed"]),
    ] {
        let run = workspace.run(&[&["check", "sb.weak"], options].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{options:?}: {run:?}");
        for word in words {
            assert!(run.err.contains(word), "{options:?} does not say {word:?}: {}", run.err);
        }
    }
}

#[test]
fn a_program_without_an_end_says_what_to_add_in_every_mode() {
    // values grow for ever, so neither the exact engine nor exploration has an end
    let grows = "shared x;\nthread p[2] { loop { x = x + 1; } }\n";
    let workspace = Workspace::with("grows.weak", grows);
    for mode in [
        &["--engine", "stateless"][..],
        &["--max-preemptions", "1"],
        &["--random", "3"],
        &["--pct", "3"],
        &["--monitor", "operational"],
    ] {
        let run = workspace.run(&[&["check", "grows.weak", "--model", "sc"], mode].concat());
        assert_eq!(run.code, 3, "{mode:?}: {run:?}");
        assert!(run.out.starts_with("bounded: ") && run.out.contains("SC execution"), "{mode:?}: {}", run.out);
        let advised = mode[0] != "--max-preemptions";
        assert!(run.out.contains("--unroll"), "{mode:?}: {}", run.out);
        assert_eq!(run.out.contains("--max-preemptions"), advised, "{mode:?}: {}", run.out);
    }
}

#[test]
fn a_bound_ends_the_search_even_where_the_state_space_has_no_end() {
    // the monitor finds a violation within the bound; what comes of it cannot be searched to the end
    let text = "shared x, y, n;\nthread a { loop { x = 1; let r = y; n = n + 1; } }\n\
                thread b { loop { y = 1; let r = x; n = n + 1; } }\n";
    let workspace = Workspace::with("grows.weak", text);
    for mode in [&["--random", "20"][..], &["--unroll", "2"], &["--replay", "0x2.1x2"]] {
        let arguments = [&["check", "grows.weak", "--json", "--time-limit", "60"], mode].concat();
        let object = workspace.run(&arguments).json();
        assert_eq!(object["verdict"], "unsafe", "{mode:?}: {object}");
        assert!(object["witness"].is_array() && object["schedule"].is_string(), "{mode:?}: {object}");
    }
}

#[test]
fn limits_end_a_random_search_with_what_was_covered() {
    let workspace = Workspace::with("endless.weak", very_many());
    for mode in ["--random", "--pct"] {
        let run = workspace.run(&["check", "endless.weak", "--model", "sc", mode, "1000000000", "--time-limit", "0.3"]);
        assert_eq!(run.code, 3, "{run:?}");
        assert!(run.out.contains("the time limit was reached") && run.out.contains("SC execution"), "{}", run.out);
        let arguments = ["check", "endless.weak", "--model", "sc", mode, "1000000000", "--memory-limit", "1", "--json"];
        let run = workspace.run(&arguments);
        assert_eq!((run.code, run.json()["limit"].as_str()), (3, Some("memory")), "{run:?}");
    }
}
