//! Executions and time of weakspot, loom and shuttle on the same programs, in one run.
//!
//! shuttle explores interleavings of sequentially consistent executions without reduction (its depth-first scheduler),
//! loom explores its own approximation of C11, weakspot explores every SC trace once and watches for TSO. All threads of a
//! program are spawned, and references are counted by std's `Arc`, which none of the three sees: so the counts are those
//! of the program's own accesses (loom's `Arc` alone would multiply its executions by three and more).
//!
//! `ours` leaves the others out, a name after that all programs but one. At the end: what one small check costs, on the OS
//! thread of the last one and on a new one (as each test of `cargo test` has it); what a second worker is good for; and how
//! much memory is in use over more than a million executions.
#![allow(clippy::print_stdout, missing_docs)]

use std::time::{Duration, Instant};

use weakspot::{Builder, FailOn};

/// One program, written once for each of the three.
macro_rules! programs {
    ($module:ident, $root:ident) => {
        mod $module {
            use std::sync::Arc;
            use $root::sync::atomic::{AtomicUsize, Ordering};
            use $root::thread;

            fn pair() -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
                (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)))
            }

            pub fn store_buffering() {
                let (x, y) = pair();
                let (x2, y2) = (x.clone(), y.clone());
                let one = thread::spawn(move || {
                    x2.store(1, Ordering::Relaxed);
                    y2.load(Ordering::Relaxed)
                });
                let two = thread::spawn(move || {
                    y.store(1, Ordering::Relaxed);
                    x.load(Ordering::Relaxed)
                });
                let _ = (one.join(), two.join());
            }

            pub fn increments() {
                increment(8);
            }

            pub fn increment(times: usize) {
                let x = Arc::new(AtomicUsize::new(0));
                let threads = [(); 2].map(|()| {
                    let x = x.clone();
                    thread::spawn(move || (0..times).for_each(|_| _ = x.fetch_add(1, Ordering::AcqRel)))
                });
                for thread in threads {
                    let _ = thread.join();
                }
                assert_eq!(x.load(Ordering::Relaxed), 2 * times);
            }

            pub fn dekker() {
                let (x, y) = pair();
                let two_rounds = |mine: Arc<AtomicUsize>, other: Arc<AtomicUsize>| {
                    move || {
                        for round in 1..=2 {
                            mine.store(round, Ordering::Release);
                            other.load(Ordering::Acquire);
                            mine.store(0, Ordering::Release);
                        }
                    }
                };
                let one = thread::spawn(two_rounds(x.clone(), y.clone()));
                let two = thread::spawn(two_rounds(y, x));
                let _ = (one.join(), two.join());
            }

            pub fn iriw() {
                let (x, y) = pair();
                let (x1, y1) = (x.clone(), y.clone());
                let (x2, y2) = (x.clone(), y.clone());
                let writers = [
                    thread::spawn(move || x.store(1, Ordering::Release)),
                    thread::spawn(move || y.store(1, Ordering::Release)),
                ];
                let readers = [
                    thread::spawn(move || (x1.load(Ordering::Acquire), y1.load(Ordering::Acquire))),
                    thread::spawn(move || (y2.load(Ordering::Acquire), x2.load(Ordering::Acquire))),
                ];
                for writer in writers {
                    let _ = writer.join();
                }
                for reader in readers {
                    let _ = reader.join();
                }
            }

            pub fn readers() {
                let x = Arc::new(AtomicUsize::new(0));
                let x2 = x.clone();
                let writer = thread::spawn(move || x2.store(1, Ordering::Release));
                let threads = [(); 3].map(|()| {
                    let x = x.clone();
                    thread::spawn(move || x.load(Ordering::Acquire))
                });
                let _ = writer.join();
                for thread in threads {
                    let _ = thread.join();
                }
            }

            pub fn joined() {
                for thread in [(); 4].map(|()| thread::spawn(|| ())) {
                    let _ = thread.join();
                }
            }
        }
    };
}

programs!(ours, weakspot);
programs!(theirs, loom);
programs!(shuttled, shuttle);

/// A tool that is not done after this is stopped.
const PATIENCE: Duration = Duration::from_secs(20);

struct Subject {
    name: &'static str,
    executions: u64,
    ours: fn(),
    loom: fn(),
    shuttle: fn(),
}

/// Executions and seconds.
#[derive(Clone, Copy)]
struct Measured {
    executions: u64,
    seconds: f64,
    finished: bool,
}

fn weakspot(subject: &Subject) -> Measured {
    let mut best = Measured { executions: 0, seconds: f64::INFINITY, finished: true };
    for _ in 0..5 {
        let body = subject.ours;
        let start = Instant::now();
        let report = Builder { fail_on: FailOn::Nothing, ..Builder::default() }.check(body);
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(report.executions, subject.executions, "{}", subject.name);
        if seconds < best.seconds {
            best = Measured { executions: report.executions, seconds, finished: report.exhaustive };
        }
    }
    best
}

fn loom(subject: &Subject) -> Measured {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.store(0, Ordering::Relaxed);
    let body = subject.loom;
    let start = Instant::now();
    let mut builder = loom::model::Builder::new();
    builder.max_duration = Some(PATIENCE);
    builder.max_threads = 5;
    builder.check(move || {
        COUNT.fetch_add(1, Ordering::Relaxed);
        body();
    });
    let elapsed = start.elapsed();
    Measured { executions: COUNT.load(Ordering::Relaxed), seconds: elapsed.as_secs_f64(), finished: elapsed < PATIENCE }
}

fn shuttle(subject: &Subject) -> Measured {
    let body = subject.shuttle;
    let mut config = shuttle::Config::new();
    config.max_time = Some(PATIENCE);
    // shuttle leaves a panic hook behind that writes a line for every thread that loom unwinds: loom's comes back after it.
    let hook = std::panic::take_hook();
    let start = Instant::now();
    let executions = shuttle::Runner::new(shuttle::scheduler::DfsScheduler::new(None, false), config).run(body);
    let elapsed = start.elapsed();
    std::panic::set_hook(hook);
    Measured { executions: executions as u64, seconds: elapsed.as_secs_f64(), finished: elapsed < PATIENCE }
}

fn show(tool: &str, measured: Measured, ours: Measured) {
    let Measured { executions, seconds, finished } = measured;
    let rate = executions as f64 / seconds;
    let more = if finished { "" } else { " (stopped)" };
    println!(
        "    {tool:<9} {executions:>10} executions {:>12.3} ms {rate:>12.0}/s {:>9.1} times our time{more}",
        seconds * 1e3,
        seconds / ours.seconds
    );
}

/// The median time of something, in microseconds.
fn median(mut work: impl FnMut()) -> f64 {
    const TIMES: usize = 1_001;
    let mut times = [(); TIMES].map(|()| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    times.sort_unstable();
    times[TIMES / 2].as_secs_f64() * 1e6
}

/// What a check costs whose search is over at once.
fn small_checks() {
    let on_new_thread = |work: fn()| median(|| std::thread::spawn(work).join().expect("the check does not fail"));
    let thread = on_new_thread(|| ());
    println!("one check (a new OS thread alone takes {thread:.1} \u{b5}s)");
    let checks: [(&str, fn()); 3] = [
        ("nothing", || drop(Builder::default().check(|| ()))),
        ("4 joined", || drop(Builder::default().check(ours::joined))),
        ("1 writer, 3 readers", || drop(Builder::default().check(ours::readers))),
    ];
    for (name, check) in checks {
        let (same, new) = (median(check), on_new_thread(check) - thread);
        println!("    {name:<20} {same:>8.1} \u{b5}s, on a new OS thread {new:>8.1} \u{b5}s");
    }
}

/// The best time of some, in seconds, for 10 + 10 increments.
fn time_of_workers(jobs: usize) -> f64 {
    let once = || {
        let start = Instant::now();
        let report = Builder { jobs, ..Builder::default() }.check(|| ours::increment(10));
        assert_eq!(report.executions, 184_756);
        start.elapsed().as_secs_f64()
    };
    (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn workers() {
    let (one, two) = (time_of_workers(1), time_of_workers(2));
    println!("10 + 10 increments, 184756 executions");
    println!(
        "    1 worker  {:>12.3} ms\n    2 workers {:>12.3} ms, {:.2} times as fast",
        one * 1e3,
        two * 1e3,
        one / two
    );
}

/// Kilobytes that this process has in memory, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// 12 + 12 increments: 2,704,156 executions.
fn memory() {
    use std::sync::atomic::{AtomicU64, Ordering};
    static RUNS: AtomicU64 = AtomicU64::new(0);
    const EXECUTIONS: u64 = 2_704_156;
    println!("12 + 12 increments, {EXECUTIONS} executions");
    let report = Builder::default().check(|| {
        let runs = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
        if runs.is_multiple_of(EXECUTIONS / 4) {
            let kilobytes = resident().map_or_else(|| "?".to_owned(), |kilobytes| kilobytes.to_string());
            println!("    after {runs:>8} executions {kilobytes:>8} KiB in memory");
        }
        ours::increment(12);
    });
    assert_eq!(report.executions, EXECUTIONS);
}

fn main() {
    let subjects = [
        Subject {
            name: "store buffering",
            executions: 3,
            ours: ours::store_buffering,
            loom: theirs::store_buffering,
            shuttle: shuttled::store_buffering,
        },
        Subject {
            name: "8 + 8 increments",
            executions: 12_870,
            ours: ours::increments,
            loom: theirs::increments,
            shuttle: shuttled::increments,
        },
        Subject {
            name: "Dekker, 2 rounds",
            executions: 107,
            ours: ours::dekker,
            loom: theirs::dekker,
            shuttle: shuttled::dekker,
        },
        Subject { name: "IRIW", executions: 15, ours: ours::iriw, loom: theirs::iriw, shuttle: shuttled::iriw },
        Subject {
            name: "1 writer, 3 readers",
            executions: 8,
            ours: ours::readers,
            loom: theirs::readers,
            shuttle: shuttled::readers,
        },
        Subject {
            name: "4 joined",
            executions: 1,
            ours: ours::joined,
            loom: theirs::joined,
            shuttle: shuttled::joined,
        },
    ];
    let only_ours = std::env::args().any(|argument| argument == "ours");
    let only = std::env::args().nth(2).filter(|argument| !argument.starts_with('-'));
    for subject in
        subjects.iter().filter(|subject| only.as_ref().is_none_or(|only| subject.name.contains(only.as_str())))
    {
        println!("{}", subject.name);
        let mine = weakspot(subject);
        show("weakspot", mine, mine);
        if !only_ours {
            show("loom", loom(subject), mine);
            show("shuttle", shuttle(subject), mine);
        }
    }
    if only.is_none() {
        small_checks();
        workers();
        memory();
    }
}
