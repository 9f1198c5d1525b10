//! `check --record` and `weakspot trace`: round trips, damage, limits.

use std::path::Path;

use crate::support::{SB_LITMUS, STORE_BUFFERING, Workspace, very_many};

/// The part of docs/traces.md between two marks.
fn documented(kind: &str) -> String {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/traces.md");
    let text = std::fs::read_to_string(document).unwrap();
    let (_, rest) = text.split_once(&format!("```{kind}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_document_shows_what_is_recorded() {
    let workspace = Workspace::with("sb.weak", documented("weak"));
    let run = workspace.run(&["check", "sb.weak", "--record", "sb.wtrace.txt"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.contains("recorded to `sb.wtrace.txt`: 1 execution, 4 events"), "{}", run.out);
    assert_eq!(workspace.read("sb.wtrace.txt"), documented("trace"));
}

#[test]
fn the_format_follows_the_name_or_the_option() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    for (name, options, is_text) in [
        ("t.wtrace", &[][..], false),
        ("t.wtrace.txt", &[], true),
        ("t.TXT", &[], true),
        ("t", &[], false),
        ("t.bin", &["--record-format", "text"], true),
        ("t.txt", &["--record-format", "binary"], false),
    ] {
        workspace.run(&[&["check", "sb.weak", "--all", "--record", name], options].concat());
        let bytes = std::fs::read(workspace.path().join(name)).unwrap();
        assert_eq!(bytes.starts_with(b"weakspot-trace 1\n"), is_text, "{name} {options:?}");
        assert_eq!(bytes.starts_with(b"\x89WTR\r\n\x1a\n\x01"), !is_text, "{name} {options:?}");
        let run = workspace.run(&["trace", name, "--model", "tso", "--json"]);
        assert_eq!((run.code, run.json()["executions"].as_u64()), (1, Some(3)), "{run:?}");
        assert_eq!(run.json()["format"], if is_text { "text" } else { "binary" });
    }
}

#[test]
fn a_recorded_violation_shows_both_places_in_the_source() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.run(&["check", "sb.weak", "--record", "sb.wtrace"]);
    for arguments in [
        &["trace", "sb.wtrace", "--model", "tso"][..],
        &["trace", "sb.wtrace", "--model", "pso"],
        &["trace", "sb.wtrace", "--model", "tso", "--monitor", "operational"],
        &["trace", "sb.wtrace", "--model", "tso", "--monitor", "sober-published"],
    ] {
        let run = workspace.run(arguments);
        assert_eq!((run.code, run.err.as_str()), (1, ""), "{run:?}");
        assert!(run.out.starts_with("unsafe: sb.wtrace under "), "{}", run.out);
        for words in ["sb.weak:2:12", "2 | thread a { x = 1;", "3 | thread b { y = 1;", "execution 1, event 4"] {
            assert!(run.out.contains(words), "{words:?}: {}", run.out);
        }
    }
    let quiet = workspace.run(&["trace", "sb.wtrace", "--model", "tso", "-q"]);
    assert_eq!((quiet.code, quiet.out.lines().count()), (1, 1));
}

#[test]
fn a_source_that_has_changed_or_is_gone_is_not_shown() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.run(&["check", "sb.weak", "--record", "deep.wtrace"]);
    workspace.write("sb.weak", STORE_BUFFERING.replace("x = 1", "x = 2"));
    let changed = workspace.run(&["trace", "deep.wtrace", "--model", "tso"]);
    assert_eq!(changed.code, 1);
    assert!(changed.out.contains("sb.weak:2:12 (the file cannot be read or has changed since)"), "{}", changed.out);
    assert!(!changed.out.contains("thread a"), "{}", changed.out);
    std::fs::remove_file(workspace.path().join("sb.weak")).unwrap();
    let gone = workspace.run(&["trace", "deep.wtrace", "--model", "tso"]);
    assert_eq!((gone.code, gone.out.contains("sb.weak:3:27")), (1, true), "{}", gone.out);
    // beside the trace, which lies elsewhere
    workspace.write("below/sb.weak", STORE_BUFFERING);
    std::fs::rename(workspace.path().join("deep.wtrace"), workspace.path().join("below/deep.wtrace")).unwrap();
    let found = workspace.run(&["trace", "below/deep.wtrace", "--model", "tso"]);
    assert!(found.out.contains("2 | thread a { x = 1;"), "{}", found.out);
}

#[test]
fn a_safe_trace_exits_with_0_and_says_what_it_is_about() {
    let workspace = Workspace::with("fenced.weak", STORE_BUFFERING.replace("; let", "; fence; let"));
    let run = workspace.run(&["check", "fenced.weak", "--record", "f.wtrace"]);
    assert_eq!(run.code, 0, "{run:?}");
    let run = workspace.run(&["trace", "f.wtrace", "--model", "pso"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert!(run.out.starts_with("safe: f.wtrace under pso: ") && run.out.contains("3 executions"), "{}", run.out);
    assert!(run.out.contains("only the recorded executions"), "{}", run.out);
}

#[test]
fn a_recorded_error_is_the_answer() {
    let text = "shared x;\nthread p[2] { let r = x; x = r + 1; }\nfinal { assert(x == 2, \"an update is lost\"); }\n";
    let workspace = Workspace::with("lost.weak", text);
    for mode in [&[][..], &["--random", "100"], &["--max-preemptions", "2"], &["--replay", "0.1.0.1"]] {
        let run = workspace.run(&[&["check", "lost.weak", "--record", "lost.wtrace"], mode].concat());
        assert_eq!(run.code, 1, "{mode:?}: {run:?}");
        let run = workspace.run(&["trace", "lost.wtrace", "--model", "tso", "--json"]);
        let object = run.json();
        assert_eq!((run.code, object["verdict"].as_str()), (1, Some("error")), "{mode:?}: {run:?}");
        assert!(object["error"]["message"].as_str().unwrap().contains("an update is lost"), "{object}");
        assert!(object["error"]["execution"].as_u64() == object["executions"].as_u64(), "it ends the search: {object}");
    }
}

#[test]
fn standard_input_is_read_in_either_format() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    let run = workspace.run_with_input(&["trace", "-", "--model", "tso", "--json"], &documented("trace"));
    assert_eq!((run.code, run.json()["file"].as_str()), (1, Some("<stdin>")), "{run:?}");
    workspace.run(&["check", "sb.weak", "--record", "sb.wtrace"]);
    let file = std::fs::File::open(workspace.path().join("sb.wtrace")).unwrap();
    let run = crate::support::finish(workspace.command(&["trace", "-", "--model", "tso"]).stdin(file));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.starts_with("unsafe: <stdin> under tso"), "{}", run.out);
}

#[test]
fn damage_to_a_binary_trace_names_the_byte_and_gives_no_verdict() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.run(&["check", "sb.weak", "--all", "--record", "sb.wtrace"]);
    let whole = std::fs::read(workspace.path().join("sb.wtrace")).unwrap();
    let mut changed = whole.clone();
    changed[40] ^= 0x20;
    let mut newer = whole.clone();
    newer[8] = 9;
    let mut longer = whole.clone();
    longer.push(0);
    for (name, bytes, words) in [
        ("changed", changed, &["damaged at byte 9", "checksum"][..]),
        ("cut", whole[..60].to_vec(), &["damaged at byte 60", "truncated"]),
        ("unclosed", whole[..whole.len() - 24].to_vec(), &["truncated", "closing block"]),
        ("version", newer, &["byte 8", "version 9"]),
        ("longer", longer, &["after the end"]),
        ("magic", whole[..5].to_vec(), &["byte 5", "header"]),
    ] {
        workspace.write(name, bytes);
        let run = workspace.run(&["trace", name, "--model", "tso"]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{name}: {run:?}");
        for word in words {
            assert!(run.err.contains(word), "{name} does not say {word:?}: {}", run.err);
        }
    }
}

#[test]
fn damage_to_a_text_trace_shows_the_line_and_the_column() {
    let workspace = Workspace::new();
    let good = documented("trace");
    for (from, to, words) in [
        ("0 load 1 -> 0", "0 load 7 -> 0", &[":11:8", "11 | 0 load 7 -> 0 @1", "       ^", "no location 7"][..]),
        ("0 load 1 -> 0", "0 lead 1 -> 0", &[":11:3", "no such event", "load, store"]),
        ("0 load 1 -> 0", "0 load 1 <- 0", &[":11:10", "does not belong to a load"]),
        ("1 load 0 -> 1 @3", "4 load 0 -> 1 @3", &[":15:1", "no thread 4"]),
        ("1 load 0 -> 1 @3", "1 load 0 -> 1 @9", &[":15:15", "no place 9", "is 3"]),
        ("1 load 0 -> 1 @3", "1 lock 0", &[":15:8", "0 is a location, not a mutex"]),
        ("-> 1 @3", "-> 99999999999999999999 @3", &[":15:13", "64-bit"]),
        ("end complete", "end well", &[":16:5", "complete, blocked"]),
        ("end complete\n", "", &[":16:1", "inside an execution"]),
        ("begin\n", "", &[":8:1", "outside of any execution"]),
        ("close 1 4", "close 1 5", &[":17:1", "1 executions and 5 events, but has 1 and 4"]),
        ("close 1 4 3626e14c\n", "", &[":17:1", "truncated", "`close`"]),
        ("thread 1", "thread 2", &[":4:8", "the next thread has the number 1"]),
        ("location 1", "mutex 0", &[":6:7", "the next location, mutex or condvar has the number 1"]),
        ("\"b\"", "\"b", &[":4:10", "no end"]),
        ("\"b\"", "\"b\\q\"", &[":4:12", "escape"]),
        ("\"b\"", "b", &[":4:10", "double quotes"]),
        ("0:2:12+5", "5:2:12+5", &[":8:9", "no file 5"]),
        ("0:2:12+5", "0:2", &[":8:9", "FILE:LINE:COLUMN"]),
        ("3c7245", "xyz", &[":2:8", "hash"]),
        ("weakspot-trace 1", "weakspot-trace 2", &[":1:16", "version `2`"]),
        ("weakspot-trace 1", "{}", &[":1:1", "weakspot-trace 1"]),
        ("close 1 4 3626e14c\n", "close 1 4\nbegin\n", &[":18:1", "after the end"]),
        ("<- 1 @0", "<- 3 @0", &[":17:11", "17 | close 1 4 3626e14c", "checksum is wrong", "leave the checksum out"]),
        ("3626e14c", "3626e14", &[":17:11", "8 hexadecimal digits"]),
        ("3626e14c", "3626e14c 1", &[":17:20", "more on this line"]),
        ("begin", "begin now", &[":7:7", "more on this line"]),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good, "{from}");
        workspace.write("bad.wtrace.txt", &bad);
        let run = workspace.run(&["trace", "bad.wtrace.txt", "--model", "tso"]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{to}: {run:?}");
        for word in words {
            assert!(run.err.contains(word), "{from:?} to {to:?} does not say {word:?}: {}", run.err);
        }
    }
}

#[test]
fn a_person_may_write_comments_and_leave_things_out() {
    let text = "weakspot-trace 1\r\n\n# two threads\nthread 0 \"main\"  # the first\nthread 1 \"other one\"\n\
                location 0 \"x\"\nlocation 1 \"y\"\nbegin\n  0 store 0\n\t0 load 1\n1 store 1\n1 load 0\nend unfinished\nclose 1 4\n";
    let run = Workspace::new().run_with_input(&["trace", "-", "--model", "tso"], text);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.out.contains("a store of `main` to `x`") && run.out.contains("the place is not recorded"),
        "{}",
        run.out
    );
    assert!(run.out.contains("0 of them to their end"), "{}", run.out);
}

#[test]
fn a_trace_without_events_gives_no_verdict() {
    let run =
        Workspace::new().run_with_input(&["trace", "-", "--model", "tso", "--json"], "weakspot-trace 1\nclose 0 0\n");
    assert_eq!((run.code, run.json()["limit"].as_str()), (3, Some("empty")), "{run:?}");
}

#[test]
fn a_trace_is_no_program() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    for name in ["t.wtrace", "t.txt"] {
        workspace.run(&["check", "sb.weak", "--record", name]);
        let run = workspace.run(&["check", name]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
        let words = format!("`{name}` is a recorded trace, not a program\n help: `weakspot trace`");
        assert!(run.err.contains(&words), "{}", run.err);
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("empty", "");
    workspace.write("zeros", [0; 100]);
    for (file, words) in [
        ("sb.weak", &["sb.weak:1:1", "weakspot-trace 1"][..]),
        ("empty", &["empty"]),
        ("zeros", &["zeros:1:1"]),
        ("missing.wtrace", &["missing.wtrace", "no such file"]),
        (".", &["directory"]),
    ] {
        let run = workspace.run(&["trace", file, "--model", "tso", "--json"]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{file}: {run:?}");
        assert!(words.iter().all(|word| run.err.contains(word)), "{file}: {}", run.err);
    }
    for options in [&["--model", "sc"][..], &["--model", "pso", "--monitor", "sober"]] {
        let run = workspace.run(&[&["trace", "sb.weak"], options].concat());
        assert_eq!(run.code, 2, "{run:?}");
    }
}

#[test]
fn a_record_that_does_not_fit_is_refused_and_nothing_is_written() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("bad.weak", "thread {");
    workspace.write("kept.wtrace", "as it was");
    let check = |rest: &[&'static str]| workspace.run(&[&["check", "sb.weak"], rest].concat());
    for (run, words) in [
        (check(&["--record", "kept.wtrace", "--engine", "attack"]), "stateless"),
        (check(&["--record", "kept.wtrace", "--jobs", "2"]), "--jobs"),
        (check(&["--record", "-"]), "name a file"),
        (check(&["--record-format", "text"]), "--record FILE"),
        (check(&["--record", "no/such/folder/t.wtrace"]), "no/such/folder/t.wtrace"),
        (check(&["--record", "."]), "directory"),
        (check(&["--record", "./sb.weak"]), "take the place of the program `sb.weak`"),
        (check(&["--record", "kept.wtrace", "--replay", "7"]), "step 1"),
        (workspace.run(&["check", "bad.weak", "--record", "kept.wtrace"]), "bad.weak"),
    ] {
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
        assert!(run.err.contains(words), "{words}: {}", run.err);
    }
    assert_eq!(workspace.read("kept.wtrace"), "as it was");
    assert_eq!(workspace.read("sb.weak"), STORE_BUFFERING);
    let left = std::fs::read_dir(workspace.path()).unwrap().count();
    assert_eq!(left, 3, "no temporary file is left behind");
}

#[test]
fn a_limit_leaves_a_whole_record_of_what_was_covered() {
    let workspace = Workspace::with("endless.weak", very_many());
    let arguments = ["check", "endless.weak", "--random", "1000000", "--model", "sc", "--time-limit", "0.5"];
    let run = workspace.run(&[&arguments[..], &["--record", "part.wtrace", "--json"]].concat());
    assert_eq!((run.code, run.json()["limit"].as_str()), (3, Some("time")), "{run:?}");
    let recorded = run.json()["recorded"].clone();
    let trace = workspace.run(&["trace", "part.wtrace", "--model", "tso", "--json"]);
    assert!(trace.code == 0 || trace.code == 1 || recorded["events"] == 0, "{trace:?}");
    assert_eq!(trace.json()["executions"], recorded["executions"]);
    assert_eq!(trace.json()["events"], recorded["events"]);
}

#[test]
fn a_memory_limit_is_honoured_before_the_tables_are_made() {
    let threads = (0..200).map(|thread| format!("thread {thread} \"t{thread}\""));
    let cells = (0..2000).map(|cell| format!("location {cell} \"x{cell}\""));
    let declared = threads.chain(cells).collect::<Vec<_>>().join("\n");
    let text = format!("weakspot-trace 1\n{declared}\nbegin\n0 store 0\n1 load 0\nend complete\nclose 1 2\n");
    let workspace = Workspace::with("wide.wtrace.txt", &text);
    let run = workspace.run(&["trace", "wide.wtrace.txt", "--model", "tso", "--memory-limit", "1", "--json"]);
    assert_eq!((run.code, run.json()["limit"].as_str()), (3, Some("memory")), "{run:?}");
    assert_eq!(workspace.run(&["trace", "wide.wtrace.txt", "--model", "tso"]).code, 0);
}

#[test]
fn litmus_tests_are_recorded_like_programs() {
    let workspace = Workspace::with("sb.litmus", SB_LITMUS);
    assert_eq!(workspace.run(&["check", "sb.litmus", "--all", "--record", "sb.wtrace"]).code, 1);
    let run = workspace.run(&["trace", "sb.wtrace", "--model", "tso"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.contains("MOV [x],$1"), "{}", run.out);
}

/// Store buffering in which each thread assumes that it sees the other: `check` says that store buffers add nothing.
const ASSUMING: &str = "shared x, y;
thread a { x = 1; let r = y; assume(r == 1); }
thread b { y = 1; let r = x; assume(r == 1); }
";

#[test]
fn what_a_program_assumes_makes_the_findings_of_a_trace_uncertain() {
    let workspace = Workspace::with("a.weak", ASSUMING);
    for name in ["a.wtrace", "a.txt"] {
        let run = workspace.run(&["check", "a.weak", "--all", "--record", name, "--json"]);
        let check = run.json();
        assert_eq!((run.code, &check["verdict"], &check["engine"]), (0, &"safe".into(), &"attack".into()), "{run:?}");
        let counts = ["executions", "blocked", "borderline"].map(|field| check[field].as_u64());
        assert_eq!(counts, [Some(1), Some(2), Some(2)], "what was explored is counted: {check}");
        let run = workspace.run(&["trace", name, "--model", "tso", "--json"]);
        let trace = run.json();
        assert_eq!((run.code, &trace["verdict"]), (3, &"bounded".into()), "{run:?}");
        assert_eq!((&trace["limit"], trace["borderline"].as_u64()), (&"assumptions".into(), Some(2)), "{trace}");
        assert_eq!(trace["violations"].as_array().map(Vec::len), Some(2), "{trace}");
        let run = workspace.run(&["trace", name, "--model", "tso"]);
        assert!(run.out.contains("may turn 2 of 3 executions into") && run.out.contains("`weakspot check`"), "{run:?}");
    }
    let run = workspace.run(&["check", "a.weak", "--engine", "stateless", "--all"]);
    assert!(run.out.contains(" states after 1 SC execution and 2 blocked, 2 borderline"), "{}", run.out);
}

#[test]
fn a_trace_of_which_nothing_runs_to_its_end_is_not_safe() {
    let workspace = Workspace::with("w.weak", "shared x;\nthread a { await(x == 1); }\n");
    assert_eq!(workspace.run(&["check", "w.weak", "--record", "w.wtrace"]).code, 3);
    let run = workspace.run(&["trace", "w.wtrace", "--model", "tso", "--json"]);
    assert_eq!((run.code, &run.json()["verdict"]), (3, &"bounded".into()), "{run:?}");
    assert_eq!(run.json()["limit"], "nothing-ends");
    let run = workspace.run(&["trace", "w.wtrace", "--model", "tso"]);
    assert!(run.out.starts_with("bounded: w.wtrace under tso: no execution ran to its end\n"), "{run:?}");
}

/// Somebody may read while the executions are explored, and the pipe is still a pipe afterwards.
#[cfg(unix)]
#[test]
fn pipes_and_devices_are_written_to_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt as _;
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    let pipe = workspace.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let is_pipe = || std::fs::metadata(&pipe).unwrap().file_type().is_fifo();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| workspace.run(&["trace", "pipe", "--model", "tso", "--json"]));
        let run = workspace.run(&["check", "sb.weak", "--all", "--record", "pipe"]);
        assert!(run.code == 1 && run.out.contains("recorded to `pipe`: 3 executions"), "{run:?}");
        assert!(is_pipe());
        let run = reader.join().unwrap();
        assert_eq!((run.code, run.json()["executions"].as_u64()), (1, Some(3)), "{run:?}");
    });
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| std::fs::read_to_string(&pipe));
        let run = workspace.run(&["fence", "sb.weak", "--model", "tso", "--output", "pipe"]);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(is_pipe());
        assert_eq!(reader.join().unwrap().unwrap().matches("fence;").count(), 2);
    });
    let link = workspace.path().join("full");
    std::os::unix::fs::symlink("/dev/full", &link).unwrap();
    let run = workspace.run(&["check", "sb.weak", "--record", "full"]);
    assert!(run.code == 2 && run.err.contains("cannot write `full`"), "{run:?}");
    assert!(std::fs::metadata(&link).unwrap().file_type().is_char_device());
}

/// Somebody holds the other end of the pipe and writes nothing more.
#[test]
fn a_time_limit_is_honoured_while_the_trace_is_waited_for() {
    use std::io::Write as _;
    use std::process::Stdio;
    let workspace = Workspace::new();
    for (text, format) in [(&b""[..], None), (b"weakspot-trace 1\nthread 0 \"a\"\nbegin\n0 fe", Some("text"))] {
        let arguments = ["trace", "-", "--model", "tso", "--json", "--time-limit", "0.2"];
        let mut command = workspace.command(&arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(text).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&object["verdict"], &object["limit"]), (&"bounded".into(), &"time".into()), "{object}");
        assert_eq!(object["format"].as_str(), format, "{object}");
    }
}

#[test]
fn advice_at_a_time_limit_is_about_the_trace() {
    use std::process::Stdio;
    let workspace = Workspace::new();
    let mut child = workspace
        .command(&["trace", "-", "--model", "tso", "--time-limit", "0.1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take().unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("raise --time-limit to read on") && !text.contains("program"), "{text}");
}
