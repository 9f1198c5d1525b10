//! What is carried to another OS thread although its type does not say that it may be.
//!
//! Threads that are started as loom does it take any closure, because all threads of a model run on one OS thread. Outside
//! a model they are real threads, and what they are given must be `Send`. That is known when the program is compiled, but
//! not to a function without the bound; so it is asked for when the program runs.

use std::cell::Cell;
use std::iter::FusedIterator;
use std::marker::PhantomData;

/// Something that may be carried, with the proof left behind.
pub(super) struct Carried<T>(T);

// SAFETY: `Carried::new` makes one of something that is `Send` only.
unsafe impl<T> Send for Carried<T> {}

impl<T: 'static> Carried<T> {
    /// Nothing if the type is not `Send`.
    pub(super) fn new(value: T) -> Option<Self> {
        is_send::<T>().then_some(Self(value))
    }
}

impl<T: Send> Carried<T> {
    /// For types that say so themselves.
    pub(super) fn of_send(value: T) -> Self {
        Self(value)
    }
}

impl<T> Carried<T> {
    pub(super) fn into_inner(self) -> T {
        self.0
    }
}

/// An iterator without items that counts how often it is asked for one; a [`FusedIterator`] if `T` is `Send`.
struct Witness<'a, T> {
    asked: &'a Cell<u32>,
    of: PhantomData<T>,
}

impl<T> Iterator for Witness<'_, T> {
    type Item = ();

    fn next(&mut self) -> Option<()> {
        self.asked.set(self.asked.get() + 1);
        None
    }
}

impl<T: Send> FusedIterator for Witness<'_, T> {}

/// Is the type `Send`? An iterator that is said to be fused is asked again by [`Iterator::fuse`] after its end, and another
/// one is not. If the standard library ever stops making use of that, the answer is "no" for every type.
pub(super) fn is_send<T: 'static>() -> bool {
    let asked = Cell::new(0);
    let mut fuse = Witness::<T> { asked: &asked, of: PhantomData }.fuse();
    fuse.next();
    fuse.next();
    asked.get() == 2
}

#[cfg(test)]
mod tests {
    use super::is_send;
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::{Arc, MutexGuard};

    fn of<T: 'static>(_: &T) -> bool {
        is_send::<T>()
    }

    #[test]
    fn types_that_are_send_are_known() {
        assert!(is_send::<u8>() && is_send::<String>() && is_send::<Arc<u8>>() && is_send::<Cell<Vec<u8>>>());
        assert!(!is_send::<Rc<u8>>() && !is_send::<*mut u8>() && !is_send::<Arc<Cell<u8>>>());
        assert!(!is_send::<MutexGuard<'static, u8>>() && !is_send::<Box<dyn Fn()>>());
        assert!(is_send::<Box<dyn Fn() + Send>>());
    }

    #[test]
    fn so_are_closures() {
        let (shared, counted) = (Arc::new(1), Rc::new(1));
        assert!(of(&move || *shared));
        assert!(!of(&move || *counted));
    }
}
