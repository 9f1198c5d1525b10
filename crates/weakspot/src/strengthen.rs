//! Which operations to strengthen: the fewest that help, tried out by running the test with them.
//!
//! Guided by counterexamples, as the fences of models are: every execution that must go gives a clause, the changes that
//! make it impossible ([`delays`]); a smallest set of changes that hits all clauses so far ([`hitting`]) is tried out by
//! running the test with the changes made at run time; what still goes wrong gives more clauses. The set that helps is
//! then a smallest one, because every set that helps hits all clauses.
//!
//! What must go depends on what the test fails on: executions that fail, or all that SC does not have.
//!
//! | change | at run time | in the source |
//! |---|---|---|
//! | [`Change::SeqCst`] | the store is interlocked | `Ordering::SeqCst`, or `fence(SeqCst)` after it |
//! | [`Change::FenceBefore`] | a full fence before the load | `fence(SeqCst)` before it |
//! | [`Change::Release`] | a store-store fence before the store; an atomic waits for all stores (PSO only); what was done before is handed on | `Ordering::Release`, or `fence(Release)` before it |
//! | [`Change::Acquire`] | what is handed on is taken | `Ordering::Acquire`, or `fence(Acquire)` after it |
//! | [`Change::AcqRel`] | both | `Ordering::AcqRel` |
//! | [`Change::AcquireOnFailure`] | what is handed on is taken by a read-modify-write that does not write | `Ordering::Acquire` as the second ordering |
//!
//! A data race is an execution that must go as well ([`races`]).

pub(crate) mod cycle;
pub(crate) mod delays;
mod hitting;
mod races;
mod rewrite;
pub(crate) mod words;

use std::cmp::Ordering;
use std::time::{Duration, Instant};

use weakspot_model::buffer::MemoryModel;

use crate::builder::{Builder, FailOn};
use crate::failure::{FailureKind, SourcePlace};
use crate::impact::{self, Impact};
use crate::judge::{Found, borderlines};
use crate::model::search;
use crate::report::Report;
use crate::rt::Place;
use crate::rt::runtime::Runtime;
use races::Asked;

pub(crate) use rewrite::rewritten;

/// How an operation is strengthened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Change {
    /// A store or a read-modify-write releases. It is enough where stores overtake one another (PSO).
    Release,
    /// A store is `SeqCst`; a fence after it does the same.
    SeqCst,
    /// A `SeqCst` fence stands before a load.
    FenceBefore,
    /// A load or a read-modify-write acquires.
    Acquire,
    /// A read-modify-write or a fence acquires and releases.
    AcqRel,
    /// A read-modify-write that does not write acquires, and so do the loads of `fetch_update`: the second of two orderings.
    AcquireOnFailure,
}

impl Change {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Release, Self::SeqCst, Self::FenceBefore, Self::Acquire, Self::AcqRel, Self::AcquireOnFailure];

    /// Its name in `WEAKSPOT_STRENGTHENED` and `WEAKSPOT_SUGGESTIONS`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Release => "Release",
            Self::SeqCst => "SeqCst",
            Self::FenceBefore => "FenceBefore",
            Self::Acquire => "Acquire",
            Self::AcqRel => "AcqRel",
            Self::AcquireOnFailure => "AcquireOnFailure",
        }
    }
}

/// An operation to strengthen.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[allow(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct Suggestion {
    /// Where it is.
    pub place: SourcePlace,
    /// What it is: `store`, `fetch_add`, `fence`, …
    pub what: &'static str,
    /// How.
    pub change: Change,
    /// It is a call that says its ordering. `clear_poison` and reference counts do not: only a fence beside them does the same.
    pub says_ordering: bool,
    /// A store that is to be `SeqCst` has to release as well, which a fence after it does not do.
    pub releases: bool,
    /// The line as it should read (or the one to put before it), if the source is there and says the ordering.
    pub line: Option<String>,
    /// Which line that is: that of the place, or another one if what stands there takes several lines.
    pub row: u32,
    /// The test was run with all suggestions in place, and nothing that fails was found any more.
    pub tried: bool,
    /// And everything was looked at.
    pub proved: bool,
    /// Fewer changes are not enough: that is proved.
    pub fewest: bool,
    /// How an execution fails with all suggestions in place, if one does that fails in another way.
    pub then_fails: Option<String>,
}

/// A change at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) change: Change,
    pub(crate) place: Place,
    /// What is there.
    what: &'static str,
}

impl Candidate {
    fn new(change: Change, place: Place, what: &'static str) -> Self {
        Self { change, place, what }
    }

    fn key(&self) -> (&str, u32, u32, Change) {
        (self.place.file(), self.place.line(), self.place.column(), self.change)
    }

    /// Does whoever calls this say an ordering? Methods of atomics have a name and nothing else.
    pub(crate) fn says_ordering(self) -> bool {
        !self.what.contains([':', ' '])
    }

    /// What it costs at run time, roughly: among as few changes, the cheaper ones are suggested.
    fn cost(self) -> u32 {
        match self.change {
            Change::Release | Change::Acquire | Change::AcquireOnFailure => 1,
            Change::AcqRel => 2,
            Change::SeqCst => 3,
            Change::FenceBefore => 4,
        }
    }
}

/// Changes as a runtime makes them.
fn at_places(set: &[Candidate]) -> impl Iterator<Item = (SourcePlace, Change)> {
    set.iter().map(|candidate| (SourcePlace::from(candidate.place), candidate.change))
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Explorations that took longer than this are not repeated.
const QUICK: Duration = Duration::from_secs(2);
/// How long the exploration that comes after a data race, which has ended the one before, may take.
const TRIAL: Duration = Duration::from_secs(2);
/// No further set is tried out after this time.
const PATIENCE: Duration = Duration::from_secs(6);
/// Sets that are tried out.
const MOST_TRIES: usize = 200;

/// What became of a set of changes.
enum Tried {
    /// The test does not fail any more.
    Helps,
    /// It may not, but not everything was looked at.
    Unclear,
    /// These executions still have to go.
    More(Vec<Vec<Candidate>>),
    /// An execution fails in another way.
    Fails(String),
    /// Nothing orders the two places of this race, whatever the orderings are.
    Unordered(SourcePlace, SourcePlace),
    /// It cannot be said.
    Lost,
}

/// What helps.
enum Help {
    /// These changes, or nothing that is known.
    Changes(Vec<Suggestion>),
    /// No ordering does: nothing orders the two accesses of the race.
    NoOrder,
    /// No ordering is enough: in another execution nothing orders the accesses at these two places.
    NoOrderAt(SourcePlace, SourcePlace),
}

/// The changes that help, and why.
pub(crate) struct Advice {
    pub(crate) suggestions: Vec<Suggestion>,
    /// Of each of these, one has to be made.
    pub(crate) clauses: Vec<Vec<Candidate>>,
}

/// What to strengthen, given what was found without any change.
pub(crate) fn suggest(
    builder: &Builder,
    runtime: &Runtime,
    found: &[Found],
    harm: Option<&Impact>,
    took: Duration,
) -> Advice {
    let mut clauses = first_clauses(builder, found, harm);
    let suggestions = match fewest(builder, runtime, &mut clauses, took <= QUICK) {
        Help::Changes(suggestions) => suggestions,
        Help::NoOrder | Help::NoOrderAt(..) => Vec::new(),
    };
    Advice { suggestions, clauses }
}

/// Puts what helps against a data race into the report of it.
pub(crate) fn help_against_race(builder: &Builder, runtime: &Runtime, report: &mut Report, took: Duration) {
    let (Some(failure), Some(schedule)) = (&report.failure, &report.schedule) else { return };
    let FailureKind::Race { first, second } = &failure.kind else { return };
    if first.thread == second.thread {
        return;
    }
    let mut clauses = Vec::new();
    match against_race(builder, runtime, schedule, took, &mut clauses) {
        Help::Changes(suggestions) => (report.suggestions, report.clauses) = (suggestions, clauses),
        Help::NoOrder => report.help = Some(words::no_order(first.thread, second.thread)),
        Help::NoOrderAt(one, other) => report.help = Some(words::no_order_at(&one, &other)),
    }
}

/// What to strengthen against a data race, given the schedule that leads to it. What is observed stays as it is, since the
/// schedule fits only then.
fn against_race(
    builder: &Builder,
    runtime: &Runtime,
    schedule: &str,
    took: Duration,
    clauses: &mut Vec<Vec<Candidate>>,
) -> Help {
    let observed = runtime.counts.borrow().observed.clone();
    let help = match races::asked_for(builder, runtime, schedule, Instant::now()) {
        Asked::Unknown => Help::Changes(Vec::new()),
        Asked::Unordered => Help::NoOrder,
        Asked::Changes(asked) => {
            *clauses = asked;
            let left = builder.max_duration.map(|most| most.saturating_sub(took));
            let time = left.into_iter().chain([TRIAL]).min();
            let trial = Builder { max_duration: time, ..builder.clone() };
            fewest(&trial, runtime, clauses, took <= QUICK && time != Some(Duration::ZERO))
        }
    };
    runtime.counts.borrow_mut().observed = observed;
    help
}

/// The fewest changes that meet all clauses, and those that come up when they are tried out.
fn fewest(builder: &Builder, runtime: &Runtime, clauses: &mut Vec<Vec<Candidate>>, may_try: bool) -> Help {
    clauses.retain(|clause| !clause.is_empty());
    let start = Instant::now();
    for _ in 0..MOST_TRIES {
        let Some(set) = hitting::minimum(clauses) else { break };
        if set.is_empty() || !may_try || start.elapsed() > PATIENCE {
            return Help::Changes(suggestions(&set, clauses, builder.model, &Proof::Nothing));
        }
        let proof = match try_out(builder, runtime, &set, start) {
            Tried::Helps => Proof::Complete,
            Tried::Unclear => Proof::Fewest,
            Tried::Fails(how) => Proof::FailsOtherwise(how),
            Tried::Lost => Proof::Nothing,
            Tried::Unordered(one, other) => return Help::NoOrderAt(one, other),
            Tried::More(more) => {
                clauses.extend(more);
                continue;
            }
        };
        return Help::Changes(suggestions(&set, clauses, builder.model, &proof));
    }
    Help::Changes(Vec::new())
}

fn first_clauses(builder: &Builder, found: &[Found], harm: Option<&Impact>) -> Vec<Vec<Candidate>> {
    match harm {
        Some(Impact::Harmful(harm)) if builder.fail_on == FailOn::Harmful => vec![harm.delays.clause.clone()],
        _ => found.iter().map(|found| found.clause.clone()).collect(),
    }
}

/// Runs the test with the changes.
fn try_out(builder: &Builder, runtime: &Runtime, set: &[Candidate], since: Instant) -> Tried {
    runtime.strengthen(builder.strengthened.iter().cloned().chain(at_places(set)).collect());
    let tried = remaining(builder, runtime, set, since);
    runtime.strengthen(builder.strengthened.clone());
    tried
}

fn remaining(builder: &Builder, runtime: &Runtime, set: &[Candidate], since: Instant) -> Tried {
    let start = Instant::now();
    let judge = search(builder, runtime, start);
    let left_out = runtime.loops_left_out.take();
    if judge.report.failure.is_some() {
        return still_fails(builder, runtime, &judge.report, since);
    }
    let complete = if judge.report.exhaustive && left_out.is_empty() { Tried::Helps } else { Tried::Unclear };
    if judge.found.is_empty() || builder.fail_on == FailOn::Nothing {
        return complete;
    }
    let clauses: Vec<_> = if builder.fail_on == FailOn::Harmful {
        match impact::judge(runtime, builder, &borderlines(&judge.found), start.elapsed()).0 {
            Impact::Benign => return complete,
            Impact::Unknown => return Tried::Unclear,
            Impact::Harmful(harm) => vec![harm.delays.clause],
        }
    } else {
        judge.found.into_iter().map(|found| found.clause).collect()
    };
    // A change of the set cannot help against what happens in spite of it.
    let is_new = |clause: &Vec<Candidate>| !clause.is_empty() && !clause.iter().any(|one| set.contains(one));
    let new: Vec<_> = clauses.into_iter().filter(is_new).collect();
    if new.is_empty() { Tried::Lost } else { Tried::More(new) }
}

/// An SC execution fails with the changes that are made now.
fn still_fails(builder: &Builder, runtime: &Runtime, report: &Report, since: Instant) -> Tried {
    let (Some(failure), Some(schedule)) = (&report.failure, &report.schedule) else { return Tried::Lost };
    if let Some((first, second)) = races::sides(failure) {
        return match races::asked_for(builder, runtime, schedule, since) {
            Asked::Changes(clauses) => Tried::More(clauses),
            Asked::Unordered => Tried::Unordered(first.clone(), second.clone()),
            Asked::Unknown => Tried::Lost,
        };
    }
    match failure.kind {
        FailureKind::TooLong | FailureKind::NotDeterministic | FailureKind::Schedule => Tried::Lost,
        _ => Tried::Fails(failure.message.clone()),
    }
}

/// Does it matter that a store of a set, which is `SeqCst`, releases as well? Where stores overtake one another (PSO) it
/// may: what that keeps from happening was not seen when the set was tried out.
fn releases(store: &Candidate, set: &[Candidate], clauses: &[Vec<Candidate>], model: MemoryModel) -> bool {
    let release = Candidate { change: Change::Release, ..*store };
    let is_met_by_others = |clause: &[Candidate]| clause.iter().any(|one| one != store && set.contains(one));
    let is_asked_to = |clause: &Vec<Candidate>| clause.contains(&release) && !is_met_by_others(clause);
    store.change == Change::SeqCst && (model == MemoryModel::Pso || clauses.iter().any(is_asked_to))
}

/// What is known of a set.
enum Proof {
    /// It helps, and no smaller one does.
    Complete,
    /// No smaller one helps; nothing that fails was found with it.
    Fewest,
    /// An execution fails with it, in another way.
    FailsOtherwise(String),
    Nothing,
}

fn suggestions(set: &[Candidate], clauses: &[Vec<Candidate>], model: MemoryModel, proof: &Proof) -> Vec<Suggestion> {
    let proved = matches!(proof, Proof::Complete);
    let tried = proved || matches!(proof, Proof::Fewest);
    let then_fails = if let Proof::FailsOtherwise(how) = proof { Some(how) } else { None };
    let suggestion = |candidate: &Candidate| {
        let place = SourcePlace::from(candidate.place);
        let new = rewritten(&place, candidate.change);
        Suggestion {
            row: new.as_ref().map_or(place.line, |new| new.row),
            line: new.map(|new| new.text),
            place,
            what: candidate.what,
            change: candidate.change,
            says_ordering: candidate.says_ordering(),
            releases: releases(candidate, set, clauses, model),
            tried,
            proved,
            fewest: tried,
            then_fails: then_fails.cloned(),
        }
    };
    set.iter().map(suggestion).collect()
}
