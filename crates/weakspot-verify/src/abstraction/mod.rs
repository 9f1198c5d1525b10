//! `verify --engine abstract`: partial-coherence abstractions of unbounded store buffers (Kuperstein, Vechev, Yahav,
//! PLDI 2011), with value abstractions.
//!
//! A buffer is represented by the latest store, the oldest `k` stores in order, and the *set* of the stores between. That
//! is finite, so every program that is finite-state under SC is explored to the end, whatever its buffers do; and it
//! covers everything the machine can do, so what is verified here holds for unbounded buffers. The other way round an
//! abstract violation need not be real.
//!
//! | paper | here |
//! |---|---|
//! | Sec. 3.3 and 3.4, concrete PSO and TSO | [`weakspot_model::machine`] |
//! | Sec. 4.1, `β_B`, ⟨l, S, H⟩, `⊑_b` | `buffer` |
//! | Sec. 4.1, `⊑_s` and the antichains 𝔸 | `store` |
//! | Sec. 4.1, α and β (for tests) | [`covers`] |
//! | Sec. 4.1, "Domain of variables" | [`value`], `arithmetic`, `valuation`, `spread`, `run` |
//! | Sec. 4.2, Sem. 3 | `buffer` (STORE, FLUSH), `system` (the rest) |
//! | Sec. 4.3, Sem. 4 and its order | `buffer` |
//! | the naive set abstraction of Sec. 4.2 and 6 | [`Domain::Set`] |
//! | Sec. 5.2 and 5.3, labelled stores and the transition system | [`graph`] |
//! | – (is a counterexample real?) | `concretise` |
//!
//! # What the answers mean
//! * [`AbstractVerdict::Verified`] is a proof for unbounded buffers. One reservation: a variable with a value domain is a
//!   mathematical integer once its bounds are infinite (see [`value`]).
//! * [`AbstractVerdict::Violated`] is real: the execution has been replayed on the reference machine.
//! * [`AbstractVerdict::Alarm`]: the abstraction breaks the specification, and no real execution was found that does.
//!   A larger `k` may prove the program correct, or a longer search may show that it is not.
//!
//! # Beyond the paper
//! Store-store fences, mutexes, condition variables, TSO with the latest store of each location, deadlock and `final`.
//! What is approximated, and why that is sound, stands in `buffer`.
//!
//! Deliberately absent: partial-order reduction (the states and their numbers are those of the paper), parallel search,
//! relations between variables (two tickets that were drawn one after the other are two intervals, and their order is
//! lost).

mod arithmetic;
mod buffer;
mod buffers;
mod concretise;
pub mod covers;
mod failure;
pub mod graph;
mod locals;
mod run;
mod search;
mod spread;
mod store;
mod system;
mod valuation;
pub mod value;

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;
use weakspot_model::ir::Program;
use weakspot_model::machine::Machine;
use weakspot_model::problem::Problem;
use weakspot_model::replay::Witness;
use weakspot_model::task::{Budget, Limit, Progress};

use self::search::{Found, Search, Visitor};
use self::system::Step;
pub use self::valuation::ValueDomain;
use crate::explicit::InternalError;

/// The abstract domain of buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Domain {
    /// The set of pending stores, nothing else.
    Set,
    /// Fully disjunctive: the latest store, the oldest k in order, and exactly the set between (Sec. 4.1 and 4.2).
    Fd,
    /// Partially disjunctive: as `Fd`, with a set that may be too large (Sec. 4.3).
    Pd,
}

impl Domain {
    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Fd => "fd",
            Self::Pd => "pd",
        }
    }
}

/// How to search.
#[derive(Debug, Clone)]
pub struct AbstractOptions {
    /// The memory model.
    pub model: MemoryModel,
    /// The domain of buffers.
    pub domain: Domain,
    /// How many of the oldest stores of a buffer are kept in order; not used by [`Domain::Set`].
    pub k: u32,
    /// The domain of each location's values, in the order of [`Program::locations`]; exact where there is none, and past
    /// the end.
    pub values: Vec<Option<ValueDomain>>,
    /// A deadlock is not a problem.
    pub allow_deadlock: bool,
    /// A waiting thread may wake without a notification.
    pub spurious_wakeups: bool,
    /// Stop after this many states.
    pub max_states: Option<u64>,
}

impl AbstractOptions {
    /// The defaults for a model: `fd` with k = 1.
    pub fn new(model: MemoryModel) -> Self {
        Self {
            model,
            domain: Domain::Fd,
            k: 1,
            values: Vec::new(),
            allow_deadlock: false,
            spurious_wakeups: false,
            max_states: None,
        }
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbstractVerdict {
    /// No execution breaks the specification.
    Verified,
    /// This one does.
    Violated(Witness),
    /// An abstract execution does, and no real one was found.
    Alarm(Problem),
    /// A limit was reached.
    Inconclusive(Limit),
}

/// What came of a search.
#[derive(Debug, Clone)]
pub struct AbstractReport {
    /// The answer.
    pub verdict: AbstractVerdict,
    /// The k it was found with.
    pub k: u32,
    /// Abstract states stored, retired ones included; of all searches if k has climbed.
    pub states: u64,
    /// Abstract transitions taken.
    pub transitions: u64,
}

/// Does the program meet its specification, buffers unbounded? Asks with one k.
pub fn verify(
    program: &Program,
    options: &AbstractOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<AbstractReport, InternalError> {
    Ok(verify_once(program, options, budget, progress)?.0)
}

/// Is the program proved correct with one k, and how many states were stored? An alarm is only followed along its path.
pub(crate) fn prove(
    program: &Program,
    options: &AbstractOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> (bool, u64) {
    let (report, _) = look(program, options, budget, progress);
    (report.verdict == AbstractVerdict::Verified, report.states)
}

fn verify_once(
    program: &Program,
    options: &AbstractOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<(AbstractReport, Lossy), InternalError> {
    let (mut report, lossy) = look(program, options, budget, progress);
    if matches!(report.verdict, AbstractVerdict::Alarm(_)) {
        let machine = machine(program, options);
        if let Some(witness) = concretise::search(&machine, options, budget, progress)? {
            report.verdict = AbstractVerdict::Violated(witness);
        }
    }
    Ok((report, lossy))
}

/// Has some buffer lost the order of its stores?
type Lossy = bool;

/// The largest k that [`climb`] tries.
pub const MOST_K: u32 = 16;

/// Asks with k = 0, 1, 2, … until the program is verified, really violated, or a limit is reached.
///
/// Where no buffer has lost the order of its stores, a larger k changes nothing: then it ends as well.
pub fn climb(
    program: &Program,
    options: &AbstractOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<AbstractReport, InternalError> {
    let start = AbstractOptions { k: 0, ..options.clone() };
    let (mut report, mut lossy) = verify_once(program, &start, budget, progress)?;
    for k in 1..=MOST_K {
        if options.domain == Domain::Set || !lossy || !matches!(report.verdict, AbstractVerdict::Alarm(_)) {
            break;
        }
        let next;
        (next, lossy) = look(program, &AbstractOptions { k, ..options.clone() }, budget, progress);
        report = AbstractReport {
            states: report.states + next.states,
            transitions: report.transitions + next.transitions,
            ..next
        };
    }
    Ok(report)
}

/// One search; a failure is tried on the machine along its path.
fn look(
    program: &Program,
    options: &AbstractOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> (AbstractReport, Lossy) {
    let mut search = Search::new(program, options, false);
    let mut first = FirstFailure::default();
    let ended = search.run(&mut first, budget, progress);
    let verdict = match (first.0, ended) {
        (Some(found), _) => judge(program, options, &search, found),
        (None, Err(limit)) => AbstractVerdict::Inconclusive(limit),
        (None, Ok(())) => AbstractVerdict::Verified,
    };
    let states = search.store.len() as u64;
    let report = AbstractReport { verdict, k: options.k, states, transitions: search.transitions };
    (report, search.system.buffers.lossy)
}

fn judge(program: &Program, options: &AbstractOptions, search: &Search<'_>, found: Found) -> AbstractVerdict {
    let mut path = found.state.map_or_else(Vec::new, |state| search.path_to(state));
    path.extend(found.step);
    match concretise::follow(&machine(program, options), &path, options.allow_deadlock) {
        Some(witness) => AbstractVerdict::Violated(witness),
        None => AbstractVerdict::Alarm(found.failure.describe(program)),
    }
}

/// How much there is to explore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explored {
    /// Abstract states stored, retired ones included.
    pub states: u64,
    /// Abstract transitions.
    pub transitions: u64,
    /// Does the abstraction break the specification?
    pub fails: bool,
}

/// Explores everything, errors or not: the figures of the paper's Table 1.
pub fn explore(
    program: &Program,
    options: &AbstractOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Explored, Limit> {
    let mut search = Search::new(program, options, false);
    let mut failures = AnyFailure::default();
    search.run(&mut failures, budget, progress)?;
    Ok(Explored { states: search.store.len() as u64, transitions: search.transitions, fails: failures.0 })
}

fn machine<'p>(program: &'p Program, options: &AbstractOptions) -> Machine<'p> {
    Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, options.model) }
}

/// Stops at the first failure.
#[derive(Default)]
struct FirstFailure(Option<Found>);

impl Visitor for FirstFailure {
    fn failure(&mut self, found: Found) -> bool {
        self.0 = Some(found);
        true
    }

    fn transition(&mut self, _from: u32, _thread: ThreadId, _step: Step, _to: u32) {}
}

/// Goes on after failures.
#[derive(Default)]
struct AnyFailure(bool);

impl Visitor for AnyFailure {
    fn failure(&mut self, _found: Found) -> bool {
        self.0 = true;
        false
    }

    fn transition(&mut self, _from: u32, _thread: ThreadId, _step: Step, _to: u32) {}
}
