//! `weakspot verify --engine abstract`: domains, k, value domains, alarms.

use std::path::Path;

use crate::support::{STORE_BUFFERING, Workspace};

/// Stores for ever, so that no bound on buffers is enough.
const ENDLESS_STORES: &str = "\
shared x, y;
thread a { loop { x = 1; x = 2; let r = y; } }
thread b { loop { let r = x; assert(r < 3); } }
";

/// A version that grows for ever, published behind its data.
const VERSIONS: &str = "\
shared data, version;
thread writer { let v = 0; loop { data = 1; fence(store_store); v = version + 1; version = v; } }
thread reader { let v = version; if v > 0 { let d = data; assert(d == 1, \"data is published\"); } }
";

fn corpus(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn verify<'a>(file: &'a str, model: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["verify", file, "--model", model, "--engine", "abstract"], rest].concat()
}

#[test]
fn unbounded_buffers_are_verified_in_every_domain() {
    let workspace = Workspace::with("endless.weak", ENDLESS_STORES);
    for domain in ["set", "fd", "pd"] {
        for model in ["sc", "tso", "pso"] {
            let run = workspace.run(&verify("endless.weak", model, &["--domain", domain]));
            assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
            assert!(run.out.starts_with(&format!("verified: endless.weak under {model}\n  abstract engine ({domain}")));
        }
    }
    let run = workspace.run(&verify("endless.weak", "pso", &["--domain", "pd", "-k", "2", "--json"]));
    let object = run.json();
    assert_eq!((object["domain"].as_str(), object["k"].as_u64()), (Some("pd"), Some(2)), "{run:?}");
    let run = workspace.run(&verify("endless.weak", "pso", &["--domain", "set", "--json"]));
    assert!(run.json()["k"].is_null(), "a set keeps nothing in order: {run:?}");
}

#[test]
fn a_real_violation_comes_with_its_execution() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    for options in [&["--domain", "set"][..], &["-k", "0"], &["-k", "1"], &["--k", "auto"], &["--domain", "pd"]] {
        let run = workspace.run(&verify("sb.weak", "tso", options));
        assert_eq!(run.code, 1, "{options:?}: {run:?}");
        assert!(run.out.starts_with("violated: sb.weak under tso: assertion failed\n"), "{}", run.out);
        assert!(run.out.contains("⇢ x=1 visible"), "{}", run.out);
    }
    let run = workspace.run(&[&verify("sb.weak", "pso", &["-k", "0"])[..], &["--json"]].concat());
    let object = run.json();
    assert_eq!((run.code, object["spurious_possible"].as_bool()), (1, Some(false)), "{run:?}");
    assert!(object["trace"].as_array().is_some_and(|trace| !trace.is_empty()));
}

#[test]
fn an_abstract_violation_that_is_not_real_is_called_possible() {
    let workspace = Workspace::with("fast.weak", corpus("papers/kuperstein-fast-fenced.weak"));
    let run = workspace.run(&verify("fast.weak", "pso", &["-k", "0"]));
    assert_eq!((run.code, run.err.as_str()), (3, ""), "{run:?}");
    assert!(run.out.starts_with("inconclusive: fast.weak under pso: possible violation: "), "{}", run.out);
    for word in ["critical block", "(fd, k = 0)", "at fast.weak:", "no execution was found", "raise `-k`", "--k auto"] {
        assert!(run.out.contains(word), "no {word:?} in {}", run.out);
    }
    let object = workspace.run(&verify("fast.weak", "pso", &["-k", "0", "--json"])).json();
    assert_eq!((object["verdict"].as_str(), object["spurious_possible"].as_bool()), (Some("inconclusive"), Some(true)));
    assert_eq!(object["alarm"]["kind"], "mutual-exclusion");
    assert!(object["trace"].is_null() && object["limit"].is_null());

    let run = workspace.run(&verify("fast.weak", "pso", &["--k", "auto", "--json"]));
    let object = run.json();
    assert_eq!((run.code, object["k"].as_u64()), (0, Some(1)), "auto climbs to 1: {run:?}");
    assert_eq!(workspace.run(&verify("fast.weak", "pso", &["--domain", "set"])).code, 3);
}

#[test]
fn a_counter_without_end_needs_a_value_domain() {
    let workspace = Workspace::with("versions.weak", VERSIONS);
    let run = workspace.run(&verify("versions.weak", "pso", &["--time-limit", "0.3"]));
    assert_eq!(run.code, 3, "without one the search does not end: {run:?}");
    for domain in ["sign", "interval"] {
        let value = format!("version={domain}");
        let run = workspace.run(&verify("versions.weak", "pso", &["--value", &value]));
        assert_eq!(run.code, 0, "{domain}: {run:?}");
        assert!(run.out.contains("overflow is not looked for"), "{}", run.out);
    }
    let run = workspace.run(&verify("versions.weak", "pso", &["--value", "version=parity", "-k", "1"]));
    assert_eq!(run.code, 3, "0 is as even as 2: {run:?}");
    assert!(run.out.contains("possible violation: assertion failed"), "{}", run.out);
}

#[test]
fn bad_value_domains_are_refused_with_a_suggestion() {
    let workspace = Workspace::with("versions.weak", VERSIONS);
    for (value, words) in [
        ("versoin=sign", &["versoin", "did you mean `version`?"][..]),
        ("nothing=sign", &["nothing", "`data`, `version`"]),
        ("version=signs", &["signs", "did you mean `sign`?"]),
        ("version=octagon", &["octagon", "sign, parity and interval"]),
        ("version", &["version", "NAME=DOMAIN"]),
    ] {
        let run = workspace.run(&verify("versions.weak", "pso", &["--value", value]));
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
        for word in words {
            assert!(run.err.contains(word), "no {word:?} in {}", run.err);
        }
    }
    let run = workspace.run(&verify("versions.weak", "pso", &["--value", "data=sign", "--value", "data=parity"]));
    assert_eq!(run.code, 2, "{run:?}");
    for k in ["-1", "many", "1.5", "100000"] {
        let run = workspace.run(&verify("versions.weak", "pso", &["-k", k]));
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.err.contains("auto"), "{}", run.err);
    }
}
