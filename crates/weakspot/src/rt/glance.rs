//! Looking at what others change with interlocked operations only: a plain load, which may overtake earlier stores.
//!
//! Whoever would initialise something looks first, too, and an interlocked operation follows only where there is something to
//! do. Those two are one event ([`Word::look_and_update`](super::Word::look_and_update)): where the look has led to the operation, nobody
//! knows what it has seen. Where no store can be late for it, it is the operation alone.

use weakspot_model::buffer::MemoryModel;
use weakspot_model::ir::FenceKind;

use super::lane::Operation;
use super::{Place, Runtime, Sync};

impl Runtime {
    /// Looks at an object: its value, which outside of events is what `value` says.
    pub(crate) fn look(
        &self,
        object: u32,
        value: impl Fn() -> u64,
        what: &'static str,
        sync: Sync,
        place: Place,
    ) -> u64 {
        if self.has_debts() {
            self.pay();
        }
        if self.strength_of(place).fence_before {
            self.fence(FenceKind::Full, place);
        }
        let mut found = None;
        if !self.is_free() {
            found = Some(self.post(Operation::Load(object), what, place) as u64);
        }
        if self.is_free() {
            found = None;
        }
        self.synchronise_load(object, sync);
        found.unwrap_or_else(value)
    }

    /// May a store of the current thread still be in its buffer? What the thread has done says that, and not when it reaches memory.
    pub(crate) fn may_have_pending_store(&self) -> bool {
        if self.is_free() || self.model == MemoryModel::Sc {
            return false;
        }
        let (state, thread) = (self.state(), self.thread.get());
        // What it owes empties the buffer before anything could overtake a store.
        if state.lanes[thread as usize].owed.is_some() {
            return false;
        }
        let own = state.log.iter().rev().filter(|happened| happened.thread == thread);
        for happened in own {
            match happened.operation {
                Operation::Store(..) => return true,
                Operation::Rmw { drains_all: false, .. } if self.model == MemoryModel::Pso => {}
                Operation::Rmw { looks: true, .. } if happened.written.is_none() => {}
                Operation::Load(_)
                | Operation::Choose(_)
                | Operation::Commit(_)
                | Operation::Fence(FenceKind::StoreStore) => {}
                _ => return false,
            }
        }
        false
    }

    /// Does everything that was released to an object happen before what the current thread does next?
    pub(crate) fn comes_after(&self, object: u32) -> bool {
        let causality = &mut self.state().causality;
        let question = causality.ask(self.thread.get(), object);
        causality.answer(question)
    }
}
