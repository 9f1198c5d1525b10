//! `verify --engine explicit`: looks at every state a program can reach under SC, TSO or PSO.
//!
//! ```text
//! store = [ initial state ]                           (store)
//! for state in store, which grows meanwhile:          (search; parallel: by several workers)
//!     actions = all that may happen in state          (successors)
//!     if there are none: judge the state              (deadlock, `final`)
//!     actions = a stubborn set of them                (stubborn)
//!     for action in actions:
//!         if it fails: rebuild the execution, replay  (witness)
//!         append the next state unless it is known
//! ```
//!
//! A state is a handful of numbers (`interner`): one for memory, one for each thread (local state and buffer). What a
//! number stands for is computed when it is first met; from then on an action is a few table look-ups (`tables`) and
//! one look-up in the table of states.
//!
//! # What the answers mean
//! * `Violated` is always real: the execution has been replayed on the reference machine.
//! * `Verified` is exact, for unbounded buffers, although buffers are bounded here: it is given only if no store ever
//!   had to wait for the bound.
//! * `Inconclusive(Limit::Buffer(n))`: some store had to wait, and nothing was found within the bound.
//!
//! Deliberately absent: liveness (a thread that spins for ever breaks nothing), symmetry between instances of a
//! template, and states on disk.

mod access;
mod board;
mod config;
mod interner;
mod outcomes;
mod parallel;
mod search;
mod store;
mod stubborn;
mod successors;
mod tables;
mod witness;

use std::sync::{Mutex, PoisonError};

use thiserror::Error;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::Program;
use weakspot_model::machine::{Machine, Outcome, State};
use weakspot_model::replay::{Ending, ReplayError, Witness};
use weakspot_model::task::{Budget, Limit, Progress, Verdict};

use board::Board;
use interner::Components;
pub use outcomes::{FinalState, Outcomes};
use parallel::Exchange;
use search::{Collected, Goal, Worker};
use tables::Tables;

/// How to search.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub struct ExplicitOptions {
    /// The memory model.
    pub model: MemoryModel,
    /// Pending stores a buffer may hold.
    pub buffer: usize,
    /// Worker threads; 0 counts as 1, more than [`ExplicitOptions::MOST_JOBS`] as that many. The answer and the number
    /// of states do not depend on it; which of several counterexamples is shown may, with more than one.
    pub jobs: usize,
    /// Find a counterexample with the fewest actions; turns the reduction off.
    pub shortest: bool,
    /// Leave out executions that differ from others only in the order of independent actions.
    pub reduce: bool,
    /// A deadlock is not a problem.
    pub allow_deadlock: bool,
    /// A waiting thread may wake without a notification.
    pub spurious_wakeups: bool,
    /// Stop after this many states.
    pub max_states: Option<u64>,
    /// Stop when there are many states and the newest has a greater value, without its sign: there may be no end of them.
    /// It is looked at now and then only.
    pub max_value: Option<u64>,
}

impl ExplicitOptions {
    /// The default bound on buffers.
    pub const DEFAULT_BUFFER: usize = 8;

    /// The most worker threads.
    pub const MOST_JOBS: usize = 256;

    /// The defaults for a model.
    pub fn new(model: MemoryModel) -> Self {
        Self {
            model,
            buffer: Self::DEFAULT_BUFFER,
            jobs: 1,
            shortest: false,
            reduce: true,
            allow_deadlock: false,
            spurious_wakeups: false,
            max_states: None,
            max_value: None,
        }
    }
}

/// What came of a search.
#[derive(Debug, Clone)]
pub struct ExplicitReport {
    /// The answer.
    pub verdict: Verdict,
    /// States stored.
    pub states: u64,
    /// Actions performed.
    pub transitions: u64,
    /// The longest buffer of an expanded state.
    pub max_buffer: usize,
    /// Bytes of all tables at the end, unused capacity included.
    pub stored_bytes: u64,
}

/// A mistake of this engine, never of the program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum InternalError {
    /// The reference machine does not accept the execution.
    #[error("the counterexample does not replay: {0}")]
    Replay(#[from] ReplayError),
    /// The reference machine sees no problem in the execution.
    #[error("the counterexample is none: the execution ends with {ending:?}")]
    NoProblem {
        /// What it ends with.
        ending: Box<Ending>,
    },
    /// No action leads from a state to its child.
    #[error("the counterexample has a gap: no action leads from a state to its successor")]
    NoAction,
}

/// Does the program meet its specification? Panics if a counterexample does not replay, which is a bug of this engine;
/// [`try_verify`] gives it as an error.
pub fn verify(
    program: &Program,
    options: &ExplicitOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> ExplicitReport {
    match try_verify(program, options, budget, progress) {
        Ok(report) => report,
        Err(error) => panic!("internal error of the explicit engine: {error}"),
    }
}

/// Does the program meet its specification?
pub fn try_verify(
    program: &Program,
    options: &ExplicitOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<ExplicitReport, InternalError> {
    let task = Task { machine: machine(program, options), options, budget, progress, goal: Goal::FirstProblem };
    let run = task.run()?;
    let verdict = match (run.witness, run.limit) {
        (Some(witness), _) => Verdict::Violated(witness),
        (None, Some(limit)) => Verdict::Inconclusive(limit),
        (None, None) => Verdict::Verified,
    };
    Ok(ExplicitReport {
        verdict,
        states: run.states,
        transitions: run.transitions,
        max_buffer: run.max_buffer,
        stored_bytes: run.stored_bytes,
    })
}

/// All final states and all kinds of problems. Executions that fail do not go on after the failure.
pub fn outcomes(
    program: &Program,
    options: &ExplicitOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Outcomes, InternalError> {
    let task = Task { machine: machine(program, options), options, budget, progress, goal: Goal::Everything };
    let Run { collected, witness, limit, states, transitions, stored_bytes, .. } = task.run()?;
    let Collected { mut problems, finals } = collected;
    problems.extend(witness.map(|witness| witness.problem.kind));
    Ok(Outcomes { finals, problems, limit, states, transitions, stored_bytes })
}

fn machine<'p>(program: &'p Program, options: &ExplicitOptions) -> Machine<'p> {
    Machine { spurious_wakeups: options.spurious_wakeups, ..Machine::new(program, options.model) }
}

/// A search to be done.
#[derive(Clone, Copy)]
struct Task<'t> {
    machine: Machine<'t>,
    options: &'t ExplicitOptions,
    budget: &'t Budget,
    progress: &'t dyn Progress,
    goal: Goal,
}

/// A search that was done.
#[derive(Default)]
struct Run {
    witness: Option<Witness>,
    collected: Collected,
    limit: Option<Limit>,
    states: u64,
    transitions: u64,
    max_buffer: usize,
    stored_bytes: u64,
}

impl Task<'_> {
    fn run(self) -> Result<Run, InternalError> {
        let (initial, outcome) = self.machine.start();
        match outcome {
            Outcome::Continues => {}
            Outcome::Pruned => return Ok(Run::default()),
            Outcome::Failed(problem) => {
                let witness = Witness { actions: Vec::new(), problem };
                witness.replay(&self.machine)?;
                return Ok(Run { witness: Some(witness), ..Run::default() });
            }
        }
        // A state is one number for memory and one for each thread; its length is known to the compiler.
        match initial.threads.len() + 1 {
            0..=2 => self.search::<2>(&initial),
            3 => self.search::<3>(&initial),
            4 => self.search::<4>(&initial),
            5 => self.search::<5>(&initial),
            6 => self.search::<6>(&initial),
            7 => self.search::<7>(&initial),
            8..=9 => self.search::<9>(&initial),
            10..=17 => self.search::<17>(&initial),
            18..=65 => self.search::<65>(&initial),
            66..=1025 => self.search::<1025>(&initial),
            _ => self.search::<65_537>(&initial),
        }
    }

    fn search<const W: usize>(self, initial: &State) -> Result<Run, InternalError> {
        let jobs = self.options.jobs.clamp(1, ExplicitOptions::MOST_JOBS);
        let mut components = Components::new(self.machine.program, self.options);
        let numbers = components.intern(initial);
        let cells = initial.memory.len() + initial.owners.len();
        let mut row = [0; W];
        row[..numbers.len()].copy_from_slice(&numbers);
        let components = Mutex::new(components);
        let board = Board::new(jobs, self.options.max_states, self.budget, self.progress);
        let new_worker = |exchange| {
            let tables = Tables::new(&components, initial.threads.len(), cells);
            Worker::<W>::new(self.machine, self.options, self.goal, &board, exchange, tables)
        };
        let mut workers: Vec<_> = Exchange::connect(jobs).into_iter().map(new_worker).collect();
        parallel::run(&mut workers, &row);

        let finding = workers.iter().filter_map(|worker| worker.finding).min();
        let witness = finding.map(|finding| witness::rebuild(&self.machine, &mut workers, finding)).transpose()?;
        let mut collected = Collected::default();
        for worker in &mut workers {
            collected.problems.append(&mut worker.collected.problems);
            collected.finals.append(&mut worker.collected.finals);
        }
        drop(workers);
        let components = components.into_inner().unwrap_or_else(PoisonError::into_inner);
        let bound = components.bound_reached.then_some(Limit::Buffer(self.options.buffer));
        let total = board.total();
        Ok(Run {
            witness,
            collected,
            limit: board.limit().or(bound),
            states: total.states,
            transitions: total.transitions,
            max_buffer: components.max_buffer,
            stored_bytes: total.bytes,
        })
    }
}
