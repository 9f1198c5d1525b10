//! What a report prints for a replay leads to the same failure again, whatever else is different.
#![allow(missing_docs, clippy::unwrap_used)]

use weakspot::cell::UnsafeCell;
use weakspot::sync::atomic::{AtomicUsize, Ordering, fence};
use weakspot::sync::{Arc, mpsc};
use weakspot::{Bound, Builder, FailureKind, MemoryModel, Report, Verdict, hint, thread};

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

fn on(model: MemoryModel) -> Builder {
    Builder { model, ..Builder::default() }
}

/// Runs the failing execution of a report again, with a builder that knows nothing but the schedule.
#[track_caller]
fn replayed(report: &Report, body: impl Fn() + Send + Sync + 'static) -> Report {
    let schedule = report.replay().expect("a report of a failure has a schedule").to_owned();
    let again = Builder { replay: Some(schedule.clone()), ..Builder::default() }.check(body);
    assert_eq!(again.verdict, Verdict::Failed, "{schedule}: {again}");
    again
}

#[test]
fn threads_have_the_numbers_that_they_had() {
    // The explorer finds the second thread of the first one before the thread of that.
    for model in [MemoryModel::Sc, MemoryModel::Tso] {
        let body = || {
            let x = Arc::new(AtomicUsize::new(0));
            let (theirs, y) = (Arc::clone(&x), Arc::new(AtomicUsize::new(0)));
            let parent = thread::spawn(move || {
                let child = thread::spawn(move || theirs.store(1, SeqCst));
                child.join().unwrap();
            });
            let seen = x.load(SeqCst);
            let also = Arc::clone(&y);
            let other = thread::spawn(move || also.store(1, SeqCst));
            parent.join().unwrap();
            other.join().unwrap();
            assert_eq!(seen, 0, "seen");
        };
        let report = on(model).check(body);
        assert!(report.replay().unwrap().ends_with("~t0.0.1"), "{report}");
        let again = replayed(&report, body);
        for report in [&report, &again] {
            assert!(report.to_string().contains("spawn thread 3"), "{report}");
        }
    }
    // If only the first thread starts others there is nothing to say.
    let report = on(MemoryModel::Tso).check(|| thread::spawn(|| panic!("at once")).join().unwrap());
    assert!(!report.replay().unwrap().contains('~'), "{report}");
}

struct Plain(UnsafeCell<usize>);

// SAFETY: the tests want to see the races.
unsafe impl Sync for Plain {}

impl Plain {
    fn read(&self) {
        // SAFETY: as above.
        self.0.with(|value| unsafe { std::ptr::read(value) });
    }

    fn write(&self) {
        // SAFETY: as above.
        self.0.with_mut(|value| unsafe { *value += 1 });
    }
}

#[test]
fn both_sides_of_a_race_come_about_again() {
    let body = || {
        let shared = Arc::new((Plain(UnsafeCell::new(0)), AtomicUsize::new(0)));
        let (one, other) = (shared.clone(), shared.clone());
        let reader = thread::spawn(move || {
            one.1.load(Relaxed);
            one.0.read();
        });
        let writer = thread::spawn(move || other.0.write());
        reader.join().unwrap();
        writer.join().unwrap();
    };
    let report = on(MemoryModel::Tso).check(body);
    let again = replayed(&report, body);
    let (before, after) = (report.failure.unwrap(), again.failure.unwrap());
    assert!(matches!(after.kind, FailureKind::Race { .. }), "{}", after.message);
    assert_eq!(before.message, after.message);
}

/// The thread that is started uses its atomics in another order than they come up in when everybody is asked.
#[test]
fn a_commit_is_found_again_whoever_used_its_atomic_first() {
    let body = || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.0.store(2, Relaxed);
            other.1.load(Acquire)
        });
        shared.1.store(1, Release);
        shared.0.store(1, Relaxed);
        let seen = thread.join().unwrap();
        assert!(seen == 1 || shared.0.load(Relaxed) == 1, "its store came last, and its load first");
    };
    for model in [MemoryModel::Tso, MemoryModel::Pso] {
        let report = on(model).check(body);
        assert_eq!(report.verdict, Verdict::Harmful, "{report}");
        let again = replayed(&report, body);
        assert!(again.failure.unwrap().message.contains("its store came last"));
    }
}

#[test]
fn a_schedule_says_by_itself_which_model_it_is_for() {
    let relaxed = || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            other.2.store(1, Release);
            other.0.store(1, Relaxed);
            other.1.store(1, Relaxed);
        });
        if shared.1.load(Acquire) == 1 {
            assert_eq!(shared.0.load(Relaxed), 1, "the message is not there");
        }
        thread.join().unwrap();
    };
    let report = on(MemoryModel::Pso).check(relaxed);
    assert_eq!(report.verdict, Verdict::Harmful, "{report}");
    assert!(replayed(&report, relaxed).failure.unwrap().message.contains("the message is not there"));
    // A bug on every processor, found while PSO was asked for: fences are events there that TSO does not have.
    let wrong = || {
        let shared = Arc::new(AtomicUsize::new(0));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            fence(Release);
            other.store(other.load(Relaxed) + 1, Release);
        });
        shared.store(shared.load(SeqCst) + 1, Release);
        thread.join().unwrap();
        assert_eq!(shared.load(SeqCst), 2, "an update is lost");
    };
    for model in [MemoryModel::Sc, MemoryModel::Tso, MemoryModel::Pso] {
        let report = on(model).check(wrong);
        assert_eq!(report.verdict, Verdict::Failed, "{report}");
        assert!(replayed(&report, wrong).failure.unwrap().message.contains("an update is lost"));
    }
}

#[test]
fn leaks_and_livelocks_come_about_again() {
    let leak = || std::mem::forget(Arc::new(5));
    let report = on(MemoryModel::Tso).check(leak);
    assert!(matches!(replayed(&report, leak).failure.unwrap().kind, FailureKind::Leak));
    let livelock = || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = shared.clone();
        let thread = thread::spawn(move || {
            while other.0.load(Acquire) + other.1.load(Acquire) == 0 {
                hint::spin_loop();
            }
        });
        shared.0.store(0, Release);
        thread.join().unwrap();
    };
    let report = on(MemoryModel::Tso).check(livelock);
    assert!(matches!(replayed(&report, livelock).failure.unwrap().kind, FailureKind::Livelock));
}

#[test]
fn what_is_no_schedule_of_the_test_is_said_to_be_none() {
    let body = || {
        let shared = Arc::new(AtomicUsize::new(0));
        let other = shared.clone();
        let thread = thread::spawn(move || other.store(other.load(Relaxed) + 1, Relaxed));
        shared.store(shared.load(Relaxed) + 1, Relaxed);
        thread.join().unwrap();
        assert_eq!(shared.load(Relaxed), 2, "an update is lost");
    };
    let run = |schedule: &str| Builder { replay: Some(schedule.to_owned()), ..Builder::default() }.check(body);
    let whole = Builder::default().check(body).replay().unwrap().to_owned();
    let (cut, _) = whole.rsplit_once('.').unwrap();
    for (schedule, why) in [
        ("nonsense", "is not a schedule of weakspot"),
        ("tso:0x2.q", "`q` is no step"),
        ("sc:7", "step 1 of the schedule is not possible"),
        ("tso:0x2", "the schedule is over after step 2"),
        (cut, "a part of the schedule is missing"),
    ] {
        let report = run(schedule);
        let text = report.to_string();
        assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Schedule), "{text}");
        assert!(report.is_failure() && text.contains("this schedule cannot be run") && text.contains(why), "{text}");
        assert!(!text.contains("to run this execution again"), "{text}");
    }
}

#[test]
fn one_execution_that_is_right_proves_nothing() {
    let body = || {
        let shared = Arc::new(AtomicUsize::new(0));
        shared.store(1, Relaxed);
    };
    let report = Builder { replay: Some("sc:0".to_owned()), ..Builder::default() }.check(body);
    assert_eq!(report.verdict, Verdict::Bounded(Bound::Schedule), "{report}");
    assert!(report.has_notes() && !report.is_failure(), "{report}");
    assert!(report.to_string().contains("nothing found in the one schedule that was run"), "{report}");
}

#[test]
fn an_execution_without_end_is_one_again() {
    let body = || {
        let counter = AtomicUsize::new(0);
        while counter.fetch_add(1, Relaxed) < usize::MAX {}
    };
    let report = Builder { max_events: 1_000, ..Builder::default() }.check(body);
    let schedule = report.replay().unwrap().to_owned();
    let again = Builder { max_events: 1_000, replay: Some(schedule), ..Builder::default() }.check(body);
    assert!(matches!(again.failure.unwrap().kind, FailureKind::TooLong));
}

/// Loops that wait and write something in each round never rest.
#[test]
fn waiting_without_end_in_loops_that_write_is_a_livelock_again() {
    let body = || {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = shared.clone();
        let wait = |[one, flag]: [&AtomicUsize; 2]| {
            loop {
                one.fetch_add(1, AcqRel);
                let is_set = flag.load(Acquire) == 1;
                one.fetch_sub(1, AcqRel);
                if is_set {
                    break;
                }
                thread::yield_now();
            }
        };
        let thread = thread::spawn(move || wait([&other.0, &other.1]));
        wait([&shared.0, &shared.1]);
        thread.join().unwrap();
    };
    let report = on(MemoryModel::Tso).check(body);
    assert!(matches!(report.failure.as_ref().unwrap().kind, FailureKind::Livelock), "{report}");
    assert!(matches!(replayed(&report, body).failure.unwrap().kind, FailureKind::Livelock));
}

/// What is an event only because the program looks at it: found in another execution than the one that fails.
#[test]
fn what_is_observed_is_so_again() {
    let bodies: [fn(); 4] = [
        || {
            let (sender, receiver) = mpsc::channel();
            let other = sender.clone();
            let sending = thread::spawn(move || sender.send(1).unwrap());
            other.send(2).unwrap();
            drop(other);
            assert_eq!(receiver.iter().collect::<Vec<_>>(), [2, 1], "the other way round");
            sending.join().unwrap();
        },
        || {
            let shared = Arc::new(AtomicUsize::new(0));
            let other = shared.clone();
            let storing = thread::spawn(move || other.store(1, SeqCst));
            let owners = Arc::strong_count(&shared);
            assert!(owners == 2 || shared.load(SeqCst) == 0, "one owner is left");
            storing.join().unwrap();
        },
        || {
            let shared = Arc::new(AtomicUsize::new(0));
            let weak = Arc::downgrade(&shared);
            let dropping = thread::spawn(move || drop(shared));
            let (before, after) = (weak.strong_count(), Arc::weak_count(&Arc::new(0)));
            assert!(before == 1 || after != 0 || weak.upgrade().is_some(), "it is gone");
            dropping.join().unwrap();
        },
        || {
            let flag = Arc::new(AtomicUsize::new(0));
            let other = flag.clone();
            let storing = thread::spawn(move || other.store(1, SeqCst));
            assert!(!storing.is_finished(), "it has ended");
            storing.join().unwrap();
        },
    ];
    for (number, body) in bodies.into_iter().enumerate() {
        let report = on(MemoryModel::Tso).check(body);
        let schedule = report.replay().unwrap_or_default();
        assert!(report.verdict == Verdict::Failed && schedule.contains('~'), "{number}: {report}");
        let again = replayed(&report, body);
        let (before, after) = (report.failure.as_ref().unwrap(), again.failure.unwrap());
        assert_eq!(before.message, after.message, "{number}: {schedule}");
    }
}

#[test]
fn a_schedule_with_a_wrong_end_is_none() {
    for (schedule, wrong) in [
        ("sc:0.1~", "`~`"),
        ("sc:0~12~q", "`~q`"),
        ("sc:0~t0.2", "`~t0.2`"),
        ("sc:0@x", "`0@x`"),
        ("sc:0@2@", "`0@2@`"),
    ] {
        let report = Builder { replay: Some(schedule.to_owned()), ..Builder::default() }.check(|| {});
        let text = report.to_string();
        assert!(text.contains("is not a schedule of weakspot") && text.contains(wrong), "{schedule}: {text}");
    }
}

/// A test may have several models, and the line that is printed is about one.
#[test]
fn a_schedule_is_of_one_model_of_its_test() {
    fn look(fails: bool) -> impl Fn() + Send + Sync + 'static {
        move || {
            let flag = Arc::new(AtomicUsize::new(0));
            let other = flag.clone();
            let storing = thread::spawn(move || other.store(1, SeqCst));
            assert!(flag.load(SeqCst) == 0 || !fails, "seen");
            storing.join().unwrap();
        }
    }
    let test = |builder: &Builder| [false, false, true, false].map(|fails| builder.check(look(fails)));
    // Each test has an OS thread of its own.
    let in_test = |builder: Builder| {
        let os_thread = std::thread::Builder::new().name("a_test".to_owned());
        os_thread.spawn(move || test(&builder)).unwrap().join().unwrap()
    };
    let reports = in_test(Builder::default());
    assert_eq!(reports.each_ref().map(Report::is_failure), [false, false, true, false]);
    let text = reports[2].to_string();
    let (_, line) = text.split_once("WEAKSPOT_REPLAY=").unwrap();
    let schedule = line.split(' ').next().unwrap();
    assert!(schedule.ends_with("@3"), "{text}");
    let again = in_test(Builder { replay: Some(schedule.to_owned()), ..Builder::default() });
    assert_eq!(again.each_ref().map(|report| report.verdict), reports.each_ref().map(|report| report.verdict));
    assert_eq!(again.each_ref().map(|report| report.runs == 1), [false, false, true, false]);
    assert!(again[2].to_string().contains(schedule), "{}", again[2]);
}

/// A test may also have several OS threads that explore models. They have no names, but each model has its line.
#[test]
fn a_schedule_is_of_one_of_several_os_threads() {
    fn look(fails: bool) {
        let flag = Arc::new(AtomicUsize::new(0));
        let other = flag.clone();
        let storing = thread::spawn(move || other.store(1, SeqCst));
        assert!(flag.load(SeqCst) == 0 || !fails, "seen");
        storing.join().unwrap();
    }
    let test = |builder: &Builder| {
        let (one, other) = (builder.clone(), builder.clone());
        let threads = [
            std::thread::spawn(move || one.check(|| look(false))),
            std::thread::spawn(move || other.check(|| look(true))),
        ];
        threads.map(|thread| thread.join().unwrap())
    };
    let reports = test(&Builder::default());
    assert_eq!(reports.each_ref().map(Report::is_failure), [false, true]);
    let text = reports[1].to_string();
    let (_, line) = text.split_once("WEAKSPOT_REPLAY=").unwrap();
    let schedule = line.split(' ').next().unwrap();
    let again = test(&Builder { replay: Some(schedule.to_owned()), ..Builder::default() });
    assert_eq!(again.each_ref().map(|report| report.verdict), reports.each_ref().map(|report| report.verdict));
    assert_eq!(again.each_ref().map(|report| report.runs == 1), [false, true]);
    assert!(again[1].to_string().contains(schedule), "{}", again[1]);
}
