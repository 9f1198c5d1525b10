//! Stacks of coroutines. Mapping one takes microseconds, so those of ended threads are used again: by the same OS thread,
//! and when that ends, by others. (Each test of `cargo test` has an OS thread of its own.)

use std::cell::RefCell;
use std::sync::{Mutex, OnceLock, PoisonError};

use corosensei::stack::{DefaultStack, Stack};

/// Bytes of a stack if nobody says anything: those of a thread of the standard library. Pages that are never touched cost
/// nothing.
const USUAL_BYTES: usize = 2 << 20;

/// Stacks of the usual size that an OS thread does not use.
struct Free(Vec<DefaultStack>);

thread_local! {
    /// Stacks that nobody uses, for all models of an OS thread.
    static FREE: RefCell<Free> = const { RefCell::new(Free(Vec::new())) };
    /// Larger ones.
    static LARGE: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Stacks of OS threads that have ended.
static LEFT: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());
/// How many of them are kept.
const MOST_LEFT: usize = 32;

impl Drop for Free {
    fn drop(&mut self) {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MOST_LEFT.saturating_sub(left.len());
        left.extend(self.0.drain(..).take(room));
    }
}

/// What a stack has at least. As in the standard library, `RUST_MIN_STACK` may ask for more.
fn usual_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let asked = std::env::var("RUST_MIN_STACK").ok().and_then(|text| text.parse().ok());
        asked.unwrap_or(0).max(USUAL_BYTES)
    })
}

fn bytes_of(stack: &DefaultStack) -> usize {
    stack.base().get() - stack.limit().get()
}

fn new(bytes: usize) -> DefaultStack {
    DefaultStack::new(bytes).expect("no memory for the stack of a thread")
}

/// A stack of the usual size.
pub(crate) fn take() -> DefaultStack {
    let free = FREE.with_borrow_mut(|free| free.0.pop());
    free.unwrap_or_else(take_left)
}

/// The stack of an OS thread that has ended, or a new one.
#[cold]
fn take_left() -> DefaultStack {
    let left = LEFT.lock().unwrap_or_else(PoisonError::into_inner).pop();
    left.unwrap_or_else(|| new(usual_bytes()))
}

/// One of at least this many bytes.
pub(crate) fn take_of(bytes: usize) -> DefaultStack {
    if bytes <= usual_bytes() {
        return take();
    }
    let free = LARGE.with_borrow_mut(|large| {
        let at = large.iter().position(|stack| bytes_of(stack) >= bytes)?;
        Some(large.swap_remove(at))
    });
    free.unwrap_or_else(|| new(bytes))
}

pub(crate) fn give_back(stack: DefaultStack) {
    let is_large = bytes_of(&stack) > usual_bytes() + LARGEST_PAGE;
    if is_large {
        LARGE.with_borrow_mut(|large| large.push(stack));
    } else {
        FREE.with_borrow_mut(|free| free.0.push(stack));
    }
}

/// A stack has some more bytes than it was asked for: the page that may not be touched, and up to the next page.
const LARGEST_PAGE: usize = 2 * (64 << 10);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{LEFT, MOST_LEFT, give_back, take};

    #[test]
    fn threads_that_end_leave_some_stacks_to_others() {
        let use_stacks = || {
            let stacks: Vec<_> = (0..MOST_LEFT + 8).map(|_| take()).collect();
            stacks.into_iter().for_each(give_back);
        };
        std::thread::spawn(use_stacks).join().unwrap();
        let left = LEFT.lock().unwrap();
        assert!((1..=MOST_LEFT).contains(&left.len()), "{} are left", left.len());
    }
}
