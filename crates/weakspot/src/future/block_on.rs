//! Runs a future on the current thread.
//!
//! Wakers count references outside the model, so that cloning and dropping them costs no executions; a waker that is
//! still there when the execution is over is a leak and fails it.

use crate::rt;
use crate::rt::waiting::BLOCK_ON;
use crate::sync::Notify;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};

struct Signal {
    notify: Notify,
    /// The thread of the model that polls.
    owner: Option<u32>,
    /// It has woken itself since it was polled last. Only looked at by itself.
    woke_itself: AtomicBool,
}

impl Signal {
    fn new() -> Self {
        Self { notify: Notify::new(), owner: rt::current_thread(), woke_itself: AtomicBool::new(false) }
    }
}

impl Wake for Signal {
    #[track_caller]
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    #[track_caller]
    fn wake_by_ref(self: &Arc<Self>) {
        if self.owner == rt::current_thread() {
            self.woke_itself.store(true, Ordering::Relaxed);
        }
        self.notify.notify_as("Waker::wake");
    }
}

/// Polls a future until it is ready. Inside a model it is also polled once without having been woken, as executors may;
/// not where it has woken itself and will be polled at once anyway.
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    let signal = Arc::new(Signal::new());
    if rt::in_model() {
        report_leaks(Arc::downgrade(&signal));
    }
    let waker = Waker::from(Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let mut may_poll_early = rt::in_model();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        let woke_itself = signal.woke_itself.swap(false, Ordering::Relaxed);
        if may_poll_early && !woke_itself && rt::wakes_up() {
            may_poll_early = false;
        } else {
            signal.notify.wait_surely(BLOCK_ON);
        }
    }
}

fn report_leaks(signal: Weak<Signal>) {
    rt::at_end(move || match signal.strong_count() {
        0 => Ok(()),
        count => Err(format!("a future left {count} waker(s) of `block_on` behind: they were never dropped")),
    });
}
