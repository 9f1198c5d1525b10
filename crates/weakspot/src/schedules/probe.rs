//! Does a loop that gives way wait, or does it end by itself?
//!
//! A thread that goes round a loop again is left for others, if there are any who can go on. If it counts its rounds and
//! does something else after some of them, that leaves schedules out. So it is tried out, where it is not known yet: the
//! schedule is run again up to there, and then the thread alone. If it gets out of the loop, it is not left any more (for
//! `max_spins` rounds), and the search begins anew.

use rustc_hash::{FxHashMap, FxHashSet};
use weakspot_explore::buffered::{Buffered, Move};
use weakspot_explore::system::{LeftOut, Pending, System};
use weakspot_explore::trust::MOST_ROUNDS;
use weakspot_model::buffer::MemoryModel;
use weakspot_model::ids::ThreadId;

use super::Search;
use crate::rt::system::Live;

/// Times that a loop is tried out wherever it comes up, and after that only where their number is a power of two.
const FULL_PROBES: u32 = 16;
/// Loops that are tried out after one schedule.
const MOST_IN_ONE: usize = 4;
/// Steps without coming round after which a thread has left its loop.
const MOST_STEPS: u32 = 5_000;

/// A thread that has come round a loop, and may have to wait there.
#[derive(Debug, Clone, Copy)]
struct Probe {
    thread: usize,
    marker: u32,
    /// After so many moves.
    moves: usize,
}

/// Which loops are to be tried out, and which have been.
#[derive(Debug, Default)]
pub(super) struct Probes {
    open: Vec<Probe>,
    /// Where: traces.
    seen: FxHashSet<u64>,
    /// How often, by marker.
    times: FxHashMap<u32, u32>,
}

impl Search<'_, '_> {
    /// A thread has yielded: it is left if it has done so before and will again, and others can go on.
    pub(super) fn give_way(&mut self, machine: &mut Buffered<'_, Live<'_>>, thread: usize, moves: &mut Vec<Move>) {
        let is_free = |what: &Move| what.thread() != thread;
        let most = u64::from(self.builder.max_spins);
        let ends = machine.ends_by_itself(thread);
        let may_stay = self.yields < 2 || self.yields <= most && (ends || !machine.repeats(thread));
        if !may_stay && moves.iter().any(is_free) {
            if ends && !machine.is_restless() {
                machine.system().leave_rounds_out(ThreadId::new(thread), LeftOut::ManyRounds);
            }
            moves.retain(is_free);
        }
        let is_left = !may_stay || machine.rests(thread);
        if is_left && !ends && self.probes.open.len() < MOST_IN_ONE {
            let marker = machine.system().marker(ThreadId::new(thread)).0;
            let times = self.probes.times.entry(marker).or_default();
            let is_tried = *times < FULL_PROBES || times.is_power_of_two();
            if self.probes.seen.insert(self.trace.key(Some(thread), 0, 0)) {
                *times += 1;
                if is_tried {
                    self.probes.open.push(Probe { thread, marker, moves: self.moves.len() });
                }
            }
        }
    }

    /// Tries out the loops that have come up; true if one of them ends by itself.
    pub(super) fn finds_loops_that_end(&mut self) -> bool {
        let open = std::mem::take(&mut self.probes.open);
        let mut has_found = false;
        for probe in open {
            if self.leaves_loop(probe) {
                has_found |= self.runtime.ending_loops.borrow_mut().insert(probe.marker);
            }
        }
        has_found
    }

    /// What was counted so far will be counted again.
    pub(super) fn begin_anew(&mut self) {
        let report = &mut self.judge.report;
        (report.executions, report.blocked, report.borderline) = (0, 0, 0);
        self.judge.found.clear();
    }

    /// Runs a thread alone from where it has come round a loop: does it leave the loop?
    fn leaves_loop(&mut self, Probe { thread, marker, moves }: Probe) -> bool {
        let mut system = Live { runtime: self.runtime };
        let mut machine = Buffered::new(&mut system, MemoryModel::Sc);
        for &what in &self.moves[..moves] {
            if what.thread() >= machine.threads() {
                return false;
            }
            machine.wake(what.thread());
            if !machine.can_step(what.thread()) {
                return false;
            }
            machine.make(what);
            machine.commit_all(what.thread());
        }
        if machine.system().marker(ThreadId::new(thread)).0 != marker {
            return false;
        }
        let (mut rounds, mut steps) = (0, 0);
        let mut choices = Vec::new();
        while rounds < MOST_ROUNDS && steps < MOST_STEPS {
            machine.wake(thread);
            machine.moves(&mut choices);
            let Some(&what) = choices.iter().find(|what| what.thread() == thread) else { break };
            machine.make(what);
            machine.commit_all(thread);
            steps += 1;
            if machine.system().marker(ThreadId::new(thread)).0 == marker {
                (rounds, steps) = (rounds + 1, 0);
            }
        }
        if self.builder.fair && machine.pending(thread) == Pending::Failed {
            machine.system().leave_rounds_out(ThreadId::new(thread), LeftOut::Fails);
            return false;
        }
        rounds < MOST_ROUNDS
    }
}
