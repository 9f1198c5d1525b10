//! Reference counts that the program looks at: what one thread sees of the pointers of others is explored, all of it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Debug;

use weakspot::sync::{Arc, Weak};
use weakspot::{Builder, Verdict, thread};

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
