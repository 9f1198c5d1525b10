//! The abstract engine on the corpus: every file's own `expect verify` lines, Table 1 of the paper, and the programs whose
//! counters never end.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use weakspot_front::weak::{self, Compiled, Expected, VerifyVerdict};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::problem::ProblemKind;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_testkit::corpus;
use weakspot_verify::abstraction::{self, AbstractOptions, AbstractReport, AbstractVerdict, Domain, ValueDomain};

/// Abstract states stored at most.
const STORED: u64 = 20_000;

fn compile(path: &Path) -> Compiled {
    let text = std::fs::read_to_string(path).unwrap();
    let source = SourceFile::new(path.file_name().unwrap().to_str().unwrap(), text);
    weak::compile(&source).unwrap_or_else(|problems| panic!("{}: {problems:?}", path.display()))
}

fn load(name: &str) -> Program {
    compile(&corpus::root().join("corpus").join(format!("{name}.weak"))).program
}

/// How the expectations of a model came out.
#[derive(Debug, Default)]
struct Tally {
    met: usize,
    /// Possible violations of programs that are correct, and of some that are not.
    alarms: usize,
    limits: usize,
}

/// Runs all expectations of a model; no answer may be wrong.
fn run_corpus(wanted: MemoryModel) -> Tally {
    let mut files = corpus::files("corpus", &["weak"]);
    files.extend(corpus::files("examples", &["weak"]));
    let mut tally = Tally::default();
    let mut wrong = Vec::new();
    for path in files {
        let compiled = compile(&path);
        for expectation in &compiled.expectations {
            let Expected::Verify { model, verdict } = expectation.expected else { continue };
            if model != wanted {
                continue;
            }
            let options = AbstractOptions { max_states: Some(STORED), ..AbstractOptions::new(model) };
            let report = abstraction::climb(&compiled.program, &options, &Budget::unlimited(), &()).unwrap();
            match (report.verdict, verdict) {
                (AbstractVerdict::Verified, VerifyVerdict::Verified) => tally.met += 1,
                (AbstractVerdict::Violated(witness), VerifyVerdict::Violated) => {
                    witness.replay(&Machine::new(&compiled.program, model)).unwrap();
                    tally.met += 1;
                }
                (AbstractVerdict::Alarm(_), _) => tally.alarms += 1,
                (AbstractVerdict::Inconclusive(_), _) => tally.limits += 1,
                (found, _) => wrong.push(format!("{}: {found:?}", path.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tally
}

#[test]
fn no_expectation_under_sc_is_contradicted() {
    let tally = run_corpus(MemoryModel::Sc);
    assert!(tally.met > 350 && tally.alarms == 0 && tally.limits < 10, "{tally:?}");
}

#[test]
fn no_expectation_under_tso_is_contradicted() {
    let tally = run_corpus(MemoryModel::Tso);
    assert!(tally.met > 330 && tally.alarms == 0 && tally.limits < 30, "{tally:?}");
}

#[test]
fn no_expectation_under_pso_is_contradicted() {
    let tally = run_corpus(MemoryModel::Pso);
    assert!(tally.met > 330 && tally.alarms == 0 && tally.limits < 30, "{tally:?}");
}

fn verify(program: &Program, options: &AbstractOptions) -> AbstractReport {
    abstraction::verify(program, options, &Budget::unlimited(), &()).unwrap()
}

/// The columns of Table 1.
const COLUMNS: [(Domain, u32); 3] = [(Domain::Set, 0), (Domain::Fd, 0), (Domain::Fd, 1)];

#[test]
fn table_1_comes_out_as_printed() {
    let table = [
        ("sense", [true, true, true]),
        ("pet", [false, true, true]),
        ("dek", [false, true, true]),
        ("lam", [false, true, true]),
        ("fast", [false, false, true]),
        ("clh", [false, false, true]),
    ];
    for (name, verified) in table {
        let program = load(&format!("papers/kuperstein-{name}-fenced"));
        for ((domain, k), verified) in COLUMNS.into_iter().zip(verified) {
            let options = AbstractOptions { domain, k, ..AbstractOptions::new(MemoryModel::Pso) };
            match verify(&program, &options).verdict {
                AbstractVerdict::Verified => assert!(verified, "{name} in {domain:?} with k = {k}"),
                AbstractVerdict::Alarm(problem) => {
                    assert!(!verified && problem.kind == ProblemKind::MutualExclusion, "{name} in {domain:?}, k = {k}");
                }
                other => panic!("{name} in {domain:?} with k = {k}: {other:?}"),
            }
        }
    }
}

#[test]
fn without_their_fences_the_programs_of_table_1_are_really_violated() {
    for name in ["sense", "pet", "dek", "lam", "fast", "clh"] {
        let program = load(&format!("papers/kuperstein-{name}"));
        for (domain, k) in COLUMNS.into_iter().chain([(Domain::Pd, 0), (Domain::Pd, 1)]) {
            let options = AbstractOptions { domain, k, ..AbstractOptions::new(MemoryModel::Pso) };
            let report = verify(&program, &options);
            assert!(matches!(report.verdict, AbstractVerdict::Violated(_)), "{name}: {report:?}");
        }
    }
}

/// A program of `abstract/`, the variable with a domain, and the domain.
fn with_domain(name: &str, variable: &str, domain: ValueDomain) -> (Program, AbstractOptions) {
    let program = load(&format!("abstract/{name}"));
    let cell = |name: &String| name == variable || name.starts_with(&format!("{variable}["));
    let values = program.locations.iter().map(|location| cell(&location.name).then_some(domain)).collect();
    (program, AbstractOptions { values, ..AbstractOptions::new(MemoryModel::Pso) })
}

const COUNTERS: [(&str, &str, ValueDomain); 9] = [
    ("published-versions", "version", ValueDomain::Sign),
    ("published-versions", "version", ValueDomain::Interval),
    ("local-versions", "version", ValueDomain::Sign),
    ("local-versions", "version", ValueDomain::Interval),
    ("version-lock", "version", ValueDomain::Parity),
    ("counted-episodes", "episode", ValueDomain::Parity),
    ("counted-entries", "entries", ValueDomain::Interval),
    ("counted-entries", "entries", ValueDomain::Sign),
    ("guarded-total", "total", ValueDomain::Interval),
];

#[test]
fn counters_without_end_are_verified_thanks_to_value_domains() {
    for (name, variable, domain) in COUNTERS {
        let (program, options) = with_domain(name, variable, domain);
        for model in MemoryModel::ALL {
            let options = AbstractOptions { model, ..options.clone() };
            let report = abstraction::climb(&program, &options, &Budget::unlimited(), &()).unwrap();
            assert_eq!(report.verdict, AbstractVerdict::Verified, "{name} with {domain:?} under {}", model.name());
        }
        let exact = AbstractOptions { values: Vec::new(), max_states: Some(STORED), ..options };
        let report = abstraction::climb(&program, &exact, &Budget::unlimited(), &()).unwrap();
        assert!(matches!(report.verdict, AbstractVerdict::Inconclusive(_)), "{name} without: {report:?}");
    }
}

#[test]
fn a_counter_without_end_does_not_hide_a_violation() {
    let (program, options) = with_domain("published-versions-unfenced", "version", ValueDomain::Sign);
    let report = abstraction::climb(&program, &options, &Budget::unlimited(), &()).unwrap();
    assert!(matches!(report.verdict, AbstractVerdict::Violated(_)), "{report:?}");
}

#[test]
fn the_order_of_two_tickets_is_more_than_intervals_know_but_the_search_ends() {
    let (program, options) = with_domain("unbounded-bakery", "number", ValueDomain::Interval);
    for k in 0..3 {
        let report = verify(&program, &AbstractOptions { k, ..options.clone() });
        assert!(matches!(report.verdict, AbstractVerdict::Alarm(_)), "{report:?}");
    }
}

/// More than the paper: three processes.
#[test]
fn three_processes_are_verified() {
    for (name, k) in [
        ("mutex/filter-three-loop-fenced", 1),
        ("abstract/bakery-three-loop-fenced", 1),
        ("abstract/clh-three-loop-fenced", 1),
    ] {
        let options = AbstractOptions { k, ..AbstractOptions::new(MemoryModel::Pso) };
        let report = verify(&load(name), &options);
        assert_eq!(report.verdict, AbstractVerdict::Verified, "{name}: {} states", report.states);
    }
}
