//! The receiver and its iterators.

use super::core::Channel;
use crate::rt::{self, Place};
use std::cell::Cell;
use std::fmt;
use std::panic::{Location, RefUnwindSafe, UnwindSafe};
use std::sync::mpsc::{RecvError, RecvTimeoutError, TryRecvError};
use std::time::Duration;

/// Receives messages. Mirrors [`std::sync::mpsc::Receiver`].
pub struct Receiver<T>(Kind<T>);

enum Kind<T> {
    Inside {
        channel: std::sync::Arc<Channel<T>>,
        /// The slot of the next message.
        next: Cell<usize>,
        /// Where the channel was made.
        place: Place,
    },
    Outside(std::sync::mpsc::Receiver<T>),
}

// As the standard library's.
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    #[track_caller]
    pub(super) fn inside(channel: std::sync::Arc<Channel<T>>) -> Self {
        Self(Kind::Inside { channel, next: Cell::new(0), place: Location::caller() })
    }

    pub(super) fn outside(receiver: std::sync::mpsc::Receiver<T>) -> Self {
        Self(Kind::Outside(receiver))
    }

    /// Waits for a message; an error if all senders are gone and nothing is left.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        match &self.0 {
            Kind::Inside { channel, next, .. } => {
                let message = channel.recv(next.get())?;
                next.set(next.get() + 1);
                Ok(message)
            }
            Kind::Outside(receiver) if rt::in_model() => receive_at_once(receiver),
            Kind::Outside(receiver) => receiver.recv(),
        }
    }

    /// A message, if there is one.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match &self.0 {
            Kind::Inside { channel, next, .. } => {
                let message = channel.try_recv(next.get())?;
                next.set(next.get() + 1);
                Ok(message)
            }
            Kind::Outside(receiver) => receiver.try_recv(),
        }
    }

    /// Waits for a message, but not longer than this. Inside a model there is no time: the wait ends at any moment, with
    /// the message if it is there by then.
    #[track_caller]
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        match (&self.0, self.try_recv()) {
            (_, Ok(message)) => Ok(message),
            (_, Err(TryRecvError::Disconnected)) => Err(RecvTimeoutError::Disconnected),
            (Kind::Outside(receiver), Err(TryRecvError::Empty)) if !rt::in_model() => receiver.recv_timeout(timeout),
            (_, Err(TryRecvError::Empty)) => {
                rt::spin();
                Err(RecvTimeoutError::Timeout)
            }
        }
    }

    /// Messages until all senders are gone.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }

    /// Messages as long as there are some.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter { receiver: self }
    }
}

/// Waiting for another OS thread would stop the whole model.
#[track_caller]
fn receive_at_once<T>(receiver: &std::sync::mpsc::Receiver<T>) -> Result<T, RecvError> {
    match receiver.try_recv() {
        Ok(message) => Ok(message),
        Err(TryRecvError::Disconnected) => Err(RecvError),
        Err(TryRecvError::Empty) => rt::fail("waits on a channel that was made outside the model".to_owned()),
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if let Kind::Inside { channel, next, place } = &self.0
            && rt::in_model()
        {
            channel.disconnect(next.get(), place);
        }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// Messages until all senders are gone, from a borrowed receiver.
#[derive(Debug)]
pub struct Iter<'a, T> {
    receiver: &'a Receiver<T>,
}

/// Messages as long as there are some.
#[derive(Debug)]
pub struct TryIter<'a, T> {
    receiver: &'a Receiver<T>,
}

/// Messages until all senders are gone.
#[derive(Debug)]
pub struct IntoIter<T> {
    receiver: Receiver<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    #[track_caller]
    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { receiver: self }
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}
