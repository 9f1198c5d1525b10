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
