//! The main job: are all SC executions correct, is the program store-buffer safe, and if not, does it matter?
//!
//! Three questions, in this order, each with an engine that can answer it:
//!
//! 1. **Is every SC execution correct?** If not, the answer is [`Verdict::Error`]: a bug that has nothing to do with
//!    store buffers comes first.
//! 2. **Is every trace of the model an SC trace?** If so, the program is [`Verdict::Safe`]: its relaxed executions are
//!    as correct as its SC executions, and SC is all the programmer has to think about (SOBER, Sec. 1).
//! 3. **If not ([`Verdict::Unsafe`]), what comes of it?** The papers stop at question 2. We go on: [`Impact::Harmful`]
//!    with a relaxed execution that breaks the specification, [`Impact::Benign`] if a verification engine proves that
//!    there is none, [`Impact::Unknown`] otherwise.
//!
//! | module | what lives there |
//! |---|---|
//! | `attack` | questions 1 and 2 by stateful search: exact whatever the loops |
//! | `stateless` | questions 1 and 2 by exploring SC executions under a monitor, as the papers do |
//! | `replayed` | questions 1 and 2 for exactly one schedule |
//! | `endings` | is there any execution to talk about? |
//! | `impact` | question 3 |
//! | `capped` | a budget that ends a search that has explored too much |
//! | `violation` | a violation with its cycle and its two executions |
//! | `relaxed` | from a monitor's finding to the relaxed execution it promises |
//!
//! # Deliberately absent
//! No search of its own, no printing. What an engine could not finish makes the answer [`Verdict::Bounded`] (questions
//! 1 and 2) or [`Impact::Unknown`] (question 3), never better.

mod attack;
mod capped;
mod endings;
mod impact;
mod relaxed;
mod replayed;
mod stateless;
mod violation;

use capped::Capped;
use thiserror::Error;
use weakspot_explore::recorded::recorder::Sink;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::Pc;
use weakspot_model::ir::{Instr, Program};
use weakspot_model::replay::{ReplayError, Witness};
use weakspot_model::task::{Budget, Limit, Progress};
use weakspot_verify::explicit::{self, ExplicitOptions};
use weakspot_verify::symbolic;

pub use impact::Impact;
pub use replayed::{ReplayFailure, check_schedule};
pub use violation::{CycleStep, Violation};
pub use weakspot_explore::exhaustive::MonitorKind;
pub use weakspot_explore::recorded;
pub use weakspot_explore::replay::{End, Movable, NotPossible};
pub use weakspot_explore::schedule::{Schedule, ScheduleError};
pub use weakspot_verify::robust::Access;

/// What is asked.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// The model.
    pub model: MemoryModel,
    /// Which engine; `None`: whichever fits the program.
    pub engine: Option<Engine>,
    /// Stateless: which monitor; `None`: the operational one for PSO, else SOBER.
    pub monitor: Option<MonitorKind>,
    /// Stateless: explore schedules with at most this many preemptions instead of all traces.
    pub max_preemptions: Option<u32>,
    /// Stateless: look at some schedules instead of all traces.
    pub sampling: Option<Sampling>,
    /// Stateless: how often a loop may go round.
    pub unroll: Option<u32>,
    /// Go on after the first violation and collect one for each pair of accesses.
    pub all: bool,
    /// Worker threads of the engines that can use them.
    pub jobs: usize,
    /// A deadlock is not an error.
    pub allow_deadlock: bool,
    /// A waiting thread may wake without a notification.
    pub spurious_wakeups: bool,
}

impl CheckOptions {
    /// Everything chosen by the program, one worker.
    pub fn new(model: MemoryModel) -> Self {
        Self {
            model,
            engine: None,
            monitor: None,
            max_preemptions: None,
            sampling: None,
            unroll: None,
            all: false,
            jobs: 1,
            allow_deadlock: false,
            spurious_wakeups: false,
        }
    }

    fn explicit(&self, model: MemoryModel) -> ExplicitOptions {
        ExplicitOptions {
            jobs: self.jobs,
            allow_deadlock: self.allow_deadlock,
            spurious_wakeups: self.spurious_wakeups,
            ..ExplicitOptions::new(model)
        }
    }
}

/// A search that looks at some schedules only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// Each step is taken by an enabled thread, all equally likely.
    Random {
        /// How many schedules.
        executions: u64,
        /// The same seed gives the same schedules.
        seed: u64,
    },
    /// Random priorities, and a few places to lower one (PCT).
    Pct {
        /// How many schedules.
        executions: u64,
        /// The number of ordering constraints a bug may need.
        depth: u32,
        /// The same seed gives the same schedules.
        seed: u64,
    },
}

impl Sampling {
    /// How many schedules.
    pub fn executions(self) -> u64 {
        let (Self::Random { executions, .. } | Self::Pct { executions, .. }) = self;
        executions
    }

    /// The seed.
    pub fn seed(self) -> u64 {
        let (Self::Random { seed, .. } | Self::Pct { seed, .. }) = self;
        seed
    }
}

/// The engines for questions 1 and 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Every SC execution once, watched by a monitor.
    Stateless,
    /// Stateful search for errors and attacks.
    Attack,
}

/// The answer.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// All SC executions are correct, and the model adds none.
    Safe,
    /// The model adds executions that no SC execution matches.
    Unsafe(Impact),
    /// This SC execution breaks the specification.
    Error(Witness),
    /// Nothing found, and not everything was looked at.
    Bounded(Bound),
}

/// What kept an engine from looking at everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// A limit of the budget.
    Limit(Limit),
    /// The bound on preemptions.
    Preemptions(u32),
    /// Only this many schedules were looked at.
    Sampled(u64),
    /// Only one schedule was looked at, and this is where it leads.
    Schedule(End),
    /// The bound on loop rounds.
    Unroll(u32),
    /// The attack engine has stored this many states, and there is no end in sight.
    States(u64),
    /// An execution grew too long to be explored, perhaps without end.
    Endless,
    /// No execution ran to its end.
    NothingEnds,
}

/// The answer with what it rests on.
#[derive(Debug, Clone)]
pub struct CheckReport {
    /// The answer.
    pub verdict: Verdict,
    /// The engine that gave it.
    pub engine: Engine,
    /// Why this engine, in a few words.
    pub why: &'static str,
    /// For [`Verdict::Unsafe`]: one for each pair of accesses (only the first unless all were asked for).
    pub violations: Vec<Violation>,
    /// Attack: states stored for questions 1 and 2.
    pub states: u64,
    /// Stateless: SC executions explored.
    pub executions: u64,
    /// Stateless: explorations that turned out to be no executions.
    pub blocked: u64,
    /// Stateless: executions that tripped the monitor.
    pub borderline: u64,
    /// Every execution was looked at, or a state space that stands for all of them.
    pub exhaustive: bool,
}

impl CheckReport {
    /// The schedule of the first finding: replaying it leads there again.
    pub fn schedule(&self) -> Option<Schedule> {
        match &self.verdict {
            Verdict::Error(witness) => Some(Schedule::of(&witness.actions)),
            Verdict::Unsafe(_) => self.violations.first().map(|violation| violation.schedule.clone()),
            Verdict::Safe | Verdict::Bounded(_) => None,
        }
    }
}

/// A mistake of an engine, never of the program.
#[derive(Debug, Error)]
pub enum InternalError {
    /// Of the explicit engine.
    #[error(transparent)]
    Explicit(#[from] explicit::InternalError),
    /// Of the symbolic engine.
    #[error(transparent)]
    Symbolic(#[from] symbolic::SymbolicError),
    /// Of the attack engine.
    #[error("the attack does not replay: {0}")]
    Attack(#[from] ReplayError),
    /// The relaxed execution of an attack has no happens-before cycle.
    #[error("the relaxed execution of an attack is sequentially consistent")]
    NoCycle,
    /// The monitor and the attack engine give different answers.
    #[error("the monitor found a store-buffer violation that the attack engine denies")]
    Disagreement,
}

/// Executions after which the stateless engine, if nobody asked for it, hands over to the attack engine.
const PATIENCE: u64 = 100_000;

/// Answers the three questions. If nobody asks for an engine: programs with loops or assumptions go to the attack engine,
/// others are explored, and go there after all if they have too many executions or too long ones. What exploring has found
/// by then counts if the attack engine comes to no end.
pub fn check(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<CheckReport, InternalError> {
    let asked = options.engine.or_else(|| options.needs_stateless().then_some(Engine::Stateless));
    // who gave a limit or asked for the engine waits as long as it takes
    let max_states = (!budget.is_limited()).then_some(impact::MAX_STATES);
    let attack = |why| attack::check(program, options, budget, progress, why, max_states);
    match asked {
        Some(Engine::Attack) => attack::check(program, options, budget, progress, "asked for", None),
        Some(Engine::Stateless) => stateless::check(program, options, budget, progress, None),
        None if has_loops(program) => attack("the program has loops"),
        // a monitor does not see that the execution it warns of would be pruned later
        None if program.assumes() => attack("the program assumes something"),
        None => {
            let capped = Capped::new(progress, budget, PATIENCE);
            let explored = stateless::explore_all(program, options, &capped.budget(), &capped, None);
            let judge = |why| stateless::judge(program, options, budget, progress, why, &explored, None);
            let why = match (capped.ran_out(), explored.too_long) {
                (false, false) => return judge("the program has no loops"),
                (true, _) => "the program has very many executions",
                (false, true) => "the program has very long executions",
            };
            let report = attack(why)?;
            let is_better = explored.found_something() && matches!(report.verdict, Verdict::Bounded(_));
            if is_better { judge("the attack engine came to no end") } else { Ok(report) }
        }
    }
}

/// The same by the stateless engine; every SC execution that it explores goes to a sink as well.
pub fn check_recorded(
    program: &Program,
    options: &CheckOptions,
    budget: &Budget,
    progress: &dyn Progress,
    sink: &mut dyn Sink,
) -> Result<CheckReport, InternalError> {
    stateless::check(program, options, budget, progress, Some(sink))
}

impl CheckOptions {
    /// Options that only the stateless engine has.
    fn needs_stateless(&self) -> bool {
        self.monitor.is_some() || self.max_preemptions.is_some() || self.sampling.is_some() || self.unroll.is_some()
    }
}

/// Does some thread jump backwards?
fn has_loops(program: &Program) -> bool {
    let goes_back = |(at, instr): (usize, &Instr)| match *instr {
        Instr::Jump { target } => target <= Pc::new(at),
        Instr::Branch { then, otherwise, .. } => then <= Pc::new(at) || otherwise <= Pc::new(at),
        _ => false,
    };
    program.threads.iter().any(|thread| thread.code.iter().enumerate().any(goes_back))
}
