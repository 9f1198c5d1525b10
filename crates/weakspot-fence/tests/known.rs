//! Numbers that other tools and papers report, and options that are not in the `//! expect` lines.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weakspot_fence::{
    Confirmation, Doubt, FenceEngine, FenceOptions, FenceReport, FenceVerdict, Goal, Passed, Strategy, confirm, infer,
};
use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel::{self, Pso, Tso};
use weakspot_model::ir::FenceKind;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit, Verdict};
use weakspot_verify::abstraction::{self, AbstractOptions, AbstractVerdict, Domain, ValueDomain};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::symbolic::{self, SymbolicOptions};

fn corpus(name: &str) -> Arc<SourceFile> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(format!("{name}.weak"));
    SourceFile::new(name, fs::read_to_string(path).unwrap())
}

fn ask(source: &Arc<SourceFile>, options: &FenceOptions) -> FenceReport {
    infer(source, options, &Budget::unlimited(), &()).unwrap()
}

/// The minimum, which must be proved and confirmed.
fn minimum(source: &Arc<SourceFile>, model: MemoryModel, goal: Goal) -> u64 {
    let options = FenceOptions::new(model, goal);
    let report = ask(source, &options);
    assert!(report.minimal, "{}: {report:?}", source.name);
    let placement = report.placement.unwrap();
    let fenced = SourceFile::new("fenced", placement.text.as_str());
    assert_eq!(confirm(&fenced, &options, &Budget::unlimited(), &()).unwrap(), Confirmation::Correct);
    // whoever is store-buffer safe is as correct as under SC: a second opinion by another engine
    if goal == Goal::Robust {
        let spec = FenceOptions::new(model, Goal::Spec);
        assert_ne!(confirm(&fenced, &spec, &Budget::unlimited(), &()).unwrap(), Confirmation::Broken);
    }
    placement.cost
}

/// Under TSO, with the formulations of those tools (each file of `corpus/fences` names its source).
#[test]
fn two_processes_written_out_need_what_other_tools_report() {
    for (name, spec, robust) in [
        ("dekker", 2, 4),
        ("dijkstra", 2, 4),
        ("burns", 2, 3),
        ("peterson", 2, 2),
        ("fast-mutex", 4, 4),
        ("sense-barrier", 0, 4),
    ] {
        let source = corpus(&format!("fences/{name}-two"));
        assert_eq!(minimum(&source, Tso, Goal::Spec), spec, "{name}");
        assert_eq!(minimum(&source, Tso, Goal::Robust), robust, "{name}");
        let avoid = FenceOptions { strategy: Strategy::Avoid, ..FenceOptions::new(Tso, Goal::Spec) };
        let report = ask(&source, &avoid);
        assert_eq!((report.minimal, report.placement.unwrap().cost), (true, spec), "{name} by avoid");
        assert_eq!(fewer_by_one(&source, Tso), spec, "{name}: every fence of the placement is needed");
    }
}

/// How many fences of the minimum are needed: without each of them explicit search shows an execution (which it has
/// replayed) that breaks the specification.
fn fewer_by_one(source: &Arc<SourceFile>, model: MemoryModel) -> u64 {
    let placement = ask(source, &FenceOptions::new(model, Goal::Spec)).placement.unwrap();
    let lines: Vec<&str> = placement.text.lines().collect();
    let is_new = |line: &usize| lines[*line].trim() == "fence;";
    let needed = (0..lines.len()).filter(is_new).filter(|line| {
        let others: Vec<&str> = lines.iter().enumerate().filter(|(at, _)| at != line).map(|(_, text)| *text).collect();
        matches!(explicitly(&others.join("\n"), model, 4), Verdict::Violated(_))
    });
    needed.count() as u64
}

fn explicitly(text: &str, model: MemoryModel, buffer: usize) -> Verdict {
    let program = weak::compile(&SourceFile::new("t", text)).unwrap().program;
    let options = ExplicitOptions { buffer, ..ExplicitOptions::new(model) };
    explicit::verify(&program, &options, &Budget::unlimited(), &()).verdict
}

/// The numbers of the PLDI 2011 paper, in the template of one process, by both strategies. For CLH it reports 2; see
/// below.
#[test]
fn templates_under_pso_need_what_the_paper_reports_or_less() {
    for (name, count) in [
        ("sync/sense-barrier-loop", 1),
        ("mutex/peterson-loop", 2),
        ("mutex/dekker-loop", 2),
        ("mutex/bakery-loop", 2),
        ("mutex/fast-mutex-loop", 3),
        ("mutex/clh-loop", 1),
        ("papers/kuperstein-sense", 1),
        ("papers/kuperstein-pet", 2),
        ("papers/kuperstein-dek", 2),
        ("papers/kuperstein-lam", 2),
        ("papers/kuperstein-fast", 3),
        ("papers/kuperstein-fast1a", 2),
        ("papers/kuperstein-fast1b", 2),
        ("papers/kuperstein-fast1c", 2),
        ("papers/kuperstein-clh", 1),
    ] {
        let source = corpus(name);
        assert_eq!(minimum(&source, Pso, Goal::Spec), count, "{name}");
        let avoid = FenceOptions { strategy: Strategy::Avoid, ..FenceOptions::new(Pso, Goal::Spec) };
        let report = ask(&source, &avoid);
        assert_eq!((report.minimal, report.placement.unwrap().cost), (true, count), "{name} by avoid");
    }
}

/// The paper fences CLH twice, after the mark and after the release. Without any fence there is an execution with two
/// threads inside; with the first one alone three engines verify it, two of them for unbounded buffers. The store that
/// marks a node must be visible before the compare-and-swap (which under PSO waits for own stores to its own location only,
/// CAS-T of the paper's Sem. 1) makes the node known. The release may be late: the only one to write to that node next is
/// the successor, and it has read the release before.
#[test]
fn clh_needs_one_fence_say_all_engines() {
    for name in ["papers/kuperstein-clh", "mutex/clh-loop", "mutex/clh-three-loop"] {
        let source = corpus(name);
        assert!(matches!(explicitly(&source.text, Pso, 1), Verdict::Violated(_)), "{name}");
        let fenced = source.text.replace("locked[mine] = 1;", "locked[mine] = 1; fence;");
        assert_ne!(fenced, *source.text);
        assert_eq!(explicitly(&fenced, Pso, 16), Verdict::Verified, "{name}");
        let program = weak::compile(&SourceFile::new("t", fenced)).unwrap().program;
        let symbolic = symbolic::verify(&program, &SymbolicOptions::new(Pso), &Budget::unlimited(), &()).unwrap();
        assert_eq!(symbolic.verdict, Verdict::Verified, "{name}");
        let options = AbstractOptions::new(Pso);
        let abstracted = abstraction::climb(&program, &options, &Budget::unlimited(), &()).unwrap();
        assert_eq!(abstracted.verdict, AbstractVerdict::Verified, "{name}");
        let late = source.text.replace("locked[mine] = 0;", "locked[mine] = 0; fence;");
        assert!(matches!(explicitly(&late, Pso, 1), Verdict::Violated(_)), "{name}: not the other one");
    }
}

/// Table 2 of the paper: what each abstraction makes of the programs (`None`: no placement helps under it). Where the paper
/// finds a placement, so do we, and ours is always a minimum; the paper's is not (three fences for Peterson under `pd` with
/// k = 0).
#[test]
fn abstractions_find_the_minimum_or_say_that_they_cannot() {
    let rows: [(&str, [Option<u64>; 5]); 3] = [
        ("sense", [Some(1), Some(1), None, Some(1), Some(1)]),
        ("pet", [Some(2), Some(2), Some(2), Some(2), Some(2)]),
        ("fast1a", [None, Some(2), None, Some(2), Some(2)]),
    ];
    let columns = [(Domain::Fd, 0), (Domain::Fd, 1), (Domain::Pd, 0), (Domain::Pd, 1), (Domain::Pd, 2)];
    for (name, row) in rows {
        let source = corpus(&format!("papers/kuperstein-{name}"));
        for ((domain, k), expected) in columns.into_iter().zip(row) {
            let engine = FenceEngine::Abstract { domain, k: Some(k) };
            let options = FenceOptions { strategy: Strategy::Avoid, engine, ..FenceOptions::new(Pso, Goal::Spec) };
            let report = ask(&source, &options);
            let found = report.placement.as_ref().map(|placement| placement.cost);
            assert_eq!(found, expected, "{name} {} {k}", domain.name());
            assert_eq!(report.minimal, expected.is_some(), "{name} {} {k}", domain.name());
            assert_eq!(matches!(report.verdict, FenceVerdict::Impossible(None)), expected.is_none());
        }
    }
}

#[test]
fn guided_search_asks_the_engine_it_is_told_to() {
    let source = corpus("mutex/peterson-loop");
    for engine in [
        FenceEngine::Explicit,
        FenceEngine::Symbolic,
        FenceEngine::Abstract { domain: Domain::Fd, k: None },
        FenceEngine::Abstract { domain: Domain::Pd, k: Some(2) },
    ] {
        let report = ask(&source, &FenceOptions { engine, ..FenceOptions::new(Pso, Goal::Spec) });
        assert_eq!((report.minimal, report.placement.unwrap().cost), (true, 2), "{}", engine.name());
    }
    // stores fill every buffer: bounded search alone proves less than the symbolic engine
    let endless = corpus("papers/linden-wolper-fig4");
    let engine = FenceEngine::Explicit;
    let report = ask(&endless, &FenceOptions { engine, ..FenceOptions::new(Tso, Goal::Spec) });
    assert!(!report.minimal, "{report:?}");
    assert_eq!(report.placement.unwrap().cost, 2, "fences go from every gap as long as that can be proved");
}

#[test]
fn reasons_name_the_store_and_what_overtook_it() {
    let report = ask(&corpus("mutex/peterson-loop"), &FenceOptions::new(Pso, Goal::Spec));
    let placement = report.placement.unwrap();
    let reasons: Vec<(String, Passed)> = placement
        .fences
        .iter()
        .map(|fence| {
            let reason = fence.reason.as_ref().unwrap();
            (format!("{} / {}", reason.store, reason.later), reason.passed)
        })
        .collect();
    assert_eq!(
        reasons,
        [
            ("`flag[me] = 1` (line 19) / `turn = other` (line 20)".to_owned(), Passed::Overtaken),
            ("`turn = other` (line 20) / `flag[other]` (line 21)".to_owned(), Passed::Read),
        ]
    );
}

#[test]
fn fine_fences_are_as_weak_as_they_can_be() {
    let options = FenceOptions { fine: true, ..FenceOptions::new(Pso, Goal::Spec) };
    let report = ask(&corpus("mutex/peterson-loop"), &options);
    let kinds: Vec<FenceKind> = report.placement.unwrap().fences.iter().map(|fence| fence.kind).collect();
    assert_eq!(kinds, [FenceKind::StoreStore, FenceKind::StoreLoad]);
}

#[test]
fn minimising_keeps_what_is_needed() {
    let options = FenceOptions { minimise: true, ..FenceOptions::new(Tso, Goal::Spec) };
    let report = ask(&corpus("mutex/dekker-loop-robust"), &options);
    assert!(matches!(report.verdict, FenceVerdict::NoneNeeded) && report.minimal);
    let placement = report.placement.unwrap();
    assert_eq!((placement.fences.len(), placement.removed.len(), placement.cost), (0, 2, 2));
    assert_eq!(placement.text.matches("fence;").count(), 2);
    let robust = FenceOptions { goal: Goal::Robust, ..options };
    let report = ask(&corpus("mutex/dekker-loop-robust"), &robust);
    let placement = report.placement.unwrap();
    assert_eq!(
        (placement.fences.len(), placement.removed.len(), placement.cost),
        (0, 1, 3),
        "not the store-store fence"
    );
}

#[test]
fn minimising_replaces_a_fence_of_the_wrong_kind() {
    let text = "shared x, y;\nthread a { x = 1; fence(store_store); let r = y; }\nthread b { y = 1; fence; let r = x; }\nfinal { assert(a.r == 1 || b.r == 1); }\n";
    let options = FenceOptions { minimise: true, ..FenceOptions::new(Tso, Goal::Spec) };
    let report = ask(&SourceFile::new("sb", text), &options);
    assert!(matches!(report.verdict, FenceVerdict::Fenced) && report.minimal);
    let placement = report.placement.unwrap();
    assert_eq!(placement.text, text.replace("fence(store_store)", "fence"));
}

#[test]
fn weights_move_a_fence_out_of_a_loop() {
    let text = "\
shared x, y;
thread a {
    x = 1;
    let i = 0;
    let r = 1;
    while i < 2 {
        r = y;
        i = i + 1;
    }
}
thread b {
    y = 1;
    fence;
    let s = x;
}
final { assert(a.r == 1 || b.s == 1); }
";
    let source = SourceFile::new("w", text);
    let options = FenceOptions { weights: true, alternatives: true, ..FenceOptions::new(Tso, Goal::Spec) };
    let report = ask(&source, &options);
    let placement = report.placement.unwrap();
    assert_eq!((placement.cost, placement.fences[0].after.position.line), (1, 3));
    assert_eq!(report.alternatives.len(), 2, "the other gaps before the loop");
    let plain = FenceOptions { weights: false, ..options };
    assert!(ask(&source, &plain).alternatives.len() > 2, "those in the loop cost no more");
}

/// The start of a block and the place after it belong to the same statement; where the text goes tells them apart.
#[test]
fn alternatives_are_told_apart_by_where_they_go() {
    let text = "shared x, y;\nthread a { x = 1; if x == 1 { x = 2; } else { skip; } let r = y; }\n\
                thread b { y = 1; fence; let r = x; }\nfinal { assert(a.r == 1 || b.r != 0); }\n";
    let options = FenceOptions { alternatives: true, ..FenceOptions::new(Tso, Goal::Spec) };
    let report = ask(&SourceFile::new("t", text), &options);
    let all: Vec<_> = report.alternatives.iter().chain(report.placement.iter()).collect();
    let mut places: Vec<_> = all.iter().map(|placement| placement.fences[0].after.insertion.column).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!((places.len(), report.minimal), (all.len(), true));
    for placement in all {
        let place = &placement.fences[0].after;
        let line = placement.text.lines().nth(place.insertion.line as usize - 1).unwrap();
        assert!(line[place.insertion.column as usize - 1..].trim_start().starts_with("fence;"), "{line}");
    }
}

/// A version that grows for ever: no search of single states ends, also under SC, but its sign is all that matters.
#[test]
fn counters_without_end_are_fenced_with_abstract_values() {
    let source = corpus("abstract/published-versions-unfenced");
    let values = vec![None, Some(ValueDomain::Sign)];
    for (strategy, domain) in
        [Strategy::Guided, Strategy::Avoid].into_iter().flat_map(|s| [Domain::Fd, Domain::Pd].map(|d| (s, d)))
    {
        let engine = FenceEngine::Abstract { domain, k: Some(1) };
        let options = FenceOptions { strategy, engine, values: values.clone(), ..FenceOptions::new(Pso, Goal::Spec) };
        let report = ask(&source, &options);
        assert!(matches!(report.verdict, FenceVerdict::Fenced) && report.minimal, "{report:?}");
        let placement = report.placement.unwrap();
        assert_eq!((placement.cost, placement.fences[0].after.position.line), (1, 9));
        let fenced = SourceFile::new("fenced", placement.text.as_str());
        assert_eq!(confirm(&fenced, &options, &Budget::unlimited(), &()).unwrap(), Confirmation::Correct);
    }
    let broken = source.text.replace("d == 1", "d == 2");
    let engine = FenceEngine::Abstract { domain: Domain::Fd, k: None };
    let options = FenceOptions { engine, values, ..FenceOptions::new(Pso, Goal::Spec) };
    let report = ask(&SourceFile::new("broken", broken), &options);
    assert!(matches!(report.verdict, FenceVerdict::Impossible(Some(_))), "{report:?}");
}

#[test]
fn an_sc_violation_is_impossible_to_fence_and_is_shown() {
    let source = corpus("litmus-weak/lost-update");
    let report = ask(&source, &FenceOptions::new(Tso, Goal::Spec));
    assert!(matches!(report.verdict, FenceVerdict::Impossible(Some(_))), "{report:?}");
    assert!(report.placement.is_none() && !report.minimal);
}

#[test]
fn a_cancelled_search_has_no_answer() {
    let budget = Budget::unlimited();
    budget.cancelled.store(true, Ordering::Relaxed);
    let report = infer(&corpus("mutex/dekker-loop"), &FenceOptions::new(Tso, Goal::Robust), &budget, &()).unwrap();
    assert!(matches!(report.verdict, FenceVerdict::Inconclusive(Doubt::Limit(Limit::Cancelled))), "{report:?}");
}

#[test]
fn store_store_fences_in_endless_loops_are_decided_under_pso() {
    // Stores and the fences between them fill every buffer.
    let text = "shared x, y;\nthread a { loop { x = 1; fence(store_store); x = 0; let s = y; } }\n\
                thread b { y = 1; let r = x; }\n";
    let report = ask(&SourceFile::new("endless.weak", text), &FenceOptions::new(Pso, Goal::Spec));
    assert!(matches!(report.verdict, FenceVerdict::NoneNeeded) && report.minimal, "{report:?}");
}

#[test]
fn buffers_that_grow_for_ever_need_no_fence_to_be_decided() {
    let report = ask(&corpus("papers/linden-wolper-fig4"), &FenceOptions::new(Tso, Goal::Spec));
    assert!(matches!(report.verdict, FenceVerdict::NoneNeeded) && report.minimal, "{report:?}");
}
