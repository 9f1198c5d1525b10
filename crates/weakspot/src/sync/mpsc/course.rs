//! What a channel is apart from its messages: their slots, and its senders, and who closes it (see [`crate::rt::channels`]).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::core::{CLOSED, EMPTY};
use crate::rt::channels::Closing;
use crate::rt::{self, Place, Runtime, Step, Sync, Word};

/// What dropping a sender is called.
const DROP: &str = "drop of a Sender";

/// The slots and the senders of a channel.
pub(super) struct Course {
    /// How many slots are taken, and whether the receiver is gone.
    pub(super) tail: Word,
    /// The number of slots in `tail`, for whoever closes the channel, who comes after all senders.
    claimed: AtomicUsize,
    /// What each slot is.
    slots: Mutex<Vec<Arc<Word>>>,
    /// The senders, by numbers that they get as they are made, and to which ones each was cloned.
    clones: Mutex<Vec<Vec<usize>>>,
}

impl Course {
    /// With one sender, whose number is 0.
    pub(super) fn new() -> Self {
        Self {
            tail: Word::new(0),
            claimed: AtomicUsize::new(0),
            slots: Mutex::new(Vec::new()),
            clones: Mutex::new(vec![Vec::new()]),
        }
    }

    /// What a slot is.
    pub(super) fn slot(&self, index: usize) -> Arc<Word> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        while slots.len() <= index {
            slots.push(Arc::new(Word::new(EMPTY)));
        }
        Arc::clone(&slots[index])
    }

    /// A sender has taken a slot.
    pub(super) fn note_claim(&self, index: usize) {
        self.claimed.store(index + 1, Ordering::Relaxed);
    }

    fn clones(&self) -> MutexGuard<'_, Vec<Vec<usize>>> {
        self.clones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All senders are gone: the slot that the receiver comes to when it has taken everything.
    fn end(&self) -> Arc<Word> {
        self.slot(self.claimed.load(Ordering::Relaxed))
    }

    fn close(&self, place: Place) {
        self.end().update_at(place, "the last Sender's drop", Sync::AcqRel, |_| Step::Write(CLOSED));
    }

    /// A sender is cloned: the number of the new one.
    pub(super) fn clone_sender(self: &Arc<Self>, of: usize, place: Place) -> usize {
        let awaits = |runtime: &&Runtime| runtime.closing() == Closing::Awaited;
        let is_one = self.clones().len() == 1;
        if let Some(runtime) = rt::current().filter(awaits).filter(|_| is_one) {
            self.start_closer(runtime, place);
        }
        let mut clones = self.clones();
        let number = clones.len();
        clones.push(Vec::new());
        clones[of].push(number);
        number
    }

    fn start_closer(self: &Arc<Self>, runtime: &Runtime, place: Place) {
        let course = Arc::clone(self);
        let closer = move || {
            let runtime = rt::current().expect("invariant: a closer is a thread of a model");
            let mut left = vec![0];
            while let Some(number) = left.pop() {
                runtime.pass_gate(course.gate(runtime, number, place), DROP, place);
                left.extend_from_slice(&course.clones()[number]);
            }
            course.close(place);
        };
        if !runtime.start_hidden(Box::new(closer), place) {
            runtime.ask_whether_closed(place);
        }
    }

    /// What the drop of a sender opens.
    fn gate(&self, runtime: &Runtime, number: usize, place: Place) -> u32 {
        runtime.part(self.tail.come_to(runtime, place), number as u64, place)
    }

    /// A sender is dropped.
    pub(super) fn drop_sender(&self, number: usize, place: Place) {
        let Some(runtime) = rt::current().filter(|runtime| runtime.closing() == Closing::Awaited) else { return };
        let is_one = self.clones().len() == 1;
        if is_one {
            self.close(place);
        } else {
            runtime.open_gate(self.gate(runtime, number, place), DROP, place);
        }
    }

    /// The last sender is gone, in the order of this execution.
    pub(super) fn drop_last_sender(&self, place: Place) {
        match rt::current().map(|runtime| (runtime.closing(), runtime)) {
            Some((Closing::Unseen, runtime)) => runtime.leave_open(&self.end(), place),
            Some((Closing::Asked, _)) => self.close(place),
            Some((Closing::Awaited, _)) | None => {}
        }
    }
}
