//! Which traces a memory model allows, stated as axioms, with the cycle that forbids a trace.
//!
//! | rule | here |
//! |---|---|
//! | (SC1) `hb = po ∪ co ∪ rf ∪ fr` is acyclic | [`Axioms::Sc`] |
//! | (TSO1) as printed: `rhb` is acyclic | [`Axioms::TsoPublished`] |
//! | (TSO1) corrected: `(po minus store→load) ∪ co ∪ fr ∪ rfe` is acyclic | [`Axioms::Tso`] |
//! | (TSO2) no `e` before `e'` in program order with `e'` before `e` in conflict order | [`Axiom::Coherence`] |
//! | PSO: as TSO, without store→store order between different cells | [`Axioms::Pso`] |
//! | which program order a model keeps | [`preserves`] |
//!
//! Definitions 1 to 3 of the SOBER paper (Burckhardt, Musuvathi, CAV 2008). Its conflict order puts *every* earlier
//! write of a cell before a load of it. That is too strict where the load is served by the thread's own buffered
//! store: nobody else's store to the cell needs to be visible yet. The corrected relation has the reads-from edge of
//! the load's own source only, and only if the source is another thread's write or an interlocked operation (`rfe`).
//! The smallest trace on which the two differ is known as n6.
//!
//! # Where the partial models need care
//! The operational machine defines the models; these are the axioms it satisfies exactly, as the property tests
//! over random programs confirm. An atomic under PSO waits for the own pending stores to *its* cell only, so earlier
//! plain stores to other cells are not ordered before it, with or without a store-store fence between; everything
//! after the atomic is ordered after it. A store-store fence is an element of the relation that earlier stores precede
//! and later stores follow, and nothing else.
//!
//! Every trace of SC is one of TSO, and every trace of TSO one of PSO, for all programs: what PSO keeps in order (with
//! its fences, transitively), TSO keeps too, since it keeps all stores in order and its atomics drain the buffer.

mod long;

use crate::buffer::MemoryModel;
use crate::ir::FenceKind;
use crate::relation::Relation;
use crate::trace::{Class, EventId, Trace};

/// A memory model as a set of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axioms {
    /// Sequential consistency (Definition 2).
    Sc,
    /// Total store order (Definition 3, corrected).
    Tso,
    /// Total store order exactly as Definition 3 prints it. Refuses some traces that the machine produces.
    TsoPublished,
    /// Partial store order.
    Pso,
}

impl From<MemoryModel> for Axioms {
    fn from(model: MemoryModel) -> Self {
        match model {
            MemoryModel::Sc => Self::Sc,
            MemoryModel::Tso => Self::Tso,
            MemoryModel::Pso => Self::Pso,
        }
    }
}

/// Why one event stands before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Same thread, earlier in the program.
    ProgramOrder,
    /// The second reads what the first wrote.
    ReadsFrom,
    /// Both write the cell, the first before the second.
    Coherence,
    /// The first reads a value that the second overwrites, at once or later.
    FromRead,
}

impl Order {
    /// The usual abbreviation.
    pub fn name(self) -> &'static str {
        match self {
            Self::ProgramOrder => "po",
            Self::ReadsFrom => "rf",
            Self::Coherence => "co",
            Self::FromRead => "fr",
        }
    }
}

/// The axiom a trace breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axiom {
    /// The happens-before relation of the model is acyclic: (SC1), (TSO1).
    HappensBefore,
    /// Each thread sees each cell in an order that agrees with its program: (TSO2).
    Coherence,
}

/// One edge of a cycle; it leads to the `from` of the next edge, the last one to the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CycleEdge {
    /// Where it starts.
    pub from: EventId,
    /// Why its start stands before its end.
    pub order: Order,
}

/// Why a trace is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The broken axiom.
    pub axiom: Axiom,
    /// A cycle against it, as short as possible.
    pub cycle: Vec<CycleEdge>,
}

/// Does the model keep the program order of two events of one thread?
///
/// This is the only place that says what each model relaxes. The relation is meant to be taken together with its
/// transitive closure: a store and a later load stay in order if a full fence stands between.
pub fn preserves(model: MemoryModel, earlier: Class, later: Class) -> bool {
    let store_fence = Class::Fence(FenceKind::StoreStore);
    match (model, earlier, later) {
        (MemoryModel::Sc, _, _) => true,
        (_, Class::Store(_), Class::Load(_)) => false,
        (MemoryModel::Pso, Class::Store(first), Class::Store(second)) => first == second,
        (MemoryModel::Pso, Class::Store(first), Class::Atomic { cell: second, drains_all: false }) => first == second,
        (MemoryModel::Pso, Class::Store(_), later) if later == store_fence => true,
        (MemoryModel::Pso, earlier, Class::Store(_)) if earlier == store_fence => true,
        (_, earlier, later) => earlier != store_fence && later != store_fence,
    }
}

impl Axioms {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sc, Self::Tso, Self::TsoPublished, Self::Pso];

    /// The model whose program order it keeps.
    pub fn model(self) -> MemoryModel {
        match self {
            Self::Sc => MemoryModel::Sc,
            Self::Tso | Self::TsoPublished => MemoryModel::Tso,
            Self::Pso => MemoryModel::Pso,
        }
    }

    /// Is the trace allowed?
    pub fn allow(self, trace: &Trace) -> bool {
        self.happens_before(trace).is_acyclic() && incoherent_pair(trace).is_none()
    }

    /// Is the trace allowed, and if not, why?
    pub fn check(self, trace: &Trace) -> Result<(), Violation> {
        if let Some((earlier, later)) = incoherent_pair(trace) {
            let pair = [earlier.index(), later.index()];
            return Err(Violation { axiom: Axiom::Coherence, cycle: explain(trace, &pair) });
        }
        match self.happens_before(trace).shortest_cycle() {
            Some(cycle) => Err(Violation { axiom: Axiom::HappensBefore, cycle: explain(trace, &cycle) }),
            None => Ok(()),
        }
    }

    /// The relation that has to be acyclic.
    fn happens_before(self, trace: &Trace) -> Relation {
        let mut relation = Relation::new(trace.events().len());
        for id in trace.ids() {
            self.add_program_order(trace, id, &mut relation);
        }
        for (_, writes) in trace.coherence() {
            for (index, &write) in writes.iter().enumerate() {
                for later in &writes[index + 1..] {
                    relation.add(write.index(), later.index());
                }
            }
        }
        for id in trace.ids() {
            self.add_conflicts_of_read(trace, id, &mut relation);
        }
        relation
    }

    fn add_program_order(self, trace: &Trace, earlier: EventId, relation: &mut Relation) {
        let first = trace.event(earlier);
        let class = first.operation.class();
        let rest = trace.events().iter().enumerate().skip(earlier.index() + 1);
        for (later, second) in rest.take_while(|(_, second)| second.thread == first.thread) {
            if preserves(self.model(), class, second.operation.class()) {
                relation.add(earlier.index(), later);
            }
        }
    }

    /// From-read and reads-from. The edges of an atomic that writes are coherence edges already.
    fn add_conflicts_of_read(self, trace: &Trace, read: EventId, relation: &mut Relation) {
        let event = trace.event(read);
        let (Some(cell), Some(index)) = (event.operation.cell(), event.read_index()) else { return };
        if event.operation.writes() {
            return;
        }
        for later in (index + 1..).map_while(|later| trace.write(cell, later)) {
            relation.add(read.index(), later.index());
        }
        let sources = match self {
            Self::TsoPublished => 1..=index,
            _ => index..=index,
        };
        for source in sources.filter_map(|source| trace.write(cell, source)) {
            if self.model() == MemoryModel::Sc || !is_own_store(trace, source, read) {
                relation.add(source.index(), read.index());
            }
        }
    }
}

/// Is `source` a plain store of the thread of `read`, earlier in its program: one the load may see before others do?
///
/// For atomics the answer does not matter: the store is ordered before them anyway.
fn is_own_store(trace: &Trace, source: EventId, read: EventId) -> bool {
    matches!(trace.event(source).operation.class(), Class::Store(_)) && trace.is_before(source, read)
}

/// Two events against (TSO2): the first is before the second in program order and after it in conflict order.
fn incoherent_pair(trace: &Trace) -> Option<(EventId, EventId)> {
    let against = |&(earlier, later): &(EventId, EventId)| conflicts_before(trace, later, earlier);
    trace.ids().find_map(|earlier| {
        let later = (earlier.index() + 1..trace.events().len()).map(EventId::new);
        let same_thread = later.take_while(|&later| trace.is_before(earlier, later));
        same_thread.map(|later| (earlier, later)).find(against)
    })
}

/// The conflict order of the SOBER paper.
fn conflicts_before(trace: &Trace, first: EventId, second: EventId) -> bool {
    let (first, second) = (trace.event(first), trace.event(second));
    if first.operation.cell().is_none() || first.operation.cell() != second.operation.cell() {
        return false;
    }
    match (first.operation.writes(), second.operation.writes()) {
        (_, true) => first.coherence < second.coherence,
        (true, false) => first.coherence <= second.coherence,
        (false, false) => false,
    }
}

/// Names the edges of a cycle of events. Where a write stands before a load only because it is overwritten by the
/// load's source, the source becomes an event of the cycle.
fn explain(trace: &Trace, cycle: &[usize]) -> Vec<CycleEdge> {
    let mut edges = Vec::with_capacity(cycle.len() + 1);
    for (position, &from) in cycle.iter().enumerate() {
        let (from, to) = (EventId::new(from), EventId::new(cycle[(position + 1) % cycle.len()]));
        let source = trace.source(to).filter(|_| !trace.event(to).operation.writes());
        let order = if trace.is_before(from, to) {
            Order::ProgramOrder
        } else if source == Some(from) {
            Order::ReadsFrom
        } else if trace.event(from).operation.writes() {
            Order::Coherence
        } else {
            Order::FromRead
        };
        edges.push(CycleEdge { from, order });
        if order == Order::Coherence && !trace.event(to).operation.writes() {
            let source = source.expect("invariant: a write before a load is its source or overwritten by it");
            edges.push(CycleEdge { from: source, order: Order::ReadsFrom });
        }
    }
    edges
}

#[cfg(test)]
mod tests;
