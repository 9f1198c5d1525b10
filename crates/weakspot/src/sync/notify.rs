//! `Notify`: one thread waits for another one's call. Not in std; loom has it, for mocks of operating-system calls.

use crate::rt::{self, Step, Sync, Word};
use std::sync::PoisonError;

const QUIET: u64 = 0;
const NOTIFIED: u64 = 1;

/// Wakes a waiting thread, or the next one that waits.
#[derive(Debug)]
pub struct Notify {
    word: Word,
    /// Bit 0: somebody waits. Bit 1: a wait has returned without a notification.
    flags: Word,
    outside: std::sync::Mutex<bool>,
    woken: std::sync::Condvar,
}

const WAITING: u64 = 1;
const WAS_SPURIOUS: u64 = 2;

impl Notify {
    /// Nobody has called yet.
    pub const fn new() -> Self {
        Self {
            word: Word::new(QUIET),
            flags: Word::new(0),
            outside: std::sync::Mutex::new(false),
            woken: std::sync::Condvar::new(),
        }
    }

    /// Wakes the waiting thread; if none waits, the next wait returns at once.
    #[track_caller]
    pub fn notify(&self) {
        self.notify_as("Notify::notify");
    }

    /// The same, under the name of what it is a part of.
    #[track_caller]
    pub(crate) fn notify_as(&self, what: &'static str) {
        if rt::in_model() {
            self.word.update(what, Sync::Release, |_| Step::Write(NOTIFIED));
            return;
        }
        *self.outside.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_one();
    }

    /// Waits for a notification. As in loom, the first wait may also return without one: call it in a loop.
    ///
    /// # Panics
    /// If another thread waits already.
    #[track_caller]
    pub fn wait(&self) {
        if !rt::in_model() {
            return self.wait_surely("Notify::wait");
        }
        let flags = self.flags.update("Notify::wait", Sync::Relaxed, |flags| Step::Write(flags | WAITING));
        assert!(flags & WAITING == 0, "only a single thread may wait on `Notify`");
        let spurious = flags & WAS_SPURIOUS == 0 && rt::wakes_up();
        if !spurious {
            self.wait_surely("Notify::wait");
        }
        let flags = if spurious { WAS_SPURIOUS } else { flags };
        self.flags.update("Notify::wait", Sync::Relaxed, |_| Step::Write(flags));
    }

    /// Waits for a notification and uses it up, under the name of what that is a part of. Never returns without one.
    #[track_caller]
    pub(crate) fn wait_surely(&self, what: &'static str) {
        if rt::in_model() {
            self.word.update(what, Sync::Acquire, |state| match state {
                NOTIFIED => Step::Write(QUIET),
                _ => Step::Block,
            });
            return;
        }
        let mut notified = self.outside.lock().unwrap_or_else(PoisonError::into_inner);
        while !*notified {
            notified = self.woken.wait(notified).unwrap_or_else(PoisonError::into_inner);
        }
        *notified = false;
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}
