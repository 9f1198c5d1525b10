//! Condition variables: the stateless engine, in all its modes, against the exact one, with and without wake-ups that
//! nobody asked for.
#![allow(clippy::unwrap_used)]

mod common;

use std::fmt::Write as _;

use common::{answer, exact_answer, name, program};
use weakspot_check::{Bound, CheckOptions, CheckReport, Engine, Sampling, Schedule, Verdict, check_schedule};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::task::Budget;
use weakspot_testkit::rng::Rng;

/// Graphs after which an exploration has taken too long.
const MOST_GRAPHS: u64 = 8_000;

const MODELS: [MemoryModel; 2] = [MemoryModel::Tso, MemoryModel::Pso];

/// Plain accesses to `x`, `y` and `z`.
fn accesses(rng: &mut Rng, most: usize, text: &mut String) {
    for _ in 0..rng.below(most + 1) {
        let cell = rng.pick(&["x", "y", "z"]);
        let _ = match rng.below(11) {
            0..5 => write!(text, "{cell} = 1; "),
            5..10 => write!(text, "r = {cell}; "),
            _ => write!(text, "fence; "),
        };
    }
}

/// Sleeps until something is there, and then looks around.
fn waiter(rng: &mut Rng, text: &mut String) {
    let condition = rng.pick(&["x == 0", "y == 0", "x == 0 && y == 0", "x == 0 || z == 0", "x == 0"]);
    let round = rng.pick(&["", "", "r = y; ", "r = z; "]);
    accesses(rng, 1, text);
    text.push_str("lock(m); ");
    let _ = match rng.below(5) {
        0 => write!(text, "if {condition} {{ wait(c, m); }} "),
        1 => write!(text, "wait(c, m); "),
        _ => write!(text, "while {condition} {{ {round}wait(c, m); }} "),
    };
    accesses(rng, 2, text);
    text.push_str("unlock(m); ");
    accesses(rng, 3, text);
}

/// Makes something true and says so, with or without the mutex.
fn notifier(rng: &mut Rng, text: &mut String) {
    let notify = rng.pick(&["notify_one(c); ", "notify_all(c); "]);
    accesses(rng, 3, text);
    let _ = match rng.below(3) {
        0 => write!(text, "lock(m); x = 1; {notify}unlock(m); "),
        1 => write!(text, "lock(m); x = 1; unlock(m); {notify}"),
        _ => write!(text, "x = 1; {notify}"),
    };
    accesses(rng, 1, text);
}

fn random_text(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let mut text = "shared x, y, z; mutex m; condvar c;\n".to_owned();
    for thread in 0..rng.within(2..=3) {
        let _ = write!(text, "thread t{thread} {{ let r = 0; ");
        match (thread, rng.below(3)) {
            (0, _) | (_, 0) => waiter(&mut rng, &mut text),
            (1, _) | (_, 1) => notifier(&mut rng, &mut text),
            _ => accesses(&mut rng, 4, &mut text),
        }
        text.push_str("}\n");
    }
    text
}

#[derive(Debug, Default)]
struct Tally {
    safe: usize,
    not_safe: usize,
    errors: usize,
    sampled: usize,
    open: usize,
}

/// Every schedule that is reported leads to its finding again.
fn replays(text: &str, program: &Program, options: &CheckOptions, report: &CheckReport) {
    let Some(schedule) = report.schedule() else { return };
    let parsed: Schedule = schedule.to_string().parse().unwrap();
    let again = check_schedule(program, options, &parsed, &Budget::unlimited().with_memory(0), &());
    let again = again.unwrap_or_else(|error| panic!("{schedule}: {error}\n{text}"));
    match (&report.verdict, &again.verdict) {
        (Verdict::Error(first), Verdict::Error(second)) => assert_eq!(first, second, "{text}"),
        (Verdict::Unsafe(_), Verdict::Unsafe(_)) => {}
        (_, second) => panic!("{schedule}: {second:?}\n{text}"),
    }
}

fn compare(text: &str, spurious_wakeups: bool, allow_deadlock: bool, tally: &mut Tally) {
    let program = program(text);
    for model in MODELS {
        let exact =
            CheckOptions { engine: Some(Engine::Attack), spurious_wakeups, allow_deadlock, ..CheckOptions::new(model) };
        let stateless = CheckOptions { engine: Some(Engine::Stateless), ..exact.clone() };
        let (report, expected) = (answer(&program, &stateless, MOST_GRAPHS), name(&exact_answer(&program, &exact)));
        let found = name(&report);
        let report = report.unwrap_or_else(|error| panic!("{error}: {model:?} {spurious_wakeups}\n{text}"));
        // who goes to sleep for ever does not end, and some have very many executions
        let is_open = matches!(report.verdict, Verdict::Bounded(Bound::NothingEnds | Bound::Limit(_)));
        assert!(
            found == expected || is_open && expected == "safe",
            "{model:?} {spurious_wakeups}: {found}, exactly {expected}\n{text}"
        );
        tally.open += usize::from(is_open);
        tally.safe += usize::from(found == "safe");
        tally.not_safe += usize::from(expected == "unsafe");
        tally.errors += usize::from(expected.starts_with("error"));
        replays(text, &program, &stateless, &report);
        let random = Sampling::Random { executions: 10, seed: 1 };
        let pct = Sampling::Pct { executions: 10, depth: 3, seed: 2 };
        for (sampling, max_preemptions) in [(Some(random), None), (Some(pct), None), (None, Some(1))] {
            let some = CheckOptions { sampling, max_preemptions, ..stateless.clone() };
            let report = answer(&program, &some, MOST_GRAPHS);
            let found = name(&report);
            assert!(
                found == expected || found.starts_with("bounded"),
                "{sampling:?} {model:?} {spurious_wakeups}: {found}, exactly {expected}\n{text}"
            );
            tally.sampled += usize::from(found == expected);
            replays(text, &program, &some, &report.unwrap());
        }
    }
}

#[test]
fn answers_about_condition_variables_agree_with_the_exact_engine() {
    for spurious_wakeups in [false, true] {
        let mut tally = Tally::default();
        for seed in 0..250 {
            compare(&random_text(seed), spurious_wakeups, seed % 4 != 0, &mut tally);
        }
        assert!(tally.safe > 50 && tally.not_safe > 20 && tally.sampled > 50, "{spurious_wakeups}: {tally:?}");
        assert!(spurious_wakeups || tally.errors > 20, "{tally:?}");
    }
}
