//! What a report says of a delayed store and the timeline below it speak of the same execution and the same threads.
#![allow(clippy::unwrap_used)]

use weakspot::sync::Arc;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicUsize, fence};
use weakspot::{Builder, Impact, MemoryModel, Moment, Violation, hint, thread};

/// A lock that all threads use alike.
trait Lock: Default + Send + Sync + 'static {
    fn lock(&self, me: usize);
    fn unlock(&self, me: usize);
}

#[derive(Default)]
struct Peterson {
    wants: [AtomicBool; 2],
    turn: AtomicUsize,
}

impl Lock for Peterson {
    fn lock(&self, me: usize) {
        self.wants[me].store(true, Relaxed);
        self.turn.store(1 - me, Relaxed);
        while self.wants[1 - me].load(Acquire) && self.turn.load(Acquire) == 1 - me {
            hint::spin_loop();
        }
    }

    fn unlock(&self, me: usize) {
        self.wants[me].store(false, Release);
    }
}

#[derive(Default)]
struct Dekker {
    wants: [AtomicBool; 2],
    turn: AtomicUsize,
}

impl Lock for Dekker {
    fn lock(&self, me: usize) {
        self.wants[me].store(true, Release);
        while self.wants[1 - me].load(Acquire) {
            if self.turn.load(Acquire) != me {
                self.wants[me].store(false, Release);
                while self.turn.load(Acquire) != me {
                    hint::spin_loop();
                }
                self.wants[me].store(true, Release);
            }
            hint::spin_loop();
        }
    }

    fn unlock(&self, me: usize) {
        self.turn.store(1 - me, Release);
        self.wants[me].store(false, Release);
    }
}

#[derive(Default)]
struct Bakery {
    choosing: [AtomicBool; 2],
    number: [AtomicUsize; 2],
}

impl Lock for Bakery {
    fn lock(&self, me: usize) {
        let other = 1 - me;
        self.choosing[me].store(true, Relaxed);
        fence(SeqCst);
        let mine = self.number[other].load(Acquire) + 1;
        self.number[me].store(mine, Relaxed);
        self.choosing[me].store(false, Release);
        while self.choosing[other].load(Acquire) {
            hint::spin_loop();
        }
        let goes_first = |number: usize| number != 0 && (number, other) < (mine, me);
        while goes_first(self.number[other].load(Acquire)) {
            hint::spin_loop();
        }
    }

    fn unlock(&self, me: usize) {
        self.number[me].store(0, Release);
    }
}

fn add(me: usize, lock: &impl Lock, count: &AtomicUsize) {
    lock.lock(me);
    count.store(count.load(Relaxed) + 1, Relaxed);
    lock.unlock(me);
}

/// Two threads that each add one; the main thread is one of them, or only waits.
fn adds<L: Lock>(main_takes_part: bool) {
    let shared = Arc::new((L::default(), AtomicUsize::new(0)));
    let start = |me: usize| {
        let shared = shared.clone();
        thread::spawn(move || add(me, &shared.0, &shared.1))
    };
    let threads: Vec<_> = if main_takes_part { vec![start(1)] } else { vec![start(1), start(0)] };
    if main_takes_part {
        add(0, &shared.0, &shared.1);
    }
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(shared.1.load(Relaxed), 2, "an update is lost");
}

/// Is the store issued, does the other thread do its part, and does the store reach memory, in this order?
fn is_in(violation: &Violation, moments: &[Moment]) -> bool {
    let Violation { store, access, .. } = violation;
    let is_late = |moment: &Moment| moment.text.contains("reaches memory");
    let find = |from: usize, thread: u32, place: &_, late: bool| {
        let is_it = |moment: &Moment| (moment.thread, &moment.place, is_late(moment)) == (thread, place, late);
        moments[from..].iter().position(is_it).map(|at| from + at)
    };
    let mut from = 0;
    while let Some(at) = find(from, store.thread, &store.place, false) {
        let access = find(at, access.thread, &access.place, false);
        let commit = find(at, store.thread, &store.place, true);
        if access.is_some_and(|access| commit.is_none_or(|commit| access < commit)) {
            return true;
        }
        from = at + 1;
    }
    false
}

fn speaks_of_one_execution<L: Lock>(name: &str) {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        for main_takes_part in [false, true] {
            let report = Builder { model, ..Builder::default() }.check(move || adds::<L>(main_takes_part));
            let Some(Impact::Harmful(harm)) = &report.impact else { panic!("{name} on {model:?}: {report}") };
            let first = &report.violations[0];
            assert!(is_in(first, &harm.timeline.moments), "{name} on {model:?}: {first:?} is not in\n{report}");
            let text = report.to_string();
            let says = format!("the store of thread {} may still be in its buffer", first.store.thread);
            assert_eq!(text.find("the store of thread"), text.find(&says), "{text}");
            assert!(text.find(&says) < text.find("what happens then"), "{text}");
        }
    }
}

#[test]
fn peterson() {
    speaks_of_one_execution::<Peterson>("peterson");
}

#[test]
fn dekker() {
    speaks_of_one_execution::<Dekker>("dekker");
}

#[test]
fn bakery() {
    speaks_of_one_execution::<Bakery>("bakery");
}
