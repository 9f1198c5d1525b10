//! Which orderings would keep two accesses to plain memory from racing.
//!
//! An execution stays one, whatever the orderings: they say what happens before what, and who reads from whom is the same. So the
//! execution that races is run again, schedule and all, with stronger clocks ([`Runtime::strengthen_clocks`]): either something
//! orders the two accesses then, or nothing does. More changes never make it race again, and that gives the clauses: from the
//! changes that were made, one is added after the other as long as the execution still races; of those that are left, each of which
//! would end that, one at least has to be made.
//!
//! If it races with all of them, no ordering helps: no atomic that the first thread writes after its access is read by the
//! second one before its own, directly or through others.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

use weakspot_model::buffer::MemoryModel;

use super::{Candidate, Change, PATIENCE, hitting};
use crate::builder::Builder;
use crate::failure::{Failure, FailureKind, SourcePlace};
use crate::replay;
use crate::rt::runtime::Runtime;
use crate::rt::strength::{Part, Said};

/// What an execution that races asks for.
pub(super) enum Asked {
    /// One change of each of these.
    Changes(Vec<Vec<Candidate>>),
    /// Nothing orders the two, whatever the orderings are.
    Unordered,
    /// It cannot be said.
    Unknown,
}

/// The two places of a race that orderings may prevent: those of two threads.
pub(super) fn sides(failure: &Failure) -> Option<(&SourcePlace, &SourcePlace)> {
    match &failure.kind {
        FailureKind::Race { first, second } if first.thread != second.thread => Some((&first.place, &second.place)),
        _ => None,
    }
}

/// What an execution that races with the changes that are made now asks for besides.
pub(super) fn asked_for(builder: &Builder, runtime: &Runtime, schedule: &str, since: Instant) -> Asked {
    let execution = Execution { builder, runtime, schedule, observed: observed(runtime), since };
    let asked = execution.clauses();
    runtime.strengthen_clocks(Vec::new());
    match asked {
        Some(clauses) if clauses.iter().any(Vec::is_empty) => Asked::Unordered,
        Some(clauses) => Asked::Changes(clauses),
        None => Asked::Unknown,
    }
}

fn observed(runtime: &Runtime) -> String {
    runtime.counts.borrow().observed.text()
}

/// An execution that races.
struct Execution<'a> {
    builder: &'a Builder,
    runtime: &'a Runtime,
    schedule: &'a str,
    /// What is observed when the schedule fits.
    observed: String,
    /// When the search for changes began.
    since: Instant,
}

impl Execution<'_> {
    /// Clauses until the smallest set that meets them keeps the execution from racing; an empty one if nothing does.
    fn clauses(&self) -> Option<Vec<Vec<Candidate>>> {
        let mut races = None;
        let said = self.runtime.orderings_said(|| races = self.races(&[]));
        if races != Some(true) {
            return None;
        }
        let all: Vec<Candidate> = candidates(&said, self.runtime.model).into_iter().collect();
        let mut clauses = Vec::new();
        let mut set = Vec::new();
        while self.races(&set)? {
            let clause = self.clause(&all, set)?;
            let is_hopeless = clause.is_empty();
            clauses.push(clause);
            if is_hopeless {
                break;
            }
            set = hitting::minimum(&clauses)?;
        }
        Some(clauses)
    }

    /// The changes one of which has to be made besides those of a set with which the execution races.
    fn clause(&self, all: &[Candidate], mut made: Vec<Candidate>) -> Option<Vec<Candidate>> {
        let mut clause = Vec::new();
        for &candidate in all {
            made.push(candidate);
            if !self.races(&made)? {
                made.pop();
                clause.push(candidate);
            }
        }
        Some(clause)
    }

    /// Does it race with these changes? Nothing, if it is another execution then, or this takes too long.
    fn races(&self, changes: &[Candidate]) -> Option<bool> {
        if self.since.elapsed() > PATIENCE {
            return None;
        }
        self.runtime.strengthen_clocks(super::at_places(changes).collect());
        let failure = replay::failure_of(self.builder, self.runtime, self.schedule);
        let is_same = observed(self.runtime) == self.observed;
        is_same.then(|| failure.is_some_and(|failure| failure.is_race()))
    }
}

/// What could be made stronger, given what is said now.
fn candidates(said: &[Said], model: MemoryModel) -> BTreeSet<Candidate> {
    let mut candidates = BTreeSet::new();
    for &Said { place, what, part, order } in said {
        let changes: &[Change] = match (part, order) {
            (Part::Load, Ordering::Relaxed) => &[Change::Acquire],
            (Part::Failure | Part::Fetch, Ordering::Relaxed) => &[Change::AcquireOnFailure],
            (Part::Store, Ordering::Relaxed) if model == MemoryModel::Sc => &[Change::Release],
            (Part::Store, Ordering::Relaxed) => &[Change::Release, Change::SeqCst],
            (Part::Update, Ordering::Relaxed) => &[Change::Release, Change::Acquire, Change::AcqRel],
            (Part::Update | Part::Fence, Ordering::Acquire | Ordering::Release) => &[Change::AcqRel],
            _ => &[],
        };
        candidates.extend(changes.iter().map(|&change| Candidate::new(change, place, what)));
    }
    candidates
}
