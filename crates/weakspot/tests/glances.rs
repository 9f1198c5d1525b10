//! Looking at something that is already there is a plain load on every processor, and no fence: a store may be late for it.
#![allow(missing_docs, clippy::unwrap_used)]

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::{Relaxed, SeqCst};
use weakspot::sync::{Arc, LazyLock, Mutex, Once, OnceLock, RwLock, Weak};
use weakspot::{Builder, Change, MemoryModel, Report, Verdict, thread};

struct Shared {
    flags: [AtomicUsize; 2],
    once: Once,
    cell: OnceLock<u8>,
    lazy: LazyLock<u8>,
    lock: Mutex<u8>,
    both: RwLock<u8>,
    counted: Arc<u8>,
    gone: [Weak<u8>; 2],
}

/// Weak pointers to what is gone; the count of the second one is an event all the same.
fn gone() -> [Weak<u8>; 2] {
    let (one, other) = (Arc::new(1), Arc::new(2));
    let weak = [Arc::downgrade(&one), Arc::downgrade(&other)];
    assert_eq!(weak[1].strong_count(), 1);
    weak
}

struct Plain(UnsafeCell<u8>);

// SAFETY: accesses are checked for data races.
unsafe impl Sync for Plain {}

type Does = fn(&Shared);

/// Two threads announce themselves, do something, and look for the other one.
fn announce(model: MemoryModel, makes: Does, between: Does) -> Report {
    announce_after(model, move |shared| makes(shared), between)
}

/// The same beside a third thread that does something at any time.
fn announce_beside(model: MemoryModel, beside: Does, between: Does) -> Report {
    let starts = move |shared: &Arc<Shared>| {
        let shared = shared.clone();
        thread::spawn(move || beside(&shared));
    };
    announce_after(model, starts, between)
}

fn announce_after(model: MemoryModel, first: impl Fn(&Arc<Shared>) + Send + Sync + 'static, between: Does) -> Report {
    Builder { model, ..Builder::default() }.check(move || {
        let shared = Arc::new(Shared {
            flags: [AtomicUsize::new(0), AtomicUsize::new(0)],
            once: Once::new(),
            cell: OnceLock::new(),
            lazy: LazyLock::new(|| 1),
            lock: Mutex::new(1),
            both: RwLock::new(1),
            counted: Arc::new(1),
            gone: gone(),
        });
        first(&shared);
        let threads = [0, 1].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.flags[me].store(1, Relaxed);
                between(&shared);
                shared.flags[1 - me].load(Relaxed)
            })
        });
        let seen: usize = threads.map(|thread| thread.join().unwrap()).iter().sum();
        assert!(seen > 0, "nobody has seen the other");
    })
}

fn make_all(shared: &Shared) {
    shared.once.call_once(|| ());
    shared.cell.set(1).unwrap();
    LazyLock::force(&shared.lazy);
}

#[test]
fn looking_at_what_is_there_is_no_fence() {
    let looks: [Does; 10] = [
        |_| (),
        |shared| assert!(shared.once.is_completed()),
        |shared| shared.once.call_once(|| ()),
        |shared| shared.once.wait(),
        |shared| assert!(shared.cell.get().is_some()),
        |shared| assert_eq!(*shared.cell.get_or_init(|| 2), 1),
        |shared| assert_eq!(*shared.lazy, 1),
        |shared| assert_eq!(Arc::strong_count(&shared.counted), 1),
        |shared| assert!(shared.gone[0].upgrade().is_none()),
        |shared| assert!(shared.gone[1].upgrade().is_none()),
    ];
    for (number, look) in looks.into_iter().enumerate() {
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let report = announce(model, make_all, look);
            assert_eq!(report.verdict, Verdict::Harmful, "{number}: {report}");
            assert!(report.to_string().contains("nobody has seen the other"), "{number}: {report}");
            assert!(report.suggestions.iter().all(|suggestion| suggestion.tried), "{number}: {report}");
        }
        assert_eq!(announce(MemoryModel::Sc, make_all, look).verdict, Verdict::Safe, "{number}");
    }
}

#[test]
fn changing_something_is_one() {
    let changes: [Does; 2] = [|shared| *shared.lock.lock().unwrap() += 1, |shared| drop(shared.lock.try_lock())];
    for change in changes {
        let report = announce(MemoryModel::Tso, |_| (), change);
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
    }
}

#[test]
fn whoever_comes_second_to_an_initialisation_only_looks() {
    // The first one has a fence, the other one may have none.
    for between in [
        (|shared| assert_eq!(*shared.cell.get_or_init(|| 1), 1)) as Does,
        |shared| shared.once.call_once(|| ()),
        |shared| assert_eq!(*shared.lazy, 1),
    ] {
        let report = announce(MemoryModel::Tso, |_| (), between);
        // Its store is late, and the first one, whose store is not, does not see it. In an order of SC the other one would
        // not have found the value missing when it looked, but what it does then is the same.
        assert_eq!(report.verdict, Verdict::Benign, "{report}");
    }
}

/// A third thread makes it, and those who come later only look, as `std` does: neither has a fence.
#[test]
fn two_that_come_late_to_an_initialisation_do_not_see_each_other() {
    let races: [Does; 5] = [
        |shared| assert_eq!(*shared.cell.get_or_init(|| 1), 1),
        |shared| _ = shared.cell.set(1),
        |shared| shared.once.call_once(|| ()),
        |shared| shared.once.call_once_force(|_| ()),
        |shared| assert_eq!(*shared.lazy, 1),
    ];
    for (number, race) in races.into_iter().enumerate() {
        for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
            let report = announce_beside(model, race, race);
            let expected = if model == MemoryModel::Sc { Verdict::Safe } else { Verdict::Harmful };
            assert_eq!(report.verdict, expected, "{number}, {model:?}: {report}");
            if model != MemoryModel::Sc {
                assert!(report.to_string().contains("nobody has seen the other"), "{number}: {report}");
                assert!(!report.suggestions.is_empty(), "{number}: {report}");
                assert!(report.suggestions.iter().all(|suggestion| suggestion.tried), "{number}: {report}");
            }
        }
    }
}

#[test]
fn who_waits_for_an_initialisation_may_find_it_made() {
    let waits: [(Does, Does); 3] = [
        (|shared| shared.once.call_once(|| ()), |shared| shared.once.wait()),
        (|shared| shared.once.call_once(|| ()), |shared| shared.once.wait_force()),
        (|shared| shared.cell.set(1).unwrap(), |shared| assert_eq!(*shared.cell.wait(), 1)),
    ];
    for (number, (makes, waits)) in waits.into_iter().enumerate() {
        let report = announce_beside(MemoryModel::Tso, makes, waits);
        assert_eq!(report.verdict, Verdict::Harmful, "{number}: {report}");
    }
}

/// std looks before it tries to change the state.
#[test]
fn being_refused_by_a_lock_is_no_fence() {
    let tries: [(Does, Does); 3] = [
        (|shared| drop(shared.both.write()), |shared| drop(shared.both.try_read())),
        (|shared| drop(shared.both.write()), |shared| drop(shared.both.try_write())),
        (|shared| drop(shared.both.read()), |shared| drop(shared.both.try_write())),
    ];
    for (number, (holds, tries)) in tries.into_iter().enumerate() {
        for model in [MemoryModel::Tso, MemoryModel::Pso] {
            let report = announce_beside(model, holds, tries);
            assert_eq!(report.verdict, Verdict::Harmful, "{number}, {model:?}: {report}");
            assert!(report.to_string().contains("nobody has seen the other"), "{number}: {report}");
        }
    }
    let report = announce_beside(
        MemoryModel::Tso,
        |shared| drop(shared.both.read()),
        |shared| {
            shared.both.try_read().unwrap();
        },
    );
    // It looks before it goes in, and that may be early. Then it has a fence.
    assert_eq!(report.verdict, Verdict::Benign, "{report}");
}

#[test]
fn a_look_may_be_what_comes_too_early() {
    // A reader that announces itself and then asks whether the value is there; a writer that makes it and then asks whether
    // there is a reader.
    let report = Builder::default().check(|| {
        let shared = Arc::new((AtomicUsize::new(0), OnceLock::new()));
        let other = shared.clone();
        let reader = thread::spawn(move || {
            other.0.store(1, Relaxed);
            other.1.get().is_some()
        });
        shared.1.set(1).unwrap();
        let is_seen = shared.0.load(SeqCst) == 1;
        assert!(reader.join().unwrap() || is_seen, "the reader is forgotten");
    });
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    let changes: Vec<Change> = report.suggestions.iter().map(|suggestion| suggestion.change).collect();
    assert_eq!(changes, [Change::SeqCst], "{report}");
    assert!(report.suggestions[0].proved, "{report}");
}

#[test]
fn looks_cost_no_executions_where_nothing_can_be_late() {
    let report = Builder::default().check(|| {
        let cell = Arc::new(OnceLock::new());
        let threads = [0, 1, 2].map(|me| {
            let cell = cell.clone();
            thread::spawn(move || *cell.get_or_init(|| me))
        });
        let values = threads.map(|thread| thread.join().unwrap());
        assert!(values.iter().all(|value| *value == values[0]));
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 3), "{report}");
}

/// A look that leads to a change is no event of its own: whoever gets in takes two turns, in and out.
#[test]
fn looks_that_lead_to_a_change_cost_no_executions() {
    for (threads, executions) in [(2, 6), (3, 90), (4, 2_520)] {
        let report = Builder::default().check(move || {
            let shared = Arc::new(([const { AtomicUsize::new(0) }; 4], RwLock::new(1)));
            let all: Vec<_> = (0..threads)
                .map(|me| {
                    let shared = shared.clone();
                    thread::spawn(move || {
                        shared.0[me].store(1, Relaxed);
                        drop(shared.1.try_read().unwrap());
                    })
                })
                .collect();
            for thread in all {
                thread.join().unwrap();
            }
        });
        assert_eq!((report.verdict, report.executions), (Verdict::Safe, executions), "{report}");
    }
}

/// Being refused acquires nothing, as in `std`.
#[test]
fn who_is_refused_has_not_seen_what_was_done_before() {
    let report = Builder::default().check(|| {
        let shared = Arc::new((RwLock::new(1), Plain(UnsafeCell::new(0)), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.1.0.with_mut(|_| ());
            drop(other.0.write());
            other.2.store(1, Relaxed);
            drop(other.0.write());
        });
        // It is the second writer who refuses, after what the first one has released.
        if shared.2.load(Relaxed) == 1 && shared.0.try_read().is_err() {
            shared.1.0.with(|_| ());
        }
        thread.join().unwrap();
    });
    assert!(report.to_string().contains("data race"), "{report}");
}
