//! Random programs with loops, as live code and on the reference machine: where everything was explored, the same final
//! states; what is reported is there; and store buffers do the same harm.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "programs/loops.rs"]
mod loops;
mod programs;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc as Shared;

use loops::{Loops, sketch};
use programs::run;
use weakspot::{Builder, FailOn, FailureKind, MemoryModel, Report, Verdict};
use weakspot_model::ir::Program;
use weakspot_model::machine::{Machine, Outcome, State};
use weakspot_model::task::Budget;
use weakspot_testkit::oracle::FinalState;
use weakspot_verify::robust::{self, RobustOptions, RobustVerdict};

/// What the reference machine can do.
struct Expected {
    finals: BTreeSet<FinalState>,
    /// A state can be reached from which the end cannot.
    can_be_caught: bool,
}

fn expected(program: &Program, model: MemoryModel) -> Option<Expected> {
    let machine = Machine::new(program, model);
    let mut numbers: HashMap<State, usize> = HashMap::new();
    let mut before: Vec<Vec<usize>> = Vec::new();
    let mut waiting = vec![machine.start().0];
    numbers.insert(waiting[0].clone(), 0);
    before.push(Vec::new());
    let (mut finals, mut ends) = (BTreeSet::new(), Vec::new());
    while let Some(state) = waiting.pop() {
        let from = numbers[&state];
        let actions = machine.enabled(&state);
        if actions.is_empty() {
            finals.insert(FinalState::of(&state));
            ends.push(from);
        }
        for action in actions {
            let mut next = state.clone();
            if machine.apply(&mut next, action).1 != Outcome::Continues {
                return None;
            }
            let fresh = numbers.len();
            let to = *numbers.entry(next.clone()).or_insert(fresh);
            if to == fresh {
                before.push(Vec::new());
                waiting.push(next);
            }
            before[to].push(from);
        }
        if numbers.len() > 50_000 {
            return None;
        }
    }
    let mut leads_to_an_end: HashSet<usize> = ends.iter().copied().collect();
    while let Some(state) = ends.pop() {
        ends.extend(before[state].iter().copied().filter(|&earlier| leads_to_an_end.insert(earlier)));
    }
    Some(Expected { finals, can_be_caught: leads_to_an_end.len() < numbers.len() })
}

/// Executions after which a program is given up.
const MOST: u64 = 3_000;

/// Explores a program; the execution fails that ends in `wanted`. (What a closure would write down is no evidence: runs
/// that are given up come to an end, too.)
fn explore(model: MemoryModel, program: &Shared<Program>, wanted: Option<&FinalState>) -> Report {
    let (body, wanted) = (program.clone(), wanted.cloned());
    Builder { model, max_events: 300, max_executions: Some(MOST), ..Builder::default() }.check(move || {
        let (memory, registers) = run(&body);
        assert!(wanted != Some(FinalState { memory, registers }), "this is the one");
    })
}

/// A state that the machine does not end in.
fn never(expected: &Expected) -> FinalState {
    let mut wrong = expected.finals.first().unwrap().clone();
    wrong.memory[0] = 17;
    wrong
}

#[derive(Debug, Default)]
struct Ends {
    exhaustive: u32,
    cut: u32,
    caught: u32,
    endless: u32,
    found: u32,
}

fn compare_ends(loops: Loops, seeds: std::ops::Range<u64>) -> Ends {
    let (mut exhaustive, mut cut, mut caught, mut endless, mut found) = (0, 0, 0, 0, 0);
    for seed in seeds {
        let sketch = sketch(seed, 2..=3, loops);
        let program = Shared::new(sketch.program());
        let Some(expected) = expected(&program, MemoryModel::Sc) else { continue };
        let report = explore(MemoryModel::Sc, &program, None);
        let text = || format!("seed {seed}: {report}\n{}", sketch.text());
        match report.failure.as_ref().map(|failure| &failure.kind) {
            Some(FailureKind::Livelock) => {
                assert!(expected.can_be_caught, "no livelock: {}", text());
                caught += 1;
            }
            Some(FailureKind::TooLong) => endless += 1,
            Some(_) => panic!("{}", text()),
            None if report.exhaustive => {
                assert_eq!(report.verdict, Verdict::Safe, "{}", text());
                assert!(!expected.can_be_caught, "a livelock is missed: {}", text());
                exhaustive += 1;
                for end in expected.finals.iter().take(8) {
                    let report = explore(MemoryModel::Sc, &program, Some(end));
                    assert_eq!(report.verdict, Verdict::Failed, "{end:?} is missed: {}", text());
                    found += 1;
                }
                assert_eq!(
                    explore(MemoryModel::Sc, &program, Some(&never(&expected))).verdict,
                    Verdict::Safe,
                    "{}",
                    text()
                );
            }
            None => cut += 1,
        }
    }
    Ends { exhaustive, cut, caught, endless, found }
}

#[test]
fn live_loops_end_as_those_of_the_reference_machine_do() {
    let ends = compare_ends(Loops::All, 0..1_500);
    assert!(
        ends.exhaustive > 500 && ends.caught > 150 && ends.endless < 50 && ends.cut < 900 && ends.found > 2_000,
        "{ends:?}"
    );
}

#[test]
fn live_loops_that_lock_end_as_those_of_the_reference_machine_do() {
    let ends = compare_ends(Loops::Locking, 0..600);
    assert!(
        ends.exhaustive > 180 && ends.caught > 300 && ends.endless == 0 && ends.cut < 50 && ends.found > 400,
        "{ends:?}"
    );
}

/// Compares the harm that store buffers do: an execution fails that ends in a state which only the relaxed machine ends
/// in, or in one which it does not end in.
fn compare_harm(loops: Loops, seeds: std::ops::Range<u64>) -> Counts {
    let mut counts = Counts::default();
    for seed in seeds {
        let model = if seed % 2 == 0 { MemoryModel::Tso } else { MemoryModel::Pso };
        let sketch = sketch(seed, 2..=2, loops);
        let program = Shared::new(sketch.program());
        let Some((strict, relaxed)) = expected(&program, MemoryModel::Sc).zip(expected(&program, model)) else {
            continue;
        };
        if strict.can_be_caught {
            continue;
        }
        let only_relaxed: Vec<&FinalState> = relaxed.finals.difference(&strict.finals).collect();
        let wanted = only_relaxed.first().map_or_else(|| never(&relaxed), |&end| end.clone());
        let report = explore(model, &program, Some(&wanted));
        let is_harmful = !only_relaxed.is_empty() || relaxed.can_be_caught;
        let text = || format!("seed {seed} on {model:?}, {wanted:?}: {report}\n{}", sketch.text());
        match report.verdict {
            Verdict::Harmful => {
                assert!(is_harmful, "{}", text());
                counts.harmful += 1;
                counts.harmful_on_pso += u32::from(model == MemoryModel::Pso);
            }
            Verdict::Benign | Verdict::Safe => {
                assert!(!is_harmful, "{}", text());
                counts.harmless += 1;
            }
            Verdict::Unknown => counts.unknown += 1,
            Verdict::Bounded(_) => {}
            Verdict::Failed => panic!("{}", text()),
        }
    }
    counts
}

#[derive(Debug, Default)]
struct Counts {
    harmful: u32,
    harmful_on_pso: u32,
    harmless: u32,
    unknown: u32,
}

#[test]
fn store_buffers_do_the_harm_that_they_do_to_the_reference_machine() {
    let counts = compare_harm(Loops::None, 0..1_000);
    assert!(counts.harmful > 150 && counts.harmful_on_pso > 80 && counts.harmless > 600, "{counts:?}");
    assert!(counts.unknown < 10, "{counts:?}");
}

#[test]
fn store_buffers_do_the_harm_that_they_do_to_the_reference_machine_in_loops() {
    let counts = compare_harm(Loops::Looking, 0..1_200);
    assert!(counts.harmful > 40 && counts.harmful_on_pso > 20 && counts.harmless > 600, "{counts:?}");
    assert!(counts.unknown < 20, "{counts:?}");
}

fn is_robust(program: &Program, model: MemoryModel) -> bool {
    let options = RobustOptions::new(model);
    robust::check(program, options, &Budget::unlimited(), &()).unwrap().verdict == RobustVerdict::Robust
}

/// Compares whether there are store-buffer violations: robust programs, and those that are not.
fn compare_violations(loops: Loops, seeds: std::ops::Range<u64>) -> (u32, u32) {
    let (mut robust, mut not) = (0, 0);
    for seed in seeds {
        let model = if seed % 2 == 0 { MemoryModel::Tso } else { MemoryModel::Pso };
        let sketch = sketch(seed, 2..=3, loops);
        let program = Shared::new(sketch.program());
        let body = program.clone();
        let builder = Builder {
            model,
            max_events: 300,
            max_executions: Some(MOST),
            fail_on: FailOn::Nothing,
            ..Builder::default()
        };
        let report = builder.check(move || _ = run(&body));
        if report.failure.is_some() || !report.exhaustive && report.violations.is_empty() {
            continue;
        }
        let expected = is_robust(&program, model);
        assert_eq!(report.violations.is_empty(), expected, "seed {seed} on {model:?}: {report}\n{}", sketch.text());
        *if expected { &mut robust } else { &mut not } += 1;
    }
    (robust, not)
}

#[test]
fn live_loops_are_safe_where_the_attack_reduction_says_so() {
    for loops in [Loops::Locking, Loops::All, Loops::Looking] {
        let (robust, not) = compare_violations(loops, 0..400);
        assert!(robust > 100 && not > 20, "{loops:?}: {robust} robust, {not} not");
    }
}
