//! A ticket lock: draw a number with one `fetch_add`, wait until it is called.
//!
//! The next number is called by a store that must not overtake the stores of the critical section.

use weakspot::hint::spin_loop;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The lock. `RELEASE`: with the right ordering in `unlock`.
#[derive(Default)]
pub struct TicketLock<const RELEASE: bool> {
    next: AtomicUsize,
    serving: AtomicUsize,
}

impl<const RELEASE: bool> TicketLock<RELEASE> {
    /// Waits for its turn and returns the ticket.
    pub fn lock(&self) -> usize {
        let ticket = self.next.fetch_add(1, Relaxed);
        while self.serving.load(Acquire) != ticket {
            spin_loop();
        }
        ticket
    }

    /// Calls the next ticket.
    pub fn unlock(&self, ticket: usize) {
        let order = if RELEASE { Release } else { Relaxed };
        self.serving.store(ticket + 1, order); // WEAK: overtakes the stores of the critical section
    }
}

#[cfg(test)]
mod tests {
    use super::TicketLock;
    use crate::harness::{Model, finds, proves};
    use weakspot::sync::Arc;
    use weakspot::sync::atomic::AtomicUsize;
    use weakspot::sync::atomic::Ordering::Relaxed;
    use weakspot::thread;

    fn increments<const RELEASE: bool>() {
        let shared = Arc::new((TicketLock::<RELEASE>::default(), AtomicUsize::new(0)));
        let threads = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (lock, counter) = &*shared;
                let ticket = lock.lock();
                counter.store(counter.load(Relaxed) + 1, Relaxed); // DELAYED
                lock.unlock(ticket);
            })
        });
        for thread in threads {
            thread.join().expect("invariant: the threads do not panic");
        }
        assert_eq!(shared.1.load(Relaxed), 2, "an increment is lost");
    }

    #[test]
    fn ticket_lock_excludes() {
        proves(Model::Tso, increments::<true>);
        proves(Model::Pso, increments::<true>);
    }

    #[test]
    fn tso_forgives_the_relaxed_store() {
        proves(Model::Tso, increments::<false>);
    }

    #[test]
    fn ticket_lock_that_is_handed_on_relaxed_fails_under_pso() {
        finds(Model::Pso, file!(), include_str!("ticket_lock.rs"), increments::<false>);
    }
}
