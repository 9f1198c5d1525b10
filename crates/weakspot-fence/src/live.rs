//! The fewest operations of live Rust code to strengthen, so that every model of a test is as it should be.
//!
//! The library `weakspot` explores the models of a test, says which executions must go (a *clause* each: the changes that
//! make it impossible), and tries out changes by making them at run time. This is the same search as for programs, with
//! the test itself as the engine:
//! ```text
//! loop:
//!     run the test with these changes made at run time
//!     keep the clauses of all its models
//!     changes = a minimum hitting set of the clauses            (hitting)
//!     until every model is proved to be as it should be with them
//! ```
//! Every set of changes that helps all models hits all clauses, so the one that is found is a smallest one. What was proved
//! for some changes holds for more of them: a stronger operation adds no execution.
//!
//! # Deliberately absent
//! Nothing is run here and no file is read: whoever calls says how a test is run ([`strengthen`]).

mod edit;
mod record;

use std::collections::BTreeMap;

use weakspot_model::task::Limit;

use crate::Goal;
use crate::hitting::{self, Cost};

pub use edit::edited;
pub use record::{
    Change, CodePlace, Late, Model, ModelVerdict, RecordError, Strengthening, Why, models as recorded_models,
};

/// A test that was run.
#[derive(Debug)]
pub enum TestRun {
    /// To its end.
    Ended {
        /// What was found of its models.
        models: Vec<Model>,
        /// It has passed, apart from what store buffers do to its models.
        passed: bool,
    },
    /// A limit was reached before.
    Stopped(Limit),
}

/// Why there is no answer.
#[derive(Debug)]
pub enum LiveDoubt {
    /// A limit was reached.
    Limit(Limit),
    /// It is not known whether this model is as it should be.
    Open(Box<Model>),
    /// This model is not as it should be, and nothing that would help is known.
    Helpless(Box<Model>),
    /// The test fails, but none of its models does: there may be more of them behind the failure.
    FailsOutside,
    /// The test was run too often.
    Runs,
}

/// The answer.
#[derive(Debug)]
pub enum LiveVerdict {
    /// Every model is as it should be.
    NoneNeeded,
    /// With the changes it is.
    Fenced,
    /// This model fails on every processor.
    Impossible(Box<Model>),
    /// No answer.
    Inconclusive(LiveDoubt),
}

/// What came of it.
#[derive(Debug)]
pub struct LiveReport {
    /// The answer.
    pub verdict: LiveVerdict,
    /// The changes, in the order of their places. When inconclusive, those that the executions found so far demand.
    pub changes: Vec<Change>,
    /// With the changes nothing that must go was found.
    pub tried: bool,
    /// Fewer changes are not enough.
    pub minimal: bool,
    /// How often the test was run to its end.
    pub runs: u32,
    /// The models as they are without any change, in the order in which they were first seen.
    pub models: Vec<Model>,
}

/// The test is not run more often than this.
const MOST_RUNS: u32 = 50;

/// Looks for the changes. `run` runs the test with changes made at run time.
pub fn strengthen<E>(goal: Goal, mut run: impl FnMut(&[Change]) -> Result<TestRun, E>) -> Result<LiveReport, E> {
    let mut search = Search { goal, clauses: Vec::new(), proofs: BTreeMap::new(), models: Vec::new() };
    let mut changes = Vec::new();
    for runs in 1..=MOST_RUNS {
        let (models, passed) = match run(&changes)? {
            TestRun::Ended { models, passed } => (models, passed),
            TestRun::Stopped(limit) => {
                return Ok(search.report(LiveVerdict::Inconclusive(LiveDoubt::Limit(limit)), changes, runs - 1));
            }
        };
        if let Some(failed) = models.iter().find(|model| fails_everywhere(model)) {
            let verdict = LiveVerdict::Impossible(Box::new(failed.clone()));
            search.take(&[], &models);
            return Ok(search.report(verdict, Vec::new(), runs));
        }
        search.take(&changes, &models);
        let next = search.smallest();
        let is_new = next != changes;
        if let Some(verdict) = search.verdict(&next, passed, is_new, &models) {
            return Ok(search.report(verdict, next, runs));
        }
        changes = next;
    }
    Ok(search.report(LiveVerdict::Inconclusive(LiveDoubt::Runs), changes, MOST_RUNS))
}

/// Which of the models of a test one is.
type Which = (u32, CodePlace);

struct Search {
    goal: Goal,
    clauses: Vec<Vec<Change>>,
    /// With which changes a model is proved to be as it should be.
    proofs: BTreeMap<Which, Vec<Vec<Change>>>,
    models: Vec<Model>,
}

impl Search {
    /// Learns from a run with these changes.
    fn take(&mut self, changes: &[Change], models: &[Model]) {
        for model in models {
            let proofs = self.proofs.entry(which(model)).or_default();
            if is_good(model, self.goal) {
                proofs.push(changes.to_vec());
            } else if let Some((more, true)) = &model.helps {
                proofs.push(changes.iter().chain(more).cloned().collect());
            }
            // A change that was made cannot help against what happened in spite of it.
            let is_new = |clause: &&Vec<Change>| !clause.is_empty() && !clause.iter().any(|one| changes.contains(one));
            self.clauses.extend(model.clauses.iter().filter(is_new).cloned());
            if !self.models.iter().any(|known| which(known) == which(model)) {
                self.models.push(model.clone());
            }
        }
    }

    /// A smallest set of changes with one of each clause; of those, a cheap one.
    fn smallest(&self) -> Vec<Change> {
        let mut candidates: Vec<&Change> = self.clauses.iter().flatten().collect();
        candidates.sort();
        candidates.dedup();
        let index = |change: &Change| candidates.binary_search(&change).ok();
        let clauses: Vec<Vec<usize>> =
            self.clauses.iter().map(|clause| clause.iter().filter_map(index).collect()).collect();
        let costs: Vec<Cost> = candidates.iter().map(|change| cost(change.how)).collect();
        let set = hitting::minimum(&clauses, &costs).unwrap_or_default();
        set.into_iter().map(|index| candidates[index].clone()).collect()
    }

    /// The answer, if nothing is to be gained from running the test with these changes.
    fn verdict(&self, next: &[Change], passed: bool, is_new: bool, models: &[Model]) -> Option<LiveVerdict> {
        let is_proved =
            |proofs: &Vec<Vec<Change>>| proofs.iter().any(|proof| proof.iter().all(|change| next.contains(change)));
        let all_are_proved = self.proofs.values().all(is_proved);
        match (all_are_proved, passed, is_new) {
            (true, true, _) if next.is_empty() => Some(LiveVerdict::NoneNeeded),
            (true, true, _) => Some(LiveVerdict::Fenced),
            (_, _, true) => None,
            (true, false, false) => Some(LiveVerdict::Inconclusive(LiveDoubt::FailsOutside)),
            (false, _, false) => {
                let open = models.iter().find(|model| !is_good(model, self.goal)).or(self.models.first());
                let doubt = match open {
                    Some(model) if is_bad(model, self.goal) => LiveDoubt::Helpless(Box::new(model.clone())),
                    Some(model) => LiveDoubt::Open(Box::new(model.clone())),
                    None => LiveDoubt::FailsOutside,
                };
                Some(LiveVerdict::Inconclusive(doubt))
            }
        }
    }

    fn report(self, verdict: LiveVerdict, changes: Vec<Change>, runs: u32) -> LiveReport {
        let tried = match &verdict {
            LiveVerdict::NoneNeeded | LiveVerdict::Fenced => true,
            LiveVerdict::Inconclusive(LiveDoubt::Open(_) | LiveDoubt::FailsOutside) => true,
            LiveVerdict::Impossible(_) | LiveVerdict::Inconclusive(_) => false,
        };
        let minimal = matches!(verdict, LiveVerdict::NoneNeeded | LiveVerdict::Fenced);
        LiveReport { verdict, changes, tried, minimal, runs, models: self.models }
    }
}

fn which(model: &Model) -> Which {
    (model.number, model.start.clone())
}

/// Is it proved to be as it should be?
fn is_good(model: &Model, goal: Goal) -> bool {
    let is_enough = match model.verdict {
        ModelVerdict::Safe => true,
        ModelVerdict::Benign => goal == Goal::Spec,
        _ => false,
    };
    is_enough && model.exhaustive
}

/// Is it known not to be?
fn is_bad(model: &Model, goal: Goal) -> bool {
    match model.verdict {
        ModelVerdict::Harmful => true,
        ModelVerdict::Benign | ModelVerdict::Unknown => goal == Goal::Robust,
        ModelVerdict::Failed => is_race(model),
        ModelVerdict::Safe | ModelVerdict::Bounded => false,
    }
}

/// A failure that no ordering prevents. What is not the same when it is run again, or too long, may be none.
fn fails_everywhere(model: &Model) -> bool {
    let is_none = |why: &Why| ["not-deterministic", "too-long", "schedule"].contains(&why.kind.as_str());
    let may_be_ordered = is_race(model) && !model.clauses.is_empty();
    model.verdict == ModelVerdict::Failed && !may_be_ordered && !model.why.as_ref().is_some_and(is_none)
}

fn is_race(model: &Model) -> bool {
    model.why.as_ref().is_some_and(|why| why.kind == "race")
}

/// One change is as good as another, but among as few the cheaper ones are taken, as the library does.
fn cost(how: Strengthening) -> Cost {
    let rank = match how {
        Strengthening::Release | Strengthening::Acquire | Strengthening::AcquireOnFailure => 1,
        Strengthening::AcqRel => 2,
        Strengthening::SeqCst => 3,
        Strengthening::FenceBefore => 4,
    };
    Cost { weight: 1, count: 1, inserted: 1, rank }
}

#[cfg(test)]
mod tests;
