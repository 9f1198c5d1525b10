//! Every combination of reads-from and coherence order of a straight-line program, allowed by any model or not.
//!
//! Whether a `cas` succeeds decides whether it writes, so that is guessed first and checked when the values are
//! known. Values follow from reads-from; a candidate whose values depend on themselves is no execution under any
//! model (each of them keeps a load before a later store) and is left out.

use std::collections::BTreeSet;

use weakspot_model::ids::{Loc, Pc, ThreadId};
use weakspot_model::ir::{FenceKind, Instr, Place, Program, RmwOp};
use weakspot_model::local::{self, Advance, LocalState, Pause};
use weakspot_model::trace::{Event, Operation, Trace};

/// All candidate traces of a program of loads, stores, atomics, fences and local computation without branches; `None`
/// if there would be more than `limit` combinations to look at.
pub fn candidates(program: &Program, limit: usize) -> Option<BTreeSet<Trace>> {
    let slots = slots(program);
    let guesses: Vec<usize> = (0..slots.len()).filter(|&slot| slots[slot].kind == SlotKind::MayWrite).collect();
    if combinations(program, &slots).is_none_or(|count| count > limit) {
        return None;
    }
    let mut found = BTreeSet::new();
    for succeed in 0..1_usize << guesses.len() {
        let mut writes: Vec<bool> = slots.iter().map(|slot| slot.kind == SlotKind::Writes).collect();
        for (bit, &slot) in guesses.iter().enumerate() {
            writes[slot] = succeed >> bit & 1 == 1;
        }
        let mut search = Search { program, slots: &slots, writes, coherence: vec![0; slots.len()], found: &mut found };
        search.order_writes(0);
    }
    Some(found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    Reads,
    Writes,
    MayWrite,
    Fence(FenceKind),
}

/// One event of the program, before it is known what it reads.
struct Slot {
    thread: ThreadId,
    pc: Pc,
    kind: SlotKind,
    loc: Option<Loc>,
    drains_all: bool,
}

fn slots(program: &Program) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (thread, code) in program.thread_ids().zip(&program.threads) {
        for (pc, instr) in code.code.iter().enumerate() {
            let (kind, place, drains_all) = match *instr {
                Instr::Load { place, .. } => (SlotKind::Reads, Some(place), false),
                Instr::Store { place, .. } => (SlotKind::Writes, Some(place), false),
                Instr::Rmw { place, op, drains_all, .. } => {
                    let conditional = matches!(op, RmwOp::Cas { .. } | RmwOp::CompareExchange { .. });
                    let kind = if conditional { SlotKind::MayWrite } else { SlotKind::Writes };
                    (kind, Some(place), drains_all)
                }
                Instr::Fence(kind) => (SlotKind::Fence(kind), None, false),
                Instr::Set { .. } | Instr::Unary { .. } | Instr::Binary { .. } | Instr::End => continue,
                _ => panic!("candidates are for straight-line programs of memory accesses"),
            };
            let loc = place.map(|place| match place {
                Place::Fixed(loc) => loc,
                Place::Indexed { .. } => panic!("candidates are for programs with fixed places"),
            });
            slots.push(Slot { thread, pc: Pc::new(pc), kind, loc, drains_all });
        }
    }
    slots
}

/// An upper bound on the number of combinations.
fn combinations(program: &Program, slots: &[Slot]) -> Option<usize> {
    let mut count = 1_usize;
    for loc in (0..program.locations.len()).map(Loc::new) {
        let here = || slots.iter().filter(move |slot| slot.loc == Some(loc));
        let writes = here().filter(|slot| slot.kind != SlotKind::Reads).count();
        for order in 1..=writes {
            count = count.checked_mul(order)?;
        }
        for _ in here().filter(|slot| matches!(slot.kind, SlotKind::Reads | SlotKind::MayWrite)) {
            count = count.checked_mul(writes + 1)?;
        }
    }
    Some(count)
}

struct Search<'a> {
    program: &'a Program,
    slots: &'a [Slot],
    /// Which slots write in this search.
    writes: Vec<bool>,
    /// Coherence index of each slot: written for writes, read for reads.
    coherence: Vec<u32>,
    found: &'a mut BTreeSet<Trace>,
}

impl Search<'_> {
    fn writers(&self, loc: Loc) -> Vec<usize> {
        (0..self.slots.len()).filter(|&slot| self.writes[slot] && self.slots[slot].loc == Some(loc)).collect()
    }

    /// Chooses coherence orders, location by location.
    fn order_writes(&mut self, loc: usize) {
        if loc == self.program.locations.len() {
            return self.choose_sources(0);
        }
        let writers = self.writers(Loc::new(loc));
        self.permute(loc, &writers, 1);
    }

    fn permute(&mut self, loc: usize, left: &[usize], index: u32) {
        if left.is_empty() {
            return self.order_writes(loc + 1);
        }
        for &slot in left {
            self.coherence[slot] = index;
            let rest: Vec<usize> = left.iter().copied().filter(|&other| other != slot).collect();
            self.permute(loc, &rest, index + 1);
        }
    }

    /// Chooses what each event that only reads has read.
    fn choose_sources(&mut self, slot: usize) {
        if slot == self.slots.len() {
            return self.evaluate();
        }
        match self.slots[slot].loc {
            Some(loc) if !self.writes[slot] => {
                for index in 0..=self.writers(loc).len() {
                    self.coherence[slot] = index as u32;
                    self.choose_sources(slot + 1);
                }
            }
            _ => self.choose_sources(slot + 1),
        }
    }

    /// Computes the values, and keeps the candidate if they agree with the guesses.
    fn evaluate(&mut self) {
        let Some(operations) = Evaluation::new(self).run() else { return };
        let event = |(slot, operation): (&Slot, Operation)| (slot.thread, slot.pc, operation);
        let events = self.slots.iter().zip(operations).map(event).zip(&self.coherence);
        let events = events.map(|((thread, pc, operation), &coherence)| Event { thread, pc, operation, coherence });
        let trace = Trace::new(events.collect()).expect("invariant: indices are chosen without gaps");
        self.found.insert(trace);
    }
}

/// Runs the threads against the chosen sources, each as far as the values it reads are known.
struct Evaluation<'a> {
    search: &'a Search<'a>,
    threads: Vec<(LocalState, Pause)>,
    /// The next slot of each thread.
    next: Vec<usize>,
    operations: Vec<Option<Operation>>,
}

impl<'a> Evaluation<'a> {
    fn new(search: &'a Search<'a>) -> Self {
        let program = search.program;
        let threads = program.threads.iter().map(|thread| {
            let (local, advance) = local::start(thread, &program.locations);
            (local, paused(advance))
        });
        let first = |thread: ThreadId| search.slots.iter().take_while(|slot| slot.thread < thread).count();
        Self {
            search,
            threads: threads.collect(),
            next: program.thread_ids().map(first).collect(),
            operations: vec![None; search.slots.len()],
        }
    }

    /// What each slot did; `None` if a guess was wrong or values depend on themselves.
    fn run(mut self) -> Option<Vec<Operation>> {
        let mut progress = true;
        while progress {
            progress = false;
            for thread in 0..self.threads.len() {
                while self.threads[thread].1 != Pause::End && self.step(thread)? {
                    progress = true;
                }
            }
        }
        self.operations.into_iter().collect()
    }

    /// One event of a thread; `Some(false)` if what it reads is not known yet, `None` if a guess was wrong.
    fn step(&mut self, thread: usize) -> Option<bool> {
        let slot = self.next[thread];
        let index = self.search.coherence[slot];
        let Slot { drains_all, .. } = self.search.slots[slot];
        let (operation, result) = match self.threads[thread].1 {
            Pause::Load { loc } => match self.value(loc, index) {
                Some(value) => (Operation::Load { loc, value }, value),
                None => return Some(false),
            },
            Pause::Store { loc, value } => (Operation::Store { loc, value }, 0),
            Pause::Rmw { loc, op, .. } => {
                let Some(read) = self.value(loc, index - u32::from(self.search.writes[slot])) else {
                    return Some(false);
                };
                let (result, written) = local::rmw(op, read, loc, &self.search.program.locations)
                    .expect("invariant: values of straight-line programs are small");
                if written.is_some() != self.search.writes[slot] {
                    return None;
                }
                (Operation::Rmw { loc, read, written, drains_all }, result)
            }
            Pause::Fence(kind) => (Operation::Fence(kind), 0),
            _ => unreachable!("invariant: slots are memory accesses and fences"),
        };
        self.operations[slot] = Some(operation);
        self.next[thread] += 1;
        let (local, pause) = &mut self.threads[thread];
        let program = self.search.program;
        *pause = paused(local::resume(&program.threads[thread], &program.locations, local, result));
        Some(true)
    }

    /// The value of a coherence index, if it is known by now.
    fn value(&self, loc: Loc, index: u32) -> Option<i64> {
        if index == 0 {
            return Some(self.search.program.locations[loc.index()].init);
        }
        let writer = self.search.writers(loc).into_iter().find(|&slot| self.search.coherence[slot] == index)?;
        match self.operations[writer]? {
            Operation::Store { value, .. } => Some(value),
            Operation::Rmw { written, .. } => written,
            _ => None,
        }
    }
}

fn paused(advance: Result<Advance, weakspot_model::problem::Fault>) -> Pause {
    match advance {
        Ok(Advance::Paused { pause, .. }) => pause,
        Ok(Advance::Pruned) | Err(_) => panic!("candidates are for programs without assumptions and errors"),
    }
}
