//! Loops that wait: those that end by themselves are followed, those that do not are not taken for ended.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use weakspot::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use weakspot::sync::{Arc, Condvar, Mutex};
use weakspot::{Bound, Builder, FailureKind, MemoryModel, Report, Verdict, hint, thread};

use Ordering::{Acquire, Relaxed, Release, SeqCst};

fn check(body: impl Fn() + Send + Sync + 'static) -> Report {
    Builder::default().check(body)
}

/// A writer, and a reader that looks up to so many times. It panics if it has never seen the flag.
fn impatient(rounds: usize) -> impl Fn() + Send + Sync + 'static {
    move || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = flag.clone();
        let writer = thread::spawn(move || other.store(true, SeqCst));
        let mut seen = false;
        for _ in 0..rounds {
            if flag.load(Acquire) {
                seen = true;
                break;
            }
            hint::spin_loop();
        }
        assert!(seen, "out of patience");
        writer.join().unwrap();
    }
}

/// Where the marker of [`patient`] stands.
const PATIENT_MARKER: u32 = line!() + 12;

/// The same, but giving up is all right.
fn patient(rounds: usize) -> impl Fn() + Send + Sync + 'static {
    move || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = flag.clone();
        let writer = thread::spawn(move || other.store(true, SeqCst));
        for _ in 0..rounds {
            if flag.load(Acquire) {
                break;
            }
            hint::spin_loop();
        }
        writer.join().unwrap();
    }
}

#[test]
fn what_comes_after_a_loop_with_a_bound_is_explored() {
    for rounds in [1, 2, 3, 10, 100, 900] {
        let report = check(impatient(rounds));
        assert_eq!(report.verdict, Verdict::Failed, "{rounds} rounds: {report}");
        assert!(report.to_string().contains("out of patience"), "{report}");
    }
}

#[test]
fn every_round_of_a_loop_with_a_small_bound_is_explored() {
    for rounds in [1, 2, 3, 5, 10] {
        let report = check(patient(rounds));
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
        assert!(report.exhaustive && report.left_out.is_empty(), "{report}");
        // The flag is seen in the first, the second, … round, or in none.
        assert_eq!(report.executions, rounds as u64 + 1, "{report}");
    }
}

#[test]
fn a_loop_with_a_large_bound_is_named_as_not_explored_in_all_ways() {
    let report = check(patient(100));
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{report}");
    assert!(!report.exhaustive && !report.is_failure() && report.has_notes());
    assert_eq!(report.left_out[0].place.line, PATIENT_MARKER, "{report}");
    assert!(report.executions < 10, "{report}");
    let all = Builder { max_spins: 100, ..Builder::default() }.check(patient(100));
    assert_eq!((all.verdict, all.executions), (Verdict::Safe, 101), "{all}");
}

#[test]
fn a_thread_that_parks_after_spinning_is_explored() {
    // The flag is set without unparking: a bug that shows only if the reader has given up spinning.
    let report = check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let other = flag.clone();
        let waiter = thread::spawn(move || {
            for _ in 0..3 {
                if other.load(Acquire) {
                    return;
                }
                hint::spin_loop();
            }
            while !other.load(Acquire) {
                thread::park();
            }
        });
        flag.store(true, Release);
        waiter.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Deadlock), "{report}");
}

#[test]
fn a_marker_that_is_passed_twice_is_not_yet_a_loop() {
    fn look(flag: &AtomicBool) -> bool {
        let seen = flag.load(Acquire);
        thread::yield_now();
        seen
    }
    let report = check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let count = Arc::new(AtomicUsize::new(0));
        let (other, other_count) = (flag.clone(), count.clone());
        let thread = thread::spawn(move || {
            look(&other);
            look(&other);
            look(&other);
            other_count.fetch_sub(1, SeqCst);
        });
        count.fetch_add(1, SeqCst);
        thread.join().unwrap();
        flag.store(true, Relaxed);
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(report.exhaustive, "{report}");
}

#[test]
fn two_loops_with_one_marker_are_two_loops() {
    fn pause() {
        hint::spin_loop();
    }
    let report = check(|| {
        let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let other = flags.clone();
        let writer = thread::spawn(move || {
            other[0].store(true, SeqCst);
            other[1].store(true, SeqCst);
        });
        for flag in flags.iter() {
            while !flag.load(Acquire) {
                pause();
            }
        }
        writer.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(report.exhaustive, "{report}");
}

#[test]
fn a_reader_that_retries_is_not_waiting_for_ever() {
    // Each round sees two different values of the sequence number at first; the next one would succeed.
    let report = check(|| {
        let sequence = Arc::new(AtomicUsize::new(0));
        let other = sequence.clone();
        let writer = thread::spawn(move || {
            other.store(1, SeqCst);
            other.store(2, SeqCst);
        });
        loop {
            let before = sequence.load(Acquire);
            if before.is_multiple_of(2) && sequence.load(Acquire) == before {
                break;
            }
            hint::spin_loop();
        }
        writer.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(report.exhaustive, "{report}");
}

#[test]
fn a_loop_that_counts_in_each_round_comes_to_an_end() {
    // Each round writes something new, so no round repeats another.
    let report = check(|| {
        let shared = Arc::new((AtomicUsize::new(0), AtomicBool::new(false)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.0.load(SeqCst);
            other.1.store(true, SeqCst);
        });
        while !shared.1.load(SeqCst) {
            shared.0.fetch_add(1, SeqCst);
            thread::yield_now();
        }
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{report}");
    assert!(!report.exhaustive && report.to_string().contains("spins.rs"), "{report}");
}

#[test]
fn a_loop_that_counts_and_has_a_bound_is_explored_to_its_end() {
    let report = check(|| {
        let count = Arc::new(AtomicUsize::new(0));
        let other = count.clone();
        let thread = thread::spawn(move || other.load(SeqCst));
        for _ in 0..5 {
            count.fetch_add(1, SeqCst);
            thread::yield_now();
        }
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
    assert!(report.exhaustive && report.executions == 6, "{report}");
}

#[test]
fn what_a_polling_thread_writes_for_a_moment_can_be_seen_several_times() {
    // The other thread has to see the flag up three times, which takes three rounds that read nothing new.
    let report = check(|| {
        let (busy, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (other, other_done) = (busy.clone(), done.clone());
        let thread = thread::spawn(move || {
            let seen = [(); 5].map(|()| other.load(SeqCst));
            other_done.store(true, SeqCst);
            assert_ne!(seen, [true, false, true, false, true], "seen three times");
        });
        while !done.load(SeqCst) {
            busy.store(true, SeqCst);
            busy.store(false, SeqCst);
            thread::yield_now();
        }
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(report.to_string().contains("seen three times"), "{report}");
}

#[test]
fn a_thread_that_notifies_again_and_again_comes_to_an_end() {
    for all in [true, false] {
        let report = check(move || {
            let shared = Arc::new((Mutex::new(false), Condvar::new(), AtomicBool::new(false)));
            let other = shared.clone();
            let thread = thread::spawn(move || {
                let mut ready = other.0.lock().unwrap();
                while !*ready {
                    ready = other.1.wait(ready).unwrap();
                }
                other.2.store(true, Release);
            });
            *shared.0.lock().unwrap() = true;
            while !shared.2.load(Acquire) {
                if all {
                    shared.1.notify_all();
                } else {
                    shared.1.notify_one();
                }
                thread::yield_now();
            }
            thread.join().unwrap();
        });
        assert_eq!(report.verdict, Verdict::Safe, "{report}");
        assert!(report.exhaustive, "{report}");
    }
}

#[test]
fn a_lock_that_is_tried_so_many_times_is_followed_to_where_it_is_given_up() {
    let body = |rounds: usize| {
        move || {
            let lock = Arc::new(AtomicBool::new(true));
            let other = lock.clone();
            let holder = thread::spawn(move || other.store(false, Release));
            let mut taken = false;
            for _ in 0..rounds {
                fence(SeqCst);
                taken = lock.compare_exchange(false, true, Acquire, Relaxed).is_ok();
                if taken {
                    break;
                }
                hint::spin_loop();
            }
            assert!(taken, "given up");
            holder.join().unwrap();
        }
    };
    for rounds in [2, 10, 300] {
        let report = check(body(rounds));
        assert_eq!(report.verdict, Verdict::Failed, "{report}");
        assert!(report.to_string().contains("given up"), "{report}");
        let schedule = report.replay().unwrap().to_owned();
        let again = Builder { replay: Some(schedule), ..Builder::default() }.check(body(rounds));
        assert!(again.to_string().contains("given up"), "{again}");
    }
}

#[test]
fn a_loop_that_ends_after_another_number_of_rounds_each_time_is_not_taken_to_end() {
    use std::sync::atomic::AtomicUsize as Outside;
    static CLOCK: Outside = Outside::new(0);
    // The clock is slow enough for what is explored, and runs out when the loop is tried out.
    let report = check(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let other = flag.clone();
        let writer = thread::spawn(move || other.store(true, Release));
        let deadline = CLOCK.load(Relaxed) + 400;
        while !flag.load(Acquire) {
            let now = CLOCK.load(Relaxed);
            CLOCK.fetch_add(1 + (now.wrapping_mul(2_654_435_761) >> 9) % 3, Relaxed);
            assert!(now < deadline, "timeout");
            hint::spin_loop();
        }
        writer.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{report}");
    assert!(report.to_string().contains("clock"), "{report}");
}

#[test]
fn random_schedules_get_past_a_loop_with_a_bound() {
    for rounds in [1, 3, 10] {
        let report = Builder { seed: Some(7), ..Builder::default() }.check(impatient(rounds));
        assert_eq!(report.verdict, Verdict::Failed, "{rounds} rounds: {report}");
        assert!(report.to_string().contains("out of patience"), "{report}");
    }
    let report = Builder { seed: Some(7), ..Builder::default() }.check(patient(100));
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Random), "{report}");
}

#[test]
fn nobody_is_left_to_disturb_a_loop_that_ends_by_itself() {
    // The thread spins when all others have ended: that is no livelock, in no kind of search.
    let body = || {
        let flag = Arc::new(AtomicBool::new(false));
        let other = flag.clone();
        let thread = thread::spawn(move || {
            for _ in 0..200 {
                if other.load(Acquire) {
                    break;
                }
                hint::spin_loop();
            }
        });
        thread.join().unwrap();
    };
    for seed in [None, Some(1)] {
        let report = Builder { seed, ..Builder::default() }.check(body);
        assert!(matches!(report.verdict, Verdict::Bounded(_)), "{report}");
        assert!(report.failure.is_none(), "{report}");
    }
}

#[test]
fn a_store_that_is_late_lets_a_loop_with_a_bound_run_out() {
    // Under SC one of the two sees the other in time; with both stores delayed, both give up.
    let body = || {
        let flags = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let threads = [0, 1].map(|me: usize| {
            let flags = flags.clone();
            thread::spawn(move || {
                flags[me].store(true, Release);
                for _ in 0..3 {
                    if flags[1 - me].load(Acquire) {
                        return true;
                    }
                    hint::spin_loop();
                }
                false
            })
        });
        let seen = threads.map(|thread| thread.join().unwrap());
        assert!(seen[0] || seen[1], "neither has seen the other");
    };
    let report = check(body);
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    assert!(report.to_string().contains("neither has seen the other"), "{report}");
}

#[test]
fn a_retry_on_store_buffers_is_no_livelock() {
    // On PSO the reader can see the second store before the first, and then has to look once more. That does no harm.
    let body = || {
        let (sequence, data) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (sequence2, data2) = (sequence.clone(), data.clone());
        let writer = thread::spawn(move || {
            data2.store(1, Relaxed);
            sequence2.store(2, Relaxed);
        });
        loop {
            let before = sequence.load(Acquire);
            let _ = data.load(Relaxed);
            if sequence.load(Acquire) == before {
                break;
            }
            hint::spin_loop();
        }
        writer.join().unwrap();
    };
    let report = Builder { model: MemoryModel::Pso, ..Builder::default() }.check(body);
    assert_eq!(report.verdict, Verdict::Benign, "{report}");
}

#[test]
fn a_loop_that_ends_after_very_many_rounds_is_neither_endless_nor_explored() {
    let report = check(patient(3_000));
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{report}");
    assert!(!report.exhaustive, "{report}");
    assert_eq!(report.left_out[0].place.line, PATIENT_MARKER, "{report}");
    assert!(report.left_out[0].why.contains("more than 1,000 rounds"), "{report}");
    // Nobody will ever set the flag, but the loop is no livelock.
    let report = check(|| {
        let flag = AtomicBool::new(false);
        for _ in 0..3_000 {
            if flag.load(Acquire) {
                break;
            }
            hint::spin_loop();
        }
    });
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Loops), "{report}");
}

/// Waits for a flag, with or without a bound. All callers share a marker.
fn wait_for(flag: &AtomicUsize, rounds: Option<usize>) -> bool {
    let mut left = rounds;
    while flag.load(Acquire) == 0 {
        if let Some(left) = &mut left {
            if *left == 0 {
                return false;
            }
            *left -= 1;
        }
        hint::spin_loop();
    }
    true
}

#[test]
fn a_bounded_loop_is_told_from_endless_ones_with_the_same_marker() {
    // One thread waits without a bound, after reads with many different results; then it waits with one, for another cell.
    let report = check(|| {
        let cells = Arc::new([(); 3].map(|()| AtomicUsize::new(0)));
        let other = cells.clone();
        let writer = thread::spawn(move || {
            for value in 1..=6 {
                other[0].store(value, SeqCst);
            }
            other[1].store(1, SeqCst);
            other[2].store(1, SeqCst);
        });
        for _ in 0..2 {
            cells[0].load(SeqCst);
        }
        wait_for(&cells[1], None);
        assert!(wait_for(&cells[2], Some(200)), "out of patience");
        writer.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(report.to_string().contains("out of patience"), "{report}");
}

#[test]
fn schedules_with_few_preemptions_go_to_the_end_of_a_loop_with_a_bound() {
    // Far too many executions: they are given up, and schedules with few preemptions are explored instead. What fails comes
    // late among the executions; it needs one preemption, and a loop that goes all its rounds in vain.
    const TIMES: usize = 14;
    let body = |fails: bool| {
        move || {
            let cells = Arc::new([(); 2].map(|()| AtomicUsize::new(0)));
            let (cells2, cells3) = (cells.clone(), cells.clone());
            let one = thread::spawn(move || {
                let first = cells2[0].fetch_add(1, SeqCst);
                let second = cells2[0].fetch_add(1, SeqCst);
                (2..TIMES).for_each(|_| _ = cells2[0].fetch_add(1, SeqCst));
                cells2[1].store(1, SeqCst);
                second - first > TIMES
            });
            let two = thread::spawn(move || (0..TIMES).for_each(|_| _ = cells3[0].fetch_add(1, SeqCst)));
            let seen = wait_for(&cells[1], Some(5));
            two.join().unwrap();
            let has_waited = one.join().unwrap();
            assert!(seen || !has_waited || !fails, "out of patience");
        }
    };
    let check = |most: u32, fails: bool| {
        let max_duration = Some(Duration::from_secs(2));
        Builder { max_preemptions: Some(most), max_duration, ..Builder::default() }.check(body(fails))
    };
    let report = check(0, true);
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Preemptions(0)), "{report}");
    let report = check(1, false);
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Preemptions(1)), "{report}");
    let report = check(1, true);
    assert_eq!(report.verdict, Verdict::Failed, "{report}");
    assert!(report.to_string().contains("out of patience"), "{report}");
}

/// A thread that takes what there is until nobody brings any more.
fn collect(bring: usize) -> Report {
    check(move || {
        let (list, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(1)));
        let (list2, left2) = (list.clone(), left.clone());
        let bringer = thread::spawn(move || {
            (0..bring).for_each(|_| _ = list2.fetch_add(1, SeqCst));
            left2.fetch_sub(1, SeqCst);
        });
        let mut taken = 0;
        loop {
            taken += list.swap(0, SeqCst);
            if left.load(SeqCst) == 0 {
                break;
            }
            thread::yield_now();
        }
        taken += list.swap(0, SeqCst);
        assert_eq!(taken, bring);
        bringer.join().unwrap();
    })
}

#[test]
fn a_loop_that_does_in_its_second_round_what_it_did_in_its_first_waits() {
    let executions = [1, 2].map(|bring| {
        let report = collect(bring);
        assert!(report.verdict == Verdict::Safe && report.exhaustive, "{report}");
        report.executions
    });
    assert_eq!(executions, [8, 26]);
}

#[test]
fn a_thread_that_spins_on_a_lock_goes_on_when_it_is_free() {
    let report = check(|| {
        let (lock, sum) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let threads = [1, 2].map(|number| {
            let (lock, sum) = (lock.clone(), sum.clone());
            thread::spawn(move || {
                for _ in 0..3 {
                    while lock.compare_exchange(false, true, SeqCst, SeqCst).is_err() {
                        hint::spin_loop();
                    }
                    sum.store(sum.load(Relaxed) + number, Relaxed);
                    lock.store(false, SeqCst);
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(sum.load(Relaxed), 9);
    });
    assert!(report.verdict == Verdict::Safe && report.exhaustive, "{report}");
    assert!(report.executions == 328 && report.blocked < 100, "{report}");
}

#[test]
fn nothing_is_correct_that_never_ends() {
    let report = check(|| {
        let (x, y) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (x2, y2) = (x.clone(), y.clone());
        let other = thread::spawn(move || {
            while x2.load(SeqCst) == 0 {
                y2.store(1, SeqCst);
                y2.store(0, SeqCst);
                hint::spin_loop();
            }
        });
        while x.load(SeqCst) == 0 {
            y.load(SeqCst);
            hint::spin_loop();
        }
        other.join().unwrap();
    });
    assert!(matches!(report.verdict, Verdict::Failed | Verdict::Bounded(Bound::NoEnd)), "{report}");
}

/// A loop that spins some times, then yields, and begins again looks once more between two passes of its `spin_loop` then.
#[test]
fn spinning_and_yielding_in_turn_is_waiting() {
    let report = check(|| {
        let flag = Arc::new(AtomicUsize::new(0));
        let other = flag.clone();
        let thread = thread::spawn(move || other.store(1, SeqCst));
        let mut spins = 0;
        while flag.load(SeqCst) == 0 {
            spins = (spins + 1) % 20;
            if spins == 0 { thread::yield_now() } else { hint::spin_loop() }
        }
        thread.join().unwrap();
    });
    assert_eq!(report.verdict, Verdict::Safe, "{report}");
}
