//! What is suggested against data races, beside all sets of changes that there are: the machine that tries everything says which
//! of them help.

use std::sync::Arc as StdArc;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use weakspot::sync::Arc;
use weakspot::{Builder, FailureKind, MemoryModel};

use super::program::{LOCATIONS, Operation, Program, Random, Step};
use super::{Shared, machine, run_live};

/// An atomic or a fence.
fn operation(random: &mut Random) -> Operation {
    let (location, value) = (random.below(LOCATIONS), 1 + random.below(2) as u8);
    let order = random.pick(&[Relaxed, Acquire, Release]);
    match random.below(12) {
        0..=2 => Operation::Store(location, value, random.pick(&[Relaxed, Relaxed, Release])),
        3..=5 => Operation::Load(location, random.pick(&[Relaxed, Relaxed, Acquire])),
        6 => Operation::Swap(location, value, order),
        7 | 8 => Operation::Add(location, value, order),
        9 | 10 => {
            let (expected, failure) = (random.below(2) as u8, random.pick(&[Relaxed, Acquire]));
            Operation::CompareExchange(location, expected, value, order, failure)
        }
        _ => Operation::Fence(random.pick(&[Acquire, Release])),
    }
}

/// A thread writes a cell first, and another one accesses it last, if it has read some value just before.
fn program(random: &mut Random) -> Program {
    let mut atomics = |most| -> Vec<Step> {
        let step = |operation| Step { only_after: None, operation };
        (0..=random.below(most)).map(|_| step(operation(random))).collect()
    };
    let (mut first, mut last, between) = (atomics(3), atomics(2), atomics(2));
    first.insert(0, Step { only_after: None, operation: Operation::WriteCell(0) });
    let accesses = random.pick(&[Operation::ReadCell(0), Operation::WriteCell(0)]);
    last.push(Step { only_after: Some(1 + random.below(2) as u8), operation: accesses });
    let others = (random.below(3) == 0).then_some(between);
    [first, last].into_iter().chain(others).collect()
}

/// A change of all operations of a kind: they have one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    Swap,
    Add,
    CompareExchange,
    Failure,
    Fence,
}

const KINDS: [Kind; 7] =
    [Kind::Load, Kind::Store, Kind::Swap, Kind::Add, Kind::CompareExchange, Kind::Failure, Kind::Fence];

/// As strong as the kind can be made by one change: more never harms.
fn strongest(order: Ordering, is_changed: bool, kind: Kind) -> Ordering {
    match kind {
        _ if !is_changed || order == SeqCst => order,
        Kind::Load | Kind::Failure => Acquire,
        Kind::Store => Release,
        Kind::Swap | Kind::Add | Kind::CompareExchange | Kind::Fence => AcqRel,
    }
}

fn changed(program: &Program, kinds: &[Kind]) -> Program {
    let order = |order, kind| strongest(order, kinds.contains(&kind), kind);
    let operation = |operation| match operation {
        Operation::Load(location, old) => Operation::Load(location, order(old, Kind::Load)),
        Operation::Store(location, value, old) => Operation::Store(location, value, order(old, Kind::Store)),
        Operation::Swap(location, value, old) => Operation::Swap(location, value, order(old, Kind::Swap)),
        Operation::Add(location, value, old) => Operation::Add(location, value, order(old, Kind::Add)),
        Operation::CompareExchange(location, expected, value, success, failure) => {
            let (success, failure) = (order(success, Kind::CompareExchange), order(failure, Kind::Failure));
            Operation::CompareExchange(location, expected, value, success, failure)
        }
        Operation::Fence(old) => Operation::Fence(order(old, Kind::Fence)),
        other => other,
    };
    let step = |step: &Step| Step { operation: operation(step.operation), ..*step };
    program.iter().map(|thread| thread.iter().map(step).collect()).collect()
}

/// How few changes keep every execution from racing.
fn fewest(program: &Program) -> Option<u32> {
    let helps = |set: &u32| {
        let kinds: Vec<Kind> = KINDS.into_iter().filter(|&kind| set >> kind as u32 & 1 == 1).collect();
        machine::run(&changed(program, &kinds), MemoryModel::Sc).is_some_and(|all| !all.race)
    };
    let all = (1 << KINDS.len()) - 1;
    let mut sets: Vec<u32> = (0..=all).collect();
    sets.sort_by_key(|set| set.count_ones());
    if helps(&all) { sets.into_iter().find(helps).map(u32::count_ones) } else { None }
}

#[test]
fn suggestions_against_races_are_the_fewest_that_help() {
    let (mut helped, mut hopeless) = (0, 0);
    for seed in 0..1_000 {
        let program = StdArc::new(program(&mut Random::new(seed)));
        let body = {
            let program = program.clone();
            move || drop(run_live(&program, &Arc::new(Shared::new())))
        };
        let builder = Builder { model: MemoryModel::Sc, ..Builder::default() };
        let report = builder.check(body.clone());
        let Some(failure) = &report.failure else { continue };
        assert!(matches!(failure.kind, FailureKind::Race { .. }), "seed {seed}: {report}");
        let about = format!("seed {seed}, {program:#?}\n{report}");
        if let Some(fewest) = fewest(&program) {
            assert_eq!(report.suggestions.len(), fewest as usize, "{about}");
            assert!(report.suggestions.iter().all(|one| one.tried && one.proved), "{about}");
            let strengthened = report.suggestions.iter().map(|one| (one.place.clone(), one.change)).collect();
            let again = Builder { strengthened, ..builder }.check(body);
            assert!(!again.is_failure(), "{about}\n{again}");
            helped += 1;
        } else {
            assert!(report.suggestions.is_empty() && report.help.is_some(), "{about}");
            hopeless += 1;
        }
    }
    assert!(helped > 20 && hopeless > 20, "{helped} races that orderings help against, {hopeless} others");
}
