//! Stacks of coroutines. Mapping one takes microseconds, so those of ended threads are used again.

use std::cell::RefCell;

use corosensei::stack::DefaultStack;

/// Bytes of a stack. Pages that are never touched cost nothing.
pub(crate) const STACK_BYTES: usize = 1 << 20;

thread_local! {
    /// Stacks that nobody uses, for all models of an OS thread.
    static FREE: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn take() -> DefaultStack {
    let free = FREE.with_borrow_mut(Vec::pop);
    free.unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("no memory for the stack of a thread"))
}

pub(crate) fn give_back(stack: DefaultStack) {
    FREE.with_borrow_mut(|free| free.push(stack));
}
