//! Programs without an end of SC states: what is near is found, and the rest is given up in time.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weakspot_check::{Bound, CheckOptions, CheckReport, Engine, Verdict, check};
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Progress};

fn program(text: &str) -> Program {
    compile(&SourceFile::new("test.weak", text)).unwrap().program
}

fn answer(text: &str, model: MemoryModel) -> CheckReport {
    check(&program(text), &CheckOptions::new(model), &Budget::unlimited(), &()).unwrap()
}

/// Far fewer states than the most that may be stored.
const FEW: u64 = 2_000_000;

#[test]
fn a_violation_beside_a_counter_is_found() {
    let text = "shared x, y, c; thread counter { loop { c = c + 1; } } \
                thread a { x = 1; let r = y; } thread b { y = 1; let r = x; }";
    let report = answer(text, MemoryModel::Tso);
    assert!(matches!(report.verdict, Verdict::Unsafe(_)), "{:?}", report.verdict);
    assert_eq!(report.violations.len(), 1);
    assert!(!report.exhaustive, "not all SC executions were looked at");
    assert!(report.states < FEW, "{} states", report.states);
}

#[test]
fn an_error_beside_a_counter_comes_first() {
    let text = "shared x, y, c; thread counter { loop { c = c + 1; } } \
                thread a { x = 1; let r = y; assert(r == 0); } thread b { y = 1; let r = x; }";
    assert!(matches!(answer(text, MemoryModel::Tso).verdict, Verdict::Error(_)));
}

#[test]
fn counting_for_ever_is_given_up_wherever_the_number_is_kept() {
    for counter in ["x = x + 1;", "k = k - 1; x = k % 2;", "fetch_add(x, 1);"] {
        let text =
            format!("shared x, y; thread a {{ let k = 0; loop {{ {counter} }} }} thread b {{ y = 1; let r = x; }}");
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let report = answer(&text, model);
            assert!(
                matches!(report.verdict, Verdict::Bounded(Bound::States(states)) if states < FEW),
                "{counter} under {model:?}: {:?}",
                report.verdict
            );
        }
    }
}

#[test]
fn counting_far_is_not_counting_for_ever() {
    let text = "shared x; thread a { let k = 0; while k < 120000 { k = k + 1; x = k; } } \
                thread b { let r = x; r = x; r = x; r = x; }";
    let report = answer(text, MemoryModel::Tso);
    assert!(matches!(report.verdict, Verdict::Safe), "{:?}", report.verdict);
    assert!(report.states > 1 << 18, "{} states, too few to be about to be given up", report.states);
}

/// Interrupts once so many states are stored.
struct Interrupt {
    cancelled: Arc<AtomicBool>,
    at: u64,
}

impl Progress for Interrupt {
    fn update(&self, states: u64, _: u64, _: u64) {
        self.cancelled.fetch_or(states > self.at, Ordering::Relaxed);
    }
}

#[test]
fn who_asks_for_the_engine_waits_and_loses_nothing_by_interrupting() {
    let text = "shared x, y; thread a { let k = 0; loop { k = k + 1; x = k; let r = y; } } \
                thread b { let k = 0; loop { k = k + 1; y = k; let r = x; } }";
    let interrupt = Interrupt { cancelled: Arc::default(), at: 200_000 };
    let budget = Budget { cancelled: Arc::clone(&interrupt.cancelled), ..Budget::unlimited() };
    let options = CheckOptions { engine: Some(Engine::Attack), ..CheckOptions::new(MemoryModel::Tso) };
    let report = check(&program(text), &options, &budget, &interrupt).unwrap();
    assert!(matches!(report.verdict, Verdict::Unsafe(_)), "{:?}", report.verdict);
    assert!(interrupt.cancelled.load(Ordering::Relaxed), "it would have gone on");
}

/// What the exploration has found is not lost in the states that another engine would have to store.
#[test]
fn a_violation_of_many_threads_is_found() {
    let width = 40;
    let threads = (0..width).map(|me| format!("thread t{me} {{ x[{me}] = 1; let r = x[{}]; }}", (me + 1) % width));
    let text = format!("shared x[{width}]; {}", threads.collect::<Vec<_>>().join("\n"));
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = answer(&text, model);
        assert!(matches!(report.verdict, Verdict::Unsafe(_)), "{model:?}: {:?}", report.verdict);
        assert_eq!((report.engine, report.violations.len()), (Engine::Stateless, 1), "{model:?}");
    }
}

/// Statements without a loop can be too many for one engine.
#[test]
fn a_long_program_is_decided() {
    let text = format!("shared x, y; thread a {{ {} }} thread b {{ y = 1; let r = x; }}", "x = 1; ".repeat(70_000));
    let report = answer(&text, MemoryModel::Tso);
    assert!(matches!(report.verdict, Verdict::Safe), "{:?}", report.verdict);
    assert_eq!(report.engine, Engine::Attack);
}
