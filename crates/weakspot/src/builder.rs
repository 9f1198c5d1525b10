//! How a model is checked.

use std::any::TypeId;
use std::cell::Cell;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::Report;
use crate::failure::SourcePlace;
use crate::replay::Which;
use crate::strengthen::Change;
use weakspot_model::buffer::MemoryModel;

/// Which store-buffer violations make a test fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailOn {
    /// Those that cause a failure in some relaxed execution; others are printed as notes.
    Harmful,
    /// All.
    Unsafe,
    /// None; what comes of them is not looked at.
    Nothing,
}

/// How a model is checked. [`Builder::new`] takes what the environment says.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Builder {
    /// The memory model of the processor (`WEAKSPOT_MODEL`: `sc`, `tso`, `pso`).
    pub model: MemoryModel,
    /// Explore schedules with at most this many preemptions only (`WEAKSPOT_MAX_PREEMPTIONS`).
    pub max_preemptions: Option<u32>,
    /// Give up after this many executions, those that ended blocked included; one is always made
    /// (`WEAKSPOT_MAX_EXECUTIONS`). So do a hundred times as many explorations that come to nothing (10,000 at least). With a
    /// `seed`: how many schedules are tried.
    pub max_executions: Option<u64>,
    /// Events that one execution may have.
    pub max_events: u32,
    /// Rounds of a loop that looks a bounded number of times and then does something else ("spin ten times, then park")
    /// that are explored in all ways. Of loops with more rounds only the first two and the last are, and the report says
    /// so.
    pub max_spins: u32,
    /// How often a loop without `spin_loop` or `yield_now` may read the same value in a row. One that reads it more often, and
    /// another number of times in each execution, is taken to wait for ever without saying so, which is a failure.
    pub max_retries: u32,
    /// Take scheduling to be fair: a loop with `spin_loop` or `yield_now` that fails after some rounds without news from
    /// other threads (`assert!(rounds < 1000)`) is taken to wait; if nobody can end its waiting, that is a livelock.
    /// Otherwise the failure is reported, since no real scheduler promises anything. A thread that has gone round no more
    /// than `max_spins` times and then does more than look before it fails is taken to fail for another reason.
    pub fair: bool,
    /// An access to a cell lasts until its call is over or its pointer is dropped: who gives up a lock, or wakes somebody,
    /// while it lasts, lets others race with it. Otherwise what an access does last is taken to come after it, as in loom.
    pub lasting: bool,
    /// Give up after this time (`WEAKSPOT_MAX_DURATION`, in seconds).
    pub max_duration: Option<Duration>,
    /// Threads a model may have, the first one included: 1 or more (`WEAKSPOT_MAX_THREADS`).
    pub max_threads: usize,
    /// Workers, each with an OS thread of its own (`WEAKSPOT_JOBS`). The answer is the same whatever their number. A model
    /// that uses atomics, locks or cells that are older than an execution (statics, captured values), that starts some
    /// of its threads in some executions only, or that is not explored completely (`max_executions`, `max_preemptions`,
    /// `seed`) has one worker.
    ///
    /// 0: one for the first second, then one on every core that no other model of the process uses; nothing is explored
    /// again for that. What goes wrong because executions run at the same time (something of `std` that they share) is no
    /// failure then: one worker explores everything again.
    ///
    /// It is 1 unless somebody says otherwise, because executions that share something of `std` may also go *right* because
    /// others run at the same time: `let before = COUNT.load(…); …; assert!(COUNT.load(…) > before)` does.
    pub jobs: usize,
    /// Watch for store-buffer violations?
    pub monitor: bool,
    /// Which of them make a test fail (`WEAKSPOT_FAIL_ON`: `harmful`, `unsafe`, `nothing`).
    pub fail_on: FailOn,
    /// Operations that count as stronger than the source has them: what a report suggests can be tried out so.
    /// A place that no operation has is noted in the report. (`WEAKSPOT_STRENGTHENED`: `SeqCst@src/lib.rs:7:10`, with `;` between
    /// several.)
    pub strengthened: Vec<(SourcePlace, Change)>,
    /// Explore random schedules from this seed instead of all.
    pub seed: Option<u64>,
    /// Run exactly this schedule (`WEAKSPOT_REPLAY`).
    pub replay: Option<String>,
    /// Print what comes of each model (`WEAKSPOT_LOG`).
    pub log: bool,
}

/// How many threads a model may have: the waiters of a condition variable are the bits of a number.
pub const MAX_THREADS: usize = 60;

impl Default for Builder {
    fn default() -> Self {
        Self {
            model: MemoryModel::Tso,
            max_preemptions: None,
            max_executions: None,
            max_events: 50_000,
            max_spins: 16,
            max_retries: 2_000,
            fair: false,
            lasting: true,
            max_duration: None,
            max_threads: MAX_THREADS,
            jobs: 1,
            monitor: true,
            fail_on: FailOn::Harmful,
            strengthened: Vec::new(),
            seed: None,
            replay: None,
            log: false,
        }
    }
}

#[track_caller]
fn variable(name: &str) -> Option<String> {
    let text = std::env::var_os(name).filter(|text| !text.is_empty())?;
    match text.into_string() {
        Ok(text) => Some(text),
        Err(text) => panic!("{name}={} is no text", text.display()),
    }
}

/// Numbers that a variable may be.
trait Number: std::str::FromStr {
    const LARGEST: Self;
}

impl Number for u32 {
    const LARGEST: Self = Self::MAX;
}

impl Number for u64 {
    const LARGEST: Self = Self::MAX;
}

impl Number for usize {
    const LARGEST: Self = Self::MAX;
}

#[track_caller]
fn number<T: Number + std::fmt::Display>(name: &str) -> Option<T> {
    let text = variable(name)?;
    let number = text.trim().parse().ok();
    assert!(number.is_some(), "{name}={text} should be a whole number from 0 to {}", T::LARGEST);
    number
}

#[track_caller]
fn seconds(name: &str) -> Option<Duration> {
    let text = variable(name)?;
    let seconds = text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    assert!(seconds.is_some(), "{name}={text} should be a number of seconds, 0 or more");
    seconds
}

#[track_caller]
fn fail_on() -> Option<FailOn> {
    let text = variable("WEAKSPOT_FAIL_ON")?;
    Some(match text.trim().to_ascii_lowercase().as_str() {
        "harmful" => FailOn::Harmful,
        "unsafe" => FailOn::Unsafe,
        "nothing" => FailOn::Nothing,
        _ => panic!("WEAKSPOT_FAIL_ON={text} should be one of harmful, unsafe, nothing"),
    })
}

#[track_caller]
fn strengthened() -> Vec<(SourcePlace, Change)> {
    let text = variable("WEAKSPOT_STRENGTHENED").unwrap_or_default();
    let changes = crate::suggestions::changes(&text);
    assert!(
        changes.is_some(),
        "WEAKSPOT_STRENGTHENED={text} should be changes like SeqCst@src/lib.rs:7:10 (or Release, Acquire, AcqRel, AcquireOnFailure, FenceBefore), with ; in between"
    );
    changes.unwrap_or_default()
}

#[track_caller]
fn schedule(text: String) -> String {
    match crate::again::long::read(text) {
        Ok(schedule) => schedule,
        Err(why) => panic!("WEAKSPOT_REPLAY: {why}"),
    }
}

thread_local! {
    /// Models that this OS thread has explored. A test has an OS thread of its own.
    static MODELS: Cell<u32> = const { Cell::new(0) };
}

impl Builder {
    /// Everything explored, with what the `WEAKSPOT_*` variables of the environment say.
    ///
    /// # Panics
    /// If one of them is not what it should be, or the name of one is misspelt.
    #[track_caller]
    pub fn new() -> Self {
        crate::environment::check_names();
        let mut builder = Self::default();
        if let Some(model) = variable("WEAKSPOT_MODEL") {
            builder.model = match model.trim().to_ascii_lowercase().as_str() {
                "sc" => MemoryModel::Sc,
                "tso" => MemoryModel::Tso,
                "pso" => MemoryModel::Pso,
                _ => panic!("WEAKSPOT_MODEL={model} should be one of sc, tso, pso"),
            };
        }
        builder.max_preemptions = number("WEAKSPOT_MAX_PREEMPTIONS");
        builder.max_duration = seconds("WEAKSPOT_MAX_DURATION");
        builder.max_executions = number("WEAKSPOT_MAX_EXECUTIONS");
        builder.max_threads = number("WEAKSPOT_MAX_THREADS").unwrap_or(builder.max_threads);
        builder.jobs = number("WEAKSPOT_JOBS").unwrap_or(builder.jobs);
        builder.fail_on = fail_on().unwrap_or(builder.fail_on);
        builder.strengthened = strengthened();
        builder.replay = variable("WEAKSPOT_REPLAY").map(schedule);
        builder.log = variable("WEAKSPOT_LOG").is_some_and(|text| !["0", "off", "false", "no"].contains(&text.trim()));
        builder
    }

    /// Explores a model and says what came of it. Unlike loom's, it does not panic if an execution fails: see
    /// [`Builder::model`].
    ///
    /// # Panics
    /// In a thread of a model: that fails the model. If there may be no thread at all.
    #[track_caller]
    #[must_use = "a model that fails does not panic here: use `Builder::model` for that"]
    pub fn check<F: Fn() + Send + Sync + 'static>(&self, body: F) -> Report {
        assert!(
            self.max_threads > 0,
            "`max_threads` must be at least 1: the closure itself runs in a thread of the model"
        );
        if crate::rt::in_model() {
            crate::rt::fail("a model inside a model: a thread of a model cannot explore another one".to_owned());
        }
        let number = MODELS.replace(MODELS.get() + 1) + 1;
        crate::source::note_start(Location::caller());
        let line = Location::caller().line();
        let line = std::thread::current().name().is_none().then_some(line);
        let which = Which { number, line };
        let mut builder = crate::suggestions::as_asked(self);
        let replay = builder.replay.as_deref().and_then(|schedule| crate::replay::for_model(schedule, which));
        builder.replay = replay.map(str::to_owned);
        let mut report = crate::model::check(&builder, &(Arc::new(body) as _), TypeId::of::<F>());
        report.which = which;
        report.keep_long_schedule();
        crate::statistics::record(&report);
        crate::suggestions::record(&report, Location::caller());
        report
    }

    /// Explores a model; panics with the report if that is a failure. Otherwise prints what [`Report::remark`] says.
    #[track_caller]
    pub fn model(&self, body: impl Fn() + Send + Sync + 'static) {
        let report = self.check(body);
        assert!(!report.ends_test(), "{report}");
        if let Some(remark) = report.remark(self.log) {
            eprintln!("{remark}");
        }
    }
}
