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
//! | [`Change::Release`] | a store-store fence before the store; an atomic waits for all stores (PSO only) | `Ordering::Release`, or `fence(Release)` before it |

pub(crate) mod cycle;
pub(crate) mod delays;
mod hitting;
mod rewrite;

use std::cmp::Ordering;
use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::builder::{Builder, FailOn};
use crate::failure::SourcePlace;
use crate::impact::{self, Impact};
use crate::judge::{Found, borderlines};
use crate::model::search;
use crate::rt::Place;
use crate::rt::runtime::Runtime;

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
}

impl Change {
    /// Its name in `WEAKSPOT_STRENGTHENED` and `WEAKSPOT_SUGGESTIONS`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Release => "Release",
            Self::SeqCst => "SeqCst",
            Self::FenceBefore => "FenceBefore",
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
    /// How.
    pub change: Change,
    /// It is a call that says its ordering. `clear_poison` and reference counts do not: only a fence beside them does the same.
    pub says_ordering: bool,
    /// The line as it should read (or the one to put before it), if the source is there and says the ordering.
    pub line: Option<String>,
    /// The test was run with all suggestions in place, and nothing that fails was found any more.
    pub tried: bool,
    /// And everything was looked at.
    pub proved: bool,
    /// Fewer changes are not enough: that is proved.
    pub fewest: bool,
}

impl Suggestion {
    /// The change, with the line as it should read.
    pub(crate) fn in_words(&self) -> String {
        let Self { place, change, line, .. } = self;
        let mut text = match (change, self.says_ordering) {
            (Change::SeqCst, true) => {
                format!("use `Ordering::SeqCst` for the store at {place}, or put `fence(SeqCst)` after it")
            }
            (Change::SeqCst, false) => format!("put `fence(SeqCst)` after the call at {place}"),
            (Change::Release, true) => {
                format!("use `Ordering::Release` for the operation at {place}, or put `fence(Release)` before it")
            }
            (Change::Release, false) => format!("put `fence(Release)` before the call at {place}"),
            (Change::FenceBefore, _) => format!("put `fence(SeqCst)` before the load at {place}"),
        };
        if let Some(line) = line {
            let _ = write!(text, "\n{:>5} + {line}", place.line);
        }
        text
    }
}

/// A change at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) change: Change,
    pub(crate) place: Place,
    pub(crate) says_ordering: bool,
}

impl Candidate {
    fn new(change: Change, place: Place, says_ordering: bool) -> Self {
        Self { change, place, says_ordering }
    }

    fn key(&self) -> (&str, u32, u32, Change) {
        (self.place.file(), self.place.line(), self.place.column(), self.change)
    }

    /// What it costs at run time, roughly: among as few changes, the cheaper ones are suggested.
    fn cost(self) -> u32 {
        match self.change {
            Change::Release => 1,
            Change::SeqCst => 3,
            Change::FenceBefore => 4,
        }
    }
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
    /// It cannot be said.
    Lost,
}

/// What helps.
pub(crate) struct Advice {
    pub(crate) suggestions: Vec<Suggestion>,
    /// Why: of each of these, one has to be made.
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
    clauses.retain(|clause| !clause.is_empty());
    let suggestions = fewest(builder, runtime, &mut clauses, took);
    Advice { suggestions, clauses }
}

/// A smallest set of changes that helps. What is tried in vain gives more clauses.
fn fewest(builder: &Builder, runtime: &Runtime, clauses: &mut Vec<Vec<Candidate>>, took: Duration) -> Vec<Suggestion> {
    let start = Instant::now();
    for _ in 0..MOST_TRIES {
        let Some(set) = hitting::minimum(clauses) else { return Vec::new() };
        if set.is_empty() || took > QUICK || start.elapsed() > PATIENCE {
            return suggestions(&set, Proof::Nothing);
        }
        match try_out(builder, runtime, &set) {
            Tried::Helps => return suggestions(&set, Proof::Complete),
            Tried::Unclear => return suggestions(&set, Proof::Fewest),
            Tried::Lost => return suggestions(&set, Proof::Nothing),
            Tried::More(more) => clauses.extend(more),
        }
    }
    Vec::new()
}

fn first_clauses(builder: &Builder, found: &[Found], harm: Option<&Impact>) -> Vec<Vec<Candidate>> {
    match harm {
        Some(Impact::Harmful(harm)) if builder.fail_on == FailOn::Harmful => vec![harm.delays.clause.clone()],
        _ => found.iter().map(|found| found.clause.clone()).collect(),
    }
}

/// Runs the test with the changes.
fn try_out(builder: &Builder, runtime: &Runtime, set: &[Candidate]) -> Tried {
    let changes = set.iter().map(|candidate| (SourcePlace::from(candidate.place), candidate.change));
    runtime.strengthen(builder.strengthened.iter().cloned().chain(changes).collect());
    let tried = remaining(builder, runtime, set);
    runtime.strengthen(builder.strengthened.clone());
    tried
}

fn remaining(builder: &Builder, runtime: &Runtime, set: &[Candidate]) -> Tried {
    let start = Instant::now();
    let judge = search(builder, runtime, start);
    if judge.report.failure.is_some() {
        return Tried::Lost;
    }
    let complete = if judge.report.exhaustive { Tried::Helps } else { Tried::Unclear };
    if judge.found.is_empty() {
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

/// What is known of a set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// It helps, and no smaller one does.
    Complete,
    /// No smaller one helps; nothing that fails was found with it.
    Fewest,
    Nothing,
}

fn suggestions(set: &[Candidate], proof: Proof) -> Vec<Suggestion> {
    let suggestion = |candidate: &Candidate| {
        let place = SourcePlace::from(candidate.place);
        let line = rewritten(&place, candidate.change);
        let (tried, proved) = (proof != Proof::Nothing, proof == Proof::Complete);
        let Candidate { change, says_ordering, .. } = *candidate;
        Suggestion { place, change, says_ordering, line, tried, proved, fewest: tried }
    };
    set.iter().map(suggestion).collect()
}
