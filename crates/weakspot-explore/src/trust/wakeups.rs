//! Wake-ups without a notification.
//!
//! A thread that waits is on the list of waiters of its condition variable. To wake up unasked is to leave that list: an
//! atomic on the condition variable, whose read finds the own bit still set and whose write clears it. So where it stands
//! among the notifications is a part of the trace, and there is one execution for each trace as for any other atomic.
//!
//! # How often
//! `while !ready { wait(c, m); }` could wake up and go back to sleep for ever. A round from one `wait` to the same one in
//! the same local state that was begun by an unasked wake-up, in which the thread has written nothing, notified nobody and
//! released what it has acquired, is *fruitless*. After [`MOST_FRUITLESS`] wake-ups in a row at the same place, with
//! nothing but fruitless rounds between them, the thread sleeps until it is notified. Nothing is lost by that:
//!
//! - A fruitless round can be taken out of an execution: the thread just goes on sleeping until the wake-up that ends the
//!   next one. A notification between the two that found nobody now finds this thread, which then is awake a little
//!   earlier and waits for the mutex: nobody else can tell. So errors are found without fruitless rounds.
//! - A monitor can tell, because the round's events are on paths of happens-before. A path passes through the thread
//!   once, from an event where it enters to one where it leaves. If it enters where the mutex is acquired, or where the
//!   list is left, and leaves in a later round, the rounds up to that one can be taken out: the path then enters there.
//!   (If the wake-up before is a notification's now, that notification came after the one that the path came from.) It
//!   may enter with a read and leave in the next round, because not every round reads the same cells; those between can
//!   be taken out. And where it enters by leaving the list, the round before may be needed, to be off the list when
//!   somebody notifies. So two wake-ups are enough.
//!
//! A thread that is left asleep so at the end is not deadlocked: it goes round for ever, like one in a loop that waits.
//!
//! # Deliberately absent
//! Without tokens local states cannot be compared, and loops around a `wait` are not bounded here.

use weakspot_model::ids::ThreadId;

use super::{Explorer, bit};
use crate::graph::{EventKind, NONE};
use crate::system::{CellId, System};

/// How often in a row a thread wakes up unasked at the same place without having done anything in between.
pub const MOST_FRUITLESS: u32 = 2;

impl<S: System> Explorer<'_, S> {
    /// May a thread that sleeps leave the list of waiters as this write left it?
    pub(super) fn may_leave(&self, thread: usize, condvar: CellId, source: u32) -> bool {
        self.spurious_wakeups
            && self.graph().value_of(condvar, source) & bit(thread) != 0
            && (self.replays || self.fruitless_rounds(thread) < MOST_FRUITLESS)
    }

    /// How many fruitless rounds in a row led to the `wait` that a thread is in.
    fn fruitless_rounds(&self, thread: usize) -> u32 {
        let graph = self.graph();
        let mut id = graph.thread(thread).last;
        while id != NONE && graph.event(id).kind != EventKind::WaitRead {
            id = graph.event(id).po_prev;
        }
        if id == NONE {
            return 0;
        }
        let state = graph.event(id).before;
        let mut rounds = 0;
        let mut held = Held::default();
        loop {
            id = graph.event(id).po_prev;
            if id == NONE {
                return rounds;
            }
            let event = graph.event(id);
            match event.kind {
                EventKind::LockWrite => held.count(event.cell, 1),
                EventKind::Unlock | EventKind::WaitUnlock => held.count(event.cell, -1),
                EventKind::WaitRead if self.system.same_state(ThreadId::new(thread), event.before, state) => {
                    if !held.is_balanced() {
                        return rounds;
                    }
                    rounds += 1;
                }
                EventKind::Load
                | EventKind::Fence(_)
                | EventKind::Choose
                | EventKind::LeaveCritical
                | EventKind::LockRead
                | EventKind::WaitRead
                | EventKind::WaitWrite
                | EventKind::WakeWrite => {}
                EventKind::RmwRead(_) if !event.has_write => {}
                EventKind::WakeRead if event.has_write => {}
                _ => return rounds,
            }
        }
    }
}

/// Mutexes, and how many acquisitions more than releases there were of each.
#[derive(Debug, Default)]
struct Held(Vec<(CellId, i32)>);

impl Held {
    fn count(&mut self, mutex: CellId, change: i32) {
        match self.0.iter_mut().find(|(known, _)| *known == mutex) {
            Some((_, count)) => *count += change,
            None => self.0.push((mutex, change)),
        }
    }

    fn is_balanced(&self) -> bool {
        self.0.iter().all(|&(_, count)| count == 0)
    }
}
