//! Every program of `corpus/` and `examples/` against the answers written in its own `//! expect` lines.
//!
//! One test a folder, so that they run side by side. `verify` lines go to the explicit engine with limits on states and
//! buffers instead of time-outs, `check` lines to the explicit engine (is it correct under SC?) and to the attack engine
//! (is it store-buffer safe?). An engine that reaches a limit has no answer: that is counted, and neither right nor
//! wrong. Each folder pins how many answers there must be, so that a test cannot become empty unnoticed.
//! `fence` lines are counted only; the tests of `weakspot-fence` ask about them.
//!
//! The other tests look at the files alone: do the expectations of a file contradict each other, does the table of
//! `corpus/README.md` say what the files say, and does formatting leave every program as it is?
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test reports by panicking, and prints its tally")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use weakspot_front::weak::{self, CheckVerdict, Compiled, Expected, VerifyVerdict};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::source::{Diagnostic, SourceFile};
use weakspot_model::task::{Budget, Verdict};
use weakspot_verify::explicit::{self, ExplicitOptions, ExplicitReport};
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};

/// The folders of the corpus proper.
const FOLDERS: [&str; 8] = ["litmus-weak", "mutex", "sync", "structures", "papers", "fences", "language", "bench"];
/// Enough for every program here; the largest one that can be decided needs less than a tenth.
const MAX_STATES: u64 = 400_000;
/// The longest buffer.
const MAX_BUFFER: usize = 8;
/// A program that is wrong on purpose may also be warned about.
const WRONG_UNDER_SC: Expected = Expected::Verify { model: MemoryModel::Sc, verdict: VerifyVerdict::Violated };

#[test]
fn litmus_tests_give_the_expected_answers() {
    run_folder("corpus/litmus-weak", 450);
}

#[test]
fn mutual_exclusion_gives_the_expected_answers() {
    run_folder("corpus/mutex", 451);
}

#[test]
fn synchronisation_gives_the_expected_answers() {
    run_folder("corpus/sync", 204);
}

#[test]
fn data_structures_give_the_expected_answers() {
    run_folder("corpus/structures", 204);
}

#[test]
fn papers_give_the_expected_answers() {
    run_folder("corpus/papers", 286);
}

#[test]
fn processes_written_out_give_the_expected_answers() {
    run_folder("corpus/fences", 36);
}

#[test]
fn the_language_means_what_the_corpus_says() {
    run_folder("corpus/language", 561);
}

#[test]
fn programs_to_measure_with_give_the_expected_answers() {
    run_folder("corpus/bench", 20);
}

#[test]
fn examples_give_the_expected_answers() {
    run_folder("examples", 48);
}

/// What came of one expectation.
enum Answer {
    Agrees,
    Disagrees(String),
    /// The engine reached one of its limits.
    Undecided,
    /// No engine for this kind of expectation takes part in this test.
    NotAsked,
}

/// How the expectations of a folder came out.
#[derive(Default)]
struct Tally {
    decided: usize,
    undecided: usize,
    not_asked: usize,
    wrong: Vec<String>,
}

/// Runs all expectations of a folder; at least `pinned` of them must be decided.
fn run_folder(folder: &str, pinned: usize) {
    let mut tally = Tally::default();
    for path in weak_files(folder) {
        let Compiled { program, expectations, warnings } = compile(&path);
        let name = shown(&path);
        let wrong_anyway = expectations.iter().any(|e| e.expected == WRONG_UNDER_SC);
        assert!(warnings.is_empty() || wrong_anyway, "{name} has warnings:\n{}", listed(&warnings));
        for expectation in expectations {
            match ask(&program, expectation.expected) {
                Answer::Agrees => tally.decided += 1,
                Answer::Undecided => tally.undecided += 1,
                Answer::NotAsked => tally.not_asked += 1,
                Answer::Disagrees(why) => {
                    tally.wrong.push(format!("{name}: expected {}, but {why}", expectation.expected));
                }
            }
        }
    }
    let Tally { decided, undecided, not_asked, wrong } = tally;
    println!("{folder}: {decided} expectations decided, {undecided} without an answer, {not_asked} not asked");
    assert!(wrong.is_empty(), "{} wrong answers:\n{}", wrong.len(), wrong.join("\n"));
    assert!(decided >= pinned, "only {decided} expectations of {folder} were decided, {pinned} are required");
}

fn ask(program: &Program, expected: Expected) -> Answer {
    match expected {
        Expected::Verify { model, verdict } => verify(program, model, verdict),
        Expected::Check { model, verdict } => check(program, model, verdict),
        Expected::Fence { .. } => Answer::NotAsked,
    }
}

fn explore(program: &Program, model: MemoryModel, reduce: bool) -> ExplicitReport {
    let bounds = ExplicitOptions { buffer: MAX_BUFFER, max_states: Some(MAX_STATES), ..ExplicitOptions::new(model) };
    explicit::verify(program, &ExplicitOptions { reduce, ..bounds }, &Budget::unlimited(), &())
}

/// An error under SC comes first; only programs that are correct there are asked whether they are safe.
fn check(program: &Program, model: MemoryModel, expected: CheckVerdict) -> Answer {
    let found = match explore(program, MemoryModel::Sc, true).verdict {
        Verdict::Inconclusive(_) => return Answer::Undecided,
        Verdict::Violated(_) => CheckVerdict::Error,
        Verdict::Verified => {
            let options = RobustOptions::new(model);
            match robust::check(program, options, &Budget::unlimited(), &()).unwrap().verdict {
                RobustVerdict::Inconclusive(_) => return Answer::Undecided,
                RobustVerdict::NotRobust => CheckVerdict::Unsafe,
                RobustVerdict::Robust => CheckVerdict::Safe,
            }
        }
    };
    if found == expected { Answer::Agrees } else { Answer::Disagrees(format!("it is {}", found.name())) }
}

/// Asks twice, with and without partial-order reduction: the reduction may decide more, and never something else.
fn verify(program: &Program, model: MemoryModel, expected: VerifyVerdict) -> Answer {
    match (judge(&explore(program, model, true), expected), judge(&explore(program, model, false), expected)) {
        (reduced, Answer::Undecided) => reduced,
        (Answer::Undecided, plain) => plain,
        (Answer::Agrees, plain) => plain,
        (reduced, _) => reduced,
    }
}

fn judge(report: &ExplicitReport, expected: VerifyVerdict) -> Answer {
    match (&report.verdict, expected) {
        (Verdict::Inconclusive(_), _) => Answer::Undecided,
        (Verdict::Verified, VerifyVerdict::Verified) | (Verdict::Violated(_), VerifyVerdict::Violated) => {
            Answer::Agrees
        }
        (Verdict::Verified, VerifyVerdict::Violated) => {
            Answer::Disagrees(format!("it is verified ({} states)", report.states))
        }
        (Verdict::Violated(witness), VerifyVerdict::Verified) => Answer::Disagrees(format!(
            "it is violated after {} actions: {}",
            witness.actions.len(),
            witness.problem.message
        )),
    }
}

/// Every SC execution of these is assumed away or waits for ever: `check sc` has no answer to expect.
const WITHOUT_SC_EXECUTIONS: [&str; 4] =
    ["assume-false.weak", "await-for-ever.weak", "linden-wolper-table1.weak", "spin-is-not-deadlock.weak"];

/// What can be known about a program without running an engine: the models are ordered (SC allows the fewest executions,
/// PSO the most), a safe program has SC executions only, and a fence never adds an execution.
#[test]
fn the_expectations_of_a_file_do_not_contradict_each_other() {
    let files: Vec<PathBuf> = all_folders().iter().flat_map(|folder| weak_files(folder)).collect();
    assert!(files.len() >= 250, "only {} programs found", files.len());
    for path in files {
        let expected = expectations(&path);
        let contradictions = contradictions(&expected);
        assert!(contradictions.is_empty(), "{}: {}", shown(&path), contradictions.join("; "));
        let has_none = WITHOUT_SC_EXECUTIONS.iter().any(|name| path.ends_with(name));
        assert_eq!(expected.contains_key(&("check", "sc")), !has_none, "{}: `check sc`", shown(&path));
    }
}

/// The expectations of a file by command and model, as text.
type Expectations = BTreeMap<(&'static str, &'static str), String>;

fn contradictions(expected: &Expectations) -> Vec<&'static str> {
    let get = |command, model| expected.get(&(command, model)).map(String::as_str);
    let is = |command, model, verdict| get(command, model) == Some(verdict);
    let mut found = Vec::new();
    let mut forbid = |bad: bool, why| {
        if bad {
            found.push(why);
        }
    };
    forbid(get("verify", "sc").is_none(), "nothing is said about SC");
    forbid(is("verify", "sc", "violated") != is("check", "sc", "error"), "`verify sc` and `check sc` differ");
    for (weaker, stronger) in [("sc", "tso"), ("sc", "pso"), ("tso", "pso")] {
        let lost = is("verify", weaker, "violated") && is("verify", stronger, "verified");
        forbid(lost, "a violation is gone under a weaker model");
        forbid(is("check", weaker, "unsafe") && is("check", stronger, "safe"), "safe under a weaker model only");
        forbid(
            is("check", weaker, "error") && !is("check", stronger, "error"),
            "an SC error is an error under every model",
        );
    }
    for model in ["tso", "pso"] {
        let safe = is("check", model, "safe");
        forbid(safe && !is("verify", model, "verified"), "safe and right under SC, but not verified");
        let needs_none = is("fence", model, "0");
        forbid(needs_none != is("verify", model, "verified"), "`fence: 0` says `verified`, and the other way round");
    }
    let fences = |model| get("fence", model).map(|count| count.parse::<u32>().unwrap());
    if let (Some(tso), Some(pso)) = (fences("tso"), fences("pso")) {
        forbid(tso > pso, "fences that do under PSO do under TSO");
    }
    found
}

#[test]
fn the_readme_lists_every_file_with_its_answers() {
    let readme = fs::read_to_string(root().join("corpus/README.md")).unwrap();
    for folder in FOLDERS {
        let heading = format!("### `{folder}/`");
        let section = readme.split("\n### ").find(|section| heading.ends_with(section.lines().next().unwrap_or("-")));
        let section = section.unwrap_or_else(|| panic!("corpus/README.md has no section {heading}"));
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        let files = weak_files(&format!("corpus/{folder}"));
        assert_eq!(rows.len(), files.len(), "rows and files of {heading}");
        for path in files {
            let name = path.file_stem().unwrap().to_string_lossy();
            let expected = expectations(&path);
            let end = format!("| {} | {} |", cell(&expected, "tso"), cell(&expected, "pso"));
            let listed = rows.iter().any(|row| row.starts_with(&format!("| `{name}` | ")) && row.ends_with(&end));
            assert!(listed, "corpus/README.md should have a row for {folder}/{name} that ends with\n{end}");
        }
    }
}

/// A cell of the table: verdict of `verify`, verdict of `check`, number of fences; what is not known is left out.
fn cell(expected: &Expectations, model: &'static str) -> String {
    let mut parts: Vec<String> =
        ["verify", "check"].iter().filter_map(|command| expected.get(&(*command, model)).cloned()).collect();
    match expected.get(&("fence", model)).map(String::as_str) {
        None | Some("0") => {}
        Some("1") => parts.push("1 fence".to_owned()),
        Some(count) => parts.push(format!("{count} fences")),
    }
    parts.join(", ")
}

#[test]
fn formatting_keeps_every_program_and_its_expectations() {
    for path in all_folders().iter().flat_map(|folder| weak_files(folder)) {
        let name = shown(&path);
        let formatted = format(&name, &fs::read_to_string(&path).unwrap());
        assert_eq!(format(&name, &formatted), formatted, "formatting {name} twice changes it again");
        let (before, after) = (compile(&path), compile_text(&name, formatted));
        assert_eq!(without_places(&before.program), without_places(&after.program), "formatting changes {name}");
        let expected = |compiled: &Compiled| compiled.expectations.iter().map(|e| e.expected).collect::<Vec<_>>();
        assert_eq!(expected(&before), expected(&after), "formatting changes the expectations of {name}");
    }
}

/// The printed program without the line and column of each instruction.
fn without_places(program: &Program) -> String {
    program.to_string().lines().map(|line| line.split(" ; ").next().unwrap_or(line).to_owned() + "\n").collect()
}

fn format(name: &str, text: &str) -> String {
    weak::format(&SourceFile::new(name, text)).unwrap_or_else(|errors| panic!("{name}: {}", listed(&errors)))
}

#[test]
fn the_litmus_example_is_understood() {
    let path = root().join("examples/sb.litmus");
    let source = SourceFile::new(shown(&path), fs::read_to_string(&path).unwrap());
    let test = weakspot_front::litmus::parse(&source).unwrap_or_else(|errors| panic!("{}", listed(&errors)));
    assert_eq!(test.program.threads.len(), 2);
}

fn expectations(path: &Path) -> Expectations {
    let mut expected = Expectations::new();
    for expectation in compile(path).expectations {
        match expectation.expected {
            Expected::Check { model, verdict } => {
                let verdict: CheckVerdict = verdict;
                expected.insert(("check", model.name()), verdict.name().to_owned());
            }
            Expected::Verify { model, verdict } => {
                expected.insert(("verify", model.name()), verdict.name().to_owned());
            }
            Expected::Fence { model, count } => {
                expected.insert(("fence", model.name()), count.to_string());
            }
        }
    }
    expected
}

fn compile(path: &Path) -> Compiled {
    compile_text(&shown(path), fs::read_to_string(path).unwrap())
}

fn compile_text(name: &str, text: String) -> Compiled {
    weak::compile(&SourceFile::new(name, text))
        .unwrap_or_else(|errors| panic!("{name} does not compile:\n{}", listed(&errors)))
}

fn listed(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        writeln!(text, "  {}", diagnostic.message).unwrap();
    }
    text
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The path from the root of the repository.
fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn all_folders() -> Vec<String> {
    FOLDERS.iter().map(|folder| format!("corpus/{folder}")).chain(["examples".to_owned()]).collect()
}

fn weak_files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "weak"))
        .collect();
    files.sort();
    files
}
