//! Litmus tests, decided by enumerating executions instead of interleavings.
//!
//! An execution is a choice of reads-from and coherence order; the axioms of [`weakspot_model::axioms`] say which
//! ones a model allows. A test of two threads has a handful of them where it has hundreds of interleavings and
//! commits, and each is visited exactly once, so [`LitmusOutcome::executions`] is the number of distinct (rf, co).
//!
//! | step | module |
//! |---|---|
//! | each thread's code becomes its control-flow paths: events with symbolic values, and conditions on them | `walk`, `path` |
//! | one path of each thread gives the events of an execution and the program order the model keeps | `graph` |
//! | coherence orders and sources are chosen one at a time, cut off at the first cycle | `search` |
//! | values follow from the sources; they decide whether the paths are taken and which state is reached | `evaluate` |
//!
//! # Bounds
//! Loops are unrolled [`UNROLL`] times; when that cuts off a path, the outcome says `unrolled`. A branch, or a
//! compare-and-exchange, on a value that is not a constant doubles the paths of its thread ([`MAX_PATHS`]).
//!
//! # Deliberately absent
//! Mutexes, condition variables, `critical` blocks and array cells chosen by computed values: no litmus dialect has
//! them, and the explicit engine does. They are refused ([`LitmusError::Unsupported`]), never guessed.

mod evaluate;
mod graph;
mod path;
mod search;
mod walk;

use thiserror::Error;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::litmus::{Condition, LitmusTest, Observable, Quantifier};
use weakspot_model::problem::Problem;
use weakspot_model::task::{Budget, Limit};

use evaluate::Tally;
use graph::Graph;
use path::Paths;
use search::{Search, SearchBuffers, Stop, Task};

/// How often a backward jump is followed before the path is cut off.
pub const UNROLL: u32 = 2;

/// The most control-flow paths one thread may have.
pub const MAX_PATHS: usize = 1 << 16;

/// The most events one execution may have.
pub const MAX_EVENTS: usize = 512;

/// What a model allows a test to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LitmusOutcome {
    /// Values of [`LitmusTest::observed`] at the end, in ascending order, each with the number of executions.
    pub states: Vec<(Vec<i64>, u64)>,
    /// Number of executions: distinct pairs of reads-from and coherence order.
    pub executions: u64,
    /// Does the test's condition, with its quantifier, hold? (herd's `Ok`.)
    pub condition_holds: bool,
    /// How many executions satisfy the condition, without its quantifier, and how many do not.
    pub witnesses: Witnesses,
    /// The same in a word.
    pub observation: Observation,
    /// Is every execution sequentially consistent?
    pub robust: bool,
    /// Some loop was cut off after [`UNROLL`] rounds: there may be more executions.
    pub unrolled: bool,
}

/// Executions for and against the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Witnesses {
    /// Executions that satisfy it.
    pub positive: u64,
    /// Executions that do not.
    pub negative: u64,
}

/// How often the condition is satisfied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Observation {
    /// In every execution.
    Always,
    /// In some.
    Sometimes,
    /// In none.
    Never,
}

impl Observation {
    /// As herd prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::Sometimes => "Sometimes",
            Self::Never => "Never",
        }
    }
}

/// Why a test has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LitmusError {
    /// The program contains something no litmus dialect has.
    #[error("{what} cannot be part of a litmus test")]
    Unsupported {
        /// What it contains.
        what: &'static str,
    },
    /// Too many combinations of branches.
    #[error("a thread has more than {MAX_PATHS} paths through its branches")]
    TooManyPaths,
    /// Too long.
    #[error("an execution has {events} events; at most {MAX_EVENTS} are supported")]
    TooManyEvents {
        /// How many it has.
        events: usize,
    },
    /// Not every execution was looked at.
    #[error("the executions of the test were not all looked at within the limits")]
    OutOf(Limit),
    /// An execution that the model allows runs into a program error.
    #[error("{}", .0.message)]
    Failed(Problem),
}

/// Memory that is used again from test to test.
#[derive(Debug, Default)]
pub struct Scratch {
    paths: Paths,
    graph: Graph,
    buffers: SearchBuffers,
    tally: Tally,
}

/// Enumerates the executions a model allows.
pub fn run(test: &LitmusTest, model: MemoryModel, scratch: &mut Scratch) -> Result<LitmusOutcome, LitmusError> {
    run_within(test, model, &Budget::unlimited(), scratch)
}

/// Enumerates the executions a model allows, unless the budget is spent before.
pub fn run_within(
    test: &LitmusTest,
    model: MemoryModel,
    budget: &Budget,
    scratch: &mut Scratch,
) -> Result<LitmusOutcome, LitmusError> {
    let program = &test.program;
    let Scratch { paths, graph, buffers, tally } = scratch;
    paths.collect(program)?;
    tally.reset();
    let mut chosen = vec![0; program.threads.len()];
    let mut robust = true;
    while !paths.is_impossible() {
        graph.build(model, program.locations.len(), paths.choose(&chosen));
        let task = Task { test, graph, nodes: &paths.nodes, budget };
        let stopped = match graph.len() {
            0..=64 => Search::<1>::run(task, buffers, tally, &mut robust),
            65..=256 => Search::<4>::run(task, buffers, tally, &mut robust),
            257..=MAX_EVENTS => Search::<8>::run(task, buffers, tally, &mut robust),
            events => return Err(LitmusError::TooManyEvents { events }),
        };
        match stopped {
            None => {}
            Some(Stop::Failed(thread, fault)) => return Err(LitmusError::Failed(fault.describe(program, thread))),
            Some(Stop::OutOf(limit)) => return Err(LitmusError::OutOf(limit)),
        }
        if !paths.next(&mut chosen) {
            break;
        }
    }
    Ok(outcome(test, tally, robust, paths.unrolled))
}

fn outcome(test: &LitmusTest, tally: &mut Tally, robust: bool, unrolled: bool) -> LitmusOutcome {
    let states = tally.take_states();
    let mut witnesses = Witnesses::default();
    for (state, count) in &states {
        if holds(&test.condition, &test.observed, state) {
            witnesses.positive += count;
        } else {
            witnesses.negative += count;
        }
    }
    let condition_holds = match test.quantifier {
        Quantifier::Exists => witnesses.positive > 0,
        Quantifier::NotExists => witnesses.positive == 0,
        Quantifier::Forall => witnesses.negative == 0,
    };
    let observation = match (witnesses.positive, witnesses.negative) {
        (0, _) => Observation::Never,
        (_, 0) => Observation::Always,
        _ => Observation::Sometimes,
    };
    let executions = witnesses.positive + witnesses.negative;
    LitmusOutcome { states, executions, condition_holds, witnesses, observation, robust, unrolled }
}

fn holds(condition: &Condition, observed: &[Observable], state: &[i64]) -> bool {
    condition.holds(&|observable| {
        let at = observed.iter().position(|&other| other == observable);
        state[at.expect("invariant: a test observes all that its condition names")]
    })
}
