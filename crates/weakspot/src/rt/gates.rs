//! Gates: whoever passes waits until somebody has opened it, once. There is nothing else that a thread could find, so that
//! passing costs no executions, however often what a gate belongs to is used again.

use super::lane::Operation;
use super::objects::Object;
use super::{Place, Runtime, Sync};

impl Runtime {
    /// The gate of a round of something that is used again and again.
    pub(crate) fn gate(&self, of: u32, round: u64, place: Place) -> u32 {
        let known = self.state().gates.get(&(of, round)).copied();
        known.unwrap_or_else(|| {
            let gate = self.add_object(Object::new(0, place));
            self.state().gates.insert((of, round), gate);
            gate
        })
    }

    /// Opens a gate.
    pub(crate) fn open_gate(&self, gate: u32, what: &'static str, place: Place) {
        if !self.is_free() {
            self.post(Operation::Open(gate), what, place);
        }
        self.synchronise_store(gate, Sync::Release);
        self.state().objects[gate as usize].held = true;
    }

    /// Waits until a gate is open.
    pub(crate) fn pass_gate(&self, gate: u32, what: &'static str, place: Place) {
        if !self.is_free() {
            self.post(Operation::Pass(gate), what, place);
        }
        if self.is_free() {
            while !self.is_open(gate) && self.give_way() {}
        }
        self.synchronise_load(gate, Sync::Acquire);
    }

    pub(super) fn is_open(&self, gate: u32) -> bool {
        self.state().objects[gate as usize].held
    }
}
