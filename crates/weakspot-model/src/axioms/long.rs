//! (SC1) for long traces: is happens-before acyclic, and if not, a short cycle.
//!
//! The relation of [`Axioms`] has an edge for every pair of events in order, which is too much for thousands of them.
//! Here each event leads to the next one only (of its thread, of its cell), so deciding takes time in proportion to the
//! length of the trace. A cycle is then looked for with all edges, but without making them: what comes after an event
//! in its thread or its cell is an end of a list, and of each list it is enough to know from where on it has been
//! reached. A shortest cycle through each of a few events that are on one is found so, and the shortest of them is taken.

use std::collections::{BTreeMap, VecDeque};

use super::{Axioms, CycleEdge, explain};
use crate::trace::{Cell, EventId, Trace};

/// Through how many events a shortest cycle is looked for.
const MOST_STARTS: usize = 64;

impl Axioms {
    /// Is this a trace of SC? Decided in time proportional to its length.
    pub fn sc_allows_long(trace: &Trace) -> bool {
        on_cycles(trace).is_empty()
    }

    /// A cycle of happens-before in a trace that is not one of SC: short, but not always a shortest one.
    pub fn sc_cycle_of_long(trace: &Trace) -> Option<Vec<CycleEdge>> {
        short_cycle(trace).map(|cycle| explain(trace, &cycle))
    }
}

fn short_cycle(trace: &Trace) -> Option<Vec<usize>> {
    let readers = readers(trace);
    let starts = on_cycles(trace).into_iter().take(MOST_STARTS);
    let cycles = starts.filter_map(|start| Search::new(trace, &readers).cycle_through(start));
    cycles.min_by_key(Vec::len)
}

/// The reads of each write that do not write.
fn readers(trace: &Trace) -> Vec<Vec<EventId>> {
    let mut readers = vec![Vec::new(); trace.events().len()];
    for id in trace.ids().filter(|&id| !trace.event(id).operation.writes()) {
        if let Some(source) = trace.source(id) {
            readers[source.index()].push(id);
        }
    }
    readers
}

/// The events an event leads to, each other one later in its thread or cell left out.
fn next(trace: &Trace, readers: &[Vec<EventId>], id: EventId, mut see: impl FnMut(EventId)) {
    let event = trace.event(id);
    let later = EventId::new(id.index() + 1);
    if later.index() < trace.events().len() && trace.is_before(id, later) {
        see(later);
    }
    if let Some(cell) = event.operation.cell() {
        // A write leads to the next one, a read to the one that overwrites what it read.
        if let Some(write) = trace.write(cell, event.coherence + 1) {
            see(write);
        }
    }
    readers[id.index()].iter().copied().for_each(see);
}

/// The events that have one before and one after them whatever is taken away at the ends: those on cycles, and those
/// between two cycles.
fn on_cycles(trace: &Trace) -> Vec<EventId> {
    let count = trace.events().len();
    let readers = readers(trace);
    let mut after = vec![Vec::new(); count];
    let mut before = vec![Vec::new(); count];
    for id in trace.ids() {
        next(trace, &readers, id, |later| {
            after[id.index()].push(later.index());
            before[later.index()].push(id.index());
        });
    }
    let mut left = vec![true; count];
    for (into, out_of) in [(&before, &after), (&after, &before)] {
        let mut degree: Vec<usize> = (0..count)
            .map(|id| if left[id] { into[id].iter().filter(|&&other| left[other]).count() } else { 0 })
            .collect();
        let mut free: Vec<usize> = (0..count).filter(|&id| left[id] && degree[id] == 0).collect();
        while let Some(id) = free.pop() {
            left[id] = false;
            for &other in out_of[id].iter().filter(|&&other| left[other]) {
                degree[other] -= 1;
                if degree[other] == 0 {
                    free.push(other);
                }
            }
        }
    }
    trace.ids().filter(|id| left[id.index()]).collect()
}

/// Breadth-first search along all edges.
struct Search<'t> {
    trace: &'t Trace,
    readers: &'t [Vec<EventId>],
    /// From where each event was reached first.
    reached_from: Vec<Option<EventId>>,
    /// From which event on a thread has been reached; by its first event.
    threads: BTreeMap<u16, usize>,
    /// From which number on the writes of a cell have been reached.
    cells: BTreeMap<Cell, u32>,
    open: VecDeque<EventId>,
}

impl<'t> Search<'t> {
    fn new(trace: &'t Trace, readers: &'t [Vec<EventId>]) -> Self {
        Self {
            trace,
            readers,
            reached_from: vec![None; trace.events().len()],
            threads: BTreeMap::new(),
            cells: BTreeMap::new(),
            open: VecDeque::new(),
        }
    }

    /// A shortest cycle through an event, from it on.
    fn cycle_through(mut self, start: EventId) -> Option<Vec<usize>> {
        self.open.push_back(start);
        while let Some(id) = self.open.pop_front() {
            self.follow(id);
            if self.reached_from[start.index()].is_some() {
                return Some(self.path_to(start));
            }
        }
        None
    }

    fn reach(&mut self, id: EventId, from: EventId) {
        if self.reached_from[id.index()].is_none() {
            self.reached_from[id.index()] = Some(from);
            self.open.push_back(id);
        }
    }

    /// Reaches everything that an event stands before by one edge and that nothing has reached.
    fn follow(&mut self, id: EventId) {
        let event = *self.trace.event(id);
        let end = *self.threads.get(&event.thread.0).unwrap_or(&self.trace.events().len());
        self.threads.insert(event.thread.0, end.min(id.index() + 1));
        let trace = self.trace;
        for later in (id.index() + 1..end).map(EventId::new).take_while(|&later| trace.is_before(id, later)) {
            self.reach(later, id);
        }
        if let Some(cell) = event.operation.cell() {
            let end = *self.cells.get(&cell).unwrap_or(&u32::MAX);
            self.cells.insert(cell, end.min(event.coherence + 1));
            for write in (event.coherence + 1..end).map_while(|number| trace.write(cell, number)) {
                self.reach(write, id);
            }
        }
        let readers = self.readers;
        for &reader in &readers[id.index()] {
            self.reach(reader, id);
        }
    }

    fn path_to(&self, start: EventId) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = start;
        while let Some(from) = self.reached_from[at.index()] {
            path.push(from.index());
            at = from;
            if at == start {
                break;
            }
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::ids::{Loc, Pc, ThreadId};
    use crate::ir::FenceKind;
    use crate::trace::{Event, Operation};

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u32) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % u64::from(bound)) as u32
        }

        /// Any values read, and any order of the writes of a cell.
        fn trace(&mut self) -> Trace {
            let mut events = Vec::new();
            let mut writes = [0; 3];
            for thread in 0..3 {
                for _ in 0..self.below(6) {
                    let loc = Loc(self.below(3));
                    let operation = match self.below(8) {
                        0..3 => Operation::Load { loc, value: 0 },
                        3..6 => Operation::Store { loc, value: 0 },
                        6 => Operation::Rmw { loc, read: 0, written: Some(0), drains_all: true },
                        _ => Operation::Fence(FenceKind::Full),
                    };
                    writes[loc.index()] += u32::from(operation.writes());
                    events.push(Event { thread: ThreadId(thread), pc: Pc(0), operation, coherence: 0 });
                }
            }
            let mut numbers = writes.map(|count| (1..=count).collect::<Vec<u32>>());
            for event in &mut events {
                let Some(Cell::Memory(loc)) = event.operation.cell() else { continue };
                let left = &mut numbers[loc.index()];
                event.coherence = if event.operation.writes() {
                    left.remove(self.below(left.len() as u32) as usize)
                } else {
                    self.below(writes[loc.index()] + 1)
                };
            }
            Trace::new(events).unwrap()
        }
    }

    #[test]
    fn long_and_short_traces_are_judged_alike() {
        let mut random = Random(3);
        let mut refused = 0;
        for _ in 0..5_000 {
            let trace = random.trace();
            let shortest = Axioms::Sc.happens_before(&trace).shortest_cycle();
            assert_eq!(Axioms::sc_allows_long(&trace), Axioms::Sc.allow(&trace), "{trace:?}");
            assert_eq!(short_cycle(&trace).map(|cycle| cycle.len()), shortest.map(|cycle| cycle.len()), "{trace:?}");
            refused += usize::from(Axioms::sc_cycle_of_long(&trace).is_some());
        }
        assert!((500..4_500).contains(&refused), "{refused}");
    }
}
