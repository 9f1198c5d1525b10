//! What has happened before, made again in one go.
//!
//! Up to the event that is new, everything that happens in a run is known. The system is handed all of it as a list of
//! steps and makes them without asking ([`System::repeat`]): live code then runs from one event of a thread to its next
//! one without stopping, and changes threads only where the order does. What it writes now comes back, because addresses
//! may differ from run to run.
//!
//! A step stands where its thread goes on: an atomic that writes is the step of its write, an acquisition that of the
//! write of the mutex. Reads from which a thread cannot go on are steps only for the sake of the numbers of cells.

use super::Explorer;
use crate::graph::{Event, EventKind, Graph};
use crate::system::{Repeated, Step, System};

/// What an event is when it happens again.
enum Again {
    /// Its thread takes this step.
    Step(Step),
    /// It is a part of a step that comes later, or of none.
    Part,
    /// It is not made in one go.
    Not,
}

fn again(event: &Event) -> Again {
    Again::Step(match event.kind {
        EventKind::Load => Step::Load,
        EventKind::Store => Step::Store,
        EventKind::InterlockedStore => Step::InterlockedStore,
        EventKind::RmwRead(_) | EventKind::LockRead if event.stuck => Step::Rest,
        EventKind::RmwRead(manner) if !event.has_write => Step::Rmw { drains_all: manner.drains_all(), writes: false },
        EventKind::RmwWrite { drains_all } => Step::Rmw { drains_all, writes: true },
        EventKind::LockWrite => Step::Acquire,
        EventKind::Unlock => Step::Unlock,
        EventKind::WaitRead => Step::Rest,
        EventKind::NotifyWrite => Step::Notify,
        EventKind::NotifyRead if !event.has_write => Step::Notify,
        EventKind::Signal => Step::Signal,
        EventKind::Await => Step::Await,
        EventKind::Fence(kind) => Step::Fence(kind),
        EventKind::Choose => Step::Choose,
        EventKind::RmwRead(_)
        | EventKind::LockRead
        | EventKind::WaitWrite
        | EventKind::WaitUnlock
        | EventKind::WakeRead
        | EventKind::WakeWrite
        | EventKind::NotifyRead => return Again::Part,
        EventKind::LeaveCritical | EventKind::Misuse => return Again::Not,
    })
}

/// Lists the steps that these events are when they happen again in this order, up to the first that is not made in one go:
/// false if there is one.
#[inline]
pub fn steps_again(graph: &Graph, order: &[u32], steps: &mut Vec<Repeated>) -> bool {
    steps.clear();
    steps.reserve(order.len());
    let events = graph.events();
    for &id in order {
        let event = &events[id as usize];
        // The read of an atomic: its write is the step.
        if event.has_write && event.kind != EventKind::WaitRead {
            continue;
        }
        match again(event) {
            Again::Step(step) => {
                let Event { thread, cell, value, .. } = *event;
                steps.push(Repeated { thread, step, cell, value, changed: false, bound: false });
            }
            Again::Part => {}
            Again::Not => return false,
        }
    }
    true
}

impl<S: System> Explorer<'_, S> {
    /// Makes as many of these events again as the system does in one go: how many that are.
    pub(super) fn repeat_quickly(&mut self, order: &[u32]) -> usize {
        let mut steps = std::mem::take(&mut self.script);
        let are_all = steps_again(&self.frame.graph, order, &mut steps);
        let taken = self.system.repeat(&mut steps);
        let changed = self.note_cells(&steps[..taken]);
        let all = taken == steps.len() && are_all;
        let done = if all && !changed { order.len() } else { self.note_values(order, &steps[..taken]) };
        self.script = steps;
        done
    }

    /// Takes over the initial values of the cells that the steps use; true if any value is not what it was.
    fn note_cells(&mut self, steps: &[Repeated]) -> bool {
        let mut changed = false;
        for step in steps {
            changed |= step.changed;
            if step.bound {
                self.bound += 1;
                let initial = self.system.initial(step.cell);
                changed |= self.graph().initial(step.cell) != initial;
                self.graph_mut().set_initial(step.cell, initial);
            }
        }
        changed
    }

    /// Takes over the values of the steps: how many events they are.
    #[cold]
    fn note_values(&mut self, order: &[u32], steps: &[Repeated]) -> usize {
        let mut steps = steps.iter();
        let graph = &mut self.frame.graph;
        for (at, &id) in order.iter().enumerate() {
            let event = *graph.event(id);
            let step = match again(&event) {
                Again::Step(_) => match steps.next() {
                    Some(step) => Some(step),
                    None => return at,
                },
                Again::Part => None,
                Again::Not => return at,
            };
            if event.kind.is_read() {
                let value = graph.value_of(event.cell, event.source);
                graph.event_mut(id).value = value;
            } else if let (Some(step), EventKind::Store | EventKind::InterlockedStore | EventKind::RmwWrite { .. }) =
                (step, event.kind)
            {
                graph.event_mut(id).value = step.value;
            }
        }
        order.len()
    }
}
