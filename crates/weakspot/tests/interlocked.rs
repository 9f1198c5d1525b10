//! Reference counts and timeouts are interlocked operations, which empty the store buffer: whether anybody looks at them
//! or not makes no difference to that, and where nobody does they cost no executions.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use weakspot::sync::atomic::AtomicU8;
use weakspot::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use weakspot::sync::{Arc, Weak};
use weakspot::{Builder, MemoryModel, Report, Verdict, hint, thread};

type Shared = (AtomicU8, AtomicU8);

/// Store buffering with something between the store and the load of each thread, which keeps what it makes.
fn between<T>(
    model: MemoryModel,
    look: bool,
    act: impl Fn(&Arc<Shared>) -> T + Copy + Send + Sync + 'static,
) -> Report {
    Builder { model, ..Builder::default() }.check(move || {
        let shared = Arc::new(Shared::default());
        let other = Arc::clone(&shared);
        if look {
            Arc::strong_count(&shared);
        }
        let thread = thread::spawn(move || {
            other.0.store(1, Relaxed);
            let _kept = act(&other);
            other.1.load(Relaxed)
        });
        shared.1.store(1, Relaxed);
        let _kept = act(&shared);
        let here = shared.0.load(Relaxed);
        assert!(thread.join().unwrap() + here > 0, "both have missed it");
    })
}

/// What comes of it on TSO and PSO: are the stores always seen?
fn is_a_fence<T>(name: &str, on: [bool; 2], act: impl Fn(&Arc<Shared>) -> T + Copy + Send + Sync + 'static) {
    for (model, is_fence) in [MemoryModel::Tso, MemoryModel::Pso].into_iter().zip(on) {
        for look in [false, true] {
            let report = between(model, look, act);
            // On PSO others may see a count that has overtaken the store, if they look. It does no harm.
            let expected = if is_fence { [Verdict::Safe, Verdict::Benign] } else { [Verdict::Harmful; 2] };
            assert!(expected.contains(&report.verdict), "{name}, {model:?}, looked at: {look}: {report}");
        }
    }
}

#[test]
fn what_is_interlocked_empties_the_buffer() {
    is_a_fence("nothing", [false, false], |_| ());
    // Without an order of its own it waits for nothing but its own location on PSO.
    is_a_fence("clone", [true, false], Arc::clone);
    is_a_fence("clone and drop", [true, true], |shared| drop(Arc::clone(shared)));
    is_a_fence("drop of another", [true, true], |_| drop(Arc::new(0)));
    is_a_fence("get_mut of another", [true, true], |_| {
        let mut arc = Arc::new(0);
        Arc::get_mut(&mut arc);
        arc
    });
    is_a_fence("make_mut of another", [true, true], |_| {
        let mut arc = Arc::new(0);
        Arc::make_mut(&mut arc);
        arc
    });
    is_a_fence("try_unwrap of another", [true, true], |_| Arc::try_unwrap(Arc::new(0)));
    is_a_fence("into_inner of another", [true, true], |_| Arc::into_inner(Arc::new(0)));
    is_a_fence("park_timeout", [true, true], |_| thread::park_timeout(Duration::from_millis(1)));
}

#[test]
fn weak_pointers_do_as_well() {
    let act = |shared: &Arc<Shared>| {
        let weak = Arc::downgrade(shared);
        (weak.clone(), weak)
    };
    is_a_fence("downgrade", [true, true], act);
    // A weak pointer of nothing has no count.
    is_a_fence("clone of a weak pointer of nothing", [false, false], |_| Weak::<u8>::new().clone());
}

/// What comes before the store says nothing of the store.
#[test]
fn a_count_before_the_store_is_no_fence_after_it() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let acts: [fn(&Arc<Shared>); 4] = [
            |shared| drop(Arc::clone(shared)),
            |shared| drop(Arc::downgrade(shared)),
            |_| drop(Arc::new(0)),
            |_| thread::park_timeout(Duration::from_millis(1)),
        ];
        for act in acts {
            let report = Builder { model, ..Builder::default() }.check(move || {
                let shared = Arc::new(Shared::default());
                let other = Arc::clone(&shared);
                let thread = thread::spawn(move || {
                    act(&other);
                    other.0.store(1, Relaxed);
                    other.1.load(Relaxed)
                });
                act(&shared);
                shared.1.store(1, Relaxed);
                let here = shared.0.load(Relaxed);
                assert!(thread.join().unwrap() + here > 0, "both have missed it");
            });
            assert_eq!(report.verdict, Verdict::Harmful, "{model:?}: {report}");
        }
    }
}

/// Whether the count is an event or not.
#[test]
fn a_weak_pointer_that_becomes_an_owner_does() {
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        for look in [false, true] {
            let report = Builder { model, ..Builder::default() }.check(move || {
                let shared = Arc::new(Shared::default());
                let (weak, weak_too) = (Arc::downgrade(&shared), Arc::downgrade(&shared));
                if look {
                    weak.strong_count();
                }
                let other = Arc::clone(&shared);
                let thread = thread::spawn(move || {
                    other.0.store(1, Relaxed);
                    let _kept = weak.upgrade().unwrap();
                    other.1.load(Relaxed)
                });
                shared.1.store(1, Relaxed);
                let _kept = weak_too.upgrade().unwrap();
                let here = shared.0.load(Relaxed);
                assert!(thread.join().unwrap() + here > 0, "both have missed it");
            });
            // What is looked at first may be seen too early, before the owner is added. It does no harm.
            let expected = if look { [Verdict::Safe, Verdict::Benign] } else { [Verdict::Safe; 2] };
            assert!(expected.contains(&report.verdict), "{model:?}, looked at: {look}: {report}");
            assert!(report.executions == 3 || look, "{model:?}: {report}");
        }
    }
}

/// Not even the fence does.
#[test]
fn a_count_that_nobody_looks_at_costs_no_executions() {
    for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
        let plain = between(model, false, |_| ()).executions;
        let cloned = between(model, false, Arc::clone).executions;
        assert_eq!((plain, cloned), (3, 3), "{model:?}");
    }
}

/// A release fence before it publishes what was stored before the fence.
#[test]
fn behind_a_release_fence_a_clone_waits_for_all_stores() {
    let act = |shared: &Arc<Shared>| {
        weakspot::sync::atomic::fence(Release);
        Arc::clone(shared)
    };
    is_a_fence("release fence and clone", [true, true], act);
}

#[test]
fn a_loop_that_clones_while_it_waits_is_still_one_that_waits() {
    let report = Builder::default().check(|| {
        let shared = Arc::new(Shared::default());
        let other = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            other.1.store(1, Relaxed);
            while other.0.load(Acquire) == 0 {
                drop(Arc::clone(&other));
                hint::spin_loop();
            }
        });
        shared.0.store(1, Release);
        thread.join().unwrap();
    });
    assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{report}");
}
