//! Several engines for one question give the answer of one with buffers that are large enough.

#![allow(clippy::unwrap_used)]

use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit, Verdict};
use weakspot_testkit::generate::Shape;
use weakspot_verify::explicit::ExplicitOptions;
use weakspot_verify::portfolio;

/// More stores than a thread of the random programs has.
const ENOUGH: usize = 64;

const ABSTRACT_STATES: u64 = 20_000;

fn program(text: &str) -> Program {
    compile(&SourceFile::new("test.weak", text)).unwrap().program
}

fn climb(program: &Program, model: MemoryModel, bounds: &[usize]) -> Verdict {
    portfolio::climb(program, &ExplicitOptions::new(model), bounds, &Budget::unlimited(), &()).unwrap().verdict
}

fn decide(program: &Program, model: MemoryModel, bounds: &[usize]) -> Verdict {
    let options = ExplicitOptions::new(model);
    portfolio::decide(program, &options, bounds, ABSTRACT_STATES, &Budget::unlimited(), &()).unwrap().verdict
}

/// Stores fill every buffer, so no bound proves anything.
const FULL: &str = "
    shared x, y;
    thread a { loop { x = 1; y = 1; x = 2; } }
    thread b { loop { let r = y; let s = x; assert(r + s <= 3); } }
";

#[test]
fn a_proof_needs_no_buffer_that_is_large_enough() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let full = program(FULL);
        assert_eq!(climb(&full, model, &[1, 2, 4]), Verdict::Inconclusive(Limit::Buffer(4)), "{model:?}");
        assert_eq!(decide(&full, model, &[1, 2, 4]), Verdict::Verified, "{model:?}");
    }
}

#[test]
fn what_takes_a_large_buffer_is_found_after_the_alarm() {
    // The load passes the first store only if the buffer holds all three.
    let text = "
        shared w, x, y, z;
        thread a { w = 1; x = 1; y = 1; let r = z; }
        thread b { z = 1; fence; let p = w; }
        final { assert(a.r == 1 || b.p == 1); }
    ";
    let late = program(text);
    let tso = MemoryModel::Tso;
    assert_eq!(climb(&late, tso, &[1, 2]), Verdict::Inconclusive(Limit::Buffer(2)));
    assert_eq!(decide(&late, tso, &[1, 2]), Verdict::Inconclusive(Limit::Buffer(2)));
    let Verdict::Violated(witness) = decide(&late, tso, &[1, 2, 4]) else { panic!("it is violated") };
    witness.replay(&Machine::new(&late, tso)).unwrap();
}

#[test]
fn random_programs_get_the_answer_of_large_buffers() {
    let (mut verified, mut violated, mut proved) = (0, 0, 0);
    for seed in 0..1_500 {
        let sketch = Shape::terminating().generate(seed);
        let program = sketch.program();
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let expected = climb(&program, model, &[ENOUGH]);
            match (decide(&program, model, &[1, 2]), &expected) {
                (Verdict::Verified, Verdict::Verified) => {
                    verified += 1;
                    proved += u32::from(climb(&program, model, &[1, 2]) != Verdict::Verified);
                }
                (Verdict::Violated(_), Verdict::Violated(_)) => violated += 1,
                (Verdict::Inconclusive(Limit::Buffer(2)), Verdict::Verified | Verdict::Violated(_)) => {}
                (decided, expected) => panic!("{model:?}: {decided:?}, but {expected:?}\n{}", sketch.text()),
            }
        }
    }
    assert!(verified > 500 && violated > 100 && proved > 20, "{verified} {violated} {proved}");
}
