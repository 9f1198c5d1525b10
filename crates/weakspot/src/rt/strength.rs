//! Operations that are made stronger at run time, to try out what helps: see [`crate::strengthen`].

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Place, Runtime};
use crate::failure::SourcePlace;
use crate::strengthen::Change;

/// What is done to the operations of a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Strength {
    pub(crate) release: bool,
    pub(crate) seq_cst: bool,
    pub(crate) fence_before: bool,
}

/// The changes that are tried out.
#[derive(Default)]
pub(crate) struct Strengthened {
    any: Cell<bool>,
    changes: RefCell<Vec<(SourcePlace, Change)>>,
    /// What is known of places, by their addresses: one place may have several.
    known: RefCell<FxHashMap<usize, Strength>>,
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
}

impl Runtime {
    /// Makes these changes, and no others.
    pub(crate) fn strengthen(&self, changes: Vec<(SourcePlace, Change)>) {
        self.strengthened.any.set(!changes.is_empty());
        *self.strengthened.changes.borrow_mut() = changes;
        self.strengthened.known.borrow_mut().clear();
    }

    /// Is anything made stronger?
    #[inline]
    pub(crate) fn is_strengthened(&self) -> bool {
        self.strengthened.any.get()
    }

    /// What is done to the operations of this place.
    #[cold]
    pub(crate) fn strength_of(&self, place: Place) -> Strength {
        let address = std::ptr::from_ref(place).addr();
        *self.strengthened.known.borrow_mut().entry(address).or_insert_with(|| {
            let changes = self.strengthened.changes.borrow();
            let is_here = |known: &SourcePlace| {
                (known.file.as_str(), known.line, known.column) == (place.file(), place.line(), place.column())
            };
            if let Some((known, _)) = changes.iter().find(|(known, _)| is_here(known)) {
                self.strengthened.met.lock().unwrap_or_else(PoisonError::into_inner).insert(known.clone());
            }
            let has = |change| changes.iter().any(|(known, made)| *made == change && is_here(known));
            Strength {
                release: has(Change::Release),
                seq_cst: has(Change::SeqCst),
                fence_before: has(Change::FenceBefore),
            }
        })
    }
}
