//! Generated litmus tests: the axiomatic engine against brute force, and what is known of critical cycles.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use weakspot_front::litmus::{all_observables, parse};
use weakspot_model::axioms::Axioms;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::litmus::{LitmusTest, Observable};
use weakspot_model::machine::Machine;
use weakspot_model::source::SourceFile;
use weakspot_testkit::cycles::Cycle;
use weakspot_testkit::oracle::{self, Bounds, FinalState};
use weakspot_verify::litmus::{LitmusOutcome, Scratch, run};

fn read(cycle: &Cycle) -> LitmusTest {
    let text = cycle.litmus();
    parse(&SourceFile::new("cycle.litmus", text.as_str())).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

fn observed(test: &LitmusTest, state: &FinalState) -> Vec<i64> {
    let value = |observable: &Observable| match *observable {
        Observable::Register(thread, reg) => state.registers[thread.index()][reg.index()],
        Observable::Memory(loc) => state.memory[loc.index()],
    };
    test.observed.iter().map(value).collect()
}

fn states(outcome: &LitmusOutcome) -> BTreeSet<Vec<i64>> {
    outcome.states.iter().map(|(state, _)| state.clone()).collect()
}

#[test]
fn engine_and_machine_reach_the_same_states() {
    let mut scratch = Scratch::default();
    for seed in 0..250 {
        let cycle = Cycle::random(seed, 2..=4);
        let mut test = read(&cycle);
        test.observed = all_observables(&test);
        for model in MemoryModel::ALL {
            let outcome = run(&test, model, &mut scratch).unwrap();
            let Some(reach) = oracle::reach(&Machine::new(&test.program, model), Bounds::default()) else { continue };
            let expected: BTreeSet<_> = reach.finals.iter().map(|state| observed(&test, state)).collect();
            assert_eq!(states(&outcome), expected, "{}\n{}", model.name(), cycle.litmus());
        }
    }
}

#[test]
fn engine_and_machine_have_the_same_executions() {
    let mut scratch = Scratch::default();
    for seed in 1_000..1_300 {
        let cycle = Cycle::random(seed, 2..=2);
        let test = read(&cycle);
        for model in MemoryModel::ALL {
            let outcome = run(&test, model, &mut scratch).unwrap();
            let bounds = Bounds { visits: 30_000, ..Bounds::default() };
            let Some(traces) = oracle::traces(&Machine::new(&test.program, model), bounds) else { continue };
            assert_eq!(outcome.executions, traces.len() as u64, "{}\n{}", model.name(), cycle.litmus());
            let robust = traces.keys().all(|trace| Axioms::Sc.allow(trace));
            assert_eq!(outcome.robust, robust, "{}\n{}", model.name(), cycle.litmus());
        }
    }
}

/// A cycle is against sequential consistency, and a model that shows it is not robust for the test.
#[test]
fn no_sequentially_consistent_execution_has_a_critical_cycle() {
    let mut scratch = Scratch::default();
    let (mut checked, mut shown) = (0, [0, 0]);
    for cycle in (2_000..5_000).map(|seed| Cycle::random(seed, 2..=4)).filter(Cycle::is_pinned) {
        let test = read(&cycle);
        assert!(!run(&test, MemoryModel::Sc, &mut scratch).unwrap().condition_holds, "{}", cycle.litmus());
        for (count, model) in shown.iter_mut().zip([MemoryModel::Tso, MemoryModel::Pso]) {
            let outcome = run(&test, model, &mut scratch).unwrap();
            assert!(!outcome.condition_holds || !outcome.robust, "{}\n{}", model.name(), cycle.litmus());
            *count += usize::from(outcome.condition_holds);
        }
        checked += 1;
    }
    assert!(checked > 1_000, "only {checked} cycles");
    assert!(0 < shown[0] && shown[0] < shown[1], "{shown:?} cycles shown by TSO and PSO");
}
