//! Operations that are made stronger at run time, to try out what helps: see [`crate::strengthen`].
//!
//! An ordering means two things: what the event does to store buffers, and what it hands on of what has happened before. An
//! execution that is run again to see whether it still races must have the events that it had, so that its schedule fits: then
//! the latter alone is made stronger ([`Runtime::strengthen_clocks`]).

use std::cell::{Cell, RefCell};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_model::ir::FenceKind;

use super::{Place, Runtime};
use crate::failure::SourcePlace;
use crate::strengthen::Change;

/// What an ordering is said for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Load,
    Store,
    /// A read-modify-write that writes.
    Update,
    /// One that does not.
    Failure,
    /// The load with which `fetch_update` begins: it has the ordering of failure.
    Fetch,
    Fence,
}

/// What is done to the operations of a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a change of its own")]
pub(crate) struct Strength {
    pub(crate) release: bool,
    acquire: bool,
    acquire_on_failure: bool,
    pub(crate) seq_cst: bool,
    pub(crate) fence_before: bool,
}

impl Strength {
    fn of(changes: impl Iterator<Item = Change>) -> Self {
        let mut strength = Self::default();
        for change in changes {
            match change {
                Change::Release => strength.release = true,
                Change::Acquire => strength.acquire = true,
                Change::AcqRel => (strength.acquire, strength.release) = (true, true),
                Change::AcquireOnFailure => strength.acquire_on_failure = true,
                Change::SeqCst => strength.seq_cst = true,
                Change::FenceBefore => strength.fence_before = true,
            }
        }
        strength
    }

    /// The ordering that takes the place of this one.
    fn order(self, order: Ordering, part: Part) -> Ordering {
        match part {
            Part::Store | Part::Update if self.seq_cst => Ordering::SeqCst,
            Part::Load => stronger(order, self.acquire, false),
            Part::Store => stronger(order, false, self.release),
            Part::Update | Part::Fence => stronger(order, self.acquire, self.release),
            Part::Failure | Part::Fetch => stronger(order, self.acquire_on_failure, false),
        }
    }
}

fn stronger(order: Ordering, acquire: bool, release: bool) -> Ordering {
    let acquires = acquire || matches!(order, Ordering::Acquire | Ordering::AcqRel);
    let releases = release || matches!(order, Ordering::Release | Ordering::AcqRel);
    match (acquires, releases) {
        _ if order == Ordering::SeqCst => order,
        (true, true) => Ordering::AcqRel,
        (true, false) => Ordering::Acquire,
        (false, true) => Ordering::Release,
        (false, false) => order,
    }
}

/// An ordering that a run has come to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said {
    pub(crate) place: Place,
    /// What the operation is called.
    pub(crate) what: &'static str,
    pub(crate) part: Part,
    /// As the source has it.
    pub(crate) order: Ordering,
}

impl Said {
    fn is(&self, other: &Self) -> bool {
        std::ptr::eq(self.place, other.place) && (self.part, self.order) == (other.part, other.order)
    }
}

/// The changes that are tried out.
#[derive(Default)]
pub(crate) struct Strengthened {
    /// Are there any, or are orderings noted?
    any: Cell<bool>,
    changes: RefCell<Vec<(SourcePlace, Change)>>,
    /// More of them, which change what happens before what and no event.
    of_clocks: RefCell<Vec<(SourcePlace, Change)>>,
    /// What is done to the events of places, and to what they hand on; by their addresses: one place may have several.
    known: RefCell<FxHashMap<usize, (Strength, Strength)>>,
    /// The orderings that the run has come to, each once, if they are noted.
    said: RefCell<Option<Vec<Said>>>,
    /// Those of the changes that were ever made, by any worker.
    pub(super) met: Arc<Mutex<FxHashSet<SourcePlace>>>,
}

impl Strengthened {
    /// All of them.
    pub(crate) fn changes(&self) -> Vec<(SourcePlace, Change)> {
        self.changes.borrow().clone()
    }

    /// Has an operation been met at this place?
    pub(crate) fn has_met(&self, place: &SourcePlace) -> bool {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).contains(place)
    }

    fn note(&self, said: Said) {
        if let Some(known) = &mut *self.said.borrow_mut()
            && !known.iter().any(|other| other.is(&said))
        {
            known.push(said);
        }
    }

    fn has_changed(&self) {
        let any = [&self.changes, &self.of_clocks].iter().any(|changes| !changes.borrow().is_empty());
        self.any.set(any || self.said.borrow().is_some());
        self.known.borrow_mut().clear();
    }
}

impl Runtime {
    /// Makes these changes, and no others.
    pub(crate) fn strengthen(&self, changes: Vec<(SourcePlace, Change)>) {
        *self.strengthened.changes.borrow_mut() = changes;
        self.strengthen_clocks(Vec::new());
    }

    /// Makes these changes as well: to what happens before what, and to no event.
    pub(crate) fn strengthen_clocks(&self, changes: Vec<(SourcePlace, Change)>) {
        *self.strengthened.of_clocks.borrow_mut() = changes;
        self.strengthened.has_changed();
    }

    /// The orderings that are come to while something is done.
    pub(crate) fn orderings_said(&self, run: impl FnOnce()) -> Vec<Said> {
        *self.strengthened.said.borrow_mut() = Some(Vec::new());
        self.strengthened.has_changed();
        run();
        let said = self.strengthened.said.take().unwrap_or_default();
        self.strengthened.has_changed();
        said
    }

    /// An ordering as it is to be: for the event, and for what happens before what.
    #[inline]
    pub(crate) fn strong(&self, order: Ordering, part: Part, what: &'static str, place: Place) -> (Ordering, Ordering) {
        if self.strengthened.any.get() { self.made_strong(Said { place, what, part, order }) } else { (order, order) }
    }

    #[cold]
    fn made_strong(&self, said: Said) -> (Ordering, Ordering) {
        self.strengthened.note(said);
        let Said { place, part, order, .. } = said;
        let (of_event, of_clocks) = self.strengths_of(place);
        if of_event.fence_before && !matches!(part, Part::Failure | Part::Fence) {
            self.fence(FenceKind::Full, place);
        }
        let event = of_event.order(order, part);
        (event, of_clocks.order(event, part))
    }

    /// What is done to the events of this place that say no ordering.
    #[inline]
    pub(crate) fn strength_of(&self, place: Place) -> Strength {
        if self.strengthened.any.get() { self.strengths_of(place).0 } else { Strength::default() }
    }

    #[cold]
    fn strengths_of(&self, place: Place) -> (Strength, Strength) {
        let Strengthened { known, changes, of_clocks, met, .. } = &self.strengthened;
        let address = std::ptr::from_ref(place).addr();
        *known.borrow_mut().entry(address).or_insert_with(|| {
            let is_here = |(known, _): &&(SourcePlace, Change)| {
                (known.file.as_str(), known.line, known.column) == (place.file(), place.line(), place.column())
            };
            if let Some((known, _)) = changes.borrow().iter().find(is_here) {
                met.lock().unwrap_or_else(PoisonError::into_inner).insert(known.clone());
            }
            let made_here = |changes: &RefCell<Vec<_>>| {
                Strength::of(changes.borrow().iter().filter(is_here).map(|&(_, change)| change))
            };
            (made_here(changes), made_here(of_clocks))
        })
    }
}
