//! What the look at the text rules out never happens: against brute force over all relaxed executions.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use weakspot_explore::reorder::may_reorder;
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_model::trace::Trace;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};

fn program(text: &str) -> Program {
    compile(&SourceFile::new("test.weak", text)).unwrap().program
}

fn verdicts(text: &str) -> (bool, bool) {
    let program = program(text);
    (may_reorder(&program, MemoryModel::Tso), may_reorder(&program, MemoryModel::Pso))
}

#[test]
fn store_buffering_may_be_reordered_under_both_models() {
    assert_eq!(verdicts("shared x, y; thread a { x = 1; let r = y; } thread b { y = 1; let r = x; }"), (true, true));
}

#[test]
fn message_passing_may_be_reordered_under_pso_only() {
    let text = "shared x, y; thread a { x = 1; y = 1; } thread b { let r = y; let s = x; }";
    assert_eq!(verdicts(text), (false, true));
}

#[test]
fn a_store_fence_keeps_stores_in_order_but_no_load_and_no_atomic() {
    let after_fence = |then: &str, reader: &str| {
        verdicts(&format!("shared x, y; thread a {{ x = 1; fence(store_store); {then} }} thread b {{ {reader} }}"))
    };
    let reader = "let r = y; let s = x;";
    assert_eq!(after_fence("y = 1;", reader), (false, false));
    assert_eq!(after_fence("swap(y, 1);", reader), (false, true));
    assert_eq!(after_fence("let r = y;", "swap(y, 1); let s = x;"), (true, true));
}

#[test]
fn an_atomic_waits_for_its_own_cell_under_pso_and_for_everything_under_tso() {
    let text = "shared x, y; thread a { x = 1; swap(y, 1); let r = y; } thread b { y = 1; swap(x, 1); let r = x; }";
    assert_eq!(verdicts(text), (false, true));
}

#[test]
fn stores_that_nobody_else_looks_at_do_not_count() {
    let text = "shared x, y, z; thread a { x = 1; let r = z; } thread b { y = 1; z = 1; }";
    assert_eq!(verdicts(text), (false, false));
}

#[test]
fn a_loop_carries_a_store_to_its_next_round() {
    let text = "shared x, y;
        thread a { let i = 0; while i < 2 { let r = y; x = 1; i = i + 1; } }
        thread b { let i = 0; while i < 2 { let r = x; y = 1; fence; i = i + 1; } }";
    assert_eq!(verdicts(text), (true, true));
    assert_eq!(verdicts(&text.replace("x = 1;", "x = 1; fence;")), (false, false));
}

#[test]
fn an_index_that_is_not_a_constant_may_be_any() {
    let text = "shared a[2]; thread p[2] { let r = choose(0..=1); a[r] = 1; let s = a[0]; }";
    assert_eq!(verdicts(text), (true, true));
}

fn traces(program: &Program, model: MemoryModel) -> Option<BTreeSet<Trace>> {
    let bounds = Bounds { visits: 60_000, ..Bounds::default() };
    Some(oracle::traces(&Machine::new(program, model), bounds)?.into_keys().collect())
}

#[test]
fn what_may_not_be_reordered_is_safe() {
    let shape = Shape { threads: 2..=2, statements: 2..=4, cells: 2..=2, branches: true, ..Shape::straight_line() };
    let (mut ruled_out, mut kept) = (0, 0);
    for seed in 0..1_000 {
        let sketch = shape.generate(seed);
        let program = sketch.program();
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            if may_reorder(&program, model) {
                kept += 1;
                continue;
            }
            let (Some(sc), Some(relaxed)) = (traces(&program, MemoryModel::Sc), traces(&program, model)) else {
                continue;
            };
            assert_eq!(sc, relaxed, "{model:?}\n{}", sketch.text());
            ruled_out += 1;
        }
    }
    assert!(ruled_out > 700 && kept > 300, "{ruled_out} {kept}");
}
