//! `weakspot litmus`: the log, many files, directories.

use crate::support::{SB_FENCED, SB_LITMUS, Workspace};

fn two_tests() -> Workspace {
    let workspace = Workspace::with("tests/deep/SB.litmus", SB_LITMUS);
    workspace.write("tests/A+mfences.litmus", SB_FENCED);
    workspace.write("tests/README.txt", "not a test");
    workspace
}

/// The log without the line that tells the time.
fn without_time(log: &str) -> String {
    log.split_inclusive('\n').filter(|line| !line.starts_with("Time ")).collect()
}

#[test]
fn the_log_has_herds_format() {
    let run = Workspace::with("SB.litmus", SB_LITMUS).run(&["litmus", "SB.litmus", "--model", "tso"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let expected = "Test SB Allowed\nStates 4\n0:EAX=0; 1:EAX=0;\n0:EAX=0; 1:EAX=1;\n0:EAX=1; 1:EAX=0;\n\
                    0:EAX=1; 1:EAX=1;\nOk\nWitnesses\nPositive: 1 Negative: 3\n\
                    Condition exists (0:EAX=0 /\\ 1:EAX=0)\nObservation SB Sometimes 1 3\nRobust SB no tso\n\n";
    assert_eq!(without_time(&run.out), expected);
    assert!(run.out.contains("\nTime SB 0."), "{}", run.out);
}

#[test]
fn sequential_consistency_does_not_allow_store_buffering() {
    let run = Workspace::with("SB.litmus", SB_LITMUS).run(&["litmus", "SB.litmus", "--model", "sc"]);
    assert_eq!(run.code, 0, "{run:?}");
    for line in ["States 3", "No", "Observation SB Never 0 3", "Robust SB yes sc"] {
        assert!(run.out.lines().any(|other| other == line), "no line {line:?}: {}", run.out);
    }
}

#[test]
fn several_files_are_answered_in_the_order_of_the_arguments() {
    let workspace = two_tests();
    let order = ["tests/deep/SB.litmus", "tests/A+mfences.litmus"];
    for jobs in ["1", "2", "7"] {
        let run = workspace.run(&["litmus", order[0], order[1], "--model", "tso", "--json", "--jobs", jobs]);
        assert_eq!(run.code, 0, "{run:?}");
        let files: Vec<_> = run.json().as_array().unwrap().iter().map(|test| test["file"].clone()).collect();
        assert_eq!(files, order);
    }
}

#[test]
fn a_directory_stands_for_the_litmus_files_below_it() {
    let run = two_tests().run(&["litmus", "tests", "--model", "tso"]);
    assert_eq!(run.code, 0, "{run:?}");
    let tests: Vec<&str> = run.out.lines().filter(|line| line.starts_with("Test ")).collect();
    assert_eq!(tests, ["Test SB+mfences Forbidden", "Test SB Allowed"]);
}

#[test]
fn quiet_prints_one_line_a_test() {
    let run = two_tests().run(&["litmus", "tests", "--model", "tso", "-q"]);
    assert_eq!(run.out, "Observation SB+mfences Never 0 3\nObservation SB Sometimes 1 3\n");
}

#[test]
fn a_directory_without_tests_is_bad_input() {
    let workspace = Workspace::with("empty/notes.txt", "nothing");
    let run = workspace.run(&["litmus", "empty", "--model", "tso"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("empty") && run.err.contains(".litmus"), "{}", run.err);
}

#[test]
fn one_bad_file_does_not_cost_the_results_of_the_others() {
    let workspace = two_tests();
    workspace.write("tests/bad.litmus", SB_LITMUS.replace("MOV EAX,[y]", "FROB EAX,[y]"));
    let run = workspace.run(&["litmus", "tests", "--model", "tso"]);
    assert_eq!((run.code, run.out.matches("\nObservation ").count()), (2, 2), "{run:?}");
    assert!(run.err.contains("tests/bad.litmus:5") && run.err.contains("FROB"), "{}", run.err);
    let run = workspace.run(&["litmus", "tests", "--model", "tso", "--json"]);
    assert_eq!((run.code, run.json().as_array().unwrap().len()), (2, 2), "{run:?}");
    let run = workspace.run(&["litmus", "tests/bad.litmus", "--model", "tso", "--json"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
}

#[test]
fn a_test_may_come_from_standard_input() {
    let run = Workspace::new().run_with_input(&["litmus", "-", "--model", "tso"], SB_LITMUS);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.starts_with("Test SB Allowed\n"), "{}", run.out);
}
