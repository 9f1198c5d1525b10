//! Models with few executions in which chance has a hand are found out, whichever of the executions it is in.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::atomic::AtomicU64;

use weakspot::sync::Arc;
use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::{Builder, FailureKind, Report, Verdict, thread};

/// A coin that falls in the same ways in every run of this test.
struct Coin(AtomicU64);

impl Coin {
    fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// One of so many sides.
    fn falls(&self, sides: u64) -> bool {
        let next = |state: u64| Some(state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f));
        (self.0.fetch_update(SeqCst, SeqCst, next).unwrap() >> 40).is_multiple_of(sides)
    }
}

/// On an OS thread of its own, which has seen no closure before.
fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    std::thread::spawn(move || Builder::default().check(body)).join().unwrap()
}

/// A thread throws the coin if it sees this value of an atomic that is increased meanwhile.
fn throws(coin: Coin, increments: usize, if_seen: usize) -> impl Fn() + Send + Sync + 'static {
    move || {
        let all = Arc::new([0; 3].map(AtomicUsize::new));
        thread::scope(|scope| {
            scope.spawn(|| {
                if all[0].load(SeqCst) == if_seen {
                    if coin.falls(2) { all[1].store(1, SeqCst) } else { all[2].store(1, SeqCst) }
                }
            });
            (0..increments).for_each(|_| _ = all[0].fetch_add(1, SeqCst));
        });
    }
}

#[test]
fn a_coin_is_found_out_in_whichever_execution_it_is_thrown() {
    for increments in 0..10 {
        for if_seen in 0..=increments {
            for seed in 0..20 {
                let report = check(throws(Coin::new(seed), increments, if_seen));
                let text = format!("{increments} increments, thrown at {if_seen}, seed {seed}: {report}");
                let failure = report.failure.expect(&text);
                assert!(matches!(failure.kind, FailureKind::NotDeterministic), "{text}");
                assert!(failure.place.unwrap().file.ends_with("chance.rs"), "{text}");
            }
        }
    }
}

/// A model may also fail by chance alone.
#[test]
fn a_failure_by_chance_is_found() {
    for seed in 0..50 {
        let coin = Coin::new(seed);
        let report = check(move || {
            let shared = AtomicUsize::new(0);
            shared.store(1, SeqCst);
            assert!(!coin.falls(6), "bad luck");
        });
        assert_eq!(report.verdict, Verdict::Failed, "seed {seed}: {report}");
        assert!(report.to_string().contains("bad luck"), "seed {seed}: {report}");
    }
}

/// What changes once and for all is what a static keeps.
#[test]
fn what_changes_for_good_is_no_chance() {
    for change in 1..30 {
        let runs = AtomicU64::new(0);
        let report = check(move || {
            let shared = AtomicUsize::new(0);
            if runs.fetch_add(1, SeqCst) < change {
                shared.load(SeqCst);
            }
            shared.store(1, SeqCst);
        });
        assert_eq!(report.verdict, Verdict::Safe, "{change}: {report}");
    }
}

/// Whoever has many executions is not kept waiting.
#[test]
fn many_executions_are_not_run_again_often() {
    for (increments, executions, most) in [(2, 6, 200), (6, 924, 200), (7, 3_432, 1)] {
        let runs = std::sync::Arc::new(AtomicU64::new(0));
        let counted = runs.clone();
        let report = check(move || {
            counted.fetch_add(1, SeqCst);
            let shared = Arc::new(AtomicUsize::new(0));
            let theirs = shared.clone();
            let thread = thread::spawn(move || (0..increments).for_each(|_| _ = theirs.fetch_add(1, SeqCst)));
            (0..increments).for_each(|_| _ = shared.fetch_add(1, SeqCst));
            thread.join().unwrap();
        });
        assert_eq!((report.verdict, report.executions), (Verdict::Safe, executions), "{report}");
        let more = runs.load(SeqCst) - report.runs;
        assert!((1..=most).contains(&more), "{more} more runs for {report}");
    }
}

/// Uses these atomics in this order, each in an allocation of its own or all in one.
#[allow(clippy::vec_box, reason = "an allocation for each is what the test is about")]
fn use_all(atomics: &(Vec<Box<AtomicUsize>>, Vec<AtomicUsize>), order: &[usize], boxed: bool) {
    for &one in order {
        if boxed {
            atomics.0[one].fetch_add(1, SeqCst)
        } else {
            atomics.1[one].fetch_add(1, SeqCst)
        };
    }
}

/// Whoever comes after a thread that uses two atomics in another order seems to use others than before, and is innocent.
#[test]
#[cfg_attr(
    not(all(feature = "allocator", target_os = "linux", target_env = "gnu", not(target_feature = "crt-static"))),
    ignore = "allocations are not noted"
)]
fn the_thread_whose_order_differs_is_named() {
    for (count, theirs, boxed, is_started) in [
        (2, 1, false, false),
        (2, 1, true, true),
        (2, 2, true, false),
        (3, 1, false, true),
        (3, 3, true, false),
        (4, 4, true, false),
        (6, 4, false, false),
        (6, 4, true, true),
    ] {
        let mut named = 0;
        for seed in 0..50 {
            let coin = Coin::new(seed);
            let report = check(move || {
                let numbers = || (0..6).map(AtomicUsize::new);
                let all = Arc::new((numbers().map(Box::new).collect(), numbers().collect()));
                let other = all.clone();
                // Some order of all, and that of the others, who are innocent.
                let mut order: Vec<usize> = (0..count).collect();
                (1..count).for_each(|last| order.swap(last, if coin.falls(2) { last } else { 0 }));
                let innocent: Vec<usize> = (0..theirs).collect();
                let (first, second) = if is_started { (order, innocent) } else { (innocent, order) };
                let thread = thread::spawn(move || use_all(&other, &first, boxed));
                use_all(&all, &second, boxed);
                thread.join().unwrap();
            });
            let Some(failure) = &report.failure else { continue };
            assert!(matches!(failure.kind, FailureKind::NotDeterministic), "{report}");
            let text = format!("{count} and {theirs}, boxed {boxed}, started {is_started}, seed {seed}: {report}");
            assert_eq!(failure.thread, Some(u32::from(is_started)), "{text}");
            named += 1;
        }
        assert!(named > 40, "{count} and {theirs}: {named} named");
    }
}
