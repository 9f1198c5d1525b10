//! The store buffer of SC, TSO and PSO, written once.
//!
//! One list of entries per thread, oldest first. The three models differ in two questions only: where a new store
//! goes, and which stores may leave next.
//!
//! | | SC | TSO | PSO |
//! |---|---|---|---|
//! | a store | never enters | goes to the end | goes to the end of its segment, kept sorted by location |
//! | may commit | – | the oldest | the oldest of each location in the first segment |
//! | `fence(store_store)` | – | no effect | starts a new segment |
//!
//! # Canonical form under PSO
//! Between two store-store fences only the order of stores to the *same* location matters, so a segment is kept
//! sorted by location (stable). Two buffers that behave alike are then equal, which is what state matching needs.
//! No buffer begins with a fence or has two fences in a row.

use crate::ids::Loc;

/// A memory model with store buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryModel {
    /// Sequential consistency: stores act at once.
    Sc,
    /// Total store order: one FIFO buffer per thread.
    Tso,
    /// Partial store order: stores to different locations may overtake one another.
    Pso,
}

impl MemoryModel {
    /// All of them, from strongest to weakest.
    pub const ALL: [Self; 3] = [Self::Sc, Self::Tso, Self::Pso];

    /// The name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sc => "sc",
            Self::Tso => "tso",
            Self::Pso => "pso",
        }
    }
}

/// One entry of a store buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entry {
    /// A store that is not visible to others yet.
    Store {
        /// Its location.
        loc: Loc,
        /// Its value.
        value: i64,
    },
    /// PSO only: stores behind wait for the stores before.
    StoreFence,
}

/// The buffer of one thread. Under SC it stays empty.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StoreBuffer {
    entries: Vec<Entry>,
}

impl StoreBuffer {
    /// Nothing pending.
    pub fn new() -> Self {
        Self::default()
    }

    /// The entries, oldest first (sorted by location within a PSO segment).
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Rebuilds a buffer from what [`StoreBuffer::entries`] gave.
    pub fn from_entries(entries: Vec<Entry>) -> Self {
        Self { entries }
    }

    /// No store is pending.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of pending stores.
    pub fn len(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry, Entry::Store { .. })).count()
    }

    /// Buffers a store. Under SC the caller writes memory instead.
    pub fn store(&mut self, model: MemoryModel, loc: Loc, value: i64) {
        let at = match model {
            MemoryModel::Sc | MemoryModel::Tso => self.entries.len(),
            MemoryModel::Pso => self.place_in_last_segment(loc),
        };
        self.entries.insert(at, Entry::Store { loc, value });
    }

    fn place_in_last_segment(&self, loc: Loc) -> usize {
        let goes_before = |entry: &Entry| matches!(entry, Entry::Store { loc: other, .. } if *other > loc);
        self.entries.len() - self.entries.iter().rev().take_while(|entry| goes_before(entry)).count()
    }

    /// `fence(store_store)`.
    pub fn fence_stores(&mut self, model: MemoryModel) {
        if model == MemoryModel::Pso && matches!(self.entries.last(), Some(Entry::Store { .. })) {
            self.entries.push(Entry::StoreFence);
        }
    }

    /// The value a load of the own thread gets from the buffer: its youngest store to the location.
    pub fn forward(&self, loc: Loc) -> Option<i64> {
        self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Store { loc: other, value } if *other == loc => Some(*value),
            _ => None,
        })
    }

    /// Is a store to the location pending?
    pub fn holds(&self, loc: Loc) -> bool {
        self.forward(loc).is_some()
    }

    /// The locations whose oldest pending store may become visible now, in ascending order under PSO.
    pub fn committable(&self, model: MemoryModel) -> impl Iterator<Item = Loc> + '_ {
        let candidates = if model == MemoryModel::Pso { self.entries.len() } else { 1 };
        let mut previous = None;
        self.entries
            .iter()
            .take(candidates)
            .map_while(|entry| match entry {
                Entry::Store { loc, .. } => Some(*loc),
                Entry::StoreFence => None,
            })
            .filter(move |loc| previous.replace(*loc) != Some(*loc))
    }

    /// Takes out the oldest store to a location that [`StoreBuffer::committable`] named, and gives its value.
    pub fn commit(&mut self, loc: Loc) -> Option<i64> {
        let at = self.entries.iter().position(|entry| matches!(entry, Entry::Store { loc: l, .. } if *l == loc))?;
        let Entry::Store { value, .. } = self.entries.remove(at) else { return None };
        if self.entries.first() == Some(&Entry::StoreFence) {
            self.entries.remove(0);
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: Loc = Loc(0);
    const Y: Loc = Loc(1);

    fn buffer(model: MemoryModel, stores: &[(Loc, i64)]) -> StoreBuffer {
        let mut buffer = StoreBuffer::new();
        for &(loc, value) in stores {
            buffer.store(model, loc, value);
        }
        buffer
    }

    #[test]
    fn tso_commits_in_program_order() {
        let mut b = buffer(MemoryModel::Tso, &[(Y, 1), (X, 2), (Y, 3)]);
        assert_eq!(b.committable(MemoryModel::Tso).collect::<Vec<_>>(), [Y]);
        assert_eq!(b.commit(Y), Some(1));
        assert_eq!(b.committable(MemoryModel::Tso).collect::<Vec<_>>(), [X]);
    }

    #[test]
    fn pso_keeps_the_order_of_one_location_only() {
        let mut b = buffer(MemoryModel::Pso, &[(Y, 1), (X, 2), (Y, 3)]);
        assert_eq!(b.committable(MemoryModel::Pso).collect::<Vec<_>>(), [X, Y]);
        assert_eq!(b.commit(Y), Some(1));
        assert_eq!(b.commit(Y), Some(3));
        assert_eq!(b.commit(X), Some(2));
        assert!(b.is_empty());
    }

    #[test]
    fn pso_buffers_that_behave_alike_are_equal() {
        assert_eq!(buffer(MemoryModel::Pso, &[(Y, 1), (X, 2)]), buffer(MemoryModel::Pso, &[(X, 2), (Y, 1)]));
        assert_ne!(buffer(MemoryModel::Tso, &[(Y, 1), (X, 2)]), buffer(MemoryModel::Tso, &[(X, 2), (Y, 1)]));
    }

    #[test]
    fn a_store_fence_holds_back_what_is_behind_it() {
        let mut b = buffer(MemoryModel::Pso, &[(Y, 1)]);
        b.fence_stores(MemoryModel::Pso);
        b.fence_stores(MemoryModel::Pso);
        b.store(MemoryModel::Pso, X, 2);
        assert_eq!(b.committable(MemoryModel::Pso).collect::<Vec<_>>(), [Y]);
        assert_eq!(b.len(), 2);
        assert_eq!(b.commit(Y), Some(1));
        assert_eq!(b.committable(MemoryModel::Pso).collect::<Vec<_>>(), [X]);
        assert_eq!(b.entries().len(), 1);
    }

    #[test]
    fn a_store_fence_in_an_empty_buffer_and_under_tso_leaves_nothing() {
        let mut b = StoreBuffer::new();
        b.fence_stores(MemoryModel::Pso);
        assert!(b.is_empty());
        let mut b = buffer(MemoryModel::Tso, &[(X, 1)]);
        b.fence_stores(MemoryModel::Tso);
        assert_eq!(b.entries().len(), 1);
    }

    #[test]
    fn loads_see_the_youngest_own_store() {
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let mut b = buffer(model, &[(X, 1), (Y, 5)]);
            b.fence_stores(model);
            b.store(model, X, 2);
            assert_eq!(b.forward(X), Some(2));
            assert_eq!(b.forward(Y), Some(5));
            assert_eq!(b.forward(Loc(7)), None);
        }
    }
}
