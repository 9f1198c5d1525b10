//! Every `//! expect check` line of the corpus.

use weakspot_check::{CheckOptions, CheckReport, Engine, InternalError, Verdict, check};
use weakspot_explore::exhaustive::MonitorKind;
use weakspot_front::weak::{self, Expected};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_testkit::corpus;

fn name_of(report: &Result<CheckReport, InternalError>) -> &'static str {
    match report {
        Ok(CheckReport { verdict: Verdict::Safe, .. }) => "safe",
        Ok(CheckReport { verdict: Verdict::Unsafe(_), .. }) => "unsafe",
        Ok(CheckReport { verdict: Verdict::Error(_), .. }) => "error",
        Ok(CheckReport { verdict: Verdict::Bounded(_), .. }) => "bounded",
        Err(_) => "an internal error",
    }
}

#[test]
fn check_expectations_of_the_corpus_hold_for_every_engine() {
    let mut files = corpus::files("corpus", &["weak"]);
    files.extend(corpus::files("examples", &["weak"]));
    let (mut wrong, mut agreed, mut stateless) = (Vec::new(), 0, 0);
    for path in &files {
        let text = std::fs::read_to_string(path).expect("a readable file");
        let source = SourceFile::new(path.display().to_string(), text);
        let compiled = weak::compile(&source).unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()));
        for expectation in &compiled.expectations {
            let Expected::Check { model, verdict: expected } = &expectation.expected else { continue };
            let auto = CheckOptions::new(*model);
            let with = |engine| CheckOptions { engine: Some(engine), ..auto.clone() };
            let (attack, stateless_only) = (with(Engine::Attack), with(Engine::Stateless));
            // Whoever asks for a monitor asks for the stateless engine. (Under PSO this is the monitor anyway.)
            let operational = CheckOptions { monitor: Some(MonitorKind::Operational(*model)), ..auto.clone() };
            // The programs to measure exploration with have few traces for their number of states.
            let engines = if corpus::is_bench(path) {
                vec![("stateless", &stateless_only)]
            } else {
                vec![("auto", &auto), ("attack", &attack), ("operational monitor", &operational)]
            };
            for &(engine, options) in
                engines.iter().filter(|(_, options)| options.monitor.is_none() || *model == MemoryModel::Tso)
            {
                let report = check(&compiled.program, options, &Budget::unlimited(), &());
                let found = name_of(&report);
                if options.monitor.is_some() && found == "bounded" {
                    continue;
                }
                stateless += usize::from(report.is_ok_and(|report| report.engine == Engine::Stateless));
                if found == expected.name() {
                    agreed += 1;
                } else {
                    wrong.push(format!("{}: {} is {found} ({engine})", path.display(), model.name()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        agreed > 1_600 && stateless > 500,
        "{agreed} expectations, {stateless} of them decided by the stateless engine"
    );
}
