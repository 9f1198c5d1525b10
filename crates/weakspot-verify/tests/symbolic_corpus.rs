//! The symbolic engine on the corpus: every file's own `expect verify` lines, under every model.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use weakspot_front::weak::{self, Compiled, Expected, VerifyVerdict};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Verdict};
use weakspot_testkit::corpus;
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::symbolic::{self, SymbolicError, SymbolicOptions, SymbolicReport};

/// Symbolic states stored at most; nothing in the corpus needs as many.
const STORED: u64 = 40_000;

fn compile(path: &Path) -> Compiled {
    let text = std::fs::read_to_string(path).unwrap();
    let source = SourceFile::new(path.file_name().unwrap().to_str().unwrap(), text);
    weak::compile(&source).unwrap_or_else(|problems| panic!("{}: {problems:?}", path.display()))
}

fn verify(compiled: &Compiled, options: &SymbolicOptions) -> Result<SymbolicReport, SymbolicError> {
    symbolic::verify(&compiled.program, options, &Budget::unlimited(), &())
}

/// Runs all expectations of a model; gives how many were met and how many files were refused.
fn run_corpus(wanted: MemoryModel) -> (usize, usize) {
    let (mut met, mut refused) = (0, 0);
    let mut unmet = Vec::new();
    for path in corpus::programs() {
        let compiled = compile(&path);
        for expectation in &compiled.expectations {
            let Expected::Verify { model, verdict } = expectation.expected else { continue };
            if model != wanted {
                continue;
            }
            let options = SymbolicOptions { max_states: Some(STORED), ..SymbolicOptions::new(model) };
            match (verify(&compiled, &options), verdict) {
                (Ok(SymbolicReport { verdict: Verdict::Verified, .. }), VerifyVerdict::Verified) => met += 1,
                (Ok(SymbolicReport { verdict: Verdict::Violated(witness), .. }), VerifyVerdict::Violated) => {
                    witness.replay(&Machine::new(&compiled.program, model)).unwrap();
                    met += 1;
                }
                (Err(error), _) if error.is_refusal() && model == MemoryModel::Pso => refused += 1,
                (outcome, _) => unmet.push(format!("{}: {outcome:?}", path.display())),
            }
        }
    }
    assert!(unmet.is_empty(), "{}", unmet.join("\n"));
    (met, refused)
}

#[test]
fn every_expectation_under_sc_is_met() {
    assert!(run_corpus(MemoryModel::Sc).0 > 200);
}

#[test]
fn every_expectation_under_tso_is_met() {
    assert!(run_corpus(MemoryModel::Tso).0 > 200);
}

#[test]
fn every_expectation_under_pso_is_met_and_none_refused() {
    let (met, refused) = run_corpus(MemoryModel::Pso);
    assert!(met > 200 && refused == 0, "{met} met, {refused} refused");
}

/// Explores one of the paper's programs to the end, errors or not.
fn explore(name: &str) -> SymbolicReport {
    let compiled = compile(&corpus::root().join("corpus").join("papers").join(name));
    let options = SymbolicOptions { all_errors: true, ..SymbolicOptions::new(MemoryModel::Tso) };
    verify(&compiled, &options).unwrap()
}

#[test]
fn table_2_errors_without_sync_and_none_with_it_and_every_exploration_ends() {
    for algorithm in ["dekker", "peterson"] {
        for entry in ["single", "repeated"] {
            let without = explore(&format!("linden-wolper-{algorithm}-{entry}.weak"));
            assert!(without.errors > 0 && matches!(without.verdict, Verdict::Violated(_)));
            let with = explore(&format!("linden-wolper-{algorithm}-{entry}-sync.weak"));
            assert_eq!((with.errors, with.verdict), (0, Verdict::Verified));
            assert!(with.automaton_states < without.automaton_states);
        }
    }
}

#[test]
fn repeated_entry_stores_fewer_states_than_table_2() {
    let limits = [("dekker-repeated", 3_236), ("dekker-repeated-sync", 343), ("peterson-repeated", 355)];
    for (name, paper) in limits {
        let stored = explore(&format!("linden-wolper-{name}.weak")).states_stored;
        assert!(stored < paper, "{name}: {stored} states stored, the paper stores {paper}");
    }
}

#[test]
fn repeated_entry_of_dekker_stores_a_hundredth_of_what_explicit_search_with_buffers_of_eight_stores() {
    let report = explore("linden-wolper-dekker-repeated.weak");
    let compiled = compile(&corpus::root().join("corpus").join("papers/linden-wolper-dekker-repeated.weak"));
    for reduce in [false, true] {
        let options = ExplicitOptions { buffer: 8, reduce, ..ExplicitOptions::new(MemoryModel::Tso) };
        let outcomes = explicit::outcomes(&compiled.program, &options, &Budget::unlimited(), &()).unwrap();
        assert!(report.states_stored * 100 <= outcomes.states, "{} to {}", outcomes.states, report.states_stored);
        // Even all states of all automata are far fewer.
        assert!(report.automaton_states * 50 <= outcomes.states);
    }
}

/// What the exact search cannot finish, widening does: the errors of these are counted to the end.
#[test]
fn errors_of_unfenced_algorithms_with_repeated_entry_are_all_counted() {
    for name in ["dijkstra-loop", "fast-mutex-loop", "burns-loop"] {
        let compiled = compile(&corpus::root().join("corpus").join("mutex").join(format!("{name}.weak")));
        let options = SymbolicOptions { all_errors: true, ..SymbolicOptions::new(MemoryModel::Tso) };
        let report = verify(&compiled, &options).unwrap();
        assert!(matches!(report.verdict, Verdict::Violated(_)) && report.errors > 1, "{name}");
    }
}

#[test]
fn an_unbounded_buffer_needs_an_acceleration() {
    let fig2 = explore("linden-wolper-fig2.weak");
    assert_eq!(fig2.verdict, Verdict::Verified);
    assert!(fig2.accelerations >= 2, "both buffers grow for ever");
    let fig4 = explore("linden-wolper-fig4.weak");
    assert_eq!(fig4.verdict, Verdict::Verified);
    assert!(fig4.accelerations >= 2, "the second cycle is unlocked by commits of the first");
}
