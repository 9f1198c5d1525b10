//! How fast and how lean the explicit engine is: `cargo bench -p weakspot-verify --bench explicit`.
//!
//! | column | bar |
//! |---|---|
//! | states/s with one job on Dekker-sized models | at least 1.5 million |
//! | bytes/state, up to 4 threads and 8 locations | at most 64 |
//! | 2 jobs against 1 job, over 5 million states | at least 1.6 |
//!
//! Every search here goes through the whole state space (it does not stop at the first problem). Small models are
//! searched again and again for a second, tables built anew each time. An argument that is no option picks the models
//! whose name contains it. Give the second table a machine with two idle cores.

#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel::{self, Pso, Sc, Tso};
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_verify::explicit::{self, ExplicitOptions, Outcomes};

struct Model {
    name: String,
    program: Program,
    options: ExplicitOptions,
}

impl Model {
    fn new(name: &str, text: &str, model: MemoryModel, buffer: usize, reduce: bool) -> Self {
        let source = SourceFile::new(name, text);
        let program = weak::compile(&source).expect("the models of this bench are well-formed").program;
        let options = ExplicitOptions { buffer, reduce, ..ExplicitOptions::new(model) };
        let reduced = if reduce { " reduced" } else { "" };
        Self { name: format!("{name} {}{reduced}", model.name()), program, options }
    }

    fn run(&self, jobs: usize) -> (Outcomes, Duration) {
        let options = ExplicitOptions { jobs, ..self.options.clone() };
        let start = Instant::now();
        let outcomes = explicit::outcomes(&self.program, &options, &Budget::unlimited(), &());
        (outcomes.expect("the engine has no internal errors"), start.elapsed())
    }
}

fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    println!("{:<28} {:>10} {:>12} {:>9} {:>11} {:>8}", "model", "states", "transitions", "s", "states/s", "B/state");
    for model in small_models().iter().filter(|model| model.name.contains(&wanted)) {
        measure(model);
    }
    println!();
    println!("{:<28} {:>10} {:>8} {:>9} {:>9} {:>7}", "model", "states", "B/state", "1 job s", "2 jobs s", "ratio");
    for model in large_models().iter().filter(|model| model.name.contains(&wanted)) {
        compare_jobs(model);
    }
}

fn measure(model: &Model) {
    let (outcomes, mut total) = model.run(1);
    let mut runs = 1;
    while total < Duration::from_secs(1) {
        total += model.run(1).1;
        runs += 1;
    }
    let seconds = total.as_secs_f64() / f64::from(runs);
    println!(
        "{:<28} {:>10} {:>12} {seconds:>9.5} {:>11.0} {:>8.1}",
        model.name,
        outcomes.states,
        outcomes.transitions,
        outcomes.states as f64 / seconds,
        outcomes.stored_bytes as f64 / outcomes.states as f64,
    );
}

fn compare_jobs(model: &Model) {
    let (outcomes, one) = model.run(1);
    let (parallel, two) = model.run(2);
    assert_eq!(outcomes.states, parallel.states, "the number of jobs changes the state space");
    let (one, two) = (one.as_secs_f64(), two.as_secs_f64());
    println!(
        "{:<28} {:>10} {:>8.1} {one:>9.3} {two:>9.3} {:>7.2}",
        model.name,
        outcomes.states,
        outcomes.stored_bytes as f64 / outcomes.states as f64,
        one / two
    );
}

fn small_models() -> Vec<Model> {
    let fenced = dekker("fence;");
    vec![
        Model::new("dekker", &dekker(""), Sc, 8, false),
        Model::new("dekker", &dekker(""), Tso, 8, false),
        Model::new("dekker", &dekker(""), Tso, 8, true),
        Model::new("dekker", &dekker(""), Pso, 4, false),
        Model::new("dekker", &dekker(""), Pso, 4, true),
        Model::new("dekker fenced", &fenced, Tso, 8, false),
        Model::new("dekker fenced", &fenced, Tso, 8, true),
        Model::new("bakery 3", BAKERY, Tso, 8, false),
        Model::new("bakery 3", BAKERY, Tso, 8, true),
        Model::new("ring 4", &ring(4, 3), Sc, 8, false),
    ]
}

fn large_models() -> Vec<Model> {
    vec![Model::new("ring 3", &ring(3, 4), Tso, 1, false), Model::new("ring 4", &ring(4, 2), Tso, 1, false)]
}

fn dekker(fence: &str) -> String {
    format!(
        "shared want[2], turn;
         thread p[2] {{
             let other = 1 - me;
             loop {{
                 want[me] = 1; {fence}
                 while want[other] == 1 {{
                     if turn != me {{ want[me] = 0; while turn != me {{ }} want[me] = 1; {fence} }}
                 }}
                 critical {{ }}
                 turn = other;
                 want[me] = 0;
             }}
         }}"
    )
}

const BAKERY: &str = "
    shared choosing[3], number[3]: 0..=3;
    thread p[3] {
        choosing[me] = 1;
        fence;
        let largest = 0;
        let i = 0;
        while i < 3 { let n = number[i]; if n > largest { largest = n; } i = i + 1; }
        number[me] = largest + 1;
        choosing[me] = 0;
        fence;
        i = 0;
        while i < 3 {
            await(choosing[i] == 0);
            let mine = number[me];
            let theirs = number[i];
            while theirs != 0 && (theirs < mine || (theirs == mine && i < me)) { theirs = number[i]; }
            i = i + 1;
        }
        critical { }
        number[me] = 0;
    }";

/// Each thread reads its two neighbours and writes what it read to two cells of its own, for ever.
fn ring(threads: usize, values: usize) -> String {
    format!(
        "shared x[{threads}], y[{threads}];
         thread p[{threads}] {{
             loop {{
                 let v = x[(me + 1) % {threads}];
                 x[me] = (v + 1) % {values};
                 let w = x[(me + 2) % {threads}];
                 y[me] = w;
             }}
         }}"
    )
}
