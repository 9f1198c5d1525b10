//! Numbers that other tools and papers report, and options that are not in the `//! expect` lines.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weakspot_fence::{Confirmation, Doubt, FenceOptions, FenceReport, FenceVerdict, Goal, Passed, confirm, infer};
use weakspot_model::buffer::MemoryModel::{self, Pso, Tso};
use weakspot_model::ir::FenceKind;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit};

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
    }
}

/// The numbers of the PLDI 2011 paper, in the template of one process. For CLH it reports 2; one is enough: the store
/// that marks the node must be visible before the exchange, and nothing else is read late.
#[test]
fn templates_under_pso_need_what_the_paper_reports_or_less() {
    for (name, count) in [
        ("sync/sense-barrier-loop", 1),
        ("mutex/peterson-loop", 2),
        ("mutex/dekker-loop", 2),
        ("mutex/bakery-loop", 2),
        ("mutex/fast-mutex-loop", 3),
        ("mutex/clh-loop", 1),
    ] {
        assert_eq!(minimum(&corpus(name), Pso, Goal::Spec), count, "{name}");
    }
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
fn what_nobody_can_decide_is_not_called_minimal() {
    // Stores fill every buffer, and the symbolic engine does not represent this fence under PSO.
    let text = "shared x, y;\nthread a { loop { x = 1; fence(store_store); x = 0; let s = y; } }\n\
                thread b { y = 1; let r = x; }\n";
    let report = ask(&SourceFile::new("endless.weak", text), &FenceOptions::new(Pso, Goal::Spec));
    assert!(matches!(report.verdict, FenceVerdict::Fenced) && !report.minimal, "{report:?}");
    assert!(report.at_least < report.placement.unwrap().cost);
}

#[test]
fn buffers_that_grow_for_ever_need_no_fence_to_be_decided() {
    let report = ask(&corpus("papers/linden-wolper-fig4"), &FenceOptions::new(Tso, Goal::Spec));
    assert!(matches!(report.verdict, FenceVerdict::NoneNeeded) && report.minimal, "{report:?}");
}
