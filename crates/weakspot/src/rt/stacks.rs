//! Stacks of coroutines. Mapping one takes microseconds, so those of ended threads are used again.

use corosensei::stack::DefaultStack;

/// Bytes of a stack. Pages that are never touched cost nothing.
pub(crate) const STACK_BYTES: usize = 1 << 20;

/// Stacks that nobody uses.
#[derive(Default)]
pub(crate) struct Stacks {
    free: Vec<DefaultStack>,
}

impl Stacks {
    pub(crate) fn take(&mut self) -> DefaultStack {
        self.free.pop().unwrap_or_else(|| DefaultStack::new(STACK_BYTES).expect("no memory for the stack of a thread"))
    }

    pub(crate) fn give_back(&mut self, stack: DefaultStack) {
        self.free.push(stack);
    }
}
