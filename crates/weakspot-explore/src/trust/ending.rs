//! How a graph that cannot be extended ends.

use weakspot_model::ids::ThreadId;

use super::{Ending, Explorer, bit};
use crate::graph::{EventKind, Status};
use crate::system::{Judgement, Pending, System};

impl<S: System> Explorer<'_, S> {
    /// Judges a graph that cannot be extended.
    pub(super) fn ending(&mut self) -> Ending {
        let mut ending = Ending::Complete;
        for thread in 0..self.graph().width() {
            let end = *self.graph().thread(thread);
            if !self.replays {
                self.system.restore(ThreadId::new(thread), end.token);
            }
            let here = if end.status == Status::Stuck {
                self.stuck_ending(end.last)
            } else {
                match self.system.pending(ThreadId::new(thread)) {
                    Pending::Failed => Ending::Failed,
                    Pending::Pruned => Ending::Blocked,
                    Pending::Bounded => Ending::Bounded,
                    Pending::Spinning => Ending::Spinning,
                    Pending::Await(_) if self.system.may_stay(ThreadId::new(thread)) => Ending::Complete,
                    Pending::Await(_) => Ending::Deadlock,
                    _ => Ending::Complete,
                }
            };
            if severity(here) > severity(ending) {
                ending = here;
            }
        }
        if ending == Ending::Livelock && self.may_disturb_each_other() && self.get_on_together() {
            return Ending::Blocked;
        }
        if ending == Ending::Complete {
            let graph = &self.frame.graph;
            ending = match self.system.judge(&|cell| graph.final_value(cell)) {
                Judgement::Holds => Ending::Complete,
                Judgement::Pruned => Ending::Blocked,
                Judgement::Fails => Ending::Wrong,
            };
        }
        ending
    }

    /// Is a thread that has just failed done with? A failure that comes after a false `assume` is none, and the same one may
    /// come before it in a graph that a revisit makes of this one.
    pub(super) fn status_after_failure(&mut self, failed: usize) -> Status {
        let is_pruned = |this: &mut Self, thread: usize| {
            let (id, token) = (ThreadId::new(thread), this.graph().thread(thread).token);
            if !this.replays {
                this.system.restore(id, token);
            }
            this.system.pending(id) == Pending::Pruned
        };
        let in_vain = (0..self.graph().width()).any(|thread| thread != failed && is_pruned(self, thread));
        if in_vain { Status::FailedInVain } else { Status::Done }
    }

    /// Does one of several threads that wait read what another one, going round a loop, writes for a moment? Then it may
    /// see that and go on: that is another execution.
    fn may_disturb_each_other(&self) -> bool {
        let stuck = |thread: &usize| self.graph().thread(*thread).status == Status::Stuck;
        let threads = || (0..self.graph().width()).filter(stuck);
        threads().any(|one| {
            let passing = self.passing_writes(one);
            let sees = |other: usize| self.awaited_cells(other).iter().any(|cell| passing.contains(cell));
            !passing.is_empty() && threads().any(|other| other != one && sees(other))
        })
    }

    /// A thread that waits in a loop never ends. One that waits for a mutex or a notification and whose read is not the
    /// last word of its cell waits for something that is there.
    pub(super) fn stuck_ending(&self, read: u32) -> Ending {
        let event = self.graph().event(read);
        if !event.stuck {
            let waits = self.replays && self.waits_for_ever(read) && !self.leaves_at_last(event.thread as usize);
            return if waits { Ending::Livelock } else { Ending::Blocked };
        }
        if event.kind == EventKind::WakeRead && self.spurious_wakeups {
            // It goes round its loop for ever: see `wakeups`.
            return Ending::Blocked;
        }
        let waits = if event.kind == EventKind::WakeRead {
            self.graph().final_value(event.cell) & bit(event.thread as usize) != 0
        } else {
            event.source == self.graph().last_write(event.cell)
        };
        if waits { Ending::Deadlock } else { Ending::Blocked }
    }
}

/// Which of two threads' endings is that of the whole.
fn severity(ending: Ending) -> u8 {
    match ending {
        Ending::Complete | Ending::Wrong | Ending::TooLong => 0,
        Ending::Deadlock => 1,
        Ending::Livelock => 2,
        Ending::Spinning => 3,
        Ending::Bounded => 4,
        Ending::Failed => 5,
        Ending::Blocked => 6,
    }
}
