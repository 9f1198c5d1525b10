//! `weakspot litmus`: many small tests at once, results in the order of the arguments.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::litmus::LitmusTest;
use weakspot_model::source::{Diagnostic, Span};
use weakspot_model::task::Budget;
use weakspot_report::herd::LitmusResult;
use weakspot_report::json;
use weakspot_verify::litmus::{self as engine, LitmusError, LitmusOutcome, Scratch};

use super::limits;
use super::shown;
use crate::args::LitmusArgs;
use crate::exit::{Exit, Failure};
use crate::input;
use crate::output::Output;
use crate::progress::{cancelled_by_signal, test_bar};

/// A test that was run.
struct Done {
    file: String,
    test: LitmusTest,
    outcome: LitmusOutcome,
    seconds: f64,
}

impl Done {
    fn result(&self, model: MemoryModel) -> LitmusResult<'_> {
        let Self { test, outcome, seconds, .. } = self;
        let LitmusOutcome { states, robust, unrolled, .. } = outcome;
        LitmusResult { test, model, states, robust: *robust, unrolled: *unrolled, seconds: *seconds }
    }
}

/// Runs the tests. A file that cannot be read does not keep the others from being printed.
pub fn run(args: &LitmusArgs, output: &Output) -> Result<Exit, Failure> {
    let files = input::litmus_files(&args.files)?;
    let mut budget = Budget { cancelled: cancelled_by_signal()?, ..Budget::unlimited() };
    if let Some(seconds) = args.time_limit {
        budget = budget.with_time(Duration::from_secs_f64(seconds));
    }
    let bar = test_bar(output, files.len());
    let results = run_all(&files, args, &budget, &bar);
    bar.finish_and_clear();
    let left_out = files.len() - results.len();
    let (done, failures): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    let done: Vec<Done> = done.into_iter().flatten().collect();
    let failures: Vec<Failure> = failures.into_iter().filter_map(Result::err).collect();
    if !done.is_empty() || failures.is_empty() {
        print(&done, args.model.into(), output)?;
    }
    if !failures.is_empty() {
        return Err(Failure::Several(failures));
    }
    if left_out > 0 {
        output.error(&format!("weakspot: {left_out} of {} tests were not run\n", files.len()));
        return Ok(Exit::NoAnswer);
    }
    let unrolled = done.iter().filter(|done| done.outcome.unrolled).count();
    if unrolled > 0 {
        let rounds = engine::UNROLL;
        output.remark(&format!("weakspot: loops of {unrolled} tests were cut off after {rounds} rounds\n"));
        return Ok(Exit::NoAnswer);
    }
    Ok(Exit::Good)
}

/// Every worker takes the next file until there is none, or the budget is spent. What was run comes back in order.
fn run_all(files: &[PathBuf], args: &LitmusArgs, budget: &Budget, bar: &ProgressBar) -> Vec<Result<Done, Failure>> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(files.len()));
    let model = args.model.into();
    let work = || {
        let mut scratch = Scratch::default();
        while budget.exhausted(0).is_none() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(index) else { break };
            let result = run_one(path, model, budget, &mut scratch);
            results.lock().expect("invariant: no worker panics with the lock").push((index, result));
            bar.inc(1);
        }
    };
    thread::scope(|scope| {
        for _ in 0..limits::processors(args.jobs).min(files.len()) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().expect("invariant: no worker panics with the lock");
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn run_one(path: &Path, model: MemoryModel, budget: &Budget, scratch: &mut Scratch) -> Result<Done, Failure> {
    let test = input::litmus_test(path)?;
    let started = Instant::now();
    let outcome = engine::run_within(&test, model, budget, scratch).map_err(|error| refusal(path, &test, error))?;
    Ok(Done { file: shown(path), test, outcome, seconds: started.elapsed().as_secs_f64() })
}

/// A test that fails in some execution has no final states; the place that fails is shown.
fn refusal(path: &Path, test: &LitmusTest, error: LitmusError) -> Failure {
    match error {
        LitmusError::Failed(problem) => {
            let span = problem.site.map_or(Span::default(), |site| test.program.sites[site.index()].span);
            let diagnostic = Diagnostic::error(problem.kind.name(), problem.message, span)
                .label("fails in an execution that the model allows");
            Failure::Source(Arc::clone(&test.program.source), vec![diagnostic])
        }
        error => Failure::TooLarge { file: shown(path), message: error.to_string() },
    }
}

fn print(done: &[Done], model: MemoryModel, output: &Output) -> Result<(), Failure> {
    if output.json {
        let results: Vec<_> = done.iter().map(|done| (done.file.as_str(), done.result(model))).collect();
        let objects: Vec<_> = results.iter().map(|(file, result)| json::Litmus::new(file, result)).collect();
        return output.object(&objects);
    }
    if output.quiet {
        return output.result(&done.iter().map(|done| observation(&done.result(model))).collect::<String>());
    }
    output.result(&done.iter().map(|done| done.result(model).log()).collect::<String>())
}

/// With `--quiet`: one line a test.
fn observation(result: &LitmusResult<'_>) -> String {
    let counts = result.counts();
    let (name, observed) = (&result.test.name, counts.observation());
    format!("Observation {name} {observed} {} {}\n", counts.positive, counts.negative)
}
