//! Traces everybody knows, written by hand.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::ids::{Loc, Pc, ThreadId};
use crate::trace::{Event, Operation};

const X: Loc = Loc(0);
const Y: Loc = Loc(1);

fn event(thread: u16, operation: Operation, coherence: u32) -> Event {
    Event { thread: ThreadId(thread), pc: Pc(0), operation, coherence }
}

fn store(thread: u16, loc: Loc, coherence: u32) -> Event {
    event(thread, Operation::Store { loc, value: 1 }, coherence)
}

fn load(thread: u16, loc: Loc, coherence: u32) -> Event {
    event(thread, Operation::Load { loc, value: 0 }, coherence)
}

fn fence(thread: u16, kind: FenceKind) -> Event {
    event(thread, Operation::Fence(kind), 0)
}

fn atomic(thread: u16, loc: Loc, coherence: u32, drains_all: bool) -> Event {
    event(thread, Operation::Rmw { loc, read: 0, written: Some(1), drains_all }, coherence)
}

fn trace(events: &[Event]) -> Trace {
    Trace::new(events.to_vec()).unwrap()
}

fn allowed(events: &[Event]) -> [bool; 3] {
    MemoryModel::ALL.map(|model| Axioms::from(model).allow(&trace(events)))
}

#[test]
fn store_buffering_needs_a_store_buffer() {
    let events = [store(0, X, 1), load(0, Y, 0), store(1, Y, 1), load(1, X, 0)];
    assert_eq!(allowed(&events), [false, true, true]);
    let violation = Axioms::Sc.check(&trace(&events)).unwrap_err();
    assert_eq!(violation.axiom, Axiom::HappensBefore);
    let orders: Vec<_> = violation.cycle.iter().map(|edge| (edge.from.0, edge.order.name())).collect();
    assert_eq!(orders, [(0, "po"), (1, "fr"), (2, "po"), (3, "fr")]);
}

#[test]
fn a_full_fence_on_each_side_forbids_store_buffering() {
    for kind in [FenceKind::Full, FenceKind::StoreLoad] {
        let events = [store(0, X, 1), fence(0, kind), load(0, Y, 0), store(1, Y, 1), fence(1, kind), load(1, X, 0)];
        assert_eq!(allowed(&events), [false, false, false]);
    }
    let kind = FenceKind::StoreStore;
    let events = [store(0, X, 1), fence(0, kind), load(0, Y, 0), store(1, Y, 1), fence(1, kind), load(1, X, 0)];
    assert_eq!(allowed(&events), [false, true, true]);
}

#[test]
fn message_passing_needs_partial_store_order() {
    let events = [store(0, X, 1), store(0, Y, 1), load(1, Y, 1), load(1, X, 0)];
    assert_eq!(allowed(&events), [false, false, true]);
    let events = [store(0, X, 1), fence(0, FenceKind::StoreStore), store(0, Y, 1), load(1, Y, 1), load(1, X, 0)];
    assert_eq!(allowed(&events), [false, false, false]);
}

#[test]
fn an_atomic_under_pso_lets_older_stores_to_other_cells_wait() {
    let message = |drains_all| [store(0, X, 1), atomic(0, Y, 1, drains_all), load(1, Y, 1), load(1, X, 0)];
    assert_eq!(allowed(&message(false)), [false, false, true]);
    assert_eq!(allowed(&message(true)), [false, false, false]);
    let fenced =
        [store(0, X, 1), fence(0, FenceKind::StoreStore), atomic(0, Y, 1, false), load(1, Y, 1), load(1, X, 0)];
    assert_eq!(allowed(&fenced), [false, false, true]);
}

/// P0: x=1; r1=x; r2=y and P1: y=2; x=2 with r1=1, r2=0, x=1.
#[test]
fn the_published_axioms_refuse_n6() {
    let n6 = trace(&[store(0, X, 2), load(0, X, 2), load(0, Y, 0), store(1, Y, 1), store(1, X, 1)]);
    assert!(Axioms::Tso.allow(&n6));
    assert!(!Axioms::Sc.allow(&n6));
    let violation = Axioms::TsoPublished.check(&n6).unwrap_err();
    assert_eq!(violation.axiom, Axiom::HappensBefore);
    // x=2 is overwritten by x=1, which the load of x reads: the edge the correction takes away.
    let orders: Vec<_> = violation.cycle.iter().map(|edge| (edge.from.0, edge.order.name())).collect();
    assert_eq!(orders, [(1, "po"), (2, "fr"), (3, "po"), (4, "co"), (0, "rf")]);
}

#[test]
fn no_model_reads_over_its_own_later_or_overwritten_store() {
    let stale = [store(0, X, 1), load(0, X, 0)];
    assert_eq!(allowed(&stale), [false; 3]);
    let violation = Axioms::Pso.check(&trace(&stale)).unwrap_err();
    assert_eq!(violation.axiom, Axiom::Coherence);
    let orders: Vec<_> = violation.cycle.iter().map(|edge| (edge.from.0, edge.order.name())).collect();
    assert_eq!(orders, [(0, "po"), (1, "fr")]);
    assert_eq!(allowed(&[load(0, X, 1), store(0, X, 1)]), [false; 3]);
    assert_eq!(allowed(&[store(0, X, 2), store(0, X, 1)]), [false; 3]);
}

#[test]
fn long_traces_are_judged_like_short_ones() {
    let mut events = vec![store(0, X, 1)];
    events.extend((0..80).map(|_| load(0, Y, 0)));
    events.push(store(1, Y, 1));
    events.extend((0..80).map(|_| load(1, X, 0)));
    assert_eq!(allowed(&events), [false, true, true]);
    assert_eq!(Axioms::Sc.check(&trace(&events)).unwrap_err().cycle.len(), 4);
}
