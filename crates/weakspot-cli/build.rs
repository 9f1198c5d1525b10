//! Puts the commit into `weakspot --version` where the source is a git checkout, and leaves it out where it is not.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    let version = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_owned(),
    };
    println!("cargo:rustc-env=WEAKSPOT_VERSION={version}");
}

/// `abc1234 2026-01-31`, if this file is tracked by a git repository: a source package unpacked inside somebody
/// else's repository must not take that one's commit for its own.
fn commit() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    watch_head();
    git(&["log", "-1", "--abbrev=7", "--format=%h %cs"]).filter(|commit| !commit.is_empty())
}

/// Builds again when HEAD moves: `HEAD` itself changes with a checkout, the reference it names with a commit.
fn watch_head() {
    let reference = git(&["symbolic-ref", "-q", "HEAD"]);
    let names = [Some("HEAD".to_owned()), reference, Some("packed-refs".to_owned())];
    for name in names.into_iter().flatten() {
        if let Some(path) = git(&["rev-parse", "--git-path", &name])
            && Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
