//! Every weakening of one operation of Lamport's bakery is found, or is harmless.
//!
//! What is claimed here agrees with a search of all states of the algorithm on store buffers, for all 64 ways to combine
//! the changes: TSO needs both fences and nothing else; PSO needs both fences, and `Release` where a thread has chosen
//! (its number must be there before) and where it leaves (what it did inside must be).
#![allow(clippy::unwrap_used)]

use weakspot::sync::Arc;
use weakspot::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};
use weakspot::sync::atomic::{AtomicBool, AtomicUsize, fence};
use weakspot::{Builder, MemoryModel, Verdict, hint, thread};

/// How strong the operations are.
#[derive(Debug, Clone, Copy)]
struct Strength {
    choosing: Ordering,
    number: Ordering,
    chosen: Ordering,
    leaving: Ordering,
    fence_before_choice: bool,
    fence_after_choice: bool,
}

/// All as strong as may be.
const STRONG: Strength = Strength {
    choosing: Release,
    number: Release,
    chosen: Release,
    leaving: Release,
    fence_before_choice: true,
    fence_after_choice: true,
};

#[derive(Default)]
struct Shared {
    choosing: [AtomicBool; 2],
    number: [AtomicUsize; 2],
    inside: AtomicUsize,
}

fn visit(shared: &Shared, me: usize, strength: Strength) {
    let other = 1 - me;
    shared.choosing[me].store(true, strength.choosing);
    if strength.fence_before_choice {
        fence(SeqCst);
    }
    let mine = shared.number[other].load(Acquire) + 1;
    shared.number[me].store(mine, strength.number);
    shared.choosing[me].store(false, strength.chosen);
    if strength.fence_after_choice {
        fence(SeqCst);
    }
    while shared.choosing[other].load(Acquire) {
        hint::spin_loop();
    }
    let goes_first = |number: usize| number != 0 && (number, other) < (mine, me);
    while goes_first(shared.number[other].load(Acquire)) {
        hint::spin_loop();
    }
    shared.inside.store(shared.inside.load(Relaxed) + 1, Relaxed);
    shared.number[me].store(0, strength.leaving);
}

fn verdict(model: MemoryModel, strength: Strength) -> Verdict {
    let report = Builder { model, ..Builder::default() }.check(move || {
        let shared = Arc::new(Shared::default());
        let threads = [0, 1].map(|me| {
            let shared = shared.clone();
            thread::spawn(move || visit(&shared, me, strength))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(shared.inside.load(Relaxed), 2, "an increment is lost");
    });
    assert!(report.exhaustive, "{report}");
    report.verdict
}

/// What is weakened, and whether that is felt on TSO and on PSO.
type Weakening = (&'static str, fn(&mut Strength), bool, bool);

#[test]
fn each_weakening_is_found_or_harmless() {
    let weakenings: [Weakening; 6] = [
        ("choosing", |strength| strength.choosing = Relaxed, false, false),
        ("number", |strength| strength.number = Relaxed, false, false),
        ("chosen", |strength| strength.chosen = Relaxed, false, true),
        ("leaving", |strength| strength.leaving = Relaxed, false, true),
        ("fence before choice", |strength| strength.fence_before_choice = false, true, true),
        ("fence after choice", |strength| strength.fence_after_choice = false, true, true),
    ];
    for (name, weaken, fails_on_tso, fails_on_pso) in weakenings {
        let mut strength = STRONG;
        weaken(&mut strength);
        for (model, fails) in [(MemoryModel::Tso, fails_on_tso), (MemoryModel::Pso, fails_on_pso)] {
            let verdict = verdict(model, strength);
            assert_eq!(verdict == Verdict::Harmful, fails, "{name} on {model:?}: {verdict:?}");
            assert!(fails || matches!(verdict, Verdict::Safe | Verdict::Benign), "{name} on {model:?}: {verdict:?}");
        }
    }
}

#[test]
fn all_harmless_weakenings_together_are_harmless() {
    let weak = Strength { choosing: Relaxed, number: Relaxed, ..STRONG };
    assert!(matches!(verdict(MemoryModel::Pso, weak), Verdict::Safe | Verdict::Benign));
    let weaker = Strength { chosen: Relaxed, leaving: Relaxed, ..weak };
    assert!(matches!(verdict(MemoryModel::Tso, weaker), Verdict::Safe | Verdict::Benign));
}
