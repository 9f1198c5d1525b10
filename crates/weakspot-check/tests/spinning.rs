//! Loops that spin on an atomic: the stateless engine, exhaustive and bounded, against the exact one.
#![allow(clippy::unwrap_used)]

mod common;

use std::fmt::Write as _;

use common::{answer, exact_answer, name, program};
use weakspot_check::{Bound, CheckOptions, Engine, Verdict};
use weakspot_model::buffer::MemoryModel;
use weakspot_testkit::rng::Rng;

/// Graphs after which an exploration has taken too long.
const MOST_GRAPHS: u64 = 30_000;

/// Plain accesses, and the release of a lock.
fn accesses(rng: &mut Rng, most: usize, text: &mut String) {
    for _ in 0..rng.below(most + 1) {
        let cell = rng.pick(&["x", "y", "l"]);
        let _ = match rng.below(10) {
            0..4 => write!(text, "{} = 1; ", rng.pick(&["x", "y"])),
            4..8 => write!(text, "r = {cell}; "),
            8 => write!(text, "l = 0; "),
            _ => write!(text, "fence; "),
        };
    }
}

/// Waits for the lock, or for something else, with an atomic.
/// If `with_reads`, it may go on reading in a round after an atomic that wrote what it had read.
fn spin(rng: &mut Rng, with_reads: bool, text: &mut String) {
    let ways = [
        "while swap(l, 1) == 1 { } ",
        "while swap(l, 1) == 1 { } ",
        "while fetch_or(l, 1) == 1 { } ",
        "while cas(l, 0, 1) == 0 { } ",
        "while swap(l, 1) == 1 { while l == 1 { } } ",
        "while y == 0 && swap(l, 1) == 1 { } ",
        "while fetch_add(y, 0) == 0 { } ",
        "loop { r = x; if swap(l, 1) == 0 { break; } } ",
        "while swap(l, 1) == 1 { r = y; } ",
        "while fetch_and(y, 1) == 0 { r = x; } ",
    ];
    text.push_str(if with_reads { rng.pick(&ways) } else { rng.pick(&ways[..8]) });
}

fn random_text(seed: u64, with_reads: bool) -> String {
    let mut rng = Rng::new(seed);
    let mut text = format!("shared x, y, l = {};\n", rng.below(2));
    for thread in 0..rng.within(2..=3) {
        let _ = write!(text, "thread t{thread} {{ let r = 0; ");
        if thread == 0 || rng.one_in(2) {
            accesses(&mut rng, 2, &mut text);
            spin(&mut rng, with_reads, &mut text);
            accesses(&mut rng, 2, &mut text);
        } else {
            accesses(&mut rng, 4, &mut text);
        }
        if rng.one_in(2) {
            text.push_str("l = 0; ");
        }
        text.push_str("}\n");
    }
    text
}

#[derive(Debug, Default)]
struct Tally {
    safe: usize,
    not_safe: usize,
    exhausted: usize,
    endless: usize,
}

fn compare(text: &str, exhaustively: bool, tally: &mut Tally) {
    let program = program(text);
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let exact = CheckOptions { engine: Some(Engine::Attack), ..CheckOptions::new(model) };
        let stateless = CheckOptions { engine: Some(Engine::Stateless), ..exact.clone() };
        let expected = name(&exact_answer(&program, &exact));
        let bounded = CheckOptions { max_preemptions: Some(1_000), ..stateless.clone() };
        for options in [exhaustively.then_some(stateless), Some(bounded)].into_iter().flatten() {
            let report = answer(&program, &options, MOST_GRAPHS);
            let found = name(&report);
            let report = report.unwrap_or_else(|error| panic!("{error}: {model:?}\n{text}"));
            let is_open = match report.verdict {
                Verdict::Bounded(Bound::Limit(_) | Bound::NothingEnds) => true,
                Verdict::Bounded(Bound::Preemptions(_)) => {
                    tally.exhausted += usize::from(report.exhaustive);
                    true
                }
                Verdict::Bounded(Bound::Endless) => {
                    tally.endless += 1;
                    true
                }
                _ => false,
            };
            let is_complete = report.exhaustive || !is_open;
            // the engines agree about what never ends; a bound may only hide it
            let nothing_ends = matches!(report.verdict, Verdict::Bounded(Bound::NothingEnds));
            let is_well = expected == "safe" || expected == "bounded: NothingEnds";
            assert!(
                found == expected || is_open && !nothing_ends && (is_well || !is_complete),
                "{:?} {model:?}: {found}, exactly {expected}\n{text}",
                options.max_preemptions
            );
            tally.safe += usize::from(found == "safe");
            tally.not_safe += usize::from(found == "unsafe");
        }
    }
}

#[test]
fn answers_about_spinning_atomics_agree_with_the_exact_engine() {
    let mut tally = Tally::default();
    for seed in 0..300 {
        compare(&random_text(seed, false), true, &mut tally);
        // a write that changes nothing and stands elsewhere than at the end of a round needs a bound
        compare(&random_text(seed, true), false, &mut tally);
    }
    assert!(tally.safe > 100 && tally.not_safe > 100 && tally.exhausted > 100 && tally.endless == 0, "{tally:?}");
}
