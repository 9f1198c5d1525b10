//! Stacks of coroutines. Mapping one takes microseconds, so those of ended threads are used again.

use std::cell::RefCell;
use std::sync::OnceLock;

use corosensei::stack::{DefaultStack, Stack};

/// Bytes of a stack if nobody says anything: those of a thread of the standard library. Pages that are never touched cost
/// nothing.
const USUAL_BYTES: usize = 2 << 20;

thread_local! {
    /// Stacks that nobody uses, for all models of an OS thread.
    static FREE: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
    /// Larger ones.
    static LARGE: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
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
    let free = FREE.with_borrow_mut(Vec::pop);
    free.unwrap_or_else(|| new(usual_bytes()))
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
    let free = if is_large { &LARGE } else { &FREE };
    free.with_borrow_mut(|free| free.push(stack));
}

/// A stack has some more bytes than it was asked for: the page that may not be touched, and up to the next page.
const LARGEST_PAGE: usize = 2 * (64 << 10);
