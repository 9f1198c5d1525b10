//! Models, with loom's options.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weakspot::{Failure, FailureKind, Report};

use crate::words;

/// loom's limit on branches when nobody says otherwise. It is there because loom does not see that a loop makes no
/// progress; a number that nobody chose is no reason to stop.
const DEFAULT_MAX_BRANCHES: usize = 1_000;

/// loom's limit on threads when nobody says otherwise: the room that it has. A smaller one was chosen by somebody.
const DEFAULT_MAX_THREADS: usize = crate::MAX_THREADS;

/// How many schedules are run of a model that does not repeat itself, for how long, and from which seed.
const SAMPLES: u64 = 10_000;
const SAMPLING: Duration = Duration::from_secs(10);
const SEED: u64 = 1;

/// Options of a model. Mirrors `loom::model::Builder`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Builder {
    /// How many threads the model may have, the first one included. loom's own number, 5, is no limit here.
    pub max_threads: usize,
    /// More events in one execution than weakspot's own limit. `LOOM_MAX_BRANCHES`
    pub max_branches: usize,
    /// Stop after so many executions. `LOOM_MAX_PERMUTATIONS`
    pub max_permutations: Option<usize>,
    /// Stop after this time. `LOOM_MAX_DURATION`, in seconds
    pub max_duration: Option<Duration>,
    /// Only executions with at most so many preemptions. `LOOM_MAX_PREEMPTIONS`
    pub preemption_bound: Option<usize>,
    /// Where the schedule of an execution that fails is written, and read from in the next run: that execution is run
    /// again, and all of them if it does not fail any more. `LOOM_CHECKPOINT_FILE`
    pub checkpoint_file: Option<PathBuf>,
    /// Not needed: the file is written when an execution fails. `LOOM_CHECKPOINT_INTERVAL`
    pub checkpoint_interval: usize,
    /// Not needed: everything is explored.
    pub expect_explicit_explore: bool,
    /// Not needed: every event has its place. `LOOM_LOCATION`
    pub location: bool,
    /// Log every execution. `LOOM_LOG`
    pub log: bool,
}

impl Default for Builder {
    #[track_caller]
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// The options of the environment.
    ///
    /// # Panics
    /// If a `LOOM_*` variable is not what it should be.
    #[track_caller]
    pub fn new() -> Self {
        Self {
            max_threads: DEFAULT_MAX_THREADS,
            max_branches: number("LOOM_MAX_BRANCHES").unwrap_or(DEFAULT_MAX_BRANCHES),
            max_permutations: number("LOOM_MAX_PERMUTATIONS"),
            max_duration: number("LOOM_MAX_DURATION").map(Duration::from_secs),
            preemption_bound: number("LOOM_MAX_PREEMPTIONS"),
            checkpoint_file: env::var_os("LOOM_CHECKPOINT_FILE").filter(|file| !file.is_empty()).map(PathBuf::from),
            checkpoint_interval: number("LOOM_CHECKPOINT_INTERVAL").unwrap_or(20_000),
            expect_explicit_explore: false,
            location: env::var_os("LOOM_LOCATION").is_some(),
            log: env::var("LOOM_LOG").is_ok_and(|text| !["", "off", "0"].contains(&text.trim())),
        }
    }

    /// Sets [`Builder::checkpoint_file`].
    pub fn checkpoint_file(&mut self, file: &str) -> &mut Self {
        self.checkpoint_file = Some(file.into());
        self
    }

    /// Explores the executions of `f`.
    ///
    /// # Panics
    /// If one of them fails, with the report.
    #[track_caller]
    pub fn check<F>(&self, f: F)
    where
        F: Fn() + Sync + Send + 'static,
    {
        let report = self.explore(&Arc::new(f));
        if let Some(file) = &self.checkpoint_file
            && let Some(schedule) = report.replay()
            && let Err(error) = fs::write(file, schedule)
        {
            panic!("the checkpoint file {} cannot be written: {error}\n{report}", file.display());
        }
        let words = words::of_loom(&report).map(|words| format!("\n\nin loom's words: {words}"));
        assert!(!report.ends_test(), "{report}{}", words.unwrap_or_default());
        if let Some(remark) = report.remark(self.weakspot().log) {
            eprintln!("{remark}");
        }
    }

    /// Explores all executions. Tests of loom may keep something in `std` statics or thread-locals from one execution to
    /// the next, so that executions are not repeated exactly; loom does not mind as long as they look alike. Of these,
    /// random schedules are run.
    #[track_caller]
    fn explore<F>(&self, body: &Arc<F>) -> Report
    where
        F: Fn() + Sync + Send + 'static,
    {
        let start = Instant::now();
        let mut report = run(&self.weakspot(), body);
        let is_past = |failure: &Failure| matches!(failure.kind, FailureKind::Schedule);
        if self.checkpoint().is_some() && report.failure.as_ref().is_none_or(is_past) {
            eprintln!("weakspot: {}: all are explored", why_not_again(&report));
            let mut all = self.weakspot();
            all.replay = None;
            report = run(&all, body);
        }
        let Some(Failure { kind: FailureKind::NotDeterministic, message, .. }) = &report.failure else {
            return report;
        };
        let mut sampling = self.weakspot();
        (sampling.seed, sampling.replay) = (Some(SEED), None);
        sampling.max_executions = Some(sampling.max_executions.unwrap_or(SAMPLES).min(SAMPLES));
        let left = sampling.max_duration.map(|most| most.saturating_sub(start.elapsed()));
        sampling.max_duration = Some(left.unwrap_or(SAMPLING).min(SAMPLING));
        let sampled = run(&sampling, body);
        if matches!(&sampled.failure, Some(Failure { kind: FailureKind::NotDeterministic, .. })) {
            return report;
        }
        eprintln!(
            "weakspot: the model is not deterministic: {message} So {} random schedules were run instead of all",
            sampled.executions
        );
        sampled
    }

    /// The same options for weakspot; `WEAKSPOT_*` variables count where loom has no word.
    fn weakspot(&self) -> weakspot::Builder {
        let mut builder = weakspot::Builder::new();
        builder.max_events = builder.max_events.max(u32::try_from(self.max_branches).unwrap_or(u32::MAX));
        if self.max_threads < DEFAULT_MAX_THREADS {
            builder.max_threads = builder.max_threads.min(self.max_threads);
        }
        if let Some(count) = self.max_permutations {
            builder.max_executions = Some(count as u64);
        }
        if self.max_duration.is_some() {
            builder.max_duration = self.max_duration;
        }
        if let Some(bound) = self.preemption_bound {
            builder.max_preemptions = Some(u32::try_from(bound).unwrap_or(u32::MAX));
        }
        if let Some(schedule) = self.checkpoint() {
            builder.replay = Some(schedule);
        }
        builder.log |= self.log;
        // Threads that yield in loom run again when others have.
        builder.fair = true;
        // What an access to a cell does last cannot be overtaken in loom.
        builder.lasting = false;
        builder
    }

    fn checkpoint(&self) -> Option<String> {
        let text = fs::read(self.checkpoint_file.as_ref()?).ok()?;
        Some(String::from_utf8_lossy(&text).trim().to_owned())
    }
}

/// Explores it. (No closure: its caller would be here, and not in the test.)
#[track_caller]
fn run<F: Fn() + Sync + Send + 'static>(builder: &weakspot::Builder, body: &Arc<F>) -> Report {
    let body = Arc::clone(body);
    builder.check(move || body())
}

/// Why an execution that a checkpoint file tells of is not all there is to say.
fn why_not_again(report: &Report) -> String {
    match &report.failure {
        Some(failure) => format!("the execution of the checkpoint file cannot be run ({})", failure.message),
        None => "the execution of the checkpoint file does not fail any more".to_owned(),
    }
}

/// The number that a variable is; one that is empty counts as if it was not there.
#[track_caller]
fn number<T: FromStr>(variable: &str) -> Option<T> {
    let text = env::var_os(variable).filter(|text| !text.is_empty())?;
    let number = text.to_str().and_then(|text| text.trim().parse().ok());
    assert!(
        number.is_some(),
        "{variable}={} should be a whole number, 0 or more, that is not too large",
        text.display()
    );
    number
}

/// Explores the executions of `f` with the options of the environment.
///
/// # Panics
/// If one of them fails, with the report.
#[track_caller]
pub fn model<F>(f: F)
where
    F: Fn() + Sync + Send + 'static,
{
    Builder::new().check(f);
}
