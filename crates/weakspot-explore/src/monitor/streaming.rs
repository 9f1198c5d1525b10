//! Monitors over executions that do not fit into memory.
//!
//! A monitor keeps the stores that may still be pending or that a load may still be too early for. In a long execution
//! their number grows with its length, but most of them have become indistinguishable: every clock that a thread can
//! come to know of is a join of clocks that are in the tables now, or belongs to an event that is still to come and
//! comes after them all. Of the stores of a cell in coherence order each clock knows a first part. Where a part ends, the
//! store there can be named by a finding of the future; a store where no part ends is known exactly to those who know
//! the one after it, and is never named. So for each cell at most as many stores matter as there are clocks, and the last.
//! [`Streaming::forget`] drops the others: findings stay the same, and memory does not depend on the length.

use super::Monitor;

/// A monitor for executions of any length, with threads and cells that turn up on the way.
pub trait Streaming: Monitor {
    /// Makes room for more threads and cells.
    fn grow(&mut self, threads: usize, cells: usize);

    /// Drops what no finding can name any more, once much has gathered.
    fn forget(&mut self);

    /// Drops it however little there is.
    fn forget_now(&mut self);

    /// Roughly how many bytes the tables take.
    fn bytes(&self) -> u64;
}

/// How many stores may gather before it is worth looking for those to drop.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Threshold {
    next: usize,
}

impl Threshold {
    const LEAST: usize = 1 << 14;

    /// Are there so many?
    pub(super) fn is_reached(self, stores: usize) -> bool {
        stores > self.next.max(Self::LEAST)
    }

    /// `kept` were left, after a look at `work` pairs of a cell and a clock.
    pub(super) fn set(&mut self, kept: usize, work: usize) {
        self.next = 2 * kept + work;
    }
}

#[cfg(test)]
mod tests {
    use super::Streaming;
    use crate::graph::NONE;
    use crate::monitor::operational::Operational;
    use crate::monitor::sober::Sober;
    use crate::monitor::{Event, Finding, Operation};
    use weakspot_model::buffer::MemoryModel;

    /// splitmix64
    fn random(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    /// A long execution that synchronises seldom, so that much stays pending.
    fn events(seed: u64, threads: u64, cells: u64, count: u32) -> Vec<Event> {
        let mut state = seed;
        let mut indices = vec![0; threads as usize];
        let event = |label: u32| {
            let thread = random(&mut state, threads) as u32;
            let operation = match random(&mut state, 40) {
                0 => Operation::FullFence,
                1 => Operation::Atomic { writes: random(&mut state, 2) == 0, drains_all: random(&mut state, 2) == 0 },
                2 => Operation::StoreFence,
                3..=19 => Operation::Load,
                _ => Operation::Store,
            };
            let is_fence = matches!(operation, Operation::FullFence | Operation::StoreFence);
            // mostly cells of its own, so that threads meet now and then only
            let own = u64::from(thread) % cells;
            let cell = if random(&mut state, 8) > 0 { own } else { random(&mut state, cells) };
            let index = indices[thread as usize];
            indices[thread as usize] += 1;
            Event { thread, index, operation, cell: if is_fence { NONE } else { cell as u32 }, label }
        };
        (0..count).map(event).collect()
    }

    fn findings(mut monitor: impl Streaming, events: &[Event], forgets: bool) -> (Vec<Finding>, u64) {
        let mut found = Vec::new();
        for (number, event) in events.iter().enumerate() {
            found.extend(monitor.observe(event));
            if forgets && number % 3 == 0 {
                monitor.forget_now();
            }
        }
        (found, monitor.bytes())
    }

    #[test]
    fn what_is_forgotten_is_never_named() {
        let mut named = 0;
        for seed in 0..150 {
            let (threads, cells) = (2 + seed % 4, 1 + seed % 7);
            let events = events(seed, threads, cells, 600);
            let (threads, cells) = (threads as usize, cells as usize);
            let check = |whole: (Vec<Finding>, u64), short: (Vec<Finding>, u64), name: &str| {
                assert_eq!(whole.0, short.0, "{name} with seed {seed}");
                whole.0.len()
            };
            let sober = Sober::corrected(threads, cells);
            named += check(findings(sober.clone(), &events, false), findings(sober, &events, true), "sober");
            let published = Sober::published(threads, cells);
            named +=
                check(findings(published.clone(), &events, false), findings(published, &events, true), "published");
            for model in [MemoryModel::Tso, MemoryModel::Pso] {
                let monitor = Operational::new(model, threads, cells);
                named +=
                    check(findings(monitor.clone(), &events, false), findings(monitor, &events, true), model.name());
            }
        }
        assert!(named > 2_000, "{named}");
    }

    #[test]
    fn threads_and_cells_may_turn_up_on_the_way() {
        for seed in 0..60 {
            let events = events(seed, 5, 6, 400);
            let grown = |mut monitor: Box<dyn Streaming>| {
                let mut found = Vec::new();
                let (mut threads, mut cells) = (0, 0);
                for event in &events {
                    threads = threads.max(event.thread as usize + 1);
                    cells = cells.max(if event.cell == NONE { 0 } else { event.cell as usize + 1 });
                    monitor.grow(threads, cells);
                    found.extend(monitor.observe(event));
                }
                found
            };
            let sober = findings(Sober::corrected(5, 6), &events, false).0;
            assert_eq!(grown(Box::new(Sober::corrected(0, 0))), sober, "seed {seed}");
            let pso = findings(Operational::new(MemoryModel::Pso, 5, 6), &events, false).0;
            assert_eq!(grown(Box::new(Operational::new(MemoryModel::Pso, 0, 0))), pso, "seed {seed}");
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_length() {
        let bytes = |count: u32| {
            let events = events(7, 3, 5, count);
            let sober = |monitor: Sober| findings_with_thresholds(monitor, &events);
            let operational = |monitor: Operational| findings_with_thresholds(monitor, &events);
            (sober(Sober::corrected(3, 5)), operational(Operational::new(MemoryModel::Pso, 3, 5)))
        };
        let (short, long) = (bytes(60_000), bytes(240_000));
        assert!(long.0 <= 2 * short.0 && long.1 <= 2 * short.1, "{short:?} {long:?}");
    }

    /// The bytes that the tables take in the end.
    fn findings_with_thresholds(mut monitor: impl Streaming, events: &[Event]) -> u64 {
        for event in events {
            monitor.observe(event);
            monitor.forget();
        }
        monitor.bytes()
    }
}
