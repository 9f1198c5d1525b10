//! What is made from the argument definitions: help, version, completions, man pages.

use crate::support::Workspace;

const COMMANDS: [&str; 8] = ["check", "verify", "fence", "litmus", "trace", "fmt", "completions", "man"];

/// The long options that `--help` of a command lists.
fn options(command: &str) -> Vec<String> {
    let run = Workspace::new().run(&[command, "--help"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let words = run.out.lines().filter(|line| line.trim_start().starts_with('-')).flat_map(str::split_whitespace);
    words.filter(|word| word.starts_with("--")).map(|word| word.trim_end_matches(',').to_owned()).collect()
}

#[test]
fn the_version_names_the_release() {
    for flag in ["--version", "-V"] {
        let run = Workspace::new().run(&[flag]);
        assert_eq!(run.code, 0);
        assert!(run.out.starts_with(concat!("weakspot ", env!("CARGO_PKG_VERSION"))), "{}", run.out);
    }
}

#[test]
fn every_command_has_help_with_the_common_options() {
    for command in COMMANDS {
        let options = options(command);
        for option in ["--json", "--color", "--quiet", "--verbose", "--help"] {
            assert!(options.iter().any(|other| other == option), "{command}: no {option} in {options:?}");
        }
    }
    let run = Workspace::new().run(&["--help"]);
    assert_eq!(run.code, 0);
    assert_eq!(Workspace::new().run(&["help"]).out, run.out);
    assert!(COMMANDS.iter().all(|command| run.out.contains(command)) && run.out.contains("Exit status"), "{}", run.out);
}

#[test]
fn completions_know_the_commands_and_their_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = Workspace::new().run(&["completions", shell]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{shell}");
        assert!(COMMANDS.iter().all(|command| run.out.contains(command)), "{shell}");
        assert!(run.out.contains("spurious-wakeups"), "{shell}");
    }
}

#[test]
fn the_man_page_mentions_every_option_of_every_command() {
    let page = Workspace::new().run(&["man"]);
    assert_eq!((page.code, page.err.as_str()), (0, ""));
    let text = page.out.replace('\\', "");
    assert!(text.starts_with(".ie") && text.contains(".TH weakspot 1"), "{text}");
    for command in COMMANDS {
        assert!(text.contains(&format!("WEAKSPOT {}", command.to_uppercase())), "{command}");
        for option in options(command) {
            assert!(text.contains(&option), "{command}: {option}");
        }
    }
    assert!(text.contains("Exit status"), "{text}");
}

#[test]
fn man_pages_for_each_command_can_be_written() {
    let workspace = Workspace::new();
    let run = workspace.run(&["man", "--directory", "pages"]);
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{run:?}");
    assert!(workspace.read("pages/weakspot.1").contains("weakspot"));
    for command in COMMANDS {
        let page = workspace.read(&format!("pages/weakspot-{command}.1")).replace('\\', "");
        for option in options(command) {
            assert!(page.contains(&option), "{command}: {option}");
        }
    }
}

/// The lines between the command and the end of the first console block, or of an output; times are left out.
fn transcript(text: &str) -> Vec<String> {
    let lines = text.lines().take_while(|line| *line != "```");
    let untimed =
        |line: &str| line.rsplit_once(", ").filter(|(_, end)| end.ends_with(" s")).map(|(rest, _)| rest.to_owned());
    lines.map(|line| untimed(line).unwrap_or_else(|| line.to_owned())).collect()
}

#[test]
fn the_readme_shows_what_check_prints() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let command = "$ cargo run --release -- check examples/dekker.weak\n";
    let (_, shown) = readme.split_once(command).expect("the README begins with a run of `check`");
    let example = std::fs::read_to_string(root.join("examples/dekker.weak")).unwrap();
    let workspace = Workspace::with("examples/dekker.weak", example);
    let run = workspace.run(&["check", "examples/dekker.weak"]);
    assert_eq!(transcript(shown), transcript(&run.out));
}
