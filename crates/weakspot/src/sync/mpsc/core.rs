//! The channel inside a model.
//!
//! Every message has a slot of its own, with a state word of its own. A sender takes the next slot by one step on `tail`
//! and then fills it; the receiver waits for its next slot to be filled. So a single sender and a receiver that waits
//! have exactly one execution, whatever the number of messages: nobody reads a word that says how many there are.
//!
//! | state of a slot | who leaves it |
//! |---|---|
//! | `EMPTY` | its sender, to `FULL`; whoever closes the channel, to `CLOSED`; the dropped receiver, to `GONE` |
//! | `FULL` | the receiver, to `TAKEN` if the channel is bounded; the dropped receiver, to `GONE` |
//! | `TAKEN`, `CLOSED`, `GONE` | nobody |
//!
//! In a bounded channel the sender of message *i* waits until message *i − bound* is taken, and with bound 0 until its
//! own is. In std a sender has no place in the queue while it waits. So a message counts as sent when both are there, its slot
//! and the room for it: from then on a `try_send` finds one place less, a `try_recv` waits until the slot is filled, and the
//! sender has sent even if the receiver goes away before it fills the slot. That std lets a `try_send` come first, which finds
//! the room before the sender who waits for it, is an execution in which that sender takes its slot later: nobody sees a
//! sender that waits.

use super::course::Course;
use crate::rt::{self, Place, Step, Sync, Word};
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::mpsc::{RecvError, SendError, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const EMPTY: u64 = 0;
const FULL: u64 = 1;
const TAKEN: u64 = 2;
pub(super) const CLOSED: u64 = 3;
const GONE: u64 = 4;

/// The bit of `tail` that says that the receiver is gone; the bits above it count the slots that are taken by senders.
const NO_RECEIVER: u64 = 1;
const ONE_SLOT: u64 = 2;

/// What a `try_send` is called in its later events: see [`CONTINUES`](crate::rt::lane::CONTINUES).
const AGAIN: &str = "… SyncSender::try_send";

struct Slot<T> {
    state: Arc<Word>,
    /// Never contended: its sender writes it before `FULL`, the receiver takes it after.
    message: Mutex<Option<T>>,
}

impl<T> Slot<T> {
    fn message(&self) -> Option<T> {
        self.message.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, message: T) {
        *self.message.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
    }
}

/// A channel with its messages.
pub(super) struct Channel<T> {
    bound: Option<usize>,
    pub(super) course: Arc<Course>,
    /// One more than the slot that the receiver has waited for last, if it has. Only for `try_send` with bound 0: the receiver
    /// waits as long as no sender has taken that slot.
    receiver_waits: Word,
    slots: Mutex<Vec<Arc<Slot<T>>>>,
}

// As the standard library's: what is in the channel is whole whatever panics.
impl<T> UnwindSafe for Channel<T> {}
impl<T> RefUnwindSafe for Channel<T> {}

impl<T> Channel<T> {
    pub(super) fn new(bound: Option<usize>) -> Self {
        Self { bound, course: Arc::new(Course::new()), receiver_waits: Word::new(0), slots: Mutex::new(Vec::new()) }
    }

    fn slot(&self, index: usize) -> Arc<Slot<T>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        while slots.len() <= index {
            let state = self.course.slot(slots.len());
            slots.push(Arc::new(Slot { state, message: Mutex::new(None) }));
        }
        Arc::clone(&slots[index])
    }

    /// Takes the next slot, if `allowed` for the present number of slots. `None`: the receiver is gone or not allowed.
    #[track_caller]
    fn claim(&self, what: &'static str, allowed: impl Fn(usize) -> bool) -> Option<usize> {
        let refused = |tail: u64| tail & NO_RECEIVER != 0 || !allowed((tail / ONE_SLOT) as usize);
        let step = |tail| if refused(tail) { Step::Keep } else { Step::Write(tail + ONE_SLOT) };
        let tail = self.course.tail.update(what, Sync::AcqRel, step);
        if refused(tail) {
            return None;
        }
        let index = (tail / ONE_SLOT) as usize;
        self.course.note_claim(index);
        Some(index)
    }

    #[track_caller]
    pub(super) fn send(&self, message: T) -> Result<(), SendError<T>> {
        let what = if self.bound.is_some() { "SyncSender::send" } else { "Sender::send" };
        let Some(index) = self.claim(what, |_| true) else { return Err(SendError(message)) };
        if !self.wait_for_room(index) {
            return Err(SendError(message));
        }
        self.fill(index, message, self.bound != Some(0))?;
        if self.bound == Some(0) { self.wait_for_receiver(index) } else { Ok(()) }
    }

    /// The slot whose message must be taken before this one may be filled.
    fn blocker(&self, index: usize) -> Option<Arc<Slot<T>>> {
        let bound = self.bound.filter(|&bound| bound > 0)?;
        Some(self.slot(index.checked_sub(bound)?))
    }

    /// False if the receiver goes away first.
    #[track_caller]
    fn wait_for_room(&self, index: usize) -> bool {
        // No closure: it would be the place of what happens in it.
        match self.blocker(index) {
            Some(slot) => await_taken(&slot.state) == TAKEN,
            None => true,
        }
    }

    /// A message that was on its way when the receiver went away (`is_sent`) is dropped.
    #[track_caller]
    fn fill(&self, index: usize, message: T, is_sent: bool) -> Result<(), SendError<T>> {
        let slot = self.slot(index);
        slot.put(message);
        let step = |state| if state == GONE { Step::Keep } else { Step::Write(FULL) };
        let what = if self.bound.is_some() { "… SyncSender::send" } else { "… Sender::send" };
        match slot.state.update(what, Sync::AcqRel, step) {
            GONE if is_sent => {
                drop(slot.message());
                Ok(())
            }
            GONE => taken_back(&slot),
            _ => Ok(()),
        }
    }

    #[track_caller]
    fn wait_for_receiver(&self, index: usize) -> Result<(), SendError<T>> {
        let slot = self.slot(index);
        if await_taken(&slot.state) == TAKEN { Ok(()) } else { taken_back(&slot) }
    }

    #[track_caller]
    pub(super) fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        if self.bound == Some(0) {
            let awaited = self.receiver_waits.get("SyncSender::try_send", Sync::Acquire) as usize;
            let Some(index) = self.claim(AGAIN, |next| next + 1 == awaited) else {
                return Err(self.refusal(message));
            };
            return Ok(self.fill(index, message, true)?);
        }
        loop {
            let index = (self.course.tail.get("SyncSender::try_send", Sync::Acquire) / ONE_SLOT) as usize;
            if let Some(slot) = self.blocker(index)
                && slot.state.get(AGAIN, Sync::Acquire) != TAKEN
            {
                return Err(self.refusal(message));
            }
            if let Some(index) = self.claim(AGAIN, |now| now == index) {
                return Ok(self.fill(index, message, true)?);
            }
            if self.is_receiver_gone() {
                return Err(TrySendError::Disconnected(message));
            }
        }
    }

    #[track_caller]
    fn refusal(&self, message: T) -> TrySendError<T> {
        if self.is_receiver_gone() { TrySendError::Disconnected(message) } else { TrySendError::Full(message) }
    }

    #[track_caller]
    fn is_receiver_gone(&self) -> bool {
        self.course.tail.get(AGAIN, Sync::Acquire) & NO_RECEIVER != 0
    }

    /// Waits for the message of a slot.
    #[track_caller]
    pub(super) fn recv(&self, index: usize) -> Result<T, RecvError> {
        if self.bound == Some(0) {
            self.receiver_waits.update("Receiver::recv", Sync::AcqRel, |_| Step::Write(index as u64 + 1));
        }
        let slot = self.slot(index);
        let what = if self.bound == Some(0) { "… Receiver::recv" } else { "Receiver::recv" };
        let state = slot.state.update(what, Sync::AcqRel, |state| match state {
            EMPTY => Step::Block,
            _ => self.take(state),
        });
        if state == CLOSED { Err(RecvError) } else { Ok(slot.message().expect("invariant: a full slot has a message")) }
    }

    fn take(&self, state: u64) -> Step {
        if state == FULL && self.bound.is_some() { Step::Write(TAKEN) } else { Step::Keep }
    }

    /// The message of a slot, if it is there.
    #[track_caller]
    pub(super) fn try_recv(&self, index: usize) -> Result<T, TryRecvError> {
        if let Some(runtime) = rt::current() {
            runtime.ask_whether_closed(Location::caller());
        }
        let slot = self.slot(index);
        match slot.state.update("Receiver::try_recv", Sync::AcqRel, |state| self.take(state)) {
            FULL => Ok(slot.message().expect("invariant: a full slot has a message")),
            CLOSED => Err(TryRecvError::Disconnected),
            _ if self.is_on_its_way(index) => Ok(self.recv(index)?),
            _ => Err(TryRecvError::Empty),
        }
    }

    /// Is a message on its way to the receiver's next slot? There is room for it: what was before it is taken. With bound 0 it
    /// is sent when it is there.
    #[track_caller]
    fn is_on_its_way(&self, index: usize) -> bool {
        let what = "… Receiver::try_recv";
        self.bound != Some(0) && (self.course.tail.get(what, Sync::Acquire) / ONE_SLOT) as usize > index
    }

    /// The receiver, whose next slot is `next`, is gone: no more sends, and what was sent is dropped.
    pub(super) fn disconnect(&self, next: usize, place: Place) {
        let step = |tail| Step::Write(tail | NO_RECEIVER);
        let tail = self.course.tail.update_at(place, "the Receiver's drop", Sync::AcqRel, step);
        for index in next..(tail / ONE_SLOT) as usize {
            let slot = self.slot(index);
            let state = slot.state.update_at(place, "… the Receiver's drop", Sync::AcqRel, |_| Step::Write(GONE));
            if state == FULL && self.bound != Some(0) {
                drop(slot.message());
            }
        }
    }
}

#[track_caller]
fn await_taken(state: &Word) -> u64 {
    state.update("… SyncSender::send", Sync::Acquire, |state| match state {
        TAKEN | GONE => Step::Keep,
        _ => Step::Block,
    })
}

fn taken_back<T>(slot: &Slot<T>) -> Result<(), SendError<T>> {
    Err(SendError(slot.message().expect("invariant: nobody takes a message of a receiver that is gone")))
}
