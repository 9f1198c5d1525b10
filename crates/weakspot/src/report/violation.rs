//! What store buffers add: a store that another thread can find to be late.

use std::fmt::Write;

use crate::failure::SourcePlace;
use crate::rt::lane::Happened;
use crate::source;

/// One side of a store-buffer violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// Number of the thread.
    pub thread: u32,
    /// What it does: `store`, `load`, …
    pub what: &'static str,
    /// Where.
    pub place: SourcePlace,
}

impl Party {
    pub(crate) fn of(happened: &Happened) -> Self {
        Self { thread: happened.thread, what: happened.what, place: happened.place.into() }
    }
}

/// A store that may still be in its buffer when its thread goes on, so that another thread can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The store.
    pub store: Party,
    /// What another thread does meanwhile: it accesses the same location or, if the store is delayed past a load, the
    /// location of that load.
    pub access: Party,
    /// What the thread of the store does before the store reaches memory, if that is known.
    pub overtaken_by: Option<Party>,
    /// `access` is to the location of `overtaken_by`, which misses it.
    pub(crate) is_missed: bool,
    /// It is one of the execution that is shown, and its threads are those of that execution. Otherwise they are those of
    /// the execution it was first seen in.
    pub is_of_harm: bool,
    /// How often it was told of. In executions that begin as an earlier one did it is not told of again if it was in that
    /// beginning, and an execution may have it more than once. To count executions, each of them would have to be
    /// asked for all its violations again, which costs more than the exploration itself.
    pub executions: u64,
}

impl Violation {
    /// What a monitor has found: a write and a later access that a processor may do first. The store that is delayed then
    /// is the write itself, or one of the accessing thread.
    pub(crate) fn of(write: &Happened, access: &Happened, pair: Option<(Party, Party)>) -> Self {
        let is_missed = pair.as_ref().is_some_and(|(store, _)| store.thread == access.thread);
        let (store, overtaken_by) = match pair {
            Some((store, later)) => (store, Some(later)),
            None => (Party::of(write), None),
        };
        let access = Party::of(if is_missed { write } else { access });
        Self { store, access, overtaken_by, is_missed, is_of_harm: false, executions: 0 }
    }

    /// Is it the same, whoever the threads are?
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let is_known = self.overtaken_by.is_some() && other.overtaken_by.is_some();
        let overtaken_by = |violation: &Self| violation.overtaken_by.as_ref().map(|party| party.place.clone());
        (&self.store.place, &self.access.place) == (&other.store.place, &other.access.place)
            && (!is_known || self.is_missed == other.is_missed && overtaken_by(self) == overtaken_by(other))
    }

    /// In words, with its places.
    pub(super) fn describe(&self) -> String {
        let Self { store, access, overtaken_by, is_missed, .. } = self;
        let mut text = format!("the store of thread {} may still be in its buffer when ", store.thread);
        let does = |party: &Party| if party.what == "load" { "reads" } else { "goes on" };
        match overtaken_by {
            // The store is delayed past an access of its own thread, which the other one then misses.
            Some(later) if *is_missed => {
                let _ = writeln!(
                    text,
                    "the thread {}: it misses what thread {} does meanwhile",
                    does(later),
                    access.thread
                );
                text.push_str(&source::excerpt(&store.place, "this store"));
                text.push_str(&source::excerpt(&later.place, "comes before it"));
                text.push_str(&source::excerpt(&access.place, "and this in between"));
            }
            _ => {
                let reads = if access.what == "load" { "reads" } else { "accesses the same location" };
                let _ = writeln!(text, "thread {} {reads}", access.thread);
                text.push_str(&source::excerpt(&store.place, "this store"));
                text.push_str(&source::excerpt(&access.place, "this access"));
                if let Some(later) = overtaken_by {
                    let _ = write!(text, "    = the store is overtaken by the {} at {}", later.what, later.place);
                }
            }
        }
        text.trim_end().to_owned()
    }
}
