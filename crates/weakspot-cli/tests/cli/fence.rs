//! `weakspot fence`: exit status, the change shown, what is written, JSON.

use crate::support::{ENDLESS, SB_LITMUS, STORE_BUFFERING, Workspace};

/// Peterson's algorithm with comments to be kept.
const PETERSON: &str = "\
shared flag[2], turn;

thread p[2] {
    let other = 1 - me;
    loop {
        flag[me] = 1;       // I want to
        turn = other;       // but you may
        while flag[other] == 1 && turn == other { }
        critical { }
        flag[me] = 0;
    }
}
";

/// Wrong under every model.
const LOST_UPDATE: &str = "\
shared x;
thread p[2] { let r = x; x = r + 1; }
final { assert(x == 2); }
";

/// Everything but the line with figures.
fn without_figures(out: &str) -> String {
    let (figures, rest): (Vec<&str>, Vec<&str>) =
        out.lines().partition(|line| line.starts_with("  guided by counterexamples: "));
    assert_eq!(figures.len(), 1, "{out}");
    rest.join("\n") + "\n"
}

#[test]
fn fences_are_shown_as_a_diff_with_a_sentence_for_each() {
    let workspace = Workspace::with("peterson.weak", PETERSON);
    let run = workspace.run(&["fence", "peterson.weak", "--model", "pso"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let expected = "\
fenced: peterson.weak under pso: with 2 fences it meets its specification; no
  placement has fewer

--- peterson.weak
+++ peterson.weak (fenced)
@@ -4,7 +4,9 @@
     let other = 1 - me;
     loop {
         flag[me] = 1;       // I want to
+        fence;
         turn = other;       // but you may
+        fence;
         while flag[other] == 1 && turn == other { }
         critical { }
         flag[me] = 0;

  · fence in p after `flag[me] = 1` (line 6): without it, `flag[me] = 1` (line
    6) of p[1] can stay in its buffer while its later `turn = other` (line 7)
    becomes visible
  · fence in p after `turn = other` (line 7): without it, `turn = other` (line
    7) of p[0] can stay in its buffer while p[0] reads `flag[other]` (line 8)
";
    assert_eq!(without_figures(&run.out), expected);
}

#[test]
fn a_file_may_stand_behind_two_dashes_alone() {
    let workspace = Workspace::with("-odd.weak", PETERSON);
    let run = workspace.run(&["fence", "--model", "tso", "--", "-odd.weak"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert!(run.out.starts_with("fenced: -odd.weak under tso"), "{run:?}");
    for extra in [&["-odd.weak", "--release"][..], &["-odd.weak", "-odd.weak"]] {
        let run = workspace.run(&[&["fence", "--model", "tso", "--"], extra].concat());
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.err.contains("what follows `--` does not fit a file"), "{run:?}");
    }
}

#[test]
fn a_program_that_needs_nothing_says_so() {
    let fenced = STORE_BUFFERING.replace("; let", "; fence; let");
    let run = Workspace::with("sb.weak", fenced).run(&["fence", "sb.weak", "--model", "tso"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert_eq!(without_figures(&run.out), "none-needed: sb.weak under tso: it meets its specification as it is\n");
}

#[test]
fn an_sc_violation_exits_with_4_and_shows_the_execution() {
    let workspace = Workspace::with("lost.weak", LOST_UPDATE);
    let run = workspace.run(&["fence", "lost.weak", "--model", "tso", "--output", "out.weak"]);
    assert_eq!((run.code, run.err.as_str()), (4, ""), "{run:?}");
    assert!(run.out.starts_with("impossible: lost.weak under tso: assertion failed (already under sc"), "{}", run.out);
    assert!(run.out.contains("the SC execution") && run.out.contains("✗"), "{}", run.out);
    assert!(!workspace.path().join("out.weak").exists());
    let object = workspace.run(&["fence", "lost.weak", "--model", "tso", "--json"]).json();
    assert_eq!((&object["verdict"], &object["error"]["kind"]), (&"impossible".into(), &"assertion".into()));
    assert!(!object["trace"].as_array().unwrap().is_empty());
}

#[test]
fn a_time_limit_gives_no_answer_and_writes_nothing() {
    let workspace = Workspace::with("endless.weak", ENDLESS);
    let arguments = ["fence", "endless.weak", "--model", "tso", "--time-limit", "0.2", "--output", "out.weak"];
    let run = workspace.run(&arguments);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.out.starts_with("inconclusive: endless.weak under tso: the time limit was reached"), "{}", run.out);
    assert!(!workspace.path().join("out.weak").exists());
    let object = workspace.run(&[&arguments[..], &["--json"]].concat()).json();
    assert_eq!((&object["verdict"], &object["limit"]), (&"inconclusive".into(), &"time".into()));
    assert_eq!(object["minimal"], false);
}

#[test]
fn the_fenced_program_is_written_and_is_correct() {
    let workspace = Workspace::with("peterson.weak", PETERSON.replace('\n', "\r\n"));
    let run = workspace.run(&["fence", "peterson.weak", "--model", "pso", "-o", "fenced.weak"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.ends_with("\nwritten to fenced.weak\n"), "{}", run.out);
    let expected = PETERSON.replace("to\n", "to\n        fence;\n").replace("may\n", "may\n        fence;\n");
    assert_eq!(workspace.read("fenced.weak"), expected.replace('\n', "\r\n"));
    assert_eq!(workspace.read("peterson.weak"), PETERSON.replace('\n', "\r\n"), "the input is not touched");
    assert_eq!(workspace.run(&["verify", "fenced.weak", "--model", "pso"]).code, 0);
    let files: Vec<_> = std::fs::read_dir(workspace.path()).unwrap().collect();
    assert_eq!(files.len(), 2, "nothing else is left behind");
}

#[test]
fn the_input_may_be_replaced_on_request() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    let run = workspace.run(&["fence", "sb.weak", "--model", "tso", "--output", "sb.weak", "-q"]);
    assert_eq!((run.code, run.out.lines().count()), (0, 1), "{run:?}");
    assert_eq!(workspace.read("sb.weak"), STORE_BUFFERING.replace("; let", "; fence; let"));
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let workspace = Workspace::with("sb.weak", STORE_BUFFERING);
    workspace.write("folder/file", "");
    for target in ["folder", "missing/out.weak", "-"] {
        let run = workspace.run(&["fence", "sb.weak", "--model", "tso", "--output", target]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
        assert!(run.err.contains(target), "{}", run.err);
        assert!(!run.err.contains(".weakspot"), "a name that nobody gave: {}", run.err);
    }
}

#[test]
fn json_has_fences_cost_and_alternatives() {
    let workspace = Workspace::with("peterson.weak", PETERSON);
    let arguments = ["fence", "peterson.weak", "--model", "pso", "--fine", "--alternatives", "--json"];
    let object = workspace.run(&arguments).json();
    assert_eq!(
        (&object["verdict"], &object["goal"], &object["minimal"]),
        (&"fenced".into(), &"spec".into(), &true.into())
    );
    assert_eq!((&object["cost"], &object["at_least"], &object["strategy"]), (&2.into(), &2.into(), &"guided".into()));
    let fences = object["fences"].as_array().unwrap();
    let lines: Vec<_> = fences.iter().map(|fence| fence["after"]["line"].as_u64().unwrap()).collect();
    let kinds: Vec<_> = fences.iter().map(|fence| fence["kind"].as_str().unwrap()).collect();
    assert_eq!((lines, kinds), (vec![6, 7], vec!["store_store", "store_load"]));
    assert_eq!((&fences[0]["after"]["thread"], &fences[0]["after"]["column"]), (&"p".into(), &9.into()));
    assert!(fences[0]["reason"].as_str().unwrap().starts_with("without it, `flag[me] = 1`"), "{object}");
    assert!(object["iterations"].as_u64().unwrap() >= 2 && object["states"].as_u64().unwrap() > 0);
    assert!(object["alternatives"].is_array() && object["alternatives_complete"] == true, "{object}");
    assert!(object["diff"].as_str().unwrap().contains("+        fence(store_store);"), "{object}");
}

#[test]
fn robustness_is_a_goal_of_its_own() {
    let text = "shared x, y;\nthread a { x = 1; let r = y; }\nthread b { y = 1; let r = x; }\n";
    let workspace = Workspace::with("sb.weak", text);
    assert!(workspace.run(&["fence", "sb.weak", "-m", "tso", "-q"]).out.starts_with("none-needed"));
    let run = workspace.run(&["fence", "sb.weak", "-m", "tso", "--goal", "robust", "-q"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.starts_with("fenced: sb.weak under tso: with 2 fences it is store-buffer safe"), "{}", run.out);
}

#[test]
fn redundant_fences_go_when_asked() {
    let text = STORE_BUFFERING.replace("; let", "; fence; let").replace("thread a { ", "thread a { fence; ");
    let workspace = Workspace::with("sb.weak", text);
    let run = workspace.run(&["fence", "sb.weak", "-m", "tso", "--minimise", "-o", "out.weak"]);
    assert_eq!(run.code, 0, "{run:?}");
    let headline = "it meets its specification without 1 fence of its own; no placement has fewer";
    assert!(run.unfolded().starts_with(&format!("none-needed: sb.weak under tso: {headline}")), "{}", run.out);
    assert_eq!(workspace.read("out.weak"), STORE_BUFFERING.replace("; let", "; fence; let"));
    let object = workspace.run(&["fence", "sb.weak", "-m", "tso", "--minimise", "--json"]).json();
    assert_eq!((&object["cost"], &object["removed"][0]["line"]), (&2.into(), &2.into()));
}

#[test]
fn a_litmus_test_is_fenced_and_stays_one() {
    let workspace = Workspace::with("sb.litmus", SB_LITMUS);
    let run = workspace.run(&["fence", "sb.litmus", "--model", "tso", "--output", "fenced.litmus"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    assert!(run.out.contains("· MFENCE in P0 after `MOV [x],$1`"), "{}", run.out);
    let again = workspace.run(&["fence", "fenced.litmus", "--model", "tso"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.out.starts_with("none-needed: "), "{}", again.out);
    let piped = workspace.run_with_input(&["fence", "-", "--model", "tso", "--goal", "robust"], SB_LITMUS);
    assert!(piped.code == 0 && piped.out.starts_with("fenced: "), "{piped:?}");
    for option in ["--minimise", "--weights"] {
        let run = workspace.run(&["fence", "sb.litmus", "--model", "tso", option]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
        assert!(run.err.contains(option) && run.err.contains(".weak"), "{}", run.err);
    }
}

#[test]
fn counters_without_end_are_fenced_when_their_values_are_abstract() {
    let program = "shared data, version;\n\
                   thread writer { loop { data = 1; version = version + 1; } }\n\
                   thread reader { loop { let v = version; if v > 0 { let d = data; assert(d == 1); } } }\n";
    let workspace = Workspace::with("versions.weak", program);
    let command = ["fence", "versions.weak", "--model", "pso", "--engine", "abstract", "--value", "version=sign"];
    for k in [&[][..], &["-k", "1"], &["--k", "auto"]] {
        let run = workspace.run(&[&command[..], k].concat());
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
        assert!(run.out.contains("with 1 fence"), "{}", run.out);
        assert!(run.out.contains("64-bit overflow is not looked for"), "{}", run.out);
    }
    for (arguments, told) in [
        (&["--value", "version=sign"][..], "belongs to `--engine abstract`"),
        (&["--engine", "abstract", "--value", "versio=sign"], "did you mean `version`?"),
        (&["--engine", "abstract", "--strategy", "avoid", "-k", "auto"], "give `-k` a number"),
        (&["--engine", "abstract", "-k", "1000000"], "neither `auto` nor a number"),
    ] {
        let run = workspace.run(&[&["fence", "versions.weak", "--model", "pso"][..], arguments].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
        assert!(run.err.contains(told), "{}", run.err);
    }
}

#[test]
fn every_combination_of_strategy_engine_and_goal_works_or_is_refused_with_a_hint() {
    let workspace = Workspace::with("peterson.weak", PETERSON);
    let engines: [&[&str]; 8] = [
        &[],
        &["--engine", "auto"],
        &["--engine", "explicit"],
        &["--engine", "symbolic"],
        &["--engine", "abstract"],
        &["--engine", "abstract", "--domain", "pd", "-k", "2"],
        &["--engine", "abstract", "--domain", "fd", "-k", "1"],
        &["--engine", "explicit", "-k", "1"],
    ];
    let mut refused = 0;
    for strategy in ["guided", "avoid"] {
        for goal in ["spec", "robust"] {
            for engine in engines {
                let first = ["fence", "peterson.weak", "-m", "pso", "--json", "--strategy", strategy, "--goal", goal];
                let run = workspace.run(&[&first[..], engine].concat());
                if run.code == 2 {
                    assert!(run.out.is_empty() && run.err.contains("help: "), "{run:?}");
                    refused += 1;
                    continue;
                }
                assert_eq!(run.code, 0, "{run:?}");
                let object = run.json();
                assert_eq!((&object["verdict"], &object["cost"]), (&"fenced".into(), &2.into()), "{object}");
                assert_eq!((&object["strategy"], &object["minimal"]), (&strategy.into(), &true.into()), "{object}");
                let name = engine.get(1).copied().unwrap_or("auto");
                assert_eq!(object["engine"], name, "{object}");
            }
        }
    }
    assert_eq!(refused, 17, "misplaced -k, robust with an engine or by avoid, avoid with symbolic");
}

#[test]
fn avoid_explains_its_fences_and_writes_what_it_found() {
    let workspace = Workspace::with("peterson.weak", PETERSON);
    let run = workspace.run(&["fence", "peterson.weak", "-m", "pso", "--strategy", "avoid", "-o", "out.weak"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains("all states labelled with what avoids them"), "{}", run.out);
    assert_eq!(run.unfolded().matches("without it, ").count(), 2, "{}", run.out);
    assert_eq!(workspace.run(&["verify", "out.weak", "-m", "pso", "--engine", "symbolic", "-q"]).code, 0);
}

#[test]
fn what_an_abstraction_cannot_repair_is_said_to_be_its_fault() {
    let text = "shared x;\nthread a { x = 1; x = 0; }\nthread b { let r = x; let s = x; let t = x; }\n\
                final { assert(!(b.r == 1 && b.s == 0 && b.t == 1)); }\n";
    let workspace = Workspace::with("again.weak", text);
    let arguments = ["fence", "again.weak", "-m", "pso", "--engine", "abstract", "--domain", "pd", "-k", "0"];
    let run = workspace.run(&[&arguments[..], &["--strategy", "avoid"]].concat());
    assert_eq!(run.code, 4, "{run:?}");
    assert!(run.unfolded().contains("no placement of fences helps under pd with k = 0"), "{}", run.out);
    assert!(run.out.contains("a larger -k"), "{}", run.out);
}

#[test]
fn a_program_from_standard_input_is_fenced_too() {
    let run = Workspace::new().run_with_input(&["fence", "-", "--model", "tso"], STORE_BUFFERING);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains("+++ <stdin> (fenced)"), "{}", run.out);
}

#[test]
fn what_the_engine_cannot_decide_is_said() {
    let text = "shared x, y;\nthread a { loop { x = 1; fence(store_store); x = 0; let s = y; } }\n\
                thread b { y = 1; let r = x; }\n";
    let workspace = Workspace::with("endless-stores.weak", text);
    let run = workspace.run(&["fence", "endless-stores.weak", "--model", "pso", "--engine", "explicit"]);
    assert_eq!(run.code, 0, "{run:?}");
    let perhaps = "with 1 fence it meets its specification; perhaps none is needed";
    let headline = format!("fenced: endless-stores.weak under pso: {perhaps} ");
    assert!(run.unfolded().starts_with(&headline), "{}", run.out);
    assert!(run.out.contains("no engine could decide about a cheaper placement"), "{}", run.out);
    assert!(run.out.contains("no execution shows that it is needed"), "{}", run.out);
}

#[test]
fn stores_without_end_are_no_obstacle_to_a_proof() {
    let text = "shared x, y;\nthread a { loop { x = 1; x = 0; let s = y; } }\nthread b { y = 1; let r = x; }\n";
    let run = Workspace::with("endless-stores.weak", text).run(&["fence", "endless-stores.weak", "--model", "tso"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.starts_with("none-needed: "), "{}", run.out);
}
