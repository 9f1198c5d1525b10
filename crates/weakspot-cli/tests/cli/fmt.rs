//! `weakspot fmt`: print, check, rewrite.

use crate::support::{SB_LITMUS, Workspace};

const UGLY: &str = "shared   x ,y ;\nthread a{x=1;let r=y;}\n";

fn canonical() -> String {
    let run = Workspace::with("ugly.weak", UGLY).run(&["fmt", "ugly.weak"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    run.out
}

#[test]
fn the_canonical_form_is_printed_and_the_file_left_alone() {
    let workspace = Workspace::with("ugly.weak", UGLY);
    let run = workspace.run(&["fmt", "ugly.weak"]);
    assert!(run.out.contains("x = 1;") && run.out != UGLY, "{}", run.out);
    assert_eq!(workspace.read("ugly.weak"), UGLY);
}

#[test]
fn check_tells_by_its_status() {
    let workspace = Workspace::with("ugly.weak", UGLY);
    workspace.write("pretty.weak", canonical());
    let run = workspace.run(&["fmt", "--check", "ugly.weak", "pretty.weak"]);
    assert_eq!((run.code, run.out.as_str()), (1, ""), "{run:?}");
    assert!(run.err.contains("ugly.weak") && !run.err.contains("pretty.weak"), "{}", run.err);
    let run = workspace.run(&["fmt", "--check", "pretty.weak"]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (0, "", ""));
    assert_eq!(workspace.read("ugly.weak"), UGLY);
}

#[test]
fn write_rewrites_and_leaves_nothing_else_behind() {
    let workspace = Workspace::with("ugly.weak", UGLY);
    let run = workspace.run(&["fmt", "--write", "ugly.weak"]);
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{run:?}");
    assert_eq!(workspace.read("ugly.weak"), canonical());
    let names: Vec<_> = std::fs::read_dir(workspace.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["ugly.weak"]);
}

#[test]
fn one_bad_file_keeps_all_files_from_being_rewritten() {
    let workspace = Workspace::with("ugly.weak", UGLY);
    workspace.write("bad.weak", "thread {");
    let run = workspace.run(&["fmt", "--write", "ugly.weak", "bad.weak"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    assert!(run.err.contains("bad.weak:1"), "{}", run.err);
    assert_eq!(workspace.read("ugly.weak"), UGLY);
}

#[cfg(unix)]
#[test]
fn permissions_and_links_survive() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let workspace = Workspace::with("ugly.weak", UGLY);
    let real = workspace.path().join("ugly.weak");
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink("ugly.weak", workspace.path().join("link.weak")).unwrap();
    assert_eq!(workspace.run(&["fmt", "--write", "link.weak"]).code, 0);
    assert!(std::fs::symlink_metadata(workspace.path().join("link.weak")).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(workspace.read("ugly.weak"), canonical());
}

#[test]
fn standard_input_is_formatted_to_standard_output() {
    for arguments in [&["fmt", "-"][..], &["fmt", "--write", "-"]] {
        let run = Workspace::new().run_with_input(arguments, UGLY);
        assert_eq!((run.code, run.out), (0, canonical()));
    }
}

#[test]
fn json_tells_whether_something_changed() {
    let workspace = Workspace::with("ugly.weak", UGLY);
    let object = workspace.run(&["fmt", "ugly.weak", "--json"]).json();
    assert_eq!((&object["verdict"], &object["written"]), (&"changed".into(), &false.into()));
    assert_eq!(object["text"], canonical());
    let object = workspace.run(&["fmt", "--write", "ugly.weak", "--json"]).json();
    assert_eq!((&object["verdict"], &object["written"]), (&"changed".into(), &true.into()));
    let object = workspace.run(&["fmt", "--write", "ugly.weak", "--json"]).json();
    assert_eq!((&object["verdict"], &object["written"]), (&"unchanged".into(), &false.into()));
}

#[test]
fn a_litmus_test_has_no_canonical_form() {
    let run = Workspace::with("sb.litmus", SB_LITMUS).run(&["fmt", "sb.litmus"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""));
    assert!(run.err.contains("litmus"), "{}", run.err);
}
