//! What tests share that compare the engines on random programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weakspot_check::{CheckOptions, CheckReport, InternalError, Verdict, check};
use weakspot_front::weak::compile;
use weakspot_model::ir::Program;
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Progress};

/// The program of a text.
pub fn program(text: &str) -> Program {
    compile(&SourceFile::new("test.weak", text)).unwrap_or_else(|errors| panic!("{errors:?}\n{text}")).program
}

/// The answer in a few words.
pub fn name(report: &Result<CheckReport, InternalError>) -> String {
    match report {
        Ok(report) => match &report.verdict {
            Verdict::Safe => "safe".to_owned(),
            Verdict::Unsafe(_) => "unsafe".to_owned(),
            Verdict::Error(witness) => format!("error: {:?}", witness.problem.kind),
            Verdict::Bounded(bound) => format!("bounded: {bound:?}"),
        },
        Err(error) => error.to_string(),
    }
}

/// Ends a search that takes too long.
struct Patience {
    is_over: Arc<AtomicBool>,
    most_graphs: u64,
}

impl Progress for Patience {
    fn update(&self, _: u64, transitions: u64, _: u64) {
        self.is_over.store(transitions > self.most_graphs, Ordering::Relaxed);
    }
}

/// What the stateless engine says after so many graphs.
pub fn answer(program: &Program, options: &CheckOptions, most_graphs: u64) -> Result<CheckReport, InternalError> {
    let is_over = Arc::new(AtomicBool::new(false));
    let budget = Budget { cancelled: Arc::clone(&is_over), ..Budget::unlimited().with_memory(64 << 20) };
    check(program, options, &budget, &Patience { is_over, most_graphs })
}

/// What the exact engine says.
pub fn exact_answer(program: &Program, options: &CheckOptions) -> Result<CheckReport, InternalError> {
    check(program, options, &Budget::unlimited(), &())
}
