//! Every `//! expect fence` line of the corpus, and every result verified by an engine that took no part in inferring it.
//!
//! Inference asks the explicit, the symbolic and the attack engine. The second opinion about the fenced program is the
//! abstract engine's, which is never asked; where that only raises an alarm, inference is done again by explicit search
//! alone, and the second opinion is the symbolic engine's. Each folder pins that no result is left without one.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test reports by panicking, and prints its tally")]

use std::fs;
use std::sync::Arc;

use weakspot_fence::{FenceEngine, FenceOptions, FenceReport, FenceVerdict, Goal, confirm, infer};
use weakspot_front::weak::{self, Expected};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Verdict};
use weakspot_testkit::corpus;
use weakspot_verify::abstraction::{self, AbstractOptions, AbstractVerdict, Domain, ValueDomain};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::symbolic::{self, SymbolicOptions};

/// More states than this are not spent on one second opinion.
const MAX_STATES: u64 = 100_000;

/// Runs all expectations of a folder; at least `pinned` of them must be decided, and all results have a second opinion.
fn run_folder(folder: &str, pinned: usize) {
    let (mut wrong, mut agreed, mut open, mut alone) = (Vec::new(), 0, Vec::new(), Vec::new());
    for path in corpus::files(&format!("corpus/{folder}"), &["weak"]) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let source = SourceFile::new(name.as_str(), fs::read_to_string(&path).unwrap());
        for expectation in weak::compile(&source).unwrap().expectations {
            let Expected::Fence { model, count } = expectation.expected else { continue };
            let report = infer(&source, &FenceOptions::new(model, Goal::Spec), &Budget::unlimited(), &()).unwrap();
            let line = format!("{name}: {}: {}", model.name(), described(&report));
            let found = report.placement.as_ref().map(|placement| placement.cost);
            match (found, report.minimal) {
                (Some(found), true) if found == u64::from(count) => agreed += 1,
                (Some(found), false) if found >= u64::from(count) => open.push(line.clone()),
                (None, false) => open.push(line.clone()),
                _ => wrong.push(format!("{line}, {count} expected")),
            }
            match second_opinion(&source, model, &report) {
                Opinion::Abstract | Opinion::Symbolic => {}
                Opinion::None => alone.push(line),
                Opinion::Broken(by) => wrong.push(format!("{line}: the fenced program is wrong, says {by}")),
            }
        }
    }
    println!("{agreed} agree, {} open:\n{}", open.len(), open.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(agreed >= pinned, "only {agreed} expectations were decided");
    assert!(alone.is_empty(), "{} results without a second opinion:\n{}", alone.len(), alone.join("\n"));
}

fn described(report: &FenceReport) -> String {
    let cost = report.placement.as_ref().map_or_else(|| "-".to_owned(), |placement| placement.cost.to_string());
    let verdict = match report.verdict {
        FenceVerdict::NoneNeeded => "none needed",
        FenceVerdict::Fenced => "fenced",
        FenceVerdict::Impossible(_) => "impossible",
        FenceVerdict::Inconclusive(_) => "inconclusive",
    };
    format!("{verdict}, cost {cost}, at least {}, minimal {}", report.at_least, report.minimal)
}

/// What an engine that took no part says of a fenced program.
enum Opinion {
    /// The abstract engine has verified it.
    Abstract,
    /// The symbolic engine has verified it, and explicit search alone infers as many fences.
    Symbolic,
    /// No other engine can tell.
    None,
    /// An engine shows an execution that breaks the specification.
    Broken(&'static str),
}

fn second_opinion(source: &Arc<SourceFile>, model: MemoryModel, report: &FenceReport) -> Opinion {
    let Some(placement) = &report.placement else { return Opinion::None };
    let program = weak::compile(&SourceFile::new(source.name.as_str(), placement.text.as_str())).unwrap().program;
    match abstractly(&program, model) {
        AbstractVerdict::Verified => return Opinion::Abstract,
        AbstractVerdict::Violated(_) => return Opinion::Broken("the abstract engine"),
        AbstractVerdict::Alarm(_) | AbstractVerdict::Inconclusive(_) => {}
    }
    let options = SymbolicOptions { max_states: Some(MAX_STATES), ..SymbolicOptions::new(model) };
    match symbolic::verify(&program, &options, &Budget::unlimited(), &()).map(|report| report.verdict) {
        Ok(Verdict::Violated(_)) => Opinion::Broken("the symbolic engine"),
        Ok(Verdict::Verified) if explicit_search_finds(source, model, placement.cost) => Opinion::Symbolic,
        _ => Opinion::None,
    }
}

fn abstractly(program: &Program, model: MemoryModel) -> AbstractVerdict {
    let options = AbstractOptions { max_states: Some(MAX_STATES), ..AbstractOptions::new(model) };
    abstraction::climb(program, &options, &Budget::unlimited(), &()).unwrap().verdict
}

fn explicit_search_finds(source: &Arc<SourceFile>, model: MemoryModel, cost: u64) -> bool {
    let options = FenceOptions { engine: FenceEngine::Explicit, ..FenceOptions::new(model, Goal::Spec) };
    let report = infer(source, &options, &Budget::unlimited(), &()).unwrap();
    report.placement.is_some_and(|placement| placement.cost == cost)
}

/// Fences for store-buffer safety are found by the attack engine; what is safe is as correct as under SC, which the
/// explicit engine can see.
#[test]
fn programs_that_are_made_robust_are_correct() {
    let mut answers = 0;
    for folder in ["litmus-weak", "mutex", "sync", "structures", "papers", "fences"] {
        for path in corpus::files(&format!("corpus/{folder}"), &["weak"]) {
            let source = SourceFile::new(path.display().to_string(), fs::read_to_string(&path).unwrap());
            for model in [MemoryModel::Tso, MemoryModel::Pso] {
                let report =
                    infer(&source, &FenceOptions::new(model, Goal::Robust), &Budget::unlimited(), &()).unwrap();
                let placement = report.placement.expect("the attack engine always has an answer");
                let spec = FenceOptions::new(model, Goal::Spec);
                let fenced = SourceFile::new(source.name.as_str(), placement.text.as_str());
                let relaxed = confirm(&fenced, &spec, &Budget::unlimited(), &()).unwrap();
                let sc = FenceOptions::new(MemoryModel::Sc, Goal::Spec);
                let calm = confirm(&source, &sc, &Budget::unlimited(), &()).unwrap();
                assert_eq!(relaxed, calm, "{} {}", source.name, model.name());
                assert!(report.minimal, "{} {}", source.name, model.name());
                answers += 1;
            }
        }
    }
    assert!(answers >= 520, "only {answers} answers");
}

/// Programs with counters that grow for ever: their headers name the domain of each. With the fences that are inferred over
/// `fd`, `pd` verifies them as well, and bounded search (which has no end here) finds nothing.
#[test]
fn counters_without_end() {
    let mut answers = Vec::new();
    for path in corpus::files("corpus/abstract", &["weak"]) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = SourceFile::new(name.as_str(), fs::read_to_string(&path).unwrap());
        let program = weak::compile(&source).unwrap().program;
        let values = named_domains(&source.text, &program);
        if values.iter().all(Option::is_none) {
            continue;
        }
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let engine = FenceEngine::Abstract { domain: Domain::Fd, k: None };
            let options = FenceOptions { engine, values: values.clone(), ..FenceOptions::new(model, Goal::Spec) };
            let report = infer(&source, &options, &Budget::unlimited(), &()).unwrap();
            answers.push(format!("{name} {}: {}", model.name(), described(&report)));
            let Some(placement) = report.placement else { continue };
            let fenced = weak::compile(&SourceFile::new(name.as_str(), placement.text.as_str())).unwrap().program;
            let other = AbstractOptions { domain: Domain::Pd, values: values.clone(), ..AbstractOptions::new(model) };
            let verdict = abstraction::climb(&fenced, &other, &Budget::unlimited(), &()).unwrap().verdict;
            assert_eq!(verdict, AbstractVerdict::Verified, "{name} {}", model.name());
            let few = ExplicitOptions { max_states: Some(20_000), ..ExplicitOptions::new(model) };
            let verdict = explicit::verify(&fenced, &few, &Budget::unlimited(), &()).verdict;
            assert!(matches!(verdict, Verdict::Inconclusive(_)), "{name} {}: {verdict:?}", model.name());
        }
    }
    let open: Vec<&String> = answers.iter().filter(|answer| answer.contains("inconclusive")).collect();
    assert!(open.iter().all(|answer| answer.starts_with("unbounded-bakery")), "{open:?}");
    assert!(answers.contains(&"published-versions-unfenced pso: fenced, cost 1, at least 1, minimal true".to_owned()));
    assert!(answers.len() >= 16, "{answers:?}");
}

/// The domains that the `--value` options of a header ask for.
fn named_domains(text: &str, program: &Program) -> Vec<Option<ValueDomain>> {
    let options = text.split("--value ").skip(1).filter_map(|rest| rest.split_whitespace().next()?.split_once('='));
    let named: Vec<(&str, ValueDomain)> = options
        .filter_map(|(name, domain)| Some((name, ValueDomain::ALL.into_iter().find(|known| known.name() == domain)?)))
        .collect();
    let domain = |cell: &str| named.iter().find(|(name, _)| cell.split('[').next() == Some(name)).map(|(_, d)| *d);
    program.locations.iter().map(|location| domain(&location.name)).collect()
}

#[test]
fn litmus_tests() {
    run_folder("litmus-weak", 146);
}

#[test]
fn mutual_exclusion() {
    run_folder("mutex", 145);
}

#[test]
fn synchronisation() {
    run_folder("sync", 62);
}

#[test]
fn data_structures() {
    run_folder("structures", 64);
}

#[test]
fn papers() {
    run_folder("papers", 96);
}

#[test]
fn processes_written_out() {
    run_folder("fences", 12);
}

#[test]
fn the_language() {
    run_folder("language", 116);
}
