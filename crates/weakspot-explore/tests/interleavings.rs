//! The modes over interleavings: every schedule once, the same problems as brute force, schedules that replay.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use weakspot_explore::bounded::{Mode, explore_interleavings};
use weakspot_explore::exhaustive::{ExploreOptions, MonitorKind, explore};
use weakspot_explore::interleave::Interleaving;
use weakspot_explore::interpreter::Interpreter;
use weakspot_explore::outcome::Outcome;
use weakspot_explore::schedule::Schedule;
use weakspot_front::weak::compile;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::{Action, Machine, Outcome as StepOutcome, State};
use weakspot_model::replay::{Ending, replay};
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_testkit::generate::Shape;
use weakspot_testkit::oracle::{self, Bounds};
use weakspot_testkit::rng::Rng;
use weakspot_testkit::shrink::shrink;
use weakspot_testkit::sketch::Sketch;

const ALL: u32 = 1_000;

fn options(monitor: Option<MonitorKind>) -> ExploreOptions {
    ExploreOptions { monitor, all: true, ..ExploreOptions::default() }
}

fn run(program: &Program, mode: Mode, options: &ExploreOptions) -> Outcome {
    explore_interleavings(program, mode, options, &Budget::unlimited(), &()).0
}

/// How many schedules there are for each number of preemptions; `None` past a limit.
fn count_schedules(program: &Program, spurious_wakeups: bool) -> Option<BTreeMap<u32, u64>> {
    fn visit(
        machine: &Machine<'_>,
        state: &State,
        previous: Option<Action>,
        preemptions: u32,
        counts: &mut BTreeMap<u32, u64>,
    ) -> bool {
        let enabled = machine.enabled(state);
        if enabled.is_empty() {
            *counts.entry(preemptions).or_default() += 1;
            return counts.values().sum::<u64>() < 3_000;
        }
        let goes_on = |a: &Action| previous.is_some_and(|previous| previous.thread() == a.thread());
        // who sleeps cannot go on, although it may wake up unasked
        let could_go_on = enabled.iter().any(|action| goes_on(action) && !matches!(action, Action::Wake { .. }));
        enabled.iter().all(|&action| {
            let mut next = state.clone();
            let outcome = machine.apply(&mut next, action).1;
            let preemptions = preemptions + u32::from(could_go_on && !goes_on(&action));
            if outcome == StepOutcome::Continues {
                return visit(machine, &next, Some(action), preemptions, counts);
            }
            *counts.entry(preemptions).or_default() += 1;
            true
        })
    }
    let machine = Machine { spurious_wakeups, ..Machine::new(program, MemoryModel::Sc) };
    let (start, outcome) = machine.start();
    let mut counts = BTreeMap::new();
    (outcome == StepOutcome::Continues && visit(&machine, &start, None, 0, &mut counts)).then_some(counts)
}

#[test]
fn each_bound_has_exactly_the_schedules_with_so_many_preemptions() {
    let shape = Shape { threads: 2..=3, statements: 1..=3, locks: true, condvars: true, ..Shape::straight_line() };
    let mut checked = [0, 0];
    for (seed, spurious_wakeups) in (0..400).flat_map(|seed| [(seed, false), (seed, true)]) {
        let sketch = shape.generate(seed);
        let program = sketch.program();
        let Some(expected) = count_schedules(&program, spurious_wakeups) else { continue };
        let options = ExploreOptions { spurious_wakeups, ..options(None) };
        let (_, reports) = explore_interleavings(&program, Mode::Preemptions(ALL), &options, &Budget::unlimited(), &());
        let found = reports.iter().filter(|report| report.interleavings > 0);
        let found: BTreeMap<u32, u64> = found.map(|report| (report.preemptions, report.interleavings)).collect();
        assert_eq!(found, expected, "seed {seed} {spurious_wakeups}\n{}", sketch.text());
        checked[usize::from(spurious_wakeups)] += 1;
    }
    assert!(checked[0] > 200 && checked[1] > 150, "{checked:?}");
}

fn complaint(sketch: &Sketch) -> Option<String> {
    let program = sketch.program();
    let machine = Machine::new(&program, MemoryModel::Sc);
    let reach = oracle::reach(&machine, Bounds { visits: 2_000, ..Bounds::default() })?;
    let outcome = run(&program, Mode::Preemptions(ALL), &options(None));
    Some(match &outcome.error {
        None if reach.problems.is_empty() => String::new(),
        None => format!("missed {:?}", reach.problems),
        Some(witness) if witness.replay(&machine).is_err() => "the witness does not replay".to_owned(),
        Some(witness) if !reach.problems.contains(&witness.problem.kind) => "no such problem".to_owned(),
        Some(witness) => {
            let text = Schedule::of(&witness.actions).to_string();
            let again = replay(&machine, text.parse::<Schedule>().unwrap().actions()).unwrap();
            assert_eq!(again.ending, Ending::Failed(witness.problem.clone()), "{text}");
            String::new()
        }
    })
}

#[test]
fn without_a_bound_all_problems_are_found_and_their_schedules_replay() {
    let shape = Shape { statements: 1..=3, threads: 2..=2, ..Shape::terminating() };
    let mut checked = 0;
    for seed in 0..1_500 {
        let sketch = shape.generate(seed);
        let Some(wrong) = complaint(&sketch) else { continue };
        if !wrong.is_empty() {
            let smallest = shrink(&sketch, |smaller| complaint(smaller).is_some_and(|text| !text.is_empty()));
            panic!("seed {seed}: {}\n{}", complaint(&smallest).unwrap(), smallest.text());
        }
        checked += 1;
    }
    assert!(checked > 1_000, "{checked}");
}

#[test]
fn interleavings_trip_the_monitor_exactly_if_traces_do() {
    let shape = Shape { threads: 2..=2, statements: 2..=3, cells: 2..=2, ..Shape::straight_line() };
    let mut tripped = 0;
    for seed in 0..600 {
        let sketch = shape.generate(seed);
        let program = sketch.program();
        for monitor in [MonitorKind::Sober, MonitorKind::Operational(MemoryModel::Pso)] {
            let options = options(Some(monitor));
            let interleavings = run(&program, Mode::Preemptions(ALL), &options);
            let traces = explore(&program, &options, &Budget::unlimited(), &());
            assert_eq!(interleavings.borderline > 0, traces.borderline > 0, "{monitor:?}\n{}", sketch.text());
            assert!(interleavings.exhaustive && traces.exhaustive);
            tripped += usize::from(traces.borderline > 0);
        }
    }
    assert!(tripped > 50, "{tripped}");
}

#[test]
fn taking_steps_back_without_tokens_leads_to_the_same_place() {
    let shape = Shape { statements: 2..=5, ..Shape::terminating() };
    let unasked = |seed: u64| seed % 2 == 1;
    for seed in 0..200 {
        let program = shape.generate(seed).program();
        let mut with = Interpreter::new(&program, None);
        let mut without = Interpreter::new(&program, None).without_tokens();
        let mut a = Interleaving::new(&mut with).with_spurious_wakeups(unasked(seed));
        let mut b = Interleaving::new(&mut without).with_spurious_wakeups(unasked(seed));
        let mut rng = Rng::new(seed);
        let mut choices = Vec::new();
        for _ in 0..60 {
            let rest = a.rest();
            assert_eq!(rest, b.rest());
            if rest.is_some() || rng.one_in(4) {
                let depth = rng.below(a.depth() + 1);
                a.back_to(depth);
                b.back_to(depth);
            } else {
                let enabled: Vec<usize> = (0..a.threads()).filter(|&thread| a.can_move(thread)).collect();
                let thread = rng.pick(&enabled);
                a.choices(thread, &mut choices);
                let choice = rng.pick(&choices);
                a.step(thread, choice);
                b.step(thread, choice);
            }
            assert_eq!((a.actions(), a.events(), a.depth()), (b.actions(), b.events(), b.depth()));
        }
    }
}

fn program(text: &str) -> Program {
    compile(&SourceFile::new("test.weak", text)).unwrap().program
}

#[test]
fn fig_1b_needs_no_preemption_to_be_found() {
    let buffering = program("shared x, y; thread a { x = 1; let r = y; } thread b { y = 1; let r = x; }");
    let (outcome, reports) = explore_interleavings(
        &buffering,
        Mode::Preemptions(ALL),
        &options(Some(MonitorKind::Sober)),
        &Budget::unlimited(),
        &(),
    );
    let counts: Vec<u64> = reports.iter().map(|report| report.interleavings).collect();
    assert_eq!(counts, [2, 2, 2]);
    assert!(outcome.exhaustive && outcome.borderline > 0 && outcome.violations.len() == 2, "{outcome:?}");
}

#[test]
fn random_modes_are_repeatable_and_find_store_buffering() {
    let buffering = program("shared x, y; thread a { x = 1; let r = y; } thread b { y = 1; let r = x; }");
    let options = options(Some(MonitorKind::Sober));
    for mode in [Mode::Random { executions: 100, seed: 7 }, Mode::Pct { executions: 100, depth: 2, seed: 7 }] {
        let (first, second) = (run(&buffering, mode, &options), run(&buffering, mode, &options));
        assert_eq!(first.executions, 100);
        assert_eq!(first.borderline, second.borderline);
        assert!(first.borderline > 0 && !first.exhaustive, "{mode:?}");
    }
}

#[test]
fn waiting_threads_do_not_keep_a_bounded_search_busy() {
    let waits = program("shared x; thread a { await(x == 1); } thread b { x = 1; } thread c { await(x == 1); }");
    let outcome = run(&waits, Mode::Preemptions(ALL), &options(None));
    assert!(outcome.exhaustive && outcome.executions > 0 && outcome.blocked == 0, "{outcome:?}");
    let never = program("shared x; thread a { await(x == 1); } thread b { await(x == 2); }");
    let outcome = run(&never, Mode::Preemptions(ALL), &options(None));
    assert!(outcome.executions == 0 && outcome.blocked > 0 && outcome.error.is_none(), "{outcome:?}");
}

/// The text of a violation's or an error's schedule leads to that violation or error again.
#[test]
fn schedules_of_all_findings_replay_through_their_text() {
    let everything = Shape { threads: 2..=3, statements: 1..=4, ..Shape::terminating() };
    let straight = Shape { threads: 2..=3, statements: 2..=4, cells: 2..=2, ..Shape::straight_line() };
    let (mut errors, mut violations) = (0, 0);
    for seed in 0..600 {
        let shape = if seed % 2 == 0 { &everything } else { &straight };
        let sketch = shape.generate(seed);
        let program = sketch.program();
        let options = options(Some(MonitorKind::Sober));
        let outcome = explore(&program, &options, &Budget::unlimited(), &());
        if let Some(witness) = &outcome.error {
            let schedule: Schedule = Schedule::of(&witness.actions).to_string().parse().unwrap();
            let replayed = weakspot_explore::replay::replay(&program, &schedule, false, None).unwrap();
            assert_eq!(replayed.error.as_ref(), Some(witness), "{}", sketch.text());
            errors += 1;
        }
        for violation in outcome.violations.values().filter(|_| outcome.failures == 0) {
            let schedule: Schedule = Schedule::of(&violation.actions).to_string().parse().unwrap();
            let replayed = weakspot_explore::replay::replay(&program, &schedule, false, options.monitor).unwrap();
            let pair = |v: &weakspot_explore::outcome::Violation| (v.store, v.access);
            assert!(replayed.violations.iter().any(|found| pair(found) == pair(violation)), "{}", sketch.text());
            violations += 1;
        }
    }
    assert!(errors > 100 && violations > 50, "{errors} {violations}");
}

#[test]
fn a_schedule_of_another_program_is_refused() {
    let stores = program("shared x; thread a { x = 1; } thread b { x = 2; }");
    for (text, step) in [("0x2", 2), ("2", 1), ("1.0.0", 3), ("0=5", 1)] {
        let error = weakspot_explore::replay::replay(&stores, &text.parse().unwrap(), false, None).unwrap_err();
        assert_eq!(error.step, step, "{text}");
    }
}

/// What is chosen right after a critical block is chosen in all ways, as the reference machine does.
#[test]
fn choices_after_a_critical_block() {
    let texts = [
        "shared y; thread a { critical { y = 1; } let q = choose(3..=4); assert(q == 3); } thread b { y = 2; }",
        "shared y; thread a { critical { } let q = choose(0..=1); y = q; } thread b { y = 2; } final { assert(y != 1); }",
        "shared x; mutex m; condvar c;
        thread a { lock(m); x = 1; unlock(m); critical { } notify_one(c); }
        thread b { lock(m); while x == 0 { wait(c, m); } unlock(m); }",
        "shared x; mutex m; condvar c;
        thread a { critical { x = 1; } notify_one(c); }
        thread b { lock(m); wait(c, m); unlock(m); }
        thread d { lock(m); wait(c, m); x = 2; unlock(m); notify_one(c); }",
    ];
    for text in texts {
        let program = program(text);
        let traces = explore(&program, &options(None), &Budget::unlimited(), &());
        for mode in [
            Mode::Preemptions(ALL),
            Mode::Random { executions: 300, seed: 1 },
            Mode::Pct { executions: 300, depth: 3, seed: 1 },
        ] {
            let found = run(&program, mode, &options(None));
            let kind = |outcome: &Outcome| outcome.error.as_ref().map(|witness| witness.problem.kind);
            assert_eq!(kind(&found), kind(&traces), "{mode:?}: {text}");
            if let Mode::Random { executions, .. } | Mode::Pct { executions, .. } = mode {
                assert_eq!(found.executions + found.failures, executions, "{mode:?}: {text}");
            }
        }
    }
}

/// Leaving a critical block goes with what comes next: as many schedules as without the block, or, where a choice comes
/// next, as with an event in its place.
#[test]
fn what_comes_after_a_critical_block_follows_at_once() {
    for (with, without) in [
        ("y = 1; critical { } let q = choose(0..=2);", "y = 1; fence; let q = choose(0..=2);"),
        ("y = 1; critical { } notify_one(c);", "y = 1; notify_one(c);"),
    ] {
        let schedules = |body: &str| {
            let text = format!(
                "shared y; mutex m; condvar c; thread a {{ {body} y = 2; }}
                thread w[2] {{ lock(m); if y == 0 {{ wait(c, m); }} unlock(m); }}"
            );
            let allowed = ExploreOptions { allow_deadlock: true, ..options(None) };
            let budget = Budget::unlimited();
            let (_, reports) = explore_interleavings(&program(&text), Mode::Preemptions(3), &allowed, &budget, &());
            reports.iter().map(|report| report.interleavings).collect::<Vec<_>>()
        };
        assert_eq!(schedules(with), schedules(without), "{with}");
    }
}
