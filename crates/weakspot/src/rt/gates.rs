//! What objects are made of where one word would tell more than anybody can see, and gates: whoever passes one waits until somebody has
//! opened it, once. There is nothing else that a thread could find, so that passing costs no executions, however often what a gate
//! belongs to is used again.

use super::lane::Operation;
use super::objects::Object;
use super::state::State;
use super::{Place, Runtime, Sync};

impl Runtime {
    /// A part of an object, by a number that nothing else of it has: the gate of one of its rounds, for example.
    pub(crate) fn part(&self, of: u32, number: u64, place: Place) -> u32 {
        let known = self.state().parts.get(&(of, number)).copied();
        known.unwrap_or_else(|| {
            let part = self.add_object(Object::new(0, place));
            self.state().parts.insert((of, number), part);
            part
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

impl State {
    /// What an object is a part of: itself if it is a part of nothing.
    pub(super) fn whole(&self, object: u32) -> u32 {
        let part = self.parts.iter().find(|&(_, &part)| part == object);
        part.map_or(object, |(&(of, _), _)| of)
    }
}
