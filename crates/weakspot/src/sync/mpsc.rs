//! Channels: many senders, one receiver. Mirrors [`std::sync::mpsc`].
//!
//! A channel made inside a model lives in [`core`]; one made outside is std's. The error types are std's.

mod core;
mod course;
mod receiver;
mod sender;

pub use receiver::{IntoIter, Iter, Receiver, TryIter};
pub use sender::{Sender, SyncSender};
pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

use crate::rt;
use std::sync::Arc;

/// A channel without a limit.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    if !rt::in_model() {
        let (sender, receiver) = std::sync::mpsc::channel();
        return (Sender::outside(sender), Receiver::outside(receiver));
    }
    let channel = Arc::new(core::Channel::new(None));
    (Sender::inside(Arc::clone(&channel)), Receiver::inside(channel))
}

/// A channel whose senders wait while it holds `bound` messages; with 0 each waits until its message is taken.
#[track_caller]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    if !rt::in_model() {
        let (sender, receiver) = std::sync::mpsc::sync_channel(bound);
        return (SyncSender::outside(sender), Receiver::outside(receiver));
    }
    let channel = Arc::new(core::Channel::new(Some(bound)));
    (SyncSender::inside(Arc::clone(&channel)), Receiver::inside(channel))
}
