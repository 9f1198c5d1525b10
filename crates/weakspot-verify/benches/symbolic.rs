//! The symbolic engine beside Table 2 of the paper and beside explicit search:
//! `cargo bench -p weakspot-verify --bench symbolic`.
//!
//! Every search goes through the whole state space (it does not stop at the first error). The paper's times are from a
//! 2.0 GHz laptop of 2010 and stand here for orientation only.
//!
//! | column | bar |
//! |---|---|
//! | seconds of Dekker's algorithm, repeated entry, no fences | well under one |
//! | its stored states, explicit search with buffers of 8 against symbolic | at least 100 to 1 |
//!
//! A stored state is a memory with one automaton, so the states of all automata are counted too, and their ratio
//! stands beside the other.

#![allow(clippy::print_stdout)]

use std::path::Path;
use std::time::{Duration, Instant};

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel::Tso;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Verdict};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::symbolic::{self, SymbolicOptions, SymbolicReport};

/// A row of Table 2: file, states stored, states visited, seconds, depth, errors.
const TABLE_2: [(&str, u64, u64, f64, u64, u64); 8] = [
    ("dekker-single", 183, 301, 2.446, 22, 2),
    ("dekker-single-sync", 111, 161, 1.194, 22, 0),
    ("dekker-repeated", 3236, 6231, 22.881, 785, 36),
    ("dekker-repeated-sync", 343, 631, 3.016, 79, 0),
    ("peterson-single", 120, 173, 1.969, 15, 2),
    ("peterson-single-sync", 54, 66, 0.399, 13, 0),
    ("peterson-repeated", 355, 432, 3.097, 50, 10),
    ("peterson-repeated-sync", 65, 92, 0.392, 22, 0),
];

/// Beyond the paper; repeated entry, and one entry of three threads.
const BEYOND: [&str; 18] = [
    "mutex/bakery-loop",
    "mutex/bakery-loop-fenced",
    "mutex/fast-mutex-loop",
    "mutex/fast-mutex-loop-fenced",
    "mutex/clh-loop",
    "mutex/clh-loop-fenced",
    "mutex/burns-loop",
    "mutex/burns-loop-fenced",
    "mutex/szymanski-loop",
    "mutex/szymanski-loop-fenced",
    "mutex/dijkstra-loop",
    "mutex/dijkstra-loop-fenced",
    "sync/sense-barrier-loop",
    "sync/sense-barrier-loop-fenced",
    "mutex/filter-three",
    "mutex/filter-three-fenced",
    "mutex/filter-three-loop",
    "mutex/filter-three-loop-fenced",
];

fn main() {
    println!(
        "{:<24} {:>15} {:>15} {:>17} {:>11} {:>11} {:>9}",
        "Table 2 (ours / paper)", "stored", "visited", "s", "depth", "errors", "automata"
    );
    for (name, stored, visited, seconds, depth, errors) in TABLE_2 {
        let program = load(&format!("papers/linden-wolper-{name}"));
        let (report, time) = search(&program, true);
        println!(
            "{name:<24} {:>6} / {stored:>6} {:>6} / {visited:>6} {:>8.4} / {seconds:>6.3} {:>4} / {depth:>4} {:>4} / {errors:>4} {:>9}",
            report.states_stored,
            report.states_visited,
            time.as_secs_f64(),
            report.max_depth,
            report.errors,
            report.automaton_states
        );
    }
    println!(
        "\n{:<30} {:>8} {:>8} {:>9} {:>9} {:>6} {:>7} {:>10}",
        "beyond (all errors)", "stored", "automata", "visited", "s", "depth", "errors", "verdict, s"
    );
    for name in BEYOND {
        let program = load(name);
        let (report, time) = search(&program, true);
        let (first, first_time) = search(&program, false);
        let verdict = match first.verdict {
            Verdict::Verified => "verified",
            Verdict::Violated(_) => "violated",
            Verdict::Inconclusive(_) => "no answer",
        };
        let open = if matches!(report.verdict, Verdict::Inconclusive(_)) { " (time is up)" } else { "" };
        println!(
            "{name:<30} {:>8} {:>8} {:>9} {:>9.4} {:>6} {:>7} {verdict:>10} {:.4}{open}",
            report.states_stored,
            report.automaton_states,
            report.states_visited,
            time.as_secs_f64(),
            report.max_depth,
            report.errors,
            first_time.as_secs_f64()
        );
    }
    against_explicit("papers/linden-wolper-dekker-repeated");
}

fn load(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(format!("{name}.weak"));
    let text = std::fs::read_to_string(path).expect("the corpus has this program");
    weak::compile(&SourceFile::new(name, text)).expect("the corpus compiles").program
}

/// The best of a few runs; slow ones run once.
fn search(program: &Program, all_errors: bool) -> (SymbolicReport, Duration) {
    let mut best: Option<(SymbolicReport, Duration)> = None;
    for _ in 0..5 {
        let budget = Budget::unlimited().with_time(Duration::from_secs(20));
        let options = SymbolicOptions { all_errors, ..SymbolicOptions::new(Tso) };
        let start = Instant::now();
        let report = symbolic::verify(program, &options, &budget, &()).expect("the engine has no internal errors");
        let time = start.elapsed();
        if best.as_ref().is_none_or(|(_, shortest)| time < *shortest) {
            best = Some((report, time));
        }
        if time > Duration::from_secs(1) {
            break;
        }
    }
    best.expect("there was a run")
}

fn against_explicit(name: &str) {
    let program = load(name);
    let (report, time) = search(&program, true);
    println!(
        "\n{name}: symbolic {} states, {} states of automata, {:.4} s",
        report.states_stored,
        report.automaton_states,
        time.as_secs_f64()
    );
    println!(
        "{:<10} {:>10} {:>12} {:>9} {:>8} {:>12}",
        "explicit", "buffers of", "states", "s", "ratio", "to automata"
    );
    for (reduce, buffer) in [(false, 8), (false, 16), (false, 32), (true, 8), (true, 16), (true, 32)] {
        let options = ExplicitOptions { buffer, reduce, ..ExplicitOptions::new(Tso) };
        let start = Instant::now();
        let outcomes = explicit::outcomes(&program, &options, &Budget::unlimited(), &());
        let states = outcomes.expect("the engine has no internal errors").states;
        println!(
            "{:<10} {buffer:>10} {states:>12} {:>9.3} {:>8.1} {:>12.1}",
            if reduce { "reduced" } else { "full" },
            start.elapsed().as_secs_f64(),
            states as f64 / report.states_stored as f64,
            states as f64 / report.automaton_states as f64
        );
    }
}
