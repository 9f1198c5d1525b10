//! Looking at what others change with interlocked operations only: a plain load, which may overtake earlier stores.

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
        if self.is_strengthened() && self.strength_of(place).fence_before {
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

    /// Does everything that was released to an object happen before what the current thread does next?
    pub(crate) fn comes_after(&self, object: u32) -> bool {
        let causality = &mut self.state().causality;
        let question = causality.ask(self.thread.get(), object);
        causality.answer(question)
    }
}
