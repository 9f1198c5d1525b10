//! The abstract engine beside Table 1 of the paper: `cargo bench -p weakspot-verify --bench abstract`.
//!
//! Every search goes through the whole abstract state space, as the paper's did. `M` is the paper's mark for a run that
//! ran out of 16 GB.
//!
//! | column | bar |
//! |---|---|
//! | seconds of all of Table 1 together, on one core | under 2 |

#![allow(clippy::print_stdout)]

use std::path::Path;
use std::time::{Duration, Instant};

use weakspot_front::weak;
use weakspot_model::buffer::MemoryModel::Pso;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::Budget;
use weakspot_verify::abstraction::{self, AbstractOptions, Domain, Explored};

/// A row of Table 1: program, and for each column the paper's states in thousands and whether it verified.
type Row = (&'static str, [(Option<f64>, bool); 3]);

const TABLE_1: [Row; 6] = [
    ("sense", [(Some(0.6), true), (Some(1.7), true), (Some(0.8), true)]),
    ("pet", [(Some(7.7), false), (Some(2.4), true), (Some(1.8), true)]),
    ("dek", [(Some(9.7), false), (Some(4.5), true), (Some(3.1), true)]),
    ("lam", [(Some(41.2), false), (Some(22.2), true), (Some(9.0), true)]),
    ("fast", [(Some(22.2), false), (Some(16.4), false), (Some(11.1), true)]),
    ("clh", [(None, false), (None, false), (Some(68.8), true)]),
];

const COLUMNS: [(Domain, u32); 3] = [(Domain::Set, 0), (Domain::Fd, 0), (Domain::Fd, 1)];

/// Beyond the paper: three processes, entered again and again.
const THREE: [&str; 3] =
    ["mutex/filter-three-loop-fenced", "abstract/bakery-three-loop-fenced", "abstract/clh-three-loop-fenced"];

fn main() {
    println!("Table 1, thousands of states (ours / paper), ● verified, ○ abstract counterexample");
    println!("{:<8} {:>22} {:>22} {:>22} {:>10}", "program", "set", "fd k=0", "fd k=1", "s");
    let mut total = Duration::ZERO;
    for (name, paper) in TABLE_1 {
        let program = load(&format!("papers/kuperstein-{name}-fenced"));
        let mut cells = Vec::new();
        let mut row = Duration::ZERO;
        for ((domain, k), (states, verified)) in COLUMNS.into_iter().zip(paper) {
            let (explored, time) = explore(&program, domain, k);
            row += time;
            let states = states.map_or("M".to_owned(), |states| format!("{states:.1}"));
            let (ours, mark) = (explored.states as f64 / 1000.0, |verified| if verified { '●' } else { '○' });
            cells.push(format!("{} {ours:.1} / {} {states:>4}", mark(!explored.fails), mark(verified)));
        }
        total += row;
        println!("{name:<8} {:>22} {:>22} {:>22} {:>10.4}", cells[0], cells[1], cells[2], row.as_secs_f64());
    }
    println!("all of Table 1: {:.4} s (bar: 2 s)", total.as_secs_f64());
    println!("\nthree processes under PSO");
    for name in THREE {
        let program = load(name);
        for (domain, k) in [(Domain::Fd, 0), (Domain::Fd, 1), (Domain::Pd, 1)] {
            let (explored, time) = explore(&program, domain, k);
            let verdict = if explored.fails { "alarm" } else { "verified" };
            let (domain, seconds) = (domain.name(), time.as_secs_f64());
            println!("{name:<34} {domain} k={k}: {verdict:<9} {:>9} states {seconds:>9.3} s", explored.states);
        }
    }
}

fn load(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(format!("{name}.weak"));
    let text = std::fs::read_to_string(path).expect("the corpus has this program");
    weak::compile(&SourceFile::new(name, text)).expect("the corpus compiles").program
}

fn explore(program: &Program, domain: Domain, k: u32) -> (Explored, Duration) {
    let options = AbstractOptions { domain, k, ..AbstractOptions::new(Pso) };
    let start = Instant::now();
    let explored = abstraction::explore(program, &options, &Budget::unlimited(), &()).expect("there is no limit");
    (explored, start.elapsed())
}
