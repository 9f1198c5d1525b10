//! Does a set of abstract states cover a concrete one? The concretisation, written on its own for the tests.
//!
//! The paper defines α by β; this is the other direction, γ, decided for one concrete state of the reference machine.
//! Nothing of the search uses it: it shares the representation with the search, and no rule.
//!
//! | what | is covered if |
//! |---|---|
//! | memory, registers that are live | the value is a member |
//! | control, phases, mutexes | equal |
//! | a buffer | see the table "what a tuple stands for" in `buffer` |
//! | a buffer with store-store fences | its segments can be cut into as many groups as there are abstract segments, each covered |

use rustc_hash::FxHashMap;
use weakspot_model::buffer::{Entry as Pending, MemoryModel, StoreBuffer};
use weakspot_model::ids::{Loc, MutexId, Pc, Reg, ThreadId};
use weakspot_model::ir::Program;
use weakspot_model::liveness::Liveness;
use weakspot_model::local;
use weakspot_model::machine::{State, ThreadState};
use weakspot_model::task::{Budget, Limit};

use super::buffer::{AbstractBuffer, Entry, Fifo};
use super::buffers::BufferId;
use super::locals::Pause;
use super::search::Search;
use super::system::{buffer_at, local_at};
use super::{AbstractOptions, AnyFailure, Domain};
use crate::threads::LocalId;

/// All abstract states of a program.
pub struct Cover<'p> {
    search: Search<'p>,
    domain: Domain,
    liveness: Vec<Liveness>,
    /// States that are not retired, by the program counters of their threads.
    by_control: FxHashMap<Vec<Pc>, Vec<u32>>,
    /// The abstraction breaks the specification.
    pub fails: bool,
}

/// Explores everything, errors or not.
pub fn explore<'p>(program: &'p Program, options: &AbstractOptions, budget: &Budget) -> Result<Cover<'p>, Limit> {
    let mut search = Search::new(program, options, false);
    let mut failures = AnyFailure::default();
    search.run(&mut failures, budget, &())?;
    let mut by_control: FxHashMap<Vec<Pc>, Vec<u32>> = FxHashMap::default();
    for state in (0..search.store.len() as u32).filter(|&state| !search.store.is_retired(state)) {
        let row = search.store.row(state);
        let pc = |thread: ThreadId| search.system.locals[thread.index()].pc(LocalId(row[local_at(thread)]));
        by_control.entry(program.thread_ids().map(pc).collect()).or_default().push(state);
    }
    let liveness = program.threads.iter().map(Liveness::of).collect();
    Ok(Cover { search, domain: options.domain, liveness, by_control, fails: failures.0 })
}

impl Cover<'_> {
    /// How many abstract states there are.
    pub fn len(&self) -> usize {
        self.by_control.values().map(Vec::len).sum()
    }

    /// No state at all.
    pub fn is_empty(&self) -> bool {
        self.by_control.is_empty()
    }

    /// Does some abstract state cover the concrete one?
    pub fn covers(&self, state: &State) -> bool {
        let control: Vec<Pc> = state.threads.iter().map(|thread| thread.local.pc).collect();
        let spins = state.threads.iter().any(|thread| thread.pause == local::Pause::Spin);
        if spins {
            // Where in a loop without events a thread is found spinning is not part of its behaviour.
            return self.by_control.values().flatten().any(|&candidate| self.covered_by(candidate, state));
        }
        self.by_control
            .get(&control)
            .is_some_and(|candidates| candidates.iter().any(|&candidate| self.covered_by(candidate, state)))
    }

    fn covered_by(&self, candidate: u32, state: &State) -> bool {
        let system = &self.search.system;
        let row = self.search.store.row(candidate);
        let memory = state.memory.iter().enumerate().all(|(index, &value)| {
            let held = system.read(row[0], Loc::new(index));
            system.values.get(held).contains(value)
        });
        let owners = state.owners.iter().enumerate();
        let mut owners = owners.map(|(index, &owner)| system.owner(row[0], MutexId::new(index)) == owner);
        memory
            && owners.all(|same| same)
            && state.threads.iter().enumerate().all(|(index, thread)| {
                let id = ThreadId::new(index);
                self.covers_local(id, LocalId(row[local_at(id)]), thread)
                    && self.covers_buffer(BufferId(row[buffer_at(id)]), &thread.buffer)
            })
    }

    fn covers_local(&self, id: ThreadId, local: LocalId, thread: &ThreadState) -> bool {
        let system = &self.search.system;
        let locals = &system.locals[id.index()];
        let spins = (thread.pause == local::Pause::Spin, locals.pause(local) == Pause::Spin);
        if spins != (false, false) {
            return spins == (true, true);
        }
        let (pc, local) = (thread.local.pc, locals.get(local));
        local.pc == pc
            && local.phase == thread.phase
            && thread.local.registers.iter().zip(&local.registers).enumerate().all(|(index, (&value, &held))| {
                !self.liveness[id.index()].is_live(pc, Reg::new(index)) || system.values.get(held).contains(value)
            })
    }

    fn covers_buffer(&self, buffer: BufferId, concrete: &StoreBuffer) -> bool {
        let buffer = self.search.system.buffers.get(buffer);
        if buffer.is_empty() || concrete.is_empty() {
            return buffer.is_empty() && concrete.is_empty();
        }
        if self.search.system.model == MemoryModel::Tso {
            return self.covers_tso(buffer, concrete);
        }
        let mut segments: Vec<Vec<(Loc, i64)>> = vec![Vec::new()];
        for entry in concrete.entries() {
            match *entry {
                Pending::StoreFence => segments.push(Vec::new()),
                Pending::Store { loc, value } => {
                    let last = segments.len() - 1;
                    segments[last].push((loc, value));
                }
            }
        }
        self.covers_segments(&buffer.segments, &segments)
    }

    /// Can the concrete segments be cut into one group for each abstract segment? `set` and full segment lists forget
    /// fences, so a mark at the end may be missing.
    fn covers_segments(&self, large: &[Vec<Fifo>], small: &[Vec<(Loc, i64)>]) -> bool {
        let Some((first, rest)) = large.split_first() else { return small.iter().all(Vec::is_empty) };
        (1..=small.len()).any(|cut| {
            let group = small[..cut].concat();
            self.covers_group(first, &group) && self.covers_segments(rest, &small[cut..])
        })
    }

    fn covers_tso(&self, buffer: &AbstractBuffer, concrete: &StoreBuffer) -> bool {
        let stores: Vec<(Loc, i64)> = concrete
            .entries()
            .iter()
            .filter_map(|entry| match *entry {
                Pending::Store { loc, value } => Some((loc, value)),
                Pending::StoreFence => None,
            })
            .collect();
        if stores.len() < buffer.head.len() {
            return false;
        }
        let (head, behind) = stores.split_at(buffer.head.len());
        let mut head = buffer.head.iter().zip(head);
        head.all(|(&(loc, entry), &(other, value))| loc == other && self.is_member(entry, value))
            && self.covers_group(buffer.segments.first().map_or(&[][..], Vec::as_slice), behind)
    }

    /// One segment: the same locations, and each location's stores covered.
    fn covers_group(&self, large: &[Fifo], small: &[(Loc, i64)]) -> bool {
        let mut locations: Vec<Loc> = small.iter().map(|&(loc, _)| loc).collect();
        locations.sort_unstable();
        locations.dedup();
        large.iter().map(|fifo| fifo.loc).eq(locations.iter().copied())
            && large.iter().all(|fifo| {
                let stores = small.iter().filter(|(loc, _)| *loc == fifo.loc);
                let values: Vec<i64> = stores.map(|&(_, value)| value).collect();
                self.covers_fifo(fifo, &values)
            })
    }

    fn covers_fifo(&self, fifo: &Fifo, values: &[i64]) -> bool {
        let Some(behind) = values.get(fifo.head.len()..) else { return false };
        let in_order = fifo.head.iter().zip(values).all(|(&entry, &value)| self.is_member(entry, value));
        let latest = match fifo.latest() {
            Some(latest) => values.last().is_some_and(|&last| self.is_member(latest, last)),
            None => true,
        };
        let all_in = behind.iter().all(|&value| fifo.set.iter().any(|&entry| self.is_member(entry, value)));
        let all_there = fifo.set.iter().all(|&entry| behind.iter().any(|&value| self.is_member(entry, value)));
        let same_emptiness = behind.is_empty() == fifo.set.is_empty();
        in_order && latest && all_in && same_emptiness && (all_there || self.domain == Domain::Pd)
    }

    fn is_member(&self, entry: Entry, value: i64) -> bool {
        let system = &self.search.system;
        system.values.get(system.entries.value(entry)).contains(value)
    }
}
