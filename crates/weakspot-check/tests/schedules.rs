//! Every finding has a schedule, and its text leads to the same finding again.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use weakspot_check::{
    CheckOptions, CheckReport, Engine, Sampling, Schedule, Verdict, Violation, check, check_schedule,
};
use weakspot_front::{litmus, weak};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_testkit::corpus;

/// Every program of the corpus, with its name.
fn programs() -> Vec<(String, Program)> {
    let mut paths = corpus::files("corpus", &["weak", "litmus"]);
    paths.retain(|path| !corpus::is_bench(path));
    let program = |path: &PathBuf| {
        let file = SourceFile::new(path.display().to_string(), std::fs::read_to_string(path).unwrap());
        let is_test = path.extension().is_some_and(|extension| extension == "litmus");
        let program =
            if is_test { litmus::parse(&file).unwrap().program } else { weak::compile(&file).unwrap().program };
        (path.display().to_string(), program)
    };
    paths.iter().map(program).collect()
}

/// What the engines may take for one program: the largest of the corpus are given up.
fn budget() -> Budget {
    Budget::unlimited().with_memory(32 << 20)
}

fn replay(program: &Program, options: &CheckOptions, schedule: &Schedule) -> CheckReport {
    let text = schedule.to_string();
    let parsed: Schedule = text.parse().unwrap();
    assert_eq!(&parsed, schedule, "{text}");
    // what comes of it in relaxed executions is another question
    let budget = Budget::unlimited().with_memory(0);
    check_schedule(program, options, &parsed, &budget, &()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn pair(violation: &Violation) -> (weakspot_check::Access, weakspot_check::Access) {
    (violation.store, violation.access)
}

/// Replays all findings; how many there were.
fn findings_come_again(name: &str, program: &Program, options: &CheckOptions, report: &CheckReport) -> usize {
    some_come_again(name, program, options, report, usize::MAX)
}

/// Replays some findings; how many.
fn some_come_again(name: &str, program: &Program, options: &CheckOptions, report: &CheckReport, most: usize) -> usize {
    if let Verdict::Error(witness) = &report.verdict {
        let schedule = report.schedule().unwrap();
        let again = replay(program, options, &schedule);
        let Verdict::Error(found) = &again.verdict else { panic!("{name}: {schedule}: {:?}", again.verdict) };
        assert_eq!(found, witness, "{name}");
        return 1;
    }
    for violation in report.violations.iter().take(most) {
        let again = replay(program, options, &violation.schedule);
        assert!(matches!(again.verdict, Verdict::Unsafe(_)), "{name}: {}: {:?}", violation.schedule, again.verdict);
        let found = again.violations.iter().find(|found| pair(found) == pair(violation));
        let found = found.unwrap_or_else(|| {
            let pairs = again.violations.iter().map(pair).collect::<Vec<_>>();
            panic!(
                "{name} under {:?}: {}: {:?} does not come again: {pairs:?}",
                options.model,
                violation.schedule,
                pair(violation)
            )
        });
        assert_eq!(found.schedule, violation.schedule, "{name}");
        assert!(
            found.relaxed.is_some() && found.passed.is_some(),
            "{name} under {:?}: no relaxed execution for {} {:?}",
            options.model,
            found.schedule,
            pair(found)
        );
    }
    report.violations.len().min(most)
}

#[test]
fn every_finding_in_the_corpus_replays_to_itself() {
    let mut findings = 0;
    for (name, program) in programs() {
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let attack = CheckOptions { all: true, engine: Some(Engine::Attack), ..CheckOptions::new(model) };
            let report = check(&program, &attack, &budget(), &()).unwrap();
            findings += findings_come_again(&name, &program, &attack, &report);
            let auto = CheckOptions { all: true, ..CheckOptions::new(model) };
            let report = check(&program, &auto, &budget(), &()).unwrap();
            findings += findings_come_again(&name, &program, &auto, &report);
        }
    }
    assert!(findings > 800, "{findings}");
}

#[test]
fn every_finding_of_sampling_replays_to_itself_and_is_real() {
    let mut findings = 0;
    for (name, program) in programs() {
        for (model, sampling) in [
            (MemoryModel::Tso, Sampling::Random { executions: 40, seed: 1 }),
            (MemoryModel::Pso, Sampling::Pct { executions: 40, depth: 3, seed: 2 }),
        ] {
            let (sampling, unroll) = (Some(sampling), Some(8));
            let options = CheckOptions { all: true, sampling, unroll, ..CheckOptions::new(model) };
            let report = check(&program, &options, &budget(), &()).unwrap();
            let exact = CheckOptions { engine: Some(Engine::Attack), ..CheckOptions::new(model) };
            let exact = check(&program, &exact, &budget(), &()).unwrap().verdict;
            match (&report.verdict, &exact) {
                (Verdict::Unsafe(_), Verdict::Unsafe(_))
                | (Verdict::Error(_), Verdict::Error(_))
                | (Verdict::Bounded(_), _)
                | (_, Verdict::Bounded(_)) => assert!(!report.exhaustive || report.engine == Engine::Attack),
                // an `assume` made the monitor's finding uncertain, and the attack engine was asked
                (Verdict::Safe, Verdict::Safe) => assert!(program.assumes() && report.engine == Engine::Attack),
                other => panic!("{name}: {other:?}"),
            }
            findings += findings_come_again(&name, &program, &options, &report);
        }
    }
    assert!(findings > 200, "{findings}");
}

/// Loops without bounds make schedules of tens of thousands of steps, in which thousands of stores can be pending.
#[test]
fn findings_at_the_end_of_long_schedules_replay_to_themselves() {
    let names = ["burns-two.weak", "peterson-loop.weak", "mcs-loop.weak"];
    let is_chosen = |name: &str| names.iter().any(|chosen| name.ends_with(chosen));
    let mut longest = 0;
    for (name, program) in programs().into_iter().filter(|(name, _)| is_chosen(name)) {
        for (model, sampling) in [
            (MemoryModel::Tso, Sampling::Random { executions: 2, seed: 1 }),
            (MemoryModel::Pso, Sampling::Pct { executions: 4, depth: 3, seed: 2 }),
        ] {
            let options = CheckOptions { all: true, sampling: Some(sampling), ..CheckOptions::new(model) };
            let mut report = check(&program, &options, &budget(), &()).unwrap();
            report.violations.sort_by_key(|violation| std::cmp::Reverse(violation.schedule.len()));
            longest = longest.max(report.violations.first().map_or(0, |violation| violation.schedule.len()));
            some_come_again(&name, &program, &options, &report, 1);
        }
    }
    assert!(longest > 50_000, "{longest}");
}

/// What is assumed comes true only if another store waits, too, than the one that the monitor names.
#[test]
fn findings_come_again_where_several_stores_have_to_wait() {
    let text = "shared x, y, z;
        thread a { let r = y; x = 2; z = 2; let s = y; if s == 2 { assume(z != 2); } }
        thread b { y = 2; }
        thread d { z = 1; x = 1; let r = y; }";
    let program = weak::compile(&SourceFile::new("test.weak", text)).unwrap().program;
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        for all in [false, true] {
            let options = CheckOptions { all, ..CheckOptions::new(model) };
            let report = check(&program, &options, &Budget::unlimited(), &()).unwrap();
            assert!(matches!(report.verdict, Verdict::Unsafe(_)), "{:?}", report.verdict);
            for violation in &report.violations {
                let again = replay(&program, &options, &violation.schedule);
                assert!(matches!(again.verdict, Verdict::Unsafe(_)), "{} {:?}", violation.schedule, again.verdict);
            }
        }
    }
}
