//! Ordering constraints (Sec. 5.2): which sets of fences enforce `[l ≺ l_t]`, a fence on every path from a store to a step.
//!
//! "A fence on every path" is an avoid formula again, over the control flow of one thread: what avoids reaching `l_t` from
//! `l` without a fence. Edges are prevented by a fence in the gap they lead through; and by what drains the buffer anyway,
//! which nothing has to prevent.
//!
//! The control flow comes from the program with markers, where a marker stands for its gap. Its events without the choices
//! of the markers are the events of the program without markers, in the same order; jumps may differ.

use rustc_hash::FxHashMap;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::{Pc, ThreadId};
use weakspot_model::ir::{FenceKind, Instr, Place, Program, Thread};
use weakspot_model::liveness::successors;

use super::bdd::{Formula, Formulas};
use super::label::{self, Edges};
use crate::FenceError;
use crate::points::Rendered;

/// The constraints of one thread.
#[derive(Debug)]
pub(crate) struct Constraints {
    model: MemoryModel,
    /// The code of the program with markers.
    code: Thread,
    /// For each of them: the gap whose marker it is.
    markers: Vec<Option<usize>>,
    /// Where the events of the program without markers are in the one with markers.
    places: FxHashMap<Pc, usize>,
    /// For each store met so far: what enforces that it is visible before each instruction.
    known: FxHashMap<Pc, Vec<Formula>>,
}

impl Constraints {
    /// The thread in the program without markers and in the one with them.
    pub(crate) fn new(
        model: MemoryModel,
        plain: &Program,
        marked: &Program,
        rendered: &Rendered,
        thread: ThreadId,
    ) -> Result<Self, FenceError> {
        let code = marked.threads[thread.index()].clone();
        let start = |pc: usize| marked.sites[code.sites[pc].index()].span.start as usize;
        let markers: Vec<Option<usize>> = (0..code.code.len())
            .map(|pc| if matches!(code.code[pc], Instr::Choose { .. }) { rendered.marker(start(pc)) } else { None })
            .collect();
        let there = (0..code.code.len()).filter(|&pc| is_event(&code.code[pc]) && markers[pc].is_none());
        let events = &plain.threads[thread.index()].code;
        let here = (0..events.len()).filter(|&pc| is_event(&events[pc]));
        let same = |&(here, there): &(usize, usize)| {
            std::mem::discriminant(&events[here]) == std::mem::discriminant(&code.code[there])
        };
        let pairs: Vec<(usize, usize)> = here.clone().zip(there.clone()).collect();
        if here.count() != there.count() || !pairs.iter().all(same) {
            let name = &plain.threads[thread.index()].name;
            return Err(FenceError::Layout(format!("markers change more than they add in {name}")));
        }
        let places = pairs.into_iter().map(|(here, there)| (Pc::new(here), there)).collect();
        Ok(Self { model, code, markers, places, known: FxHashMap::default() })
    }

    /// What enforces that a store is visible before an instruction, both of the program without markers.
    pub(crate) fn enforced(&mut self, formulas: &mut Formulas, store: Pc, step: Pc) -> Formula {
        let place = self.places[&step];
        if let Some(known) = self.known.get(&store) {
            return known[place];
        }
        let labels = self.behind_store(formulas, self.places[&store]);
        let answer = labels[place];
        self.known.insert(store, labels);
        answer
    }

    /// What avoids reaching each instruction with the store still pending.
    fn behind_store(&self, formulas: &mut Formulas, store: usize) -> Vec<Formula> {
        let behind_the_store = self.code.code.len();
        let mut edges = Edges::default();
        for pc in 0..behind_the_store {
            let prevent = match self.markers[pc] {
                Some(gap) => formulas.any(&[gap]),
                None if self.drains(pc, store) => Formula::TRUE,
                None => Formula::FALSE,
            };
            edges.push_node(self.next(pc).into_iter().map(|next| (next, prevent)));
        }
        edges.push_node(self.next(store).into_iter().map(|next| (next, Formula::FALSE)));
        label::avoid(formulas, &edges, behind_the_store, None, |_| true).unwrap_or_default()
    }

    fn next(&self, pc: usize) -> Vec<u32> {
        successors(&self.code.code[pc], Pc::new(pc)).map(|next| next.0).collect()
    }

    /// Is the store visible once this instruction has been passed?
    fn drains(&self, pc: usize, store: usize) -> bool {
        match self.code.code[pc] {
            Instr::Fence(kind) => kind != FenceKind::StoreStore,
            Instr::Lock(_) | Instr::Unlock(_) | Instr::Wait { .. } | Instr::Notify { .. } => true,
            Instr::Rmw { drains_all, place, .. } => {
                drains_all || self.model != MemoryModel::Pso || self.is_store_to(store, place)
            }
            _ => false,
        }
    }

    fn is_store_to(&self, store: usize, place: Place) -> bool {
        match (self.code.code[store], place) {
            (Instr::Store { place: Place::Fixed(stored), .. }, Place::Fixed(loc)) => stored == loc,
            _ => false,
        }
    }
}

/// Is it something a thread pauses at?
fn is_event(instr: &Instr) -> bool {
    match instr {
        Instr::Load { .. }
        | Instr::Store { .. }
        | Instr::Rmw { .. }
        | Instr::Fence(_)
        | Instr::Lock(_)
        | Instr::Unlock(_)
        | Instr::Wait { .. }
        | Instr::Notify { .. }
        | Instr::Choose { .. }
        | Instr::LeaveCritical
        | Instr::ThreadRegister { .. }
        | Instr::End => true,
        Instr::Set { .. }
        | Instr::Unary { .. }
        | Instr::Binary { .. }
        | Instr::Jump { .. }
        | Instr::Branch { .. }
        | Instr::Assert { .. }
        | Instr::Assume { .. }
        | Instr::EnterCritical => false,
    }
}
