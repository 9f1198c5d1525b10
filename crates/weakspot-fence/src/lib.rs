//! The fewest fences that make a program correct, or store-buffer safe.
//!
//! # The search
//! ```text
//! clauses = { }
//! loop:
//!     placement = a minimum hitting set of the clauses          (hitting)
//!     ask an engine about the program with these fences         (points, oracle)
//!     if it is correct: done
//!     for each execution that must not be:
//!         clause = the gaps in which a fence would prevent it   (clause)
//!         shrink the clause; keep it                            (search)
//! ```
//! Every correct placement holds a member of every clause, so a minimum hitting set costs no more than any correct
//! placement; the first one that is correct is a minimum. This is the scheme of implicit hitting sets; the paper on
//! partial-coherence abstractions (PLDI 2011, Sec. 5) reaches the same minimum by labelling the whole state space with
//! formulae, of which this search looks at a few executions only.
//!
//! **Shrinking** is where the speed comes from. If the program is broken with *all* candidates fenced except those of a
//! set `M`, the clause of that execution has members of `M` only. Starting from the clause of an execution, members are
//! fenced one after the other as long as that leaves the program broken. What remains is a clause of which no member can
//! go; and programs with nearly all gaps fenced have few states.
//!
//! # Strategies
//! This is the strategy `guided`. The strategy `avoid` ([`avoid`]) is the paper's: it labels a whole transition system with
//! formulae, takes the cheapest placement that satisfies them, and shows it to an engine as above.
//!
//! # Live code
//! For a test of Rust code the test itself is the engine, and operations are strengthened at run time: [`live`].
//!
//! # What is proved
//! A placement is accepted only if an engine proves the program with it, buffers unbounded. `minimal` is true if no
//! cheaper placement can work: all executions behind the clauses are real. Where no engine can decide about a placement
//! (a loop that fills buffers without end), the search goes on to others; the result then is `minimal` only if it costs
//! no more than the clauses demand.
//!
//! # Deliberately absent
//! No control flow of its own ([`points`] explains how the machine tells the path), no engine, no printing, no files.

mod avoid;
mod clause;
mod figures;
mod hitting;
mod language;
mod layout;
pub mod live;
mod oracle;
mod points;
mod search;

use std::sync::Arc;

use thiserror::Error;
use weakspot_front::{litmus, weak};
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;
use weakspot_model::machine::Action;
use weakspot_model::replay::{ReplayError, Witness};
use weakspot_model::source::SourceFile;
use weakspot_model::task::{Budget, Limit, Progress};
use weakspot_verify::abstraction::{AbstractOptions, Domain, ValueDomain};
use weakspot_verify::explicit;
use weakspot_verify::symbolic;

pub use clause::{Passed, Reason, Snippet};
pub use figures::{Figures, figures};
pub use language::Language;
pub use points::PointPlace;

/// What the fences are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The program meets its specification.
    Spec,
    /// Every trace the model allows is an SC trace.
    Robust,
}

impl Goal {
    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Robust => "robust",
        }
    }
}

/// How fences are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// By counterexamples and minimum hitting sets.
    Guided,
    /// By labelling all states with formulae of what avoids them; for [`Goal::Spec`] only.
    Avoid,
}

impl Strategy {
    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Guided => "guided",
            Self::Avoid => "avoid",
        }
    }
}

/// Who is asked about a placement, and whose states the strategy `avoid` labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceEngine {
    /// The best for the program; for [`Goal::Robust`] the attack engine.
    Auto,
    /// All states, buffers bounded.
    Explicit,
    /// Buffers as automata; not for the strategy `avoid`.
    Symbolic,
    /// Partial-coherence abstractions.
    Abstract {
        /// The domain of buffers.
        domain: Domain,
        /// How many stores are kept in order; `None`: 0, 1, 2, … until that decides (1 for the strategy `avoid`).
        k: Option<u32>,
    },
}

impl FenceEngine {
    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Explicit => "explicit",
            Self::Symbolic => "symbolic",
            Self::Abstract { .. } => "abstract",
        }
    }
}

/// Why an engine has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// A limit was reached.
    Limit(Limit),
    /// An abstract execution breaks the specification, and no real one was found that does.
    Alarm,
    /// The engine cannot represent the program.
    Refused,
}

impl From<Limit> for Doubt {
    fn from(limit: Limit) -> Self {
        Self::Limit(limit)
    }
}

/// What is asked.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of the command line")]
pub struct FenceOptions {
    /// What the source is written in. In litmus tests fences stay ([`Self::minimise`]) and all weigh the same.
    pub language: Language,
    /// The model.
    pub model: MemoryModel,
    /// What the fences are for.
    pub goal: Goal,
    /// How to search.
    pub strategy: Strategy,
    /// Whom to ask.
    pub engine: FenceEngine,
    /// Engine `abstract`: the domain of each location's values, in the order of the program's locations; exact where there
    /// is none, and past the end. With one, the abstraction is also who tells of SC.
    pub values: Vec<Option<ValueDomain>>,
    /// List all minimum placements.
    pub alternatives: bool,
    /// Weaken fences to `store_store` or `store_load` where that suffices.
    pub fine: bool,
    /// A fence inside `d` loops counts as 10 to the power of `d` instead of 1.
    pub weights: bool,
    /// The fences of the text may go, too.
    pub minimise: bool,
    /// Worker threads of the engines that can use them.
    pub jobs: usize,
    /// A deadlock is not an error.
    pub allow_deadlock: bool,
    /// A waiting thread may wake without a notification.
    pub spurious_wakeups: bool,
}

impl FenceOptions {
    /// The defaults for a model and a goal.
    pub fn new(model: MemoryModel, goal: Goal) -> Self {
        Self {
            language: Language::Weak,
            model,
            goal,
            strategy: Strategy::Guided,
            engine: FenceEngine::Auto,
            values: Vec::new(),
            alternatives: false,
            fine: false,
            weights: false,
            minimise: false,
            jobs: 1,
            allow_deadlock: false,
            spurious_wakeups: false,
        }
    }

    /// Do the goal, the strategy and the engine fit together? If not, a sentence and what to do about it.
    pub fn misfit(&self) -> Option<(String, &'static str)> {
        let (goal, strategy, engine) = (self.goal.name(), self.strategy.name(), self.engine.name());
        match (self.goal, self.strategy, self.engine) {
            (Goal::Robust, Strategy::Avoid, _) => Some((
                format!("the strategy `{strategy}` does not fit the goal `{goal}`"),
                "it labels states, and store-buffer safety is a property of traces: use `--strategy guided`",
            )),
            (Goal::Robust, _, engine) if engine != FenceEngine::Auto => Some((
                format!("the engine `{}` does not decide the goal `{goal}`", engine.name()),
                "the attack engine does: leave `--engine` out",
            )),
            (_, Strategy::Avoid, FenceEngine::Symbolic) => Some((
                format!("the strategy `{strategy}` does not fit `--engine {engine}`"),
                "it labels single states: use `--engine explicit` or `--engine abstract`",
            )),
            _ => None,
        }
    }

    /// Are some values abstract? Then the program need not be finite under SC.
    pub(crate) fn has_values(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }

    /// The abstraction to ask, and the k that was given, if the engine is `abstract`.
    fn abstraction(&self) -> Option<(AbstractOptions, Option<u32>)> {
        let FenceEngine::Abstract { domain, k } = self.engine else { return None };
        let options = AbstractOptions {
            domain,
            k: k.unwrap_or(1),
            values: self.values.clone(),
            allow_deadlock: self.allow_deadlock,
            spurious_wakeups: self.spurious_wakeups,
            ..AbstractOptions::new(self.model)
        };
        Some((options, k))
    }
}

/// The answer in one word, with what it rests on.
#[derive(Debug, Clone)]
pub enum FenceVerdict {
    /// No fence has to be inserted.
    NoneNeeded,
    /// The fences of [`FenceReport::placement`] are needed and suffice.
    Fenced,
    /// No placement helps: this SC execution breaks the specification. Without one, no placement helps with the engine that
    /// was asked for.
    Impossible(Option<Witness>),
    /// No engine could decide.
    Inconclusive(Doubt),
}

/// A fence to be inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedFence {
    /// What it follows.
    pub after: PointPlace,
    /// Its kind.
    pub kind: FenceKind,
    /// What it stops, if an execution showed it.
    pub reason: Option<Reason>,
}

/// A program with fences.
#[derive(Debug, Clone)]
pub struct Placement {
    /// What is inserted, in the order of the text.
    pub fences: Vec<PlacedFence>,
    /// Fences of the text that go.
    pub removed: Vec<PointPlace>,
    /// The whole text with these changes.
    pub text: String,
    /// What it costs: the number of fences, or their weight.
    pub cost: u64,
}

/// The answer with everything behind it.
#[derive(Debug, Clone)]
pub struct FenceReport {
    /// The answer.
    pub verdict: FenceVerdict,
    /// The placement; without an answer, the best one that is known to be correct.
    pub placement: Option<Placement>,
    /// Proved: no placement costs less.
    pub minimal: bool,
    /// No correct placement costs less than this.
    pub at_least: u64,
    /// What kept the engines from deciding about a placement that may be cheaper, if anything did.
    pub undecided: Option<Doubt>,
    /// Other placements that cost the same, all proved correct.
    pub alternatives: Vec<Placement>,
    /// There may be more of them.
    pub more_alternatives: bool,
    /// Placements that the search went through.
    pub iterations: u32,
    /// States stored by all searches.
    pub states: u64,
    /// Strategy `avoid`: states of the transition system whose labels gave the placement.
    pub labelled: u64,
}

/// Mistakes of weakspot, never of the program.
#[derive(Debug, Error)]
pub enum FenceError {
    /// Of the explicit engine.
    #[error(transparent)]
    Explicit(#[from] explicit::InternalError),
    /// Of the symbolic engine.
    #[error(transparent)]
    Symbolic(#[from] symbolic::SymbolicError),
    /// Of the attack engine.
    #[error("the attack does not replay: {0}")]
    Attack(#[from] ReplayError),
    /// The text with fences does not compile.
    #[error("the text with fences does not compile: {0}")]
    Layout(String),
    /// An execution of the fenced program is none of the marked one.
    #[error("an execution does not replay with markers: {action:?} is not enabled")]
    Replay {
        /// What cannot be done.
        action: Action,
    },
}

/// Finds the fewest fences. The source must compile.
pub fn infer(
    source: &Arc<SourceFile>,
    options: &FenceOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<FenceReport, FenceError> {
    let program = options.language.compile(source)?;
    let points = points(source, options)?;
    let oracle = oracle::Oracle { options, budget, progress, states: 0 };
    search::Inference::new(&points, oracle)?.run(&program)
}

fn points(source: &Arc<SourceFile>, options: &FenceOptions) -> Result<points::Points, FenceError> {
    if options.language == Language::Litmus {
        return Ok(points::Points::of_test(source, &litmus::outline(source).map_err(language::first)?));
    }
    let outline = weak::outline(source).map_err(language::first)?;
    Ok(if options.minimise {
        points::Points::with_existing(source, &outline)
    } else {
        points::Points::new(source, &outline)
    })
}

/// What comes of asking the engines about one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// It meets the goal.
    Correct,
    /// It does not.
    Broken,
    /// Neither.
    Undecided(Doubt),
}

/// Does a text, as it is, meet the goal? To be asked about a fenced program before it is written.
pub fn confirm(
    source: &Arc<SourceFile>,
    options: &FenceOptions,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<Confirmation, FenceError> {
    let program = options.language.compile(source)?;
    let mut oracle = oracle::Oracle { options, budget, progress, states: 0 };
    if options.goal == Goal::Spec {
        match oracle.sc(&program)? {
            oracle::Calm::Correct => {}
            oracle::Calm::Broken(_) => return Ok(Confirmation::Broken),
            oracle::Calm::Undecided(doubt) => return Ok(Confirmation::Undecided(doubt)),
        }
    }
    Ok(match oracle.ask(&program, oracle::Effort::Full)? {
        oracle::Answer::Correct => Confirmation::Correct,
        oracle::Answer::Broken(_) => Confirmation::Broken,
        oracle::Answer::Undecided(doubt) => Confirmation::Undecided(doubt),
    })
}
