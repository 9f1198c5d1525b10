//! How channels end: whether anybody sees that the last sender is gone, and who sees it.
//!
//! The last sender to be dropped closes a channel, and which one that is depends on the order in which all of them are dropped. `n`
//! threads that each send something to one that receives `n` messages would have `n!` times the executions that they have, and as many
//! if it receives until the channel is closed: whichever sender was the last, it finds the same. So it is found out what is seen of it
//! ([`Closing`]), and the exploration begins anew where that is more than was known.
//!
//! # Nobody waits for it
//! As long as no execution comes to its rest with a receiver that waits for a channel without senders, dropping them is no event.
//!
//! # Somebody waits for it
//! A receiver that waits goes on when all senders are gone, and nothing tells it which of them was the last. So dropping a sender opens
//! a gate of its own, and a thread that belongs to nobody (a *closer*) passes all of these gates and then closes the channel. It may be
//! late: then the receiver is late, too. Like any thread it is put off, and what it does has one order. It may wait for ever if a
//! sender is never dropped, and that is no deadlock. A channel that has never had a second sender needs none.
//!
//! # Somebody asks
//! `try_recv` and `recv_timeout` tell a channel without messages from one that is closed, at one moment. A closer that is late would
//! make a difference. So the last sender closes it, in whatever order they are dropped. The same goes for a model that is run schedule by
//! schedule, and for one with so many channels that there are no numbers left for closers.

use super::lane::Operation;
use super::{Place, Runtime, Word};

/// What is seen of the end of channels.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Closing {
    /// Nobody waits for it.
    #[default]
    Unseen,
    /// Somebody waits for it.
    Awaited,
    /// Somebody asks whether it has come.
    Asked,
}

/// Channels of a run.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    closing: Closing,
    /// What a receiver would wait at that is to be closed, which nobody has done.
    left_open: Vec<u32>,
}

impl Channels {
    /// A new run.
    pub(super) fn reset(&mut self, closing: Closing) {
        self.closing = closing;
        self.left_open.clear();
    }
}

impl Runtime {
    /// What is seen of the end of channels, as far as the run knows.
    pub(crate) fn closing(&self) -> Closing {
        self.channels.borrow().closing
    }

    /// More is seen of it: everything begins anew.
    pub(crate) fn see_closing(&self, closing: Closing) {
        let mut counts = self.counts.borrow_mut();
        counts.observed.closing = counts.observed.closing.max(closing);
        counts.found = true;
    }

    /// From now on the last sender closes a channel.
    pub(crate) fn order_senders(&self) {
        self.counts.borrow_mut().observed.closing = Closing::Asked;
    }

    /// The current thread asks whether a channel is closed.
    pub(crate) fn ask_whether_closed(&self, place: Place) {
        if !self.is_free() && self.closing() < Closing::Asked {
            self.see_closing(Closing::Asked);
            self.fail("somebody asks whether a channel is closed".to_owned(), place);
        }
    }

    /// Nobody closes a channel without senders, because nobody has waited for that.
    pub(crate) fn leave_open(&self, end: &Word, place: Place) {
        let object = end.come_to(self, place);
        self.channels.borrow_mut().left_open.push(object);
    }

    /// Does a thread wait for that?
    pub(crate) fn is_closing_awaited(&self) -> bool {
        let channels = self.channels.borrow();
        let waits =
            |operation| matches!(operation, Operation::Rmw { object, .. } if channels.left_open.contains(&object));
        !channels.left_open.is_empty() && self.state().lanes.iter().any(|lane| waits(lane.operation))
    }
}
