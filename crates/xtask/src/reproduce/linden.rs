//! Table 2 of Linden and Wolper: unbounded buffers as automata, and programs beyond the paper.

use std::time::{Duration, Instant};

use weakspot_model::buffer::MemoryModel;
use weakspot_model::task::{Budget, Verdict};
use weakspot_verify::symbolic::{self, Method, SymbolicOptions, SymbolicReport};

use super::Effort;
use super::document::{Fact, Section, Table, grouped, seconds};
use crate::repository::{self, ChoreError};

/// States after which a search is given up; no program here comes near.
const MAX_STATES: u64 = 1_000_000;

/// A line of the table, as printed.
struct Printed {
    stored: u64,
    visited: u64,
    seconds: &'static str,
    depth: u64,
    errors: u64,
}

struct Experiment {
    name: &'static str,
    /// In the corpus.
    program: &'static str,
    printed: Printed,
}

const EXPERIMENTS: [Experiment; 8] = [
    line("Dekker, single entry", "linden-wolper-dekker-single", [183, 301, 22, 2], "2.446"),
    line("Dekker, single entry + sync", "linden-wolper-dekker-single-sync", [111, 161, 22, 0], "1.194"),
    line("Dekker, repeated entry", "linden-wolper-dekker-repeated", [3_236, 6_231, 785, 36], "22.881"),
    line("Dekker, repeated entry + sync", "linden-wolper-dekker-repeated-sync", [343, 631, 79, 0], "3.016"),
    line("Peterson, single entry", "linden-wolper-peterson-single", [120, 173, 15, 2], "1.969"),
    line("Peterson, single entry + sync", "linden-wolper-peterson-single-sync", [54, 66, 13, 0], "0.399"),
    line("Peterson, repeated entry", "linden-wolper-peterson-repeated", [355, 432, 50, 10], "3.097"),
    line("Peterson, repeated entry + sync", "linden-wolper-peterson-repeated-sync", [65, 92, 22, 0], "0.392"),
];

const fn line(name: &'static str, program: &'static str, figures: [u64; 4], seconds: &'static str) -> Experiment {
    let [stored, visited, depth, errors] = figures;
    Experiment { name, program, printed: Printed { stored, visited, seconds, depth, errors } }
}

/// A program that is not in the paper's table.
#[derive(Clone, Copy)]
struct Beyond {
    name: &'static str,
    version: &'static str,
    /// In the corpus.
    program: &'static str,
    /// Must it have errors?
    is_wrong: bool,
    /// Does it take more than a second or two?
    is_long: bool,
}

/// The other programs of the paper, and programs beyond it, all entered or passed again and again.
const BEYOND: [Beyond; 16] = [
    wrong("Table 1 (forwarding)", "papers/linden-wolper-table1"),
    right("Fig. 2 (fills a buffer)", "needs no fence", "papers/linden-wolper-fig2"),
    right("Fig. 4 (unlocks a cycle)", "needs no fence", "papers/linden-wolper-fig4"),
    long(wrong("bakery, tickets bounded", "mutex/bakery-loop")),
    right("bakery, tickets bounded", "with fences", "mutex/bakery-loop-fenced"),
    wrong("fast mutex", "mutex/fast-mutex-loop"),
    right("fast mutex", "with fences", "mutex/fast-mutex-loop-fenced"),
    wrong("Burns", "mutex/burns-loop"),
    right("Burns", "with fences", "mutex/burns-loop-fenced"),
    wrong("Szymanski", "mutex/szymanski-loop"),
    right("Szymanski", "with fences", "mutex/szymanski-loop-fenced"),
    wrong("filter lock, three threads", "mutex/filter-three-loop"),
    right("filter lock, three threads", "with fences", "mutex/filter-three-loop-fenced"),
    right("CLH", "needs no fence", "mutex/clh-loop"),
    right("sense-reversing barrier, counter", "needs no fence", "sync/sense-barrier-loop"),
    right("sense-reversing barrier, flags", "needs no fence", "sync/sense-barrier-dissemination"),
];

const fn wrong(name: &'static str, program: &'static str) -> Beyond {
    Beyond { name, version: "without fences", program, is_wrong: true, is_long: false }
}

const fn right(name: &'static str, version: &'static str, program: &'static str) -> Beyond {
    Beyond { name, version, program, is_wrong: false, is_long: false }
}

const fn long(beyond: Beyond) -> Beyond {
    Beyond { is_long: true, ..beyond }
}

/// The table beside ours.
pub fn table_2(effort: Effort) -> Result<Section, ChoreError> {
    let (paper, facts) = of_the_paper()?;
    let (products, same) = in_the_papers_form()?;
    let (beyond, more) = beyond_the_paper(effort)?;
    Ok(Section {
        title: "Linden and Wolper (SPIN 2010), Table 2",
        introduction: INTRODUCTION,
        tables: vec![paper, products, beyond],
        facts: facts.into_iter().chain(same).chain(more).collect(),
        reading: READING,
    })
}

const INTRODUCTION: &str = "\
The symbolic engine under TSO, buffers unbounded; it goes on after the first error and counts distinct error states. The
column \"automata\" is the number of automaton states of all stored states together.";

const READING: &str = "\
What must agree: the facts above. What differs: the number of states, because a state of the paper has control points, a
memory and one language for each buffer, while one of ours has a memory and a single language for all threads, control
points included; so ours are fewer and larger, which the column of the automata shows. The depth, because what a thread
does alone in one memory is no step. The number of errors, because the paper counts states of its search, which differ in
their automata too, and ours differ in their control points or their memory: all of those there are. The second table has
states of the paper's form and counts their errors as the paper does, automata included. Which languages a search comes
across depends on the order of the transitions, on when it accelerates and on the text of the programs; the paper gives
neither the first nor the last. So the figures are of the same size, not the same.";

fn of_the_paper() -> Result<(Table, [Fact; 2]), ChoreError> {
    let mut table = Table::new(
        "The programs of the paper.",
        &[
            "program",
            "stored, paper",
            "visited, paper",
            "s, paper",
            "depth, paper",
            "errors, paper",
            "stored",
            "visited",
            "time, s",
            "depth",
            "errors",
            "automata",
        ],
    );
    let (mut agree, mut explored) = (true, true);
    for experiment in &EXPERIMENTS {
        let printed = &experiment.printed;
        let (report, elapsed) = verify(&format!("papers/{}", experiment.program))?;
        agree &= (report.errors > 0) == (printed.errors > 0);
        explored &= !matches!(report.verdict, Verdict::Inconclusive(_)) && report.states_stored < MAX_STATES;
        let ours = figures(&report, elapsed);
        let theirs = [
            experiment.name.to_owned(),
            grouped(printed.stored),
            grouped(printed.visited),
            printed.seconds.to_owned(),
            grouped(printed.depth),
            grouped(printed.errors),
        ];
        table.row(theirs.into_iter().chain(ours).collect());
    }
    let facts = [
        Fact { claim: "errors in every version without syncs and none in those with them", holds: agree },
        Fact { claim: "repeated entry is explored to the end", holds: explored },
    ];
    Ok((table, facts))
}

/// The same programs, searched with states of the paper's form.
fn in_the_papers_form() -> Result<(Table, [Fact; 1]), ChoreError> {
    let mut table = Table::new(
        "The same programs, searched as the paper does: one language for each buffer, sleep sets, cycles accelerated one by \
         one. Errors are states of that search, told apart by their automata as well.",
        &[
            "program",
            "stored, paper",
            "visited, paper",
            "depth, paper",
            "errors, paper",
            "stored",
            "visited",
            "time, s",
            "depth",
            "errors",
        ],
    );
    let mut agree = true;
    for experiment in &EXPERIMENTS {
        let printed = &experiment.printed;
        let (report, elapsed) = verify_with(&format!("papers/{}", experiment.program), Method::Products)?;
        let errors = report.symbolic_errors.unwrap_or(0);
        agree &= (errors > 0) == (printed.errors > 0) && !matches!(report.verdict, Verdict::Inconclusive(_));
        table.row(vec![
            experiment.name.to_owned(),
            grouped(printed.stored),
            grouped(printed.visited),
            grouped(printed.depth),
            grouped(printed.errors),
            grouped(report.states_stored),
            grouped(report.states_visited),
            seconds(elapsed),
            grouped(report.max_depth),
            grouped(errors),
        ]);
    }
    Ok((table, [Fact { claim: "both of these come out with states of the paper's form as well", holds: agree }]))
}

fn beyond_the_paper(effort: Effort) -> Result<(Table, [Fact; 1]), ChoreError> {
    let mut table = Table::new(
        "The other programs of the paper, and programs beyond it, entered or passed again and again.",
        &["program", "version", "verdict", "stored", "visited", "time, s", "depth", "errors", "automata"],
    );
    let mut expected = true;
    for beyond in BEYOND.iter().filter(|beyond| effort == Effort::Full || !beyond.is_long) {
        let (report, elapsed) = verify(beyond.program)?;
        expected &= match report.verdict {
            Verdict::Verified => !beyond.is_wrong,
            Verdict::Violated(_) => beyond.is_wrong && report.states_stored < MAX_STATES,
            Verdict::Inconclusive(_) => false,
        };
        table.row(row(beyond.name, beyond.version, &report, elapsed));
    }
    let claim = "beyond the paper: errors without the fences a program needs, none with them, all explored to the end";
    Ok((table, [Fact { claim, holds: expected }]))
}

fn row(name: &str, version: &str, report: &SymbolicReport, elapsed: Duration) -> Vec<String> {
    let verdict = match report.verdict {
        Verdict::Verified => "verified",
        Verdict::Violated(_) => "violated",
        Verdict::Inconclusive(_) => "inconclusive",
    };
    [name, version, verdict].map(str::to_owned).into_iter().chain(figures(report, elapsed)).collect()
}

/// Stored, visited, time, depth, errors, automata.
fn figures(report: &SymbolicReport, elapsed: Duration) -> [String; 6] {
    [
        grouped(report.states_stored),
        grouped(report.states_visited),
        seconds(elapsed),
        grouped(report.max_depth),
        grouped(report.errors),
        grouped(report.automaton_states),
    ]
}

fn verify(name: &str) -> Result<(SymbolicReport, Duration), ChoreError> {
    verify_with(name, Method::Both)
}

fn verify_with(name: &str, method: Method) -> Result<(SymbolicReport, Duration), ChoreError> {
    let program = repository::program(name)?;
    let options = SymbolicOptions {
        all_errors: true,
        method,
        max_states: Some(MAX_STATES),
        ..SymbolicOptions::new(MemoryModel::Tso)
    };
    let start = Instant::now();
    let report = symbolic::verify(&program, &options, &Budget::unlimited(), &())
        .map_err(|error| ChoreError::engine(name, &error))?;
    Ok((report, start.elapsed()))
}
