//! Exact numbers of executions, and right answers where other tools give wrong ones.
#![allow(missing_docs, clippy::unwrap_used)]

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use weakspot::sync::{Arc, Condvar, Mutex, RwLock};
use weakspot::{Bound, Builder, MemoryModel, Report, Verdict, hint, thread};

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(body)
}

/// Safe, exhaustively, in this many executions.
#[track_caller]
fn safe(executions: u64, body: impl Fn() + Send + Sync + 'static) {
    let report = check(body);
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(report.exhaustive);
    assert_eq!(report.executions, executions, "{report}");
}

/// Runs the same in several threads and joins them.
fn run_all(bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let threads: Vec<_> = bodies.into_iter().map(thread::spawn).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn pair() -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)))
}

/// A counter that only a lock protects.
struct Protected(UnsafeCell<usize>);

// SAFETY: the tests access it under a lock, or want to see the race.
unsafe impl Sync for Protected {}

impl Protected {
    fn increment(&self) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }

    fn get(&self) -> usize {
        // SAFETY: as above.
        self.0.with(|value| unsafe { *value })
    }
}

fn store_buffering(order: Ordering, fenced: bool) {
    let (x, y) = pair();
    let (x2, y2) = (x.clone(), y.clone());
    let one = thread::spawn(move || {
        x2.store(1, order);
        if fenced {
            fence(SeqCst);
        }
        y2.load(Relaxed)
    });
    let two = thread::spawn(move || {
        y.store(1, order);
        if fenced {
            fence(SeqCst);
        }
        x.load(Relaxed)
    });
    assert!(one.join().unwrap() + two.join().unwrap() > 0, "both have read 0");
}

#[test]
fn store_buffering_with_seqcst_is_correct() {
    safe(3, || store_buffering(SeqCst, false));
}

#[test]
fn store_buffering_with_fences_is_correct() {
    safe(3, || store_buffering(Relaxed, true));
}

#[test]
fn store_buffering_with_release_fails_on_tso() {
    let report = check(|| store_buffering(Release, false));
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    assert_eq!(report.executions, 3);
    assert_eq!(report.violations.len(), 2);
    assert!(report.to_string().contains("both have read 0"), "{report}");
    assert_eq!(report.suggestions.len(), 2);
    assert!(report.suggestions.iter().all(|suggestion| suggestion.tried));
}

#[test]
fn store_buffering_is_correct_where_there_are_no_buffers() {
    let builder = Builder { model: MemoryModel::Sc, ..Builder::default() };
    let report = builder.check(|| store_buffering(Relaxed, false));
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

fn message_passing(flag: Ordering) {
    let (data, ready) = pair();
    let (data2, ready2) = (data.clone(), ready.clone());
    let writer = thread::spawn(move || {
        data2.store(1, Relaxed);
        ready2.store(1, flag);
    });
    if ready.load(Acquire) == 1 {
        assert_eq!(data.load(Relaxed), 1, "the message is not there");
    }
    writer.join().unwrap();
}

#[test]
fn message_passing_needs_release_on_pso_only() {
    let pso = Builder { model: MemoryModel::Pso, ..Builder::default() };
    assert_eq!(check(|| message_passing(Relaxed)).verdict, Verdict::Safe);
    assert_eq!(pso.check(|| message_passing(Release)).verdict, Verdict::Safe);
    let report = pso.check(|| message_passing(Relaxed));
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
}

#[test]
fn two_threads_with_eight_increments_have_12870_traces() {
    safe(12_870, || {
        let x = Arc::new(AtomicUsize::new(0));
        let increment = |x: Arc<AtomicUsize>| -> Box<dyn FnOnce() + Send> {
            Box::new(move || {
                for _ in 0..8 {
                    x.fetch_add(1, Relaxed);
                }
            })
        };
        run_all(vec![increment(x.clone()), increment(x.clone())]);
        assert_eq!(x.load(Relaxed), 16);
    });
}

#[test]
fn threads_that_are_only_joined_have_one_trace() {
    safe(1, || run_all((0..4).map(|_| Box::new(|| ()) as Box<dyn FnOnce() + Send>).collect()));
}

#[test]
fn independent_reads_of_independent_writes_have_15_traces() {
    safe(15, || {
        let (x, y) = pair();
        let (x1, y1, x2, y2) = (x.clone(), y.clone(), x.clone(), y.clone());
        run_all(vec![
            Box::new(move || x1.store(1, SeqCst)),
            Box::new(move || y1.store(1, SeqCst)),
            Box::new(move || {
                let _ = (x2.load(SeqCst), y2.load(SeqCst));
            }),
            Box::new(move || {
                let _ = (y.load(SeqCst), x.load(SeqCst));
            }),
        ]);
    });
}

#[test]
fn one_writer_and_three_readers_have_8_traces() {
    safe(8, || {
        let x = Arc::new(AtomicUsize::new(0));
        let readers = [(); 3].map(|()| {
            let x = x.clone();
            thread::spawn(move || x.load(Acquire))
        });
        x.store(1, SeqCst);
        let _ = readers.map(|reader| reader.join().unwrap());
    });
}

#[test]
fn a_lost_update_is_found() {
    let report = check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let bodies = (0..2).map(|_| {
            let x = x.clone();
            Box::new(move || x.store(x.load(SeqCst) + 1, SeqCst)) as Box<dyn FnOnce() + Send>
        });
        run_all(bodies.collect());
        assert_eq!(x.load(SeqCst), 2, "an update is lost");
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(report.to_string().contains("an update is lost"));
}

#[test]
fn stores_are_never_forgotten() {
    safe(11, || {
        let x = Arc::new(AtomicUsize::new(0));
        let x2 = x.clone();
        let reader = thread::spawn(move || x2.load(Relaxed));
        (1..=10).for_each(|value| x.store(value, SeqCst));
        assert!(reader.join().unwrap() <= 10);
    });
}

/// Dekker's algorithm without turns: whoever sees the other gives up.
fn dekker(order: Ordering) {
    let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let data = Arc::new(Protected(UnsafeCell::new(0)));
    let bodies = (0..2).map(|me: usize| {
        let (flags, data) = (flags.clone(), data.clone());
        Box::new(move || {
            flags[me].store(true, order);
            if !flags[1 - me].load(if order == SeqCst { SeqCst } else { Acquire }) {
                data.increment();
            }
            flags[me].store(false, Release);
        }) as Box<dyn FnOnce() + Send>
    });
    run_all(bodies.collect());
}

#[test]
fn dekker_with_seqcst_is_correct_and_with_release_it_is_not() {
    assert_eq!(check(|| dekker(SeqCst)).verdict, Verdict::Safe);
    let report = check(|| dekker(Release));
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    assert!(report.to_string().contains("data race"), "{report}");
}

fn peterson(order: Ordering) {
    let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let turn = Arc::new(AtomicUsize::new(0));
    let data = Arc::new(Protected(UnsafeCell::new(0)));
    let bodies = (0..2).map(|me: usize| {
        let (flags, turn, data) = (flags.clone(), turn.clone(), data.clone());
        Box::new(move || {
            flags[me].store(true, order);
            turn.store(1 - me, order);
            while flags[1 - me].load(Acquire) && turn.load(Acquire) == 1 - me {
                hint::spin_loop();
            }
            data.increment();
            flags[me].store(false, Release);
        }) as Box<dyn FnOnce() + Send>
    });
    run_all(bodies.collect());
    assert_eq!(data.get(), 2);
}

#[test]
fn peterson_with_seqcst_is_correct_and_with_release_it_is_not() {
    let report = check(|| peterson(SeqCst));
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert_eq!(check(|| peterson(Release)).verdict, Verdict::Harmful);
}

fn bakery(order: Ordering) {
    let choosing = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let numbers = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let data = Arc::new(Protected(UnsafeCell::new(0)));
    let bodies = (0..2).map(|me: usize| {
        let (choosing, numbers, data) = (choosing.clone(), numbers.clone(), data.clone());
        Box::new(move || {
            choosing[me].store(true, order);
            let mine = numbers[1 - me].load(Acquire) + 1;
            numbers[me].store(mine, order);
            choosing[me].store(false, order);
            while choosing[1 - me].load(Acquire) {
                hint::spin_loop();
            }
            loop {
                let other = numbers[1 - me].load(Acquire);
                if other == 0 || (mine, me) < (other, 1 - me) {
                    break;
                }
                hint::spin_loop();
            }
            data.increment();
            numbers[me].store(0, Release);
        }) as Box<dyn FnOnce() + Send>
    });
    run_all(bodies.collect());
}

#[test]
fn bakery_with_seqcst_is_correct_and_with_release_it_is_not() {
    let report = check(|| bakery(SeqCst));
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert_eq!(check(|| bakery(Release)).verdict, Verdict::Harmful);
}

/// Threads that increment a counter under a lock.
fn with_lock(
    threads: usize,
    lock: impl Fn(&AtomicBool) + Copy + Send + 'static,
    unlock: Ordering,
) -> impl Fn() + Send + Sync + 'static
where
    Box<dyn FnOnce() + Send>: Send,
{
    let lock = std::sync::Mutex::new(lock);
    move || {
        let lock = *lock.lock().unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let data = Arc::new(Protected(UnsafeCell::new(0)));
        let bodies = (0..threads).map(|_| {
            let (flag, data) = (flag.clone(), data.clone());
            Box::new(move || {
                lock(&flag);
                data.increment();
                flag.store(false, unlock);
            }) as Box<dyn FnOnce() + Send>
        });
        run_all(bodies.collect());
        assert_eq!(data.get(), threads);
    }
}

fn test_and_set(flag: &AtomicBool) {
    while flag.swap(true, Acquire) {
        hint::spin_loop();
    }
}

fn compare_and_swap(flag: &AtomicBool) {
    while flag.compare_exchange_weak(false, true, Acquire, Relaxed).is_err() {
        thread::yield_now();
    }
}

fn test_and_test_and_set(flag: &AtomicBool) {
    while flag.swap(true, Acquire) {
        while flag.load(Relaxed) {
            hint::spin_loop();
        }
    }
}

#[test]
fn spin_locks_of_two_and_three_threads_finish() {
    for threads in [2, 3] {
        for lock in [test_and_set, compare_and_swap, test_and_test_and_set] {
            let report = check(with_lock(threads, lock, Release));
            assert_eq!(report.verdict, Verdict::Safe, "{report}");
            assert!(report.exhaustive);
        }
    }
}

#[test]
fn loops_whose_rounds_write_finish() {
    let report = check(|| {
        let (inbox, done) = pair();
        let (inbox2, done2) = (inbox.clone(), done.clone());
        let sender = thread::spawn(move || {
            inbox2.store(5, Release);
            done2.store(1, Release);
        });
        let mut received = 0;
        loop {
            let last = done.load(Acquire) == 1;
            received += inbox.swap(0, AcqRel);
            if last {
                break;
            }
            thread::yield_now();
        }
        sender.join().unwrap();
        assert_eq!(received, 5);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(report.exhaustive && report.executions > 2, "{report}");
}

#[test]
fn a_lock_that_is_polled_finishes() {
    let report = check(|| {
        let shared = Arc::new(Mutex::new(0));
        let other = shared.clone();
        let writer = thread::spawn(move || *other.lock().unwrap() = 1);
        while *shared.lock().unwrap() == 0 {
            thread::yield_now();
        }
        writer.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn a_lock_that_is_released_relaxed_leaves_a_data_race() {
    let report = check(with_lock(2, test_and_set, Relaxed));
    assert_eq!(report.verdict, Verdict::Failed);
    let text = report.to_string();
    assert!(text.contains("data race") && text.matches("answers.rs").count() >= 2, "{text}");
}

#[test]
fn mutexes_have_one_execution_for_each_order() {
    for (threads, orders) in [(2, 2), (3, 6)] {
        safe(orders, move || {
            let counter = Arc::new(Mutex::new(0));
            let bodies = (0..threads).map(|_| {
                let counter = counter.clone();
                Box::new(move || *counter.lock().unwrap() += 1) as Box<dyn FnOnce() + Send>
            });
            run_all(bodies.collect());
            assert_eq!(*counter.lock().unwrap(), threads);
        });
    }
}

#[test]
fn a_try_lock_is_seen_to_fail_and_to_succeed() {
    let report = check(|| {
        let counter = Arc::new(Mutex::new(0));
        let other = counter.clone();
        let thread = thread::spawn(move || *other.lock().unwrap() += 1);
        if let Ok(mut counter) = counter.try_lock() {
            *counter += 1;
        }
        thread.join().unwrap();
        assert!((1..=2).contains(&*counter.lock().unwrap()));
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 3), "{report}");
}

#[test]
fn readers_share_a_lock_and_writers_do_not() {
    let report = check(|| {
        let lock = Arc::new(RwLock::new(0));
        let (one, two) = (lock.clone(), lock.clone());
        let writer = thread::spawn(move || *one.write().unwrap() += 1);
        let reader = thread::spawn(move || *two.read().unwrap());
        assert!(reader.join().unwrap() <= 1);
        writer.join().unwrap();
        assert_eq!(*lock.read().unwrap(), 1);
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 2), "{report}");
}

#[test]
fn a_condition_variable_wakes_its_waiter() {
    let report = check(|| {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let guard = shared.1.wait_while(shared.0.lock().unwrap(), |ready| !*ready).unwrap();
        assert!(*guard);
        drop(guard);
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn a_parked_thread_is_woken() {
    let report = check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let (other, main) = (flag.clone(), thread::current());
        let thread = thread::spawn(move || {
            other.store(true, Release);
            main.unpark();
        });
        while !flag.load(Acquire) {
            thread::park();
        }
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}

#[test]
fn memory_that_is_really_freed_is_not_used_afterwards() {
    struct Node {
        value: usize,
        next: *mut Node,
    }
    let report = check(|| {
        let head = Arc::new(AtomicPtr::<Node>::default());
        let pushers = [1, 2].map(|value| {
            let head = head.clone();
            thread::spawn(move || {
                let node = Box::into_raw(Box::new(Node { value, next: head.load(Acquire) }));
                // SAFETY: nobody else has the node until it is published.
                while let Err(next) = head.compare_exchange(unsafe { (*node).next }, node, AcqRel, Acquire) {
                    // SAFETY: as above.
                    unsafe { (*node).next = next };
                }
            })
        });
        let take_all = || {
            let (mut sum, mut node) = (0, head.swap(std::ptr::null_mut(), AcqRel));
            while !node.is_null() {
                // SAFETY: the list was taken by one exchange, so nobody else has its nodes.
                let owned = unsafe { Box::from_raw(node) };
                (sum, node) = (sum + owned.value, owned.next);
            }
            sum
        };
        let first = take_all();
        let [(), ()] = pushers.map(|pusher| pusher.join().unwrap());
        assert_eq!(first + take_all(), 3);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(report.executions > 4);
}

#[test]
fn counts_of_an_arc_cost_executions_only_where_they_are_seen() {
    safe(1, || {
        let value = Arc::new(1);
        let threads = [value.clone(), value.clone(), value.clone()].map(|value| thread::spawn(move || *value));
        let _ = threads.map(|thread| thread.join().unwrap());
        assert_eq!(Arc::try_unwrap(value).unwrap(), 1);
    });
    safe(2, || {
        let value = Arc::new(1);
        let other = value.clone();
        let thread = thread::spawn(move || drop(other));
        assert!((1..=2).contains(&Arc::strong_count(&value)));
        thread.join().unwrap();
    });
}

#[test]
fn who_drops_last_matters_if_the_destructor_can_be_seen() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let report = check(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = Arc::new(Counted(drops.clone()));
        let other = value.clone();
        let thread = thread::spawn(move || drop(other));
        drop(value);
        let seen = drops.load(SeqCst);
        thread.join().unwrap();
        assert!(seen <= 1 && drops.load(SeqCst) == 1);
    });
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 3), "{report}");
}

#[test]
fn statics_begin_anew_in_each_execution() {
    static COUNT: AtomicUsize = AtomicUsize::new(5);
    safe(2, || {
        let thread = thread::spawn(|| COUNT.fetch_add(1, SeqCst));
        COUNT.fetch_add(1, SeqCst);
        thread.join().unwrap();
        assert_eq!(COUNT.load(SeqCst), 7);
    });
}

#[test]
fn scoped_threads_borrow() {
    safe(2, || {
        let count = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| count.fetch_add(1, SeqCst));
            scope.spawn(|| count.fetch_add(1, SeqCst));
        });
        assert_eq!(count.into_inner(), 2);
    });
}

#[test]
fn a_bound_on_preemptions_does_not_keep_small_models_from_being_complete() {
    let builder = Builder { max_preemptions: Some(1), ..Builder::default() };
    let report = builder.check(|| store_buffering(SeqCst, false));
    assert_eq!((report.verdict, report.executions), (Verdict::Safe, 3), "{report}");
}

#[test]
fn a_limit_that_the_last_execution_reaches_leaves_nothing_out() {
    let add = |x: &AtomicUsize, rounds: usize| {
        for _ in 0..rounds {
            x.fetch_add(1, SeqCst);
        }
    };
    let two_threads = |rounds: usize| {
        move || {
            let x = Arc::new(AtomicUsize::new(0));
            let other = x.clone();
            let thread = thread::spawn(move || add(&other, rounds));
            add(&x, rounds);
            thread.join().unwrap();
        }
    };
    for (rounds, executions) in [(1, 2), (2, 6), (3, 20)] {
        for max_preemptions in [None, Some(2)] {
            let limited = |limit| Builder { max_executions: Some(limit), max_preemptions, ..Builder::default() };
            let report = limited(executions).check(two_threads(rounds));
            assert_eq!((report.verdict, report.exhaustive), (Verdict::Safe, true), "{rounds}: {report}");
            assert_eq!(report.executions, executions, "{rounds}: {report}");
            let report = limited(executions - 1).check(two_threads(rounds));
            assert_eq!((report.verdict, report.exhaustive), (Verdict::Bounded(Bound::Executions), false), "{report}");
        }
    }
}

#[test]
fn random_schedules_find_the_lost_update_and_the_violation() {
    let builder = Builder { seed: Some(1), max_executions: Some(200), ..Builder::default() };
    let report = builder.check(|| {
        let x = Arc::new(AtomicUsize::new(0));
        let other = x.clone();
        let thread = thread::spawn(move || other.store(other.load(SeqCst) + 1, SeqCst));
        x.store(x.load(SeqCst) + 1, SeqCst);
        thread.join().unwrap();
        assert_eq!(x.load(SeqCst), 2);
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert_eq!(builder.check(|| store_buffering(Release, false)).verdict, Verdict::Harmful);
    let report = builder.check(|| store_buffering(SeqCst, false));
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Random), "{report}");
    assert_eq!(report.executions + report.blocked, 200, "{report}");
}
