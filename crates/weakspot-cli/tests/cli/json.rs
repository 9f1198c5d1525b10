//! The objects of `--json`: fields present and typed, one value on standard output and nothing else.

use serde_json::Value;

use crate::support::{SB_LITMUS, STORE_BUFFERING, Workspace};

fn workspace() -> Workspace {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("sb.litmus", SB_LITMUS);
    workspace
}

fn check_head(object: &Value, command: &str, file: &str) {
    assert_eq!(object["command"], command);
    assert_eq!(object["file"], file);
    assert!(object["model"].is_string() || object["model"].is_null(), "{object}");
    assert!(object["verdict"].is_string(), "{object}");
    assert!(object["seconds"].as_f64().is_some_and(|seconds| seconds >= 0.0), "{object}");
}

fn check_place(place: &Value, file: &str) {
    assert_eq!(place["file"], file, "{place}");
    assert!(place["line"].as_u64().is_some_and(|line| line >= 1), "{place}");
    assert!(place["column"].as_u64().is_some_and(|column| column >= 1), "{place}");
    assert!(place["thread"].is_string(), "{place}");
}

#[test]
fn every_object_has_the_promised_head() {
    let workspace = workspace();
    assert_eq!(workspace.run(&["check", "sb.weak", "--record", "sb.wtrace", "-q"]).code, 1);
    for (arguments, command, file) in [
        (&["verify", "sb.weak", "--model", "tso"][..], "verify", "sb.weak"),
        (&["verify", "sb.litmus", "--model", "sc"], "verify", "sb.litmus"),
        (&["check", "sb.weak"], "check", "sb.weak"),
        (&["fence", "sb.weak", "--model", "pso"], "fence", "sb.weak"),
        (&["trace", "sb.wtrace", "--model", "pso"], "trace", "sb.wtrace"),
        (&["fmt", "sb.weak"], "fmt", "sb.weak"),
        (&["verify", "sb.weak", "--model", "tso", "--dump-ir"], "verify", "sb.weak"),
    ] {
        let object = workspace.run(&[arguments, &["--json"]].concat()).json();
        check_head(&object, command, file);
    }
}

#[test]
fn a_violated_verify_has_figures_error_and_trace() {
    let object = workspace().run(&["--json", "verify", "sb.weak", "--model", "tso"]).json();
    assert_eq!(object["verdict"], "violated");
    assert_eq!(object["engine"], "explicit");
    assert!(object["states"].as_u64().is_some_and(|states| states > 0), "{object}");
    assert!(object["transitions"].is_u64() && object["max_buffer"].is_u64() && object["buffer"].is_u64(), "{object}");
    assert_eq!(object["spurious_possible"], false);
    assert_eq!(object["error"]["kind"], "assertion");
    assert!(object["error"]["message"].is_string());
    check_place(&object["error"]["at"], "sb.weak");
    assert_eq!((&object["error"]["at"]["thread"], &object["error"]["at"]["line"]), (&"final".into(), &4.into()));
    let trace = object["trace"].as_array().unwrap();
    for (index, event) in trace.iter().enumerate() {
        assert_eq!(event["step"], index + 1);
        check_place(&event["place"], "sb.weak");
        assert!(event["kind"].is_string() && event["buffer"].is_array(), "{event}");
    }
    let kinds = |kind: &str| trace.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
    assert_eq!((kinds("store").len(), kinds("load").len(), kinds("commit").len()), (2, 2, 2), "{object}");
    for commit in kinds("commit") {
        let store = &trace[commit["store"].as_u64().unwrap() as usize - 1];
        assert_eq!((&store["kind"], &store["location"]), (&"store".into(), &commit["location"]));
        assert_eq!(store["buffered"], true);
    }
    assert!(kinds("load").iter().all(|load| load["from"] == "memory" && load["value"] == 0), "{object}");
}

#[test]
fn a_verified_verify_has_neither_error_nor_trace() {
    let object = workspace().run(&["verify", "sb.weak", "--model", "sc", "--json"]).json();
    assert_eq!(object["verdict"], "verified");
    assert!(object.get("trace").is_none() && object.get("error").is_none() && object.get("limit").is_none());
}

#[test]
fn litmus_gives_an_array_with_one_object_a_test() {
    let run = workspace().run(&["litmus", "sb.litmus", "--model", "tso", "--json"]);
    let array = run.json();
    let [test] = array.as_array().unwrap().as_slice() else { panic!("{run:?}") };
    check_head(test, "litmus", "sb.litmus");
    assert_eq!((&test["name"], &test["model"]), (&"SB".into(), &"tso".into()));
    assert_eq!((&test["condition"], &test["observation"]), (&"Ok".into(), &"Sometimes".into()));
    assert_eq!(test["robust"], false);
    let states: Vec<&str> = test["states"].as_array().unwrap().iter().map(|state| state.as_str().unwrap()).collect();
    assert_eq!(states, ["0:EAX=0; 1:EAX=0;", "0:EAX=0; 1:EAX=1;", "0:EAX=1; 1:EAX=0;", "0:EAX=1; 1:EAX=1;"]);
}

#[test]
fn bad_input_prints_no_object() {
    let workspace = workspace();
    workspace.write("bad.weak", "thread { }\n");
    for arguments in [
        &["verify", "bad.weak", "--model", "tso", "--json"][..],
        &["verify", "missing.weak", "--model", "tso", "--json"],
        &["verify", "sb.weak", "--model", "nonsense", "--json"],
        &["litmus", "missing.litmus", "--model", "tso", "--json"],
    ] {
        let run = workspace.run(arguments);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
        assert!(!run.err.is_empty());
    }
}
