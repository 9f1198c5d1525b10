//! Statics that several tests of a program use: they run side by side, and none must see what the others do.
#![allow(clippy::unwrap_used)]

use std::mem::ManuallyDrop;
use std::sync::LazyLock;
use std::time::Duration;

use weakspot::sync::atomic::AtomicUsize;
use weakspot::sync::atomic::Ordering::SeqCst;
use weakspot::sync::{Mutex, OnceLock, RwLock};
use weakspot::{Builder, Verdict, thread};

static COUNT: AtomicUsize = AtomicUsize::new(0);
static LOCK: Mutex<()> = Mutex::new(());
static ACCESS: RwLock<()> = RwLock::new(());
static VALUE: OnceLock<usize> = OnceLock::new();

fn uses_statics() {
    let work = |_| {
        thread::spawn(|| {
            COUNT.fetch_add(1, SeqCst);
            drop(LOCK.lock().unwrap());
            COUNT.fetch_add(1, SeqCst);
            drop(ACCESS.read().unwrap());
            *VALUE.get_or_init(|| 7)
        })
    };
    let threads: Vec<_> = (0..2).map(work).collect();
    assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 7));
    assert_eq!(COUNT.load(SeqCst), 4);
}

#[test]
fn models_that_share_statics_do_not_disturb_each_other() {
    let explore = || {
        let report = Builder::default().check(uses_statics);
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
        report.executions
    };
    let threads: Vec<_> = (0..6).map(|_| std::thread::spawn(move || [explore(), explore()])).collect();
    let all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    assert!(all[0] > 1 && all.iter().all(|&executions| executions == all[0]), "{all:?}");
}

/// A model comes to a static while another one, in its first execution, is using it: it waits, however many models there
/// were in between.
#[test]
fn what_one_model_is_using_is_not_taken_for_what_another_one_has_used() {
    static SHARED: AtomicUsize = AtomicUsize::new(3);
    for between in 0..8 {
        let (is_used, wait) = std::sync::mpsc::channel();
        let is_used = std::sync::Mutex::new(Some(is_used));
        let first = std::thread::spawn(move || {
            weakspot::model(move || {
                SHARED.store(4, SeqCst);
                if let Some(is_used) = is_used.lock().unwrap().take() {
                    is_used.send(()).unwrap();
                    std::thread::sleep(Duration::from_millis(30));
                }
                assert_eq!(SHARED.load(SeqCst), 4);
            });
        });
        wait.recv().unwrap();
        for _ in 0..between {
            weakspot::model(|| {});
        }
        weakspot::model(|| assert_eq!(SHARED.load(SeqCst), 3));
        first.join().unwrap();
    }
}

#[test]
fn a_model_begins_with_what_was_there_before_all_models() {
    static STARTS: AtomicUsize = AtomicUsize::new(5);
    let adds_one = || assert_eq!(STARTS.fetch_add(1, SeqCst), 5);
    weakspot::model(adds_one);
    weakspot::model(adds_one);
    STARTS.store(8, SeqCst);
    weakspot::model(|| assert_eq!(STARTS.swap(0, SeqCst), 8));
    weakspot::model(|| assert_eq!(STARTS.load(SeqCst), 8));
}

#[test]
fn a_model_that_fails_leaves_no_lock_behind() {
    static HELD: RwLock<()> = RwLock::new(());
    let report = Builder::default().check(|| {
        let _one = HELD.write().unwrap();
        let _again = HELD.read().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    weakspot::model(|| drop(HELD.write().unwrap()));
}

/// What static locks hold is put back: each execution begins with what was there before the model, and so does what
/// comes after it.
#[test]
fn what_static_locks_hold_is_as_new_in_every_execution() {
    static NUMBER: Mutex<u32> = Mutex::new(5);
    static PAIR: RwLock<(u8, Option<u64>)> = RwLock::new((1, None));
    let add = || {
        *NUMBER.lock().unwrap() += 1;
        PAIR.write().unwrap().1.get_or_insert(7);
        assert!(PAIR.try_read().is_ok_and(|pair| pair.0 == 1) || PAIR.read().unwrap().0 == 1);
        NUMBER.try_lock().map(|mut number| *number += 10).is_ok()
    };
    let report = Builder::default().check(move || {
        assert_eq!(*PAIR.read().unwrap(), (1, None));
        let thread = thread::spawn(add);
        let times = u32::from(add()) + u32::from(thread.join().unwrap());
        assert_eq!(*NUMBER.lock().unwrap(), 7 + 10 * times);
        assert_eq!(*PAIR.read().unwrap(), (1, Some(7)));
    });
    assert!(report.verdict == Verdict::Safe && report.executions > 10 && report.notes.is_empty(), "{report}");
    assert_eq!((*NUMBER.lock().unwrap(), *PAIR.read().unwrap()), (5, (1, None)));
}

#[test]
fn a_static_mutex_that_an_execution_has_poisoned_is_not_poisoned_in_the_next() {
    static POISONED: Mutex<u32> = Mutex::new(0);
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| {
            let caught = std::panic::catch_unwind(|| {
                let _held = POISONED.lock();
                panic!("on purpose");
            });
            assert!(caught.is_err());
        });
        let was_poisoned = POISONED.lock().is_err();
        thread.join().unwrap();
        assert!(POISONED.is_poisoned());
        std::hint::black_box(was_poisoned);
    });
    assert!(report.verdict == Verdict::Safe && report.executions == 2, "{report}");
    assert!(!POISONED.is_poisoned());
}

/// What owns something is not put back, and the report says so if that may be why it fails.
#[test]
fn data_with_a_destructor_is_left_as_it_is() {
    static LIST: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| LIST.lock().unwrap().push(1));
        LIST.lock().unwrap().push(2);
        thread.join().unwrap();
        assert_eq!(LIST.lock().unwrap().len(), 2);
    });
    assert!(report.is_failure(), "{report}");
    let note = report.notes.iter().find(|note| note.contains("lazy_static")).unwrap_or_else(|| panic!("{report}"));
    assert!(note.contains("statics.rs"), "{note}");
}

/// A lock inside the data of another one is used after that was written to.
#[test]
fn a_lock_inside_another_one_does_not_undo_what_is_put_back() {
    static OUTER: Mutex<Mutex<u32>> = Mutex::new(Mutex::new(5));
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| drop(OUTER.lock().unwrap()));
        {
            let mut outer = OUTER.lock().unwrap();
            assert_eq!(std::mem::replace(outer.get_mut().unwrap(), 6), 5);
            assert_eq!(*outer.lock().unwrap(), 6);
        }
        thread.join().unwrap();
    });
    assert!(report.verdict == Verdict::Safe && report.executions == 2, "{report}");
    assert_eq!(*OUTER.lock().unwrap().lock().unwrap(), 5);
}

enum Texts {
    Some([&'static str; 6]),
    Later(Mutex<[usize; 12]>),
}

/// Where a lock was, there may be something else by now.
#[test]
fn nothing_is_written_over_what_has_replaced_a_lock() {
    static TEXTS: std::sync::Mutex<Texts> = std::sync::Mutex::new(Texts::Some([""; 6]));
    weakspot::model(|| {
        let mut texts = TEXTS.lock().unwrap();
        *texts = Texts::Later(Mutex::new([0; 12]));
        if let Texts::Later(later) = &*texts {
            later.lock().unwrap()[0] = 1;
        }
        *texts = Texts::Some(["text"; 6]);
    });
    assert!(matches!(&*TEXTS.lock().unwrap(), Texts::Some(texts) if texts.iter().all(|text| *text == "text")));
}

#[test]
fn poison_that_a_model_clears_before_it_locks_is_there_again_in_the_next_execution() {
    static MUTEX: Mutex<u32> = Mutex::new(0);
    static LOCK: RwLock<u32> = RwLock::new(0);
    let poisons = std::thread::spawn(|| {
        let _held = (MUTEX.lock(), LOCK.write());
        panic!("on purpose");
    });
    assert!(poisons.join().is_err());
    let report = Builder::default().check(|| {
        assert!(MUTEX.is_poisoned() && LOCK.is_poisoned());
        MUTEX.clear_poison();
        LOCK.clear_poison();
        let thread = thread::spawn(|| *MUTEX.lock().unwrap() += 1);
        *MUTEX.lock().unwrap() += 1;
        *LOCK.write().unwrap() += 1;
        thread.join().unwrap();
    });
    assert!(report.verdict == Verdict::Safe && report.executions == 2, "{report}");
    assert!(MUTEX.is_poisoned() && LOCK.is_poisoned());
}

/// Something without a destructor may own memory nevertheless, which the first execution frees.
#[test]
fn what_points_to_the_heap_is_not_put_back() {
    static BOX: Mutex<Option<ManuallyDrop<Box<u32>>>> = Mutex::new(None);
    *BOX.lock().unwrap() = Some(ManuallyDrop::new(Box::new(5)));
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| drop(BOX.lock().unwrap()));
        if let Some(five) = BOX.lock().unwrap().take() {
            assert_eq!(*ManuallyDrop::into_inner(five), 5);
        }
        thread.join().unwrap();
    });
    assert!(report.verdict == Verdict::Safe && report.executions == 2, "{report}");
    assert!(BOX.lock().unwrap().is_none());
}

#[test]
fn what_a_raw_pointer_owns_is_not_freed_twice() {
    struct Owner(*mut u32);
    // SAFETY: nobody else has the pointer.
    unsafe impl Send for Owner {}
    fn new() -> *mut u32 {
        Box::into_raw(Box::new(5))
    }
    static OWNER: LazyLock<Mutex<Owner>> = LazyLock::new(|| Mutex::new(Owner(new())));
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| drop(OWNER.lock().unwrap()));
        {
            let mut owner = OWNER.lock().unwrap();
            // SAFETY: the pointer comes from a box, and is replaced.
            assert_eq!(unsafe { *Box::from_raw(std::mem::replace(&mut owner.0, new())) }, 5);
        }
        thread.join().unwrap();
    });
    assert!(report.verdict == Verdict::Safe && report.executions == 2, "{report}");
}

/// A pointer that is not where pointers are as a rule, or that has something else in its upper bits, is one nevertheless.
#[test]
fn what_a_packed_pointer_owns_is_not_freed_twice() {
    #[repr(C, packed)]
    struct Packed(u8, *mut u32);
    // SAFETY: nobody else has the pointer.
    unsafe impl Send for Packed {}
    struct Tagged(u64);
    impl Tagged {
        fn new(tag: u16) -> Self {
            Self((new().expose_provenance() as u64) | u64::from(tag) << 48)
        }
        fn pointer(&self) -> *mut u32 {
            std::ptr::with_exposed_provenance_mut((self.0 & ((1 << 48) - 1)) as usize)
        }
    }
    fn new() -> *mut u32 {
        Box::into_raw(Box::new(5))
    }
    fn take(pointer: *mut u32) -> u32 {
        // SAFETY: the pointer comes from a box, and was replaced. Whoever has freed it has written 0 before.
        let mut taken = unsafe { Box::from_raw(pointer) };
        std::mem::take(&mut *taken)
    }
    static PACKED: LazyLock<Mutex<Packed>> = LazyLock::new(|| Mutex::new(Packed(1, new())));
    static TAGGED: LazyLock<RwLock<Tagged>> = LazyLock::new(|| RwLock::new(Tagged::new(3)));
    // The locks have to be statics, and what std has made of these is one.
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| drop((PACKED.lock().unwrap(), TAGGED.read().unwrap())));
        {
            let mut packed = PACKED.lock().unwrap();
            let old = packed.1;
            packed.1 = new();
            assert_eq!(take(old), 5);
            let mut tagged = TAGGED.write().unwrap();
            let old = std::mem::replace(&mut *tagged, Tagged::new(4));
            assert_eq!(take(old.pointer()), 5);
        }
        thread.join().unwrap();
    });
    assert!(report.verdict == Verdict::Safe && report.executions > 1, "{report}");
}

/// Pointers into the program own nothing that could be freed.
#[test]
fn references_to_statics_are_put_back() {
    static NUMBER: AtomicUsize = AtomicUsize::new(3);
    type Chosen = (&'static str, Option<&'static AtomicUsize>, fn() -> u32);
    static CHOSEN: Mutex<Chosen> = Mutex::new(("none", None, || 1));
    let report = Builder::default().check(|| {
        let thread = thread::spawn(|| drop(CHOSEN.lock().unwrap()));
        {
            let mut chosen = CHOSEN.lock().unwrap();
            assert!(chosen.0 == "none" && chosen.1.is_none() && chosen.2() == 1);
            *chosen = ("number", Some(&NUMBER), || 2);
        }
        thread.join().unwrap();
        assert_eq!(CHOSEN.lock().unwrap().1.map(|number| number.fetch_add(1, SeqCst)), Some(3));
    });
    assert!(report.verdict == Verdict::Safe && report.executions == 2 && report.notes.is_empty(), "{report}");
    assert_eq!(CHOSEN.lock().unwrap().0, "none");
}
