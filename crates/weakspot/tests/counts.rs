//! Reference counts that the program looks at: what one thread sees of the pointers of others is explored, all of it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Debug;

use weakspot::cell::UnsafeCell;
use weakspot::sync::{Arc, Weak};
use weakspot::{Builder, FailureKind, Verdict, thread};

/// All results of a model that is correct.
fn results<R: Ord + Clone + Debug + Send + 'static>(body: impl Fn() -> R + Send + Sync + 'static) -> Vec<R> {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    let all = std::sync::Arc::clone(&seen);
    let report = Builder::default().check(move || {
        let result = body();
        all.lock().unwrap().insert(result);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    let seen = seen.lock().unwrap();
    seen.iter().cloned().collect()
}

/// A pointer to 1, and a weak one, which a thread upgrades.
fn beside_an_upgrade<R>(look: impl FnOnce(Arc<u32>) -> R) -> (R, bool) {
    let arc = Arc::new(1);
    let weak = Arc::downgrade(&arc);
    let thread = thread::spawn(move || weak.upgrade().is_some());
    (look(arc), thread.join().unwrap())
}

#[test]
fn exactly_one_of_all_owners_takes_the_value_out() {
    let seen = results(|| {
        let arc = Arc::new(5);
        let other = Arc::clone(&arc);
        let thread = thread::spawn(move || Arc::into_inner(other).is_some());
        (Arc::into_inner(arc).is_some(), thread.join().unwrap())
    });
    assert_eq!(seen, [(false, true), (true, false)]);
}

#[test]
fn taking_the_value_out_comes_before_or_after_an_upgrade() {
    let all = [(false, true), (true, false), (true, true)];
    assert_eq!(results(|| beside_an_upgrade(|arc| Arc::try_unwrap(arc).is_ok())), all);
    assert_eq!(results(|| beside_an_upgrade(|arc| Arc::into_inner(arc).is_some())), all);
}

#[test]
fn a_value_that_is_made_unique_leaves_weak_pointers_behind() {
    let seen = results(|| {
        let mut arc = Arc::new(1);
        let weak = Arc::downgrade(&arc);
        *Arc::make_mut(&mut arc) = 2;
        (weak.upgrade().is_none(), weak.strong_count(), Arc::strong_count(&arc), Arc::weak_count(&arc), *arc)
    });
    assert_eq!(seen, [(true, 0, 1, 0, 2)]);
    let seen = results(|| {
        beside_an_upgrade(|mut arc| {
            *Arc::make_mut(&mut arc) = 2;
            *arc
        })
    });
    assert_eq!(seen, [(2, false), (2, true)]);
}

#[test]
fn weak_pointers_that_others_drop_are_seen() {
    let seen = results(|| {
        let mut arc = Arc::new(1);
        let weak = Arc::downgrade(&arc);
        let thread = thread::spawn(move || drop(weak));
        let is_unique = Arc::get_mut(&mut arc).is_some();
        thread.join().unwrap();
        is_unique
    });
    assert_eq!(seen, [false, true]);
    let seen = results(|| {
        let arc = Arc::new(1);
        let weak = Arc::downgrade(&arc);
        let thread = thread::spawn(move || drop(weak.clone()));
        let weak = Arc::downgrade(&arc);
        let counts = (Arc::weak_count(&arc), weak.weak_count());
        thread.join().unwrap();
        counts
    });
    let all: Vec<(usize, usize)> = seen.into_iter().filter(|(first, _)| (1..=3).contains(first)).collect();
    assert_eq!(all, [(1, 1), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3)]);
}

#[test]
fn weak_pointers_cost_nothing_if_nobody_looks() {
    let report = Builder::default().check(|| {
        let arc = Arc::new(1);
        let start = |_| {
            let weak = Arc::downgrade(&arc);
            thread::spawn(move || drop((weak.clone(), weak)))
        };
        let threads: Vec<_> = (0..3).map(start).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 1), "{report}");
}

#[test]
fn what_points_to_itself_may_be_gone_when_it_is_asked_for() {
    struct Node {
        itself: Weak<Node>,
    }
    let seen = results(|| {
        let node = Arc::new_cyclic(|itself| Node { itself: Weak::clone(itself) });
        let weak = node.itself.clone();
        let thread = thread::spawn(move || weak.upgrade().is_some());
        drop(node);
        thread.join().unwrap()
    });
    assert_eq!(seen, [false, true]);
}

/// Who drops an `Arc` last knows what the others did before, but who that is depends on the order.
#[test]
fn nothing_is_concluded_from_who_came_last() {
    let seen = results(|| {
        let (first, second) = (Arc::new(0), Arc::new(0));
        let (first_too, second_too) = (Arc::clone(&first), Arc::clone(&second));
        let thread = thread::spawn(move || {
            drop(first_too);
            Arc::strong_count(&second_too)
        });
        drop(second);
        drop(first);
        thread.join().unwrap()
    });
    assert_eq!(seen, [1, 2]);
    for joins_first in [false, true] {
        let seen = results(move || {
            let inner = Arc::new(0);
            let outer = Arc::new(Arc::clone(&inner));
            let other = Arc::clone(&outer);
            let mut threads = [thread::spawn(move || drop(outer)), thread::spawn(move || drop(other))];
            if !joins_first {
                threads.reverse();
            }
            let [one, another] = threads;
            one.join().unwrap();
            let count = Arc::strong_count(&inner);
            another.join().unwrap();
            count
        });
        assert_eq!(seen, [1, 2], "{joins_first}");
    }
}

/// A cell that threads share without asking.
struct Shared(UnsafeCell<u32>);

// SAFETY: a lie, for the sake of races.
unsafe impl Sync for Shared {}

impl Shared {
    fn write(&self) {
        // SAFETY: the access is checked.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

#[test]
fn who_came_last_by_chance_has_a_race_all_the_same() {
    let report = Builder::default().check(|| {
        let cell = std::sync::Arc::new(Shared(UnsafeCell::new(0)));
        let cell_too = std::sync::Arc::clone(&cell);
        let arc = Arc::new(0);
        let arc_too = Arc::clone(&arc);
        let thread = thread::spawn(move || {
            drop(arc_too);
            cell_too.write();
        });
        cell.write();
        drop(arc);
        thread.join().unwrap();
    });
    let failure = report.failure.as_ref().map(|failure| &failure.kind);
    assert!(matches!(failure, Some(FailureKind::Race { .. })), "{report}");
}

/// Cells that only the order of counts orders: that they come in this order, a relaxed atomic says.
#[test]
fn counts_synchronise_even_if_they_are_no_events() {
    use weakspot::sync::atomic::{AtomicBool, Ordering::Relaxed};
    for upgrades in [false, true] {
        let report = Builder::default().check(move || {
            let cell = std::sync::Arc::new((Shared(UnsafeCell::new(0)), AtomicBool::new(false)));
            let cell_too = std::sync::Arc::clone(&cell);
            let arc = Arc::new(0);
            let (arc_too, weak) = (Arc::clone(&arc), Arc::downgrade(&arc));
            let kept = upgrades.then(|| Arc::clone(&arc));
            let thread = thread::spawn(move || {
                if cell_too.1.load(Relaxed) {
                    if upgrades {
                        weak.upgrade().unwrap();
                    }
                    drop(arc_too);
                    cell_too.0.write();
                }
            });
            cell.0.write();
            drop(arc);
            cell.1.store(true, Relaxed);
            thread.join().unwrap();
            drop(kept);
        });
        assert_eq!(report.verdict, Verdict::Safe, "{upgrades}: {report}");
    }
}

#[test]
fn pointers_that_others_make_meanwhile_are_seen() {
    let beside = |act: fn(&Arc<u32>), look: fn(&Arc<u32>) -> usize| {
        results(move || {
            let arc = Arc::new(0);
            thread::scope(|scope| {
                scope.spawn(|| act(&arc));
                look(&arc)
            })
        })
    };
    assert_eq!(beside(|arc| drop(Arc::clone(arc)), Arc::strong_count), [1, 2]);
    assert_eq!(beside(|arc| drop(Arc::downgrade(arc)), Arc::weak_count), [0, 1]);
    assert_eq!(beside(|arc| drop(Arc::downgrade(arc).upgrade()), Arc::strong_count), [1, 2]);
}

#[test]
fn what_is_being_made_has_no_owner_yet() {
    let seen = results(|| {
        let (mut thread, mut here) = (None, None);
        let arc = Arc::new_cyclic(|itself| {
            let weak = Weak::clone(itself);
            here = Some(itself.upgrade().is_some());
            thread = Some(thread::spawn(move || {
                let there = weak.upgrade().is_some();
                (there, weak.strong_count())
            }));
        });
        let (there, count) = thread.unwrap().join().unwrap();
        drop(arc);
        (here.unwrap(), there, count)
    });
    assert_eq!(seen, [(false, false, 0), (false, false, 1), (false, true, 1)]);
}

/// How many executions there are.
fn executions(body: impl Fn() + Send + Sync + 'static) -> u64 {
    let report = Builder::default().check(body);
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
    report.executions
}

/// Threads that each have a weak pointer to the same `Arc`.
fn with_weak(threads: usize, act: fn(&Weak<u32>)) -> impl Fn() + Send + Sync + 'static {
    move || {
        let arc = Arc::new(1);
        let start = |_| {
            let weak = Arc::downgrade(&arc);
            thread::spawn(move || act(&weak))
        };
        let threads: Vec<_> = (0..threads).map(start).collect();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn an_upgrade_that_always_comes_to_the_same_costs_nothing() {
    for threads in 2..=4 {
        assert_eq!(executions(with_weak(threads, |weak| assert_eq!(*weak.upgrade().unwrap(), 1))), 1, "{threads}");
    }
    let often = |weak: &Weak<u32>| {
        for _ in 0..300 {
            weak.upgrade().unwrap();
        }
    };
    assert_eq!(executions(with_weak(2, often)), 1);
    let gone = || {
        let arc = Arc::new(1);
        let (weak, weak_too) = (Arc::downgrade(&arc), Arc::downgrade(&arc));
        drop(arc);
        let thread = thread::spawn(move || assert!(weak.upgrade().is_none() && weak.strong_count() == 0));
        assert!(weak_too.upgrade().is_none() && weak_too.weak_count() == 0);
        thread.join().unwrap();
    };
    assert_eq!(executions(gone), 1);
    // Each thread has an owner of its own.
    let owned = || {
        let arc = Arc::new(1);
        let start = |_| {
            let (arc, weak) = (Arc::clone(&arc), Arc::downgrade(&arc));
            thread::spawn(move || {
                weak.upgrade().unwrap();
                drop(arc);
            })
        };
        let threads: Vec<_> = (0..3).map(start).collect();
        drop(arc);
        for thread in threads {
            thread.join().unwrap();
        }
    };
    assert_eq!(executions(owned), 1);
}

/// An owner that came of a weak pointer does not stand for one that was there at first.
#[test]
fn an_upgrade_does_not_rely_on_another_one() {
    let seen = results(|| {
        let arc = Arc::new(1);
        let (weak, weak_too) = (Arc::downgrade(&arc), Arc::downgrade(&arc));
        let thread = thread::spawn(move || weak_too.upgrade().is_some());
        let dropper = thread::spawn(move || drop(arc));
        let owner = weak.upgrade();
        let there = thread.join().unwrap();
        dropper.join().unwrap();
        (owner.is_some(), there)
    });
    assert_eq!(seen, [(false, false), (false, true), (true, true)]);
}

#[test]
fn an_arc_that_has_a_weak_pointer_costs_no_more_than_one_that_has_none() {
    use weakspot::sync::atomic::{AtomicU8, Ordering::SeqCst};
    let body = || {
        let shared = Arc::new((AtomicU8::new(0), AtomicU8::new(0)));
        let _weak = Arc::downgrade(&shared);
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.0.store(1, SeqCst);
            drop(Arc::clone(&other));
            other.1.load(SeqCst)
        });
        shared.1.store(1, SeqCst);
        drop(Arc::clone(&shared));
        let here = shared.0.load(SeqCst);
        assert!(thread.join().unwrap() + here > 0);
    };
    assert_eq!(executions(body), 3);
}

/// A weak pointer that is older than the executions, of an `Arc` that is, too.
#[test]
fn weak_pointers_that_are_older_than_the_run_are_explored() {
    let arc = Arc::new(1);
    let weak = Arc::downgrade(&arc);
    let seen = results(move || {
        let _owner = &arc;
        let weak_too = weak.clone();
        let thread = thread::spawn(move || weak_too.upgrade().is_some());
        let count = weak.strong_count();
        (count, thread.join().unwrap())
    });
    assert_eq!(seen, [(1, true), (2, true)]);
}

weakspot::thread_local! {
    /// Values that the thread has destroyed.
    static DESTROYED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

#[test]
fn a_destructor_that_asks_which_thread_it_is_in_makes_the_last_owner_matter() {
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DESTROYED.set(DESTROYED.get() + 1);
        }
    }
    struct Told(std::sync::Arc<std::sync::Mutex<Option<thread::ThreadId>>>);
    impl Drop for Told {
        fn drop(&mut self) {
            *self.0.lock().unwrap() = Some(thread::current().id());
        }
    }
    let seen = results(|| {
        let arc = Arc::new(Counted);
        let other = Arc::clone(&arc);
        let thread = thread::spawn(move || {
            drop(other);
            DESTROYED.get()
        });
        drop(arc);
        (DESTROYED.get(), thread.join().unwrap())
    });
    assert_eq!(seen, [(0, 1), (1, 0)]);
    let seen = results(|| {
        let told = std::sync::Arc::default();
        let arc = Arc::new(Told(std::sync::Arc::clone(&told)));
        let other = Arc::clone(&arc);
        let thread = thread::spawn(move || drop(other));
        drop(arc);
        thread.join().unwrap();
        let by = *told.lock().unwrap();
        by == Some(thread::current().id())
    });
    assert_eq!(seen, [false, true]);
}

/// A pointer that is exchanged while another thread becomes an owner of what it finds there. `is_kept`: nothing is given up
/// before that.
fn exchanged_pointer(is_kept: bool) -> weakspot::Report {
    use weakspot::sync::atomic::AtomicPtr;
    use weakspot::sync::atomic::Ordering::{AcqRel, Acquire};
    Builder::default().check(move || {
        let made = |value: u32| Arc::into_raw(Arc::new(value)).cast_mut();
        let shared = Arc::new(AtomicPtr::new(made(1)));
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            let found = other.load(Acquire);
            // SAFETY: none unless it is kept, that is what is tested.
            let arc = unsafe {
                Arc::increment_strong_count(found);
                Arc::from_raw(found)
            };
            assert!(*arc < 3);
        });
        let old = shared.swap(made(2), AcqRel);
        let new = shared.load(Acquire);
        if is_kept {
            thread.join().unwrap();
            // SAFETY: both are owned here.
            unsafe { drop((Arc::from_raw(old), Arc::from_raw(new))) };
        } else {
            // SAFETY: as above.
            unsafe { drop(Arc::from_raw(old)) };
            thread.join().unwrap();
            // SAFETY: as above.
            unsafe { drop(Arc::from_raw(new)) };
        }
    })
}

#[test]
fn who_adds_an_owner_through_a_pointer_must_find_one() {
    let report = exchanged_pointer(true);
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    let report = exchanged_pointer(false);
    assert!(report.to_string().contains("an owner is added to an `Arc` that nobody owns any more"), "{report}");
    // Owners that are handed on cost nothing.
    let report = Builder::default().check(|| {
        let pointer = Arc::into_raw(Arc::new(1));
        let start = |_| {
            // SAFETY: this thread owns it.
            unsafe { Arc::increment_strong_count(pointer) };
            // SAFETY: the owner that was added.
            let arc = unsafe { Arc::from_raw(pointer) };
            thread::spawn(move || {
                // SAFETY: `arc` owns it.
                unsafe { Arc::increment_strong_count(Arc::as_ptr(&arc)) };
                // SAFETY: the owner that was added.
                drop(unsafe { Arc::from_raw(Arc::as_ptr(&arc)) });
            })
        };
        let threads: Vec<_> = (0..3).map(start).collect();
        // SAFETY: the first owner.
        drop(unsafe { Arc::from_raw(pointer) });
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 1), "{report}");
}
