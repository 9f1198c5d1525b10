//! Nothing is safe that never ran.
#![allow(clippy::unwrap_used)]

use weakspot_check::{Bound, CheckOptions, Engine, Verdict, check};
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;

fn verdict(text: &str, engine: Option<Engine>, model: MemoryModel) -> Verdict {
    let program = compile(&SourceFile::new("test.weak", text)).unwrap().program;
    let options = CheckOptions { engine, ..CheckOptions::new(model) };
    check(&program, &options, &Budget::unlimited(), &()).unwrap().verdict
}

const ENGINES: [Option<Engine>; 3] = [None, Some(Engine::Stateless), Some(Engine::Attack)];
const MODELS: [MemoryModel; 3] = [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso];

fn assert_everywhere(text: &str, expected: impl Fn(&Verdict) -> bool) {
    for engine in ENGINES {
        for model in MODELS {
            let found = verdict(text, engine, model);
            assert!(expected(&found), "{engine:?} under {model:?}: {found:?} of {text}");
        }
    }
}

#[test]
fn a_program_whose_executions_are_all_pruned_is_not_safe() {
    let nothing_ends = |found: &Verdict| matches!(found, Verdict::Bounded(Bound::NothingEnds));
    assert_everywhere("shared x; thread a { let r = x; assume(r == 1); x = 1; }", nothing_ends);
    assert_everywhere("shared x, y; thread a { x = 1; let r = y; assume(false); } thread b { y = 1; }", nothing_ends);
    assert_everywhere("thread a { assume(false); }", nothing_ends);
    let bounded_loop = "shared x; thread a { let i = 0; while i < 3 { let r = x; i = i + 1; } assume(i < 3); }";
    assert_everywhere(bounded_loop, nothing_ends);
}

#[test]
fn one_execution_that_is_not_pruned_is_enough() {
    let safe = |found: &Verdict| matches!(found, Verdict::Safe);
    assert_everywhere("shared x; thread a { x = 1; } thread b { let r = x; assume(r == 1); }", safe);
    assert_everywhere("shared x; thread a { let v = choose(0..=3); assume(v == 2); x = v; }", safe);
}

#[test]
fn an_execution_without_end_is_one() {
    let text = "shared x; thread a { loop { let v = choose(0..=1); assume(v == 1); x = v; } }";
    assert!(matches!(verdict(text, None, MemoryModel::Tso), Verdict::Safe));
    let text = "shared x; thread a { loop { let v = choose(0..=1); assume(v == 1); fence; x = v; assume(v == 0); } }";
    assert!(matches!(verdict(text, None, MemoryModel::Tso), Verdict::Bounded(Bound::NothingEnds)));
}

#[test]
fn waiting_for_what_never_comes_is_no_execution() {
    let nothing_ends = |found: &Verdict| matches!(found, Verdict::Bounded(Bound::NothingEnds));
    assert_everywhere("shared x; thread a { x = 1; } thread b { await(x == 2); }", nothing_ends);
    assert_everywhere("shared l = 1; thread a { while swap(l, 1) == 1 { } l = 0; }", nothing_ends);
    assert_everywhere("shared x; thread a { let r = x; while r == 0 { } x = 1; }", nothing_ends);
    let two = "shared x, y; thread a { await(x == 1); y = 1; } thread b { await(y == 1); x = 1; }";
    assert_everywhere(two, nothing_ends);
    let after_work = "shared x; thread a { loop { await(x < 2); x = x + 1; } }";
    for engine in [None, Some(Engine::Attack)] {
        let found = verdict(after_work, engine, MemoryModel::Tso);
        assert!(nothing_ends(&found), "{found:?}");
    }
}

#[test]
fn waiting_in_some_executions_is_no_harm() {
    let safe = |found: &Verdict| matches!(found, Verdict::Safe);
    assert_everywhere("shared x; thread a { x = 1; x = 2; } thread b { await(x == 1); }", safe);
    assert_everywhere("shared x; thread a { x = 1; } thread b { await(x == 1); }", safe);
}

#[test]
fn loops_that_are_meant_to_have_no_end_are_executions() {
    let texts = [
        "shared x; thread a { loop { let r = x; } } thread b { x = 1; }",
        "shared x, y; thread a { loop { let r = x; let s = y; } }",
        "shared x; thread a { loop { x = 0; } } thread b { await(x == 1); }",
        "shared x; thread a { while true { await(x == 0); x = 1; } } thread b { while true { await(x == 1); x = 0; } }",
        "thread a { loop { } }",
        // two threads go round; the way that changes memory leads across what was seen
        "shared x; thread a { loop { await(x == 0); x = 1; } } thread b { loop { await(x == 1); x = 0; } }
         thread c { await(x == 2); }",
    ];
    for text in texts {
        for model in MODELS {
            let found = verdict(text, None, model);
            assert!(matches!(found, Verdict::Safe), "{model:?}: {found:?} of {text}");
        }
    }
}

/// The attack engine has the word only where no relaxed execution is known in which the assumptions come true.
#[test]
fn a_violation_in_which_assumptions_come_true_needs_no_other_engine() {
    let answer = |assumed: u32, all: bool| {
        let text = format!(
            "shared x, y; thread a {{ x = 1; let r = y; assume(r == {assumed}); }} thread b {{ y = 1; let s = x; }}"
        );
        let program = compile(&SourceFile::new("test.weak", text)).unwrap().program;
        let options = CheckOptions { engine: Some(Engine::Stateless), all, ..CheckOptions::new(MemoryModel::Tso) };
        let report = check(&program, &options, &Budget::unlimited(), &()).unwrap();
        (report.engine, matches!(report.verdict, Verdict::Unsafe(_)), report.violations.len())
    };
    assert_eq!(answer(0, false), (Engine::Stateless, true, 1));
    let (engine, is_unsafe, pairs) = answer(0, true);
    assert!(is_unsafe && pairs > 0, "{engine:?}");
    assert_eq!(answer(1, false), (Engine::Attack, false, 0));
}

/// A monitor names the youngest store that can be late; the older one can be, too.
#[test]
fn all_pairs_of_a_program_that_assumes_something_are_found_by_every_engine() {
    let text = "shared x, y; thread a { assume(y != 0); let r = x; } thread b { x = 1; x = 2; y = 1; }";
    let program = compile(&SourceFile::new("all.weak", text)).unwrap().program;
    let pairs = |options: CheckOptions| {
        let report = check(&program, &options, &Budget::unlimited(), &()).unwrap();
        let mut pairs: Vec<_> = report.violations.iter().map(|found| (found.store.pc, found.access.pc)).collect();
        pairs.sort_unstable();
        pairs
    };
    let all = CheckOptions { all: true, ..CheckOptions::new(MemoryModel::Pso) };
    let exact = pairs(CheckOptions { engine: Some(Engine::Attack), ..all.clone() });
    assert_eq!(exact.len(), 2, "{exact:?}");
    assert_eq!(pairs(CheckOptions { engine: Some(Engine::Stateless), ..all.clone() }), exact);
    assert_eq!(pairs(CheckOptions { max_preemptions: Some(2), ..all }), exact);
}
