//! Ctrl-C: the first gives what was reached, without an answer.
#![cfg(unix)]

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{ENDLESS, Workspace, very_many};

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Starts an endless search and interrupts it once it has caught the signal's default action.
fn interrupted(arguments: &[&str]) -> (Option<i32>, String, String) {
    interrupted_in(&Workspace::with("endless.weak", ENDLESS), arguments)
}

fn interrupted_in(workspace: &Workspace, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut child = workspace.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_handler(&child);
    interrupt(&child);
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    (child.wait().unwrap().code(), out, err)
}

/// Waits until the process catches SIGINT (bit 1 of its mask of caught signals), where the system tells; else a while.
fn wait_for_handler(child: &Child) {
    for _ in 0..600 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        match caught.map(|mask| u64::from_str_radix(mask.trim(), 16).unwrap()) {
            Some(mask) if mask & 0b10 != 0 => return std::thread::sleep(Duration::from_millis(200)),
            Some(_) => std::thread::sleep(Duration::from_millis(10)),
            None => return std::thread::sleep(Duration::from_secs(2)),
        }
    }
    panic!("the search never began");
}

#[test]
fn an_interrupted_search_tells_what_it_reached() {
    let (code, out, err) = interrupted(&["verify", "endless.weak", "--model", "tso"]);
    assert_eq!(code, Some(3), "{out}\n{err}");
    assert!(out.starts_with("inconclusive: endless.weak under tso: interrupted\n"), "{out}");
    assert!(out.contains("states"), "{out}");
}

#[test]
fn an_interrupted_search_gives_a_json_object_too() {
    let (code, out, err) = interrupted(&["verify", "endless.weak", "--model", "pso", "--json"]);
    assert_eq!(code, Some(3), "{out}\n{err}");
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&object["verdict"], &object["limit"]), (&"inconclusive".into(), &"cancelled".into()));
    assert!(object["states"].as_u64().unwrap() > 0);
}

#[test]
fn an_interrupted_check_tells_what_it_covered_in_every_mode() {
    let workspace = Workspace::with("many.weak", very_many());
    for mode in [
        &["--random", "1000000000"][..],
        &["--pct", "1000000000"],
        &["--max-preemptions", "5"],
        &["--engine", "stateless"],
        &["--engine", "attack"],
    ] {
        let arguments = [&["check", "many.weak", "--model", "sc", "--json"], mode].concat();
        let (code, out, err) = interrupted_in(&workspace, &arguments);
        assert_eq!(code, Some(3), "{mode:?}: {out}\n{err}");
        let object: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&object["verdict"], &object["limit"]), (&"bounded".into(), &"cancelled".into()), "{mode:?}");
    }
}

#[test]
fn an_interrupted_record_is_whole() {
    let workspace = Workspace::with("many.weak", very_many());
    let arguments = ["check", "many.weak", "--model", "sc", "--random", "1000000000", "--record", "t.wtrace", "--json"];
    let (code, out, err) = interrupted_in(&workspace, &arguments);
    assert_eq!(code, Some(3), "{out}\n{err}");
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    let run = workspace.run(&["trace", "t.wtrace", "--model", "tso", "--json"]);
    assert_eq!(run.json()["events"], object["recorded"]["events"], "{run:?}");
}

#[test]
fn an_interrupted_trace_tells_how_far_it_came() {
    use std::io::Write as _;
    let workspace = Workspace::new();
    let mut child = workspace
        .command(&["trace", "-", "--model", "tso", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"weakspot-trace 1\nthread 0 \"a\"\nlocation 0 \"x\"\nbegin\n").unwrap();
    let events = b"0 store 0\n".repeat(1 << 10);
    stdin.write_all(&events).unwrap();
    wait_for_handler(&child);
    interrupt(&child);
    // it waits for more, which never comes
    let mut out = String::new();
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3), "{out}");
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&object["verdict"], &object["limit"]), (&"bounded".into(), &"cancelled".into()));
    assert!(object["events"].as_u64().unwrap() <= 1 << 10);
    drop(stdin);
}
