//! Interlocked operations that nobody sees.
//!
//! A reference count that the program does not look at is no event: where it stands among the events of others makes no
//! difference. But the processor changes it with interlocked operations, which empty the store buffer of their thread. That
//! is owed, and paid by a fence before the next access: a load could overtake a store, and the next store need not have left
//! the buffer when a load comes after it. If something that empties the buffer comes first, there is nothing left to pay, and
//! so most of them cost no event at all.
//!
//! What is owed depends on nothing but what the thread has done, so that runs repeat it.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;

use super::lane::Operation;
use super::{Place, Runtime, Sync};

/// What was interlocked, and where.
pub(crate) type Debt = (&'static str, Place);

impl Runtime {
    /// The current thread has done something interlocked that is no event. On PSO one that orders nothing waits for stores to
    /// its own location alone, and there are none.
    pub(crate) fn owe_drain(&self, what: &'static str, sync: Sync, place: Place) {
        let drains = match self.model {
            MemoryModel::Sc => false,
            MemoryModel::Tso => true,
            MemoryModel::Pso => sync != Sync::Relaxed || self.is_behind_fence(),
        };
        if drains && !self.is_free() {
            let owed = self.state().lanes[self.thread.get() as usize].owed.replace((what, place));
            self.debts.set(self.debts.get() + u32::from(owed.is_none()));
        }
    }

    /// Does any thread owe something?
    #[inline]
    pub(crate) fn has_debts(&self) -> bool {
        self.debts.get() != 0
    }

    /// The current thread is about to do something that does not empty its buffer.
    #[cold]
    pub(crate) fn pay(&self) {
        if let Some((what, place)) = self.take_debt()
            && !self.is_free()
        {
            self.post(Operation::Fence(FenceKind::Full), what, place);
            self.note_store(false);
        }
    }

    /// The current thread is about to do something that empties its buffer.
    #[cold]
    pub(crate) fn forgive(&self) {
        self.take_debt();
    }

    fn take_debt(&self) -> Option<Debt> {
        let debt = self.state().lanes[self.thread.get() as usize].owed.take();
        self.debts.set(self.debts.get() - u32::from(debt.is_some()));
        debt
    }
}

impl Operation {
    /// Does it empty the buffer of its thread, under every model?
    pub(super) fn drains(self) -> bool {
        match self {
            Self::Load(_) | Self::Store(..) | Self::Fence(FenceKind::StoreStore) | Self::Choose(_) => false,
            Self::Rmw { drains_all, looks, .. } => drains_all && !looks,
            Self::InterlockedStore(..)
            | Self::Fence(_)
            | Self::Lock(_)
            | Self::TryLock(_)
            | Self::Unlock(_)
            | Self::Wait { .. }
            | Self::Notify { .. }
            | Self::Spawn { .. }
            | Self::Begin(_)
            | Self::End(_)
            | Self::Join { .. }
            | Self::Open(_)
            | Self::Pass(_) => true,
            Self::Absent | Self::Commit(_) | Self::Plain | Self::Ended | Self::Failed => false,
        }
    }
}
