//! A monitor that can go back.
//!
//! A search over interleavings goes back a few steps and on from there, again and again. Watching every interleaving from
//! its first event would observe the same events many times. So every few events the monitor's state is copied, and going
//! back takes the latest copy that is early enough. (Undoing each event costs more: what an event changes is spread over
//! many rows, and the whole state is a few hundred bytes.)

use super::{Event, Finding, Monitor};
use crate::exhaustive::{AnyMonitor, MonitorKind};

/// Events between two copies.
const EVENTS_BETWEEN_COPIES: usize = 8;

/// A monitor, what it has found, and copies of how it was.
#[derive(Debug)]
pub(crate) struct Rewinding {
    kind: MonitorKind,
    room: (usize, usize),
    monitor: AnyMonitor,
    /// Each finding with the number of events before it.
    found: Vec<(usize, Finding)>,
    seen: usize,
    /// Number n is how it was after (n + 1) times [`EVENTS_BETWEEN_COPIES`] events.
    copies: Vec<AnyMonitor>,
    /// How many of them are of this interleaving.
    valid: usize,
    /// Copies are made.
    goes_back: bool,
}

impl Rewinding {
    /// A monitor that has seen nothing, and that will go back to other events than the first, or not.
    pub(crate) fn new(kind: MonitorKind, threads: usize, cells: usize, goes_back: bool) -> Self {
        let monitor = AnyMonitor::new(kind, threads, cells);
        Self {
            kind,
            room: (threads, cells),
            monitor,
            found: Vec::new(),
            seen: 0,
            copies: Vec::new(),
            valid: 0,
            goes_back,
        }
    }

    /// The first `kept` events are what they were; the others are forgotten.
    pub(crate) fn go_back(&mut self, kept: usize) {
        if kept >= self.seen {
            return;
        }
        self.valid = self.valid.min(kept / EVENTS_BETWEEN_COPIES);
        self.seen = self.valid * EVENTS_BETWEEN_COPIES;
        match self.valid.checked_sub(1) {
            Some(copy) => self.monitor.copy_from(&self.copies[copy]),
            None => self.monitor.reset(),
        }
        while self.found.last().is_some_and(|&(before, _)| before >= self.seen) {
            self.found.pop();
        }
    }

    /// Has something been found in the events observed so far?
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Observes the events it has not seen; what was found in all of them.
    pub(crate) fn watch(&mut self, events: &[Event]) -> impl Iterator<Item = Finding> + '_ {
        for event in &events[self.seen.min(events.len())..] {
            let finding = self.monitor.observe(event);
            self.found.extend(finding.map(|finding| (self.seen, finding)));
            self.seen += 1;
            if self.goes_back && self.seen.is_multiple_of(EVENTS_BETWEEN_COPIES) {
                self.keep_copy();
            }
        }
        self.found.iter().map(|&(_, finding)| finding)
    }

    fn keep_copy(&mut self) {
        if self.valid == self.copies.len() {
            self.copies.push(AnyMonitor::new(self.kind, self.room.0, self.room.1));
        }
        self.copies[self.valid].copy_from(&self.monitor);
        self.valid += 1;
    }
}

#[cfg(test)]
mod tests {
    use weakspot_model::buffer::MemoryModel;

    use super::*;
    use crate::monitor::Operation;

    const THREADS: u32 = 3;
    const CELLS: u32 = 3;

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u32) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % u64::from(bound)) as u32
        }

        fn event(&mut self, events: &[Event]) -> Event {
            let thread = self.below(THREADS);
            let operation = match self.below(12) {
                0..4 => Operation::Load,
                4..8 => Operation::Store,
                8 => Operation::Atomic { writes: true, drains_all: self.below(2) == 0 },
                9 => Operation::Atomic { writes: false, drains_all: self.below(2) == 0 },
                10 => Operation::StoreFence,
                _ => Operation::FullFence,
            };
            let index = events.iter().filter(|event| event.thread == thread).count() as u32;
            Event { thread, index, operation, cell: self.below(CELLS), label: events.len() as u32 }
        }
    }

    #[test]
    fn events_taken_back_leave_no_trace() {
        let kinds = [
            MonitorKind::Sober,
            MonitorKind::SoberPublished,
            MonitorKind::Operational(MemoryModel::Tso),
            MonitorKind::Operational(MemoryModel::Pso),
        ];
        for kind in kinds {
            let mut random = Random(7);
            let mut rewinding = Rewinding::new(kind, THREADS as usize, CELLS as usize, true);
            let (mut events, mut total) = (Vec::new(), 0);
            for _ in 0..4_000 {
                let kept = if events.len() > 60 { 0 } else { events.len().saturating_sub(random.below(12) as usize) };
                events.truncate(kept);
                for _ in 0..random.below(12) {
                    events.push(random.event(&events));
                }
                rewinding.go_back(kept);
                let found: Vec<Finding> = rewinding.watch(&events).collect();
                let mut expected = Vec::new();
                let mut fresh = AnyMonitor::new(kind, THREADS as usize, CELLS as usize);
                fresh.watch_events(events.iter().copied(), &mut expected);
                assert_eq!(found, expected, "{kind:?}: {events:?}");
                total += found.len();
            }
            assert!(total > 100, "{kind:?}: {total}");
        }
    }
}
