//! Ctrl-C: the first gives what was reached, without an answer.
#![cfg(unix)]

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{ENDLESS, Workspace};

fn interrupt(child: &Child) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Starts an endless search and interrupts it once it has caught the signal's default action.
fn interrupted(arguments: &[&str]) -> (Option<i32>, String, String) {
    let workspace = Workspace::with("endless.weak", ENDLESS);
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
