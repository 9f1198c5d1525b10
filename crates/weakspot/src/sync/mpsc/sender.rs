//! The two kinds of senders.

use super::core::Channel;
use crate::rt::Place;
use crate::sync::Arc;
use std::fmt;
use std::panic::Location;
use std::sync::mpsc::{SendError, TrySendError};

/// Shared by the senders of a channel: dropped with the last of them.
struct Senders<T> {
    channel: std::sync::Arc<Channel<T>>,
    /// Where the channel was made. The compiler calls destructors, so there is no place in the source.
    place: Place,
}

impl<T> Drop for Senders<T> {
    fn drop(&mut self) {
        self.channel.course.drop_last_sender(self.place);
    }
}

/// One of them.
struct Handle<T> {
    senders: Arc<Senders<T>>,
    number: usize,
    /// Where it was made.
    place: Place,
}

impl<T> Handle<T> {
    #[track_caller]
    fn first(channel: std::sync::Arc<Channel<T>>) -> Self {
        let place = Location::caller();
        Self { senders: Arc::new(Senders { channel, place }), number: 0, place }
    }
}

impl<T> Clone for Handle<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        let place = Location::caller();
        let number = self.senders.channel.course.clone_sender(self.number, place);
        Self { senders: Arc::clone(&self.senders), number, place }
    }
}

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        self.senders.channel.course.drop_sender(self.number, self.place);
    }
}

/// Sends without waiting. Mirrors [`std::sync::mpsc::Sender`].
pub struct Sender<T>(Kind<T, std::sync::mpsc::Sender<T>>);

/// Sends and waits for room. Mirrors [`std::sync::mpsc::SyncSender`].
pub struct SyncSender<T>(Kind<T, std::sync::mpsc::SyncSender<T>>);

enum Kind<T, O> {
    Inside(Handle<T>),
    Outside(O),
}

impl<T, O: Clone> Clone for Kind<T, O> {
    #[track_caller]
    fn clone(&self) -> Self {
        match self {
            Self::Inside(sender) => Self::Inside(sender.clone()),
            Self::Outside(sender) => Self::Outside(sender.clone()),
        }
    }
}

impl<T> Sender<T> {
    #[track_caller]
    pub(super) fn inside(channel: std::sync::Arc<Channel<T>>) -> Self {
        Self(Kind::Inside(Handle::first(channel)))
    }

    pub(super) fn outside(sender: std::sync::mpsc::Sender<T>) -> Self {
        Self(Kind::Outside(sender))
    }

    /// Sends a message, or gives it back if the receiver is gone.
    #[track_caller]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        match &self.0 {
            Kind::Inside(sender) => sender.senders.channel.send(message),
            Kind::Outside(sender) => sender.send(message),
        }
    }
}

impl<T> SyncSender<T> {
    #[track_caller]
    pub(super) fn inside(channel: std::sync::Arc<Channel<T>>) -> Self {
        Self(Kind::Inside(Handle::first(channel)))
    }

    pub(super) fn outside(sender: std::sync::mpsc::SyncSender<T>) -> Self {
        Self(Kind::Outside(sender))
    }

    /// Waits for room and sends a message, or gives it back if the receiver is gone.
    #[track_caller]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        match &self.0 {
            Kind::Inside(sender) => sender.senders.channel.send(message),
            Kind::Outside(sender) => sender.send(message),
        }
    }

    /// Sends a message if there is room for it.
    #[track_caller]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        match &self.0 {
            Kind::Inside(sender) => sender.senders.channel.try_send(message),
            Kind::Outside(sender) => sender.try_send(message),
        }
    }
}

impl<T> Clone for Sender<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Clone for SyncSender<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SyncSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncSender").finish_non_exhaustive()
    }
}
