//! The objects of `--json`. Other people's scripts read them: fields are only ever added.
//!
//! The types borrow; they are made just before they are printed. Core types derive no serialisation, so that what is
//! promised to scripts is written down in one place. `docs/json.md` shows an example of each object.

mod live;

use serde::Serialize;
use weakspot_model::buffer::{Entry, StoreBuffer};
use weakspot_model::ids::{Loc, Site, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::machine::Effect;
use weakspot_model::problem::Problem;
use weakspot_model::replay::{Ending, Replay, Step};

use crate::herd::LitmusResult;
use crate::timeline::failing_place;

pub use live::{ANY_THREAD, LiveError, LiveFence, LiveModel, Strengthened};

/// What every object begins with.
#[derive(Debug, Clone, Serialize)]
pub struct Head<'a> {
    /// The subcommand.
    pub command: &'static str,
    /// The input as the user named it.
    pub file: &'a str,
    /// `sc`, `tso`, `pso`; `null` where no model matters.
    pub model: Option<&'static str>,
    /// The answer in one word.
    pub verdict: &'static str,
    /// How long it took.
    pub seconds: f64,
}

/// A place in the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place<'a> {
    /// The file as the user named it.
    pub file: &'a str,
    /// One-based.
    pub line: u32,
    /// One-based, in characters.
    pub column: u32,
    /// `a`, `p[1]`, or `final`.
    pub thread: &'a str,
    /// The statement's label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'a str>,
}

impl<'a> Place<'a> {
    /// The place of a site in a thread; no thread is the `final` block.
    pub fn new(program: &'a Program, thread: Option<ThreadId>, site: Site) -> Self {
        let info = &program.sites[site.index()];
        Self {
            file: &program.source.name,
            line: info.position.line,
            column: info.position.column,
            thread: thread.map_or("final", |id| &program.threads[id.index()].name),
            label: info.label.as_deref(),
        }
    }
}

/// What went wrong.
#[derive(Debug, Clone, Serialize)]
pub struct Failure<'a> {
    /// `assertion`, `deadlock`, `mutual-exclusion`, …
    pub kind: &'static str,
    /// In one sentence.
    pub message: &'a str,
    /// Where; of several places (deadlock, mutual exclusion) the first.
    pub at: Option<Place<'a>>,
}

impl<'a> Failure<'a> {
    /// The problem a replayed execution ends with.
    pub fn of(program: &'a Program, replay: &'a Replay) -> Option<Self> {
        let Ending::Failed(problem) = &replay.ending else { return None };
        let Problem { kind, message, .. } = problem;
        let at = failing_place(program, replay, problem).map(|(thread, site)| Place::new(program, thread, site));
        Some(Self { kind: kind.name(), message, at })
    }

    /// A problem that an abstraction has and no execution was found for.
    pub fn possible(program: &'a Program, problem: &'a Problem) -> Self {
        let Problem { kind, message, thread, site } = problem;
        Self { kind: kind.name(), message, at: site.map(|site| Place::new(program, *thread, site)) }
    }
}

/// A store that waits in a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingStore<'a> {
    /// Its location.
    pub location: &'a str,
    /// Its value.
    pub value: i64,
}

/// One step of an execution. Fields that have no meaning for its kind are left out.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Event<'a> {
    /// One-based.
    pub step: usize,
    /// `load`, `store`, `commit`, `rmw`, `fence`, `lock`, `unlock`, `wait`, `reacquire`, `notify`, `choose`,
    /// `leave-critical`, `spurious-wake`; `failed` for an instruction that failed itself.
    pub kind: &'static str,
    /// Where it comes from; for a commit, the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place<'a>>,
    /// The memory cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<&'a str>,
    /// The value loaded, stored, committed or chosen; for `rmw`, the value written if it wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<i64>,
    /// `rmw`: the value it found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<i64>,
    /// `load`: `memory` or `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<&'static str>,
    /// `store`: does it wait in the buffer (or is it visible at once)?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffered: Option<bool>,
    /// `commit`, and `load` from the buffer: the step that issued the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<usize>,
    /// `fence`: `full`, `store_store`, `store_load`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fence: Option<&'static str>,
    /// The mutex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutex: Option<&'a str>,
    /// The condition variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condvar: Option<&'a str>,
    /// `notify`: how many threads it woke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub woken: Option<u32>,
    /// The thread's pending stores afterwards, oldest first (under pso: by location).
    pub buffer: Vec<PendingStore<'a>>,
    /// How many there are, where the list is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer_holds: Option<usize>,
}

/// The steps of a replayed execution.
pub fn trace<'a>(program: &'a Program, replay: &Replay) -> Vec<Event<'a>> {
    let mut buffers = replay.buffers();
    let event = |(index, step): (usize, &Step)| event(program, index, step, buffers.after(step));
    replay.steps.iter().enumerate().map(event).collect()
}

/// So many pending stores are listed with each step: with all of them the text of a long execution would grow with the
/// square of its length.
const MOST_LISTED: usize = 100;

fn event<'a>(program: &'a Program, index: usize, step: &Step, buffer: &StoreBuffer) -> Event<'a> {
    let name = |loc: Loc| program.locations[loc.index()].name.as_str();
    let pending = |entry: &Entry| match *entry {
        Entry::Store { loc, value } => Some(PendingStore { location: name(loc), value }),
        Entry::StoreFence => None,
    };
    let common = Event {
        step: index + 1,
        kind: "failed",
        place: Some(Place::new(program, Some(step.action.thread()), step.site)),
        store: step.store.map(|store| store + 1),
        buffer: buffer.entries().iter().filter_map(pending).take(MOST_LISTED).collect(),
        buffer_holds: Some(buffer.len()).filter(|&stores| stores > MOST_LISTED),
        ..Event::default()
    };
    match step.effect {
        None => common,
        Some(effect) => with_effect(program, common, effect),
    }
}

fn with_effect<'a>(program: &'a Program, common: Event<'a>, effect: Effect) -> Event<'a> {
    let cell = |loc: Loc| Some(program.locations[loc.index()].name.as_str());
    let mutex_name = |id: weakspot_model::ids::MutexId| Some(program.mutexes[id.index()].as_str());
    let condvar_name = |id: weakspot_model::ids::CondvarId| Some(program.condvars[id.index()].as_str());
    match effect {
        Effect::Load { loc, value, forwarded } => {
            let from = Some(if forwarded { "buffer" } else { "memory" });
            Event { kind: "load", location: cell(loc), value: Some(value), from, ..common }
        }
        Effect::Store { loc, value, buffered } => {
            Event { kind: "store", location: cell(loc), value: Some(value), buffered: Some(buffered), ..common }
        }
        Effect::Rmw { loc, read, written } => {
            Event { kind: "rmw", location: cell(loc), value: written, read: Some(read), ..common }
        }
        Effect::Fence(fence) => Event { kind: "fence", fence: Some(fence.name()), ..common },
        Effect::Lock(id) => Event { kind: "lock", mutex: mutex_name(id), ..common },
        Effect::Unlock(id) => Event { kind: "unlock", mutex: mutex_name(id), ..common },
        Effect::Wait { condvar, mutex } => {
            Event { kind: "wait", condvar: condvar_name(condvar), mutex: mutex_name(mutex), ..common }
        }
        Effect::Reacquire { mutex } => Event { kind: "reacquire", mutex: mutex_name(mutex), ..common },
        Effect::Notify { condvar, woken, .. } => {
            Event { kind: "notify", condvar: condvar_name(condvar), woken: Some(woken), ..common }
        }
        Effect::Choose { value } => Event { kind: "choose", value: Some(value), ..common },
        Effect::LeaveCritical => Event { kind: "leave-critical", ..common },
        Effect::Commit { loc, value } => Event { kind: "commit", location: cell(loc), value: Some(value), ..common },
        Effect::SpuriousWake { condvar } => Event { kind: "spurious-wake", condvar: condvar_name(condvar), ..common },
    }
}

/// The answer of `verify`.
#[derive(Debug, Clone, Serialize)]
pub struct Verify<'a> {
    /// `verdict` is `verified`, `violated` or `inconclusive`.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// `explicit`, `symbolic` or `abstract`.
    pub engine: &'static str,
    /// abstract: `set`, `fd` or `pd`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<&'static str>,
    /// abstract: how many stores of each buffer were kept in order; the last one tried if it climbed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// States stored.
    pub states: u64,
    /// Transitions taken.
    pub transitions: u64,
    /// Could a violation be an artefact of an abstraction?
    pub spurious_possible: bool,
    /// Distinct error states; only where the engine counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<u64>,
    /// Are these all error states there are?
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors_are_all: Option<bool>,
    /// symbolic: states generated, whether they were stored or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visited: Option<u64>,
    /// symbolic: the longest path to a stored state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// The bound on the stores one buffer may hold; absent if the engine has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<usize>,
    /// explicit: the most stores any buffer held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_buffer: Option<usize>,
    /// explicit: bytes of the engine's tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Why there is no answer: `buffer`, `time`, `memory`, `cancelled` or `states`; only when `inconclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
    /// What went wrong; only when `violated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure<'a>>,
    /// abstract: what may go wrong; only when `inconclusive` because of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alarm: Option<Failure<'a>>,
    /// The execution that goes wrong; only when `violated`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<Event<'a>>>,
}

/// The answer of `litmus` for one test.
#[derive(Debug, Clone, Serialize)]
pub struct Litmus<'a> {
    /// `verdict` is that of `condition`.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// The test's name.
    pub name: &'a str,
    /// Final states as printed, sorted.
    pub states: Vec<String>,
    /// `Ok` or `No`.
    pub condition: &'static str,
    /// `Always`, `Sometimes` or `Never`.
    pub observation: &'static str,
    /// Store-buffer safe under the model.
    pub robust: bool,
    /// Are these all final states? `false` if loops were cut off.
    pub exhaustive: bool,
    /// Executions that satisfy the condition's formula.
    pub positive: u64,
    /// Executions that do not.
    pub negative: u64,
}

impl<'a> Litmus<'a> {
    /// The object of a result.
    pub fn new(file: &'a str, result: &LitmusResult<'a>) -> Self {
        let counts = result.counts();
        let condition = counts.condition(result.test.quantifier);
        let model = Some(result.model.name());
        Self {
            head: Head { command: "litmus", file, model, verdict: condition, seconds: result.seconds },
            name: &result.test.name,
            states: result.state_lines(),
            condition,
            observation: counts.observation(),
            robust: result.robust,
            exhaustive: !result.unrolled,
            positive: counts.positive,
            negative: counts.negative,
        }
    }
}

/// A pair of accesses that a store buffer turns round.
#[derive(Debug, Clone, Serialize)]
pub struct Violation<'a> {
    /// The store that is late.
    pub store: Place<'a>,
    /// The event of the same thread that it is delayed past; left out where only a monitor saw the violation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<Place<'a>>,
    /// The access of another thread, to the location of the store, that comes before it.
    pub access: Place<'a>,
    /// The happens-before cycle through all of them.
    pub cycle: Vec<Place<'a>>,
    /// What `check --replay` takes to lead here again.
    pub schedule: String,
}

/// The answer of `check`.
#[derive(Debug, Clone, Serialize)]
pub struct Check<'a> {
    /// `verdict` is `safe`, `unsafe`, `error` or `bounded`.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// `attack` or `stateless`.
    pub engine: &'static str,
    /// stateless: `exhaustive`, `preemptions`, `random`, `pct` or `replay`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'static str>,
    /// random, pct: the seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// pct: the depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// The record of the explored executions; only with `--record`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
    /// Was every execution looked at?
    pub exhaustive: bool,
    /// SC executions explored; 0 for the attack engine, which looks at states.
    pub executions: u64,
    /// Explorations that turned out to be no executions; 0 for the attack engine.
    pub blocked: u64,
    /// How many executions tripped the monitor.
    pub borderline: u64,
    /// States stored; 0 for the stateless engine.
    pub states: u64,
    /// What breaks store-buffer safety, one for each pair of accesses.
    pub violations: Vec<Violation<'a>>,
    /// `harmful`, `benign` or `unknown`; only when `unsafe`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impact: Option<&'static str>,
    /// What `--replay` takes to lead to the first problem again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The SC execution of the first problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<Event<'a>>>,
    /// The relaxed execution of the first violation, which no SC execution matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Vec<Event<'a>>>,
    /// A relaxed execution that breaks the specification; only when `harmful`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub harm: Option<Vec<Event<'a>>>,
    /// What went wrong; only when `error`, or `unsafe` and harmful.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure<'a>>,
    /// Which limit stood in the way of a better answer; only when `bounded`, or `unsafe` and unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
}

/// A record of executions.
#[derive(Debug, Clone, Serialize)]
pub struct Recorded {
    /// Where it was written.
    pub file: String,
    /// `text` or `binary`.
    pub format: &'static str,
    /// How many executions it holds.
    pub executions: u64,
    /// How many events they have together.
    pub events: u64,
}

/// A place of a recorded trace: what is not recorded is left out.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedPlace<'a> {
    /// The file as it was named when it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<&'a str>,
    /// One-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// One-based, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The name of the thread.
    pub thread: &'a str,
    /// The statement's label.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'a str>,
}

/// A pair of accesses of a recorded trace that a store buffer turns round.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedViolation<'a> {
    /// The store that can be late.
    pub store: RecordedPlace<'a>,
    /// The access of another thread that can come before it.
    pub access: RecordedPlace<'a>,
    /// The location of both.
    pub location: &'a str,
    /// In how many executions.
    pub executions: u64,
    /// The first of them, counted from 1.
    pub execution: u64,
    /// Its event that is the access, counted from 1.
    pub event: u64,
}

/// The answer of `trace`.
#[derive(Debug, Clone, Serialize)]
pub struct Trace<'a> {
    /// `verdict` is `safe`, `unsafe`, `error` or `bounded`.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// `text` or `binary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<&'static str>,
    /// `sober`, `sober-published` or `operational`.
    pub monitor: &'static str,
    /// Executions read.
    pub executions: u64,
    /// Those of them that ran to their end.
    pub complete: u64,
    /// Events of all executions.
    pub events: u64,
    /// Executions that tripped the monitor.
    pub borderline: u64,
    /// Executions that broke the specification when they were recorded.
    pub errors: u64,
    /// One for each pair of accesses, in the order in which they were found.
    pub violations: Vec<RecordedViolation<'a>>,
    /// The first recorded error; only when `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordedError<'a>>,
    /// What kept it from a better answer; only when `bounded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
}

/// An execution that broke the specification when it was recorded.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedError<'a> {
    /// In one sentence.
    pub message: &'a str,
    /// Which execution, counted from 1.
    pub execution: u64,
}

/// A place in the text of a program.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Insertion {
    /// One-based.
    pub line: u32,
    /// One-based, in characters.
    pub column: u32,
}

/// A fence to be inserted.
#[derive(Debug, Clone, Serialize)]
pub struct InsertedFence<'a> {
    /// The statement it follows; at the start of a block, what the block belongs to. `thread` is the name of the thread,
    /// of the template for all its instances, or of the function.
    pub after: Place<'a>,
    /// Where in the text it goes, which tells the start of a block from the place after it.
    pub insert: Insertion,
    /// `full`, `store_store` or `store_load`.
    pub kind: &'static str,
    /// Which reordering it stops, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer of `fence`.
#[derive(Debug, Clone, Serialize)]
pub struct Fence<'a> {
    /// `verdict` is `none-needed`, `fenced`, `impossible` or `inconclusive`.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// `spec` or `robust`.
    pub goal: &'static str,
    /// `guided` or `avoid`.
    pub strategy: &'static str,
    /// `auto`, `explicit`, `symbolic` or `abstract`.
    pub engine: &'static str,
    /// `set`, `fd` or `pd`; only with `abstract`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<&'static str>,
    /// The k that was asked for; only with `abstract`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k: Option<u32>,
    /// Where fences go; when `inconclusive`, the best placement known to be correct, if there is one.
    pub fences: Vec<InsertedFence<'a>>,
    /// Fences of the text that go; only with `--minimise`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<Vec<Place<'a>>>,
    /// Is no placement with lower cost enough?
    pub minimal: bool,
    /// The number of fences (with `--minimise`, those that stay included), or their weight with `--weights`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// No correct placement costs less than this.
    pub at_least: u64,
    /// Other placements of the same cost; only with `--alternatives`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<Vec<Vec<InsertedFence<'a>>>>,
    /// Are these all of them? Only with `--alternatives`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternatives_complete: Option<bool>,
    /// Placements that were tried.
    pub iterations: u32,
    /// States stored by all searches.
    pub states: u64,
    /// The change as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Where the fenced program was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What goes wrong under SC; only when `impossible`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure<'a>>,
    /// The SC execution that goes wrong; only when `impossible`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<Event<'a>>>,
    /// Which limit was reached; only when `inconclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<&'static str>,
    /// Why there is no answer, in words; only when `inconclusive`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer of `fmt` for one file.
#[derive(Debug, Clone, Serialize)]
pub struct Format<'a> {
    /// `verdict` is `unchanged` or `changed`: is the text in canonical form already?
    #[serde(flatten)]
    pub head: Head<'a>,
    /// Was the file rewritten?
    pub written: bool,
    /// The canonical form; left out with `--check` and `--write`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<&'a str>,
}

/// The answer of `--dump-ir`.
#[derive(Debug, Clone, Serialize)]
pub struct DumpIr<'a> {
    /// `verdict` is `dumped`.
    #[serde(flatten)]
    pub head: Head<'a>,
    /// The intermediate representation.
    pub ir: &'a str,
}

/// One value as text, with a line break at its end.
pub fn to_text(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value);
    text.expect("invariant: every object has string keys and finite numbers") + "\n"
}
