//! `verify --engine symbolic`: unbounded store buffers as automata (Linden, Wolper, SPIN 2010), carried further.
//!
//! Sets of store-buffer contents are regular languages. Actions work on whole languages, and a cycle that makes a buffer grow
//! is repeated any number of times in one step. So a program with unbounded loops and unbounded buffers is explored to the
//! end in a few dozen states. There are two searches:
//!
//! * `relation`, for TSO and PSO: a state is a memory and one language for all threads together, control points included.
//! * `explore`: a state has one control point for each thread, one memory, and one language for each store buffer, as in the
//!   paper. It is used for SC (unless errors are to be counted), where the first search gives up, and for the first few
//!   thousand states under PSO, where going deep finds violations sooner.
//!
//! | paper | here |
//! |---|---|
//! | Sec. 2, operational TSO | [`weakspot_model::machine`] |
//! | Sec. 3, buffer automata and their operations | [`automaton`] |
//! | Sec. 3, one representation for many contents | `relation`, `automaton::configurations` |
//! | Sec. 3, a state and its transitions | `state`, `moves` |
//! | Sec. 4, independence | `moves` |
//! | Sec. 4, Alg. 1 to 3: sleep sets, state inclusion | `explore` |
//! | Sec. 4, cycle condition and `cycle(ss, s)` | `accelerate` |
//! | – (counterexamples as executions) | `witness`, `relation::trace` |
//! | Table 2: stored, visited, depth, errors | [`SymbolicReport`] |
//!
//! # What the answers mean
//! * `Verified` and `Violated` are exact for unbounded buffers. A violation has been replayed on the reference machine.
//! * Neither search has to end. Then it goes on until a limit of the budget: `Inconclusive`.
//!
//! # Where it departs from the paper, and why that is sound
//! | departure | argument in |
//! |---|---|
//! | threads run alone while memory stays; one language for all threads | `relation` |
//! | widening, and exact answers from it | `relation` |
//! | due stores are performed with the step before them | `moves` |
//! | finer independence | `moves` |
//! | a fence waits for the own buffer instead of emptying all buffers | LANGUAGE.md |
//! | sleep sets with inclusion: a local invariant, waking, retiring | `explore` |
//! | small states first | `explore` |
//! | acceleration is guessed and checked; cycles may load and commit | `accelerate` |
//! | stores that are overwritten at once may be left out | `accelerate` |
//! | cycles that make several buffers grow | `accelerate` |
//!
//! # PSO
//! `explore` has one buffer for each thread and location. `fence(store_store)` relates the buffers of a thread to one
//! another, which a product of languages cannot express. `relation` can: there the fence is a letter between the stores
//! it separates (`automaton::overtaking`). So the engine refuses such a fence
//! ([`SymbolicError::StoreStoreFence`]) only where `relation` has given up.
//!
//! Deliberately absent: liveness, parallel search, symmetry.

mod accelerate;
pub mod automaton;
mod explore;
mod moves;
mod relation;
mod state;
mod witness;

use thiserror::Error;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Site, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::machine::{Machine, Outcome};
use weakspot_model::replay::{Ending, ReplayError};
use weakspot_model::task::{Budget, Limit, Progress, Verdict};

use self::explore::Explorer;
use self::moves::{System, Unsupported};
use self::relation::{End, Search};

/// Which of the searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The search by memory, and the one over products where that is better or the first gives up.
    Both,
    /// Only the search over products of languages, as the paper has it.
    Products,
}

/// How to search.
#[derive(Debug, Clone)]
pub struct SymbolicOptions {
    /// The memory model.
    pub model: MemoryModel,
    /// A deadlock is not a problem.
    pub allow_deadlock: bool,
    /// A waiting thread may wake without a notification.
    pub spurious_wakeups: bool,
    /// Stop after this many states.
    pub max_states: Option<u64>,
    /// Go on after the first error, and count them all.
    pub all_errors: bool,
    /// Which search.
    pub method: Method,
}

impl SymbolicOptions {
    /// The defaults for a model.
    pub fn new(model: MemoryModel) -> Self {
        Self {
            model,
            allow_deadlock: false,
            spurious_wakeups: false,
            max_states: None,
            all_errors: false,
            method: Method::Both,
        }
    }
}

/// What came of a search; the columns of the paper's Table 2.
#[derive(Debug, Clone)]
pub struct SymbolicReport {
    /// The answer.
    pub verdict: Verdict,
    /// Symbolic states stored: one for each memory reached (`relation`); in the search over products of
    /// languages (`explore`) one for each product, those retired later included.
    pub states_stored: u64,
    /// Symbolic states generated.
    pub states_visited: u64,
    /// Actions taken. What a thread does alone in one memory is none.
    pub transitions: u64,
    /// The longest path to a stored state; an acceleration counts as one step.
    pub max_depth: u64,
    /// Distinct error states found: control and memory of a state in which two threads are inside, a thread is about to
    /// fail, the program is deadlocked or `final` fails. With [`SymbolicOptions::all_errors`], all there are, unless a
    /// limit was reached or the search by memory gave up: then there are at least as many. (The paper gives
    /// the number of states of its own search that are errors: [`SymbolicReport::symbolic_errors`].)
    pub errors: u64,
    /// These are all error states there are.
    pub errors_are_all: bool,
    /// The error states of the search over products, told apart by their automata as well: what the paper's table has,
    /// but for its own order of search. The search by memory has no such states.
    pub symbolic_errors: Option<u64>,
    /// How often a finite set of buffer contents became an infinite one.
    pub accelerations: u64,
    /// States of the automata of all stored states together.
    pub automaton_states: u64,
}

/// Why there is no answer at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SymbolicError {
    /// A store-store fence under PSO, reached with stores pending, in a program the search by memory gives up on.
    #[error(
        "the symbolic engine cannot represent `fence(store_store)` with pending stores in a program this large under pso"
    )]
    StoreStoreFence {
        /// The thread that reached it.
        thread: ThreadId,
        /// The fence.
        site: Site,
    },
    /// A mistake of this engine: the reference machine does not accept the execution.
    #[error("the counterexample does not replay: {0}")]
    Replay(#[from] ReplayError),
    /// A mistake of this engine: the reference machine sees no problem in the execution.
    #[error("the counterexample is none: the execution ends with {ending:?}")]
    NoProblem {
        /// What it ends with.
        ending: Box<Ending>,
    },
    /// A mistake of this engine: no concrete words follow the symbolic path.
    #[error("the counterexample has a gap: no buffer contents follow the symbolic path")]
    Gap,
}

impl SymbolicError {
    /// Is it the program that cannot be represented, rather than a mistake of the engine?
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::StoreStoreFence { .. })
    }
}

impl From<Unsupported> for SymbolicError {
    fn from(Unsupported { thread, site }: Unsupported) -> Self {
        Self::StoreStoreFence { thread, site }
    }
}

/// States of the search over products after which the search by memory is tried, under PSO.
const FIRST_PRODUCTS: u64 = 5_000;

/// Does the program meet its specification, buffers unbounded?
pub fn verify(
    program: &Program,
    options: &SymbolicOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<SymbolicReport, SymbolicError> {
    let machine = Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, options.model) };
    match machine.start().1 {
        Outcome::Continues => {}
        Outcome::Pruned => return Ok(at_once(Verdict::Verified, 0)),
        Outcome::Failed(_) => return Ok(at_once(Verdict::Violated(witness::judge(&machine, Vec::new())?), 1)),
    }
    if options.method == Method::Products {
        return by_products(machine, options, budget, progress);
    }
    if options.model == MemoryModel::Pso && !options.all_errors {
        let most = options.max_states.map_or(FIRST_PRODUCTS, |most| most.min(FIRST_PRODUCTS));
        let first = SymbolicOptions { max_states: Some(most), ..options.clone() };
        match by_products(machine, &first, budget, progress) {
            Ok(SymbolicReport { verdict: Verdict::Inconclusive(Limit::States(_)), .. }) => {}
            Err(error) if error.is_refusal() => {}
            decided => return decided,
        }
    }
    if (options.model != MemoryModel::Sc || options.all_errors)
        && let Some(report) = by_memory(machine, options, budget, progress)?
    {
        return Ok(report);
    }
    by_products(machine, options, budget, progress)
}

/// The search over products of languages.
fn by_products(
    machine: Machine<'_>,
    options: &SymbolicOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<SymbolicReport, SymbolicError> {
    let mut explorer = Explorer::new(System::new(machine), options);
    let limit = explorer.run(budget, progress)?;
    // Sleep sets leave out error states that differ from another by independent actions only.
    let errors_are_all = limit.is_none() && explorer.failure.is_none();
    let verdict = match (explorer.failure.take(), limit) {
        (Some(failure), _) => Verdict::Violated(explorer.witness(&failure)?),
        (None, Some(limit)) => Verdict::Inconclusive(limit),
        (None, None) => Verdict::Verified,
    };
    Ok(SymbolicReport {
        verdict,
        states_stored: explorer.stored(),
        states_visited: explorer.visited,
        transitions: explorer.transitions,
        max_depth: explorer.max_depth(),
        errors: explorer.errors(),
        errors_are_all,
        symbolic_errors: Some(explorer.symbolic_errors()),
        accelerations: explorer.accelerator.accepted,
        automaton_states: explorer.automaton_states(),
    })
}

/// The search by memory; `None` if it gives up.
fn by_memory(
    machine: Machine<'_>,
    options: &SymbolicOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Option<SymbolicReport>, SymbolicError> {
    let mut search = Search::new(machine, options);
    let end = search.run(budget, progress);
    let errors_are_all = matches!(end, End::Done) && (options.all_errors || !search.has_failure());
    let verdict = match (search.take_failure(), end) {
        (Some(failure), _) => Verdict::Violated(search.witness(&failure)?),
        (None, End::Limit(limit)) => Verdict::Inconclusive(limit),
        (None, End::Done) => Verdict::Verified,
        (None, End::GaveUp) => return Ok(None),
    };
    Ok(Some(SymbolicReport {
        verdict,
        states_stored: search.stored(),
        states_visited: search.visited,
        transitions: search.transitions,
        max_depth: search.max_depth(),
        errors: search.errors(),
        errors_are_all,
        symbolic_errors: None,
        accelerations: search.accelerations,
        automaton_states: search.automaton_states(),
    }))
}

/// The program ends before it has begun.
fn at_once(verdict: Verdict, errors: u64) -> SymbolicReport {
    SymbolicReport {
        verdict,
        states_stored: 0,
        states_visited: 0,
        transitions: 0,
        max_depth: 0,
        errors,
        errors_are_all: true,
        symbolic_errors: None,
        accelerations: 0,
        automaton_states: 0,
    }
}
